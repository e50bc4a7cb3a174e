//! What an apply does to each path: one pure decision (APL-2, APL-3).
//!
//! [`triage`](fn@triage) compares base, result and the real tree path by
//! path and says which contents must be merged; [`plan_ops`]
//! takes the merged contents and gives the operations in order, or the
//! conflicts, never both. Nothing here reads a file.

pub mod decision;
pub mod encoding;
pub mod inverse;
#[cfg(test)]
mod laws;
pub mod triage;

use crate::entry::Entry;
use crate::path::RelPath;

pub use decision::{Conflict, Decision, Reason, Warning, plan_ops};
pub use encoding::{BadOps, decode_ops, encode_ops};
pub use inverse::{Present, inverse, replay};
pub use triage::{Facts, MergeRequest, Observed, Triage, paths_to_observe, triage};

/// One operation on one path of a real root. What is written is always the
/// content of an object; what is replaced is always kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PathOp {
    /// Makes a directory; one that is there already is fine.
    MakeDir {
        /// Where.
        path: RelPath,
    },
    /// Makes a file or symlink where nothing is.
    Create {
        /// Where.
        path: RelPath,
        /// What it will be.
        new: Entry,
    },
    /// Puts a file or symlink in the place of another.
    Replace {
        /// Where.
        path: RelPath,
        /// What must be there.
        old: Entry,
        /// What it will be.
        new: Entry,
    },
    /// Sets or clears the executable bit of a file; its content stays.
    SetMode {
        /// Where.
        path: RelPath,
        /// What must be there.
        old: Entry,
        /// What it will be.
        new: Entry,
    },
    /// Takes a file or symlink away.
    Remove {
        /// Where.
        path: RelPath,
        /// What must be there.
        old: Entry,
    },
    /// Removes a directory if it is empty by then.
    RemoveDir {
        /// Where.
        path: RelPath,
    },
}

impl PathOp {
    /// Returns the path it is about.
    pub fn path(&self) -> &RelPath {
        match self {
            Self::MakeDir { path }
            | Self::Create { path, .. }
            | Self::Replace { path, .. }
            | Self::SetMode { path, .. }
            | Self::Remove { path, .. }
            | Self::RemoveDir { path } => path,
        }
    }
}
