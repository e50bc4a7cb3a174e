//! Checkpoints: one consistent cut over a plan's sandboxes (CKP-1…CKP-3).

use std::path::Path;

use sandbar_domain::checkpoint::prune;
use sandbar_domain::plan::{PlanEvent, PlanState};
use sandbar_domain::snapshot::Snapshot;
use sandbar_domain::{ChangeKind, Code, Hash};
use sandbar_ports::store::{
    CheckpointPart, CheckpointRecord, NewCheckpoint, PlanRecord, SandboxRecord, SandboxState,
};
use sandbar_ports::{PortError, PortResult};

use super::capture::State;
use super::create::Content;
use crate::Sandbar;

/// What a checkpoint came to.
#[derive(Debug, Clone)]
pub struct CheckpointReport {
    /// The plan.
    pub plan: PlanRecord,
    /// The checkpoint.
    pub checkpoint: CheckpointRecord,
    /// False when nothing had changed and the last one was used again.
    pub fresh: bool,
}

impl Sandbar {
    /// Saves the state of a plan. Errors: `plan_busy` under a running command.
    pub async fn checkpoint(
        &self,
        plan: &str,
        message: Option<String>,
        cwd: &Path,
    ) -> PortResult<CheckpointReport> {
        self.recover_dead().await?;
        let plan = self.find_plan(plan, cwd).await?;
        let sandbox = self.live_sandbox(&plan).await?;
        // One process drives a plan, so that no number is given out twice.
        let plan = self.take_up(&plan, PlanEvent::Rework).await?;
        let saved = async {
            let state = self.capture_state(&sandbox).await?;
            self.record(&plan, &sandbox, &state, "manual", message)
                .await
        }
        .await;
        let plan = self.lay_down(&plan, PlanEvent::Finish).await?;
        let (checkpoint, fresh) = saved?;
        Ok(CheckpointReport {
            plan,
            checkpoint,
            fresh,
        })
    }

    /// Refuses what must not happen while a command or an apply is at work.
    pub(crate) fn refuse_busy(&self, plan: &PlanRecord) -> PortResult<()> {
        match &plan.plan.mark.owner {
            Some(owner) if self.parts.runner.is_alive(owner) => {
                let name = &plan.plan.name;
                let message = format!("use plan {name}: process {} drives it", owner.pid);
                Err(PortError::new(Code::PlanBusy, message))
            }
            _ => Ok(()),
        }
    }

    /// Returns the sandbox of a plan, whose root must be there.
    pub(crate) async fn live_sandbox(&self, plan: &PlanRecord) -> PortResult<SandboxRecord> {
        let sandbox = self.made_sandbox(plan).await?;
        if sandbox.state == SandboxState::Ready {
            return Ok(sandbox);
        }
        let name = &plan.plan.name;
        if sandbox.state == SandboxState::Restoring {
            let message = format!("use plan {name}: its sandbox was not put back completely");
            return Err(PortError::new(Code::SandboxGone, message).with_hint(format!(
                "`sandbar rollback {name} --to N` puts it back (`sandbar log {name}` lists where to)"
            )));
        }
        let state = plan.plan.mark.state.word();
        let message = format!("use plan {name}: it is {state} and its sandbox was cleaned up");
        let hint = match plan.plan.mark.state {
            PlanState::Applied => {
                format!("`sandbar undo {name}` takes it back and makes the sandbox again")
            }
            _ => format!("`sandbar diff {name}` still shows its result, as a patch"),
        };
        Err(PortError::new(Code::SandboxGone, message).with_hint(hint))
    }

    /// Scans and records a checkpoint; an unchanged sandbox reuses its last.
    pub(crate) async fn save(
        &self,
        plan: &PlanRecord,
        sandbox: &SandboxRecord,
        step: &str,
    ) -> PortResult<(CheckpointRecord, State)> {
        self.save_over(plan, sandbox, step, &[]).await
    }

    /// The same, with what lies where `trees` have something, though it is
    /// ignored: they are about to take its place.
    pub(crate) async fn save_over(
        &self,
        plan: &PlanRecord,
        sandbox: &SandboxRecord,
        step: &str,
        trees: &[Hash],
    ) -> PortResult<(CheckpointRecord, State)> {
        let state = self.capture_over(sandbox, trees).await?;
        let (checkpoint, _) = self.record(plan, sandbox, &state, step, None).await?;
        Ok((checkpoint, state))
    }

    /// Records a scanned state. Says whether a new checkpoint was made.
    pub(crate) async fn record(
        &self,
        plan: &PlanRecord,
        sandbox: &SandboxRecord,
        state: &State,
        step: &str,
        message: Option<String>,
    ) -> PortResult<(CheckpointRecord, bool)> {
        let before = self.parts.store.checkpoints(plan.plan.id).await?;
        let last = before.last().ok_or_else(|| {
            let message = format!("save plan {}: its base is missing", plan.plan.name);
            PortError::new(Code::Internal, message)
        })?;
        let part = part_of(last, sandbox)?;
        let old = self.snapshot(part.snapshot).await?;
        let mut new = Snapshot {
            base: sandbox.base,
            tree: state.tree,
            git: state.git,
        };
        let same = self.same_state(&old, &new).await?;
        if same && message.is_none() {
            return Ok((last.clone(), false));
        }
        let mut commit = part.commit.clone();
        if !same {
            if let Some(parent) = commit {
                let changes = self.parts.objects.diff(old.tree, new.tree).await?;
                let sequence = last.sequence + 1;
                let text = message.as_deref().unwrap_or(step);
                let content = Content::Since(parent, changes);
                let hidden = self.hide(plan, sandbox, sequence, content, text);
                commit = Some(match hidden.await {
                    Ok(commit) => commit,
                    // The commit before cannot be read: someone inside damaged
                    // the git directory. It is made anew from nothing, since
                    // going back must work then most of all.
                    Err(error) if error.code == Code::CorruptObject => {
                        let all = Content::Whole(self.parts.objects.list(new.tree).await?);
                        self.hide(plan, sandbox, sequence, all, text).await?
                    }
                    Err(error) => return Err(error),
                });
                // The hidden commit added objects: the state with them is the
                // one that later scans are compared with.
                new.git = Some(self.capture_git(sandbox).await?);
            }
        } else {
            new = old;
        }
        let snapshot = self.store_snapshot(&new).await?;
        let checkpoint = NewCheckpoint {
            id: self.parts.names().checkpoint(),
            plan: plan.plan.id,
            parts: vec![CheckpointPart {
                sandbox: sandbox.id,
                snapshot,
                commit,
            }],
            message,
            step: step.to_owned(),
            created_ms: self.parts.clock.now_ms(),
        };
        let record = self.parts.store.add_checkpoint(checkpoint).await?;
        self.prune(plan, sandbox).await?;
        Ok((record, true))
    }

    /// Says whether two states are the same: a git index whose entries are the
    /// same is no change, since any `git status` refreshes its stat data.
    async fn same_state(&self, old: &Snapshot, new: &Snapshot) -> PortResult<bool> {
        if old.tree != new.tree {
            return Ok(false);
        }
        let (Some(a), Some(b)) = (old.git, new.git) else {
            return Ok(old.git == new.git);
        };
        if a == b {
            return Ok(true);
        }
        let changes = self.parts.objects.diff(a, b).await?;
        let [change] = &*changes else {
            return Ok(false);
        };
        let (Some(old), Some(new)) = (change.old, change.new) else {
            return Ok(false);
        };
        if change.path.as_str() != "index" || change.kind() != ChangeKind::Modified {
            return Ok(false);
        }
        let old = self.parts.objects.get(old.hash).await?;
        let new = self.parts.objects.get(new.hash).await?;
        self.parts.git.same_index(old, new).await
    }

    /// Drops every checkpoint of a plan that comes to nothing.
    pub(crate) async fn drop_all_checkpoints(&self, plan: &PlanRecord) -> PortResult<()> {
        let all = self.parts.store.checkpoints(plan.plan.id).await?;
        let numbers = all.iter().map(|record| record.sequence).collect();
        self.parts
            .store
            .drop_checkpoints(plan.plan.id, numbers)
            .await
    }

    /// Drops surplus checkpoints; the first and the newest stay (CKP-3).
    async fn prune(&self, plan: &PlanRecord, sandbox: &SandboxRecord) -> PortResult<()> {
        let all = self.parts.store.checkpoints(plan.plan.id).await?;
        let numbers: Vec<u64> = all.iter().map(|record| record.sequence).collect();
        let surplus = prune(&numbers, self.config.max_checkpoints());
        if surplus.is_empty() {
            return Ok(());
        }
        self.parts
            .store
            .drop_checkpoints(plan.plan.id, surplus.clone())
            .await?;
        if sandbox.rules.is_some() {
            self.parts
                .git
                .unhide(sandbox.place.join("r"), plan.plan.id, surplus)
                .await?;
        }
        Ok(())
    }
}

/// Returns what a checkpoint says of one sandbox.
pub(crate) fn part_of<'a>(
    checkpoint: &'a CheckpointRecord,
    sandbox: &SandboxRecord,
) -> PortResult<&'a CheckpointPart> {
    let part = checkpoint
        .checkpoint
        .parts
        .iter()
        .find(|part| part.sandbox == sandbox.id);
    part.ok_or_else(|| {
        let message = format!(
            "use checkpoint {}: it does not hold this sandbox",
            checkpoint.sequence
        );
        PortError::new(Code::CheckpointNotFound, message)
    })
}
