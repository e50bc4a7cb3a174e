//! `undo`: takes back what applies of a plan did, by the same decision and the
//! same journal (APL-11). What the person changed since is merged where that
//! is clean, else nothing is written and each path is named.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use sandbar_domain::apply::{Decision, PathOp, Present, inverse, paths_to_observe, replay};
use sandbar_domain::journal::{JournalKind, Phase};
use sandbar_domain::plan::PlanEvent;
use sandbar_domain::resource::{Resource, ResourceType};
use sandbar_domain::{Change, Code, Entry, Hash, RelPath};
use sandbar_ports::git::Checkout;
use sandbar_ports::store::{
    JournalQuery, JournalRecord, PlanMark, PlanRecord, SandboxRecord, SandboxState,
};
use sandbar_ports::target::Takeout;
use sandbar_ports::{PortError, PortResult};

use super::decide::{describe, warn};
use super::execute::empty;
use super::payload::{Payload, Rebase, SavedHead};
use super::report::{ApplyReport, Outcome, UndoRequest};
use crate::Sandbar;

/// An apply that is done and was not taken back.
#[derive(Debug, Clone)]
pub(crate) struct Applied {
    /// The entry.
    pub(crate) entry: JournalRecord,
    /// Its payload.
    pub(crate) payload: Payload,
    /// Its operations.
    pub(crate) ops: Vec<PathOp>,
}

impl Sandbar {
    /// Takes back every apply of a plan since it was last taken back.
    pub async fn undo(&self, request: UndoRequest) -> PortResult<ApplyReport> {
        self.recover_dead().await?;
        let plan = self.find_plan(&request.plan, &request.cwd).await?;
        self.refuse_busy(&plan)?;
        self.rest(&plan, PlanEvent::Undo)?;
        if !self.is_settled(&plan).await {
            let name = &plan.plan.name;
            let message = format!("undo plan {name}: an earlier undo needs attention");
            return Err(PortError::new(Code::NeedsAttention, message));
        }
        if self.parts.store.checkpoints(plan.plan.id).await?.is_empty() {
            let name = &plan.plan.name;
            let message =
                format!("undo plan {name}: its checkpoints and kept bytes were collected");
            return Err(PortError::new(Code::KeptGone, message));
        }
        if request.dry_run {
            let sandbox = self.made_sandbox(&plan).await?;
            let resource = self.resource_of(&sandbox).await?;
            let applied = self.applied_entries(&plan).await?;
            self.refuse_moved(&request, &resource, &applied).await?;
            let decision = self.rewind(&resource, &applied).await?;
            return Ok(report_of(plan, resource, Outcome::DryRun, &decision));
        }
        let plan = self.seize(&plan).await?;
        match self.attempt_undo(&request, &plan).await {
            Ok(report) => Ok(report),
            Err(error) => {
                if self.is_settled(&plan).await {
                    let _ = self.let_go(&plan).await;
                }
                Err(error)
            }
        }
    }

    /// Reads the applies of a plan that stand, oldest first.
    async fn applied_entries(&self, plan: &PlanRecord) -> PortResult<Vec<Applied>> {
        let standing = self.standing_applies(plan).await?;
        self.read_entries(standing).await
    }

    /// Lists the applies of a plan that stand, oldest first.
    pub(super) async fn standing_applies(
        &self,
        plan: &PlanRecord,
    ) -> PortResult<Vec<JournalRecord>> {
        let query = JournalQuery::OfPlan(plan.plan.id);
        let mut standing = Vec::new();
        for entry in self.parts.store.journal(query).await? {
            match (entry.kind, entry.phase) {
                (JournalKind::Apply, Phase::Done) => standing.push(entry),
                // An undo takes back all there is.
                (JournalKind::Undo, Phase::Done) => standing.clear(),
                _ => {}
            }
        }
        Ok(standing)
    }

    /// Lists how applies moved the base that were taken back, newest first:
    /// from and to.
    pub(crate) async fn bases_moved_back(
        &self,
        plan: &PlanRecord,
    ) -> PortResult<Vec<(Hash, Hash)>> {
        let query = JournalQuery::OfPlan(plan.plan.id);
        let (mut open, mut back) = (Vec::new(), Vec::new());
        for entry in self.parts.store.journal(query).await? {
            if entry.phase != Phase::Done {
                continue;
            }
            match entry.kind {
                JournalKind::Apply => {
                    let payload = Payload::decode(entry.version, &entry.payload)?;
                    if let Some(rebase) = payload.rebase {
                        open.push((rebase.from()?, rebase.to()?));
                    }
                }
                JournalKind::Undo => back.append(&mut open),
            }
        }
        back.reverse();
        Ok(back)
    }

    /// Reads entries of a plan by id, in the order given.
    pub(super) async fn entries_named(
        &self,
        plan: &PlanRecord,
        ids: &[String],
    ) -> PortResult<Vec<Applied>> {
        if ids.is_empty() {
            return Ok(Vec::new());
        }
        let query = JournalQuery::OfPlan(plan.plan.id);
        let all = self.parts.store.journal(query).await?;
        let named = |id: &String| all.iter().find(|entry| entry.id.to_string() == *id);
        self.read_entries(ids.iter().filter_map(named).cloned().collect())
            .await
    }

    async fn read_entries(&self, entries: Vec<JournalRecord>) -> PortResult<Vec<Applied>> {
        let mut out = Vec::with_capacity(entries.len());
        for entry in entries {
            out.push(Applied {
                payload: Payload::decode(entry.version, &entry.payload)?,
                ops: self.operations(&entry).await?,
                entry,
            });
        }
        Ok(out)
    }

    async fn attempt_undo(
        &self,
        request: &UndoRequest,
        plan: &PlanRecord,
    ) -> PortResult<ApplyReport> {
        let sandbox = self.made_sandbox(plan).await?;
        let resource = self.resource_of(&sandbox).await?;
        let _lock = self.lock_root(&resource.root).await?;
        let applied = self.applied_entries(plan).await?;
        let checkout = self.refuse_moved(request, &resource, &applied).await?;
        let decision = self.rewind(&resource, &applied).await?;
        let mut report = report_of(plan.clone(), resource.clone(), Outcome::Undone, &decision);
        let Ok(ops) = decision.into_ops() else {
            report.plan = self.let_go(plan).await?;
            return Ok(report);
        };
        self.gather(&plan.plan.name, &ops, &applied).await?;
        self.make_again(plan, &sandbox).await?;
        let common = checkout
            .as_ref()
            .map(|checkout| checkout.common_dir.clone());
        let place = self
            .parts
            .targets
            .preflight(resource.root.clone(), common, ops.clone())
            .await?;
        let first = applied
            .iter()
            .find_map(|applied| applied.payload.rebase.as_ref());
        let rebase = match (first, sandbox.base) {
            (Some(first), Some(now)) => Some(Rebase::new(now, first.from()?)),
            _ => None,
        };
        let payload = Payload {
            landing: applied
                .iter()
                .find_map(|applied| applied.payload.landing.clone()),
            head: checkout.as_ref().map(SavedHead::of),
            rebase,
            undoes: applied
                .iter()
                .map(|applied| applied.entry.id.to_string())
                .collect(),
            ..Payload::on(&resource.root)
        };
        let entry = self
            .open_entry(JournalKind::Undo, plan, &ops, &place, payload)
            .await?;
        self.carry_out(entry, plan, ops, report).await
    }

    /// Refuses an undo where HEAD, or a ref that the apply moved, is not where
    /// the apply left it.
    async fn refuse_moved(
        &self,
        request: &UndoRequest,
        resource: &Resource,
        applied: &[Applied],
    ) -> PortResult<Option<Checkout>> {
        if resource.kind != ResourceType::GitCheckout {
            return Ok(None);
        }
        let checkout = self.checkout_there(resource).await?;
        for applied in applied {
            let landing = applied.payload.landing.clone();
            let on_tree = !applied.ops.is_empty();
            if let Some(landing) = landing {
                self.parts
                    .git
                    .may_unland(checkout.clone(), landing.into())
                    .await?;
            }
            let Some(head) = applied.payload.head.as_ref().filter(|_| on_tree) else {
                continue;
            };
            if head.branch == checkout.branch || request.onto_current {
                continue;
            }
            let name =
                |branch: &Option<String>| branch.clone().unwrap_or_else(|| "no branch".into());
            let message = format!(
                "undo in {}: HEAD is on {}, and was on {} when the plan was applied",
                resource.root.path.display(),
                name(&checkout.branch),
                name(&head.branch)
            );
            return Err(PortError::new(Code::HeadMoved, message));
        }
        Ok(Some(checkout))
    }

    /// Decides what takes `applied` back, the newest first, on the real tree
    /// as it is now. Writes nothing to it.
    async fn rewind(&self, resource: &Resource, applied: &[Applied]) -> PortResult<Decision> {
        let steps: Vec<Vec<Change>> = applied
            .iter()
            .rev()
            .map(|applied| inverse(&applied.ops))
            .collect();
        if let [changes] = &*steps {
            return self.decide(&resource.root, resource.kind, changes).await;
        }
        let paths: BTreeSet<RelPath> = steps
            .iter()
            .flat_map(|changes| paths_to_observe(changes))
            .collect();
        let paths: Vec<RelPath> = paths.into_iter().collect();
        let found = self
            .parts
            .targets
            .observe(resource.root.clone(), paths.clone())
            .await?;
        let before: Present = paths.into_iter().zip(found).collect();
        let mut now = before.clone();
        let mut warnings = Vec::new();
        for changes in &steps {
            let decision = self.judge(resource.kind, changes, &now).await?;
            let Ok(ops) = decision.ops() else {
                return Ok(decision);
            };
            warnings.extend(decision.warnings.iter().cloned());
            replay(&mut now, ops);
        }
        // From what is there to what all of them together come to.
        let changes: Vec<Change> = now
            .into_iter()
            .filter_map(|(path, new)| {
                let old = before.get(&path).copied().flatten();
                Change::between(path, old, new)
            })
            .collect();
        let mut decision = self.judge(resource.kind, &changes, &before).await?;
        warnings.sort_unstable();
        warnings.dedup();
        decision.warnings = warnings;
        Ok(decision)
    }

    /// Makes sure that all content is in the store, from where it is kept if
    /// need be. Errors: `kept_gone`, naming each path.
    async fn gather(&self, name: &str, ops: &[PathOp], applied: &[Applied]) -> PortResult<()> {
        let needed: Vec<(usize, &RelPath, Entry)> = ops
            .iter()
            .enumerate()
            .filter_map(|(index, op)| match op {
                PathOp::Create { path, new } | PathOp::Replace { path, new, .. } => {
                    Some((index, path, *new))
                }
                _ => None,
            })
            .collect();
        let hashes = needed.iter().map(|(_, _, entry)| entry.hash).collect();
        let missing: BTreeSet<_> = self
            .parts
            .objects
            .missing(hashes)
            .await?
            .into_iter()
            .collect();
        let sources = sources(ops, applied);
        let mut gone = Vec::new();
        for (index, path, entry) in needed {
            if !missing.contains(&entry.hash) {
                continue;
            }
            let what = Takeout {
                entry,
                at: sources.get(&index).cloned(),
            };
            match self.parts.targets.read_out(what).await {
                Ok(bytes) => drop(self.parts.objects.put(vec![bytes]).await?),
                Err(error) if error.code == Code::KeptGone => gone.push(path.to_string()),
                Err(error) => return Err(error),
            }
        }
        if gone.is_empty() {
            return Ok(());
        }
        let message = format!(
            "undo plan {name}: what was replaced is kept nowhere any more: {}",
            gone.join(", ")
        );
        Err(PortError::new(Code::KeptGone, message).with_subjects(gone))
    }

    /// Makes the sandbox of an applied plan again, as it was last (STR-9).
    async fn make_again(&self, plan: &PlanRecord, sandbox: &SandboxRecord) -> PortResult<()> {
        if sandbox.state == SandboxState::Ready {
            return Ok(());
        }
        let marked = SandboxRecord {
            state: SandboxState::Restoring,
            ..sandbox.clone()
        };
        self.parts.store.update_sandbox(marked.clone()).await?;
        self.finish_return(plan, &marked).await
    }

    /// Makes this process the driver of a plan that stays in its state.
    pub(crate) async fn seize(&self, plan: &PlanRecord) -> PortResult<PlanRecord> {
        let mark = PlanMark {
            state: plan.plan.mark.state,
            owner: Some(self.parts.runner.owner()),
        };
        self.swap(plan, mark).await
    }

    /// Lets a plan rest in its state.
    pub(crate) async fn let_go(&self, plan: &PlanRecord) -> PortResult<PlanRecord> {
        let mark = PlanMark {
            state: plan.plan.mark.state,
            owner: None,
        };
        self.swap(plan, mark).await
    }
}

/// Finds, for each operation of an undo, what the applies keep of it: where
/// several displaced something at one path, the first has what was there
/// before all of them.
pub(super) fn sources(ops: &[PathOp], applied: &[Applied]) -> BTreeMap<usize, PathBuf> {
    let mut kept: BTreeMap<&RelPath, Vec<(&PathOp, PathBuf)>> = BTreeMap::new();
    for applied in applied {
        for (index, op) in applied.ops.iter().enumerate() {
            let at = applied.payload.job.join("kept").join(index.to_string());
            kept.entry(op.path()).or_default().push((op, at));
        }
    }
    let mut out = BTreeMap::new();
    for (index, op) in ops.iter().enumerate() {
        let brings = |earlier: &PathOp| match (op, earlier) {
            (
                PathOp::Create { new, .. } | PathOp::Replace { new, .. },
                PathOp::Replace { old, .. } | PathOp::Remove { old, .. },
            )
            | (PathOp::SetMode { new, .. }, PathOp::SetMode { old, .. }) => new == old,
            (PathOp::MakeDir { .. }, PathOp::RemoveDir { .. }) => true,
            _ => false,
        };
        let found = kept
            .get(op.path())
            .and_then(|all| all.iter().find(|(earlier, _)| brings(earlier)));
        if let Some((_, at)) = found {
            out.insert(index, at.clone());
        }
    }
    out
}

fn report_of(
    plan: PlanRecord,
    resource: Resource,
    outcome: Outcome,
    decision: &Decision,
) -> ApplyReport {
    let mut report = empty(plan, resource, outcome);
    match decision.ops() {
        Ok(ops) => report.ops = ops.to_vec(),
        Err(conflicts) => {
            report.outcome = Outcome::Conflict;
            report.conflicts = conflicts.iter().map(describe).collect();
        }
    }
    report.warnings = decision.warnings.iter().map(warn).collect();
    report.already = decision.already.clone();
    report
}
