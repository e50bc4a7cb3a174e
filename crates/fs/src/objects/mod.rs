//! The object store: immutable bytes named by their SHA-256 (ENV-9).
//!
//! Small objects lie in sealed packs, one a transaction; large ones are loose
//! files. Every read is verified against the name. Nothing here ever changes
//! a pack or loose file in place, and nothing counts as stored before its
//! bytes and names are durable.

mod codec;
mod collect;
mod compare;
mod health;
mod loose;
mod pack;
mod store;
mod transaction;

pub(crate) use compare::{diff, list, lookup, read_tree};
pub(crate) use health::Generation;
pub(crate) use store::ObjectStore;
pub(crate) use transaction::Transaction;

use sandbar_domain::{Code, Hash};
use sandbar_ports::PortError;

/// Objects of this many bytes and more are loose files.
pub(crate) const LARGE: usize = 256 * 1024;

pub(crate) fn corrupt(hash: Hash, why: &str) -> PortError {
    PortError::new(Code::CorruptObject, format!("read object {hash}: {why}"))
        .with_subjects([hash.to_string()])
}
