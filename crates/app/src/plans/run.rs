//! `run`, `exec`, `shell`: a command in a sandbox, with checkpoints around it.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use sandbar_domain::plan::{PlanEvent, PlanState};
use sandbar_domain::{ChangeSet, Code};
use sandbar_ports::exec::{Run, View};
use sandbar_ports::rules::Everything;
use sandbar_ports::store::{NewPlan, PlanMark, PlanRecord, SandboxRecord};
use sandbar_ports::workspace::{CacheKey, Capture};
use sandbar_ports::{PortError, PortResult};
use serde::{Deserialize, Serialize};

use super::capture::{State, hidden_of};
use super::checkpoint::part_of;
use super::create::BaseOptions;
use super::find::check_name;
use super::locate::Located;
use super::look::SandboxReport;
use crate::Sandbar;
use crate::config::ViewChoice;

/// What a sandbox has besides the working state of a checkout (PLN-5).
#[derive(Debug, Clone, Default)]
pub struct Bring {
    /// Ignored files to bring along (gitignore syntax).
    pub includes: Vec<String>,
    /// Treat ignored files as any other: copied, checkpointed, applied (CKP-6).
    pub track_ignored: bool,
    /// Leave remotes usable for pushing (PLN-4).
    pub allow_push: bool,
}

/// What `run` is asked to do.
#[derive(Debug, Clone)]
pub struct RunRequest {
    /// The name of the plan; made from the command when absent.
    pub name: Option<String>,
    /// The caller's directory.
    pub cwd: PathBuf,
    /// Program and arguments.
    pub argv: Vec<OsString>,
    /// The commit to start from, as git would name it; none for the exact
    /// working state (PLN-5).
    pub base: Option<String>,
    /// What comes along besides.
    pub bring: Bring,
    /// The view that was asked for.
    pub view: Option<ViewChoice>,
    /// Go back when the command fails.
    pub rollback_on_failure: bool,
    /// Keep standard output free for a document.
    pub stdout_to_stderr: bool,
}

/// What `exec` and `shell` are asked to do.
#[derive(Debug, Clone)]
pub struct ExecRequest {
    /// The plan.
    pub plan: String,
    /// The caller's directory.
    pub cwd: PathBuf,
    /// Program and arguments.
    pub argv: Vec<OsString>,
    /// Go back when the command fails.
    pub rollback_on_failure: bool,
    /// Keep standard output free for a document.
    pub stdout_to_stderr: bool,
}

/// How a command in a sandbox ended.
#[derive(Debug, Clone)]
pub struct RunReport {
    /// The plan, at rest again.
    pub plan: PlanRecord,
    /// Its sandboxes.
    pub sandboxes: Vec<SandboxReport>,
    /// What differs from the base now.
    pub changes: ChangeSet,
    /// Ignored paths that are no part of the sandbox.
    pub ignored: u64,
    /// The command's exit code; 128 + n for signal n.
    pub exit_code: u8,
    /// The number of the checkpoint taken after the command.
    pub checkpoint: u64,
    /// Whether a failed command was rolled back.
    pub rolled_back: bool,
    /// What a person must know.
    pub warnings: Vec<String>,
}

/// Settings that are remembered with a plan.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Settings {
    pub(crate) includes: Vec<String>,
    pub(crate) track_ignored: bool,
    /// The commit of a clean start.
    pub(crate) start: Option<String>,
}

impl Sandbar {
    /// Makes a plan on the resource of `cwd` and runs a command in its sandbox.
    pub async fn run(&self, request: RunRequest) -> PortResult<RunReport> {
        let (plan, sandbox, located) = self.begin(&request).await?;
        let around = Around {
            subdir: located.subdir,
            real: located.resource.root.path.clone(),
            rollback_on_failure: request.rollback_on_failure,
            stdout_to_stderr: request.stdout_to_stderr,
        };
        let outcome = self
            .run_in(plan.clone(), sandbox.clone(), request.argv, around)
            .await;
        if let Err(error) = &outcome
            && error.code == Code::CommandNotFound
        {
            // Nothing ran: nothing is kept, and the name is free again. The
            // directory goes last: without its plan it is an orphan for `gc`.
            self.drop_all_checkpoints(&plan).await?;
            self.parts.store.forget_plan(plan.plan.id).await?;
            self.parts.workspaces.remove(sandbox.place.clone()).await?;
        }
        outcome
    }

    /// Makes a plan with its sandbox and runs nothing yet.
    pub async fn new_plan_at(
        &self,
        name: Option<String>,
        base: Option<String>,
        bring: Bring,
        cwd: PathBuf,
    ) -> PortResult<PlanRecord> {
        let request = RunRequest {
            name,
            cwd,
            argv: Vec::new(),
            base,
            bring,
            view: None,
            rollback_on_failure: false,
            stdout_to_stderr: false,
        };
        let (plan, _, _) = self.begin(&request).await?;
        self.lay_down(&plan, PlanEvent::Finish).await
    }

    /// Runs a further command in the sandbox of a plan.
    pub async fn exec(&self, request: ExecRequest) -> PortResult<RunReport> {
        self.refuse_without_checkpoints()?;
        self.recover_dead().await?;
        let plan = self.find_plan(&request.plan, &request.cwd).await?;
        let sandbox = self.live_sandbox(&plan).await?;
        let resource = self.resource_of(&sandbox).await?;
        let real = resource.root.path;
        let subdir = request
            .cwd
            .strip_prefix(&real)
            .unwrap_or(Path::new(""))
            .to_path_buf();
        let plan = self.take_up(&plan, PlanEvent::Execute).await?;
        let saved = match self.config.checkpoints_enabled() {
            true => self.save(&plan, &sandbox, "before").await.map(|_| ()),
            false => Ok(()),
        };
        if let Err(error) = saved {
            let _ = self.lay_down(&plan, PlanEvent::Break).await;
            return Err(error);
        }
        let around = Around {
            subdir,
            real,
            rollback_on_failure: request.rollback_on_failure,
            stdout_to_stderr: request.stdout_to_stderr,
        };
        self.run_in(plan, sandbox, request.argv, around).await
    }

    /// Makes a plan and its sandbox; this process drives it.
    async fn begin(
        &self,
        request: &RunRequest,
    ) -> PortResult<(PlanRecord, SandboxRecord, Located)> {
        if let Some(plan) = &self.around.inside {
            let message = format!("run a plan: this is already the sandbox of plan {plan}");
            return Err(PortError::new(Code::InsideSandbox, message));
        }
        if let Some(name) = &request.name {
            check_name(name)?;
        }
        self.refuse_without_checkpoints()?;
        self.recover_dead().await?;
        let view = self.choose_view(request.view).await?;
        let mut located = self.locate(&request.cwd).await?;
        let start = self.start_of(request.base.as_deref(), &located).await?;
        let commit = start.as_ref().map(|start| start.commit.clone());
        let plan = self.new_plan(request, commit, located.resource.id).await?;
        let options = BaseOptions {
            bring: request.bring.clone(),
            view,
            start,
        };
        let sandbox = self.create_sandbox(&plan, &located, &options).await?;
        if options.start.is_some() {
            located.subdir = self.standing(&sandbox, located.subdir).await?;
        }
        Ok((plan, sandbox, located))
    }

    fn refuse_without_checkpoints(&self) -> PortResult<()> {
        if self.config.require_checkpoints() && !self.config.checkpoints_enabled() {
            let message = "run a command: checkpoints are required and disabled at once";
            return Err(PortError::new(Code::BadConfig, message));
        }
        Ok(())
    }

    /// Settles the view before anything is made, so that a refusal leaves nothing.
    async fn choose_view(&self, asked: Option<ViewChoice>) -> PortResult<View> {
        let choice = asked.unwrap_or(self.config.view());
        if choice == ViewChoice::Plain {
            return Ok(View::Plain);
        }
        let report = self.parts.runner.probe().await;
        if report.in_place {
            return Ok(View::InPlace);
        }
        let reason = report.reason.unwrap_or_else(|| "no reason is known".into());
        if choice == ViewChoice::InPlace {
            let message = format!("give the command an in-place view: {reason}");
            return Err(PortError::new(Code::NotAvailable, message)
                .with_hint("use `--view plain`; absolute paths then lead to the real tree"));
        }
        (self.around.say)(&format!(
            "no in-place view here ({reason}): the command runs in the sandbox's own path, and absolute paths lead to the real tree"
        ));
        Ok(View::Plain)
    }

    async fn new_plan(
        &self,
        request: &RunRequest,
        start: Option<String>,
        resource: sandbar_domain::ResourceId,
    ) -> PortResult<PlanRecord> {
        let settings = Settings {
            includes: request.bring.includes.clone(),
            track_ignored: request.bring.track_ignored,
            start,
        };
        let settings = serde_json::to_string(&settings).map_err(|error| {
            PortError::new(Code::Internal, "write the settings of a plan").with_source(error)
        })?;
        let mut tries = 0;
        loop {
            let name = match &request.name {
                Some(name) => name.clone(),
                None => {
                    let program = request.argv.first().map(|arg| arg.to_string_lossy());
                    self.free_name(&program.unwrap_or_default()).await?
                }
            };
            let plan = NewPlan {
                id: self.parts.names().plan(),
                name,
                resource,
                mark: PlanMark {
                    state: PlanState::Executing,
                    owner: Some(self.parts.runner.owner()),
                },
                settings: settings.clone(),
                created_ms: self.parts.clock.now_ms(),
            };
            match self.parts.store.add_plan(plan).await {
                // Another process took the free name first: look again.
                Err(error)
                    if error.code == Code::NameInUse && request.name.is_none() && tries < 100 =>
                {
                    tries += 1;
                }
                other => return other,
            }
        }
    }

    async fn run_in(
        &self,
        plan: PlanRecord,
        sandbox: SandboxRecord,
        argv: Vec<OsString>,
        around: Around,
    ) -> PortResult<RunReport> {
        match self.run_and_save(&plan, &sandbox, argv, &around).await {
            Ok(report) => {
                let plan = self.lay_down(&plan, PlanEvent::Finish).await?;
                Ok(RunReport { plan, ..report })
            }
            // A command that could not even be started changed nothing.
            Err(error) if error.code == Code::CommandNotFound => {
                self.lay_down(&plan, PlanEvent::Finish).await?;
                Err(error)
            }
            Err(error) => {
                let _ = self.lay_down(&plan, PlanEvent::Break).await;
                Err(error)
            }
        }
    }

    async fn run_and_save(
        &self,
        plan: &PlanRecord,
        sandbox: &SandboxRecord,
        argv: Vec<OsString>,
        around: &Around,
    ) -> PortResult<RunReport> {
        let mut warnings = Vec::new();
        let before = self.parts.store.checkpoints(plan.plan.id).await?.pop();
        let real_before = self.real_tree(sandbox, around).await?;
        let end = self
            .parts
            .runner
            .run(self.command(plan, sandbox, argv, around))
            .await?;
        for (pid, name) in &end.left_behind {
            warnings.push(format!(
                "stopped process {pid} ({name}), which the command left behind"
            ));
        }
        if real_before != self.real_tree(sandbox, around).await? {
            let real = around.real.display();
            warnings.push(format!(
                "THE REAL TREE CHANGED while the command ran: {real} (in the plain view absolute paths lead there)"
            ));
        }
        let back = before.filter(|_| end.code != 0 && around.rollback_on_failure);
        let mut over = Vec::new();
        if let Some(before) = &back {
            let snapshot = part_of(before, sandbox)?.snapshot;
            over.push(self.snapshot(snapshot).await?.tree);
        }
        let (record, state) = match self.config.checkpoints_enabled() {
            true => {
                let (record, state) = self.save_over(plan, sandbox, "after", &over).await?;
                (record.sequence, state)
            }
            false => (0, self.capture_state(sandbox).await?),
        };
        for (path, reason) in &state.tally.unsupported {
            warnings.push(format!("left out of the checkpoint: {path}: {reason}"));
        }
        let mut rolled_back = false;
        let mut state = state;
        if let Some(before) = &back {
            state = self.back_to_before(plan, sandbox, before).await?;
            rolled_back = true;
        }
        let changes = self.changes(sandbox, &state).await?;
        Ok(RunReport {
            plan: plan.clone(),
            sandboxes: vec![self.sandbox_report(sandbox).await?],
            changes,
            ignored: sandbox.ignored + state.tally.ignored,
            exit_code: end.code,
            checkpoint: record,
            rolled_back,
            warnings,
        })
    }

    fn command(
        &self,
        plan: &PlanRecord,
        sandbox: &SandboxRecord,
        argv: Vec<OsString>,
        around: &Around,
    ) -> Run {
        let root = sandbox.place.join("r");
        let seen = match sandbox.view {
            View::InPlace => around.real.clone(),
            View::Plain => root.clone(),
        };
        let id: OsString = plan.plan.id.to_string().into();
        Run {
            argv,
            real: around.real.clone(),
            sandbox: root,
            subdir: around.subdir.clone(),
            view: sandbox.view,
            binds: sandbox.binds.clone(),
            set: vec![
                ("SANDBAR_PLAN".into(), id),
                ("SANDBAR_ROOT".into(), seen.into()),
            ],
            unset: Vec::new(),
            stdout_to_stderr: around.stdout_to_stderr,
        }
    }

    /// Scans the real tree, for the comparison that the plain view owes its
    /// user; `None` in the in-place view, where the real tree is out of reach.
    async fn real_tree(
        &self,
        sandbox: &SandboxRecord,
        around: &Around,
    ) -> PortResult<Option<sandbar_domain::Hash>> {
        if sandbox.view == View::InPlace {
            return Ok(None);
        }
        let rules = match sandbox.rules {
            Some(_) => self.rules_of(sandbox).await?,
            None => std::sync::Arc::new(Everything),
        };
        let request = Capture {
            root: self.parts.workspaces.identify(around.real.clone()).await?,
            hidden: hidden_of(sandbox),
            rules,
            cache: CacheKey::Named {
                place: sandbox.place.clone(),
                name: "real.cache",
            },
            install: false,
            progress: self.around.progress.clone(),
            cancel: self.around.cancel.clone(),
        };
        Ok(Some(self.parts.workspaces.capture(request).await?.tree))
    }

    /// Lists what differs from the base.
    async fn changes(&self, sandbox: &SandboxRecord, state: &State) -> PortResult<ChangeSet> {
        let base = self.base_of(sandbox).await?;
        let changes = self.parts.objects.diff(base.tree, state.tree).await?;
        Ok(ChangeSet::new(base.tree, state.tree, changes))
    }
}

struct Around {
    subdir: PathBuf,
    real: PathBuf,
    rollback_on_failure: bool,
    stdout_to_stderr: bool,
}
