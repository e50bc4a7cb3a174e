//! Carrying out the operations of a journal entry, and going on with it after
//! a crash: stage, intent, execute, settle, or take back. An undo is an entry
//! as an apply is, with the refs moved the other way.

use std::path::PathBuf;

use sandbar_domain::apply::{PathOp, decode_ops, encode_ops};
use sandbar_domain::journal::{JournalKind, Phase, Recovery};
use sandbar_domain::plan::{PlanEvent, PlanState};
use sandbar_domain::{Code, Hash};
use sandbar_ports::effect::planted;
use sandbar_ports::git::Checkout;
use sandbar_ports::store::{
    JournalQuery, JournalRecord, JournalStep, PlanMark, PlanRecord, SandboxRecord,
};
use sandbar_ports::target::{Executed, Job, KeptPlace};
use sandbar_ports::{PortError, PortResult};

use super::payload::{Payload, Rebase, VERSION};
use super::report::{ApplyReport, Conflict, Outcome};
use super::undo::sources;
use crate::Sandbar;

impl Sandbar {
    /// Opens the entry of a decided job. What it is to do is stored before
    /// anything is staged, so that a sweep knows the slots.
    pub(super) async fn open_entry(
        &self,
        kind: JournalKind,
        plan: &PlanRecord,
        ops: &[PathOp],
        place: &KeptPlace,
        payload: Payload,
    ) -> PortResult<JournalRecord> {
        let stored = self.parts.objects.put(vec![encode_ops(ops)]).await?;
        let id = self.parts.names().journal();
        let payload = Payload {
            job: place.dir.join(id.to_string()),
            ..payload
        };
        let entry = JournalRecord {
            id,
            sequence: 0,
            version: VERSION,
            kind,
            phase: Phase::Staging,
            plan: plan.plan.id,
            owner: Some(self.parts.runner.owner()),
            ops: stored.first().copied(),
            payload: payload.encode()?,
        };
        self.parts.store.open_journal(entry).await
    }

    /// Stages, decides durably, executes, settles. The root lock is held.
    pub(super) async fn carry_out(
        &self,
        entry: JournalRecord,
        plan: &PlanRecord,
        ops: Vec<PathOp>,
        mut report: ApplyReport,
    ) -> PortResult<ApplyReport> {
        let payload = Payload::decode(entry.version, &entry.payload)?;
        let job = self.job(&payload, plan, ops).await?;
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
        if planted("execute-before-the-intent") {
            self.parts.targets.execute(job.clone()).await?;
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
        if !report.outcome.is_done() {
            report.commits.clear();
        }
        Ok(report)
    }

    async fn job(&self, payload: &Payload, plan: &PlanRecord, ops: Vec<PathOp>) -> PortResult<Job> {
        let undone = self.entries_named(plan, &payload.undoes).await?;
        Ok(Job {
            root: payload.root(),
            dir: payload.job.clone(),
            sources: sources(&ops, &undone),
            ops,
            progress: self.around.progress.clone(),
            cancel: self.around.cancel.clone(),
        })
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
                match self.land(entry.kind, payload).await {
                    Ok(()) => return self.finish(entry, plan, payload, job, done).await,
                    Err(error) => Failure::from(error),
                }
            }
            Ok(done) => Failure::of(&done),
            Err(error) => Failure::from(error),
        };
        let entry = self.advance(entry, Phase::Undoing, entry.ops, None).await?;
        self.roll_back(&entry, plan, payload, job, failure).await
    }

    /// Moves the refs of an entry: forth in an apply, back in an undo.
    async fn land(&self, kind: JournalKind, payload: &Payload) -> PortResult<()> {
        let Some(landing) = payload.landing.clone() else {
            return Ok(());
        };
        let checkout = self.checkout_at(payload).await?;
        match kind {
            JournalKind::Apply => self.parts.git.land(checkout, landing.into()).await,
            JournalKind::Undo => self.parts.git.unland(checkout, landing.into()).await,
        }
    }

    /// Takes that back.
    async fn unland(&self, kind: JournalKind, payload: &Payload) -> PortResult<()> {
        let other = match kind {
            JournalKind::Apply => JournalKind::Undo,
            JournalKind::Undo => JournalKind::Apply,
        };
        self.land(other, payload).await
    }

    /// Says what becomes of the plan of an entry that ends.
    async fn mark_after(
        &self,
        entry: &JournalRecord,
        payload: &Payload,
        plan: &PlanRecord,
        end: Verdict,
    ) -> PortResult<PlanMark> {
        let resting = PlanMark {
            state: plan.plan.mark.state,
            owner: None,
        };
        let event = match (entry.kind, end) {
            (JournalKind::Undo, Verdict::Succeeded) => PlanEvent::Undo,
            // As before: it is as applied as it was.
            (JournalKind::Undo, _) => return Ok(resting),
            (JournalKind::Apply, Verdict::Succeeded) if payload.rest => PlanEvent::ApplyPartly,
            (JournalKind::Apply, Verdict::Succeeded) => PlanEvent::ApplySucceeded,
            (JournalKind::Apply, Verdict::Stuck) => match plan.plan.mark.state {
                PlanState::NeedsAttention => return Ok(resting),
                _ => PlanEvent::ApplyStuck,
            },
            (JournalKind::Apply, Verdict::Refused) => self.refusal(plan).await?,
            (JournalKind::Apply, Verdict::Failed) => match self.refusal(plan).await? {
                PlanEvent::ApplyRefused => PlanEvent::ApplyFailed,
                partly => partly,
            },
        };
        self.rest(plan, event)
    }

    /// Says which event ends an apply that wrote nothing: a part that was
    /// applied before stays so.
    pub(crate) async fn refusal(&self, plan: &PlanRecord) -> PortResult<PlanEvent> {
        Ok(match self.standing_applies(plan).await?.is_empty() {
            true => PlanEvent::ApplyRefused,
            false => PlanEvent::ApplyPartly,
        })
    }

    pub(super) async fn checkout_at(&self, payload: &Payload) -> PortResult<Checkout> {
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
        payload: &Payload,
        job: Job,
        done: Executed,
    ) -> PortResult<End> {
        let kept = self.parts.targets.settle(job.clone()).await?;
        self.rebase(plan, payload).await?;
        let to = self
            .mark_after(entry, payload, plan, Verdict::Succeeded)
            .await?;
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
            outcome: match entry.kind {
                JournalKind::Undo => Outcome::Undone,
                JournalKind::Apply if payload.rest => Outcome::PartiallyApplied,
                JournalKind::Apply => Outcome::Applied,
            },
            plan: with_mark(plan, to),
            conflicts: Vec::new(),
            warnings,
            kept,
        })
    }

    /// Moves the base of the plan's sandbox to what its applied paths hold, or
    /// back. Before the entry ends, so that a crash between is gone on with.
    async fn rebase(&self, plan: &PlanRecord, payload: &Payload) -> PortResult<()> {
        let Some(base) = payload.rebase.as_ref().map(Rebase::to).transpose()? else {
            return Ok(());
        };
        let sandbox = self.made_sandbox(plan).await?;
        if sandbox.base == Some(base) {
            return Ok(());
        }
        let record = SandboxRecord {
            base: Some(base),
            ..sandbox
        };
        self.parts.store.update_sandbox(record).await
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
        let unlanded = self.unland(entry.kind, payload).await;
        let undone = match planted("take-nothing-back") {
            true => Ok(Executed::default()),
            false => self.parts.targets.undo(job.clone()).await,
        };
        let stuck = match &undone {
            Ok(undone) => !undone.failed.is_empty() || unlanded.is_err(),
            Err(_) => true,
        };
        if stuck {
            let to = self
                .mark_after(entry, payload, plan, Verdict::Stuck)
                .await?;
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
        let verdict = if failure.raced {
            Verdict::Refused
        } else {
            Verdict::Failed
        };
        let to = self.mark_after(entry, payload, plan, verdict).await?;
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
        let ops = self.operations(&entry).await?;
        let job = self.job(&payload, plan, ops).await?;
        let outcome = match entry.phase.recovery() {
            Recovery::Nothing => return Ok(None),
            Recovery::Sweep => {
                self.parts.targets.sweep(job).await?;
                let to = self
                    .mark_after(&entry, &payload, plan, Verdict::Refused)
                    .await?;
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

    /// Reads the operations of an entry.
    pub(crate) async fn operations(&self, entry: &JournalRecord) -> PortResult<Vec<PathOp>> {
        let Some(hash) = entry.ops else {
            return Ok(Vec::new());
        };
        let bytes = self.parts.objects.get(hash).await?;
        decode_ops(&bytes).map_err(|error| {
            let message = format!("read operations {hash}: {error}");
            PortError::new(Code::CorruptObject, message)
        })
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

/// What carrying out came to, for the plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verdict {
    Succeeded,
    Refused,
    Failed,
    Stuck,
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
