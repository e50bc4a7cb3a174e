//! What takes an apply back: its operations as changes from what they left to
//! what they found. The same decision that brought them then judges them
//! against the real tree of now (APL-11).

use std::collections::BTreeMap;

use crate::apply::PathOp;
use crate::change::Change;
use crate::entry::{Entry, Kind};
use crate::path::RelPath;
use crate::tree;

/// What is at paths, none where nothing is.
pub type Present = BTreeMap<RelPath, Option<Entry>>;

/// Returns what differs, from after `ops` to before them, sorted by path.
pub fn inverse(ops: &[PathOp]) -> Vec<Change> {
    // Several operations at one path: what the first found, what the last left.
    let mut ends: BTreeMap<&RelPath, (Option<Entry>, Option<Entry>)> = BTreeMap::new();
    for op in ops {
        let (before, after) = sides(op);
        ends.entry(op.path())
            .and_modify(|ends| ends.1 = after)
            .or_insert((before, after));
    }
    ends.into_iter()
        .filter_map(|(path, (before, after))| Change::between(path.clone(), after, before))
        .collect()
}

/// Brings `now` to what it is after `ops`.
pub fn replay(now: &mut Present, ops: &[PathOp]) {
    for op in ops {
        now.insert(op.path().clone(), sides(op).1);
    }
}

/// What an operation finds and what it leaves. A directory that it makes was
/// not there: one that is there already gives no operation.
fn sides(op: &PathOp) -> (Option<Entry>, Option<Entry>) {
    let directory = Some(Entry::new(Kind::Directory, tree::empty()));
    match op {
        PathOp::MakeDir { path: _ } => (None, directory),
        PathOp::Create { path: _, new } => (None, Some(*new)),
        PathOp::Replace { path: _, old, new } | PathOp::SetMode { path: _, old, new } => {
            (Some(*old), Some(*new))
        }
        PathOp::Remove { path: _, old } => (Some(*old), None),
        PathOp::RemoveDir { path: _ } => (directory, None),
    }
}
