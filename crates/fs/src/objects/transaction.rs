//! One durable addition to the store: a pack for the small objects, loose
//! files for the large. Several threads may add to it; nothing is visible
//! before it is durable, and what is dropped leaves nothing.

use std::collections::HashSet;
use std::hash::{BuildHasherDefault, Hasher as StdHasher};
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use sandbar_domain::Hash;
use sandbar_domain::hash::Hasher;
use sandbar_ports::PortResult;
use sandbar_ports::effect::planted;

use super::pack::{HEAD, Index, Record};
use super::store::{ObjectStore, Packs};
use super::{LARGE, codec, loose};
use crate::names;
use crate::sys::{self, Errno, FileLock, at, fail};

/// Bytes gathered before they are written.
const BUFFER: usize = 1 << 20;
/// Loose files held open until they are made durable together.
const PENDING: usize = 64;

/// A digest is a fine hash value by itself.
#[derive(Default)]
pub(crate) struct Prefix(u64);

impl StdHasher for Prefix {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        if let Some((head, _)) = bytes.split_first_chunk::<8>() {
            self.0 = u64::from_le_bytes(*head);
        }
    }

    fn write_usize(&mut self, _: usize) {}
}

/// A set of digests.
pub(crate) type HashedSet = HashSet<Hash, BuildHasherDefault<Prefix>>;

/// A running addition. While it runs, no collection does.
#[derive(Debug)]
pub(crate) struct Transaction<'s> {
    store: &'s ObjectStore,
    _lock: Option<FileLock>,
    began_ns: i128,
    packs: Packs,
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    file: Option<(Arc<OwnedFd>, String)>,
    buffer: Vec<u8>,
    /// A written buffer, to be used again.
    spare: Option<Vec<u8>>,
    /// Offset of the first byte of `buffer` in the file.
    flushed: u64,
    records: Vec<Record>,
    seen: HashedSet,
    fresh: HashSet<String>,
    pending: Vec<(OwnedFd, String, Hash)>,
    shelves: HashSet<String>,
}

impl ObjectStore {
    /// Begins an addition; waits for a collection that runs.
    pub(crate) fn begin(&self) -> PortResult<Transaction<'_>> {
        let lock = sys::lock_shared(self.lock_file()?).map_err(at("lock", "objects"))?;
        self.refresh()?;
        Ok(self.transaction(Some(lock), self.snapshot()))
    }

    /// Begins a rewriting of packs, which knows none and stores all it is
    /// given; the caller holds the exclusive lock.
    pub(super) fn begin_rewrite(&self) -> Transaction<'_> {
        self.transaction(None, Packs::default())
    }

    fn transaction(&self, lock: Option<FileLock>, packs: Packs) -> Transaction<'_> {
        Transaction {
            store: self,
            _lock: lock,
            began_ns: sys::coarse_now_ns(),
            packs,
            inner: Mutex::default(),
        }
    }
}

impl Transaction<'_> {
    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds one object; returns its name.
    pub(crate) fn put(&self, bytes: &[u8]) -> PortResult<Hash> {
        let hash = Hash::of(bytes);
        self.put_hashed(hash, bytes)?;
        Ok(hash)
    }

    /// Adds one object whose name is known to be `hash`.
    pub(crate) fn put_hashed(&self, hash: Hash, bytes: &[u8]) -> PortResult<()> {
        if bytes.len() >= LARGE {
            if self.freshen_loose(hash)? {
                return Ok(());
            }
            let mut writer = self.loose()?;
            writer.write(bytes)?;
            writer.finish()?;
            return Ok(());
        }
        let new = self.inner().seen.insert(hash);
        if !new || self.is_packed(&hash)? {
            return Ok(());
        }
        let (codec, stored) = codec::encode(bytes);
        self.append(hash, codec, &stored, bytes.len())
    }

    /// Says whether an object of `length` bytes is there already, and if so
    /// marks it as in use.
    pub(crate) fn has(&self, hash: Hash, length: u64) -> PortResult<bool> {
        if length >= LARGE as u64 {
            return self.freshen_loose(hash);
        }
        let seen = self.inner().seen.contains(&hash);
        Ok(seen || self.is_packed(&hash)?)
    }

    fn is_packed(&self, hash: &Hash) -> PortResult<bool> {
        let Some(pack) = self
            .packs
            .iter()
            .find(|pack| self.store.find_in(pack, hash).is_some())
        else {
            return Ok(false);
        };
        if !self.inner().fresh.insert(pack.name.clone()) {
            return Ok(true);
        }
        // What is relied on counts as stored now, for the grace of collections.
        let now = sys::coarse_now_ns();
        match sys::set_times_at(&self.store.packs_dir, &pack.name, now, now) {
            Ok(()) => Ok(true),
            Err(errno) => Err(fail("touch pack", &pack.name, errno)),
        }
    }

    fn freshen_loose(&self, hash: Hash) -> PortResult<bool> {
        let (shelf, name) = loose::place(hash);
        let now = sys::coarse_now_ns();
        match sys::set_times_at(&self.store.loose_dir, format!("{shelf}/{name}"), now, now) {
            // Whoever stored it may not have made its name durable yet.
            Ok(()) => {
                self.inner().shelves.insert(shelf);
                Ok(true)
            }
            Err(Errno::NOENT) => Ok(false),
            Err(errno) => Err(fail("touch object", hash, errno)),
        }
    }

    fn append(&self, hash: Hash, codec: u8, stored: &[u8], length: usize) -> PortResult<()> {
        let mut inner = self.inner();
        if inner.file.is_none() {
            let name = names::random();
            let fd = sys::create_new(&self.store.tmp_dir, &name, 0o600)
                .map_err(at("create", "a pack"))?;
            inner.file = Some((Arc::new(fd), name));
            inner.buffer.reserve(BUFFER);
            inner.buffer.extend_from_slice(HEAD);
        }
        let offset = inner.flushed + inner.buffer.len() as u64;
        let small = |length: usize| u32::try_from(length).expect("packed objects are small");
        inner.records.push(Record {
            hash,
            offset,
            stored: small(stored.len()),
            length: small(length),
            codec,
        });
        inner.buffer.extend_from_slice(stored);
        if inner.buffer.len() < BUFFER {
            return Ok(());
        }
        let spare = inner.spare.take().unwrap_or_default();
        let mut full = std::mem::replace(&mut inner.buffer, spare);
        let at_offset = inner.flushed;
        inner.flushed += full.len() as u64;
        let fd = inner.file.as_ref().map(|(fd, _)| Arc::clone(fd));
        drop(inner);
        if let Some(fd) = fd {
            sys::write_at(&*fd, &full, at_offset).map_err(at("write", "a pack"))?;
            // Without this the last fsync would wait for all of it.
            sys::start_writeback(&*fd, at_offset, full.len() as u64);
        }
        full.clear();
        self.inner().spare = Some(full);
        Ok(())
    }

    /// Starts a large object.
    pub(crate) fn loose(&self) -> PortResult<LooseWriter<'_>> {
        let name = names::random();
        let fd = sys::create_new(&self.store.tmp_dir, &name, 0o600)
            .map_err(at("create", "an object"))?;
        let writer = LooseWriter {
            transaction: self,
            fd: Some(fd),
            name,
            hasher: Hasher::new(),
            length: 0,
        };
        writer.raw(loose::HEAD)?;
        Ok(writer)
    }

    fn settle(&self, pending: Vec<(OwnedFd, String, Hash)>) -> PortResult<()> {
        for (fd, name, hash) in pending {
            sys::sync_file(&fd).map_err(at("make durable", hash))?;
            let (shelf, file) = loose::place(hash);
            match sys::make_dir(&self.store.loose_dir, &shelf, 0o700) {
                Ok(()) | Err(Errno::EXIST) => {}
                Err(errno) => return Err(fail("make", &shelf, errno)),
            }
            let dir = self
                .store
                .loose_dir
                .child(&*shelf)
                .map_err(at("open", &shelf))?;
            match sys::rename_new(&self.store.tmp_dir, &name, &dir, &*file) {
                Ok(()) => {}
                Err(Errno::EXIST) => {
                    sys::remove_file(&self.store.tmp_dir, &name).map_err(at("remove", &name))?;
                }
                Err(errno) => return Err(fail("store object", hash, errno)),
            }
            self.inner().shelves.insert(shelf);
        }
        Ok(())
    }

    /// Makes everything durable and visible. On an error nothing counts as
    /// stored.
    pub(crate) fn commit(self) -> PortResult<()> {
        let pending = std::mem::take(&mut self.inner().pending);
        self.settle(pending)?;
        let shelves = std::mem::take(&mut self.inner().shelves);
        for shelf in &shelves {
            let dir = self
                .store
                .loose_dir
                .child(shelf.as_str())
                .map_err(at("open", shelf))?;
            sys::sync_dir(&dir).map_err(at("make durable", shelf))?;
        }
        if !shelves.is_empty() {
            sys::sync_dir(&self.store.loose_dir).map_err(at("make durable", "objects"))?;
        }
        let mut inner = self.inner();
        let Some((fd, name)) = inner.file.as_ref().map(|(fd, n)| (fd.clone(), n.clone())) else {
            if inner.fresh.is_empty() {
                return Ok(());
            }
            // Whoever sealed the packs relied on may not have come so far yet.
            return sys::sync_dir(&self.store.packs_dir).map_err(at("make durable", "packs"));
        };
        let offset = inner.flushed + inner.buffer.len() as u64;
        let (index, footer) = Index::seal(std::mem::take(&mut inner.records), offset);
        let mut rest = std::mem::take(&mut inner.buffer);
        rest.extend_from_slice(&footer);
        let what = "a pack";
        sys::write_at(&*fd, &rest, inner.flushed).map_err(at("write", what))?;
        // A clock that went back must not make it older than its beginning.
        let seen = sys::stat_fd(&*fd).map_err(at("stat", what))?;
        if seen.stat.mtime_ns < self.began_ns {
            sys::set_times_fd(&*fd, self.began_ns, self.began_ns).map_err(at("stamp", what))?;
        }
        sys::sync_file(&*fd).map_err(at("make durable", what))?;
        let sealed = format!("{name}.pack");
        if planted("lose-the-last-pack") {
            return sys::remove_file(&self.store.tmp_dir, &name).map_err(at("lose", what));
        }
        sys::rename_new(&self.store.tmp_dir, &name, &self.store.packs_dir, &sealed)
            .map_err(at("store", what))?;
        inner.file = None;
        sys::sync_dir(&self.store.packs_dir).map_err(at("make durable", what))?;
        self.store.add(sealed, index);
        Ok(())
    }
}

impl Drop for Transaction<'_> {
    fn drop(&mut self) {
        let inner = self.inner.get_mut().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, name)) = inner.file.take() {
            let _ = sys::remove_file(&self.store.tmp_dir, &name);
        }
        for (_, name, _) in inner.pending.drain(..) {
            let _ = sys::remove_file(&self.store.tmp_dir, &name);
        }
    }
}

/// A large object being written; dropped unfinished, it leaves nothing.
#[derive(Debug)]
pub(crate) struct LooseWriter<'t> {
    transaction: &'t Transaction<'t>,
    fd: Option<OwnedFd>,
    name: String,
    hasher: Hasher,
    length: u64,
}

impl LooseWriter<'_> {
    fn raw(&self, bytes: &[u8]) -> PortResult<()> {
        match &self.fd {
            Some(fd) => sys::write_all(fd, bytes).map_err(at("write", "an object")),
            None => Ok(()),
        }
    }

    /// Appends bytes.
    pub(crate) fn write(&mut self, bytes: &[u8]) -> PortResult<()> {
        self.raw(bytes)?;
        self.hasher.update(bytes);
        if let Some(fd) = &self.fd {
            sys::start_writeback(fd, self.length, bytes.len() as u64);
        }
        self.length += bytes.len() as u64;
        Ok(())
    }

    /// Ends the object; returns its name. It is durable with the transaction.
    pub(crate) fn finish(mut self) -> PortResult<Hash> {
        let hash = std::mem::take(&mut self.hasher).finish();
        let fd = self.fd.take().expect("a writer holds its file until here");
        let name = std::mem::take(&mut self.name);
        let new = self.transaction.inner().seen.insert(hash);
        if !new || self.transaction.freshen_loose(hash)? {
            sys::remove_file(&self.transaction.store.tmp_dir, &name)
                .map_err(at("remove", "an object"))?;
            return Ok(hash);
        }
        let mut inner = self.transaction.inner();
        inner.pending.push((fd, name, hash));
        if inner.pending.len() < PENDING {
            return Ok(hash);
        }
        let pending = std::mem::take(&mut inner.pending);
        drop(inner);
        self.transaction.settle(pending)?;
        Ok(hash)
    }
}

impl Drop for LooseWriter<'_> {
    fn drop(&mut self) {
        if self.fd.take().is_some() {
            let _ = sys::remove_file(&self.transaction.store.tmp_dir, &self.name);
        }
    }
}
