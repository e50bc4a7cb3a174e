//! Second half of the decision: merged contents in, ordered operations or
//! conflicts out. A decision with a conflict gives no operation at all, so
//! that a caller cannot write half of it (APL-3).

use std::collections::HashMap;

use crate::apply::PathOp;
use crate::apply::triage::{Triage, take};
use crate::entry::Entry;
use crate::hash::Hash;
use crate::merge::MergeConflict;
use crate::path::RelPath;

/// Why a path cannot be brought back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Reason {
    /// Both sides changed the same or touching lines.
    Overlap,
    /// Both sides changed it and it is not text.
    Binary,
    /// Both sides changed it and it is too large to merge.
    TooLarge,
    /// Both sides changed a symlink.
    Symlink,
    /// Both sides made it, differently.
    BothAdded,
    /// One side made it another type.
    Type,
    /// Deleted in the real tree, changed in the result.
    DeletedHere,
    /// Changed in the real tree, deleted in the result.
    DeletedInResult,
    /// What should be a directory above it is none in the real tree.
    ParentNotDirectory,
    /// Differs from another changed path in case only.
    CaseCollision,
    /// A place that never belongs to a result, such as `.git`.
    Reserved,
    /// Its merge was asked for and not given.
    Unmerged,
}

impl Reason {
    /// Returns the word of the output contract.
    pub fn word(self) -> &'static str {
        match self {
            Self::Overlap => "overlap",
            Self::Binary => "binary",
            Self::TooLarge => "too_large",
            Self::Symlink => "symlink",
            Self::BothAdded => "both_added",
            Self::Type => "type",
            Self::DeletedHere => "deleted_here",
            Self::DeletedInResult => "deleted_in_result",
            Self::ParentNotDirectory => "parent_not_directory",
            Self::CaseCollision => "case_collision",
            Self::Reserved => "reserved",
            Self::Unmerged => "unmerged",
        }
    }
}

impl From<MergeConflict> for Reason {
    fn from(conflict: MergeConflict) -> Self {
        match conflict {
            MergeConflict::Overlap => Self::Overlap,
            MergeConflict::Binary => Self::Binary,
            MergeConflict::TooLarge => Self::TooLarge,
        }
    }
}

/// One path that cannot be brought back.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Conflict {
    /// Where.
    pub path: RelPath,
    /// Why.
    pub reason: Reason,
}

impl Conflict {
    pub(crate) fn new(path: &RelPath, reason: Reason) -> Self {
        Self {
            path: path.clone(),
            reason,
        }
    }
}

/// What the user should hear though nothing is wrong.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Warning {
    /// The user's changes and the result's were merged.
    Merged(RelPath),
    /// One side's content and the other's executable bit were combined.
    Combined(RelPath),
    /// The user deleted this directory; something new needs it again.
    ParentMade(RelPath),
}

impl Warning {
    /// Returns the path it is about.
    pub fn path(&self) -> &RelPath {
        match self {
            Self::Merged(path) | Self::Combined(path) | Self::ParentMade(path) => path,
        }
    }

    /// Returns the word of the output contract.
    pub fn word(&self) -> &'static str {
        match self {
            Self::Merged(_) => "merged",
            Self::Combined(_) => "combined",
            Self::ParentMade(_) => "parent_made",
        }
    }
}

/// What an apply will do to one boundary.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Decision {
    ops: Vec<PathOp>,
    conflicts: Vec<Conflict>,
    /// Paths where the real tree holds the result already.
    pub already: Vec<RelPath>,
    /// What the user should hear.
    pub warnings: Vec<Warning>,
}

impl Decision {
    /// Returns the operations in the order of execution, or every conflict.
    pub fn ops(&self) -> Result<&[PathOp], &[Conflict]> {
        if self.conflicts.is_empty() {
            Ok(&self.ops)
        } else {
            Err(&self.conflicts)
        }
    }

    /// Returns the operations in the order of execution, or every conflict.
    pub fn into_ops(self) -> Result<Vec<PathOp>, Vec<Conflict>> {
        if self.conflicts.is_empty() {
            Ok(self.ops)
        } else {
            Err(self.conflicts)
        }
    }

    /// Returns the conflicts, sorted by path.
    pub fn conflicts(&self) -> &[Conflict] {
        &self.conflicts
    }
}

/// Completes a triage: `merged` holds, for the path of each merge request, the
/// hash of the merged content or why there is none.
pub fn plan_ops(
    triage: Triage,
    merged: &HashMap<RelPath, Result<Hash, MergeConflict>>,
) -> Decision {
    let Triage {
        settled: mut ops,
        merges,
        mut conflicts,
        mut already,
        mut warnings,
    } = triage;
    for request in merges {
        let path = request.path;
        match merged.get(&path) {
            Some(Ok(hash)) => {
                let new = Entry::new(request.kind, *hash);
                if new == request.old {
                    already.push(path);
                } else {
                    take(&path, Some(request.old), Some(new), &mut ops);
                    warnings.push(Warning::Merged(path));
                }
            }
            Some(Err(conflict)) => conflicts.push(Conflict::new(&path, (*conflict).into())),
            None => conflicts.push(Conflict::new(&path, Reason::Unmerged)),
        }
    }
    conflicts.sort_unstable();
    already.sort_unstable();
    warnings.sort_unstable();
    if conflicts.is_empty() {
        order(&mut ops);
    } else {
        ops.clear();
    }
    Decision {
        ops,
        conflicts,
        already,
        warnings,
    }
}

/// Orders operations so that each finds its place free: files go deepest
/// first, then their directories; directories come shallowest first, then
/// files in path order.
fn order(ops: &mut [PathOp]) {
    ops.sort_by_cached_key(|op| {
        let path = op.path().clone();
        let depth = path.depth();
        let (stage, rank) = match op {
            PathOp::Remove { .. } => (0, usize::MAX - depth),
            PathOp::RemoveDir { .. } => (1, usize::MAX - depth),
            PathOp::MakeDir { .. } => (2, depth),
            PathOp::Create { .. } | PathOp::Replace { .. } | PathOp::SetMode { .. } => (3, 0),
        };
        (stage, rank, path)
    });
}
