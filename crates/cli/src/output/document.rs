//! The JSON documents that outside programs rely on (SRF-3). Fields may be
//! added, never renamed.

use sandbar::domain::change::Counts;
use sandbar::domain::resource::Strategy;
use sandbar::domain::{Change, Entry};
use sandbar::ports::store::PlanRecord;
use sandbar::{ApplyReport, DiffReport, Doctor, LogEntry, PlanReport, Sandbar, SandboxReport};
use serde_json::{Value, json};

use super::time::stamp;

/// Prints one document on standard output.
pub(crate) fn document(value: &Value) {
    let mut text = serde_json::to_string_pretty(value).unwrap_or_else(|_| value.to_string());
    text.push('\n');
    super::raw(text.as_bytes());
}

/// A plan as every document names it.
pub(crate) fn plan(plan: &PlanRecord) -> Value {
    json!({
        "id": plan.plan.id.to_string(),
        "name": plan.plan.name,
        "state": plan.plan.mark.state.word(),
    })
}

/// Counts of changed paths.
pub(crate) fn counts(counts: Counts) -> Value {
    json!({"added": counts.added, "modified": counts.modified, "deleted": counts.deleted})
}

/// Sandboxes.
pub(crate) fn sandboxes(all: &[SandboxReport]) -> Value {
    all.iter()
        .map(|report| {
            json!({
                "resource": report.resource.root.path,
                "type": report.resource.kind.word(),
                "strategy": report.sandbox.strategy.word(),
                "root": report.root,
                "view": report.sandbox.view.word(),
                "state": report.sandbox.state.word(),
                "capabilities": abilities(report.sandbox.strategy),
            })
        })
        .collect()
}

/// What a strategy can do, by name.
fn abilities(strategy: Strategy) -> Value {
    Sandbar::abilities(strategy)
        .into_iter()
        .map(|(ability, can)| (ability.word().to_owned(), json!(can)))
        .collect::<serde_json::Map<_, _>>()
        .into()
}

/// A plan in a list.
pub(crate) fn listed(report: &PlanReport) -> Value {
    let mut value = plan(&report.plan);
    value["resource"] = json!(report.resource.as_ref().map(|resource| &resource.root.path));
    value["created_at"] = json!(stamp(report.plan.plan.created_ms));
    value["driven"] = json!(report.driven);
    value
}

fn entry(entry: Option<Entry>) -> Value {
    match entry {
        Some(entry) => json!({
            "type": entry.kind.word(),
            "mode": entry.kind.mode(),
            "hash": entry.hash.to_string(),
        }),
        None => Value::Null,
    }
}

/// One changed path.
pub(crate) fn change(change: &Change) -> Value {
    json!({
        "path": change.path.as_str(),
        "kind": change.kind().word(),
        "old": entry(change.old),
        "new": entry(change.new),
    })
}

/// What a plan changed.
pub(crate) fn diff(report: &DiffReport) -> Value {
    let boundaries: Vec<Value> = report
        .boundaries
        .iter()
        .map(|(resource, set)| {
            json!({
                "resource": resource.root.path,
                "changes": set.changes().iter().map(change).collect::<Vec<_>>(),
            })
        })
        .collect();
    json!({"plan": plan(&report.plan), "boundaries": boundaries})
}

/// The log.
pub(crate) fn log(of: &PlanRecord, entries: &[LogEntry]) -> Value {
    let checkpoints: Vec<Value> = entries
        .iter()
        .map(|entry| {
            let record = &entry.checkpoint;
            json!({
                "id": record.checkpoint.id.to_string(),
                "seq": record.sequence,
                "created_at": stamp(record.checkpoint.created_ms),
                "message": record.checkpoint.message,
                "step": record.checkpoint.step,
                "changes": counts(entry.changes),
            })
        })
        .collect();
    json!({"plan": plan(of), "checkpoints": checkpoints})
}

/// What an apply did.
pub(crate) fn apply(report: &ApplyReport) -> Value {
    let state = match report.outcome {
        sandbar::Outcome::Applied => "applied",
        sandbar::Outcome::PartiallyApplied => "partially_applied",
        sandbar::Outcome::Undone => "undone",
        sandbar::Outcome::Failed => "failed",
        _ => "not_applied",
    };
    json!({
        "plan": plan(&report.plan),
        "outcome": report.outcome.word(),
        "resources": [{
            "resource": report.resource.root.path,
            "state": state,
            "paths": report.ops.iter().map(|op| op.path().as_str()).collect::<Vec<_>>(),
            "rest": report.rest.iter().map(|path| path.as_str()).collect::<Vec<_>>(),
            "kept": report.kept,
            "commits": report.commits,
        }],
        "conflicts": report.conflicts.iter().map(|conflict| json!({
            "path": conflict.path,
            "reason": conflict.reason,
            "kept": conflict.kept,
        })).collect::<Vec<_>>(),
        "warnings": report.warnings,
    })
}

/// The diagnosis.
pub(crate) fn doctor(report: &Doctor) -> Value {
    json!({
        "security_isolation": report.security_isolation,
        "views": {"in_place": report.views.in_place, "reason": report.views.reason},
        "plans": report.plans,
        "sandboxes": report.sandboxes,
        "objects": {"count": report.objects.objects, "bytes": report.objects.bytes},
        "findings": report.findings.iter().map(|finding| json!({
            "kind": finding.kind,
            "subject": finding.subject,
            "message": finding.message,
        })).collect::<Vec<_>>(),
    })
}
