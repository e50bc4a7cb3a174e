//! The content store: immutable bytes named by their SHA-256 (ENV-9).

use std::collections::HashSet;

use async_trait::async_trait;
use sandbar_domain::{Change, Entry, Hash, RelPath};

use crate::error::PortResult;

/// Immutable objects. Everything that `put` returned is durable: it survives
/// a crash or power loss that comes after.
#[async_trait]
pub trait Objects: Send + Sync {
    /// Stores each of `contents` durably, in one transaction; returns the
    /// hashes in order. What is there already is not stored again.
    async fn put(&self, contents: Vec<Vec<u8>>) -> PortResult<Vec<Hash>>;

    /// Returns one object, verified against its name. Errors: `corrupt_object`
    /// when it is missing or does not match.
    async fn get(&self, hash: Hash) -> PortResult<Vec<u8>>;

    /// Compares two directory objects, entering only what differs. Sorted by
    /// path. Directories that exist on one side only are listed, with the hash
    /// of the empty directory, and so is everything beneath them.
    async fn diff(&self, old: Hash, new: Hash) -> PortResult<Vec<Change>>;

    /// Returns what is at each of `paths` in the tree `tree`, in order. A
    /// directory is returned with the hash of its object.
    async fn lookup(&self, tree: Hash, paths: Vec<RelPath>) -> PortResult<Vec<Option<Entry>>>;

    /// Returns every path beneath `tree` with its entry, sorted.
    async fn list(&self, tree: Hash) -> PortResult<Vec<(RelPath, Entry)>>;

    /// Returns those of `hashes` that are not there, in order. Contents are not
    /// read: that is what [`Objects::verify`] is for.
    async fn missing(&self, hashes: Vec<Hash>) -> PortResult<Vec<Hash>>;

    /// Removes what is reachable from none of the live roots.
    async fn collect(&self, live: Live) -> PortResult<Collected>;

    /// Removes what additions of dead processes left half-written. Does nothing
    /// while an addition or a collection runs: the next one will.
    async fn sweep(&self) -> PortResult<()>;

    /// Verifies every object; returns the damaged ones and the totals.
    async fn verify(&self) -> PortResult<StoreHealth>;
}

/// What garbage collection must keep.
#[derive(Debug, Clone, Default)]
pub struct Live {
    /// Directory objects: they and all that they reach stay.
    pub trees: HashSet<Hash>,
    /// Plain objects that stay.
    pub objects: HashSet<Hash>,
    /// Whatever was stored in the last so many milliseconds stays too: another
    /// process may be about to record it.
    pub grace_ms: u64,
}

/// What a collection did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Collected {
    /// Objects removed.
    pub removed: u64,
    /// Bytes given back.
    pub bytes: u64,
    /// Objects kept.
    pub kept: u64,
}

/// The state of the content store.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct StoreHealth {
    /// Objects present.
    pub objects: u64,
    /// Bytes on disk.
    pub bytes: u64,
    /// Objects whose bytes do not match their name.
    pub damaged: Vec<Hash>,
}
