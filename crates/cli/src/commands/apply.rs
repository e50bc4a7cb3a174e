//! `apply`, `undo` and `discard`.

use std::path::{Path, PathBuf};

use sandbar::domain::Code;
use sandbar::ports::{PortError, PortResult};
use sandbar::{ApplyReport, ApplyRequest, Outcome, Resulting, Sandbar, UndoRequest};
use serde_json::json;

use crate::args::ApplyArgs;
use crate::output::style::{NAME, NOTE};
use crate::output::{document, human, print};

/// `sandbar apply`.
pub(crate) async fn apply(
    sandbar: &Sandbar,
    args: ApplyArgs,
    cwd: PathBuf,
    json: bool,
) -> PortResult<u8> {
    let resulting = match (args.commit, args.branch) {
        (true, _) => Resulting::Commit(args.message),
        (false, Some(branch)) => Resulting::Branch(branch, args.message),
        (false, None) if args.message.is_some() => {
            let message = "apply: `--message` needs `--commit` or `--branch`";
            return Err(PortError::new(Code::Usage, message));
        }
        (false, None) => Resulting::Uncommitted,
    };
    let request = ApplyRequest {
        plan: args.plan,
        cwd,
        paths: args.paths,
        resources: args.resource,
        dry_run: args.dry_run,
        resulting,
        onto_current: args.onto_current,
        allow_filters: args.allow_filters,
    };
    Ok(show(&sandbar.apply(request).await?, json))
}

/// `sandbar undo`.
pub(crate) async fn undo(sandbar: &Sandbar, request: UndoRequest, json: bool) -> PortResult<u8> {
    Ok(show(&sandbar.undo(request).await?, json))
}

/// Shows how an apply or undo ended.
fn show(report: &ApplyReport, json: bool) -> u8 {
    if json {
        document(&document::apply(report));
    } else {
        for warning in &report.warnings {
            anstream::eprintln!("{NOTE}sandbar: {warning}{NOTE:#}");
        }
        print(&human::apply(report));
    }
    match report.outcome {
        Outcome::Applied | Outcome::PartiallyApplied | Outcome::Undone | Outcome::DryRun => 0,
        Outcome::Conflict => 3,
        Outcome::Failed | Outcome::NeedsAttention => 1,
    }
}

/// `sandbar discard`.
pub(crate) async fn discard(
    sandbar: &Sandbar,
    plan: &str,
    cwd: &Path,
    json: bool,
) -> PortResult<u8> {
    let plan = sandbar.discard(plan, cwd).await?;
    if json {
        document(&json!({"plan": document::plan(&plan)}));
    } else {
        let name = &plan.plan.name;
        print(&format!(
            "discarded plan {NAME}{name}{NAME:#}; its checkpoints stay until retention ends\n"
        ));
    }
    Ok(0)
}
