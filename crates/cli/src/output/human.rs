//! Sentences and tables for people.

use std::fmt::Write as _;

use sandbar::domain::apply::PathOp;
use sandbar::domain::change::Counts;
use sandbar::domain::plan::PlanState;
use sandbar::domain::{Change, ChangeKind, ChangeSet, Kind};
use sandbar::{ApplyReport, Doctor, LogEntry, Outcome, PlanReport, StatusReport, UpdateReport};

use super::style::{BAD, DIM, GOOD, NAME, NOTE, PLACE};
use super::time::stamp;

/// How many changed paths a summary lists.
const LISTED: usize = 12;

/// Writes a number with its noun.
pub(crate) fn count(number: u64, noun: &str) -> String {
    if number == 1 {
        format!("1 {noun}")
    } else {
        format!("{number} {noun}s")
    }
}

fn length<T>(list: &[T], noun: &str) -> String {
    count(u64::try_from(list.len()).unwrap_or(u64::MAX), noun)
}

/// Says how much changed.
pub(crate) fn amount(counts: Counts) -> String {
    if counts == Counts::default() {
        return "nothing changed".into();
    }
    let mut parts = Vec::new();
    for (number, word) in [
        (counts.added, "added"),
        (counts.modified, "modified"),
        (counts.deleted, "deleted"),
    ] {
        if number > 0 {
            parts.push(format!("{number} {word}"));
        }
    }
    parts.join(", ")
}

/// Lists changed paths, the first few of many.
pub(crate) fn paths(set: &ChangeSet) -> String {
    let mut out = String::new();
    let shown: Vec<&Change> = set
        .changes()
        .iter()
        .filter(|change| !is_frame(change, set))
        .collect();
    for change in shown.iter().take(LISTED) {
        let (style, sign) = match change.kind() {
            ChangeKind::Added => (GOOD, '+'),
            ChangeKind::Deleted => (BAD, '-'),
            _ => (NOTE, '~'),
        };
        let slash = match change.new.or(change.old).map(|entry| entry.kind) {
            Some(Kind::Directory) => "/",
            _ => "",
        };
        let _ = writeln!(out, "  {style}{sign} {}{slash}{style:#}", change.path);
    }
    if shown.len() > LISTED {
        let _ = writeln!(out, "  {DIM}and {} more{DIM:#}", shown.len() - LISTED);
    }
    out
}

/// A directory whose content is listed anyway.
fn is_frame(change: &Change, set: &ChangeSet) -> bool {
    let directory = change
        .new
        .or(change.old)
        .is_some_and(|entry| entry.kind == Kind::Directory);
    let prefix = format!("{}/", change.path);
    directory
        && set
            .changes()
            .iter()
            .any(|other| other.path.as_str().starts_with(&prefix))
}

/// Says what to type next.
pub(crate) fn next(name: &str, changed: bool, before: u64) -> String {
    let mut out = String::new();
    let mut line = |what: &str, command: String| {
        let _ = writeln!(out, "  {DIM}{what:<8}{DIM:#} {command}");
    };
    if changed {
        line("look", format!("sandbar diff {name}"));
        line("bring", format!("sandbar apply {name}"));
        line("back", format!("sandbar rollback {name} --to {before}"));
    }
    line("go on", format!("sandbar exec {name} -- CMD"));
    line("drop", format!("sandbar discard {name}"));
    out
}

/// The table of plans.
pub(crate) fn plans(all: &[PlanReport]) -> String {
    if all.is_empty() {
        return "no plans yet: start one with `sandbar run -- CMD`\n".into();
    }
    let width = all
        .iter()
        .map(|report| report.plan.plan.name.chars().count())
        .max()
        .unwrap_or(0);
    let mut out = String::new();
    for report in all {
        let plan = &report.plan.plan;
        let place = match &report.resource {
            Some(resource) => resource.root.path.display().to_string(),
            None => String::new(),
        };
        let _ = writeln!(
            out,
            "{NAME}{:<width$}{NAME:#}  {:<17} {DIM}{}{DIM:#}  {PLACE}{place}{PLACE:#}",
            plan.name,
            plan.mark.state.word(),
            stamp(plan.created_ms),
        );
    }
    out
}

/// What a plan holds now.
pub(crate) fn status(report: &StatusReport) -> String {
    let plan = &report.plan.plan;
    let mut out = format!(
        "plan {NAME}{}{NAME:#} is in {}: {}\n",
        plan.name,
        plan.mark.state.word(),
        amount(report.changes.counts())
    );
    for sandbox in &report.sandboxes {
        let _ = writeln!(
            out,
            "  {PLACE}{}{PLACE:#} {DIM}({}, {}, {} view){DIM:#}",
            sandbox.resource.root.path.display(),
            sandbox.resource.kind.word(),
            sandbox.sandbox.strategy.word(),
            sandbox.sandbox.view.word(),
        );
    }
    out += &paths(&report.changes);
    if report.ignored > 0 {
        let _ = writeln!(
            out,
            "  {DIM}{} that git ignores: no part of it{DIM:#}",
            count(report.ignored, "path")
        );
    }
    if let (count, Some(newest)) = report.checkpoints {
        let _ = writeln!(
            out,
            "  {DIM}{count} checkpoints, the newest is {newest}{DIM:#}"
        );
    }
    out
}

/// The table of checkpoints.
pub(crate) fn log(entries: &[LogEntry]) -> String {
    let mut out = String::new();
    for entry in entries.iter().rev() {
        let record = &entry.checkpoint;
        let what = match (&record.checkpoint.message, record.sequence) {
            (Some(message), _) => message.clone(),
            (None, _) => record.checkpoint.step.clone(),
        };
        let _ = writeln!(
            out,
            "{NAME}{:>4}{NAME:#}  {DIM}{}{DIM:#}  {what:<24} {}",
            record.sequence,
            stamp(record.checkpoint.created_ms),
            if record.checkpoint.step == "base" {
                String::new()
            } else {
                amount(entry.changes)
            },
        );
    }
    out
}

/// What an apply did.
pub(crate) fn apply(report: &ApplyReport) -> String {
    let name = &report.plan.plan.name;
    let root = report.resource.root.path.display();
    let mut out = match report.outcome {
        Outcome::Applied if report.ops.is_empty() && report.commits.is_empty() => {
            format!("plan {NAME}{name}{NAME:#} is applied: {root} held all of it already\n")
        }
        Outcome::Applied => format!(
            "{GOOD}applied{GOOD:#} plan {NAME}{name}{NAME:#} to {root}: {} written\n",
            length(&report.ops, "path")
        ),
        Outcome::PartiallyApplied => format!(
            "{GOOD}applied a part{GOOD:#} of plan {NAME}{name}{NAME:#} to {root}: {} written\n",
            length(&report.ops, "path")
        ),
        Outcome::Undone => format!(
            "{GOOD}undone{GOOD:#}: plan {NAME}{name}{NAME:#} is taken back from {root}: {} written\n",
            length(&report.ops, "path")
        ),
        Outcome::DryRun if report.plan.plan.mark.state.is_terminal() => format!(
            "would take plan {NAME}{name}{NAME:#} back from {root}: {}\n",
            length(&report.ops, "path")
        ),
        Outcome::DryRun => {
            format!(
                "would apply plan {NAME}{name}{NAME:#} to {root}: {}\n",
                length(&report.ops, "path")
            )
        }
        Outcome::Conflict => format!(
            "{BAD}conflict{BAD:#}: nothing is written to {root}; {} in the way\n",
            length(&report.conflicts, "path")
        ),
        Outcome::Failed => format!("{BAD}failed{BAD:#}: nothing is left written to {root}\n"),
        Outcome::NeedsAttention => format!(
            "{BAD}needs attention{BAD:#}: what was begun in {root} could be neither completed nor undone\n"
        ),
    };
    if report.outcome == Outcome::DryRun {
        for op in &report.ops {
            let _ = writeln!(out, "  {}", operation(op));
        }
    }
    for commit in &report.commits {
        let _ = writeln!(out, "  commit {NOTE}{commit}{NOTE:#}");
    }
    for conflict in &report.conflicts {
        let _ = writeln!(
            out,
            "  {BAD}{}{BAD:#}: {}",
            conflict.path,
            reason(&conflict.reason)
        );
        if let Some(kept) = &conflict.kept {
            let _ = writeln!(
                out,
                "    {DIM}the other bytes are in {}{DIM:#}",
                kept.display()
            );
        }
    }
    if let Some(kept) = &report.kept {
        let _ = writeln!(
            out,
            "  {DIM}what was replaced is kept in {}{DIM:#}",
            kept.display()
        );
    }
    for line in afterwards(report) {
        let _ = writeln!(out, "  {DIM}{line}{DIM:#}");
    }
    out
}

/// Says what an apply or undo leaves to do.
fn afterwards(report: &ApplyReport) -> Vec<String> {
    let name = &report.plan.plan.name;
    match report.outcome {
        Outcome::PartiallyApplied => {
            let shown: Vec<&str> = report
                .rest
                .iter()
                .take(LISTED)
                .map(|p| p.as_str())
                .collect();
            let more = match report.rest.len().saturating_sub(LISTED) {
                0 => String::new(),
                more => format!(" and {more} more"),
            };
            vec![
                format!("still in the plan: {}{more}", shown.join(", ")),
                format!("look at it: sandbar diff {name}   bring it: sandbar apply {name}"),
            ]
        }
        Outcome::Conflict if report.plan.plan.mark.state == PlanState::Review => vec![format!(
            "settle it in your tree, or inside after `sandbar update {name}`; then apply again"
        )],
        Outcome::Conflict => vec![
            "settle it in your tree, then try again; what was replaced: `sandbar kept list`".into(),
        ],
        Outcome::Undone => vec![format!(
            "go on: sandbar exec {name} -- CMD   bring it again: sandbar apply {name}"
        )],
        Outcome::NeedsAttention => {
            vec!["what to do now: docs/when-an-apply-failed.md, `sandbar doctor`".into()]
        }
        _ => Vec::new(),
    }
}

/// What an update brought.
pub(crate) fn update(report: &UpdateReport) -> String {
    let name = &report.plan.plan.name;
    if report.brought.is_empty() && report.unsettled.is_empty() {
        return format!("plan {NAME}{name}{NAME:#} is up to date\n");
    }
    let mut out = format!(
        "{GOOD}updated{GOOD:#} plan {NAME}{name}{NAME:#}: {} brought in\n",
        length(&report.brought, "path")
    );
    for one in &report.unsettled {
        let what = match (&one.beside, &*one.reason) {
            (Some(beside), _) => format!("{}; yours is {beside} inside", reason(&one.reason)),
            (None, "overlap" | "both_added") => {
                format!(
                    "{}; both versions stand in it, between markers",
                    reason(&one.reason)
                )
            }
            (None, "deleted_here") => format!("{}; the plan's stays", reason(&one.reason)),
            (None, word) => reason(word).to_owned(),
        };
        let _ = writeln!(out, "  {BAD}{}{BAD:#}: {what}", one.path);
    }
    if report.unsettled.is_empty() {
        let _ = writeln!(
            out,
            "  {DIM}look: sandbar diff {name}   bring: sandbar apply {name}{DIM:#}"
        );
    } else {
        let _ = writeln!(out, "  {DIM}settle it inside: sandbar shell {name}{DIM:#}");
    }
    let _ = writeln!(
        out,
        "  {DIM}as it was before: sandbar rollback {name} --to {}{DIM:#}",
        report.before
    );
    out
}

fn operation(op: &PathOp) -> String {
    let path = op.path();
    match op {
        PathOp::MakeDir { .. } => format!("{GOOD}make{GOOD:#}    {path}/"),
        PathOp::Create { .. } => format!("{GOOD}create{GOOD:#}  {path}"),
        PathOp::Replace { .. } => format!("{NOTE}replace{NOTE:#} {path}"),
        PathOp::SetMode { new, .. } => format!("{NOTE}mode{NOTE:#}    {path} {}", new.kind.mode()),
        PathOp::Remove { .. } => format!("{BAD}remove{BAD:#}  {path}"),
        PathOp::RemoveDir { .. } => format!("{BAD}remove{BAD:#}  {path}/"),
    }
}

/// Says a reason word in a sentence.
fn reason(word: &str) -> &str {
    match word {
        "overlap" => "both sides changed the same or touching lines",
        "binary" => "both sides changed it, and it is not text",
        "too_large" => "both sides changed it, and it is too large to merge",
        "symlink" => "both sides changed the symlink",
        "both_added" => "both sides made it, differently",
        "type" => "one side made it another type",
        "deleted_here" => "deleted in the real tree, changed in the plan",
        "deleted_in_result" => "changed in the real tree, deleted in the plan",
        "parent_not_directory" => "what should be a directory above it is none",
        "case_collision" => "differs from another changed path in case only",
        "reserved" => "a place that never belongs to a result",
        other => other,
    }
}

/// The diagnosis.
pub(crate) fn doctor(report: &Doctor) -> String {
    let mut out = String::new();
    match (&report.views.in_place, &report.views.reason) {
        (true, _) => out += "in-place view       works\n",
        (false, reason) => {
            let reason = reason.as_deref().unwrap_or("no reason is known");
            let _ = writeln!(
                out,
                "in-place view       {NOTE}not available{NOTE:#}: {reason}"
            );
        }
    }
    let _ = writeln!(
        out,
        "security isolation  no: plans are kept apart, hostile code is not contained"
    );
    let _ = writeln!(out, "plans               {}", report.plans);
    let _ = writeln!(out, "sandboxes           {}", report.sandboxes);
    let _ = writeln!(
        out,
        "stored objects      {} in {}",
        report.objects.objects,
        size(report.objects.bytes)
    );
    if report.findings.is_empty() {
        let _ = writeln!(out, "{GOOD}everything is in order{GOOD:#}");
    }
    for finding in &report.findings {
        let _ = writeln!(
            out,
            "{NOTE}{}{NOTE:#} {}: {}",
            finding.kind, finding.subject, finding.message
        );
    }
    out
}

/// Writes a number of bytes for a person.
pub(crate) fn size(bytes: u64) -> String {
    let mut value = bytes;
    let mut rest = 0;
    let mut unit = 0;
    const UNITS: [&str; 5] = ["B", "KiB", "MiB", "GiB", "TiB"];
    while value >= 1024 && unit + 1 < UNITS.len() {
        rest = value % 1024 * 10 / 1024;
        value /= 1024;
        unit += 1;
    }
    if unit == 0 {
        format!("{value} B")
    } else {
        format!("{value}.{rest} {}", UNITS[unit])
    }
}
