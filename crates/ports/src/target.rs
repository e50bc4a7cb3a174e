//! Writing to the real resource: stage, execute, undo (APL-4, APL-5).
//!
//! An apply makes one `Job`: a directory on the target's own file system that
//! receives the new files first and the displaced ones afterwards. The caller
//! records the durable intent between `stage` and `execute`. Every function
//! is idempotent: after a crash the same call, with the same job, goes on.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use async_trait::async_trait;
use sandbar_domain::apply::PathOp;
use sandbar_domain::resource::Root;
use sandbar_domain::{Entry, Hash, RelPath};

use crate::cancel::Cancel;
use crate::error::PortResult;
use crate::progress::Progress;

/// Changes real roots, and only when told to.
#[async_trait]
pub trait Targets: Send + Sync {
    /// Takes the apply lock of a root: an advisory lock on the directory
    /// itself, which dies with the process. Errors: `root_busy`. The lock is
    /// released when the value is dropped.
    async fn lock(&self, root: Root) -> PortResult<Box<dyn RootLock>>;

    /// Reads what is at each of `paths` in the real root now, in order;
    /// directories with the hash of the empty directory. Content that is new
    /// to the store is stored, so that a merge can read it. A path that leads
    /// through a symlink is reported as absent.
    async fn observe(&self, root: Root, paths: Vec<RelPath>) -> PortResult<Vec<Option<Entry>>>;

    /// Checks, without writing, that every operation can be done: permission,
    /// owner and attributes that must be carried, space, path safety, mounts
    /// inside, case clashes. All problems are reported at once, as subjects.
    async fn preflight(
        &self,
        root: Root,
        git_common_dir: Option<PathBuf>,
        ops: Vec<PathOp>,
    ) -> PortResult<KeptPlace>;

    /// Writes the new files into the job, durably; the root is untouched.
    async fn stage(&self, job: Job) -> PortResult<()>;

    /// Performs the operations that are not done yet. A path that is found to
    /// differ from what the operation replaces is put back, and reported.
    async fn execute(&self, job: Job) -> PortResult<Executed>;

    /// Takes back every operation that was done; the displaced files return.
    /// A path that someone else changed since is left and reported.
    async fn undo(&self, job: Job) -> PortResult<Executed>;

    /// Removes a job that was never executed, or whose operations were all
    /// undone; what it still keeps of others' bytes stays.
    async fn sweep(&self, job: Job) -> PortResult<()>;

    /// Ends an executed job: removes what was staged and not needed, makes
    /// the kept bytes durable, and returns what is kept. Of `sources`, the
    /// names of files that came back are removed: those bytes are displaced no
    /// more.
    async fn settle(&self, job: Job) -> PortResult<Vec<Kept>>;

    /// Lists the displaced files and symlinks that lie in a job, whatever
    /// became of it; none when it is gone. Reads no content, writes nothing.
    async fn kept(&self, job: Job) -> PortResult<Vec<KeptFile>>;

    /// Returns the bytes of a displaced file, or the target of a symlink: from
    /// where it is kept if it still matches its hash there, else from the
    /// content store. Errors: `kept_gone`.
    async fn read_out(&self, what: Takeout) -> PortResult<Vec<u8>>;

    /// Copies the same to `to`, durably, with mode and times where it is kept;
    /// missing directories above are made. Errors: `kept_gone`; `exists` when
    /// something is at `to`, which stays.
    async fn copy_out(&self, what: Takeout, to: PathBuf) -> PortResult<()>;

    /// Removes the directory of a job that is over, with all it keeps, once
    /// retention has ended (STR-9). What is gone already is fine. Errors:
    /// `path_escapes` for a directory that is not one of a kept place.
    async fn forget(&self, dir: PathBuf) -> PortResult<()>;
}

/// Held while a root is written.
pub trait RootLock: Send + Sync {}

/// Where displaced bytes of a root go: on the same mount.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeptPlace {
    /// The directory; made by `stage`.
    pub dir: PathBuf,
}

/// One apply on one root.
#[derive(Clone)]
pub struct Job {
    /// The real root.
    pub root: Root,
    /// The directory of this job below a kept place; unique.
    pub dir: PathBuf,
    /// What to do, in order; the index names the slot in `dir`.
    pub ops: Vec<PathOp>,
    /// For operations, by index, that bring back what an earlier job keeps:
    /// where that is. The very file comes back, with all it has, where it can
    /// be linked; else its content does.
    pub sources: BTreeMap<usize, PathBuf>,
    /// Where progress goes.
    pub progress: Arc<dyn Progress>,
    /// Set by Ctrl-C; looked at in `stage` only.
    pub cancel: Cancel,
}

/// What executing or undoing came to.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Executed {
    /// Paths done, by this call or before.
    pub done: Vec<RelPath>,
    /// Paths where another writer came first: what they hold stays.
    pub raced: Vec<RelPath>,
    /// Paths that could not be done, with the reason.
    pub failed: Vec<(RelPath, String)>,
    /// Directories left because others put something into them.
    pub left: Vec<RelPath>,
    /// Paths written in place, where an exchange is impossible (APL-5).
    pub in_place: Vec<RelPath>,
}

/// Displaced bytes of one path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kept {
    /// Where it was.
    pub path: RelPath,
    /// What it was.
    pub entry: Entry,
    /// Where its bytes are now.
    pub at: PathBuf,
    /// The content hash of what is kept, which differs from `entry` only
    /// where another writer came first.
    pub hash: Hash,
}

/// A displaced file or symlink that lies in a job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeptFile {
    /// The index of the operation that displaced it.
    pub index: usize,
    /// Where it was.
    pub path: RelPath,
    /// What the operation expected it to be.
    pub entry: Entry,
    /// Where its bytes are now.
    pub at: PathBuf,
    /// How many there are.
    pub size: u64,
}

/// Displaced or stored content that is asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Takeout {
    /// What it is.
    pub entry: Entry,
    /// Where it is kept, if it is.
    pub at: Option<PathBuf>,
}
