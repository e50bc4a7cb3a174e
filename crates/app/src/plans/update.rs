//! `update`: brings the person's newer state into a sandbox (APL-3). What both
//! sides changed is merged; what cannot be stands in the sandbox, both
//! versions whole, to be settled there. The real tree is only read.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use std::sync::Arc;

use sandbar_domain::apply::{
    Conflict, Facts, Observed, PathOp, Reason, Warning, paths_to_observe, plan_ops, triage,
};
use sandbar_domain::merge::{MergeConflict, has_markers, merge3, merge3_marked};
use sandbar_domain::plan::PlanEvent;
use sandbar_domain::resource::{Resource, ResourceType};
use sandbar_domain::tree::{build, empty};
use sandbar_domain::{Change, Code, Entry, Hash, Kind, RelPath};
use sandbar_ports::git::RulesRequest;
use sandbar_ports::rules::{CarryRules, Everything};
use sandbar_ports::store::{PlanRecord, SandboxRecord, SandboxState};
use sandbar_ports::workspace::{CacheKey, Capture, Captured};
use sandbar_ports::{PortError, PortResult};

use super::capture::{State, hidden_of};
use super::run::Settings;
use crate::Sandbar;

/// How often a real tree whose git state changes meanwhile is read anew.
const ATTEMPTS: u32 = 5;

/// What an update did.
#[derive(Debug, Clone)]
pub struct UpdateReport {
    /// The plan, in review.
    pub plan: PlanRecord,
    /// The boundary.
    pub resource: Resource,
    /// Paths that changed inside.
    pub brought: Vec<RelPath>,
    /// Paths to be settled inside.
    pub unsettled: Vec<Unsettled>,
    /// The checkpoint before; the same as after where nothing changed.
    pub before: u64,
    /// The checkpoint after.
    pub after: u64,
    /// What a person should hear.
    pub warnings: Vec<String>,
}

/// A path that both sides changed and that could not be merged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unsettled {
    /// Where.
    pub path: RelPath,
    /// Why: a word of the output contract.
    pub reason: String,
    /// The file beside it that holds the person's version; none where the file
    /// itself has markers, or where the person's version is that it is gone.
    pub beside: Option<RelPath>,
}

/// What the sandbox will hold.
struct Outcome {
    tree: BTreeMap<RelPath, Entry>,
    brought: Vec<RelPath>,
    unsettled: Vec<Unsettled>,
    warnings: Vec<String>,
}

impl Sandbar {
    /// Brings what changed in the real tree since the base into the sandbox of
    /// a plan; the base becomes the present real state. Errors: `head_moved`,
    /// `drift` while an earlier update is to be settled, `unstable_file`.
    pub async fn update(&self, plan: &str, cwd: &Path) -> PortResult<UpdateReport> {
        self.recover_dead().await?;
        let plan = self.find_plan(plan, cwd).await?;
        self.refuse_busy(&plan)?;
        refuse_clean_start(&plan)?;
        self.live_sandbox(&plan).await?;
        let plan = self.take_up(&plan, PlanEvent::Rework).await?;
        match self.catch_up(&plan).await {
            Ok(report) => {
                let plan = self.lay_down(&plan, PlanEvent::Finish).await?;
                Ok(UpdateReport { plan, ..report })
            }
            Err(error) => {
                let _ = self.lay_down(&plan, PlanEvent::Finish).await;
                Err(error)
            }
        }
    }

    async fn catch_up(&self, plan: &PlanRecord) -> PortResult<UpdateReport> {
        let sandbox = self.live_sandbox(plan).await?;
        let resource = self.resource_of(&sandbox).await?;
        let (before, state) = self.save(plan, &sandbox, "before update").await?;
        let open = self.unsettled(&sandbox, state.tree, |_| true).await?;
        if !open.is_empty() {
            return Err(refuse_unsettled(&plan.plan.name, open));
        }
        // Nothing is half-applied while this is held.
        let _lock = self.lock_root(&resource.root).await?;
        let mut report = UpdateReport {
            plan: plan.clone(),
            resource: resource.clone(),
            brought: Vec::new(),
            unsettled: Vec::new(),
            before: before.sequence,
            after: before.sequence,
            warnings: self.refuse_elsewhere_now(&sandbox, &resource).await?,
        };
        let real = self.real_state(plan, &sandbox, &resource).await?;
        for (path, reason) in &real.tally.unsupported {
            report.warnings.push(format!("left out: {path}: {reason}"));
        }
        let base = self.base_of(&sandbox).await?;
        let all = self.parts.objects.diff(base.tree, real.tree).await?;
        let all = self.still_there(&resource, all).await?;
        if all.is_empty() {
            return Ok(report);
        }
        // What comes may lie where git ignores something inside.
        let (before, state) = match all.iter().any(|change| change.old.is_none()) {
            true => {
                self.save_over(plan, &sandbox, "before update", &[real.tree])
                    .await?
            }
            false => (before, state),
        };
        report.before = before.sequence;
        let rebase = self.base_after(&sandbox, &all).await?;
        let (changes, nested) = self.without_nested_git(base.tree, all).await?;
        for dir in nested {
            report.warnings.push(format!(
                "{dir} is a repository of its own: its files are brought, its commits are not"
            ));
        }
        let outcome = self.merge_into(&state, &changes, resource.kind).await?;
        report.warnings.extend(outcome.warnings);
        let built = build(outcome.tree).map_err(|error| {
            PortError::new(Code::Internal, format!("make the updated tree: {error}"))
        })?;
        self.parts.objects.put(built.objects).await?;
        let moved = SandboxRecord {
            base: Some(rebase.to()?),
            unsettled: sandbox
                .unsettled
                .iter()
                .cloned()
                .chain(outcome.unsettled.iter().filter_map(Unsettled::witness))
                .collect(),
            ..sandbox.clone()
        };
        let state = State {
            tree: built.root,
            ..state
        };
        let message = Some(format!("{} paths brought in", outcome.brought.len()));
        // The checkpoint first: a crash after the next step goes on from it.
        let (after, _) = self.record(plan, &moved, &state, "update", message).await?;
        let marked = SandboxRecord {
            state: SandboxState::Restoring,
            ..moved
        };
        self.parts.store.update_sandbox(marked.clone()).await?;
        if let Err(error) = self.finish_return(plan, &marked).await {
            self.put_back(plan, &sandbox, &before).await;
            return Err(error);
        }
        report.brought = outcome.brought;
        report.unsettled = outcome.unsettled;
        report.after = after.sequence;
        Ok(report)
    }

    /// Scans the real tree as a base is scanned, of one moment with git's own
    /// state.
    async fn real_state(
        &self,
        plan: &PlanRecord,
        sandbox: &SandboxRecord,
        resource: &Resource,
    ) -> PortResult<Captured> {
        let capture = |rules: Arc<dyn CarryRules>| {
            self.parts.workspaces.capture(Capture {
                root: resource.root.clone(),
                hidden: hidden_of(sandbox),
                rules,
                cache: CacheKey::Named {
                    place: sandbox.place.clone(),
                    name: "update.cache",
                },
                install: true,
                progress: self.around.progress.clone(),
                cancel: self.around.cancel.clone(),
            })
        };
        if resource.kind != ResourceType::GitCheckout {
            return capture(Arc::new(Everything)).await;
        }
        let settings = settings_of(plan)?;
        let checkout = self.checkout_there(resource).await?;
        for _ in 0..ATTEMPTS {
            let before = self.parts.git.fingerprint(checkout.clone()).await?;
            let rules = self
                .parts
                .git
                .rules(RulesRequest {
                    checkout: checkout.clone(),
                    includes: settings.includes.clone(),
                    track_ignored: settings.track_ignored,
                })
                .await?;
            let captured = capture(rules).await?;
            if self.parts.git.fingerprint(checkout.clone()).await? == before {
                return Ok(captured);
            }
        }
        let root = resource.root.path.display();
        let message = format!("read {root}: its git state changed during each of {ATTEMPTS} tries");
        Err(PortError::new(Code::UnstableFile, message))
    }

    /// Leaves out what only seems to be deleted: a path that is there and no
    /// longer belongs, since the person made git ignore it.
    async fn still_there(
        &self,
        resource: &Resource,
        changes: Vec<Change>,
    ) -> PortResult<Vec<Change>> {
        let gone: Vec<RelPath> = changes
            .iter()
            .filter(|change| change.new.is_none())
            .map(|change| change.path.clone())
            .collect();
        let found = self
            .parts
            .targets
            .observe(resource.root.clone(), gone.clone())
            .await?;
        let there: Vec<RelPath> = gone
            .into_iter()
            .zip(found)
            .filter_map(|(path, entry)| entry.map(|_| path))
            .collect();
        Ok(changes
            .into_iter()
            .filter(|change| !(change.new.is_none() && there.contains(&change.path)))
            .collect())
    }

    /// Decides what the sandbox comes to hold: the person's changes on top of
    /// the plan's.
    async fn merge_into(
        &self,
        state: &State,
        changes: &[Change],
        kind: ResourceType,
    ) -> PortResult<Outcome> {
        let objects = &self.parts.objects;
        let paths = paths_to_observe(changes);
        let found = objects.lookup(state.tree, paths.clone()).await?;
        let observed = Observed::new(paths, found);
        let facts = Facts {
            checkout: kind == ResourceType::GitCheckout,
            case_insensitive: false,
        };
        let triage = triage(changes, &observed, facts);
        let mut merged: HashMap<RelPath, Result<Hash, MergeConflict>> = HashMap::new();
        let mut marked = Vec::new();
        for request in &triage.merges {
            let base = objects.get(request.base).await?;
            let plan = objects.get(request.real).await?;
            let person = objects.get(request.result).await?;
            let outcome = match merge3(&base, &plan, &person) {
                Err(MergeConflict::Overlap) => {
                    let text = merge3_marked(&base, &plan, &person);
                    marked.push((request.path.clone(), Reason::Overlap));
                    text
                }
                other => other,
            };
            let outcome = match outcome {
                Ok(bytes) => Ok(objects.put(vec![bytes]).await?[0]),
                Err(conflict) => Err(conflict),
            };
            merged.insert(request.path.clone(), outcome);
        }
        // Conflicts stop no update: they go inside, one by one.
        let mut triage = triage;
        let mut conflicts = std::mem::take(&mut triage.conflicts);
        triage
            .merges
            .retain(|request| match merged.get(&request.path) {
                Some(Err(conflict)) => {
                    conflicts.push(Conflict {
                        path: request.path.clone(),
                        reason: (*conflict).into(),
                    });
                    false
                }
                _ => true,
            });
        let decision = plan_ops(triage, &merged);
        let warnings = decision
            .warnings
            .iter()
            .filter(|warning| !marked.iter().any(|(path, _)| path == warning.path()))
            .map(|warning| match warning {
                Warning::ParentMade(path) => {
                    format!("made the directory again, which the plan had removed: {path}")
                }
                other => crate::apply::warn(other),
            })
            .collect();
        let ops = decision.into_ops().expect("every conflict was set aside");
        let mut out = Outcome {
            tree: self.listed(state.tree).await?,
            brought: ops.iter().map(|op| op.path().clone()).collect(),
            unsettled: Vec::new(),
            warnings,
        };
        perform(&mut out.tree, &ops);
        for (path, reason) in marked {
            out.unsettled.push(Unsettled {
                path,
                reason: reason.word().to_owned(),
                beside: None,
            });
        }
        conflicts.sort_unstable();
        for conflict in conflicts {
            self.leave_inside(conflict, changes, &mut out).await?;
        }
        out.brought.sort_unstable();
        out.brought.dedup();
        out.unsettled.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(out)
    }

    /// Leaves both versions of one path inside: as text with markers where
    /// both made one, else the person's beside the plan's.
    async fn leave_inside(
        &self,
        conflict: Conflict,
        changes: &[Change],
        out: &mut Outcome,
    ) -> PortResult<()> {
        let Conflict { path, reason } = conflict;
        let theirs = changes
            .iter()
            .find(|change| change.path == path)
            .and_then(|change| change.new);
        let ours = out.tree.get(&path).copied();
        let mut beside = None;
        match (ours, theirs) {
            (Some(ours), Some(theirs))
                if reason == Reason::BothAdded && ours.kind.is_file() && theirs.kind.is_file() =>
            {
                let (a, b) = (
                    self.parts.objects.get(ours.hash).await?,
                    self.parts.objects.get(theirs.hash).await?,
                );
                match merge3_marked(b"", &a, &b) {
                    Ok(text) => {
                        let hash = self.parts.objects.put(vec![text]).await?[0];
                        out.tree.insert(path.clone(), Entry::new(ours.kind, hash));
                        out.brought.push(path.clone());
                    }
                    Err(_) => beside = put_beside(&path, theirs, &mut out.tree),
                }
            }
            (_, Some(theirs)) if theirs.kind != Kind::Directory => {
                beside = put_beside(&path, theirs, &mut out.tree);
            }
            // A directory has no content of its own, and what is gone has none.
            _ => {}
        }
        // Here is the sandbox, in this decision; the words say it as apply's do.
        let reason = match reason {
            Reason::DeletedHere => Reason::DeletedInResult,
            Reason::DeletedInResult => Reason::DeletedHere,
            other => other,
        };
        out.unsettled.push(Unsettled {
            path,
            reason: reason.word().to_owned(),
            beside,
        });
        Ok(())
    }

    /// Lists a tree with its directories, each hollow.
    pub(crate) async fn listed(&self, tree: Hash) -> PortResult<BTreeMap<RelPath, Entry>> {
        let hollow = |entry: Entry| match entry.kind {
            Kind::Directory => Entry::new(Kind::Directory, empty()),
            _ => entry,
        };
        Ok(self
            .parts
            .objects
            .list(tree)
            .await?
            .into_iter()
            .map(|(path, entry)| (path, hollow(entry)))
            .collect())
    }

    /// Names the conflicts of updates that still stand in a tree.
    pub(crate) async fn unsettled(
        &self,
        sandbox: &SandboxRecord,
        tree: Hash,
        concerns: impl Fn(&RelPath) -> bool,
    ) -> PortResult<Vec<RelPath>> {
        let asked: Vec<_> = sandbox
            .unsettled
            .iter()
            .filter(|(path, witness)| concerns(path) || concerns(witness))
            .collect();
        if asked.is_empty() {
            return Ok(Vec::new());
        }
        let witnesses = asked.iter().map(|(_, witness)| witness.clone()).collect();
        let found = self.parts.objects.lookup(tree, witnesses).await?;
        let mut open = Vec::new();
        for ((path, witness), entry) in asked.into_iter().zip(found) {
            let Some(entry) = entry else { continue };
            let stands = if path != witness {
                true
            } else if entry.kind.is_file() {
                has_markers(&self.parts.objects.get(entry.hash).await?)
            } else {
                false
            };
            if stands {
                open.push(witness.clone());
            }
        }
        Ok(open)
    }

    /// Refuses where HEAD is on another branch than at base; says where it is
    /// at another commit.
    async fn refuse_elsewhere_now(
        &self,
        sandbox: &SandboxRecord,
        resource: &Resource,
    ) -> PortResult<Vec<String>> {
        if resource.kind != ResourceType::GitCheckout {
            return Ok(Vec::new());
        }
        let checkout = self.checkout_there(resource).await?;
        let name = |branch: &Option<String>| branch.clone().unwrap_or_else(|| "no branch".into());
        if checkout.branch != sandbox.base_branch {
            let message = format!(
                "update from {}: HEAD is on {}, and was on {} when the plan began",
                resource.root.path.display(),
                name(&checkout.branch),
                name(&sandbox.base_branch)
            );
            return Err(PortError::new(Code::HeadMoved, message)
                .with_hint("switch back to that branch, then update again"));
        }
        if checkout.head == sandbox.base_head {
            return Ok(Vec::new());
        }
        Ok(vec![format!(
            "{} has new commits: their files are brought, and show as uncommitted changes inside, where HEAD stays",
            name(&checkout.branch)
        )])
    }
}

impl Unsettled {
    /// Returns what is remembered: the path and the file that shows it.
    fn witness(&self) -> Option<(RelPath, RelPath)> {
        match (&self.beside, self.reason.as_str()) {
            (Some(beside), _) => Some((self.path.clone(), beside.clone())),
            (None, "overlap" | "both_added") => Some((self.path.clone(), self.path.clone())),
            // The person deleted what the plan changed: nothing shows that.
            (None, _) => None,
        }
    }
}

/// Refuses to go on over what an update left to be settled.
pub(crate) fn refuse_unsettled(plan: &str, open: Vec<RelPath>) -> PortError {
    let names: Vec<String> = open.iter().map(ToString::to_string).collect();
    let message = format!(
        "use plan {plan}: an update left conflicts inside: {}",
        names.join(", ")
    );
    PortError::new(Code::Drift, message)
        .with_subjects(names)
        .with_hint(format!(
            "settle them inside (`sandbar shell {plan}`): edit what has markers, remove what ends in .theirs"
        ))
}

fn settings_of(plan: &PlanRecord) -> PortResult<Settings> {
    serde_json::from_str(&plan.plan.settings).map_err(|error| {
        let message = format!("read the settings of plan {}", plan.plan.name);
        PortError::new(Code::CorruptStore, message).with_source(error)
    })
}

/// The base of such a plan is a commit: everything uncommitted would come as
/// a change of the person's.
fn refuse_clean_start(plan: &PlanRecord) -> PortResult<()> {
    if settings_of(plan)?.start.is_none() {
        return Ok(());
    }
    let name = &plan.plan.name;
    let message = format!("update plan {name}: it started clean, from a commit");
    Err(PortError::new(Code::NotAvailable, message)
        .with_hint("begin another plan, or bring commits in with git inside"))
}

/// Performs operations on a list of paths.
fn perform(tree: &mut BTreeMap<RelPath, Entry>, ops: &[PathOp]) {
    for op in ops {
        match op {
            PathOp::MakeDir { path } => {
                tree.insert(path.clone(), Entry::new(Kind::Directory, empty()));
            }
            PathOp::Create { path, new }
            | PathOp::Replace { path, new, .. }
            | PathOp::SetMode { path, new, .. } => {
                tree.insert(path.clone(), *new);
            }
            PathOp::Remove { path, .. } => {
                tree.remove(path);
            }
            PathOp::RemoveDir { path } => {
                // One in which the plan has something stays.
                let inside = |other: &RelPath| other != path && other.is_within(path);
                if !tree.range(path.clone()..).skip(1).any(|(at, _)| inside(at)) {
                    tree.remove(path);
                }
            }
        }
    }
}

/// Puts the person's version beside, under a name that is free.
fn put_beside(
    path: &RelPath,
    theirs: Entry,
    tree: &mut BTreeMap<RelPath, Entry>,
) -> Option<RelPath> {
    // Where what should be a directory above is none, at the nearest that is.
    let mut dir = path.parent();
    while let Some(above) = &dir {
        if tree
            .get(above)
            .is_some_and(|entry| entry.kind == Kind::Directory)
        {
            break;
        }
        dir = above.parent();
    }
    let name = path.name();
    let beside = (0u32..).find_map(|number| {
        let name = match number {
            0 => format!("{name}.theirs"),
            number => format!("{name}.{number}.theirs"),
        };
        let at = RelPath::child(dir.as_ref(), &name).ok()?;
        (!tree.contains_key(&at)).then_some(at)
    })?;
    tree.insert(beside.clone(), theirs);
    Some(beside)
}
