//! The walk: directories from a shared stack, several threads, every
//! directory opened beneath the root descriptor. It keeps no descriptor
//! beyond the directory in hand, however deep the tree.

use std::ffi::CStr;
use std::os::fd::AsFd as _;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};

use sandbar_domain::{Code, RelPath};
use sandbar_ports::progress::{Progress, Stage};
use sandbar_ports::rules::{CarryRules, Verdict};
use sandbar_ports::{Cancel, PortError, PortResult};

use super::mount_inside;
use super::nodes::{Leaf, Node};
use crate::sys::{self, Dir, Errno, Listed, Listing, Type, at, fail};

/// The most bytes of a rule file that are read.
const RULE_FILE: u64 = 16 << 20;
/// Files between two reports of progress.
const REPORT: u64 = 256;

/// What a walk goes over.
pub(crate) struct Walk<'a> {
    pub(crate) root: &'a Dir,
    pub(crate) hidden: &'a [String],
    pub(crate) rules: &'a dyn CarryRules,
    /// What these rules carry is what a sandbox starts with, and lasting.
    pub(crate) base: bool,
    pub(crate) cancel: &'a Cancel,
    pub(crate) progress: &'a dyn Progress,
    pub(crate) stage: Stage,
}

/// What a visitor found at one name.
#[allow(clippy::large_enum_variant, reason = "made and moved once a file")]
pub(crate) enum Found {
    /// A file or symlink that is carried.
    Leaf(Leaf),
    /// Nothing any more.
    Vanished,
    /// Something that has no canonical form.
    Unsupported(&'static str),
}

/// What a visitor knows of a file before anything is asked of the rules.
pub(crate) enum Known {
    /// It is carried, unchanged, and taken note of.
    Same,
    /// It is carried whatever rule files say.
    Carried,
    /// Nothing.
    No,
}

/// What is done with each directory and file.
pub(crate) trait Visitor: Sync {
    /// What is kept while one directory is gone through.
    type Scope;

    /// Enters a directory.
    fn enter(&self, dir: &Dir, path: Option<&RelPath>) -> PortResult<Self::Scope>;

    /// Meets a name that is listed as a file or symlink, in byte order.
    fn known(&self, scope: &mut Self::Scope, dir: &Dir, name: &CStr) -> PortResult<Known>;

    /// Says whether a directory is known to be carried whatever rule files say.
    fn lasting(&self, path: &RelPath) -> bool;

    /// Meets a directory that will be entered later.
    fn directory(&self, scope: &mut Self::Scope, name: &str, look: bool) -> PortResult<()>;

    /// Meets a name that is no directory, in byte order.
    fn leaf(
        &self,
        scope: &mut Self::Scope,
        dir: &Dir,
        name: &str,
        path: &RelPath,
        kind: Type,
    ) -> PortResult<Found>;

    /// Keeps what [`Visitor::leaf`] found.
    fn take(&self, scope: &mut Self::Scope, node: &mut Node, leaf: Leaf);

    /// Meets what cannot be carried.
    fn unsupported(&self, path: &str, why: &str) -> PortResult<()>;

    /// Leaves a directory, with all that was found in it.
    fn leave(&self, scope: Self::Scope, dir: &Dir, node: &mut Node) -> PortResult<()>;
}

/// A directory to enter.
struct Subdirectory {
    name: Box<str>,
    path: RelPath,
    look: bool,
    lasting: bool,
}

type Subdirectories = Vec<Subdirectory>;

struct Shared {
    stack: Vec<usize>,
    running: usize,
    nodes: Vec<Node>,
    error: Option<PortError>,
}

struct Pool<'a, 'w, V> {
    walk: &'a Walk<'w>,
    visitor: &'a V,
    shared: Mutex<Shared>,
    wake: Condvar,
    failed: AtomicBool,
    files: AtomicU64,
}

/// Walks a root; returns the directories, parents first.
pub(crate) fn walk<V: Visitor>(walk: &Walk<'_>, visitor: &V) -> PortResult<Vec<Node>> {
    let pool = Pool {
        walk,
        visitor,
        shared: Mutex::new(Shared {
            stack: vec![0],
            running: 0,
            nodes: vec![Node::default()],
            error: None,
        }),
        wake: Condvar::new(),
        failed: AtomicBool::new(false),
        files: AtomicU64::new(0),
    };
    std::thread::scope(|scope| {
        for _ in 1..threads() {
            scope.spawn(|| pool.work());
        }
        pool.work();
    });
    let shared = pool
        .shared
        .into_inner()
        .unwrap_or_else(PoisonError::into_inner);
    match shared.error.or_else(|| walk.rules.fault()) {
        Some(error) => Err(error),
        None => Ok(shared.nodes),
    }
}

/// Returns how many threads a walk uses.
pub(crate) fn threads() -> usize {
    std::thread::available_parallelism()
        .map_or(2, usize::from)
        .clamp(1, 8)
}

impl<V: Visitor> Pool<'_, '_, V> {
    fn work(&self) {
        let mut listing = Listing::default();
        let mut shared = self.shared.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            if self.failed.load(Ordering::Relaxed) {
                return;
            }
            let Some(number) = shared.stack.pop() else {
                if shared.running == 0 {
                    return;
                }
                shared = self
                    .wake
                    .wait(shared)
                    .unwrap_or_else(PoisonError::into_inner);
                continue;
            };
            shared.running += 1;
            let path = shared.nodes[number].path.clone();
            let look = shared.nodes[number].look;
            drop(shared);
            let result = self.directory(&mut listing, path, look);
            shared = self.shared.lock().unwrap_or_else(PoisonError::into_inner);
            shared.running -= 1;
            match result {
                Ok((mut node, subdirectories)) => {
                    node.parent = shared.nodes[number].parent;
                    node.lasting = shared.nodes[number].lasting;
                    for found in subdirectories {
                        let child = shared.nodes.len();
                        node.children.push((found.name, child));
                        shared.nodes.push(Node {
                            path: Some(found.path),
                            parent: Some(number),
                            look: found.look,
                            lasting: found.lasting,
                            ..Node::default()
                        });
                        shared.stack.push(child);
                    }
                    shared.nodes[number] = node;
                }
                Err(error) => {
                    self.failed.store(true, Ordering::Relaxed);
                    shared.error.get_or_insert(error);
                }
            }
            self.wake.notify_all();
        }
    }

    fn directory(
        &self,
        listing: &mut Listing,
        path: Option<RelPath>,
        look: bool,
    ) -> PortResult<(Node, Subdirectories)> {
        self.walk.cancel.check()?;
        let mut node = Node {
            path,
            look,
            ..Node::default()
        };
        let shown = node.path.as_ref().map_or(".", RelPath::as_str).to_owned();
        let dir = match self.walk.root.beneath(node.path.as_ref(), true) {
            Ok(dir) => dir,
            Err(Errno::XDEV) => return Err(mount_inside(shown)),
            // Removed or replaced since its parent was listed.
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) if node.path.is_some() => {
                node.gone = true;
                return Ok((node, Vec::new()));
            }
            Err(errno) => return Err(fail("read", shown, errno)),
        };
        let names = listing.sorted(&dir).map_err(at("list", &shown))?;
        self.announce_rules(&dir, node.path.as_ref(), &names)?;
        let mut scope = self.visitor.enter(&dir, node.path.as_ref())?;
        let mut subdirectories = Vec::new();
        for listed in &names {
            if self.failed.load(Ordering::Relaxed) {
                break;
            }
            self.entry(&dir, listed, &mut scope, &mut node, &mut subdirectories)?;
        }
        self.visitor.leave(scope, &dir, &mut node)?;
        Ok((node, subdirectories))
    }

    fn announce_rules(
        &self,
        dir: &Dir,
        path: Option<&RelPath>,
        names: &[Listed],
    ) -> PortResult<()> {
        for name in self.walk.rules.rule_files() {
            let listed = names
                .binary_search_by(|listed| listed.name.to_bytes().cmp(name.as_bytes()))
                .is_ok();
            if !listed {
                continue;
            }
            let shown = || path.map_or_else(|| (*name).to_owned(), |path| format!("{path}/{name}"));
            let (fd, seen) = match sys::open_readable(dir.as_fd(), *name) {
                // git does not follow a symlink here either.
                Err(Errno::NOENT | Errno::LOOP) => continue,
                other => other.map_err(|errno| fail("read", shown(), errno))?,
            };
            if seen.kind == Type::File {
                let content = sys::read_small(&fd, seen.stat.size, RULE_FILE)
                    .map_err(|errno| fail("read", shown(), errno))?;
                self.walk.rules.enter(path, name, &content);
            }
        }
        Ok(())
    }

    fn entry(
        &self,
        dir: &Dir,
        listed: &Listed,
        scope: &mut V::Scope,
        node: &mut Node,
        subdirectories: &mut Subdirectories,
    ) -> PortResult<()> {
        let top = node.path.is_none();
        if top
            && self
                .walk
                .hidden
                .iter()
                .any(|h| h.as_bytes() == listed.name.to_bytes())
        {
            return Ok(());
        }
        let kind = match listed.kind {
            Type::Unknown => match dir.stat(&*listed.name) {
                Err(Errno::NOENT) => return Ok(()),
                other => {
                    other
                        .map_err(|e| fail("stat", node.shown(&listed.name.to_string_lossy()), e))?
                        .kind
                }
            },
            known => known,
        };
        let mut believed = false;
        if matches!(kind, Type::File | Type::Symlink) {
            match self.visitor.known(scope, dir, &listed.name)? {
                Known::Same => {
                    self.count();
                    return Ok(());
                }
                Known::Carried => believed = true,
                Known::No => {}
            }
        }
        let lossy = listed.name.to_string_lossy();
        let path = RelPath::child(node.path.as_ref(), &lossy);
        let is_dir = kind == Type::Directory;
        let verdict = match &path {
            _ if believed => Verdict::Carry,
            Ok(path) => {
                believed = is_dir && self.visitor.lasting(path);
                match believed {
                    true => Verdict::Carry,
                    false => self.walk.rules.verdict(path, is_dir),
                }
            }
            Err(_) => Verdict::Carry,
        };
        match verdict {
            Verdict::Hide => return Ok(()),
            Verdict::Ignore => {
                node.ignored.push(lossy.into());
                return Ok(());
            }
            // A file cannot hold anything that is carried.
            Verdict::Look if !is_dir => {
                node.ignored.push(lossy.into());
                return Ok(());
            }
            Verdict::Carry | Verdict::Look => {}
        }
        let (name, path) = match (listed.name.to_str(), path) {
            (Ok(name), Ok(path)) => (name, path),
            (Err(_), _) => return self.refuse(node, &lossy, "its name is not UTF-8"),
            (_, Err(error)) => return self.refuse(node, &lossy, &error.to_string()),
        };
        let look = verdict == Verdict::Look;
        let lasting =
            |path| !look && (believed || self.walk.base || self.walk.rules.lasting(path, is_dir));
        match kind {
            Type::Directory => {
                self.visitor.directory(scope, name, look)?;
                subdirectories.push(Subdirectory {
                    name: name.into(),
                    lasting: lasting(&path),
                    path,
                    look,
                });
            }
            Type::Other(what) => return self.refuse(node, name, &format!("it is {what}")),
            Type::File | Type::Symlink | Type::Unknown => {
                match self.visitor.leaf(scope, dir, name, &path, kind)? {
                    Found::Leaf(mut leaf) => {
                        leaf.lasting = lasting(&path);
                        self.visitor.take(scope, node, leaf);
                    }
                    Found::Vanished => {}
                    Found::Unsupported(what) => {
                        return self.refuse(node, name, &format!("it is {what}"));
                    }
                }
                self.count();
            }
        }
        Ok(())
    }

    fn count(&self) {
        let done = self.files.fetch_add(1, Ordering::Relaxed) + 1;
        if done.is_multiple_of(REPORT) {
            self.walk.progress.update(self.walk.stage, done, 0);
        }
    }

    fn refuse(&self, node: &mut Node, name: &str, why: &str) -> PortResult<()> {
        let path = node.shown(name);
        self.visitor.unsupported(&path, why)?;
        node.unsupported.push((path, why.to_owned()));
        Ok(())
    }
}

/// Returns the error for an entry that cannot be carried (ENV-3).
pub(crate) fn unsupported(path: &str, why: &str) -> PortError {
    PortError::new(Code::UnsupportedEntry, format!("copy {path}: {why}")).with_subjects([path])
}
