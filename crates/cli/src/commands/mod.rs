//! One module a family of commands; each turns arguments into a request and a
//! report into output.

mod apply;
mod care;
mod graph;
mod kept;
mod look;
mod no_data;
mod run;

use sandbar::domain::Code;
use sandbar::ports::{PortError, PortResult};
use sandbar::{Sandbar, UndoRequest};

use crate::args::{Args, Command, PlanCommand, ResourceCommand};
use crate::failure::Failure;

/// Runs one command and returns the exit code.
pub(crate) async fn dispatch(args: Args) -> Result<u8, Failure> {
    let own = args.command.passes_exit_code();
    run(args).await.map_err(|error| Failure::new(error, own))
}

async fn run(args: Args) -> PortResult<u8> {
    let (json, no_pager) = (args.json, args.no_pager);
    let cwd = crate::args::cwd().map_err(|error| {
        PortError::new(Code::PathNotFound, "find the current directory").with_source(error)
    })?;
    if let Command::Completions { shell } = args.command {
        return Ok(care::completions(shell));
    }
    if let Command::Config = args.command {
        return Ok(care::config(&crate::session::configure()?, json));
    }
    let sandbar: Sandbar = match args.command {
        Command::Run(_)
        | Command::Plan(PlanCommand::New { .. })
        | Command::Resource(ResourceCommand::Add { .. }) => crate::session::open(json).await?,
        _ => match crate::session::open_existing(json).await? {
            Some(sandbar) => sandbar,
            None => return no_data::answer(&args.command, &cwd, json).await,
        },
    };
    match args.command {
        Command::Run(run) => run::run(&sandbar, run, cwd, json).await,
        Command::Exec(exec) => run::exec(&sandbar, exec, cwd, json).await,
        Command::Shell { plan } => run::shell(&sandbar, plan, cwd, json).await,
        Command::Path { plan } => look::path(&sandbar, &plan, &cwd, json).await,
        Command::Plan(PlanCommand::New { name, base, bring }) => {
            run::new(&sandbar, name, base, bring.into(), cwd, json).await
        }
        Command::Plan(PlanCommand::List) => look::plans(&sandbar, json).await,
        Command::Plan(PlanCommand::Show { plan }) | Command::Status { plan } => {
            look::status(&sandbar, &plan, &cwd, json).await
        }
        Command::Diff {
            plan,
            stat,
            patch: _,
        } => {
            let shown = look::Shown { json, no_pager };
            look::diff(&sandbar, &plan, &cwd, shown, stat).await
        }
        Command::Log { plan } => {
            let shown = look::Shown { json, no_pager };
            look::log(&sandbar, &plan, &cwd, shown).await
        }
        Command::Checkpoint { plan, message } => {
            run::checkpoint(&sandbar, &plan, message, &cwd, json).await
        }
        Command::Rollback { plan, to } => run::rollback(&sandbar, &plan, &to, &cwd, json).await,
        Command::Update { plan } => run::update(&sandbar, &plan, &cwd, json).await,
        Command::Apply(apply) => apply::apply(&sandbar, apply, cwd, json).await,
        Command::Undo {
            plan,
            dry_run,
            onto_current,
        } => {
            let request = UndoRequest {
                plan,
                cwd,
                dry_run,
                onto_current,
            };
            apply::undo(&sandbar, request, json).await
        }
        Command::Kept(kept) => kept::kept(&sandbar, kept, cwd, json).await,
        Command::Resource(command) => graph::resource(&sandbar, command, &cwd, json).await,
        Command::Graph { resource, format } => {
            graph::graph(&sandbar, resource.as_deref(), format, &cwd, json).await
        }
        Command::Boundary(asked) => graph::boundary(&sandbar, &asked, &cwd, json).await,
        Command::Domain(asked) => graph::domain(&sandbar, &asked, &cwd, json).await,
        Command::Reach { asked, write } => graph::reach(&sandbar, &asked, write, &cwd, json).await,
        Command::Project { asked, from, plan } => {
            let (from, plan) = (from.as_deref(), plan.as_deref());
            graph::project(&sandbar, &asked, from, plan, &cwd, json).await
        }
        Command::Route {
            asked,
            read: _,
            write,
            query,
        } => graph::route(&sandbar, &asked, write, query, &cwd, json).await,
        Command::Impact { asked, mode } => graph::impact(&sandbar, &asked, mode, &cwd, json).await,
        Command::Discard { plan } => apply::discard(&sandbar, &plan, &cwd, json).await,
        Command::Doctor => care::doctor(&sandbar, json).await,
        Command::Gc { dry_run, now } => care::gc(&sandbar, dry_run, now, json).await,
        Command::Recover => care::recover(&sandbar, json).await,
        Command::Config | Command::Completions { .. } => Ok(0),
    }
}
