//! First half of the decision: each changed path against the real tree.
//!
//! It sees entries, never contents: what needs contents becomes a
//! [`MergeRequest`]. It never looks at a path that is neither in the change
//! set nor above one of its paths.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use crate::apply::PathOp;
use crate::apply::decision::{Conflict, Reason, Warning};
use crate::change::Change;
use crate::entry::{Entry, Kind};
use crate::hash::Hash;
use crate::path::RelPath;

/// What is true of the whole target.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Facts {
    /// The root is a git checkout: `.git` at its top is no part of it.
    pub checkout: bool,
    /// Names that differ in case only are one name there.
    pub case_insensitive: bool,
}

/// What the real tree holds at the paths that the decision asks for.
#[derive(Debug, Clone, Default)]
pub struct Observed(HashMap<RelPath, Entry>);

impl Observed {
    /// Pairs `paths` with what was found at each, in order.
    pub fn new(paths: Vec<RelPath>, found: Vec<Option<Entry>>) -> Self {
        Self(
            paths
                .into_iter()
                .zip(found)
                .filter_map(|(path, entry)| Some((path, entry?)))
                .collect(),
        )
    }

    fn get(&self, path: &RelPath) -> Option<Entry> {
        self.0.get(path).copied()
    }
}

/// Two changed contents of one text file, to be merged by the caller.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MergeRequest {
    /// Where.
    pub path: RelPath,
    /// The content both started from.
    pub base: Hash,
    /// The content of the real file.
    pub real: Hash,
    /// The content of the plan's result.
    pub result: Hash,
    /// What the merged file will be.
    pub kind: Kind,
    /// What the real file is.
    pub(crate) old: Entry,
}

/// What the entries alone decide.
#[derive(Debug, Clone, Default)]
pub struct Triage {
    /// Operations that are certain, in no order yet.
    pub settled: Vec<PathOp>,
    /// Contents that must be merged before the decision.
    pub merges: Vec<MergeRequest>,
    /// Paths that cannot be brought back.
    pub conflicts: Vec<Conflict>,
    /// Paths where the real tree holds the result already.
    pub already: Vec<RelPath>,
    /// What the user should hear.
    pub warnings: Vec<Warning>,
}

/// Returns the paths whose real state [`triage`] needs: every changed path
/// and every directory above one; sorted, none twice.
pub fn paths_to_observe(changes: &[Change]) -> Vec<RelPath> {
    let mut paths = BTreeSet::new();
    for change in changes {
        let mut next = Some(change.path.clone());
        while let Some(path) = next {
            next = path.parent();
            if !paths.insert(path) {
                break;
            }
        }
    }
    paths.into_iter().collect()
}

/// Compares each change with the real tree (APL-2, APL-3).
pub fn triage(changes: &[Change], observed: &Observed, facts: Facts) -> Triage {
    let mut out = Triage::default();
    let results: HashMap<&RelPath, Option<Entry>> = changes
        .iter()
        .map(|change| (&change.path, change.new))
        .collect();
    let folded = folded_counts(changes, facts);
    let mut parents = BTreeSet::new();
    for change in changes {
        let path = &change.path;
        if let Some(reason) = refused(path, facts, &folded) {
            out.conflicts.push(Conflict::new(path, reason));
            continue;
        }
        if change.new.is_some() {
            match parents_of(path, &results, observed) {
                Ok(missing) => parents.extend(missing),
                Err(reason) => {
                    out.conflicts.push(Conflict::new(path, reason));
                    continue;
                }
            }
        }
        judge(change, observed.get(path), &mut out);
    }
    for path in parents {
        out.warnings.push(Warning::ParentMade(path.clone()));
        out.settled.push(PathOp::MakeDir { path });
    }
    out
}

/// Counts changed paths by their folded name, where case does not count.
fn folded_counts(changes: &[Change], facts: Facts) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    if facts.case_insensitive {
        for change in changes {
            *counts.entry(fold(&change.path)).or_insert(0) += 1;
        }
    }
    counts
}

fn fold(path: &RelPath) -> String {
    path.as_str().to_lowercase()
}

fn refused(path: &RelPath, facts: Facts, folded: &BTreeMap<String, usize>) -> Option<Reason> {
    let top = path.names().next().expect("a path has a name");
    // Compared without case on every target: the same change set may later
    // go to one where `.GIT` is `.git`.
    let reserved = top.eq_ignore_ascii_case(".sandbar")
        || (facts.checkout && top.eq_ignore_ascii_case(".git"));
    if reserved {
        return Some(Reason::Reserved);
    }
    (facts.case_insensitive && folded.get(&fold(path)).is_some_and(|count| *count > 1))
        .then_some(Reason::CaseCollision)
}

/// Returns the directories above `path` that the real tree lacks and no
/// change makes.
fn parents_of(
    path: &RelPath,
    results: &HashMap<&RelPath, Option<Entry>>,
    observed: &Observed,
) -> Result<Vec<RelPath>, Reason> {
    let mut missing = Vec::new();
    let mut next = path.parent();
    while let Some(dir) = next {
        next = dir.parent();
        let after = match results.get(&dir) {
            Some(Some(new)) if new.kind == Kind::Directory => continue,
            Some(_) => return Err(Reason::ParentNotDirectory),
            None => observed.get(&dir),
        };
        match after {
            Some(entry) if entry.kind == Kind::Directory => {}
            Some(_) => return Err(Reason::ParentNotDirectory),
            None => missing.push(dir),
        }
    }
    Ok(missing)
}

/// Directories have no content of their own here, whatever hash they carry.
fn same(a: Option<Entry>, b: Option<Entry>) -> bool {
    match (a, b) {
        (Some(a), Some(b)) if a.kind == Kind::Directory => b.kind == Kind::Directory,
        (a, b) => a == b,
    }
}

fn judge(change: &Change, real: Option<Entry>, out: &mut Triage) {
    let (base, result, path) = (change.old, change.new, &change.path);
    if same(real, result) {
        out.already.push(path.clone());
        return;
    }
    if same(real, base) {
        take(path, real, result, &mut out.settled);
        return;
    }
    let reason = match (base, real, result) {
        (Some(base), Some(real), Some(result))
            if base.kind.is_file() && real.kind.is_file() && result.kind.is_file() =>
        {
            combine(path, base, real, result, out);
            return;
        }
        (_, None, None) => unreachable!("two absent sides are the same"),
        (_, None, Some(_)) => Reason::DeletedHere,
        (_, Some(_), None) => Reason::DeletedInResult,
        (_, Some(real), Some(result)) if real.kind.word() != result.kind.word() => Reason::Type,
        (None, Some(_), Some(_)) => Reason::BothAdded,
        (Some(_), Some(real), Some(_)) if real.kind == Kind::Symlink => Reason::Symlink,
        (Some(_), Some(_), Some(_)) => Reason::Type,
    };
    out.conflicts.push(Conflict::new(path, reason));
}

/// Both sides changed a regular file: bit and content are settled apart.
fn combine(path: &RelPath, base: Entry, real: Entry, result: Entry, out: &mut Triage) {
    // The bit has two values: where both sides changed it they agree.
    let kind = if real.kind == base.kind {
        result.kind
    } else {
        real.kind
    };
    let hash = if real.hash == base.hash || real.hash == result.hash {
        result.hash
    } else if result.hash == base.hash {
        real.hash
    } else {
        out.merges.push(MergeRequest {
            path: path.clone(),
            base: base.hash,
            real: real.hash,
            result: result.hash,
            kind,
            old: real,
        });
        return;
    };
    let new = Entry::new(kind, hash);
    if new == real {
        out.already.push(path.clone());
    } else {
        out.warnings.push(Warning::Combined(path.clone()));
        take(path, Some(real), Some(new), &mut out.settled);
    }
}

/// Adds what leads from `real` to `result`, which differ.
pub(crate) fn take(
    path: &RelPath,
    real: Option<Entry>,
    result: Option<Entry>,
    ops: &mut Vec<PathOp>,
) {
    let is_dir = |entry: Entry| entry.kind == Kind::Directory;
    let path = || path.clone();
    if let (Some(old), Some(new)) = (real, result)
        && !is_dir(old)
        && !is_dir(new)
    {
        let only_mode = old.hash == new.hash && old.kind.is_file() && new.kind.is_file();
        ops.push(if only_mode {
            PathOp::SetMode {
                path: path(),
                old,
                new,
            }
        } else {
            PathOp::Replace {
                path: path(),
                old,
                new,
            }
        });
        return;
    }
    match real {
        Some(old) if is_dir(old) => ops.push(PathOp::RemoveDir { path: path() }),
        Some(old) => ops.push(PathOp::Remove { path: path(), old }),
        None => {}
    }
    match result {
        Some(new) if is_dir(new) => ops.push(PathOp::MakeDir { path: path() }),
        Some(new) => ops.push(PathOp::Create { path: path(), new }),
        None => {}
    }
}
