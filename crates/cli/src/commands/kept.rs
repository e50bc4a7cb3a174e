//! `kept list`, `kept show`, `kept restore`.

use std::path::PathBuf;

use sandbar::ports::PortResult;
use sandbar::{KeptItem, KeptRequest, Sandbar};
use serde_json::{Value, json};

use crate::args::KeptCommand;
use crate::output::style::{DIM, NAME, PLACE};
use crate::output::time::stamp;
use crate::output::{document, human, print, raw};

/// `sandbar kept …`.
pub(crate) async fn kept(
    sandbar: &Sandbar,
    command: KeptCommand,
    cwd: PathBuf,
    json: bool,
) -> PortResult<u8> {
    match command {
        KeptCommand::List { plan } => {
            let items = sandbar.kept(plan.as_deref(), &cwd).await?;
            Ok(list(&items, json))
        }
        KeptCommand::Show {
            what,
            path,
            checkpoint,
        } => {
            let request = KeptRequest {
                what,
                path,
                checkpoint,
                cwd,
            };
            show(&sandbar.kept_bytes(&request).await?, json)
        }
        KeptCommand::Restore {
            what,
            path,
            checkpoint,
            to,
        } => {
            let request = KeptRequest {
                what,
                path,
                checkpoint,
                cwd,
            };
            let restored = sandbar.restore_kept(&request, to.as_deref()).await?;
            if json {
                let all: Vec<Value> = restored
                    .iter()
                    .map(|one| {
                        let mut value = item(&one.item);
                        value["to"] = json!(one.to);
                        value
                    })
                    .collect();
                document(&json!({"restored": all}));
                return Ok(0);
            }
            let mut text = String::new();
            for one in &restored {
                let to = one.to.display();
                text += &format!("{} is in {PLACE}{to}{PLACE:#}\n", one.item.path);
            }
            print(&text);
            Ok(0)
        }
    }
}

fn show(bytes: &[u8], json: bool) -> PortResult<u8> {
    if !json {
        raw(bytes);
        return Ok(0);
    }
    // A document holds text; what is none is given as its bytes in hex.
    let value = match std::str::from_utf8(bytes) {
        Ok(text) => json!({"size": bytes.len(), "text": text}),
        Err(_) => {
            let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
            json!({"size": bytes.len(), "hex": hex})
        }
    };
    document(&value);
    Ok(0)
}

fn item(item: &KeptItem) -> Value {
    json!({
        "id": item.id,
        "plan": item.plan,
        "by": item.by.word(),
        "path": item.path.as_str(),
        "type": item.entry.kind.word(),
        "mode": item.entry.kind.mode(),
        "hash": item.entry.hash.to_string(),
        "size": item.size,
        "at": item.at,
        "until": item.until_ms.map(stamp),
    })
}

/// Prints what is kept.
pub(crate) fn list(items: &[KeptItem], json: bool) -> u8 {
    if json {
        document(&json!({"kept": items.iter().map(item).collect::<Vec<_>>()}));
        return 0;
    }
    if items.is_empty() {
        print("nothing is kept: no apply, undo or rollback displaced anything\n");
        return 0;
    }
    let width = |of: &dyn Fn(&KeptItem) -> usize| items.iter().map(of).max().unwrap_or(0);
    let ids = width(&|item| shown_id(item).chars().count());
    let plans = width(&|item| item.plan.chars().count());
    let mut text = String::new();
    for item in items {
        let size = item.size.map(human::size).unwrap_or_default();
        let until = match item.until_ms {
            Some(ms) => format!("  {DIM}until {}{DIM:#}", &stamp(ms)[..10]),
            None => String::new(),
        };
        let (id, plan, by) = (shown_id(item), &item.plan, item.by.word());
        text += &format!(
            "{NAME}{id:<ids$}{NAME:#}  {plan:<plans$}  {by:<8}  {size:>9}  {}{until}\n",
            item.path
        );
    }
    text += &format!(
        "{DIM}print one with `sandbar kept show ID`, copy it out with `sandbar kept restore ID`;\n\
         of a checkpoint (cN) with `sandbar kept show PLAN PATH --checkpoint N`{DIM:#}\n"
    );
    print(&text);
    0
}

/// The id, less the path that stands beside it.
fn shown_id(item: &KeptItem) -> &str {
    item.id.split_once(':').map_or(&item.id, |(id, _)| id)
}
