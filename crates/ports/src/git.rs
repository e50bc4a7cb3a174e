//! git, without a git process: discovery, private git directories, hidden
//! checkpoint refs, landing commits (STR-1, APL-10).

use std::path::PathBuf;
use std::sync::Arc;

use async_trait::async_trait;
use sandbar_domain::resource::Root;
use sandbar_domain::{Change, Hash, Kind, PlanId, RelPath};

use crate::error::PortResult;
use crate::rules::CarryRules;
use crate::workspace::{CopiedFile, Part};

/// Reads checkouts, and writes objects and refs.
#[async_trait]
pub trait GitState: Send + Sync {
    /// Finds the checkout that encloses `start`; `None` outside one. Errors:
    /// `repository_refused` with the reason for what cannot be sandboxed.
    async fn discover(&self, start: PathBuf) -> PortResult<Option<Checkout>>;

    /// Says what the repository of a working tree with this root is; none
    /// where its `.git` is no repository. Judges nothing: also what cannot be
    /// sandboxed is described.
    async fn outline(&self, root: PathBuf) -> PortResult<Option<Outline>>;

    /// Finds the commit that `rev` names, as a start for a clean base (PLN-5).
    /// Errors: `usage` for a text that names none.
    async fn resolve(&self, checkout: Checkout, rev: String) -> PortResult<Start>;

    /// Reads the state that a base needs to hold still: HEAD, refs, index.
    async fn fingerprint(&self, checkout: Checkout) -> PortResult<Hash>;

    /// Makes the rules of a real checkout: index, ignore files, exclude file,
    /// `core.excludesFile`, `.worktreeinclude` and `includes` (gitignore
    /// syntax). `track_ignored` carries everything.
    async fn rules(&self, request: RulesRequest) -> PortResult<Arc<dyn GitRules>>;

    /// Makes the rules of a sandbox: a path is ignored only if both the base
    /// rules (as [`GitRules::save`] saved them) and the current ones of the
    /// private git directory ignore it (CKP-6). Nothing is read before the
    /// first path is judged; what fails then is [`CarryRules::fault`].
    async fn sandbox_rules(
        &self,
        root: PathBuf,
        saved: Hash,
        contents: Arc<dyn Contents>,
    ) -> PortResult<Arc<dyn GitRules>>;

    /// Makes the rules of the private git directory itself: objects that are
    /// in the pool, hidden refs and locks are no part of its state.
    async fn state_rules(&self, pool: PathBuf) -> PortResult<Arc<dyn CarryRules>>;

    /// Says what the private git directory of a sandbox consists of. Reads
    /// the checkout, writes nothing. Errors, with a clean start:
    /// `repository_refused` for submodules that lie at another commit.
    async fn private(&self, request: PrivateRequest) -> PortResult<PrivateGit>;

    /// Says whether two index files (raw bytes) hold the same entries, so
    /// that refreshed stat data alone is no change.
    async fn same_index(&self, a: Vec<u8>, b: Vec<u8>) -> PortResult<bool>;

    /// Writes a commit of a checkpoint on `refs/sandbar/<plan>/<seq>` in the
    /// private git directory. Needs no identity; runs no hook or filter.
    async fn hide(&self, request: HideRequest) -> PortResult<String>;

    /// Removes hidden refs of pruned checkpoints.
    async fn unhide(&self, root: PathBuf, plan: PlanId, sequence: Vec<u64>) -> PortResult<()>;

    /// Describes what was made with git inside and is not in the repository:
    /// branches, tags, notes and stashes that are new, moved or deleted, and
    /// changed configuration; for people: `branch topic: 2 commits` (APL-10).
    async fn left_inside(
        &self,
        root: PathBuf,
        checkout: Checkout,
        began: Began,
    ) -> PortResult<Vec<String>>;

    /// Prepares commits of a result in the user's repository: writes objects,
    /// moves no ref. Errors: `head_moved`, `commit_refused`, `drift`.
    async fn prepare_landing(&self, request: LandingRequest) -> PortResult<Landing>;

    /// Moves the refs and index entries of a prepared landing; idempotent.
    async fn land(&self, checkout: Checkout, landing: Landing) -> PortResult<()>;

    /// Says whether a landing can be taken back: each ref is where it was put,
    /// or back already, and nothing is checked out that would go. Errors:
    /// `head_moved`, `git_locked`.
    async fn may_unland(&self, checkout: Checkout, landing: Landing) -> PortResult<()>;

    /// Takes a landing back; idempotent.
    async fn unland(&self, checkout: Checkout, landing: Landing) -> PortResult<()>;
}

/// Rules that can be saved with a sandbox.
pub trait GitRules: CarryRules {
    /// Returns the rules met so far, ignore files included, so that they can
    /// be made again without the tree they came from.
    fn save(&self) -> Vec<u8>;

    /// Says whether a path is in the index.
    fn is_tracked(&self, path: &RelPath) -> bool;

    /// Says whether an include pattern brings a path, itself or with a
    /// directory above it.
    fn is_included(&self, path: &RelPath) -> bool;

    /// Returns the include patterns, one a line.
    fn includes(&self) -> String;
}

/// A repository as its working tree names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outline {
    /// Its git directory, absolute and resolved.
    pub git_dir: PathBuf,
    /// Where `.gitmodules` says that submodules lie, checked out or not;
    /// sorted.
    pub submodules: Vec<RelPath>,
}

/// A checkout that can be sandboxed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Checkout {
    /// The working tree's root, absolute and resolved.
    pub root: PathBuf,
    /// Its git directory.
    pub git_dir: PathBuf,
    /// The git directory shared by all worktrees.
    pub common_dir: PathBuf,
    /// The full name of the branch that HEAD is on, born or not.
    pub branch: Option<String>,
    /// The commit of HEAD; none when unborn.
    pub head: Option<String>,
    /// What a person should know: sparse, shallow, a merge in progress.
    pub notes: Vec<String>,
}

/// The commit that a clean base starts from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Start {
    /// Its id.
    pub commit: String,
    /// The full name of the local branch that was named, if one was.
    pub branch: Option<String>,
}

/// What [`GitState::rules`] is asked for.
#[derive(Debug, Clone)]
pub struct RulesRequest {
    /// The real checkout.
    pub checkout: Checkout,
    /// Patterns of `--include`.
    pub includes: Vec<String>,
    /// Carry ignored files too.
    pub track_ignored: bool,
}

/// What [`GitState::private`] is asked for.
#[derive(Debug, Clone)]
pub struct PrivateRequest {
    /// The real checkout.
    pub checkout: Checkout,
    /// The sandbox root.
    pub root: Root,
    /// The sandbox directory, for the pool and borrowed objects.
    pub place: PathBuf,
    /// Where the objects of the repository are pinned, if they are borrowed
    /// and not taken along (STR-1).
    pub pins: Option<PathBuf>,
    /// What was copied, with stats.
    pub files: Arc<[CopiedFile]>,
    /// Keep remotes usable for pushing.
    pub allow_push: bool,
    /// Start from a commit instead of the working state.
    pub clean: Option<Clean>,
}

/// A clean start.
#[derive(Debug, Clone)]
pub struct Clean {
    /// Where from.
    pub start: Start,
    /// Untracked files that were asked for and stay, sorted.
    pub keep: Vec<RelPath>,
}

/// What a private git directory consists of.
#[derive(Debug, Clone, Default)]
pub struct PrivateGit {
    /// The parts of `<root>/.git`.
    pub parts: Vec<Part>,
    /// The parts of the directory of pins.
    pub pins: Vec<Part>,
    /// Binds the in-place view needs: `(what, where)`.
    pub binds: Vec<(PathBuf, PathBuf)>,
    /// What a person should know, such as filters that are missing.
    pub notes: Vec<String>,
    /// With a clean start: what the copied files lack of the commit, sorted
    /// by path.
    pub changes: Vec<Wanted>,
}

/// A path, and what is to be at it; none: nothing. A directory is one that
/// must be there though nothing is in it.
pub type Wanted = (RelPath, Option<(Kind, Vec<u8>)>);

/// What [`GitState::hide`] is asked for.
#[derive(Debug, Clone)]
pub struct HideRequest {
    /// The sandbox root.
    pub root: PathBuf,
    /// The plan.
    pub plan: PlanId,
    /// The number of the checkpoint.
    pub sequence: u64,
    /// The hidden commit before, if there is one: parent and start of its tree.
    pub parent: Option<String>,
    /// With a parent: what changed since. Without: everything in the tree,
    /// unless `copied` says it.
    pub changes: Vec<Change>,
    /// Without a parent: everything in the root that was copied just now, with
    /// stats that still hold; sorted by path.
    pub copied: Option<Arc<[CopiedFile]>>,
    /// The content of changed files and symlink targets by hash.
    pub contents: Arc<dyn Contents>,
    /// The pool of the sandbox's immutable objects: those of hidden commits
    /// are linked into it, so that no rollback takes them away.
    pub pool: Option<PathBuf>,
    /// The message.
    pub message: String,
    /// Seconds since 1970.
    pub time: i64,
}

/// Reads objects without waiting; called from a blocking thread.
pub trait Contents: Send + Sync + std::fmt::Debug {
    /// Returns the bytes of one object, verified.
    fn read(&self, hash: Hash) -> PortResult<Vec<u8>>;
}

/// What a private git directory was when it was made, and what of it lands.
#[derive(Debug, Clone, Default)]
pub struct Began {
    /// Its `packed-refs`, in which all branches and tags were.
    pub packed_refs: Vec<u8>,
    /// Its `config`.
    pub config: Vec<u8>,
    /// The branch that HEAD is on inside is brought as commits: it is not left.
    pub landed: bool,
}

/// Where a result lands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Landfall {
    /// Commits on the current branch.
    Commit,
    /// Commits on a new branch; HEAD stays.
    Branch(String),
}

/// What [`GitState::prepare_landing`] is asked for.
#[derive(Debug, Clone)]
pub struct LandingRequest {
    /// The real checkout.
    pub checkout: Checkout,
    /// The sandbox root with its private git directory.
    pub root: PathBuf,
    /// HEAD of the checkout at base; none when unborn.
    pub base_head: Option<String>,
    /// The branch of HEAD at base.
    pub base_branch: Option<String>,
    /// Where to.
    pub to: Landfall,
    /// Allow another branch than at base.
    pub onto_current: bool,
    /// Allow paths under filters and repositories that require signing.
    pub allow_filters: bool,
    /// The message of the commit for what the agent did not commit.
    pub message: String,
    /// What the plan changed in the tree, base to result.
    pub changes: Vec<Change>,
    /// The content of changed files.
    pub contents: Arc<dyn Contents>,
    /// Seconds since 1970.
    pub time: i64,
}

/// Commits whose objects are in the repository, and the refs to move.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Landing {
    /// Refs: full name, value before (none: must not exist), value after.
    pub refs: Vec<(String, Option<String>, String)>,
    /// The commits, oldest first.
    pub commits: Vec<String>,
    /// HEAD of before and after where index entries equal to the old HEAD
    /// move to the new one.
    pub index: Option<(Option<String>, String)>,
    /// What a person should know before it happens.
    pub notes: Vec<String>,
}
