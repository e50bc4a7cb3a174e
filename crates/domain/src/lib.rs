//! The rules of Sandbar, as plain data and pure functions.
//!
//! What is absent, on purpose: no async, no input or output, no clock, no
//! randomness, no database or wire types. A decision takes everything it
//! needs as arguments and returns what is to be done; ports do it.

pub mod apply;
pub mod change;
pub mod checkpoint;
pub mod entry;
pub mod error;
pub mod graph;
pub mod hash;
pub mod id;
pub mod journal;
pub mod merge;
pub mod path;
pub mod plan;
pub mod resource;
pub mod snapshot;
pub mod tree;

pub use change::{Change, ChangeKind, ChangeSet};
pub use entry::{Entry, Kind};
pub use error::{Code, Disposition};
pub use hash::Hash;
pub use id::{CheckpointId, JournalId, PlanId, ResourceId, SandboxId};
pub use path::RelPath;
