//! The store itself: which packs there are, and reading from them. Readers
//! take no lock: a pack that a collection removed meanwhile is found again in
//! the one that replaced it.

use std::collections::{HashMap, VecDeque};
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, OnceLock, PoisonError, RwLock};

use sandbar_domain::{Code, Hash};
use sandbar_ports::{PortError, PortResult};

use super::pack::{BadPack, Index, Record};
use super::{codec, corrupt, loose};
use crate::data::DataDir;
use crate::sys::{self, Dir, Errno, Listing, at, fail};

/// How many pack files are kept open for reading.
const OPEN_PACKS: usize = 8;

/// One pack as this process knows it.
#[derive(Debug)]
pub(super) struct Pack {
    pub(super) name: String,
    pub(super) size: u64,
    pub(super) index: OnceLock<Result<Index, BadPack>>,
}

/// Packs in the order of search.
pub(super) type Packs = Arc<Vec<Arc<Pack>>>;

/// The objects of one data directory.
#[derive(Debug)]
pub(crate) struct ObjectStore {
    pub(super) root: Dir,
    pub(super) packs_dir: Dir,
    pub(super) loose_dir: Dir,
    pub(super) tmp_dir: Dir,
    packs: RwLock<Packs>,
    open: Mutex<VecDeque<(String, Arc<OwnedFd>)>>,
}

impl ObjectStore {
    /// Opens the store of a data directory; lists the packs, reads none.
    pub(crate) fn open(data: &DataDir) -> PortResult<Self> {
        let store = Self {
            root: data.sub("objects")?,
            packs_dir: data.sub("objects/packs")?,
            loose_dir: data.sub("objects/loose")?,
            tmp_dir: data.sub("objects/tmp")?,
            packs: RwLock::default(),
            open: Mutex::default(),
        };
        store.refresh()?;
        Ok(store)
    }

    /// Reads one object, verified against its name.
    pub(crate) fn read(&self, hash: Hash) -> PortResult<Vec<u8>> {
        if let Some(bytes) = self.read_known(hash)? {
            return Ok(bytes);
        }
        // Another process may have added it, or moved it to another pack.
        self.refresh()?;
        if let Some(bytes) = self.read_known(hash)? {
            return Ok(bytes);
        }
        let damaged = self
            .snapshot()
            .iter()
            .filter(|pack| matches!(pack.index.get(), Some(Err(_))))
            .count();
        Err(match damaged {
            0 => corrupt(hash, "it is missing"),
            count => corrupt(hash, &format!("it is missing; {count} packs are damaged")),
        })
    }

    fn read_known(&self, hash: Hash) -> PortResult<Option<Vec<u8>>> {
        let mut broken = None;
        for pack in self.snapshot().iter() {
            let Some(record) = self.find_in(pack, &hash) else {
                continue;
            };
            match self.read_record(pack, record) {
                Ok(Some(bytes)) => return Ok(Some(bytes)),
                // Removed meanwhile; the list is read again.
                Ok(None) => {}
                // Another pack or a loose file may hold it sound.
                Err(error) => broken = Some(error),
            }
        }
        match loose::read(self, hash) {
            Ok(Some(bytes)) => Ok(Some(bytes)),
            Ok(None) => broken.map_or(Ok(None), Err),
            Err(error) => Err(error),
        }
    }

    /// Reads and verifies one packed object; `None` when the pack is gone.
    pub(super) fn read_record(&self, pack: &Pack, record: Record) -> PortResult<Option<Vec<u8>>> {
        let fd = match self.open_pack(&pack.name) {
            Err(Errno::NOENT) => return Ok(None),
            other => other.map_err(at("open pack", &pack.name))?,
        };
        let mut stored = vec![0; record.stored as usize];
        sys::pread_exact(&fd, &mut stored, record.offset)
            .map_err(|_| corrupt(record.hash, "its pack cannot be read"))?;
        let bytes = codec::decode(record.codec, stored, record.length as usize)
            .filter(|bytes| Hash::of(bytes) == record.hash)
            .ok_or_else(|| corrupt(record.hash, "its bytes do not match its name"))?;
        Ok(Some(bytes))
    }

    /// Finds an object in a pack, reading the records when first needed.
    pub(super) fn find_in(&self, pack: &Pack, hash: &Hash) -> Option<Record> {
        self.index(pack).as_ref().ok()?.find(hash)
    }

    pub(super) fn index<'p>(&self, pack: &'p Pack) -> &'p Result<Index, BadPack> {
        pack.index.get_or_init(|| {
            let fd = self.open_pack(&pack.name).map_err(BadPack::Unreadable)?;
            Index::load(&*fd)
        })
    }

    fn open_pack(&self, name: &str) -> Result<Arc<OwnedFd>, Errno> {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, fd)) = open.iter().find(|(have, _)| have == name) {
            return Ok(Arc::clone(fd));
        }
        let (fd, _) = sys::open_readable(&self.packs_dir, name)?;
        let fd = Arc::new(fd);
        if open.len() == OPEN_PACKS {
            open.pop_front();
        }
        open.push_back((name.to_owned(), Arc::clone(&fd)));
        Ok(fd)
    }

    /// Returns the packs known now.
    pub(super) fn snapshot(&self) -> Packs {
        Arc::clone(&self.packs.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Lists the packs again; what is known of those that stay is kept.
    pub(super) fn refresh(&self) -> PortResult<()> {
        let mut names = Vec::new();
        let dir = self.packs_dir.reopen().map_err(at("open", "packs"))?;
        Listing::default()
            .each(&dir, |name, _| {
                if let Ok(name) = name.to_str()
                    && name.ends_with(".pack")
                {
                    names.push(name.to_owned());
                }
            })
            .map_err(at("list", "packs"))?;
        let mut packs = self.packs.write().unwrap_or_else(PoisonError::into_inner);
        let known: HashMap<&str, &Arc<Pack>> = packs
            .iter()
            .map(|pack| (pack.name.as_str(), pack))
            .collect();
        let mut next: Vec<_> = names
            .into_iter()
            .map(|name| match known.get(name.as_str()) {
                // A pack that could not be read may be readable now.
                Some(pack) if !matches!(pack.index.get(), Some(Err(_))) => Arc::clone(pack),
                _ => Arc::new(Pack {
                    size: self.packs_dir.stat(&*name).map_or(0, |seen| seen.stat.size),
                    name,
                    index: OnceLock::new(),
                }),
            })
            .collect();
        // What commands look for most, the newest snapshots, is in small packs,
        // and the records of a large one cost the most to read.
        next.sort_by_key(|pack| pack.size);
        *packs = Arc::new(next);
        Ok(())
    }

    /// Adds a pack that this process has just sealed.
    pub(super) fn add(&self, name: String, index: Index) {
        let pack = Arc::new(Pack {
            size: 0,
            name,
            index: OnceLock::from(Ok(index)),
        });
        let mut packs = self.packs.write().unwrap_or_else(PoisonError::into_inner);
        let mut next = Vec::with_capacity(packs.len() + 1);
        next.push(pack);
        next.extend(packs.iter().cloned());
        *packs = Arc::new(next);
    }

    /// Forgets open files of packs that were removed.
    pub(super) fn forget_open(&self) {
        self.open
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clear();
    }

    /// Opens the file whose lock keeps writers and collectors apart.
    pub(super) fn lock_file(&self) -> PortResult<OwnedFd> {
        sys::append(&self.root, "lock", 0o600).map_err(|errno| match errno {
            Errno::ROFS | Errno::ACCESS | Errno::PERM => PortError::new(
                Code::ReadOnly,
                "write objects: the data directory is read-only",
            ),
            other => fail("open", "objects/lock", other),
        })
    }
}
