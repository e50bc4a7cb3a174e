//! Making the sandbox of a plan at first access (PLN-2, PLN-5).

use std::path::PathBuf;
use std::sync::Arc;

use sandbar_domain::resource::{ResourceType, Strategy};
use sandbar_domain::snapshot::Snapshot;
use sandbar_domain::{Change, Code, Entry, Hash, RelPath};
use sandbar_ports::exec::View;
use sandbar_ports::git::{
    Checkout, GitRules, HideRequest, PrivateGit, PrivateRequest, RulesRequest, Start,
};
use sandbar_ports::rules::{CarryRules, Everything};
use sandbar_ports::store::{
    CheckpointPart, NewCheckpoint, PlanRecord, SandboxRecord, SandboxState,
};
use sandbar_ports::workspace::{Assemble, CopiedFile, Create, Created, Sealing};
use sandbar_ports::{PortError, PortResult};

use super::capture::{GIT_DIR, OWN_DIR};
use super::clean::asked_for;
use super::locate::Located;
use super::run::Bring;
use crate::Sandbar;

/// How often a checkout that changes during the copy is copied anew.
const ATTEMPTS: u32 = 5;

/// What a base is made of.
#[derive(Debug, Clone)]
pub(crate) struct BaseOptions {
    pub(crate) bring: Bring,
    pub(crate) view: View,
    /// The commit to start from; none for the working state.
    pub(crate) start: Option<Start>,
}

/// What a hidden commit holds.
pub(crate) enum Content {
    /// What the hidden commit before has, with these changes.
    Since(String, Vec<Change>),
    /// What was copied just now.
    Copied(Arc<[CopiedFile]>),
    /// All of a tree.
    Whole(Vec<(RelPath, Entry)>),
}

impl Sandbar {
    /// Makes the sandbox of a plan. On failure nothing of it is left, the plan
    /// is forgotten, and the error is returned.
    pub(crate) async fn create_sandbox(
        &self,
        plan: &PlanRecord,
        located: &Located,
        options: &BaseOptions,
    ) -> PortResult<SandboxRecord> {
        let place = self.parts.workspaces.reserve().await?;
        match self.fill(plan, located, options, &place).await {
            Ok(sandbox) => Ok(sandbox),
            Err(error) => {
                // The first error is the one to report; what is left of the
                // place, if anything, is an orphan that `gc` finds.
                let _ = self.parts.workspaces.remove(place).await;
                let _ = self.drop_all_checkpoints(plan).await;
                let _ = self.parts.store.forget_plan(plan.plan.id).await;
                Err(error)
            }
        }
    }

    async fn fill(
        &self,
        plan: &PlanRecord,
        located: &Located,
        options: &BaseOptions,
        place: &std::path::Path,
    ) -> PortResult<SandboxRecord> {
        let checkout = located.checkout.as_ref();
        let mut sandbox = SandboxRecord {
            id: self.parts.names().sandbox(),
            plan: plan.plan.id,
            resource: located.resource.id,
            strategy: located.resource.kind.strategy(),
            state: SandboxState::Creating,
            place: place.to_path_buf(),
            root: None,
            view: options.view,
            base: None,
            base_branch: checkout.and_then(|c| c.branch.clone()),
            base_head: checkout.and_then(|c| c.head.clone()),
            rules: None,
            ignored: 0,
            binds: Vec::new(),
            unsettled: Vec::new(),
        };
        self.parts.store.add_sandbox(sandbox.clone()).await?;
        let (created, rules) = match checkout {
            Some(checkout) => {
                let (created, private, rules) = self
                    .copy_checkout(located, checkout, options, place)
                    .await?;
                sandbox.binds = private.binds;
                for note in checkout.notes.iter().chain(&private.notes) {
                    (self.around.say)(note);
                }
                (created, Some(rules))
            }
            None => {
                let mut created = self.copy(located, place, Arc::new(Everything)).await?;
                created.sealing.wait().await?;
                (created, None)
            }
        };
        sandbox.ignored = created.tally.ignored;
        if let Some(hint) = left_behind(&created.tally.ignored_paths) {
            (self.around.say)(&hint);
        }
        sandbox.root = Some(created.root.clone());
        if let Some(rules) = rules {
            let saved = self.parts.objects.put(vec![rules.save()]).await?;
            sandbox.rules = saved.first().copied();
        }
        let as_copied = options.start.is_none();
        self.first_checkpoint(plan, &mut sandbox, &created, as_copied)
            .await?;
        sandbox.state = SandboxState::Ready;
        self.parts.store.update_sandbox(sandbox.clone()).await?;
        Ok(sandbox)
    }

    async fn copy(
        &self,
        located: &Located,
        place: &std::path::Path,
        rules: Arc<dyn CarryRules>,
    ) -> PortResult<Created> {
        let hidden = match located.resource.kind {
            ResourceType::GitCheckout => vec![GIT_DIR.to_owned(), OWN_DIR.to_owned()],
            ResourceType::FsDirectory => vec![OWN_DIR.to_owned()],
        };
        let request = Create {
            source: located.resource.root.clone(),
            dest: place.join("r"),
            hidden,
            rules,
            progress: self.around.progress.clone(),
            cancel: self.around.cancel.clone(),
        };
        self.parts.workspaces.create(request).await
    }

    /// Copies the working state and makes the private git directory; starts
    /// over when git's own state moved meanwhile, since files, index and HEAD
    /// must be of one moment.
    async fn copy_checkout(
        &self,
        located: &Located,
        checkout: &Checkout,
        options: &BaseOptions,
        place: &std::path::Path,
    ) -> PortResult<(Created, PrivateGit, Arc<dyn GitRules>)> {
        let pins = self.pins_for(checkout, place).await?;
        for _ in 0..ATTEMPTS {
            let before = self.parts.git.fingerprint(checkout.clone()).await?;
            let request = RulesRequest {
                checkout: checkout.clone(),
                includes: options.bring.includes.clone(),
                track_ignored: options.bring.track_ignored,
            };
            let rules = self.parts.git.rules(request).await?;
            let mut created = self.copy(located, place, rules.clone()).await?;
            let request = PrivateRequest {
                checkout: checkout.clone(),
                root: created.root.clone(),
                place: place.to_path_buf(),
                pins: pins.clone(),
                files: created.files.clone(),
                allow_push: options.bring.allow_push,
                clean: options
                    .start
                    .clone()
                    .map(|start| asked_for(start, &created, &*rules)),
            };
            // The disk is waited for while git is put in order; both end
            // before anything else happens to the place.
            let mut sealing = std::mem::replace(&mut created.sealing, Sealing::done());
            let furnish = self.furnish(request, place, pins.clone());
            let (sealed, private) = tokio::join!(sealing.wait(), furnish);
            sealed?;
            let mut private = private?;
            if self.parts.git.fingerprint(checkout.clone()).await? == before {
                if options.start.is_none() {
                    return Ok((created, private, rules));
                }
                let changes = std::mem::take(&mut private.changes);
                let track = options.bring.track_ignored;
                let (created, rules) = self
                    .start_clean(place, checkout, created, changes, rules, track)
                    .await?;
                return Ok((created, private, rules));
            }
            self.parts.workspaces.retire(place.to_path_buf()).await?;
        }
        let message = format!(
            "copy {}: its git state changed during each of {ATTEMPTS} tries",
            located.resource.root.path.display()
        );
        Err(PortError::new(Code::UnstableFile, message))
    }

    /// Makes the private git directory.
    async fn furnish(
        &self,
        request: PrivateRequest,
        place: &std::path::Path,
        pins: Option<PathBuf>,
    ) -> PortResult<PrivateGit> {
        let mut private = self.parts.git.private(request).await?;
        self.pin(place, pins, &mut private).await?;
        let assemble = Assemble {
            dest: place.join("r").join(GIT_DIR),
            pool: Some(pool(place)),
            parts: std::mem::take(&mut private.parts),
            cancel: self.around.cancel.clone(),
        };
        self.parts.workspaces.assemble(assemble).await?;
        Ok(private)
    }

    /// Records the base: the first checkpoint, from which everything counts.
    async fn first_checkpoint(
        &self,
        plan: &PlanRecord,
        sandbox: &mut SandboxRecord,
        created: &Created,
        as_copied: bool,
    ) -> PortResult<()> {
        let mut commit = None;
        let mut git = None;
        if sandbox.strategy == Strategy::GitWorktree {
            let all = match as_copied {
                true => Content::Copied(created.files.clone()),
                false => Content::Whole(self.parts.objects.list(created.tree).await?),
            };
            commit = Some(self.hide(plan, sandbox, 1, all, "base").await?);
            git = Some(self.capture_git(sandbox).await?);
        }
        let base = Snapshot {
            base: None,
            tree: created.tree,
            git,
        };
        let id = self.store_snapshot(&base).await?;
        sandbox.base = Some(id);
        let checkpoint = NewCheckpoint {
            id: self.parts.names().checkpoint(),
            plan: plan.plan.id,
            parts: vec![CheckpointPart {
                sandbox: sandbox.id,
                snapshot: id,
                commit,
            }],
            message: None,
            step: "base".into(),
            created_ms: self.parts.clock.now_ms(),
        };
        self.parts.store.add_checkpoint(checkpoint).await?;
        Ok(())
    }

    /// Stores a snapshot object durably.
    pub(crate) async fn store_snapshot(&self, snapshot: &Snapshot) -> PortResult<Hash> {
        self.parts.objects.put(vec![snapshot.encode()]).await?;
        Ok(snapshot.id())
    }

    /// Writes the hidden commit of a checkpoint.
    pub(crate) async fn hide(
        &self,
        plan: &PlanRecord,
        sandbox: &SandboxRecord,
        sequence: u64,
        content: Content,
        message: &str,
    ) -> PortResult<String> {
        let (parent, changes, copied) = match content {
            Content::Since(parent, changes) => (Some(parent), changes, None),
            Content::Copied(files) => (None, Vec::new(), Some(files)),
            Content::Whole(listed) => {
                let all = listed.into_iter().map(|(path, entry)| Change {
                    path,
                    old: None,
                    new: Some(entry),
                });
                (None, all.collect(), None)
            }
        };
        let request = HideRequest {
            root: sandbox.place.join("r"),
            plan: plan.plan.id,
            sequence,
            parent,
            changes,
            copied,
            contents: self.parts.contents.clone(),
            pool: Some(pool(&sandbox.place)),
            message: format!("sandbar: {} #{sequence} {message}", plan.plan.name),
            time: self.parts.clock.now_ms() / 1000,
        };
        self.parts.git.hide(request).await
    }
}

/// Returns the pool of immutable git objects of a sandbox.
pub(crate) fn pool(place: &std::path::Path) -> PathBuf {
    place.join("o")
}

/// Well-known ignored paths that commands often need (PLN-5).
const WELL_KNOWN: [&str; 7] = [
    "node_modules",
    ".env",
    ".env.local",
    ".venv",
    "venv",
    "vendor",
    ".tox",
];

/// Names well-known ignored paths that were not carried along.
fn left_behind(ignored: &[String]) -> Option<String> {
    let mut known: Vec<&str> = ignored
        .iter()
        .map(|path| path.trim_end_matches('/'))
        .filter(|path| RelPath::new(path).is_ok_and(|path| WELL_KNOWN.contains(&path.name())))
        .collect();
    known.sort_by_key(|path| (path.matches('/').count(), *path));
    known.truncate(5);
    if known.is_empty() {
        return None;
    }
    let list = known.join(", ");
    Some(format!(
        "left behind, because git ignores it: {list} (bring it with --include PATTERN or .worktreeinclude)"
    ))
}

#[cfg(test)]
mod tests {
    use super::left_behind;

    #[test]
    fn hints_name_what_is_well_known_only() {
        let paths = ["a/node_modules/", "x.log", ".env", "node_modules"].map(String::from);
        let hint = left_behind(&paths).expect("some are well known");
        assert!(
            hint.contains(".env, node_modules, a/node_modules (bring"),
            "{hint}"
        );
        assert_eq!(left_behind(&["x.log".to_owned()]), None);
    }
}
