//! Garbage collection: what retention has ended, and what nothing needs.

use std::collections::HashSet;
use std::path::PathBuf;

use sandbar_domain::apply::{PathOp, decode_ops};
use sandbar_domain::plan::PlanState;
use sandbar_domain::{Entry, Kind};
use sandbar_ports::PortResult;
use sandbar_ports::objects::{Collected, Live};
use sandbar_ports::store::{JournalQuery, PlanRecord, SandboxRecord, SandboxState};

use crate::Sandbar;
use crate::apply::Payload;
use crate::config::Cleanup;

/// How long what was stored last is left alone, since another process may be
/// about to record it.
const GRACE_MS: u64 = 15 * 60 * 1000;

/// How coarse the times of files may be.
const STAMP_GRAIN_MS: u64 = 20;

/// What `gc` is asked to do.
#[derive(Debug, Clone, Copy, Default)]
pub struct GcRequest {
    /// Say what would go, remove nothing.
    pub dry_run: bool,
    /// Do not wait for retention: ended plans lose their checkpoints now.
    pub now: bool,
}

/// What `gc` did.
#[derive(Debug, Clone, Default)]
pub struct GcReport {
    /// Ended plans whose checkpoints were dropped.
    pub plans: Vec<String>,
    /// Sandbox directories that were removed, and pins of such.
    pub places: Vec<PathBuf>,
    /// Objects.
    pub objects: Collected,
    /// Whether nothing was removed, as asked.
    pub dry_run: bool,
}

impl Sandbar {
    /// Collects garbage: sandboxes and checkpoints of plans that ended longer
    /// ago than retention, directories that no plan knows, unreachable objects.
    pub async fn gc(&self, request: GcRequest) -> PortResult<GcReport> {
        self.recover_dead().await?;
        let mut report = GcReport {
            dry_run: request.dry_run,
            ..GcReport::default()
        };
        let started = self.parts.clock.now_ms();
        // In this order: a run records its plan before it makes a directory,
        // so whatever is listed here belongs to a plan that is read next.
        let present = self.parts.workspaces.places().await?;
        let plans = self.parts.store.plans().await?;
        let busy = plans.iter().any(|plan| plan.plan.mark.owner.is_some());
        let mut live = Live::default();
        let mut places = HashSet::new();
        for plan in plans {
            if self.is_over(&plan, request) || self.is_collected(&plan).await? {
                self.drop_plan(&plan, request, &mut report).await?;
            } else {
                self.mark_plan(&plan, &mut live, &mut places, request.dry_run)
                    .await?;
            }
        }
        if !busy {
            self.drop_orphans(present, &places, request, &mut report)
                .await?;
            for holder in self.holders().await? {
                let stray = self.parts.pins.sweep(holder, request.dry_run).await?;
                report.places.extend(stray);
            }
        }
        if !request.dry_run {
            // What was stored since the plans were read may be about to be
            // recorded; while somebody is at work, what was stored before too.
            let since = self.parts.clock.now_ms().saturating_sub(started).max(0);
            live.grace_ms = match request.now && !busy {
                true => u64::try_from(since).unwrap_or(0) + STAMP_GRAIN_MS,
                false => GRACE_MS,
            };
            report.objects = self.parts.objects.collect(live).await?;
        }
        Ok(report)
    }

    fn is_over(&self, plan: &PlanRecord, request: GcRequest) -> bool {
        // One that is driven is being taken back.
        let ended = plan.plan.mark.state.is_terminal() && plan.plan.mark.owner.is_none();
        let age = self.parts.clock.now_ms().saturating_sub(plan.changed_ms);
        ended && (request.now || age > self.config.retention_ms())
    }

    /// Says whether an ended plan was collected before, or for the most part:
    /// nothing of it is needed, and what its records name may be gone.
    async fn is_collected(&self, plan: &PlanRecord) -> PortResult<bool> {
        let ended = plan.plan.mark.state.is_terminal() && plan.plan.mark.owner.is_none();
        Ok(ended && self.parts.store.checkpoints(plan.plan.id).await?.is_empty())
    }

    fn is_left_over(&self, plan: &PlanRecord, sandbox: &SandboxRecord) -> bool {
        let ends = match self.config.cleanup() {
            Cleanup::OnApply => plan.plan.mark.state == PlanState::Applied,
            Cleanup::OnTerminal => plan.plan.mark.state.is_terminal(),
            Cleanup::Manual => false,
        };
        ends && sandbox.state == SandboxState::Ready && plan.plan.mark.owner.is_none()
    }

    /// Removes a root that a clean-up did not come to, under its conditions.
    async fn clean_left_over(&self, plan: &PlanRecord, sandbox: &SandboxRecord) -> PortResult<()> {
        if plan.plan.mark.state != PlanState::Applied {
            return self.clean_for_good(sandbox).await;
        }
        let all = self.parts.store.checkpoints(plan.plan.id).await?;
        let newest = all
            .last()
            .and_then(|record| record.checkpoint.parts.first());
        if let Some(part) = newest {
            let applied = self.snapshot(part.snapshot).await?.tree;
            // A root that stays, or is gone by hand, is no failure here.
            let _ = self.clean_applied(sandbox, applied).await;
        }
        Ok(())
    }

    async fn drop_plan(
        &self,
        plan: &PlanRecord,
        request: GcRequest,
        report: &mut GcReport,
    ) -> PortResult<()> {
        let checkpoints = self.parts.store.checkpoints(plan.plan.id).await?;
        let sandboxes = self.parts.store.sandboxes(plan.plan.id).await?;
        let present: HashSet<PathBuf> = self.parts.workspaces.places().await?.into_iter().collect();
        if !checkpoints.is_empty() {
            report.plans.push(plan.plan.name.clone());
        }
        for sandbox in &sandboxes {
            if present.contains(&sandbox.place) {
                report.places.push(sandbox.place.clone());
            }
        }
        let entries = self
            .parts
            .store
            .journal(JournalQuery::OfPlan(plan.plan.id))
            .await?;
        if request.dry_run {
            return Ok(());
        }
        for entry in entries.iter().filter(|entry| !entry.phase.is_open()) {
            let payload = Payload::decode(entry.version, &entry.payload)?;
            self.parts.targets.forget(payload.job).await?;
        }
        let sequence = checkpoints.iter().map(|record| record.sequence).collect();
        self.parts
            .store
            .drop_checkpoints(plan.plan.id, sequence)
            .await?;
        for mut sandbox in sandboxes {
            self.parts.workspaces.remove(sandbox.place.clone()).await?;
            if sandbox.state != SandboxState::Cleaned {
                sandbox.state = SandboxState::Cleaned;
                self.parts.store.update_sandbox(sandbox).await?;
            }
        }
        Ok(())
    }

    /// Marks what a plan needs.
    async fn mark_plan(
        &self,
        plan: &PlanRecord,
        live: &mut Live,
        places: &mut HashSet<PathBuf>,
        dry_run: bool,
    ) -> PortResult<()> {
        for sandbox in self.parts.store.sandboxes(plan.plan.id).await? {
            // A process that died between an apply and its clean-up left this.
            if self.is_left_over(plan, &sandbox) && !dry_run {
                self.clean_left_over(plan, &sandbox).await?;
            }
            places.insert(sandbox.place.clone());
            live.objects.extend(sandbox.rules);
            if let Some(base) = sandbox.base {
                self.mark_snapshot(base, live).await?;
            }
        }
        for record in self.parts.store.checkpoints(plan.plan.id).await? {
            for part in &record.checkpoint.parts {
                self.mark_snapshot(part.snapshot, live).await?;
            }
        }
        for entry in self
            .parts
            .store
            .journal(JournalQuery::OfPlan(plan.plan.id))
            .await?
        {
            let Some(ops) = entry.ops else { continue };
            live.objects.insert(ops);
            // What was displaced is durable as an object, the kept file may
            // not be; and an undo merges with what was written.
            let bytes = match self.parts.objects.get(ops).await {
                Err(_) if !entry.phase.is_open() => continue,
                bytes => bytes?,
            };
            for op in decode_ops(&bytes).unwrap_or_default() {
                live.objects.extend(contents_of(&op));
            }
            let payload = Payload::decode(entry.version, &entry.payload)?;
            if let Some(rebase) = payload.rebase {
                self.mark_snapshot(rebase.from()?, live).await?;
            }
        }
        Ok(())
    }

    /// Marks a snapshot, and the base it was compared with: a rollback to it
    /// makes that the base of the sandbox again.
    async fn mark_snapshot(&self, id: sandbar_domain::Hash, live: &mut Live) -> PortResult<()> {
        let mut next = Some(id);
        while let Some(id) = next {
            let snapshot = self.snapshot(id).await?;
            live.objects.insert(id);
            live.trees.insert(snapshot.tree);
            live.trees.extend(snapshot.git);
            next = snapshot.base.filter(|base| !live.objects.contains(base));
        }
        Ok(())
    }

    /// Removes those of `present` that no plan knows. Only while no plan is at
    /// work: one that is being made is not recorded with its directory yet.
    async fn drop_orphans(
        &self,
        present: Vec<PathBuf>,
        known: &HashSet<PathBuf>,
        request: GcRequest,
        report: &mut GcReport,
    ) -> PortResult<()> {
        for place in present {
            if known.contains(&place) || report.places.contains(&place) {
                continue;
            }
            report.places.push(place.clone());
            if !request.dry_run {
                self.parts.workspaces.remove(place).await?;
            }
        }
        Ok(())
    }
}

fn contents_of(op: &PathOp) -> impl Iterator<Item = sandbar_domain::Hash> {
    let (old, new) = match op {
        PathOp::Create { path: _, new } => (None, Some(*new)),
        PathOp::Replace { path: _, old, new } | PathOp::SetMode { path: _, old, new } => {
            (Some(*old), Some(*new))
        }
        PathOp::Remove { path: _, old } => (Some(*old), None),
        PathOp::MakeDir { path: _ } | PathOp::RemoveDir { path: _ } => (None, None),
    };
    let file = |entry: Option<Entry>| {
        entry
            .filter(|entry| entry.kind != Kind::Directory)
            .map(|entry| entry.hash)
    };
    file(old).into_iter().chain(file(new))
}
