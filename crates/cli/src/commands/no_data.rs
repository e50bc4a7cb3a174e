//! What commands answer where nothing was ever recorded. Never makes a data
//! directory: looking leaves no traces.

use std::path::Path;

use sandbar::compose;
use sandbar::ports::PortResult;
use sandbar::{Doctor, GcReport, GraphReport, Recovered};

use super::{care, graph, kept, look};
use crate::args::{Command, GraphFormat, KeptCommand, PlanCommand, ResourceCommand};

/// Answers a command about plans, of which there are none. Errors:
/// `plan_not_found` where it names one.
pub(crate) async fn answer(command: &Command, cwd: &Path, json: bool) -> PortResult<u8> {
    let plan = match command {
        Command::Plan(PlanCommand::List) => return Ok(look::list(&[], json)),
        Command::Doctor => {
            let report = Doctor::without_data(compose::views().await);
            return Ok(care::diagnosis(&report, json));
        }
        Command::Gc { dry_run, now: _ } => {
            let report = GcReport {
                dry_run: *dry_run,
                ..GcReport::default()
            };
            return Ok(care::collected(&report, json));
        }
        Command::Recover => return Ok(care::recovered(&Recovered::default(), json)),
        Command::Kept(KeptCommand::List { plan: None }) => return Ok(kept::list(&[], json)),
        Command::Kept(
            KeptCommand::List { plan: Some(plan) }
            | KeptCommand::Show { what: plan, .. }
            | KeptCommand::Restore { what: plan, .. },
        ) => plan,
        Command::Resource(ResourceCommand::List) => {
            return Ok(graph::list(&GraphReport::default(), json));
        }
        Command::Resource(ResourceCommand::Tree { resource: None }) => {
            return Ok(graph::whole(
                &GraphReport::default(),
                GraphFormat::Tree,
                json,
            ));
        }
        Command::Graph {
            resource: None,
            format,
        } => return Ok(graph::whole(&GraphReport::default(), *format, json)),
        Command::Resource(
            ResourceCommand::Tree {
                resource: Some(resource),
            }
            | ResourceCommand::Rm { resource },
        )
        | Command::Graph {
            resource: Some(resource),
            ..
        } => return Err(graph::unknown(resource)),
        Command::Resource(ResourceCommand::Show(asked))
        | Command::Boundary(asked)
        | Command::Domain(asked)
        | Command::Reach { asked, .. }
        | Command::Project { asked, .. }
        | Command::Route { asked, .. }
        | Command::Impact { asked, .. } => return Err(graph::unknown(&asked.resource)),
        Command::Exec(exec) => &exec.plan,
        Command::Apply(apply) => &apply.plan,
        Command::Plan(PlanCommand::Show { plan })
        | Command::Shell { plan }
        | Command::Path { plan }
        | Command::Status { plan }
        | Command::Diff { plan, .. }
        | Command::Log { plan }
        | Command::Checkpoint { plan, .. }
        | Command::Rollback { plan, .. }
        | Command::Undo { plan, .. }
        | Command::Update { plan }
        | Command::Discard { plan } => plan,
        // These need no plan, or make one.
        Command::Run(_)
        | Command::Resource(ResourceCommand::Add { .. })
        | Command::Plan(PlanCommand::New { .. })
        | Command::Config
        | Command::Completions { .. } => return Ok(0),
    };
    Err(sandbar::no_plan(plan, cwd))
}
