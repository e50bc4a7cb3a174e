//! A complete scan of a root (CKP-6): unchanged files by the cache, the rest
//! by reading. With a transaction, what is new is added to the store.

use std::ffi::CStr;

use sandbar_domain::hash::Hasher;
use sandbar_domain::{Entry, Hash, Kind, RelPath};
use sandbar_ports::progress::{Progress, Stage};
use sandbar_ports::rules::CarryRules;
use sandbar_ports::{Cancel, PortResult};

use super::cache::{self, Cache, CacheFile, CachedDir, CachedFile};
use super::nodes::{Assembled, Leaf, Node, Same, assemble};
use super::stable::{BUFFER, settle};
use super::walk::{Found, Known, Visitor, Walk, walk};
use super::{mount_inside, unstable};
use crate::objects::{Generation, Transaction};
use crate::sys::{self, Dir, Errno, Seen, Type, at, fail, kind_of};

/// How often a name may change its type under the scan.
const RETYPED: usize = 5;
const CHUNK: usize = 256 * 1024;

/// What is to be scanned.
pub(crate) struct Scan<'a> {
    pub(crate) root: &'a Dir,
    pub(crate) hidden: &'a [String],
    pub(crate) rules: &'a dyn CarryRules,
    pub(crate) cache: &'a CacheFile,
    pub(crate) generation: Generation,
    pub(crate) transaction: Option<&'a Transaction<'a>>,
    /// Whether unchanged files are wanted in the result, or only counted.
    pub(crate) leaves: bool,
    pub(crate) cancel: &'a Cancel,
    pub(crate) progress: &'a dyn Progress,
    pub(crate) stage: Stage,
}

/// What a scan found, and the cache that stands for it; the cache is saved
/// once what it claims to be stored is.
pub(crate) struct Scanned {
    pub(crate) assembled: Assembled,
    pub(crate) cache: Option<Vec<u8>>,
}

struct Capturing<'a> {
    cache: &'a Cache,
    transaction: Option<&'a Transaction<'a>>,
    /// No object was removed since the cache was written.
    same_store: bool,
    /// The cache was written under these rules.
    same_rules: bool,
    leaves: bool,
}

struct Scope<'a> {
    cached: Option<CachedDir<'a>>,
    /// Files of the cached directory that are as they were.
    hits: u32,
    /// Whether nothing else was met.
    all_same: bool,
    /// The first files of the cached directory, met unchanged and in order.
    same: Same,
    /// From here on files are listed.
    diverged: bool,
    leaves: Vec<Leaf>,
    buffer: Vec<u8>,
}

impl Scope<'_> {
    /// Lists the files that were only counted so far.
    fn diverge(&mut self) {
        if self.diverged {
            return;
        }
        self.diverged = true;
        let cached = self.cached.iter().flat_map(CachedDir::list);
        let met = cached
            .take(self.same.files as usize)
            .map(|file| leaf_of(&file));
        self.leaves.extend(met);
    }
}

/// A file that is what the cache says.
fn leaf_of(file: &CachedFile<'_>) -> Leaf {
    Leaf {
        name: String::from_utf8_lossy(file.name).into(),
        entry: file.entry,
        stat: file.stat,
        copy: None,
        stored: file.stored,
        lasting: file.lasting,
    }
}

/// Scans a root.
pub(crate) fn scan(request: &Scan<'_>) -> PortResult<Scanned> {
    let moment = sys::coarse_now_ns();
    let cache = request.cache.load();
    let same_store = cache.is_of(request.generation);
    let visitor = Capturing {
        cache: &cache,
        transaction: request.transaction,
        same_store,
        same_rules: cache.is_under(request.rules.identity()),
        leaves: request.leaves,
    };
    let nodes = walk(
        &Walk {
            root: request.root,
            hidden: request.hidden,
            rules: request.rules,
            base: false,
            cancel: request.cancel,
            progress: request.progress,
            stage: request.stage,
        },
        &visitor,
    )?;
    let mut rebuilt = false;
    let assembled = assemble(
        nodes,
        |node, hashes| visitor.known_directory(node, hashes),
        |node| visitor.list(node),
        |hash, bytes| {
            rebuilt = true;
            match request.transaction {
                Some(transaction) => transaction.put_hashed(hash, bytes),
                None => Ok(()),
            }
        },
    )?;
    let kept = assembled.hashes.iter().flatten().count();
    let rules = request.rules.identity();
    let unchanged = !rebuilt && same_store && cache.is_under(rules) && cache.len() == kept;
    let bytes = (!unchanged).then(|| {
        let bytes = cache::encode(
            &assembled,
            request.generation,
            rules,
            Some(&cache),
            |node, hash| {
                request.transaction.is_some()
                    || same_store
                        && visitor
                            .dir(node)
                            .is_some_and(|dir| dir.stored && dir.hash == hash)
            },
        );
        cache::seal(bytes, moment)
    });
    Ok(Scanned {
        assembled,
        cache: bytes,
    })
}

impl Capturing<'_> {
    fn dir(&self, node: &Node) -> Option<CachedDir<'_>> {
        self.cache
            .directory(node.path.as_ref().map_or("", RelPath::as_str))
    }

    /// Returns the cached hash of a directory in which nothing changed, and
    /// nothing beneath either; when storing, only if its object is stored.
    fn known_directory(&self, node: &Node, hashes: &[Option<Hash>]) -> Option<Hash> {
        node.same?;
        let cached = self.dir(node)?;
        if self.transaction.is_some() && !(cached.stored && self.same_store) {
            return None;
        }
        let mut kept = 0;
        for (name, child) in &node.children {
            let Some(hash) = hashes[*child] else {
                continue;
            };
            if self.cache.directory(&node.shown(name))?.hash != hash {
                return None;
            }
            kept += 1;
        }
        (kept == cached.children).then_some(cached.hash)
    }

    /// Names the files that a node left in the cache.
    fn list(&self, node: &Node) -> Vec<(Box<str>, Entry)> {
        let cached = self.dir(node);
        let files = cached.iter().flat_map(CachedDir::list);
        files
            .map(|file| (String::from_utf8_lossy(file.name).into(), file.entry))
            .collect()
    }

    /// Says whether the content of a believed file is in the store, or need
    /// not be.
    fn is_stored(&self, cached: &CachedFile<'_>) -> PortResult<Option<bool>> {
        let stored = cached.stored && self.same_store;
        match self.transaction {
            None => Ok(Some(stored)),
            Some(_) if stored => Ok(Some(true)),
            Some(transaction) => Ok(transaction
                .has(cached.entry.hash, cached.stat.size)?
                .then_some(true)),
        }
    }

    fn read_file(
        &self,
        buffer: &mut Vec<u8>,
        dir: &Dir,
        name: &str,
        path: &RelPath,
    ) -> PortResult<Option<Leaf>> {
        let read = settle(dir, name, path, |fd, seen| {
            if seen.stat.size <= BUFFER {
                let length =
                    sys::read_into(fd, buffer, seen.stat.size).map_err(at("read", path))?;
                let bytes = &buffer[..length];
                let hash = match self.transaction {
                    Some(transaction) => transaction.put(bytes)?,
                    None => Hash::of(bytes),
                };
                return Ok((hash, length as u64));
            }
            let mut loose = self.transaction.map(Transaction::loose).transpose()?;
            let mut hasher = Hasher::new();
            let mut length = 0;
            buffer.resize(CHUNK, 0);
            loop {
                let count = sys::read_some(fd, buffer).map_err(at("read", path))?;
                if count == 0 {
                    break;
                }
                match &mut loose {
                    Some(loose) => loose.write(&buffer[..count])?,
                    None => hasher.update(&buffer[..count]),
                }
                length += count as u64;
            }
            let hash = match loose {
                Some(loose) => loose.finish()?,
                None => hasher.finish(),
            };
            Ok((hash, length))
        })?;
        Ok(read.and_then(|(hash, seen)| {
            Some(Leaf {
                name: name.into(),
                entry: Entry::new(kind_of(&seen)?, hash),
                stat: seen.stat,
                copy: None,
                stored: self.transaction.is_some(),
                lasting: false,
            })
        }))
    }
}

impl<'a> Visitor for Capturing<'a> {
    type Scope = Scope<'a>;

    fn enter(&self, _: &Dir, path: Option<&RelPath>) -> PortResult<Scope<'a>> {
        let cached = self.cache.directory(path.map_or("", RelPath::as_str));
        Ok(Scope {
            diverged: cached.is_none(),
            cached,
            hits: 0,
            all_same: true,
            same: Same::default(),
            leaves: Vec::new(),
            buffer: Vec::new(),
        })
    }

    fn known(&self, scope: &mut Scope<'a>, dir: &Dir, name: &CStr) -> PortResult<Known> {
        let Some(directory) = scope.cached.as_mut().filter(|_| self.same_rules) else {
            return Ok(Known::No);
        };
        let Some(cached) = directory.find(name.to_bytes()).filter(|file| file.lasting) else {
            return Ok(Known::No);
        };
        // In the order of the cache, with nothing left out before it.
        let next = !scope.diverged && directory.at == scope.same.files;
        let stored = cached.stored || self.transaction.is_none();
        if !(next && stored && self.same_store) {
            return Ok(Known::Carried);
        }
        let seen = match dir.stat(name) {
            Ok(seen) if !seen.mount_root => seen,
            // Whatever it is, it is said once, where it is looked at again.
            _ => return Ok(Known::Carried),
        };
        if !self.cache.believes(&cached.stat, &seen.stat)
            || kind_of(&seen) != Some(cached.entry.kind)
        {
            return Ok(Known::Carried);
        }
        scope.hits += 1;
        scope.same.files += 1;
        if cached.entry.kind.is_file() {
            scope.same.bytes += seen.stat.size;
        }
        Ok(Known::Same)
    }

    fn lasting(&self, path: &RelPath) -> bool {
        let known = || self.cache.directory(path.as_str());
        self.same_rules && known().is_some_and(|dir| dir.lasting)
    }

    fn take(&self, scope: &mut Scope<'a>, _: &mut Node, leaf: Leaf) {
        scope.leaves.push(leaf);
    }

    fn directory(&self, _: &mut Scope<'a>, _: &str, _: bool) -> PortResult<()> {
        Ok(())
    }

    fn leaf(
        &self,
        scope: &mut Scope<'a>,
        dir: &Dir,
        name: &str,
        path: &RelPath,
        _: Type,
    ) -> PortResult<Found> {
        for _ in 0..RETYPED {
            let seen = match dir.stat(name) {
                Err(Errno::NOENT) => return Ok(Found::Vanished),
                other => other.map_err(|errno| fail("stat", path, errno))?,
            };
            if seen.mount_root {
                return Err(mount_inside(path));
            }
            if let Type::Other(what) = seen.kind {
                return Ok(Found::Unsupported(what));
            }
            if let Some(cached) = scope.cached.as_mut().and_then(|c| c.find(name.as_bytes()))
                && self.cache.believes(&cached.stat, &seen.stat)
                && kind_of(&seen) == Some(cached.entry.kind)
                && let Some(stored) = self.is_stored(&cached)?
            {
                scope.hits += 1;
                scope.diverge();
                return Ok(Found::Leaf(Leaf {
                    name: name.into(),
                    entry: cached.entry,
                    stat: seen.stat,
                    copy: None,
                    stored,
                    lasting: false,
                }));
            }
            scope.all_same = false;
            scope.diverge();
            let leaf = match seen.kind {
                Type::Symlink => self.read_symlink(dir, name, path, &seen)?,
                Type::File => self.read_file(&mut scope.buffer, dir, name, path)?,
                // A directory that took the place of a file: its own scan is
                // past; the next one finds it.
                _ => return Ok(Found::Vanished),
            };
            if let Some(leaf) = leaf {
                return Ok(Found::Leaf(leaf));
            }
        }
        Err(unstable(path))
    }

    fn unsupported(&self, _: &str, _: &str) -> PortResult<()> {
        Ok(())
    }

    fn leave(&self, mut scope: Scope<'a>, _: &Dir, node: &mut Node) -> PortResult<()> {
        let same = scope.all_same
            && scope
                .cached
                .is_some_and(|cached| cached.files == scope.hits);
        if !same || self.leaves {
            scope.diverge();
        }
        node.same = same.then_some(scope.same);
        node.leaves = scope.leaves;
        Ok(())
    }
}

impl Capturing<'_> {
    fn read_symlink(
        &self,
        dir: &Dir,
        name: &str,
        path: &RelPath,
        seen: &Seen,
    ) -> PortResult<Option<Leaf>> {
        let target = match sys::read_link(dir, name) {
            Err(Errno::NOENT | Errno::INVAL) => return Ok(None),
            other => other.map_err(|errno| fail("read", path, errno))?,
        };
        // Nothing else may have taken its place between the two calls.
        match dir.stat(name) {
            Ok(after) if after.same_state(seen) => {}
            Ok(_) | Err(Errno::NOENT) => return Ok(None),
            Err(errno) => return Err(fail("stat", path, errno)),
        }
        let hash = match self.transaction {
            Some(transaction) => transaction.put(&target)?,
            None => Hash::of(&target),
        };
        Ok(Some(Leaf {
            name: name.into(),
            entry: Entry::new(Kind::Symlink, hash),
            stat: seen.stat,
            copy: None,
            stored: self.transaction.is_some(),
            lasting: false,
        }))
    }
}
