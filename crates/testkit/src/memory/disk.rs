//! A file system in memory: absolute paths to nodes, shared by its clones.
//!
//! What holds at every moment: the parent of every node is a directory, so
//! that no path leads through a file or symlink. Nothing follows a symlink
//! but [`Disk::resolve`].

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::ops::Bound;
use std::os::unix::ffi::OsStringExt as _;
use std::path::{Component, Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use sandbar_domain::resource::Root;
use sandbar_domain::{Code, Entry, Hash, Kind, tree};
use sandbar_ports::{PortError, PortResult};

/// The device number of everything on the disk.
pub const DEVICE: u64 = 1;

/// What a node is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum What {
    /// A directory.
    Directory,
    /// A regular file.
    File {
        /// Its content.
        bytes: Vec<u8>,
        /// Its executable bit.
        executable: bool,
    },
    /// A symbolic link to these bytes.
    Symlink(Vec<u8>),
    /// A FIFO, socket or device: something that has no canonical form.
    Special,
}

impl What {
    /// Returns the canonical entry; a directory has the hash of the empty one.
    pub fn entry(&self) -> Option<Entry> {
        match self {
            Self::Directory => Some(Entry::new(Kind::Directory, tree::empty())),
            Self::File { bytes, executable } => {
                let kind = if *executable {
                    Kind::Executable
                } else {
                    Kind::File
                };
                Some(Entry::new(kind, Hash::of(bytes)))
            }
            Self::Symlink(target) => Some(Entry::new(Kind::Symlink, Hash::of(target))),
            Self::Special => None,
        }
    }

    /// Returns the bytes of a file or the target of a symlink.
    pub fn content(&self) -> Option<&[u8]> {
        match self {
            Self::File { bytes, .. } => Some(bytes),
            Self::Symlink(target) => Some(target),
            Self::Directory | Self::Special => None,
        }
    }

    /// Makes the node of an entry from its content.
    pub fn of(kind: Kind, bytes: Vec<u8>) -> Self {
        match kind {
            Kind::Directory => Self::Directory,
            Kind::File => Self::File {
                bytes,
                executable: false,
            },
            Kind::Executable => Self::File {
                bytes,
                executable: true,
            },
            Kind::Symlink => Self::Symlink(bytes),
        }
    }
}

/// One node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Node {
    /// What it is.
    pub what: What,
    /// Its inode number.
    pub inode: u64,
    /// When its content changed last, in ticks of the disk.
    pub mtime: u64,
}

/// A disk in memory.
#[derive(Debug, Clone)]
pub struct MemDisk(Arc<Mutex<Disk>>);

impl Default for MemDisk {
    fn default() -> Self {
        Self::new()
    }
}

impl MemDisk {
    /// Makes a disk with an empty root directory.
    pub fn new() -> Self {
        let mut disk = Disk {
            nodes: BTreeMap::new(),
            locks: BTreeSet::new(),
            read_only: BTreeSet::new(),
            ticks: 0,
        };
        let root = disk.node(What::Directory);
        disk.nodes.insert("/".into(), root);
        Self(Arc::new(Mutex::new(disk)))
    }

    /// Takes the disk: nobody else changes it meanwhile.
    pub fn hold(&self) -> MutexGuard<'_, Disk> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The disk, while it is held.
#[derive(Debug)]
pub struct Disk {
    nodes: BTreeMap<PathBuf, Node>,
    /// Inodes of directories that are locked.
    pub(super) locks: BTreeSet<u64>,
    /// Directories beneath which nothing can be written.
    pub(super) read_only: BTreeSet<PathBuf>,
    ticks: u64,
}

impl Disk {
    fn node(&mut self, what: What) -> Node {
        self.ticks += 1;
        Node {
            what,
            inode: self.ticks,
            mtime: self.ticks,
        }
    }

    /// Returns what is at `path`, never through a symlink.
    pub fn get(&self, path: &Path) -> Option<&Node> {
        self.nodes.get(path)
    }

    /// Says whether a directory is at `path`.
    pub fn is_dir(&self, path: &Path) -> bool {
        self.get(path)
            .is_some_and(|node| node.what == What::Directory)
    }

    /// Returns the names in a directory, sorted by bytes.
    pub fn names(&self, dir: &Path) -> Vec<OsString> {
        self.below(dir)
            .filter(|(path, _)| path.parent() == Some(dir))
            .filter_map(|(path, _)| Some(path.file_name()?.to_owned()))
            .collect()
    }

    /// Iterates over everything beneath a directory, parents first.
    pub fn below<'d>(&'d self, dir: &Path) -> impl Iterator<Item = (&'d PathBuf, &'d Node)> {
        let start = (Bound::Excluded(dir.to_owned()), Bound::Unbounded);
        let dir = dir.to_owned();
        self.nodes
            .range(start)
            .take_while(move |(path, _)| path.starts_with(&dir))
    }

    /// Puts a node where nothing is. Errors: `path_not_found` when its
    /// directory is not there, `io` when something is at `path`, `read_only`.
    pub fn add(&mut self, path: &Path, what: What) -> PortResult<()> {
        self.check_write(path)?;
        let parent = path.parent().unwrap_or(Path::new("/"));
        if !self.is_dir(parent) {
            return Err(fail(Code::PathNotFound, path, "its directory is not there"));
        }
        if self.nodes.contains_key(path) {
            return Err(fail(Code::Io, path, "something is there"));
        }
        let node = self.node(what);
        self.nodes.insert(path.to_owned(), node);
        Ok(())
    }

    /// Makes a directory and those above it that are missing.
    pub fn make_dirs(&mut self, path: &Path) -> PortResult<()> {
        if self.is_dir(path) {
            return Ok(());
        }
        if let Some(parent) = path.parent() {
            self.make_dirs(parent)?;
        }
        self.add(path, What::Directory)
    }

    /// Puts a node in the place of whatever is there; missing directories are
    /// made. The content of a file that stays a file changes in place.
    pub fn put(&mut self, path: &Path, what: What) -> PortResult<()> {
        self.check_write(path)?;
        let tick = self.ticks + 1;
        if let Some(node) = self.nodes.get_mut(path)
            && let (What::File { .. }, What::File { .. }) = (&node.what, &what)
        {
            self.ticks = tick;
            node.what = what;
            node.mtime = tick;
            return Ok(());
        }
        self.take_tree(path);
        if let Some(parent) = path.parent() {
            self.make_dirs(parent)?;
        }
        self.add(path, what)
    }

    /// Changes the executable bit of a file, and nothing else.
    pub fn set_executable(&mut self, path: &Path, to: bool) -> PortResult<()> {
        self.check_write(path)?;
        match self.nodes.get_mut(path).map(|node| &mut node.what) {
            Some(What::File { executable, .. }) => {
                *executable = to;
                Ok(())
            }
            _ => Err(fail(Code::PathNotFound, path, "no file is there")),
        }
    }

    /// Gives a node the time of change of another.
    pub(super) fn set_mtime(&mut self, path: &Path, mtime: u64) {
        if let Some(node) = self.nodes.get_mut(path) {
            node.mtime = mtime;
        }
    }

    /// Takes away whatever is at `path`, with all beneath; says whether
    /// something was there.
    pub fn remove(&mut self, path: &Path) -> PortResult<bool> {
        self.check_write(path)?;
        Ok(!self.take_tree(path).is_empty())
    }

    /// Renames a node with all beneath to a name that is free. Errors: as
    /// [`Disk::add`], and `path_not_found` when nothing is at `from`.
    pub fn rename(&mut self, from: &Path, to: &Path) -> PortResult<()> {
        self.check_write(from)?;
        self.check_write(to)?;
        if self.nodes.contains_key(to) {
            return Err(fail(Code::Io, to, "something is there"));
        }
        if !self.nodes.contains_key(from) {
            return Err(fail(Code::PathNotFound, from, "nothing is there"));
        }
        let parent = to.parent().unwrap_or(Path::new("/"));
        if !self.is_dir(parent) || to.starts_with(from) {
            return Err(fail(Code::PathNotFound, to, "its directory is not there"));
        }
        let tree = self.take_tree(from);
        self.plant(from, to, tree);
        Ok(())
    }

    /// Exchanges two nodes with all beneath. Errors: `path_not_found`.
    pub fn exchange(&mut self, a: &Path, b: &Path) -> PortResult<()> {
        self.check_write(a)?;
        self.check_write(b)?;
        for path in [a, b] {
            if !self.nodes.contains_key(path) || path.starts_with(a) && path.starts_with(b) {
                return Err(fail(Code::PathNotFound, path, "nothing to exchange"));
            }
        }
        let (left, right) = (self.take_tree(a), self.take_tree(b));
        self.plant(a, b, left);
        self.plant(b, a, right);
        Ok(())
    }

    fn take_tree(&mut self, path: &Path) -> Vec<(PathBuf, Node)> {
        let mut paths: Vec<PathBuf> = self.below(path).map(|(path, _)| path.clone()).collect();
        paths.push(path.to_owned());
        let mut take = |path| self.nodes.remove_entry(&path);
        paths.into_iter().filter_map(&mut take).collect()
    }

    fn plant(&mut self, from: &Path, to: &Path, tree: Vec<(PathBuf, Node)>) {
        for (path, node) in tree {
            let moved = match path.strip_prefix(from) {
                Ok(rest) if rest.as_os_str().is_empty() => to.to_owned(),
                Ok(rest) => to.join(rest),
                Err(_) => path,
            };
            self.nodes.insert(moved, node);
        }
    }

    fn check_write(&self, path: &Path) -> PortResult<()> {
        if self.read_only.iter().any(|dir| path.starts_with(dir)) {
            return Err(fail(Code::ReadOnly, path, "the file system is read-only"));
        }
        Ok(())
    }

    /// Makes everything at and beneath `dir` unwritable, or writable again.
    pub fn set_read_only(&mut self, dir: &Path, to: bool) {
        if to {
            self.read_only.insert(dir.to_owned());
        } else {
            self.read_only.remove(dir);
        }
    }

    /// Resolves symlinks and dots. Errors: `path_not_found`; `path_escapes`
    /// for a circle of symlinks.
    pub fn resolve(&self, path: &Path) -> PortResult<PathBuf> {
        let mut rest: Vec<OsString> = names_of(path);
        rest.reverse();
        let mut done = PathBuf::from("/");
        let mut links = 0;
        while let Some(name) = rest.pop() {
            if name == ".." {
                done.pop();
                continue;
            }
            let next = done.join(&name);
            match self.get(&next).map(|node| &node.what) {
                None => return Err(fail(Code::PathNotFound, path, "no such file or directory")),
                Some(What::Symlink(target)) => {
                    links += 1;
                    if links > 40 {
                        return Err(fail(Code::PathEscapes, path, "a circle of symlinks"));
                    }
                    let target = PathBuf::from(OsString::from_vec(target.clone()));
                    if target.is_absolute() {
                        done = "/".into();
                    }
                    let mut names = names_of(&target);
                    names.reverse();
                    rest.extend(names);
                }
                Some(_) => done = next,
            }
        }
        Ok(done)
    }

    /// Resolves a directory to a root.
    pub fn root(&self, path: &Path) -> PortResult<Root> {
        let path = self.resolve(path)?;
        match self.get(&path) {
            Some(node) if node.what == What::Directory => Ok(Root {
                device: DEVICE,
                inode: node.inode,
                path,
            }),
            _ => Err(fail(Code::PathNotFound, &path, "not a directory")),
        }
    }

    /// Checks that a root is still the directory it was. Errors:
    /// `path_not_found`, `sandbox_gone`.
    pub fn check_root(&self, root: &Root) -> PortResult<()> {
        match self.get(&root.path) {
            None => Err(fail(Code::PathNotFound, &root.path, "it is not there")),
            Some(node)
                if node.what == What::Directory
                    && (DEVICE, node.inode) == (root.device, root.inode) =>
            {
                Ok(())
            }
            Some(_) => Err(fail(
                Code::SandboxGone,
                &root.path,
                "another directory is there now",
            )),
        }
    }
}

/// Returns the names of a path and its `..`, outermost first.
fn names_of(path: &Path) -> Vec<OsString> {
    path.components()
        .filter(|part| matches!(part, Component::Normal(_) | Component::ParentDir))
        .map(|part| part.as_os_str().to_owned())
        .collect()
}

/// Makes an error about a path.
pub(super) fn fail(code: Code, path: &Path, why: &str) -> PortError {
    PortError::new(code, format!("open {}: {why}", path.display()))
}
