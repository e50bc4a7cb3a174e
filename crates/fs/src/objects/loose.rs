//! Loose files: one large object each, `loose/<2 hex>/<62 hex>`.
//!
//! Layout: the head `sandbar.loose.1` (15 bytes), the codec byte (0: as they
//! are), the bytes.

use std::os::fd::{AsFd, OwnedFd};

use sandbar_domain::Hash;
use sandbar_domain::hash::Hasher;
use sandbar_ports::PortResult;

use super::codec::RAW;
use super::corrupt;
use super::store::ObjectStore;
use crate::sys::{self, Errno, fail};

pub(super) const HEAD: &[u8; 16] = b"sandbar.loose.1\0";
const CHUNK: usize = 256 * 1024;

/// Returns directory and name of the loose file of an object.
pub(super) fn place(hash: Hash) -> (String, String) {
    let mut hex = hash.to_string();
    let name = hex.split_off(2);
    (hex, name)
}

/// Opens a loose file past its head; `None` when there is none.
pub(super) fn open(store: &ObjectStore, hash: Hash) -> PortResult<Option<(OwnedFd, u64)>> {
    let (dir, name) = place(hash);
    let path = format!("{dir}/{name}");
    let (fd, seen) = match sys::open_readable(&store.loose_dir, &path) {
        Err(Errno::NOENT) => return Ok(None),
        other => other.map_err(|errno| fail("open object", hash, errno))?,
    };
    let mut head = [0; HEAD.len()];
    sys::pread_exact(&fd, &mut head, 0).map_err(|_| corrupt(hash, "it is cut short"))?;
    if head[..15] != HEAD[..15] || head[15] != RAW {
        return Err(corrupt(hash, "its file has another format"));
    }
    Ok(Some((fd, seen.stat.size - HEAD.len() as u64)))
}

/// Reads and verifies a loose object; `None` when there is none.
pub(super) fn read(store: &ObjectStore, hash: Hash) -> PortResult<Option<Vec<u8>>> {
    let Some((fd, length)) = open(store, hash)? else {
        return Ok(None);
    };
    let length = usize::try_from(length).map_err(|_| corrupt(hash, "it is too large"))?;
    let mut bytes = vec![0; length];
    sys::pread_exact(&fd, &mut bytes, HEAD.len() as u64)
        .map_err(|errno| fail("read object", hash, errno))?;
    if Hash::of(&bytes) != hash {
        return Err(corrupt(hash, "its bytes do not match its name"));
    }
    Ok(Some(bytes))
}

/// Copies a loose object, verified, to the file `to`; false when there is
/// none. On an error `to` holds rubbish.
pub(super) fn copy(store: &ObjectStore, hash: Hash, to: impl AsFd) -> PortResult<bool> {
    let Some((fd, _)) = open(store, hash)? else {
        return Ok(false);
    };
    let found = pour(&fd, |chunk| sys::write_all(&to, chunk))
        .map_err(|errno| fail("copy object", hash, errno))?;
    match found {
        found if found == hash => Ok(true),
        _ => Err(corrupt(hash, "its bytes do not match its name")),
    }
}

/// Hashes the content of a loose file in pieces, and hands each to `sink`.
pub(super) fn pour(
    fd: impl AsFd,
    mut sink: impl FnMut(&[u8]) -> Result<(), Errno>,
) -> Result<Hash, Errno> {
    let mut buffer = vec![0; CHUNK];
    let mut offset = HEAD.len() as u64;
    let mut hasher = Hasher::new();
    loop {
        let count = sys::pread_some(&fd, &mut buffer, offset)?;
        if count == 0 {
            return Ok(hasher.finish());
        }
        hasher.update(&buffer[..count]);
        sink(&buffer[..count])?;
        offset += count as u64;
    }
}
