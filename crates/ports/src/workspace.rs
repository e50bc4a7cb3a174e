//! Sandbox roots: create, scan, restore, remove. The workspace engine of
//! section 12 seen from the use cases (STR-2).

use std::path::PathBuf;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use sandbar_domain::resource::Root;
use sandbar_domain::{Hash, Kind, RelPath};

use crate::cancel::Cancel;
use crate::error::PortResult;
use crate::progress::Progress;
use crate::rules::CarryRules;

/// Makes and keeps sandbox roots.
#[async_trait]
pub trait Workspaces: Send + Sync {
    /// Resolves a directory to a root. Errors: `path_not_found`, and
    /// `root_refused` for `/` and for a root that holds the data directory or
    /// lies within it.
    async fn identify(&self, path: PathBuf) -> PortResult<Root>;

    /// Looks at every place on the way from `/` to a path, the path itself
    /// last; its parent is resolved, it is not, unless `follow`. Says of each
    /// directory whether something called `mark` is in it. Lists nothing.
    /// Errors: `path_not_found`, `unsupported_entry` for a name that is not
    /// UTF-8.
    async fn look(&self, path: PathBuf, mark: String, follow: bool) -> PortResult<Vec<Place>>;

    /// Resolves a directory inside a sandbox that this engine made. Errors:
    /// `sandbox_gone`.
    async fn identify_own(&self, path: PathBuf) -> PortResult<Root>;

    /// Reserves a short, unique directory for a sandbox: its root will be
    /// `<place>/r`, its own files lie beside it. Nothing exists in it yet.
    async fn reserve(&self) -> PortResult<PathBuf>;

    /// Copies the exact state of `source` into the new directory `dest`, and
    /// makes that state a durable tree, in one pass (PLN-5). Content, mode
    /// bits and times are preserved. On failure `dest` does not exist.
    async fn create(&self, request: Create) -> PortResult<Created>;

    /// Makes a directory of explicit parts (a private git directory). On
    /// failure `dest` does not exist.
    async fn assemble(&self, request: Assemble) -> PortResult<()>;

    /// Scans `root` completely and makes its state a durable tree (CKP-6).
    /// With `install` false nothing is stored and only the hash is right.
    async fn capture(&self, request: Capture) -> PortResult<Captured>;

    /// Makes `root` hold exactly `tree`: content, kinds, deletions, creations
    /// (CKP-4). What is ignored under the rules stays. A missing root is made.
    /// What changes gets the current time; what does not keeps its own.
    async fn restore(&self, request: Restore) -> PortResult<Restored>;

    /// Removes the root, the caches and temporary files of a sandbox, but not
    /// its pool of immutable files (every directory but `<place>/o`), so that
    /// [`Workspaces::restore`] can make the root again (STR-9). Idempotent.
    async fn retire(&self, place: PathBuf) -> PortResult<()>;

    /// Removes the sandbox directory `place` and nothing else; a second call
    /// does nothing. Refuses a place that `reserve` did not make.
    async fn remove(&self, place: PathBuf) -> PortResult<()>;

    /// Lists the sandbox directories that exist, for `gc` and `doctor`.
    async fn places(&self) -> PortResult<Vec<PathBuf>>;
}

/// One place on the way to a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// Its path, and what that leads to.
    pub root: Root,
    /// What it is; none for what has no canonical form.
    pub kind: Option<Kind>,
    /// It is a directory in which the mark lies.
    pub marked: bool,
}

/// What [`Workspaces::create`] is asked to do.
#[derive(Clone)]
pub struct Create {
    /// The real root.
    pub source: Root,
    /// The sandbox root to make.
    pub dest: PathBuf,
    /// Names at the top of `source` that are no part of it (`.git`).
    pub hidden: Vec<String>,
    /// What belongs to it.
    pub rules: Arc<dyn CarryRules>,
    /// Where progress goes.
    pub progress: Arc<dyn Progress>,
    /// Set by Ctrl-C.
    pub cancel: Cancel,
}

/// What [`Workspaces::create`] did.
#[derive(Debug)]
pub struct Created {
    /// The directory object of the state that was copied.
    pub tree: Hash,
    /// The new root.
    pub root: Root,
    /// What was counted.
    pub tally: Tally,
    /// Every file and symlink with what `lstat` says of the original and of
    /// the copy; sorted by path. The git adapter writes the index from it.
    pub files: Arc<[CopiedFile]>,
    /// What is still under way.
    pub sealing: Sealing,
}

/// The end of a creation: what was copied is being made durable while others
/// go on. Until it is waited for, nothing that names the new tree may be
/// recorded, no file that was copied may change, and the sandbox directory may
/// not be removed.
// The lock is never contended; it lets a creation be looked at from several
// threads.
pub struct Sealing(Mutex<Option<Work>>);

type Work = Pin<Box<dyn Future<Output = PortResult<()>> + Send>>;

impl Sealing {
    /// Wraps work under way; it must go on whether it is waited for or not.
    pub fn new(work: impl Future<Output = PortResult<()>> + Send + 'static) -> Self {
        Self(Mutex::new(Some(Box::pin(work))))
    }

    /// Nothing is left to do.
    pub fn done() -> Self {
        Self(Mutex::new(None))
    }

    /// Waits until what was copied is durable.
    pub async fn wait(&mut self) -> PortResult<()> {
        let work = self
            .0
            .get_mut()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        match work {
            Some(work) => work.await,
            None => Ok(()),
        }
    }
}

impl std::fmt::Debug for Sealing {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Sealing")
    }
}

/// One copied file or symlink.
#[derive(Debug, Clone)]
pub struct CopiedFile {
    /// Where, in both roots.
    pub path: RelPath,
    /// The content.
    pub hash: Hash,
    /// What `lstat` says of the original.
    pub source: FileStat,
    /// What `lstat` says of the copy.
    pub copy: FileStat,
}

/// What `lstat` says, as far as git's index and the stat cache need it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct FileStat {
    /// Device.
    pub dev: u64,
    /// Inode.
    pub ino: u64,
    /// The whole mode word.
    pub mode: u32,
    /// Owner.
    pub uid: u32,
    /// Group.
    pub gid: u32,
    /// Bytes.
    pub size: u64,
    /// Nanoseconds since 1970 of the last change of content.
    pub mtime_ns: i128,
    /// Nanoseconds since 1970 of the last change of the inode.
    pub ctime_ns: i128,
}

/// What a scan met.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Tally {
    /// Files and symlinks carried.
    pub files: u64,
    /// Directories carried.
    pub directories: u64,
    /// Bytes of the files carried.
    pub bytes: u64,
    /// Paths ignored; an ignored directory counts once.
    pub ignored: u64,
    /// The first of the ignored paths, for hints; at most 1,000.
    pub ignored_paths: Vec<String>,
    /// Entries that cannot be carried (FIFO, socket, device, name that is not
    /// UTF-8), with the reason. In `create` such an entry is an error instead
    /// (ENV-3), unless it is ignored.
    pub unsupported: Vec<(String, String)>,
}

/// What [`Workspaces::assemble`] is asked to do.
#[derive(Debug, Clone, Default)]
pub struct Assemble {
    /// The directory to make.
    pub dest: PathBuf,
    /// A flat directory of further hard links to each file of `Link` parts,
    /// made durable; created when missing.
    pub pool: Option<PathBuf>,
    /// What goes in, in order.
    pub parts: Vec<Part>,
    /// Set by Ctrl-C.
    pub cancel: Cancel,
}

/// One part of an assembled directory.
#[derive(Debug, Clone)]
pub enum Part {
    /// An empty directory, parents included.
    Directory(RelPath),
    /// A file with this content.
    Write(RelPath, Vec<u8>),
    /// A copy of one regular file; skipped when the source does not exist.
    Copy {
        /// Absolute path of the source.
        from: PathBuf,
        /// Where it goes.
        to: RelPath,
    },
    /// A copy of a directory with all beneath, less the names at its top in
    /// `except`; skipped when the source does not exist.
    CopyTree {
        /// Absolute path of the source.
        from: PathBuf,
        /// Where it goes.
        to: RelPath,
        /// Names at the top to leave out.
        except: Vec<String>,
    },
    /// Hard links to immutable files (git objects): the whole directory, less
    /// the relative paths in `except`. A file that cannot be linked is cloned,
    /// else copied. The name in the pool is the path below `from` with `/`
    /// replaced by `!`. Temporary files (`tmp_*`) and locks are left out.
    Link {
        /// Absolute path of the source.
        from: PathBuf,
        /// Where it goes.
        to: RelPath,
        /// Relative paths to leave out.
        except: Vec<String>,
    },
}

/// What [`Workspaces::capture`] is asked to do.
#[derive(Clone)]
pub struct Capture {
    /// The root to scan. Errors: `sandbox_gone` if the path leads elsewhere.
    pub root: Root,
    /// Names at the top that are no part of it.
    pub hidden: Vec<String>,
    /// What belongs to it.
    pub rules: Arc<dyn CarryRules>,
    /// The name of the stat cache: one per root and kind of scan.
    pub cache: CacheKey,
    /// Whether new content is stored durably.
    pub install: bool,
    /// Where progress goes.
    pub progress: Arc<dyn Progress>,
    /// Set by Ctrl-C.
    pub cancel: Cancel,
}

/// Names a stat cache: a file beside the sandbox root. A cache is never
/// believed where the stat of a file could hide a change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CacheKey {
    /// No cache: read everything.
    None,
    /// `<place>/<name>`.
    Named {
        /// The sandbox directory that `reserve` made.
        place: PathBuf,
        /// The name of the file, such as `tree.cache`.
        name: &'static str,
    },
}

/// What [`Workspaces::capture`] found.
#[derive(Debug, Clone)]
pub struct Captured {
    /// The directory object of the state.
    pub tree: Hash,
    /// What was counted.
    pub tally: Tally,
}

/// What [`Workspaces::restore`] is asked to do.
#[derive(Clone)]
pub struct Restore {
    /// The path of the root.
    pub path: PathBuf,
    /// The tree it is to hold.
    pub tree: Hash,
    /// Names at the top that are left alone.
    pub hidden: Vec<String>,
    /// What is ignored is left alone.
    pub rules: Arc<dyn CarryRules>,
    /// The stat cache, brought up to date. What is being written lies in its
    /// place until it is whole; without one, beside the root.
    pub cache: CacheKey,
    /// Flat pool of immutable files to link back as [`Part::Link`] put them
    /// there: `(pool, directory below the root)`.
    pub pool: Option<(PathBuf, RelPath)>,
    /// Where progress goes.
    pub progress: Arc<dyn Progress>,
    /// Set by Ctrl-C; looked at before the first write only.
    pub cancel: Cancel,
}

/// What [`Workspaces::restore`] did.
#[derive(Debug, Clone)]
pub struct Restored {
    /// The root as it is now (its inode may be new).
    pub root: Root,
    /// Paths written.
    pub written: u64,
    /// Paths removed.
    pub removed: u64,
    /// Directories that stayed because they hold ignored files.
    pub kept_directories: Vec<RelPath>,
}
