//! `plan list`, `status`, `diff`, `log`, `path`.

use std::path::Path;

use sandbar::domain::{Change, Entry, Kind};
use sandbar::ports::PortResult;
use sandbar::{DiffReport, PlanReport, Sandbar, patch};
use serde_json::json;

use crate::output::paged::Paged;
use crate::output::style::{BAD, DIM, GOOD, NAME, PLACE};
use crate::output::{document, human, print};

/// `sandbar plan list`.
pub(crate) async fn plans(sandbar: &Sandbar, json: bool) -> PortResult<u8> {
    Ok(list(&sandbar.plans().await?, json))
}

/// Prints a list of plans.
pub(crate) fn list(all: &[PlanReport], json: bool) -> u8 {
    if json {
        document(&json!({"plans": all.iter().map(document::listed).collect::<Vec<_>>()}));
    } else {
        print(&human::plans(all));
    }
    0
}

/// `sandbar status` and `sandbar plan show`.
pub(crate) async fn status(
    sandbar: &Sandbar,
    plan: &str,
    cwd: &Path,
    json: bool,
) -> PortResult<u8> {
    let report = sandbar.status(plan, cwd).await?;
    if json {
        document(&json!({
            "plan": document::plan(&report.plan),
            "sandboxes": document::sandboxes(&report.sandboxes),
            "changes": document::counts(report.changes.counts()),
            "ignored": report.ignored,
            "exit_code": null,
            "checkpoints": report.checkpoints.0,
            "warnings": report.warnings,
        }));
    } else {
        for warning in &report.warnings {
            anstream::eprintln!("sandbar: {warning}");
        }
        print(&human::status(&report));
    }
    Ok(0)
}

/// How a command that may print much shows it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Shown {
    /// As one document.
    pub(crate) json: bool,
    /// Straight out, on a terminal too.
    pub(crate) no_pager: bool,
}

/// `sandbar diff`.
pub(crate) async fn diff(
    sandbar: &Sandbar,
    plan: &str,
    cwd: &Path,
    shown: Shown,
    stat: bool,
) -> PortResult<u8> {
    let report = sandbar.diff(plan, cwd).await?;
    if shown.json {
        document(&document::diff(&report));
        return Ok(0);
    }
    // Opened only now: a failure is no matter for a pager.
    let mut out = Paged::open(shown.no_pager);
    let result = show(sandbar, &report, stat, &mut out).await;
    out.finish();
    result.map(|()| 0)
}

async fn show(
    sandbar: &Sandbar,
    report: &DiffReport,
    stat: bool,
    out: &mut Paged,
) -> PortResult<()> {
    for (_, set) in &report.boundaries {
        for change in set.changes() {
            let old = content(sandbar, change.old).await?;
            let new = content(sandbar, change.new).await?;
            let reading = if stat {
                out.print(&stat_line(change, &old, &new))
            } else {
                let text = patch::patch(change, &old, &new);
                match out.is_for_people() {
                    true => out.bytes(&coloured(&text)),
                    false => out.raw(&text),
                }
            };
            if !reading {
                return Ok(());
            }
        }
        if stat {
            out.print(&format!("{NAME}{}{NAME:#}\n", human::amount(set.counts())));
        }
    }
    Ok(())
}

async fn content(sandbar: &Sandbar, entry: Option<Entry>) -> PortResult<Vec<u8>> {
    match entry {
        Some(entry) if entry.kind != Kind::Directory => sandbar.content(entry.hash).await,
        _ => Ok(Vec::new()),
    }
}

fn stat_line(change: &Change, old: &[u8], new: &[u8]) -> String {
    let kind = change.kind().word();
    let path = &change.path;
    if change
        .new
        .or(change.old)
        .is_some_and(|entry| entry.kind == Kind::Directory)
    {
        return format!("{kind:<9}{path}/\n");
    }
    match patch::line_counts(old, new) {
        Some((plus, minus)) => {
            format!("{kind:<9}{path}  {GOOD}+{plus}{GOOD:#} {BAD}-{minus}{BAD:#}\n")
        }
        None => format!("{kind:<9}{path}  {DIM}binary{DIM:#}\n"),
    }
}

/// Colours a patch for a terminal, by the first byte of each line.
fn coloured(patch: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(patch.len() + patch.len() / 4);
    for line in patch.split_inclusive(|byte| *byte == b'\n') {
        let style = match line {
            [b'd', b'i', b'f', b'f', ..] => Some(NAME),
            [b'@', ..] => Some(PLACE),
            [b'+', ..] => Some(GOOD),
            [b'-', ..] => Some(BAD),
            _ => None,
        };
        let Some(style) = style else {
            out.extend_from_slice(line);
            continue;
        };
        let body = line.strip_suffix(b"\n").unwrap_or(line);
        out.extend_from_slice(style.render().to_string().as_bytes());
        out.extend_from_slice(body);
        out.extend_from_slice(style.render_reset().to_string().as_bytes());
        out.extend_from_slice(&line[body.len()..]);
    }
    out
}

/// `sandbar log`.
pub(crate) async fn log(sandbar: &Sandbar, plan: &str, cwd: &Path, shown: Shown) -> PortResult<u8> {
    let (plan, entries) = sandbar.log(plan, cwd).await?;
    if shown.json {
        document(&document::log(&plan, &entries));
        return Ok(0);
    }
    let mut out = Paged::open(shown.no_pager);
    out.print(&human::log(&entries));
    out.finish();
    Ok(0)
}

/// `sandbar path`.
pub(crate) async fn path(sandbar: &Sandbar, plan: &str, cwd: &Path, json: bool) -> PortResult<u8> {
    let path = sandbar.path(plan, cwd).await?;
    if json {
        document(&json!({"path": path}));
    } else {
        print(&format!("{}\n", path.display()));
    }
    Ok(0)
}
