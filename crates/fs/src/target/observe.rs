//! Reads the real state of single paths, and stores content that is new.

use std::os::fd::AsFd;

use sandbar_domain::resource::Root;
use sandbar_domain::{Code, Entry, Hash, Kind, RelPath, tree};
use sandbar_ports::{PortError, PortResult};

use super::contents::Contents;
use super::look::hash_of;
use crate::sys::{self, Dir, Errno, Type, at};

/// Files up to this many bytes are read once, into memory.
const WHOLE: u64 = 16 << 20;
/// How often a file that changes under the reader is read again.
const PATIENCE: usize = 5;
/// Bytes gathered before they are stored together.
const BATCH: usize = 32 << 20;

/// Returns what is at each of `paths`; what leads through a symlink or a file
/// is absent.
pub(super) fn observe(
    contents: &dyn Contents,
    root: &Root,
    paths: &[RelPath],
) -> PortResult<Vec<Option<Entry>>> {
    let dir = sys::open_root(root)?;
    let mut reader = Reader {
        contents,
        batch: Vec::new(),
        bytes: 0,
    };
    let mut out = Vec::with_capacity(paths.len());
    for path in paths {
        out.push(reader.entry(&dir, path)?);
    }
    reader.flush()?;
    Ok(out)
}

struct Reader<'a> {
    contents: &'a dyn Contents,
    batch: Vec<Vec<u8>>,
    bytes: usize,
}

impl Reader<'_> {
    fn entry(&mut self, root: &Dir, path: &RelPath) -> PortResult<Option<Entry>> {
        for _ in 0..PATIENCE {
            match self.attempt(root, path)? {
                Attempt::Is(entry) => return Ok(entry),
                Attempt::Moved => {}
            }
        }
        Err(PortError::new(
            Code::UnstableFile,
            format!("read {path}: it changed each time it was read"),
        )
        .with_subjects([path.as_str()]))
    }

    fn attempt(&mut self, root: &Dir, path: &RelPath) -> PortResult<Attempt> {
        let found = match root.parent_of(path, true) {
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => return Ok(Attempt::Is(None)),
            Err(Errno::XDEV) => {
                return Err(PortError::new(
                    Code::MountInside,
                    format!("read {path}: something is mounted above it"),
                )
                .with_subjects([path.as_str()]));
            }
            other => other.map_err(at("read", path))?,
        };
        let seen = match found.dir.stat(found.name) {
            Err(Errno::NOENT) => return Ok(Attempt::Is(None)),
            other => other.map_err(at("read", path))?,
        };
        let entry = match seen.kind {
            Type::Directory => Entry::new(Kind::Directory, tree::empty()),
            Type::Symlink => match sys::read_link(&found.dir, found.name) {
                Err(Errno::NOENT | Errno::INVAL) => return Ok(Attempt::Moved),
                target => {
                    let target = target.map_err(at("read", path))?;
                    Entry::new(Kind::Symlink, self.keep(target)?)
                }
            },
            Type::File => return self.file(&found.dir, found.name, path),
            Type::Other(word) => return Err(unsupported(path, word)),
            Type::Unknown => return Err(unsupported(path, "of an unknown type")),
        };
        Ok(Attempt::Is(Some(entry)))
    }

    fn file(&mut self, dir: &Dir, name: &str, path: &RelPath) -> PortResult<Attempt> {
        let (fd, before) = match sys::open_readable(dir, name) {
            Err(Errno::NOENT | Errno::LOOP) => return Ok(Attempt::Moved),
            other => other.map_err(at("read", path))?,
        };
        let Some(kind) = sys::kind_of(&before).filter(|kind| kind.is_file()) else {
            return Ok(Attempt::Moved);
        };
        let size = before.stat.size;
        let whole = if size <= WHOLE {
            match sys::read_small(&fd, size, WHOLE) {
                // It grew past the limit meanwhile.
                Err(Errno::FBIG) => return Ok(Attempt::Moved),
                bytes => Some(bytes.map_err(at("read", path))?),
            }
        } else {
            None
        };
        let hash = match &whole {
            Some(bytes) => Hash::of(bytes),
            None => hash_of(&fd).map_err(at("read", path))?,
        };
        let after = sys::stat_fd(&fd).map_err(at("read", path))?;
        if !before.same_state(&after) {
            return Ok(Attempt::Moved);
        }
        match whole {
            Some(bytes) => {
                self.keep(bytes)?;
            }
            None if self.contents.has(hash, size)? => {}
            None if self.contents.put_file(fd.as_fd())? == hash => {}
            None => return Ok(Attempt::Moved),
        }
        Ok(Attempt::Is(Some(Entry::new(kind, hash))))
    }

    fn keep(&mut self, bytes: Vec<u8>) -> PortResult<Hash> {
        let hash = Hash::of(&bytes);
        let length = u64::try_from(bytes.len()).expect("a length fits 64 bits");
        if !self.contents.has(hash, length)? {
            self.bytes += bytes.len();
            self.batch.push(bytes);
            if self.bytes > BATCH {
                self.flush()?;
            }
        }
        Ok(hash)
    }

    fn flush(&mut self) -> PortResult<()> {
        self.bytes = 0;
        match std::mem::take(&mut self.batch) {
            batch if batch.is_empty() => Ok(()),
            batch => self.contents.put(batch),
        }
    }
}

enum Attempt {
    Is(Option<Entry>),
    Moved,
}

fn unsupported(path: &RelPath, word: &str) -> PortError {
    PortError::new(Code::UnsupportedEntry, format!("read {path}: it is {word}"))
        .with_subjects([path.as_str()])
}
