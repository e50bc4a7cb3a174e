//! The index as bytes: every entry, stage and flag kept, stat fields in the
//! open. gix is asked only where a file is split over two; nothing is written
//! here.

mod bytes;

use std::ops::Range;

use sandbar_domain::Code;
use sandbar_ports::workspace::FileStat;
use sandbar_ports::{PortError, PortResult};

use crate::open::failed;
use crate::reading;

const HEAD: usize = 40;
const ID: usize = 20;
const STAGE: u16 = 0x3000;
const EXTENDED: u16 = 0x4000;
const SKIP_WORKTREE: u16 = 0x4000;

/// A mode word of the index.
pub(crate) mod mode {
    pub(crate) const DIRECTORY: u32 = 0o040_000;
    pub(crate) const FILE: u32 = 0o100_644;
    pub(crate) const EXECUTABLE: u32 = 0o100_755;
    pub(crate) const SYMLINK: u32 = 0o120_000;
    pub(crate) const GITLINK: u32 = 0o160_000;
}

/// All entries of one index, sorted by path and stage.
#[derive(Debug, Clone, Default)]
pub(crate) struct Index {
    items: Vec<Item>,
    names: Vec<u8>,
    extensions: Vec<([u8; 4], Vec<u8>)>,
    /// When the file was written, in nanoseconds since 1970.
    pub(crate) written_ns: i128,
}

/// One entry. `head` is ctime, mtime, dev, ino, mode, uid, gid, size as on
/// disk, big endian.
#[derive(Debug, Clone)]
struct Item {
    head: [u8; HEAD],
    id: [u8; ID],
    flags: u16,
    extended: u16,
    name: Range<usize>,
}

/// The stat fields of an entry, cut to 32 bits as git does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stat {
    pub(crate) ctime: (u32, u32),
    pub(crate) mtime: (u32, u32),
    pub(crate) dev: u32,
    pub(crate) ino: u32,
    pub(crate) uid: u32,
    pub(crate) gid: u32,
    pub(crate) size: u32,
}

impl Stat {
    /// Cuts a stat to what the index holds.
    #[allow(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "the index keeps the low 32 bits of each"
    )]
    pub(crate) fn of(stat: &FileStat) -> Self {
        let time = |nanos: i128| {
            let seconds = nanos.div_euclid(1_000_000_000);
            (seconds as u32, nanos.rem_euclid(1_000_000_000) as u32)
        };
        Self {
            ctime: time(stat.ctime_ns),
            mtime: time(stat.mtime_ns),
            dev: stat.dev as u32,
            ino: stat.ino as u32,
            uid: stat.uid,
            gid: stat.gid,
            size: stat.size as u32,
        }
    }

    /// Returns the time of the last change of content.
    pub(crate) fn modified_ns(&self) -> i128 {
        i128::from(self.mtime.0) * 1_000_000_000 + i128::from(self.mtime.1)
    }
}

/// A view of one entry.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Entry<'a> {
    item: &'a Item,
    /// The path, relative to the root.
    pub(crate) path: &'a [u8],
}

impl Entry<'_> {
    pub(crate) fn mode(&self) -> u32 {
        self.item.word(6)
    }

    pub(crate) fn id(&self) -> gix::ObjectId {
        gix::ObjectId::from_bytes_or_panic(&self.item.id)
    }

    pub(crate) fn stage(&self) -> u16 {
        (self.item.flags & STAGE) >> 12
    }

    pub(crate) fn skip_worktree(&self) -> bool {
        self.item.extended & SKIP_WORKTREE != 0
    }

    pub(crate) fn intent_to_add(&self) -> bool {
        self.item.extended & 0x2000 != 0
    }

    pub(crate) fn stat(&self) -> Stat {
        self.item.stat()
    }

    /// What makes an entry the same entry, stat data apart.
    fn identity(&self) -> (&[u8], u32, [u8; ID], u16, u16) {
        // The length field of the flags repeats the path.
        let flags = self.item.flags & !0x0fff;
        (
            self.path,
            self.mode(),
            self.item.id,
            flags,
            self.item.extended,
        )
    }
}

impl Item {
    fn word(&self, number: usize) -> u32 {
        let bytes = &self.head[number * 4..number * 4 + 4];
        u32::from_be_bytes(bytes.try_into().expect("four bytes"))
    }

    fn set(&mut self, number: usize, value: u32) {
        self.head[number * 4..number * 4 + 4].copy_from_slice(&value.to_be_bytes());
    }

    fn stat(&self) -> Stat {
        Stat {
            ctime: (self.word(0), self.word(1)),
            mtime: (self.word(2), self.word(3)),
            dev: self.word(4),
            ino: self.word(5),
            uid: self.word(7),
            gid: self.word(8),
            size: self.word(9),
        }
    }

    fn set_stat(&mut self, stat: Stat) {
        let Stat {
            ctime,
            mtime,
            dev,
            ino,
            uid,
            gid,
            size,
        } = stat;
        let words = [
            (0, ctime.0),
            (1, ctime.1),
            (2, mtime.0),
            (3, mtime.1),
            (4, dev),
            (5, ino),
            (7, uid),
            (8, gid),
            (9, size),
        ];
        for (number, value) in words {
            self.set(number, value);
        }
    }
}

impl Index {
    /// Reads the index of a repository; an empty one if there is none. A
    /// split index becomes whole, sparse directories are expanded.
    pub(crate) fn load(repository: &gix::Repository) -> PortResult<Self> {
        let path = repository.index_path().to_owned();
        // Before the bytes: if the file is replaced meanwhile, more entries
        // count as racily clean, never fewer.
        let stamp = reading::stamp(&path);
        let Some(bytes) = reading::file(&path)? else {
            return Ok(Self::default());
        };
        let mut index = Self::parse(&bytes)?;
        if index.has(b"link") {
            let hash = repository.object_hash();
            let whole =
                gix::index::File::at(&path, hash, true, gix::index::decode::Options::default())
                    .map_err(failed(format!("read split index {}", path.display())))?;
            let mut bytes = Vec::new();
            let options = gix::index::write::Options {
                extensions: gix::index::write::Extensions::None,
                skip_hash: true,
            };
            whole
                .write_to(&mut bytes, options)
                .map_err(failed(format!("join split index {}", path.display())))?;
            index = Self::parse(&bytes)?;
        }
        index.written_ns = stamp.map_or(0, |[_, mtime, ..]| mtime);
        index.expand(repository)
    }

    /// Parses the bytes of an index file, versions 2 to 4.
    pub(crate) fn parse(bytes: &[u8]) -> PortResult<Self> {
        bytes::parse(bytes).ok_or_else(|| {
            PortError::new(
                Code::RepositoryRefused,
                "read the git index: it is damaged or of an unknown version",
            )
        })
    }

    fn has(&self, extension: &[u8; 4]) -> bool {
        self.extensions.iter().any(|(name, _)| name == extension)
    }

    fn expand(self, repository: &gix::Repository) -> PortResult<Self> {
        if !self.has(b"sdir")
            && !self
                .items
                .iter()
                .any(|item| item.word(6) == mode::DIRECTORY)
        {
            return Ok(self);
        }
        let mut wide = Self {
            written_ns: self.written_ns,
            ..Self::default()
        };
        for entry in self.entries() {
            if entry.mode() == mode::DIRECTORY {
                wide.expand_tree(repository, entry.path, entry.id())?;
            } else {
                wide.push(entry.item.clone(), entry.path);
            }
        }
        wide.extensions = self
            .extensions
            .into_iter()
            .filter(|(name, _)| name == b"REUC")
            .collect();
        Ok(wide)
    }

    fn expand_tree(
        &mut self,
        repository: &gix::Repository,
        prefix: &[u8],
        id: gix::ObjectId,
    ) -> PortResult<()> {
        let what = || {
            format!(
                "expand the sparse index at {}",
                String::from_utf8_lossy(prefix)
            )
        };
        let tree = repository.find_tree(id).map_err(failed(what()))?;
        for entry in tree.iter() {
            let entry = entry.map_err(failed(what()))?;
            let mut path = prefix.to_vec();
            path.extend_from_slice(entry.filename());
            let id = entry.object_id();
            if entry.mode().is_tree() {
                path.push(b'/');
                self.expand_tree(repository, &path, id)?;
                continue;
            }
            let mut item = Item {
                head: [0; HEAD],
                id: id.as_slice().try_into().expect("a SHA-1 has 20 bytes"),
                flags: EXTENDED,
                extended: SKIP_WORKTREE,
                name: 0..0,
            };
            item.set(6, u32::from(entry.mode().value()));
            self.push(item, &path);
        }
        Ok(())
    }

    fn push(&mut self, mut item: Item, path: &[u8]) {
        let start = self.names.len();
        self.names.extend_from_slice(path);
        item.name = start..self.names.len();
        self.items.push(item);
    }

    /// Iterates over the entries in order.
    pub(crate) fn entries(&self) -> impl Iterator<Item = Entry<'_>> {
        self.items.iter().map(|item| Entry {
            item,
            path: &self.names[item.name.clone()],
        })
    }

    /// Counts the entries.
    pub(crate) fn len(&self) -> usize {
        self.items.len()
    }

    /// Gives each entry the stat that `choose` returns; `None` leaves it.
    pub(crate) fn restat(&mut self, mut choose: impl FnMut(Entry<'_>) -> Option<Stat>) {
        for item in &mut self.items {
            let entry = Entry {
                path: &self.names[item.name.clone()],
                item,
            };
            if let Some(stat) = choose(entry) {
                item.set_stat(stat);
            }
        }
    }

    /// Replaces mode and id of the entry at `position`, and its stat with one
    /// that matches no file.
    pub(crate) fn replace(&mut self, position: usize, new_mode: u32, id: gix::ObjectId) {
        let item = &mut self.items[position];
        item.head = [0; HEAD];
        item.set(6, new_mode);
        item.id = id.as_slice().try_into().expect("a SHA-1 has 20 bytes");
        item.extended &= !0x2000;
        self.extensions.retain(|(name, _)| name != b"TREE");
    }

    /// Adds an entry of stage 0 after the last; entries come sorted by path.
    /// Without a stat it matches no file, and the content is compared once.
    pub(crate) fn append(
        &mut self,
        path: &[u8],
        new_mode: u32,
        id: gix::ObjectId,
        stat: Option<Stat>,
        skip_worktree: bool,
    ) {
        let mut item = Item {
            head: [0; HEAD],
            id: id.as_slice().try_into().expect("a SHA-1 has 20 bytes"),
            flags: 0,
            extended: if skip_worktree { SKIP_WORKTREE } else { 0 },
            name: 0..0,
        };
        if let Some(stat) = stat {
            item.set_stat(stat);
        }
        item.set(6, new_mode);
        self.push(item, path);
    }

    /// Adds entries of stage 0 with a stat that matches no file.
    pub(crate) fn insert<'p>(
        &mut self,
        entries: impl Iterator<Item = (&'p [u8], u32, gix::ObjectId)>,
    ) {
        let before = self.items.len();
        for (path, new_mode, id) in entries {
            let mut item = Item {
                head: [0; HEAD],
                id: id.as_slice().try_into().expect("a SHA-1 has 20 bytes"),
                flags: 0,
                extended: 0,
                name: 0..0,
            };
            item.set(6, new_mode);
            self.push(item, path);
        }
        if self.items.len() == before {
            return;
        }
        let names = &self.names;
        self.items.sort_by(|a, b| {
            let key = |item: &Item| (&names[item.name.clone()], item.flags & STAGE);
            let (a, b) = (key(a), key(b));
            a.0.cmp(b.0).then(a.1.cmp(&b.1))
        });
        self.extensions.retain(|(name, _)| name != b"TREE");
    }

    /// Removes the entries for which `drop` says so.
    pub(crate) fn remove(&mut self, mut drop: impl FnMut(Entry<'_>) -> bool) {
        let names = &self.names;
        let before = self.items.len();
        self.items.retain(|item| {
            !drop(Entry {
                path: &names[item.name.clone()],
                item,
            })
        });
        if self.items.len() != before {
            self.extensions.retain(|(name, _)| name != b"TREE");
        }
    }

    /// Says whether both hold the same entries, stat data apart.
    pub(crate) fn same_entries(&self, other: &Self) -> bool {
        self.items.len() == other.items.len()
            && self
                .entries()
                .zip(other.entries())
                .all(|(a, b)| a.identity() == b.identity())
    }
}
