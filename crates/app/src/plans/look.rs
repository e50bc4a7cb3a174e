//! Looking at plans: list, status, diff, log, path. Nothing here changes one.

use std::path::{Path, PathBuf};

use sandbar_domain::change::Counts;
use sandbar_domain::plan::PlanState;
use sandbar_domain::resource::Resource;
use sandbar_domain::{Change, ChangeSet, Code, Hash};
use sandbar_ports::store::{CheckpointRecord, PlanRecord, SandboxRecord, SandboxState};
use sandbar_ports::{PortError, PortResult};

use super::capture::path_of;
use crate::Sandbar;

/// Stands for a state that does not exist yet.
const EMPTY: Hash = Hash::from_bytes([0; 32]);

/// A plan in a list.
#[derive(Debug, Clone)]
pub struct PlanReport {
    /// The plan.
    pub plan: PlanRecord,
    /// The resource it is on.
    pub resource: Option<Resource>,
    /// Whether the process that drives it is alive.
    pub driven: bool,
}

/// A sandbox as shown to a person.
#[derive(Debug, Clone)]
pub struct SandboxReport {
    /// The record.
    pub sandbox: SandboxRecord,
    /// The resource it is a copy of.
    pub resource: Resource,
    /// Where its root is.
    pub root: PathBuf,
}

/// What a plan holds now.
#[derive(Debug, Clone)]
pub struct StatusReport {
    /// The plan.
    pub plan: PlanRecord,
    /// Its sandboxes.
    pub sandboxes: Vec<SandboxReport>,
    /// What differs from the base.
    pub changes: ChangeSet,
    /// Ignored paths that are no part of the sandbox.
    pub ignored: u64,
    /// How many checkpoints there are, and the number of the newest.
    pub checkpoints: (u64, Option<u64>),
    /// What a person must know.
    pub warnings: Vec<String>,
}

/// What a plan changed.
#[derive(Debug, Clone)]
pub struct DiffReport {
    /// The plan.
    pub plan: PlanRecord,
    /// Each boundary with its changes.
    pub boundaries: Vec<(Resource, ChangeSet)>,
}

/// A checkpoint in the log.
#[derive(Debug, Clone)]
pub struct LogEntry {
    /// The checkpoint.
    pub checkpoint: CheckpointRecord,
    /// What differs from the checkpoint before; the base has none.
    pub changes: Counts,
}

/// The two trees that are compared, and the ignored paths made inside.
struct Ends {
    base: Hash,
    now: Hash,
    ignored: u64,
}

impl Sandbar {
    /// Lists every plan, oldest first.
    pub async fn plans(&self) -> PortResult<Vec<PlanReport>> {
        let mut reports = Vec::new();
        for plan in self.parts.store.plans().await? {
            let resource = self.parts.store.resource(plan.plan.resource).await?;
            let driven = plan
                .plan
                .mark
                .owner
                .as_ref()
                .is_some_and(|owner| self.parts.runner.is_alive(owner));
            reports.push(PlanReport {
                plan,
                resource,
                driven,
            });
        }
        Ok(reports)
    }

    /// Scans a plan's sandbox and counts what differs from its base.
    pub async fn status(&self, plan: &str, cwd: &Path) -> PortResult<StatusReport> {
        let plan = self.find_plan(plan, cwd).await?;
        let checkpoints = self.parts.store.checkpoints(plan.plan.id).await?;
        let mut report = StatusReport {
            sandboxes: Vec::new(),
            changes: ChangeSet::new(EMPTY, EMPTY, Vec::new()),
            ignored: 0,
            checkpoints: (
                u64::try_from(checkpoints.len()).expect("a count fits 64 bits"),
                checkpoints.last().map(|record| record.sequence),
            ),
            warnings: Vec::new(),
            plan,
        };
        let Some(sandbox) = self.sandbox_of(&report.plan).await? else {
            return Ok(report);
        };
        let Ends { base, now, ignored } = self
            .ends(&report.plan, &sandbox, &mut report.warnings)
            .await?;
        let changes = self.parts.objects.diff(base, now).await?;
        report.changes = ChangeSet::new(base, now, changes);
        report.ignored = sandbox.ignored + ignored;
        report.sandboxes.push(self.sandbox_report(&sandbox).await?);
        Ok(report)
    }

    /// Lists what a plan changed.
    pub async fn diff(&self, plan: &str, cwd: &Path) -> PortResult<DiffReport> {
        let plan = self.find_plan(plan, cwd).await?;
        let sandbox = self.made_sandbox(&plan).await?;
        let ends = self.ends(&plan, &sandbox, &mut Vec::new()).await?;
        let (base, now) = (ends.base, ends.now);
        let changes = self.parts.objects.diff(base, now).await?;
        let resource = self.resource_of(&sandbox).await?;
        let boundaries = vec![(resource, ChangeSet::new(base, now, changes))];
        Ok(DiffReport { plan, boundaries })
    }

    /// Reads the content of a change, for a patch.
    pub async fn content(&self, hash: Hash) -> PortResult<Vec<u8>> {
        self.parts.objects.get(hash).await
    }

    /// Lists the checkpoints of a plan, oldest first.
    pub async fn log(&self, plan: &str, cwd: &Path) -> PortResult<(PlanRecord, Vec<LogEntry>)> {
        let plan = self.find_plan(plan, cwd).await?;
        let mut entries = Vec::new();
        let mut before: Option<Hash> = None;
        for checkpoint in self.parts.store.checkpoints(plan.plan.id).await? {
            let mut changes = Counts::default();
            if let Some(part) = checkpoint.checkpoint.parts.first() {
                let tree = self.snapshot(part.snapshot).await?.tree;
                if let Some(before) = before {
                    let list: Vec<Change> = self.parts.objects.diff(before, tree).await?;
                    changes = ChangeSet::new(before, tree, list).counts();
                }
                before = Some(tree);
            }
            entries.push(LogEntry {
                checkpoint,
                changes,
            });
        }
        Ok((plan, entries))
    }

    /// Returns the sandbox root of a plan.
    pub async fn path(&self, plan: &str, cwd: &Path) -> PortResult<PathBuf> {
        let plan = self.find_plan(plan, cwd).await?;
        Ok(path_of(&self.live_sandbox(&plan).await?))
    }

    /// Returns base tree and present tree: scanned while there is a root, else
    /// that of the newest checkpoint. Of a discarded plan the checkpoint says
    /// it: a crash may have left half a root.
    async fn ends(
        &self,
        plan: &PlanRecord,
        sandbox: &SandboxRecord,
        warnings: &mut Vec<String>,
    ) -> PortResult<Ends> {
        let base = self.base_of(sandbox).await?.tree;
        let dropped = plan.plan.mark.state == PlanState::Discarded;
        let captured = match sandbox.state {
            SandboxState::Ready if !dropped => match self.capture_tree(sandbox).await {
                Ok(captured) => Some(captured),
                // New content cannot be stored, so there is nothing to show it
                // from: what was saved last can still be looked at.
                Err(error) if error.code == Code::ReadOnly => {
                    (self.around.say)(
                        "the data directory can only be read: this is the newest checkpoint",
                    );
                    None
                }
                Err(error) => return Err(error),
            },
            _ => None,
        };
        if let Some(captured) = captured {
            for (path, reason) in captured.tally.unsupported {
                warnings.push(format!("not part of the result: {path}: {reason}"));
            }
            return Ok(Ends {
                base,
                now: captured.tree,
                ignored: captured.tally.ignored,
            });
        }
        let checkpoints = self.parts.store.checkpoints(plan.plan.id).await?;
        let newest = checkpoints
            .last()
            .and_then(|record| record.checkpoint.parts.first());
        let newest = newest.ok_or_else(|| {
            PortError::new(Code::SandboxGone, "look at the plan: it has no checkpoint")
        })?;
        let now = self.snapshot(newest.snapshot).await?.tree;
        Ok(Ends {
            base,
            now,
            ignored: 0,
        })
    }

    /// Returns the resource that a sandbox is a copy of.
    pub(crate) async fn resource_of(&self, sandbox: &SandboxRecord) -> PortResult<Resource> {
        let found = self.parts.store.resource(sandbox.resource).await?;
        found.ok_or_else(|| {
            PortError::new(
                Code::Internal,
                "find the resource of a sandbox: it is not recorded",
            )
        })
    }

    /// Describes a sandbox.
    pub(crate) async fn sandbox_report(
        &self,
        sandbox: &SandboxRecord,
    ) -> PortResult<SandboxReport> {
        let resource = self.resource_of(sandbox).await?;
        let root = path_of(sandbox);
        Ok(SandboxReport {
            sandbox: sandbox.clone(),
            resource,
            root,
        })
    }
}
