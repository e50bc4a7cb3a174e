//! What writing a target needs of an object store.

use std::os::fd::BorrowedFd;

use sandbar_domain::Hash;
use sandbar_ports::PortResult;

use crate::engine::FsEngine;
use crate::sys::{self, at};

/// Bytes moved at a time.
const CHUNK: usize = 1 << 20;

/// Content by hash.
pub trait Contents: Send + Sync {
    /// Returns one object, verified. Errors: `corrupt_object`.
    fn read(&self, hash: Hash) -> PortResult<Vec<u8>>;

    /// Copies one object, verified, to an open, empty file. On an error the
    /// file holds rubbish.
    fn copy(&self, hash: Hash, to: BorrowedFd<'_>) -> PortResult<()> {
        let bytes = self.read(hash)?;
        sys::write_all(to, &bytes).map_err(at("copy object", hash))
    }

    /// Returns the length of one object in bytes.
    fn length(&self, hash: Hash) -> PortResult<u64>;

    /// Says whether an object of `length` bytes is there.
    fn has(&self, hash: Hash, length: u64) -> PortResult<bool>;

    /// Stores each of `contents`; durable on return.
    fn put(&self, contents: Vec<Vec<u8>>) -> PortResult<()>;

    /// Stores what can be read from `file`, from its beginning, and returns
    /// its hash; durable on return. For files too large to hold.
    fn put_file(&self, file: BorrowedFd<'_>) -> PortResult<Hash>;
}

impl Contents for FsEngine {
    fn read(&self, hash: Hash) -> PortResult<Vec<u8>> {
        self.store().read(hash)
    }

    fn copy(&self, hash: Hash, to: BorrowedFd<'_>) -> PortResult<()> {
        self.store().copy_to(hash, to)
    }

    fn length(&self, hash: Hash) -> PortResult<u64> {
        self.store().length(hash)
    }

    fn has(&self, hash: Hash, _: u64) -> PortResult<bool> {
        Ok(self.store().contains(&hash))
    }

    fn put(&self, contents: Vec<Vec<u8>>) -> PortResult<()> {
        self.put_now(&contents).map(drop)
    }

    fn put_file(&self, file: BorrowedFd<'_>) -> PortResult<Hash> {
        let transaction = self.store().begin()?;
        let mut writer = transaction.loose()?;
        let mut buffer = vec![0; CHUNK];
        let mut offset = 0;
        loop {
            let count =
                sys::pread_some(file, &mut buffer, offset).map_err(at("read", "a large file"))?;
            if count == 0 {
                break;
            }
            writer.write(&buffer[..count])?;
            offset += u64::try_from(count).expect("a count fits 64 bits");
        }
        let hash = writer.finish()?;
        transaction.commit()?;
        Ok(hash)
    }
}
