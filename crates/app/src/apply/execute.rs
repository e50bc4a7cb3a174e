//! Carrying a decision out, and going on with it after a crash.

use std::path::PathBuf;
use std::time::Duration;

use sandbar_domain::apply::{PathOp, decode_ops, encode_ops};
use sandbar_domain::journal::{JournalKind, Phase, Recovery};
use sandbar_domain::plan::{PlanEvent, PlanState};
use sandbar_domain::resource::{Resource, ResourceType, Root};
use sandbar_domain::{Change, Code, Hash};
use sandbar_ports::git::{Checkout, Landfall, Landing, LandingRequest};
use sandbar_ports::store::{
    JournalQuery, JournalRecord, JournalStep, PlanMark, PlanRecord, SandboxRecord,
};
use sandbar_ports::target::{Executed, Job, KeptPlace, RootLock};
use sandbar_ports::{PortError, PortResult};

use super::decide::{describe, warn};
use super::payload::{Payload, VERSION};
use super::report::{ApplyReport, ApplyRequest, Conflict, Outcome, Resulting};
use crate::Sandbar;
use crate::config::Cleanup;

/// How long an apply waits for others on the same root.
const PATIENCE: Duration = Duration::from_secs(300);
/// How long it waits between two tries.
const PAUSE: Duration = Duration::from_millis(20);
/// When it says that it waits.
const ANNOUNCED: Duration = Duration::from_millis(1000);

impl Sandbar {
    /// Brings a plan's result to the real resource (section 9).
    pub async fn apply(&self, request: ApplyRequest) -> PortResult<ApplyReport> {
        self.recover_dead().await?;
        let plan = self.find_plan(&request.plan, &request.cwd).await?;
        self.refuse_busy(&plan)?;
        let sandbox = self.live_sandbox(&plan).await?;
        self.refuse_elsewhere(&request, &plan, &sandbox)?;
        let resource = self.resource_of(&sandbox).await?;
        if request.dry_run {
            let plan_state = self.capture_state(&sandbox).await?;
            return self
                .rehearse(&request, plan, &sandbox, resource, plan_state.tree)
                .await;
        }
        let plan = self.take_up(&plan, PlanEvent::Apply).await?;
        let attempt = self.attempt(&request, &plan, &sandbox, &resource).await;
        match attempt {
            Ok((mut report, tree)) => {
                if report.outcome == Outcome::Applied && self.config.cleanup() != Cleanup::Manual {
                    // All is applied: what clean-up comes to changes no verdict.
                    let name = &plan.plan.name;
                    report
                        .warnings
                        .extend(match self.clean_applied(&sandbox, tree).await {
                            Ok(None) => None,
                            Ok(Some(why)) => Some(format!(
                                "the sandbox stays, {why} (`sandbar discard {name}` drops it)"
                            )),
                            Err(error) => {
                                Some(format!("failed to {error}; `sandbar gc` tries again"))
                            }
                        });
                }
                Ok(report)
            }
            Err(error) => {
                // Before the intent nothing was written, and the plan can rest.
                // After it, only the journal may move the plan: `recover` will.
                if self.is_settled(&plan).await {
                    let _ = self.lay_down(&plan, PlanEvent::ApplyRefused).await;
                }
                Err(error)
            }
        }
    }

    /// Takes the lock of a root, waiting for other applies: they are short,
    /// and the decision is made under the lock, on what they left.
    async fn lock_root(&self, root: &Root) -> PortResult<Box<dyn RootLock>> {
        let mut waited = Duration::ZERO;
        loop {
            match self.parts.targets.lock(root.clone()).await {
                Err(error) if error.code == Code::RootBusy && waited < PATIENCE => {
                    if waited == ANNOUNCED {
                        let path = root.path.display();
                        (self.around.say)(&format!("waiting for another apply to {path}"));
                    }
                    self.around.cancel.check()?;
                    tokio::time::sleep(PAUSE).await;
                    waited += PAUSE;
                }
                other => return other,
            }
        }
    }

    async fn is_settled(&self, plan: &PlanRecord) -> bool {
        let entries = self
            .parts
            .store
            .journal(JournalQuery::OfPlan(plan.plan.id))
            .await;
        entries.is_ok_and(|entries| entries.iter().all(|entry| !entry.phase.is_open()))
    }

    /// Decides and writes nothing (`--dry-run`).
    async fn rehearse(
        &self,
        request: &ApplyRequest,
        plan: PlanRecord,
        sandbox: &SandboxRecord,
        resource: Resource,
        result: Hash,
    ) -> PortResult<ApplyReport> {
        self.checkout_for(request, sandbox, &resource).await?;
        let base = self.base_of(sandbox).await?.tree;
        let (changes, _) = self.changes_to_apply(base, result).await?;
        let decision = self.decide(&resource.root, resource.kind, &changes).await?;
        let mut report = empty(plan, resource, Outcome::DryRun);
        match decision.ops() {
            Ok(ops) => report.ops = ops.to_vec(),
            Err(conflicts) => {
                report.outcome = Outcome::Conflict;
                report.conflicts = conflicts.iter().map(describe).collect();
            }
        }
        report.warnings = decision.warnings.iter().map(warn).collect();
        report.already = decision.already;
        Ok(report)
    }

    async fn attempt(
        &self,
        request: &ApplyRequest,
        plan: &PlanRecord,
        sandbox: &SandboxRecord,
        resource: &Resource,
    ) -> PortResult<(ApplyReport, Hash)> {
        let (_, state) = self.save(plan, sandbox, "apply").await?;
        if let Some((path, reason)) = state.tally.unsupported.first() {
            let all = state.tally.unsupported.iter().map(|(path, _)| path.clone());
            let message = format!("apply plan {}: {path}: {reason}", plan.plan.name);
            return Err(PortError::new(Code::UnsupportedEntry, message).with_subjects(all));
        }
        let _lock = self.lock_root(&resource.root).await?;
        let checkout = self.checkout_for(request, sandbox, resource).await?;
        let base = self.base_of(sandbox).await?.tree;
        let (changes, nested) = self.changes_to_apply(base, state.tree).await?;
        let onto_tree = !matches!(request.resulting, Resulting::Branch(..));
        let decision = match onto_tree {
            true => self.decide(&resource.root, resource.kind, &changes).await?,
            false => Default::default(),
        };
        let mut report = empty(plan.clone(), resource.clone(), Outcome::Applied);
        report.warnings = decision.warnings.iter().map(warn).collect();
        report.warnings.extend(nested.iter().map(|dir| {
            format!(
                "{dir} is a repository of its own: its files are brought back, its commits are not"
            )
        }));
        report.already = decision.already.clone();
        let ops = match decision.ops() {
            Ok(ops) => ops.to_vec(),
            Err(conflicts) => {
                report.conflicts = conflicts.iter().map(describe).collect();
                report.outcome = Outcome::Conflict;
                report.plan = self.lay_down(plan, PlanEvent::ApplyRefused).await?;
                return Ok((report, state.tree));
            }
        };
        let landing = self
            .landing(request, sandbox, checkout.as_ref(), &changes)
            .await?;
        if let Some(checkout) = &checkout
            && landing.is_none()
        {
            let root = sandbox.place.join("r");
            report
                .warnings
                .extend(self.parts.git.left_inside(root, checkout.clone()).await?);
        }
        if let Some(landing) = &landing {
            report.warnings.extend(landing.notes.iter().cloned());
            report.commits = landing.commits.clone();
        }
        report.ops = ops.clone();
        let common = checkout
            .as_ref()
            .map(|checkout| checkout.common_dir.clone());
        let kept = self
            .parts
            .targets
            .preflight(resource.root.clone(), common, ops.clone())
            .await?;
        let entry = self.open_entry(plan, resource, kept, landing, &ops).await?;
        let report = self.carry_out(entry, plan, ops, report).await?;
        Ok((report, state.tree))
    }

    /// Checks what git says of the real checkout now: the branch of the base,
    /// unless another is allowed.
    async fn checkout_for(
        &self,
        request: &ApplyRequest,
        sandbox: &SandboxRecord,
        resource: &Resource,
    ) -> PortResult<Option<Checkout>> {
        if resource.kind != ResourceType::GitCheckout {
            if request.resulting != Resulting::Uncommitted {
                let message = format!("commit to {}: not a checkout", resource.root.path.display());
                return Err(PortError::new(Code::NotARepository, message));
            }
            return Ok(None);
        }
        let path = resource.root.path.clone();
        let found = self.parts.git.discover(path.clone()).await?;
        let checkout = found
            .filter(|checkout| checkout.root == path)
            .ok_or_else(|| {
                let message = format!(
                    "apply to {}: it is no git checkout any more",
                    path.display()
                );
                PortError::new(Code::NotARepository, message)
            })?;
        let detached_moved = checkout.branch.is_none() && checkout.head != sandbox.base_head;
        let moved = checkout.branch != sandbox.base_branch || detached_moved;
        if moved && !request.onto_current && !matches!(request.resulting, Resulting::Branch(..)) {
            let name = |branch: &Option<String>, head: &Option<String>| {
                branch
                    .clone()
                    .or(head.clone())
                    .unwrap_or_else(|| "nothing".into())
            };
            let message = format!(
                "apply to {}: HEAD is on {}, and was on {} when the plan began",
                path.display(),
                name(&checkout.branch, &checkout.head),
                name(&sandbox.base_branch, &sandbox.base_head)
            );
            return Err(PortError::new(Code::HeadMoved, message));
        }
        Ok(Some(checkout))
    }

    async fn landing(
        &self,
        request: &ApplyRequest,
        sandbox: &SandboxRecord,
        checkout: Option<&Checkout>,
        changes: &[Change],
    ) -> PortResult<Option<Landing>> {
        let (to, message) = match &request.resulting {
            Resulting::Uncommitted => return Ok(None),
            Resulting::Commit(message) => (Landfall::Commit, message.clone()),
            Resulting::Branch(name, message) => (Landfall::Branch(name.clone()), message.clone()),
        };
        let Some(checkout) = checkout else {
            return Ok(None);
        };
        let request = LandingRequest {
            checkout: checkout.clone(),
            root: sandbox.place.join("r"),
            base_head: sandbox.base_head.clone(),
            base_branch: sandbox.base_branch.clone(),
            to,
            onto_current: request.onto_current,
            allow_filters: request.allow_filters,
            message: message.unwrap_or_else(|| format!("Apply plan {}", request.plan)),
            changes: changes.to_vec(),
            contents: self.parts.contents.clone(),
            time: self.parts.clock.now_ms() / 1000,
        };
        self.parts.git.prepare_landing(request).await.map(Some)
    }

    async fn open_entry(
        &self,
        plan: &PlanRecord,
        resource: &Resource,
        kept: KeptPlace,
        landing: Option<Landing>,
        ops: &[PathOp],
    ) -> PortResult<JournalRecord> {
        // Known before anything is staged, so that a sweep knows the slots.
        let stored = self.parts.objects.put(vec![encode_ops(ops)]).await?;
        let id = self.parts.names().journal();
        let payload = Payload {
            root: resource.root.path.clone(),
            device: resource.root.device,
            inode: resource.root.inode,
            job: kept.dir.join(id.to_string()),
            landing: landing.map(Into::into),
        };
        let entry = JournalRecord {
            id,
            sequence: 0,
            version: VERSION,
            kind: JournalKind::Apply,
            phase: Phase::Staging,
            plan: plan.plan.id,
            owner: Some(self.parts.runner.owner()),
            ops: stored.first().copied(),
            payload: payload.encode()?,
        };
        self.parts.store.open_journal(entry).await
    }

    /// Stages, decides durably, executes, settles. The root lock is held.
    async fn carry_out(
        &self,
        entry: JournalRecord,
        plan: &PlanRecord,
        ops: Vec<PathOp>,
        mut report: ApplyReport,
    ) -> PortResult<ApplyReport> {
        let payload = Payload::decode(entry.version, &entry.payload)?;
        let job = self.job(&payload, ops);
        let staged = async {
            self.parts.targets.stage(job.clone()).await?;
            self.around.cancel.check()
        }
        .await;
        if let Err(error) = staged {
            self.parts.targets.sweep(job).await?;
            self.advance(&entry, Phase::Aborted, entry.ops, None)
                .await?;
            return Err(error);
        }
        let entry = self
            .advance(&entry, Phase::Decided, entry.ops, None)
            .await?;
        let end = self.roll_forward(&entry, plan, &payload, job).await?;
        report.outcome = end.outcome;
        report.plan = end.plan;
        report.conflicts = end.conflicts;
        report.warnings.extend(end.warnings);
        report.kept = end.kept;
        if report.outcome != Outcome::Applied {
            report.commits.clear();
        }
        Ok(report)
    }

    fn job(&self, payload: &Payload, ops: Vec<PathOp>) -> Job {
        Job {
            root: payload.root(),
            dir: payload.job.clone(),
            ops,
            progress: self.around.progress.clone(),
            cancel: self.around.cancel.clone(),
        }
    }

    /// Executes a decided entry to its end; what fails is taken back.
    async fn roll_forward(
        &self,
        entry: &JournalRecord,
        plan: &PlanRecord,
        payload: &Payload,
        job: Job,
    ) -> PortResult<End> {
        let executed = self.parts.targets.execute(job.clone()).await;
        let failure = match executed {
            Ok(done) if done.raced.is_empty() && done.failed.is_empty() => {
                match self.land(payload).await {
                    Ok(()) => return self.finish(entry, plan, job, done).await,
                    Err(error) => Failure::from(error),
                }
            }
            Ok(done) => Failure::of(&done),
            Err(error) => Failure::from(error),
        };
        let entry = self.advance(entry, Phase::Undoing, entry.ops, None).await?;
        self.roll_back(&entry, plan, payload, job, failure).await
    }

    async fn land(&self, payload: &Payload) -> PortResult<()> {
        let Some(landing) = payload.landing.clone() else {
            return Ok(());
        };
        let checkout = self.checkout_at(payload).await?;
        self.parts.git.land(checkout, landing.into()).await
    }

    async fn unland(&self, payload: &Payload) -> PortResult<()> {
        let Some(landing) = payload.landing.clone() else {
            return Ok(());
        };
        let checkout = self.checkout_at(payload).await?;
        self.parts.git.unland(checkout, landing.into()).await
    }

    async fn checkout_at(&self, payload: &Payload) -> PortResult<Checkout> {
        self.parts
            .git
            .discover(payload.root.clone())
            .await?
            .ok_or_else(|| {
                let message = format!(
                    "find the checkout at {}: there is none",
                    payload.root.display()
                );
                PortError::new(Code::NotARepository, message)
            })
    }

    async fn finish(
        &self,
        entry: &JournalRecord,
        plan: &PlanRecord,
        job: Job,
        done: Executed,
    ) -> PortResult<End> {
        let kept = self.parts.targets.settle(job.clone()).await?;
        let to = self.rest(plan, PlanEvent::ApplySucceeded)?;
        self.advance(
            entry,
            Phase::Done,
            entry.ops,
            Some((plan.plan.mark.clone(), to.clone())),
        )
        .await?;
        let mut warnings: Vec<String> = done
            .left
            .iter()
            .map(|dir| format!("left the directory {dir}: something else is in it"))
            .collect();
        warnings.extend(done.in_place.iter().map(|path| {
            format!("wrote {path} in place, since it cannot be exchanged: a write at the same moment could be lost")
        }));
        let kept = (!kept.is_empty()).then_some(job.dir);
        Ok(End {
            outcome: Outcome::Applied,
            plan: with_mark(plan, to),
            conflicts: Vec::new(),
            warnings,
            kept,
        })
    }

    /// Takes back what an entry in `Undoing` did.
    async fn roll_back(
        &self,
        entry: &JournalRecord,
        plan: &PlanRecord,
        payload: &Payload,
        job: Job,
        failure: Failure,
    ) -> PortResult<End> {
        // Each is taken back whether or not the other can be.
        let unlanded = self.unland(payload).await;
        let undone = self.parts.targets.undo(job.clone()).await;
        let stuck = match &undone {
            Ok(undone) => !undone.failed.is_empty() || unlanded.is_err(),
            Err(_) => true,
        };
        if stuck {
            let to = match plan.plan.mark.state {
                PlanState::NeedsAttention => plan.plan.mark.clone(),
                _ => self.rest(plan, PlanEvent::ApplyStuck)?,
            };
            let moved = Some((plan.plan.mark.clone(), to.clone()));
            self.advance(entry, Phase::NeedsAttention, entry.ops, moved)
                .await?;
            let mut conflicts = failure.conflicts;
            if let Ok(undone) = &undone {
                conflicts.extend(undone.failed.iter().map(|(path, reason)| Conflict {
                    path: path.to_string(),
                    reason: reason.clone(),
                    kept: Some(job.dir.clone()),
                }));
            }
            let mut warnings = vec![failure.message];
            for error in [unlanded.err(), undone.err()].into_iter().flatten() {
                warnings.push(format!("failed to {error}"));
            }
            return Ok(End {
                outcome: Outcome::NeedsAttention,
                plan: with_mark(plan, to),
                conflicts,
                warnings,
                kept: Some(job.dir),
            });
        }
        let mut conflicts = failure.conflicts;
        for path in undone.map(|undone| undone.raced).unwrap_or_default() {
            conflicts.push(Conflict {
                path: path.to_string(),
                reason: "changed by another writer during the apply; what it holds now stays"
                    .into(),
                kept: Some(job.dir.clone()),
            });
        }
        self.parts.targets.sweep(job).await?;
        let event = if failure.raced {
            PlanEvent::ApplyRefused
        } else {
            PlanEvent::ApplyFailed
        };
        let to = self.rest(plan, event)?;
        let moved = Some((plan.plan.mark.clone(), to.clone()));
        self.advance(entry, Phase::Aborted, entry.ops, moved)
            .await?;
        if let Some(error) = failure.answer {
            return Err(error);
        }
        let outcome = if failure.raced {
            Outcome::Conflict
        } else {
            Outcome::Failed
        };
        let warnings = vec![failure.message];
        Ok(End {
            outcome,
            plan: with_mark(plan, to),
            conflicts,
            warnings,
            kept: None,
        })
    }

    /// Goes on with an open entry whose process is dead (APL-9). Returns what
    /// it came to; `None` if another process settled it first.
    pub(crate) async fn resume(
        &self,
        entry: &JournalRecord,
        plan: &PlanRecord,
    ) -> PortResult<Option<Outcome>> {
        let payload = Payload::decode(entry.version, &entry.payload)?;
        let _lock = self.lock_root(&payload.root()).await?;
        let open = self.parts.store.journal(JournalQuery::Open).await?;
        let Some(entry) = open.into_iter().find(|open| open.id == entry.id) else {
            return Ok(None);
        };
        // Another process may have tried meanwhile: the lock was waited for.
        let plan = self.parts.store.plan(plan.plan.id).await?;
        let Some(plan) = &plan else { return Ok(None) };
        let ops = match entry.ops {
            Some(hash) => {
                let bytes = self.parts.objects.get(hash).await?;
                decode_ops(&bytes).map_err(|error| {
                    PortError::new(
                        Code::CorruptObject,
                        format!("read operations {hash}: {error}"),
                    )
                })?
            }
            None => Vec::new(),
        };
        let job = self.job(&payload, ops);
        let outcome = match entry.phase.recovery() {
            Recovery::Nothing => return Ok(None),
            Recovery::Sweep => {
                self.parts.targets.sweep(job).await?;
                let to = self.rest(plan, PlanEvent::ApplyRefused)?;
                self.advance(
                    &entry,
                    Phase::Aborted,
                    None,
                    Some((plan.plan.mark.clone(), to)),
                )
                .await?;
                Outcome::Failed
            }
            Recovery::RollForward => {
                self.roll_forward(&entry, plan, &payload, job)
                    .await?
                    .outcome
            }
            Recovery::RollBack => {
                let failure = Failure {
                    message: "an apply that had failed was taken back".into(),
                    conflicts: Vec::new(),
                    raced: true,
                    answer: None,
                };
                self.roll_back(&entry, plan, &payload, job, failure)
                    .await?
                    .outcome
            }
        };
        Ok(Some(outcome))
    }

    async fn advance(
        &self,
        entry: &JournalRecord,
        to: Phase,
        ops: Option<Hash>,
        plan: Option<(PlanMark, PlanMark)>,
    ) -> PortResult<JournalRecord> {
        let now = self.parts.clock.now_ms();
        let step = JournalStep {
            id: entry.id,
            from: entry.phase,
            to,
            ops,
            payload: entry.payload.clone(),
            // What is parked belongs to nobody, so that anyone may go on with
            // it: this process too.
            owner: (to.is_open() && to != Phase::NeedsAttention).then(|| self.parts.runner.owner()),
            plan: plan.map(|(from, to)| (from, to, now)),
        };
        self.parts.store.advance_journal(step).await
    }
}

/// How carrying out ended.
struct End {
    outcome: Outcome,
    plan: PlanRecord,
    conflicts: Vec<Conflict>,
    warnings: Vec<String>,
    kept: Option<PathBuf>,
}

/// Why an executed job must be taken back.
struct Failure {
    message: String,
    conflicts: Vec<Conflict>,
    raced: bool,
    /// What to answer with once everything is taken back: an error that says
    /// more than a report, such as a lock that is held.
    answer: Option<PortError>,
}

impl Failure {
    fn of(done: &Executed) -> Self {
        let raced = done.raced.iter().map(|path| Conflict {
            path: path.to_string(),
            reason: "changed by another writer during the apply".into(),
            kept: None,
        });
        let failed = done.failed.iter().map(|(path, reason)| Conflict {
            path: path.to_string(),
            reason: reason.clone(),
            kept: None,
        });
        Self {
            message: "nothing is left written: what had been written was taken back".into(),
            conflicts: raced.chain(failed).collect(),
            raced: done.failed.is_empty(),
            answer: None,
        }
    }
}

impl From<PortError> for Failure {
    fn from(error: PortError) -> Self {
        let raced = error.disposition == sandbar_domain::Disposition::Conflict;
        let message = format!("failed to {error}; what had been written was taken back");
        Self {
            message,
            conflicts: Vec::new(),
            raced: raced || error.code.exit() == 3,
            answer: (error.code.exit() == 3).then_some(error),
        }
    }
}

fn with_mark(plan: &PlanRecord, mark: PlanMark) -> PlanRecord {
    let mut plan = plan.clone();
    plan.plan.mark = mark;
    plan
}

fn empty(plan: PlanRecord, resource: Resource, outcome: Outcome) -> ApplyReport {
    ApplyReport {
        plan,
        resource,
        outcome,
        ops: Vec::new(),
        already: Vec::new(),
        conflicts: Vec::new(),
        warnings: Vec::new(),
        kept: None,
        commits: Vec::new(),
    }
}
