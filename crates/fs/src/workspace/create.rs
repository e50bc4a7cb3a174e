//! Making a sandbox root: one pass over the original that copies, hashes and
//! stores (PLN-5). On failure the new root is gone; the original is only read.

use std::ffi::CStr;
use std::sync::{Mutex, PoisonError};

use sandbar_domain::Hash;
use sandbar_domain::resource::Root;
use sandbar_domain::{Entry, Kind, RelPath};
use sandbar_ports::PortResult;
use sandbar_ports::progress::Stage;
use sandbar_ports::workspace::{CacheKey, CopiedFile, Create, Created, Sealing};

use super::copying::{directory_like_original, first_mode, like_original, symlink_like_original};
use super::remove::remove_tree;
use crate::objects::{ObjectStore, Transaction};
use crate::scan::{
    Assembled, BUFFER, CacheFile, Found, Known, Leaf, Node, Visitor, Walk, assemble, encode_cache,
    mount_inside, seal_cache, settle, unstable, unsupported, walk,
};
use crate::sys::{self, Dir, Errno, Seen, Type, at, fail, kind_of};

const CHUNK: usize = 256 * 1024;

/// Copies a root; see the port. Says what was made as soon as all of it is
/// there, and returns when it is durable.
pub(crate) fn create(
    store: &ObjectStore,
    request: &Create,
    copied: impl FnOnce(Created),
) -> PortResult<()> {
    let source = sys::open_root(&request.source)?;
    let shown = request.dest.display();
    let (Some(parent), Some(name)) = (request.dest.parent(), request.dest.file_name()) else {
        return Err(fail("make", &shown, Errno::INVAL));
    };
    let place = sys::open_dir(parent).map_err(at("open", parent.display()))?;
    sys::make_dir(&place, name, 0o700).map_err(at("make", &shown))?;
    let transaction = store.begin()?;
    let generation = store.generation();
    let result = fill(&transaction, request, &source, &place, name);
    let (assembled, root) = match result {
        Ok(filled) => filled,
        Err(error) => {
            // The first error is the one to report.
            let _ = remove_tree(&place, name.as_encoded_bytes(), &request.dest);
            return Err(error);
        }
    };
    // The disk is waited for while the rest is put in order.
    let cache = std::thread::scope(|scope| {
        let commit = scope.spawn(|| transaction.commit());
        copied(Created {
            tree: assembled.root(),
            root,
            tally: assembled.tally.clone(),
            files: copied_files(&assembled).into(),
            sealing: Sealing::done(),
        });
        let cache = encode_cache(
            &assembled,
            generation,
            request.rules.identity(),
            None,
            |_, _| true,
        );
        join(commit).map(|()| cache)
    })?;
    CacheFile::from(&CacheKey::Named {
        place: parent.to_owned(),
        name: "tree.cache",
    })
    // Nobody may change the files yet, so their stats stand for this moment.
    .save(&seal_cache(cache, sys::coarse_now_ns()));
    Ok(())
}

fn fill(
    transaction: &Transaction<'_>,
    request: &Create,
    source: &Dir,
    place: &Dir,
    name: &std::ffi::OsStr,
) -> PortResult<(Assembled, Root)> {
    let shown = request.dest.display();
    let dest = place.child(name).map_err(at("open", &shown))?;
    let visitor = Copying {
        dest: &dest,
        transaction,
        late: Mutex::default(),
        cancel: request,
    };
    let nodes = walk(
        &Walk {
            root: source,
            hidden: &request.hidden,
            rules: &*request.rules,
            base: true,
            cancel: &request.cancel,
            progress: &*request.progress,
            stage: Stage::Copy,
        },
        &visitor,
    )?;
    let late = visitor
        .late
        .into_inner()
        .unwrap_or_else(PoisonError::into_inner);
    let assembled = assemble(
        nodes,
        |_, _| None,
        |_| Vec::new(),
        |hash, bytes| transaction.put_hashed(hash, bytes),
    )?;
    finish_directories(&dest, &assembled, late)?;
    request.cancel.check()?;
    let seen = dest.stat_self().map_err(at("stat", &shown))?;
    let root = Root {
        path: request.dest.clone(),
        device: seen.stat.dev,
        inode: seen.stat.ino,
    };
    Ok((assembled, root))
}

fn join<T>(thread: std::thread::ScopedJoinHandle<'_, T>) -> T {
    thread
        .join()
        .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

fn copied_files(assembled: &Assembled) -> Vec<CopiedFile> {
    let count = assembled.nodes.iter().map(|node| node.leaves.len()).sum();
    let mut files = Vec::with_capacity(count);
    for node in &assembled.nodes {
        for leaf in &node.leaves {
            let path = RelPath::child(node.path.as_ref(), &leaf.name)
                .expect("the walk made this path before");
            files.push(CopiedFile {
                path,
                hash: leaf.entry.hash,
                copy: leaf.copy.unwrap_or(leaf.stat),
                source: leaf.stat,
            });
        }
    }
    files.sort_unstable_by(|a, b| a.path.cmp(&b.path));
    files
}

struct Copying<'a> {
    dest: &'a Dir,
    transaction: &'a Transaction<'a>,
    /// Directories whose mode would be in the way of filling what is beneath,
    /// or that may turn out not to belong.
    late: Mutex<Vec<(Option<RelPath>, Seen)>>,
    cancel: &'a Create,
}

struct Scope {
    dest: Dir,
    path: Option<RelPath>,
    source: Seen,
    late: bool,
    buffer: Vec<u8>,
}

impl Visitor for Copying<'_> {
    type Scope = Scope;

    fn enter(&self, dir: &Dir, path: Option<&RelPath>) -> PortResult<Scope> {
        let shown = path.map_or(".", RelPath::as_str);
        let source = dir.stat_self().map_err(at("stat", shown))?;
        let dest = self
            .dest
            .beneath(path, false)
            .map_err(at("open the copy of", shown))?;
        Ok(Scope {
            dest,
            path: path.cloned(),
            late: source.stat.mode & 0o500 != 0o500,
            source,
            buffer: Vec::new(),
        })
    }

    fn known(&self, _: &mut Scope, _: &Dir, _: &CStr) -> PortResult<Known> {
        Ok(Known::No)
    }

    fn lasting(&self, _: &RelPath) -> bool {
        false
    }

    fn take(&self, _: &mut Scope, node: &mut Node, leaf: Leaf) {
        node.leaves.push(leaf);
    }

    fn directory(&self, scope: &mut Scope, name: &str, look: bool) -> PortResult<()> {
        // If it is not kept in the end, removing it changes this one's times.
        scope.late |= look;
        sys::make_dir(&scope.dest, name, 0o700)
            .map_err(|errno| fail("make", shown(scope, name), errno))
    }

    fn leaf(
        &self,
        scope: &mut Scope,
        dir: &Dir,
        name: &str,
        path: &RelPath,
        kind: Type,
    ) -> PortResult<Found> {
        if kind == Type::Symlink {
            return self.symlink(scope, dir, name, path);
        }
        if let Some(leaf) = self.file(scope, dir, name, path)? {
            return Ok(Found::Leaf(leaf));
        }
        // It was listed as a file and is none now.
        match dir.stat(name) {
            Err(Errno::NOENT) => Ok(Found::Vanished),
            Err(errno) => Err(fail("stat", path, errno)),
            Ok(seen) => match seen.kind {
                Type::Other(what) => Ok(Found::Unsupported(what)),
                Type::Symlink => self.symlink(scope, dir, name, path),
                _ => Err(unstable(path)),
            },
        }
    }

    fn unsupported(&self, path: &str, why: &str) -> PortResult<()> {
        Err(unsupported(path, why))
    }

    fn leave(&self, scope: Scope, _: &Dir, _: &mut Node) -> PortResult<()> {
        if scope.late {
            let mut late = self.late.lock().unwrap_or_else(PoisonError::into_inner);
            late.push((scope.path, scope.source));
            return Ok(());
        }
        let shown = scope.path.as_ref().map_or(".", RelPath::as_str);
        directory_like_original(&scope.dest, &scope.source).map_err(at("finish", shown))
    }
}

fn shown(scope: &Scope, name: &str) -> String {
    match &scope.path {
        Some(path) => format!("{path}/{name}"),
        None => name.to_owned(),
    }
}

impl Copying<'_> {
    fn file(
        &self,
        scope: &mut Scope,
        dir: &Dir,
        name: &str,
        path: &RelPath,
    ) -> PortResult<Option<Leaf>> {
        let mut copy = None;
        let buffer = &mut scope.buffer;
        let dest = &scope.dest;
        let read = settle(dir, name, path, |fd, seen| {
            if seen.stat.size <= BUFFER {
                let length =
                    sys::read_into(fd, buffer, seen.stat.size).map_err(at("read", path))?;
                return Ok((None, length as u64));
            }
            // A second attempt starts over.
            if copy.take().is_some() {
                sys::remove_file(dest, name).map_err(at("remove the copy of", path))?;
            }
            let new = sys::create_new(dest, name, first_mode(seen)).map_err(at("write", path))?;
            let (hash, length) = self.stream(buffer, fd, &new, path)?;
            copy = Some(new);
            Ok((Some(hash), length))
        })?;
        let Some((hash, seen)) = read else {
            if copy.is_some() {
                sys::remove_file(dest, name).map_err(at("remove the copy of", path))?;
            }
            return Ok(None);
        };
        let (hash, copy) = match (hash, copy) {
            (Some(hash), Some(copy)) => (hash, copy),
            (_, stale) => {
                if stale.is_some() {
                    // It shrank between two attempts.
                    sys::remove_file(dest, name).map_err(at("remove the copy of", path))?;
                }
                let length = usize::try_from(seen.stat.size).expect("a small file fits memory");
                let bytes = &buffer[..length];
                let hash = self.transaction.put(bytes)?;
                let new =
                    sys::create_new(dest, name, first_mode(&seen)).map_err(at("write", path))?;
                if !bytes.is_empty() {
                    sys::write_all(&new, bytes).map_err(at("write", path))?;
                }
                (hash, new)
            }
        };
        let stat = like_original(&copy, dest, name, &seen).map_err(at("finish", path))?;
        Ok(kind_of(&seen).map(|kind| Leaf {
            name: name.into(),
            entry: Entry::new(kind, hash),
            stat: seen.stat,
            copy: Some(stat),
            stored: true,
            lasting: true,
        }))
    }

    fn stream(
        &self,
        buffer: &mut Vec<u8>,
        from: &std::os::fd::OwnedFd,
        to: &std::os::fd::OwnedFd,
        path: &RelPath,
    ) -> PortResult<(Hash, u64)> {
        let mut loose = self.transaction.loose()?;
        let mut length = 0;
        if buffer.len() < CHUNK {
            buffer.resize(CHUNK, 0);
        }
        loop {
            self.cancel.cancel.check()?;
            let count = sys::read_some(from, &mut buffer[..CHUNK]).map_err(at("read", path))?;
            if count == 0 {
                return Ok((loose.finish()?, length));
            }
            loose.write(&buffer[..count])?;
            sys::write_all(to, &buffer[..count]).map_err(at("write", path))?;
            length += count as u64;
        }
    }

    fn symlink(
        &self,
        scope: &mut Scope,
        dir: &Dir,
        name: &str,
        path: &RelPath,
    ) -> PortResult<Found> {
        let seen = match dir.stat(name) {
            Err(Errno::NOENT) => return Ok(Found::Vanished),
            other => other.map_err(at("stat", path))?,
        };
        if seen.mount_root {
            return Err(mount_inside(path));
        }
        let target = match sys::read_link(dir, name) {
            Err(Errno::NOENT) => return Ok(Found::Vanished),
            Err(Errno::INVAL) => return Err(unstable(path)),
            other => other.map_err(at("read", path))?,
        };
        match dir.stat(name) {
            Ok(after) if after.same_state(&seen) => {}
            _ => return Err(unstable(path)),
        }
        let hash = self.transaction.put(&target)?;
        let copy =
            symlink_like_original(&scope.dest, name, &target, &seen).map_err(at("write", path))?;
        Ok(Found::Leaf(Leaf {
            name: name.into(),
            entry: Entry::new(Kind::Symlink, hash),
            stat: seen.stat,
            copy: Some(copy),
            stored: true,
            lasting: true,
        }))
    }
}

/// Removes the directories that turned out not to belong, and gives the rest
/// of the late ones their modes and times; children before parents.
fn finish_directories(
    dest: &Dir,
    assembled: &Assembled,
    mut late: Vec<(Option<RelPath>, Seen)>,
) -> PortResult<()> {
    for (node, hash) in assembled.nodes.iter().zip(&assembled.hashes).rev() {
        let (Some(path), None) = (&node.path, hash) else {
            continue;
        };
        let found = dest
            .parent_of(path, false)
            .map_err(at("open the copy of", path))?;
        match sys::remove_dir(&found.dir, found.name) {
            Ok(()) | Err(Errno::NOENT) => {}
            Err(errno) => return Err(fail("remove the copy of", path, errno)),
        }
    }
    late.sort_unstable_by(|a, b| b.0.cmp(&a.0));
    for (path, source) in late {
        let shown = path.as_ref().map_or(".", RelPath::as_str);
        match dest.beneath(path.as_ref(), false) {
            Ok(dir) => directory_like_original(&dir, &source).map_err(at("finish", shown))?,
            Err(Errno::NOENT) => {}
            Err(errno) => return Err(fail("finish", shown, errno)),
        }
    }
    Ok(())
}
