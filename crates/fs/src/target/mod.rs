//! Writing to the real resource: stage, execute, undo (APL-4, APL-5).
//!
//! It must never write outside the root and the job's own directory, resolve
//! a path through a symlink, or overwrite bytes that it did not put there
//! itself (the journalled in-place write of APL-5 excepted, which says so).
//!
//! How far an operation is shows in the target and in its slot, never in a
//! record of its own, so every call can be made again after a crash:
//!
//! | operation | slot before | slot after |
//! |---|---|---|
//! | replace | `new/i`: the new file | `new/i`: what was displaced |
//! | create, make directory | `new/i`: the new file or directory | gone |
//! | remove | `old/i`: nothing | `old/i`: what was displaced |
//! | remove directory | `new/i`: an empty twin, target there | target gone |
//! | set mode | `new/i`: a link whose text is both modes | the same |
//!
//! `old` is made by the first `execute`: a job without it was never executed.
//! `settle` renames it to `kept`, `sweep` to `left`: such a job is over. In
//! `kept/i` then lies what operation `i` displaced: a file or symlink; of a
//! directory an empty twin; of a mode the link with both.

mod carry;
mod contents;
mod execute;
mod forget;
mod in_place;
mod job;
mod kept;
mod look;
mod observe;
mod outcome;
mod place;
mod preflight;
mod settle;
mod stage;
mod undo;

use std::path::PathBuf;
use std::sync::Arc;

use async_trait::async_trait;
use sandbar_domain::apply::PathOp;
use sandbar_domain::resource::Root;
use sandbar_domain::{Code, Entry, RelPath};
use sandbar_ports::target::{Executed, Job, Kept, KeptFile, KeptPlace, RootLock, Takeout, Targets};
use sandbar_ports::{PortError, PortResult};

use crate::sys::{self, Errno, FileLock, fail};

pub use contents::Contents;

/// Real roots, written with content of an object store.
#[derive(Clone)]
pub struct FsTargets {
    core: Arc<Core>,
}

/// What the synchronous cores need.
struct Core {
    contents: Arc<dyn Contents>,
    /// Below the data directory: the first choice for displaced bytes.
    kept: PathBuf,
}

impl FsTargets {
    /// Writes content of `contents`; displaced bytes go to `<data>/kept` where
    /// that lies on the mount of the root.
    pub fn new(contents: Arc<dyn Contents>, data: PathBuf) -> Self {
        Self {
            core: Arc::new(Core {
                contents,
                kept: data.join("kept"),
            }),
        }
    }

    async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Core) -> PortResult<T> + Send + 'static,
    ) -> PortResult<T> {
        let core = Arc::clone(&self.core);
        match tokio::task::spawn_blocking(move || work(&core)).await {
            Ok(result) => result,
            Err(error) => Err(PortError::new(
                Code::Internal,
                format!("write the target: {error}"),
            )),
        }
    }
}

impl RootLock for FileLock {}

#[async_trait]
impl Targets for FsTargets {
    async fn lock(&self, root: Root) -> PortResult<Box<dyn RootLock>> {
        self.run(move |_| {
            let dir = sys::open_root(&root)?;
            match sys::try_lock_exclusive(dir) {
                Ok(lock) => Ok(Box::new(lock) as Box<dyn RootLock>),
                Err(Errno::AGAIN) => Err(PortError::new(
                    Code::RootBusy,
                    format!("lock {}: another apply holds it", root.path.display()),
                )),
                Err(errno) => Err(fail("lock", root.path.display(), errno)),
            }
        })
        .await
    }

    async fn observe(&self, root: Root, paths: Vec<RelPath>) -> PortResult<Vec<Option<Entry>>> {
        self.run(move |core| observe::observe(&*core.contents, &root, &paths))
            .await
    }

    async fn preflight(
        &self,
        root: Root,
        git_common_dir: Option<PathBuf>,
        ops: Vec<PathOp>,
    ) -> PortResult<KeptPlace> {
        self.run(move |core| preflight::preflight(core, &root, git_common_dir, &ops))
            .await
    }

    async fn stage(&self, job: Job) -> PortResult<()> {
        self.run(move |core| stage::stage(&*core.contents, &job))
            .await
    }

    async fn execute(&self, job: Job) -> PortResult<Executed> {
        self.run(move |_| execute::execute(&job)).await
    }

    async fn undo(&self, job: Job) -> PortResult<Executed> {
        self.run(move |_| undo::undo(&job)).await
    }

    async fn sweep(&self, job: Job) -> PortResult<()> {
        self.run(move |_| settle::sweep(&job)).await
    }

    async fn settle(&self, job: Job) -> PortResult<Vec<Kept>> {
        self.run(move |core| settle::settle(&*core.contents, &job))
            .await
    }

    async fn kept(&self, job: Job) -> PortResult<Vec<KeptFile>> {
        self.run(move |_| kept::list(&job)).await
    }

    async fn read_out(&self, what: Takeout) -> PortResult<Vec<u8>> {
        self.run(move |core| kept::read_out(&*core.contents, &what))
            .await
    }

    async fn copy_out(&self, what: Takeout, to: PathBuf) -> PortResult<()> {
        self.run(move |core| kept::copy_out(&*core.contents, &what, &to))
            .await
    }

    async fn forget(&self, dir: PathBuf) -> PortResult<()> {
        self.run(move |_| forget::forget(&dir)).await
    }
}
