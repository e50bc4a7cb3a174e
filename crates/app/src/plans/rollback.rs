//! Going back to a checkpoint, exactly (CKP-4).

use std::path::Path;
use std::sync::Arc;

use sandbar_domain::plan::PlanEvent;
use sandbar_domain::resource::Strategy;
use sandbar_domain::snapshot::Snapshot;
use sandbar_domain::{Code, Hash, RelPath};
use sandbar_ports::rules::CarryRules;
use sandbar_ports::store::{
    CheckpointRecord, NewCheckpoint, PlanRecord, SandboxRecord, SandboxState,
};
use sandbar_ports::workspace::{Restore, Restored, Tally};
use sandbar_ports::{Cancel, PortError, PortResult};

use super::capture::{GIT_DIR, State, git_cache, hidden_of, path_of, tree_cache};
use super::checkpoint::part_of;
use super::create::pool;
use crate::Sandbar;

/// What a rollback did.
#[derive(Debug, Clone)]
pub struct RollbackReport {
    /// The plan.
    pub plan: PlanRecord,
    /// The checkpoint that was restored.
    pub to: u64,
    /// The checkpoint that holds what was replaced; none when the root was gone.
    pub replaced: Option<u64>,
    /// Paths written.
    pub written: u64,
    /// Paths removed.
    pub removed: u64,
}

impl Sandbar {
    /// Restores a checkpoint, named by number or id. What it replaces becomes
    /// a checkpoint first; later checkpoints stay.
    pub async fn rollback(&self, plan: &str, to: &str, cwd: &Path) -> PortResult<RollbackReport> {
        self.recover_dead().await?;
        let plan = self.find_plan(plan, cwd).await?;
        let sandbox = match self.made_sandbox(&plan).await? {
            // One that a failed rollback left half-way is put back by another.
            half if half.state == SandboxState::Restoring => half,
            _ => self.live_sandbox(&plan).await?,
        };
        let target = &self.checkpoint_named(&plan, to).await?;
        let plan = self.take_up(&plan, PlanEvent::Rework).await?;
        match self.go_back(&plan, &sandbox, target).await {
            Ok(report) => {
                let plan = self.lay_down(&plan, PlanEvent::Finish).await?;
                Ok(RollbackReport { plan, ..report })
            }
            Err(error) => {
                let _ = self.lay_down(&plan, PlanEvent::Finish).await;
                Err(error)
            }
        }
    }

    /// Finds a checkpoint of a plan by number or id.
    pub(crate) async fn checkpoint_named(
        &self,
        plan: &PlanRecord,
        text: &str,
    ) -> PortResult<CheckpointRecord> {
        let all = self.parts.store.checkpoints(plan.plan.id).await?;
        find_checkpoint(&all, text).cloned().ok_or_else(|| {
            let message = format!(
                "find checkpoint {text} of plan {}: there is none",
                plan.plan.name
            );
            PortError::new(Code::CheckpointNotFound, message)
        })
    }

    async fn go_back(
        &self,
        plan: &PlanRecord,
        sandbox: &SandboxRecord,
        target: &CheckpointRecord,
    ) -> PortResult<RollbackReport> {
        let wanted = self.snapshot(part_of(target, sandbox)?.snapshot).await?;
        let sandbox = &self.present_root(sandbox).await?;
        let over = [wanted.tree];
        let saved = self.save_over(plan, sandbox, "rollback", &over);
        let replaced = match saved.await {
            Ok((record, _)) => Some(record.sequence),
            Err(error) if error.code == Code::SandboxGone && sandbox.root.is_none() => None,
            Err(error) => return Err(error),
        };
        let (written, removed) = self.return_to(plan, sandbox, target, &wanted).await?;
        Ok(RollbackReport {
            plan: plan.clone(),
            to: target.sequence,
            replaced,
            written,
            removed,
        })
    }

    /// Looks at what is at the path of a sandbox root. A root that somebody
    /// put in the place of ours is saved like ours before it is replaced; one
    /// that is not there is none.
    async fn present_root(&self, sandbox: &SandboxRecord) -> PortResult<SandboxRecord> {
        let root = match self.parts.workspaces.identify_own(path_of(sandbox)).await {
            Ok(root) => Some(root),
            Err(error) if error.code == Code::SandboxGone => None,
            Err(error) => return Err(error),
        };
        Ok(SandboxRecord {
            root,
            ..sandbox.clone()
        })
    }

    /// Puts a sandbox back to a checkpoint so that a crash on the way is gone
    /// on with: the checkpoint is the newest, and the sandbox marked, first.
    pub(crate) async fn return_to(
        &self,
        plan: &PlanRecord,
        sandbox: &SandboxRecord,
        target: &CheckpointRecord,
        wanted: &Snapshot,
    ) -> PortResult<(u64, u64)> {
        let all = self.parts.store.checkpoints(plan.plan.id).await?;
        if all
            .last()
            .is_none_or(|newest| newest.sequence != target.sequence)
        {
            self.note_return(plan, sandbox, target, wanted).await?;
        }
        let marked = SandboxRecord {
            state: SandboxState::Restoring,
            // A checkpoint is bound to the base that it was compared with: with
            // a later one, what an update brought since would count as undone.
            base: Some(self.base_then(plan, wanted).await?),
            ..sandbox.clone()
        };
        self.parts.store.update_sandbox(marked.clone()).await?;
        let replaced = all
            .last()
            .filter(|newest| newest.sequence != target.sequence);
        let tree = match replaced {
            Some(replaced) => {
                let id = part_of(replaced, sandbox)?.snapshot;
                Some(self.snapshot(id).await?.tree)
            }
            None => None,
        };
        let returned = self.materialise(&marked, wanted, tree).await;
        if let (Err(_), Some(replaced)) = (&returned, replaced) {
            self.put_back(plan, sandbox, replaced).await;
        }
        returned
    }

    /// After a restore that failed, makes a sandbox what it was when it was
    /// saved, so that the failure changed nothing. Where that fails too it
    /// stays marked, and a rollback can still put it back.
    pub(crate) async fn put_back(
        &self,
        plan: &PlanRecord,
        sandbox: &SandboxRecord,
        saved: &CheckpointRecord,
    ) {
        let done = async {
            let wanted = self.snapshot(part_of(saved, sandbox)?.snapshot).await?;
            self.note_return(plan, sandbox, saved, &wanted).await?;
            let marked = SandboxRecord {
                state: SandboxState::Restoring,
                ..sandbox.clone()
            };
            self.parts.store.update_sandbox(marked.clone()).await?;
            self.materialise(&marked, &wanted, None).await.map(|_| ())
        };
        // The first error is the one to report.
        let _: PortResult<()> = done.await;
    }

    /// Returns the base of a checkpoint. One that a part of an apply moved, and
    /// an undo moved back, is the one from before.
    async fn base_then(&self, plan: &PlanRecord, wanted: &Snapshot) -> PortResult<Hash> {
        let mut base = wanted.base.unwrap_or_else(|| wanted.id());
        for (from, to) in self.bases_moved_back(plan).await? {
            if base == to {
                base = from;
            }
        }
        Ok(base)
    }

    /// Goes on with a restore that a dead process began.
    pub(crate) async fn finish_return(
        &self,
        plan: &PlanRecord,
        sandbox: &SandboxRecord,
    ) -> PortResult<()> {
        let all = self.parts.store.checkpoints(plan.plan.id).await?;
        let newest = all.last().ok_or_else(|| {
            let message = format!("restore plan {}: it has no checkpoint", plan.plan.name);
            PortError::new(Code::CheckpointNotFound, message)
        })?;
        let wanted = self.snapshot(part_of(newest, sandbox)?.snapshot).await?;
        self.materialise(sandbox, &wanted, None).await.map(|_| ())
    }

    /// Undoes what a failed command did: the checkpoint that was the newest
    /// before it is restored.
    pub(crate) async fn back_to_before(
        &self,
        plan: &PlanRecord,
        sandbox: &SandboxRecord,
        before: &CheckpointRecord,
    ) -> PortResult<State> {
        let wanted = self.snapshot(part_of(before, sandbox)?.snapshot).await?;
        self.return_to(plan, sandbox, before, &wanted).await?;
        Ok(State {
            tree: wanted.tree,
            git: wanted.git,
            tally: Tally::default(),
        })
    }

    /// Makes a sandbox hold exactly a snapshot, git state included. A root
    /// that is missing is made again. `replaced` is the tree that was saved of
    /// it just before, if there is one.
    pub(crate) async fn materialise(
        &self,
        sandbox: &SandboxRecord,
        wanted: &Snapshot,
        replaced: Option<Hash>,
    ) -> PortResult<(u64, u64)> {
        // What is wanted takes its place whatever git ignores by now, and what
        // was saved just before goes.
        let over: Vec<Hash> = [wanted.tree].into_iter().chain(replaced).collect();
        let rules = match self.rules_over(sandbox, &over).await {
            Ok(rules) => rules,
            // Without its git directory a sandbox has no current rules; what
            // is there is then all its own.
            Err(_) => Arc::new(sandbar_ports::rules::Everything) as Arc<dyn CarryRules>,
        };
        let restored = self.restore_tree(sandbox, wanted, rules).await?;
        if let (Strategy::GitWorktree, Some(git)) = (sandbox.strategy, wanted.git) {
            let pool = pool(&sandbox.place);
            let request = Restore {
                path: path_of(sandbox).join(GIT_DIR),
                tree: git,
                hidden: Vec::new(),
                rules: self.parts.git.state_rules(pool.clone()).await?,
                cache: git_cache(sandbox),
                pool: Some((pool, RelPath::new("objects").expect("a plain name"))),
                progress: Arc::new(sandbar_ports::Silent),
                // Files are restored already: git state must follow.
                cancel: Cancel::new(),
            };
            self.parts.workspaces.restore(request).await?;
        }
        if sandbox.root.as_ref() != Some(&restored.root) || sandbox.state != SandboxState::Ready {
            let record = SandboxRecord {
                root: Some(restored.root),
                state: SandboxState::Ready,
                ..sandbox.clone()
            };
            self.parts.store.update_sandbox(record).await?;
        }
        Ok((restored.written, restored.removed))
    }

    async fn restore_tree(
        &self,
        sandbox: &SandboxRecord,
        wanted: &Snapshot,
        rules: Arc<dyn CarryRules>,
    ) -> PortResult<Restored> {
        let request = Restore {
            path: path_of(sandbox),
            tree: wanted.tree,
            hidden: hidden_of(sandbox),
            rules,
            cache: tree_cache(sandbox),
            pool: None,
            progress: self.around.progress.clone(),
            cancel: self.around.cancel.clone(),
        };
        self.parts.workspaces.restore(request).await
    }

    /// Records that the sandbox is at an earlier state again, so that the
    /// newest checkpoint is always the one that later scans compare with.
    async fn note_return(
        &self,
        plan: &PlanRecord,
        sandbox: &SandboxRecord,
        target: &CheckpointRecord,
        wanted: &Snapshot,
    ) -> PortResult<()> {
        let mut part = part_of(target, sandbox)?.clone();
        part.snapshot = self.store_snapshot(wanted).await?;
        let checkpoint = NewCheckpoint {
            id: self.parts.names().checkpoint(),
            plan: plan.plan.id,
            parts: vec![part],
            message: Some(format!("back at {}", target.sequence)),
            step: "returned".into(),
            created_ms: self.parts.clock.now_ms(),
        };
        self.parts.store.add_checkpoint(checkpoint).await?;
        Ok(())
    }
}

/// Finds a checkpoint by number, id or id prefix.
fn find_checkpoint<'a>(all: &'a [CheckpointRecord], text: &str) -> Option<&'a CheckpointRecord> {
    let text = text.trim_start_matches('#');
    if let Ok(number) = text.parse::<u64>()
        && let Some(found) = all.iter().find(|record| record.sequence == number)
    {
        return Some(found);
    }
    let text = text.to_uppercase();
    let mut fits = all
        .iter()
        .filter(|record| text.len() >= 6 && record.checkpoint.id.to_string().starts_with(&text));
    match (fits.next(), fits.next()) {
        (Some(found), None) => Some(found),
        _ => None,
    }
}
