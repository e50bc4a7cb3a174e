//! `doctor`, `gc`, `recover`, `config`, `completions`.

use clap::CommandFactory as _;
use sandbar::config::KEYS;
use sandbar::ports::PortResult;
use sandbar::{Config, Doctor, GcReport, GcRequest, Outcome, Recovered, Sandbar};
use serde_json::json;

use crate::args::Args;
use crate::output::style::{DIM, NAME};
use crate::output::{document, human, print, raw};

/// `sandbar doctor`: fails when something needs a person.
pub(crate) async fn doctor(sandbar: &Sandbar, json: bool) -> PortResult<u8> {
    Ok(diagnosis(&sandbar.doctor().await?, json))
}

/// Prints what `doctor` found.
pub(crate) fn diagnosis(report: &Doctor, json: bool) -> u8 {
    if json {
        document(&document::doctor(report));
    } else {
        print(&human::doctor(report));
    }
    let bad = report
        .findings
        .iter()
        .any(|finding| finding.kind != "orphan");
    u8::from(bad)
}

/// `sandbar gc`.
pub(crate) async fn gc(sandbar: &Sandbar, dry_run: bool, now: bool, json: bool) -> PortResult<u8> {
    let report = sandbar.gc(GcRequest { dry_run, now }).await?;
    Ok(collected(&report, json))
}

/// Prints what `gc` did.
pub(crate) fn collected(report: &GcReport, json: bool) -> u8 {
    if json {
        document(&json!({
            "dry_run": report.dry_run,
            "plans": report.plans,
            "places": report.places,
            "objects": {
                "removed": report.objects.removed,
                "bytes": report.objects.bytes,
                "kept": report.objects.kept,
            },
        }));
        return 0;
    }
    let dry_run = report.dry_run;
    let would = if dry_run { "would remove" } else { "removed" };
    let mut text = format!(
        "{would} the checkpoints of {} plans and {} sandbox directories\n",
        report.plans.len(),
        report.places.len()
    );
    if !dry_run {
        text += &format!(
            "removed {} objects, {}; {} stay\n",
            report.objects.removed,
            human::size(report.objects.bytes),
            report.objects.kept
        );
    }
    print(&text);
    0
}

/// `sandbar recover`.
pub(crate) async fn recover(sandbar: &Sandbar, json: bool) -> PortResult<u8> {
    Ok(recovered(&sandbar.recover().await?, json))
}

/// Prints what `recover` settled.
pub(crate) fn recovered(report: &Recovered, json: bool) -> u8 {
    if json {
        document(&json!({
            "applies": report.applies.iter().map(|(plan, outcome)| json!({
                "plan": plan,
                "outcome": outcome.word(),
            })).collect::<Vec<_>>(),
            "undos": report.undos.iter().map(|(plan, outcome)| json!({
                "plan": plan,
                "outcome": outcome.word(),
            })).collect::<Vec<_>>(),
            "plans": report.plans,
            "abandoned": report.abandoned,
            "open": report.open.iter().map(|(plan, reason)| json!({
                "plan": plan,
                "reason": reason,
            })).collect::<Vec<_>>(),
        }));
    } else if report.is_empty() {
        print("nothing to recover\n");
    } else {
        let mut text = String::new();
        for (plan, outcome) in &report.applies {
            text += &match outcome {
                Outcome::Applied | Outcome::PartiallyApplied => {
                    format!("completed the apply of plan {NAME}{plan}{NAME:#}\n")
                }
                Outcome::NeedsAttention => {
                    format!("the apply of plan {NAME}{plan}{NAME:#} still needs attention\n")
                }
                _ => format!("took back the apply of plan {NAME}{plan}{NAME:#}\n"),
            };
        }
        for (plan, outcome) in &report.undos {
            text += &match outcome {
                Outcome::Undone => format!("completed the undo of plan {NAME}{plan}{NAME:#}\n"),
                Outcome::NeedsAttention => {
                    format!("the undo of plan {NAME}{plan}{NAME:#} still needs attention\n")
                }
                _ => format!("took back the undo of plan {NAME}{plan}{NAME:#}: it is applied\n"),
            };
        }
        for plan in &report.plans {
            text += &format!("plan {NAME}{plan}{NAME:#} lost its process and is in review now\n");
        }
        for plan in &report.abandoned {
            text += &format!("removed the unfinished sandbox of plan {NAME}{plan}{NAME:#}\n");
        }
        for (plan, reason) in &report.open {
            text += &format!("plan {NAME}{plan}{NAME:#} needs attention: {reason}\n");
        }
        print(&text);
    }
    let stuck = report
        .applies
        .iter()
        .chain(&report.undos)
        .any(|(_, outcome)| *outcome == Outcome::NeedsAttention);
    u8::from(stuck || !report.open.is_empty())
}

/// `sandbar config`.
pub(crate) fn config(config: &Config, json: bool) -> u8 {
    let entries: Vec<_> = config.entries().collect();
    if json {
        let values: Vec<_> = entries
            .iter()
            .map(|(name, value, origin)| {
                json!({"key": name, "value": value.display(), "origin": origin.describe()})
            })
            .collect();
        document(&json!({"values": values}));
        return 0;
    }
    let mut text = String::new();
    for (name, value, origin) in entries {
        let about = KEYS
            .iter()
            .find(|key| key.name == name)
            .map_or("", |key| key.about);
        let value = format!("{:?}", value.display());
        let origin = origin.describe();
        text += &format!("{NAME}{name}{NAME:#} = {value}  {DIM}({origin}; {about}){DIM:#}\n");
    }
    print(&text);
    0
}

/// `sandbar completions`.
pub(crate) fn completions(shell: clap_complete::Shell) -> u8 {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Args::command(), "sandbar", &mut script);
    raw(&script);
    0
}
