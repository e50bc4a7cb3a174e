//! `run`, `exec`, `shell`, `plan new`, `checkpoint`, `rollback`, `update`.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use sandbar::ports::PortResult;
use sandbar::{ExecRequest, RunReport, RunRequest, Sandbar};
use serde_json::json;

use crate::args::{ExecArgs, RunArgs};
use crate::output::style::{BAD, NAME, NOTE};
use crate::output::{document, human, print};

/// `sandbar run`.
pub(crate) async fn run(
    sandbar: &Sandbar,
    args: RunArgs,
    cwd: PathBuf,
    json: bool,
) -> PortResult<u8> {
    let request = RunRequest {
        name: args.name,
        cwd,
        argv: args.command,
        base: args.base,
        bring: args.bring.into(),
        view: args.view.map(Into::into),
        rollback_on_failure: args.rollback_on_failure,
        stdout_to_stderr: json,
    };
    Ok(show(&sandbar.run(request).await?, json))
}

/// `sandbar exec`.
pub(crate) async fn exec(
    sandbar: &Sandbar,
    args: ExecArgs,
    cwd: PathBuf,
    json: bool,
) -> PortResult<u8> {
    let request = ExecRequest {
        plan: args.plan,
        cwd,
        argv: args.command,
        rollback_on_failure: args.rollback_on_failure,
        stdout_to_stderr: json,
    };
    Ok(show(&sandbar.exec(request).await?, json))
}

/// `sandbar shell`.
pub(crate) async fn shell(
    sandbar: &Sandbar,
    plan: String,
    cwd: PathBuf,
    json: bool,
) -> PortResult<u8> {
    let shell = std::env::var_os("SHELL").filter(|shell| !shell.is_empty());
    let request = ExecRequest {
        plan,
        cwd,
        argv: vec![shell.unwrap_or_else(|| OsString::from("/bin/sh"))],
        rollback_on_failure: false,
        stdout_to_stderr: json,
    };
    Ok(show(&sandbar.exec(request).await?, json))
}

/// `sandbar plan new`.
pub(crate) async fn new(
    sandbar: &Sandbar,
    name: Option<String>,
    base: Option<String>,
    bring: sandbar::Bring,
    cwd: PathBuf,
    json: bool,
) -> PortResult<u8> {
    let plan = sandbar.new_plan_at(name, base, bring, cwd).await?;
    if json {
        document(&json!({"plan": document::plan(&plan)}));
    } else {
        let name = &plan.plan.name;
        print(&format!(
            "plan {NAME}{name}{NAME:#} is ready\n{}",
            human::next(name, false, 1)
        ));
    }
    Ok(0)
}

/// Shows how a command ended; its own output came before.
fn show(report: &RunReport, json: bool) -> u8 {
    let plan = &report.plan.plan;
    let counts = report.changes.counts();
    if json {
        document(&json!({
            "plan": document::plan(&report.plan),
            "sandboxes": document::sandboxes(&report.sandboxes),
            "changes": document::counts(counts),
            "ignored": report.ignored,
            "exit_code": report.exit_code,
            "checkpoint": report.checkpoint,
            "rolled_back": report.rolled_back,
            "warnings": report.warnings,
        }));
        return report.exit_code;
    }
    // Standard output belongs to the command.
    for warning in &report.warnings {
        anstream::eprintln!("{NOTE}sandbar: {warning}{NOTE:#}");
    }
    let name = &plan.name;
    let mut text = format!("plan {NAME}{name}{NAME:#}: {}", human::amount(counts));
    if report.exit_code != 0 {
        text += &format!(" {BAD}(the command ended with {}){BAD:#}", report.exit_code);
    }
    if report.rolled_back {
        text += ", and the sandbox was put back";
    }
    text.push('\n');
    text += &human::paths(&report.changes);
    text += &human::next(
        name,
        !report.changes.is_empty(),
        report.checkpoint.saturating_sub(1).max(1),
    );
    anstream::eprint!("{text}");
    report.exit_code
}

/// `sandbar checkpoint`.
pub(crate) async fn checkpoint(
    sandbar: &Sandbar,
    plan: &str,
    message: Option<String>,
    cwd: &Path,
    json: bool,
) -> PortResult<u8> {
    let report = sandbar.checkpoint(plan, message, cwd).await?;
    let number = report.checkpoint.sequence;
    if json {
        document(&json!({
            "plan": document::plan(&report.plan),
            "checkpoint": {
                "id": report.checkpoint.checkpoint.id.to_string(),
                "seq": number,
                "fresh": report.fresh,
            },
        }));
    } else if report.fresh {
        print(&format!("saved checkpoint {NAME}{number}{NAME:#}\n"));
    } else {
        print(&format!(
            "nothing changed since checkpoint {NAME}{number}{NAME:#}\n"
        ));
    }
    Ok(0)
}

/// `sandbar rollback`.
pub(crate) async fn rollback(
    sandbar: &Sandbar,
    plan: &str,
    to: &str,
    cwd: &Path,
    json: bool,
) -> PortResult<u8> {
    let report = sandbar.rollback(plan, to, cwd).await?;
    if json {
        document(&json!({
            "plan": document::plan(&report.plan),
            "to": report.to,
            "replaced": report.replaced,
            "written": report.written,
            "removed": report.removed,
        }));
        return Ok(0);
    }
    let name = &report.plan.plan.name;
    let mut text = format!(
        "plan {NAME}{name}{NAME:#} is back at checkpoint {}: {} written, {} removed\n",
        report.to,
        human::count(report.written, "path"),
        report.removed
    );
    if let Some(replaced) = report.replaced {
        text += &format!("  what it replaced is checkpoint {replaced}\n");
    }
    print(&text);
    Ok(0)
}

/// `sandbar update`.
pub(crate) async fn update(
    sandbar: &Sandbar,
    plan: &str,
    cwd: &Path,
    json: bool,
) -> PortResult<u8> {
    let report = sandbar.update(plan, cwd).await?;
    let settled = report.unsettled.is_empty();
    if json {
        document(&json!({
            "plan": document::plan(&report.plan),
            "outcome": if settled { "updated" } else { "conflict" },
            "resource": report.resource.root.path,
            "paths": report.brought.iter().map(|path| path.as_str()).collect::<Vec<_>>(),
            "conflicts": report.unsettled.iter().map(|one| json!({
                "path": one.path.as_str(),
                "reason": one.reason,
                "beside": one.beside.as_ref().map(|path| path.as_str()),
            })).collect::<Vec<_>>(),
            "before": report.before,
            "checkpoint": report.after,
            "warnings": report.warnings,
        }));
    } else {
        for warning in &report.warnings {
            anstream::eprintln!("{NOTE}sandbar: {warning}{NOTE:#}");
        }
        print(&human::update(&report));
    }
    Ok(if settled { 0 } else { 3 })
}
