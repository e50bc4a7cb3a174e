//! `apply`: freeze, decide, and hand over to the journal entry that carries
//! the decision out.

use std::time::Duration;

use sandbar_domain::journal::JournalKind;
use sandbar_domain::plan::{PlanEvent, PlanState};
use sandbar_domain::resource::{Resource, ResourceType, Root};
use sandbar_domain::{Change, Code, Hash, RelPath};
use sandbar_ports::git::{Began, Checkout, Landfall, Landing, LandingRequest};
use sandbar_ports::store::{JournalQuery, PlanRecord, SandboxRecord};
use sandbar_ports::target::RootLock;
use sandbar_ports::{PortError, PortResult};

use super::decide::{describe, warn};
use super::part::Part;
use super::payload::{Payload, SavedHead};
use super::report::{ApplyReport, ApplyRequest, Outcome, Resulting};
use crate::Sandbar;
use crate::config::Cleanup;
use crate::plans::refuse_unsettled;

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
        refuse_commit_of_a_part(&request, &plan)?;
        let resource = self.resource_of(&sandbox).await?;
        if request.dry_run {
            let plan_state = self.capture_state(&sandbox).await?;
            return self
                .rehearse(&request, plan, &sandbox, resource, plan_state.tree)
                .await;
        }
        let plan = self.take_up(&plan, PlanEvent::Apply).await?;
        // Another process may have applied a part before this one drove it.
        let sandbox = self.live_sandbox(&plan).await?;
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
                    let event = self.refusal(&plan).await?;
                    let _ = self.lay_down(&plan, event).await;
                }
                Err(error)
            }
        }
    }

    /// Takes the lock of a root, waiting for other applies: they are short,
    /// and the decision is made under the lock, on what they left.
    pub(crate) async fn lock_root(&self, root: &Root) -> PortResult<Box<dyn RootLock>> {
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

    /// Says whether no entry of a plan is open.
    pub(crate) async fn is_settled(&self, plan: &PlanRecord) -> bool {
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
        let checkout = self.checkout_for(request, sandbox, &resource).await?;
        let base = self.base_of(sandbox).await?.tree;
        let (changes, _) = self.changes_to_apply(base, result).await?;
        let part = self.part_of(request, sandbox, &resource, changes)?;
        let decision = self
            .decide(&resource.root, resource.kind, &part.changes)
            .await?;
        let mut report = empty(plan, resource, Outcome::DryRun);
        report.rest = part.paths_of_rest();
        match decision.ops() {
            Ok(ops) => report.ops = ops.to_vec(),
            Err(conflicts) => {
                report.outcome = Outcome::Conflict;
                report.conflicts = conflicts.iter().map(describe).collect();
            }
        }
        report.warnings = decision.warnings.iter().map(warn).collect();
        if let Some(checkout) = &checkout {
            let lands = request.resulting != Resulting::Uncommitted;
            let left = self.left_inside(sandbox, checkout, lands).await?;
            report.warnings.extend(left);
        }
        report.already = decision.already;
        Ok(report)
    }

    /// Says what was made with git inside and is not brought (APL-10).
    async fn left_inside(
        &self,
        sandbox: &SandboxRecord,
        checkout: &Checkout,
        landed: bool,
    ) -> PortResult<Vec<String>> {
        let mut began = Began {
            landed,
            ..Began::default()
        };
        if let Some(git) = self.base_of(sandbox).await?.git {
            let files = ["packed-refs", "config"].map(|name| RelPath::new(name).expect("a name"));
            let found = self.parts.objects.lookup(git, files.to_vec()).await?;
            for (entry, into) in found
                .into_iter()
                .zip([&mut began.packed_refs, &mut began.config])
            {
                if let Some(entry) = entry {
                    *into = self.parts.objects.get(entry.hash).await?;
                }
            }
        }
        let root = sandbox.place.join("r");
        let left = self
            .parts
            .git
            .left_inside(root, checkout.clone(), began)
            .await?;
        Ok(left
            .into_iter()
            .map(|what| format!("stays inside: {what}"))
            .collect())
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
        let part = self.part_of(request, sandbox, resource, changes)?;
        let Part { changes, rest } = &part;
        let open = self
            .unsettled(sandbox, state.tree, |path| {
                !rest.iter().any(|change| change.path == *path)
            })
            .await?;
        if !open.is_empty() {
            return Err(refuse_unsettled(&plan.plan.name, open));
        }
        let onto_tree = !matches!(request.resulting, Resulting::Branch(..));
        let decision = match onto_tree {
            true => self.decide(&resource.root, resource.kind, changes).await?,
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
        report.rest = part.paths_of_rest();
        let ops = match decision.ops() {
            Ok(ops) => ops.to_vec(),
            Err(conflicts) => {
                report.conflicts = conflicts.iter().map(describe).collect();
                report.outcome = Outcome::Conflict;
                let event = self.refusal(plan).await?;
                report.plan = self.lay_down(plan, event).await?;
                return Ok((report, state.tree));
            }
        };
        let landing = self
            .landing(request, sandbox, checkout.as_ref(), changes)
            .await?;
        if let Some(checkout) = &checkout {
            let lands = request.resulting != Resulting::Uncommitted;
            let left = self.left_inside(sandbox, checkout, lands).await?;
            report.warnings.extend(left);
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
        let payload = Payload {
            landing: landing.map(Into::into),
            head: checkout.as_ref().map(SavedHead::of),
            rest: !rest.is_empty(),
            rebase: match rest.is_empty() {
                true => None,
                false => Some(self.base_after(sandbox, changes).await?),
            },
            ..Payload::on(&resource.root)
        };
        let entry = self
            .open_entry(JournalKind::Apply, plan, &ops, &kept, payload)
            .await?;
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
        let path = &resource.root.path;
        let checkout = self.checkout_there(resource).await?;
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

    /// Returns what git says of a checkout, which it must still be.
    pub(crate) async fn checkout_there(&self, resource: &Resource) -> PortResult<Checkout> {
        let path = &resource.root.path;
        let found = self.parts.git.discover(path.clone()).await?;
        found
            .filter(|checkout| checkout.root == *path)
            .ok_or_else(|| {
                let message = format!(
                    "apply to {}: it is no git checkout any more",
                    path.display()
                );
                PortError::new(Code::NotARepository, message)
            })
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
}

/// Refuses commits where a part is applied as uncommitted changes: which of
/// them belong to the commit could not be told.
fn refuse_commit_of_a_part(request: &ApplyRequest, plan: &PlanRecord) -> PortResult<()> {
    if request.resulting == Resulting::Uncommitted {
        return Ok(());
    }
    let name = &plan.plan.name;
    let refused = |why: &str, hint: String| {
        let message = format!("commit the result of plan {name}: {why}");
        Err(PortError::new(Code::CommitRefused, message).with_hint(hint))
    };
    if !request.paths.is_empty() {
        let hint = format!(
            "bring the part as uncommitted changes: `sandbar apply {name} -- PATH`; or all of it as commits"
        );
        return refused("only a part of it was asked for", hint);
    }
    if plan.plan.mark.state == PlanState::PartiallyApplied {
        let hint = format!("apply the rest without it, or `sandbar undo {name}` first");
        return refused("a part of it is applied already, uncommitted", hint);
    }
    Ok(())
}

pub(super) fn empty(plan: PlanRecord, resource: Resource, outcome: Outcome) -> ApplyReport {
    ApplyReport {
        plan,
        resource,
        outcome,
        ops: Vec::new(),
        already: Vec::new(),
        rest: Vec::new(),
        conflicts: Vec::new(),
        warnings: Vec::new(),
        kept: None,
        commits: Vec::new(),
    }
}
