//! The state of a sandbox, found by a complete scan (CKP-6).

use std::path::PathBuf;
use std::sync::Arc;

use sandbar_domain::resource::{Root, Strategy};
use sandbar_domain::snapshot::Snapshot;
use sandbar_domain::{Code, Hash};
use sandbar_ports::rules::CarryRules;
use sandbar_ports::store::SandboxRecord;
use sandbar_ports::workspace::{CacheKey, Capture, Captured, Tally};
use sandbar_ports::{PortError, PortResult};

use super::create::pool;
use crate::Sandbar;

/// The git directory at the top of a checkout.
pub(crate) const GIT_DIR: &str = ".git";
/// Sandbar's own directory at the top of a real root, where nothing better is
/// on the same mount.
pub(crate) const OWN_DIR: &str = ".sandbar";

/// What a sandbox holds at one moment.
#[derive(Debug, Clone)]
pub(crate) struct State {
    /// The tree of the root.
    pub(crate) tree: Hash,
    /// The tree of the private git directory.
    pub(crate) git: Option<Hash>,
    /// What the scan met.
    pub(crate) tally: Tally,
}

impl Sandbar {
    /// Scans a sandbox completely and stores what is new.
    pub(crate) async fn capture_state(&self, sandbox: &SandboxRecord) -> PortResult<State> {
        self.capture_over(sandbox, &[]).await
    }

    /// The same, with what lies where `trees` have something, though it is
    /// ignored.
    pub(crate) async fn capture_over(
        &self,
        sandbox: &SandboxRecord,
        trees: &[Hash],
    ) -> PortResult<State> {
        let rules = self.rules_over(sandbox, trees).await?;
        let captured = self.capture_under(sandbox, rules).await?;
        let git = match sandbox.strategy {
            Strategy::GitWorktree => Some(self.capture_git(sandbox).await?),
            Strategy::CopyOnWrite => None,
        };
        Ok(State {
            tree: captured.tree,
            git,
            tally: captured.tally,
        })
    }

    /// Scans the files of a sandbox.
    pub(crate) async fn capture_tree(&self, sandbox: &SandboxRecord) -> PortResult<Captured> {
        let rules = self.rules_of(sandbox).await?;
        self.capture_under(sandbox, rules).await
    }

    async fn capture_under(
        &self,
        sandbox: &SandboxRecord,
        rules: Arc<dyn CarryRules>,
    ) -> PortResult<Captured> {
        let request = Capture {
            root: root_of(sandbox)?,
            hidden: hidden_of(sandbox),
            rules,
            cache: tree_cache(sandbox),
            install: true,
            progress: self.around.progress.clone(),
            cancel: self.around.cancel.clone(),
        };
        self.parts.workspaces.capture(request).await
    }

    /// Scans the private git directory of a sandbox.
    pub(crate) async fn capture_git(&self, sandbox: &SandboxRecord) -> PortResult<Hash> {
        let path = root_of(sandbox)?.path.join(GIT_DIR);
        let request = Capture {
            root: self.parts.workspaces.identify_own(path).await?,
            hidden: Vec::new(),
            rules: self.parts.git.state_rules(pool(&sandbox.place)).await?,
            cache: git_cache(sandbox),
            install: true,
            progress: Arc::new(sandbar_ports::Silent),
            cancel: self.around.cancel.clone(),
        };
        Ok(self.parts.workspaces.capture(request).await?.tree)
    }

    /// Returns the ignore rules of a sandbox.
    pub(crate) async fn rules_of(
        &self,
        sandbox: &SandboxRecord,
    ) -> PortResult<Arc<dyn CarryRules>> {
        self.rules_over(sandbox, &[]).await
    }

    /// Reads a snapshot object.
    pub(crate) async fn snapshot(&self, id: Hash) -> PortResult<Snapshot> {
        let bytes = self.parts.objects.get(id).await?;
        Snapshot::decode(&bytes).map_err(|error| {
            PortError::new(Code::CorruptObject, format!("read snapshot {id}: {error}"))
        })
    }

    /// Reads the base snapshot of a sandbox.
    pub(crate) async fn base_of(&self, sandbox: &SandboxRecord) -> PortResult<Snapshot> {
        let id = sandbox.base.ok_or_else(|| {
            PortError::new(
                Code::SandboxGone,
                "read the base: the sandbox was never finished",
            )
        })?;
        self.snapshot(id).await
    }
}

/// Returns the root of a sandbox, which must have been made.
pub(crate) fn root_of(sandbox: &SandboxRecord) -> PortResult<Root> {
    sandbox.root.clone().ok_or_else(|| {
        let place = sandbox.place.display();
        PortError::new(
            Code::SandboxGone,
            format!("use the sandbox in {place}: it has no root"),
        )
    })
}

/// Returns the names at the top that are no part of a sandbox's files.
pub(crate) fn hidden_of(sandbox: &SandboxRecord) -> Vec<String> {
    match sandbox.strategy {
        Strategy::GitWorktree => vec![GIT_DIR.to_owned(), OWN_DIR.to_owned()],
        Strategy::CopyOnWrite => vec![OWN_DIR.to_owned()],
    }
}

/// Names the stat cache of the files.
pub(crate) fn tree_cache(sandbox: &SandboxRecord) -> CacheKey {
    CacheKey::Named {
        place: sandbox.place.clone(),
        name: "tree.cache",
    }
}

/// Names the stat cache of the private git directory.
pub(crate) fn git_cache(sandbox: &SandboxRecord) -> CacheKey {
    CacheKey::Named {
        place: sandbox.place.clone(),
        name: "git.cache",
    }
}

/// Returns where the root of a sandbox is, made or not.
pub(crate) fn path_of(sandbox: &SandboxRecord) -> PathBuf {
    sandbox.place.join("r")
}
