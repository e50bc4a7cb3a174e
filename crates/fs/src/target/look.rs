//! What is at one name now.

use std::os::fd::AsFd;

use sandbar_domain::hash::Hasher;
use sandbar_domain::{Entry, Hash, Kind, tree};

use crate::sys::{self, Errno, Type};

const CHUNK: usize = 128 * 1024;

/// What a look finds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum There {
    /// No such name.
    Nothing,
    /// Something with canonical content; a directory has the hash of the
    /// empty one.
    Entry(Entry),
    /// A FIFO, socket or device.
    Foreign(&'static str),
}

impl There {
    pub(super) fn is(self, entry: Entry) -> bool {
        self == Self::Entry(entry)
    }

    pub(super) fn is_directory(self) -> bool {
        matches!(self, Self::Entry(entry) if entry.kind == Kind::Directory)
    }
}

/// Looks at `name` in `dir`, content included, never through a symlink.
pub(super) fn look(dir: impl AsFd, name: &str) -> Result<There, Errno> {
    loop {
        if let Some(there) = attempt(&dir, name)? {
            return Ok(there);
        }
    }
}

/// Looks once; `None` when the name came to lead elsewhere meanwhile.
fn attempt(dir: impl AsFd, name: &str) -> Result<Option<There>, Errno> {
    let seen = match sys::stat_at(&dir, name) {
        Err(Errno::NOENT) => return Ok(Some(There::Nothing)),
        other => other?,
    };
    match seen.kind {
        Type::Other(word) => return Ok(Some(There::Foreign(word))),
        Type::Unknown => return Ok(Some(There::Foreign("an unknown type"))),
        Type::Directory => {
            let entry = Entry::new(Kind::Directory, tree::empty());
            return Ok(Some(There::Entry(entry)));
        }
        Type::Symlink => {
            return match sys::read_link(&dir, name) {
                Ok(target) => {
                    let entry = Entry::new(Kind::Symlink, Hash::of(&target));
                    Ok(Some(There::Entry(entry)))
                }
                // Replaced since: what is there now is what counts.
                Err(Errno::NOENT | Errno::INVAL) => Ok(None),
                Err(errno) => Err(errno),
            };
        }
        Type::File => {}
    }
    let (fd, seen) = match sys::open_readable(&dir, name) {
        Err(Errno::NOENT | Errno::LOOP) => return Ok(None),
        other => other?,
    };
    match sys::kind_of(&seen) {
        Some(kind) if kind.is_file() => {
            let entry = Entry::new(kind, hash_of(&fd)?);
            Ok(Some(There::Entry(entry)))
        }
        _ => Ok(None),
    }
}

/// Hashes an open file from its beginning.
pub(super) fn hash_of(fd: impl AsFd) -> Result<Hash, Errno> {
    let mut buffer = vec![0; CHUNK];
    let mut hasher = Hasher::new();
    let mut offset = 0;
    loop {
        let count = sys::pread_some(&fd, &mut buffer, offset)?;
        if count == 0 {
            return Ok(hasher.finish());
        }
        hasher.update(&buffer[..count]);
        offset += u64::try_from(count).expect("a count fits 64 bits");
    }
}
