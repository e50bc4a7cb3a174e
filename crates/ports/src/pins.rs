//! Immutable files (git objects) that a sandbox needs and that lie on another
//! file system: shared where that can be done, copied where they are few, else
//! borrowed, and pinned by hard links beside the originals (STR-1). Pins are
//! known from the sandbox directory alone, so that no crash makes them orphans.

use std::path::PathBuf;

use async_trait::async_trait;

use crate::cancel::Cancel;
use crate::error::PortResult;
use crate::workspace::Part;

/// Shares, pins and releases immutable files.
#[async_trait]
pub trait Pins: Send + Sync {
    /// Finds out, by doing it with one file, how files come into a sandbox.
    /// What could not be tried is said to be copied.
    async fn share(&self, request: ShareRequest) -> PortResult<Sharing>;

    /// Makes `request.dir` a durable directory of the `Link` parts, and notes
    /// it with the sandbox first. What is there of an earlier try is replaced.
    async fn pin(&self, request: Pin) -> PortResult<()>;

    /// Removes the pins of a sandbox; a second call does nothing.
    /// `Workspaces::remove` does the same.
    async fn unpin(&self, place: PathBuf) -> PortResult<()>;

    /// Returns where the pins of a sandbox are, and whether they are there.
    async fn pins_of(&self, place: PathBuf) -> PortResult<Option<(PathBuf, bool)>>;

    /// Lists pins below `holder` that this data directory made for sandboxes
    /// that are gone; removes them unless `dry_run`.
    async fn sweep(&self, holder: PathBuf, dry_run: bool) -> PortResult<Vec<PathBuf>>;
}

/// What [`Pins::share`] is asked for.
#[derive(Debug, Clone)]
pub struct ShareRequest {
    /// The sandbox directory.
    pub place: PathBuf,
    /// The directory with the files.
    pub from: PathBuf,
    /// Where pins may be made; none where they would be of no use.
    pub holder: Option<PathBuf>,
    /// Up to how many bytes are copied rather than pinned.
    pub small: u64,
}

/// How immutable files come into a sandbox.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Sharing {
    /// By hard link or as a clone that shares extents.
    Shared,
    /// By copy.
    Copied {
        /// How much that is.
        bytes: u64,
    },
    /// Not at all: they are borrowed, and pinned in this directory, which is
    /// empty yet and noted with the sandbox.
    Pinned {
        /// The directory.
        dir: PathBuf,
        /// How much is borrowed.
        bytes: u64,
    },
}

/// What [`Pins::pin`] is asked to do.
#[derive(Debug, Clone)]
pub struct Pin {
    /// The sandbox directory.
    pub place: PathBuf,
    /// The directory that [`Pins::share`] named.
    pub dir: PathBuf,
    /// What goes in: directories and links.
    pub parts: Vec<Part>,
    /// Set by Ctrl-C.
    pub cancel: Cancel,
}
