//! What writing a target needs of an object store.

use std::os::fd::BorrowedFd;

use sandbar_domain::Hash;
use sandbar_ports::PortResult;

/// Content by hash.
pub trait Contents: Send + Sync {
    /// Returns one object, verified. Errors: `corrupt_object`.
    fn read(&self, hash: Hash) -> PortResult<Vec<u8>>;

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
