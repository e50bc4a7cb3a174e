//! The stat cache: what each file looked like when it was hashed.
//!
//! A damaged, old or foreign cache counts as none, and then everything is
//! read. An entry is believed only if size, mode, inode, device, mtime and
//! ctime are the same *and* both stamps are older than the moment the cache
//! stands for by more than the coarseness of stamps; a clock that went back
//! therefore costs time, never truth. What no stat can show stays a limit: a
//! store through a memory mapping made before the scan, on a file system that
//! stamps lazily, leaves the signature as it was; writers are quiesced first.
//!
//! Layout, integers big endian: `sandbar.cache.v2`; generation 32; moment in
//! ns 8; identity of the rules 32, zeros for none; number of directories 4;
//! SHA-256 of all before 32; the directories, sorted by path: length of what
//! follows up to the sum 4; path length 2, path, flags 1, hash 32, children 4,
//! files 4, the files, sorted by name: name length 1, name, kind 1, flags 1,
//! device 8, inode 8, mode 4, size 8, mtime 8, ctime 8, hash 32; SHA-256 of
//! the directory's bytes from the path length on 32. Flags: 1 in the object
//! store, 2 carried whatever rule files say. Each directory has a sum of its
//! own, so that it is checked by whoever needs it, and nothing else is.

use std::path::PathBuf;
use std::sync::OnceLock;

use sandbar_domain::{Entry, Hash, Kind};
use sandbar_ports::effect::planted;
use sandbar_ports::workspace::{CacheKey, FileStat};

use super::nodes::{Assembled, Leaf, Node};
use crate::names;
use crate::objects::Generation;
use crate::sys;

const MAGIC: &[u8; 16] = b"sandbar.cache.v2";
/// Where the moment lies, after mark and generation.
const MOMENT: usize = 48;
/// Stamps are at worst this coarse where they have a part below the second …
const FINE_NS: i128 = 20_000_000;
/// … and this coarse where they have none.
const COARSE_NS: i128 = 2_020_000_000;
const LIMIT: u64 = 1 << 30;
const HEAD: usize = 92;
const STORED: u8 = 1;
const LASTING: u8 = 2;

/// Where a cache lies.
#[derive(Debug, Clone)]
pub(crate) struct CacheFile(Option<(PathBuf, &'static str)>);

/// A cache as read; empty when there is none.
#[derive(Debug, Default)]
pub(crate) struct Cache {
    bytes: Vec<u8>,
    moment_ns: i128,
    generation: Option<Generation>,
    rules: Option<Hash>,
    directories: Vec<Span>,
}

/// Where a directory lies, from its path length to its sum.
#[derive(Debug)]
struct Span {
    start: usize,
    end: usize,
    /// Whether its sum was compared, and agreed.
    checked: OnceLock<bool>,
}

/// One directory of a cache.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CachedDir<'c> {
    pub(crate) hash: Hash,
    pub(crate) stored: bool,
    pub(crate) lasting: bool,
    pub(crate) children: u32,
    pub(crate) files: u32,
    /// The number of the file that was found last.
    pub(crate) at: u32,
    all: &'c [u8],
    rest: &'c [u8],
}

/// One file of a cache.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CachedFile<'c> {
    pub(crate) name: &'c [u8],
    pub(crate) entry: Entry,
    pub(crate) stored: bool,
    pub(crate) lasting: bool,
    pub(crate) stat: FileStat,
}

impl From<&CacheKey> for CacheFile {
    fn from(key: &CacheKey) -> Self {
        Self(match key {
            CacheKey::None => None,
            CacheKey::Named { place, name } => Some((place.clone(), name)),
        })
    }
}

impl CacheFile {
    /// Reads the cache; any fault makes it empty.
    pub(crate) fn load(&self) -> Cache {
        self.read().and_then(Cache::parse).unwrap_or_default()
    }

    fn read(&self) -> Option<Vec<u8>> {
        let (place, name) = self.0.as_ref()?;
        let dir = sys::open_dir(place).ok()?;
        let (fd, seen) = sys::open_readable(&dir, *name).ok()?;
        if seen.kind != sys::Type::File {
            return None;
        }
        sys::read_small(&fd, seen.stat.size, LIMIT).ok()
    }

    /// Replaces the cache. A failure only costs the next scan its speed; an
    /// old cache is removed then, lest it be mistaken for this one.
    pub(crate) fn save(&self, bytes: &[u8]) {
        let Some((place, name)) = &self.0 else {
            return;
        };
        let Ok(dir) = sys::open_dir(place) else {
            return;
        };
        let temporary = format!(".{}.tmp", names::random());
        let written = sys::create_new(&dir, &temporary, 0o600)
            .and_then(|fd| sys::write_all(&fd, bytes))
            .and_then(|()| sys::rename(&dir, &temporary, &dir, *name));
        if written.is_err() {
            let _ = sys::remove_file(&dir, &temporary);
            let _ = sys::remove_file(&dir, *name);
        }
    }
}

/// Encodes a cache. `dir_stored` says which directory objects are known to be
/// in the store; files that were left in the `old` cache are taken from there.
pub(crate) fn encode(
    assembled: &Assembled,
    generation: Generation,
    rules: Option<Hash>,
    old: Option<&Cache>,
    dir_stored: impl Fn(&Node, Hash) -> bool,
) -> Vec<u8> {
    let files: usize = assembled.nodes.iter().map(|node| node.leaves.len()).sum();
    let size = HEAD + 32 + files * 112 + assembled.nodes.len() * 128;
    let mut out = Vec::with_capacity(size + old.map_or(0, |old| old.bytes.len()));
    out.extend_from_slice(MAGIC);
    out.extend_from_slice(generation.as_bytes());
    out.extend_from_slice(&[0; 8]);
    out.extend_from_slice(rules.map_or([0; 32], |rules| *rules.as_bytes()).as_slice());
    let mut order: Vec<(usize, Hash)> = assembled
        .hashes
        .iter()
        .enumerate()
        .filter_map(|(number, hash)| hash.map(|hash| (number, hash)))
        .collect();
    let path = |number: usize| {
        assembled.nodes[number]
            .path
            .as_ref()
            .map_or("", |path| path.as_str())
    };
    order.sort_unstable_by(|a, b| path(a.0).cmp(path(b.0)));
    push_u32(&mut out, order.len());
    out.extend_from_slice(&[0; 32]);
    for (number, hash) in order {
        let node = &assembled.nodes[number];
        let text = path(number);
        let length_at = out.len();
        out.extend_from_slice(&[0; 4]);
        let start = out.len();
        let length = u16::try_from(text.len()).expect("a path has at most 4,095 bytes");
        out.extend_from_slice(&length.to_be_bytes());
        out.extend_from_slice(text.as_bytes());
        let lasting = node.lasting && rules.is_some();
        out.push(flags(dir_stored(node, hash), lasting));
        out.extend_from_slice(hash.as_bytes());
        let children = node
            .children
            .iter()
            .filter(|(_, child)| assembled.hashes[*child].is_some());
        push_u32(&mut out, children.count());
        match (node.leaves.is_empty(), node.same) {
            (true, Some(same)) => {
                let old = old.and_then(|old| old.directory(text));
                push_u32(&mut out, same.files as usize);
                out.extend_from_slice(old.map_or(&[], |old| old.all));
            }
            _ => {
                push_u32(&mut out, node.leaves.len());
                for leaf in &node.leaves {
                    push_leaf(&mut out, leaf, rules.is_some());
                }
            }
        }
        let length = u32::try_from(out.len() - start).unwrap_or(u32::MAX);
        out[length_at..start].copy_from_slice(&length.to_be_bytes());
        let sum = Hash::of(&out[start..]);
        out.extend_from_slice(sum.as_bytes());
    }
    out
}

fn flags(stored: bool, lasting: bool) -> u8 {
    (u8::from(stored) * STORED) | (u8::from(lasting) * LASTING)
}

fn push_leaf(out: &mut Vec<u8>, leaf: &Leaf, lasting: bool) {
    let stat = leaf.copy.as_ref().unwrap_or(&leaf.stat);
    out.push(u8::try_from(leaf.name.len()).expect("a name has at most 255 bytes"));
    out.extend_from_slice(leaf.name.as_bytes());
    out.push(match leaf.entry.kind {
        Kind::Directory => b'd',
        Kind::File => b'f',
        Kind::Executable => b'x',
        Kind::Symlink => b'l',
    });
    out.push(flags(leaf.stored, leaf.lasting && lasting));
    out.extend_from_slice(&stat.dev.to_be_bytes());
    out.extend_from_slice(&stat.ino.to_be_bytes());
    out.extend_from_slice(&stat.mode.to_be_bytes());
    out.extend_from_slice(&stat.size.to_be_bytes());
    // A stamp outside 64 bits never compares equal, so it is read anew.
    for stamp in [stat.mtime_ns, stat.ctime_ns] {
        let stamp = i64::try_from(stamp).unwrap_or(i64::MAX);
        out.extend_from_slice(&stamp.to_be_bytes());
    }
    out.extend_from_slice(leaf.entry.hash.as_bytes());
}

/// Ends an encoded cache with the moment it stands for: no file in it was
/// changed by others from its stat to then.
pub(crate) fn seal(mut bytes: Vec<u8>, moment_ns: i128) -> Vec<u8> {
    let moment = i64::try_from(moment_ns).unwrap_or(0);
    bytes[MOMENT..MOMENT + 8].copy_from_slice(&moment.to_be_bytes());
    let sum = Hash::of(&bytes[..HEAD]);
    bytes[HEAD..HEAD + 32].copy_from_slice(sum.as_bytes());
    bytes
}

fn push_u32(out: &mut Vec<u8>, value: usize) {
    let value = u32::try_from(value).expect("a tree has under 2^32 entries");
    out.extend_from_slice(&value.to_be_bytes());
}

impl Cache {
    fn parse(bytes: Vec<u8>) -> Option<Self> {
        let mut reader = Reader(&bytes);
        let head = reader.take(HEAD)?;
        if Hash::of(head).as_bytes() != reader.take(32)? {
            return None;
        }
        let mut head = Reader(head);
        if head.take(16)? != MAGIC {
            return None;
        }
        let generation = Hash::from_bytes(head.array()?);
        let moment_ns = i128::from(i64::from_be_bytes(head.array()?));
        let rules: [u8; 32] = head.array()?;
        let count = head.u32()?;
        let mut directories = Vec::new();
        for _ in 0..count {
            let length = reader.u32()? as usize;
            let start = bytes.len() - reader.0.len();
            reader.take(length)?;
            reader.take(32)?;
            directories.push(Span {
                start,
                end: start + length,
                checked: OnceLock::new(),
            });
        }
        if !reader.0.is_empty() {
            return None;
        }
        Some(Self {
            directories,
            moment_ns,
            generation: Some(generation),
            rules: (rules != [0; 32]).then(|| Hash::from_bytes(rules)),
            bytes,
        })
    }

    /// Says whether it was written under these rules, which are known.
    pub(crate) fn is_under(&self, rules: Option<Hash>) -> bool {
        self.rules == rules
    }

    /// Says whether no object was removed from the store since.
    pub(crate) fn is_of(&self, generation: Generation) -> bool {
        self.generation == Some(generation)
    }

    /// Counts the directories.
    pub(crate) fn len(&self) -> usize {
        self.directories.len()
    }

    /// Finds a directory by its path; the root is the empty text. One that is
    /// damaged is none.
    pub(crate) fn directory(&self, path: &str) -> Option<CachedDir<'_>> {
        let found = self
            .directories
            .binary_search_by(|span| self.path_at(span).cmp(path.as_bytes()))
            .ok()?;
        let span = &self.directories[found];
        let bytes = &self.bytes[span.start..span.end];
        let sound = span.checked.get_or_init(|| {
            self.bytes.get(span.end..span.end + 32) == Some(Hash::of(bytes).as_bytes().as_slice())
        });
        let mut reader = Reader(bytes).filter(*sound)?;
        reader.take(2 + path.len())?;
        let flags = reader.array::<1>()?[0];
        Some(CachedDir {
            stored: flags & STORED != 0,
            lasting: flags & LASTING != 0,
            hash: Hash::from_bytes(reader.array()?),
            children: reader.u32()?,
            files: reader.u32()?,
            at: 0,
            all: reader.0,
            rest: reader.0,
        })
    }

    /// Returns a path, which may be damaged; nothing then where it says too
    /// much.
    fn path_at(&self, span: &Span) -> &[u8] {
        let mut reader = Reader(&self.bytes[span.start..span.end]);
        let length = reader.array().map_or(0, u16::from_be_bytes);
        reader.take(usize::from(length)).unwrap_or(&[])
    }

    /// Says whether `seen` is the file that was hashed, beyond doubt.
    pub(crate) fn believes(&self, cached: &FileStat, seen: &FileStat) -> bool {
        let settled = |stamp: i128| {
            let coarse = if stamp % 1_000_000_000 == 0 {
                COARSE_NS
            } else {
                FINE_NS
            };
            stamp + coarse < self.moment_ns
        };
        if planted("believe-mtime") {
            return (cached.size, cached.mtime_ns) == (seen.size, seen.mtime_ns);
        }
        let same = (cached.size, cached.mode, cached.ino, cached.dev)
            == (seen.size, seen.mode, seen.ino, seen.dev)
            && (cached.mtime_ns, cached.ctime_ns) == (seen.mtime_ns, seen.ctime_ns);
        same && settled(seen.mtime_ns) && settled(seen.ctime_ns)
    }
}

impl<'c> CachedDir<'c> {
    /// Returns the file of that name; names must be asked for in byte order,
    /// each as often as one likes.
    pub(crate) fn find(&mut self, name: &[u8]) -> Option<CachedFile<'c>> {
        loop {
            let mut reader = Reader(self.rest);
            let file = reader.file()?;
            match file.name.cmp(name) {
                std::cmp::Ordering::Less => {
                    self.rest = reader.0;
                    self.at += 1;
                }
                std::cmp::Ordering::Equal => return Some(file),
                std::cmp::Ordering::Greater => return None,
            }
        }
    }

    /// Iterates over all files.
    pub(crate) fn list(&self) -> impl Iterator<Item = CachedFile<'c>> + use<'c> {
        let mut reader = Reader(self.all);
        std::iter::from_fn(move || reader.file())
    }
}

struct Reader<'c>(&'c [u8]);

impl<'c> Reader<'c> {
    fn filter(self, sound: bool) -> Option<Self> {
        sound.then_some(self)
    }

    fn take(&mut self, length: usize) -> Option<&'c [u8]> {
        let (head, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(head)
    }

    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        self.take(N)?.try_into().ok()
    }

    fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_be_bytes)
    }

    fn u64(&mut self) -> Option<u64> {
        self.array().map(u64::from_be_bytes)
    }

    fn stamp(&mut self) -> Option<i128> {
        self.array()
            .map(|bytes| i128::from(i64::from_be_bytes(bytes)))
    }

    fn file(&mut self) -> Option<CachedFile<'c>> {
        let length = usize::from(self.array::<1>()?[0]);
        let name = self.take(length)?;
        let kind = match self.take(1)? {
            b"f" => Kind::File,
            b"x" => Kind::Executable,
            b"l" => Kind::Symlink,
            _ => return None,
        };
        let flags = self.array::<1>()?[0];
        let stat = FileStat {
            dev: self.u64()?,
            ino: self.u64()?,
            mode: self.u32()?,
            size: self.u64()?,
            mtime_ns: self.stamp()?,
            ctime_ns: self.stamp()?,
            uid: 0,
            gid: 0,
        };
        let hash = Hash::from_bytes(self.array()?);
        Some(CachedFile {
            name,
            entry: Entry::new(kind, hash),
            stored: flags & STORED != 0,
            lasting: flags & LASTING != 0,
            stat,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scan::nodes::assemble;

    fn stat(seed: u32) -> FileStat {
        let wide = u64::from(seed);
        FileStat {
            dev: wide,
            ino: wide + 1,
            mode: 0o100_644,
            uid: 7,
            gid: 8,
            size: wide + 2,
            mtime_ns: 1_000_000_001,
            ctime_ns: 2_000_000_002,
        }
    }

    fn sample() -> Vec<u8> {
        let leaf = |name: &str, kind, seed: u32| Leaf {
            name: name.into(),
            entry: Entry::new(kind, Hash::of(name.as_bytes())),
            stat: stat(seed),
            copy: None,
            stored: seed == 5,
            lasting: seed == 6,
        };
        let root = Node {
            leaves: vec![leaf("a", Kind::File, 5), leaf("l", Kind::Symlink, 6)],
            children: vec![("d".into(), 1)],
            ..Node::default()
        };
        let child = Node {
            path: sandbar_domain::RelPath::new("d").ok(),
            parent: Some(0),
            leaves: vec![leaf("x", Kind::Executable, 9)],
            ..Node::default()
        };
        let assembled = assemble(
            vec![root, child],
            |_, _| None,
            |_| Vec::new(),
            |_, _| Ok(()),
        )
        .unwrap();
        let bytes = encode(
            &assembled,
            Hash::of(b"generation"),
            Some(Hash::of(b"rules")),
            None,
            |node, _| node.path.is_none(),
        );
        seal(bytes, 5_000_000_000)
    }

    #[test]
    fn golden_cache_never_changes() {
        assert_eq!(
            Hash::of(&sample()).to_string(),
            "8d51071aa2e3eec687f073ee1f324be27b68fb475dfef2252b31973497ebafc3"
        );
    }

    #[test]
    fn what_is_encoded_is_found_again() {
        let cache = Cache::parse(sample()).unwrap();
        assert!(cache.is_of(Hash::of(b"generation")));
        assert!(!cache.is_of(Hash::of(b"")));
        assert_eq!(cache.len(), 2);
        let mut root = cache.directory("").unwrap();
        assert_eq!((root.stored, root.children, root.files), (true, 1, 2));
        assert!(root.find(b"A").is_none());
        let a = root.find(b"a").unwrap();
        assert_eq!(a.entry, Entry::new(Kind::File, Hash::of(b"a")));
        assert!(a.stored && a.stat.ino == 6);
        assert!(root.find(b"b").is_none());
        assert!(!root.find(b"l").unwrap().stored);
        assert!(root.find(b"z").is_none());
        let names: Vec<_> = root.list().map(|file| (file.name, file.lasting)).collect();
        assert_eq!(names, [(&b"a"[..], false), (&b"l"[..], true)]);
        assert!(cache.is_under(Some(Hash::of(b"rules"))) && !cache.is_under(None));
        assert!(!cache.directory("d").unwrap().stored);
        assert!(cache.directory("e").is_none());
    }

    #[test]
    fn a_damaged_directory_is_none_and_the_others_stay() {
        let sound = sample();
        for at in 0..sound.len() {
            let mut bytes = sound.clone();
            bytes[at] ^= 0x41;
            let Some(cache) = Cache::parse(bytes) else {
                continue;
            };
            let found = ["", "d"].map(|path| cache.directory(path).is_some());
            assert_ne!(found, [true, true], "byte {at}");
        }
        for length in 0..sound.len() {
            assert!(Cache::parse(sound[..length].to_vec()).is_none());
        }
    }

    #[test]
    fn doubtful_stamps_are_never_believed() {
        const SECOND: i128 = 1_000_000_000;
        let cache = Cache {
            moment_ns: 100 * SECOND,
            ..Cache::default()
        };
        let with = |mtime_ns, ctime_ns| FileStat {
            mtime_ns,
            ctime_ns,
            ..stat(1)
        };
        let old = 90 * SECOND + 1;
        let believed = |a: FileStat, b: FileStat| cache.believes(&a, &b);
        assert!(believed(with(old, old), with(old, old)));
        for doubtful in [
            100 * SECOND - 1,     // the same tick
            99 * SECOND,          // whole seconds only
            100 * SECOND + 1,     // the clock went back
            i128::from(i64::MAX), // nonsense
        ] {
            assert!(
                !believed(with(doubtful, old), with(doubtful, old)),
                "{doubtful}"
            );
            assert!(
                !believed(with(old, doubtful), with(old, doubtful)),
                "{doubtful}"
            );
        }
        let base = with(old, old);
        for other in [
            FileStat { size: 9, ..base },
            FileStat { mode: 0, ..base },
            FileStat { ino: 9, ..base },
            FileStat { dev: 9, ..base },
            with(old + 1, old),
            with(old, old + 1),
        ] {
            assert!(!believed(base, other));
        }
    }
}
