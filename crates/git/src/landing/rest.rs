//! What is in the result and in no commit of the series: one more tree, on top
//! of the series. The user's own uncommitted work stays out of it.

use std::collections::HashSet;

use gix::ObjectId;
use gix::bstr::{BString, ByteSlice as _};
use gix::objs::tree::EntryKind;
use sandbar_domain::{Entry, Kind, RelPath};
use sandbar_ports::PortResult;
use sandbar_ports::git::LandingRequest;

use super::attributes::Attributes;
use super::trees::{Slot, Step, at, carry_over, diff, merge};
use super::{drift, tree_of};
use crate::hidden::{Gitlinks, entry_kind, is_git};
use crate::index::Index;
use crate::open::{Scope, failed};
use crate::{reading, rules};

/// The tree of the last commit.
#[derive(Debug)]
pub(super) struct Rest {
    /// The tree; that of the tip where nothing is left.
    pub(super) tree: ObjectId,
    /// The paths that it changes.
    pub(super) paths: Vec<BString>,
    /// Paths that the user had changed and not committed at base, among those
    /// that the plan changed.
    pub(super) dirty: HashSet<String>,
    /// What a person should know.
    pub(super) notes: Vec<String>,
}

/// Makes the tree: that of `tip` with what the plan changed beyond it.
pub(super) fn tree(
    scratch: &gix::Repository,
    inside: &gix::Repository,
    tip: Option<ObjectId>,
    base: Option<ObjectId>,
    attributes: &mut Attributes<'_>,
    request: &LandingRequest,
    scope: Scope,
) -> PortResult<Rest> {
    let empty = ObjectId::empty_tree(scratch.object_hash());
    let tip_tree = tip.map_or(Ok(empty), |tip| tree_of(scratch, tip))?;
    let base_tree = base.map_or(Ok(empty), |base| tree_of(inside, base))?;
    let head = inside
        .head_tree_id_or_empty()
        .map_err(failed("read HEAD of the sandbox"))?
        .detach();
    let links = Gitlinks::of(&Index::load(inside)?);
    let mut candidates = Vec::new();
    for change in &request.changes {
        if links.covers(&change.path) || is_git(&change.path) {
            continue;
        }
        let old = stored(scratch, attributes, &change.path, change.old, request)?;
        let new = stored(scratch, attributes, &change.path, change.new, request)?;
        if old.is_some() || new.is_some() {
            candidates.push((change.path.clone(), old, new));
        }
    }
    // What was committed inside and undone again is no change of the plan's.
    let known: HashSet<&RelPath> = request.changes.iter().map(|change| &change.path).collect();
    for step in diff(inside, Some(base_tree), Some(head))? {
        let Ok(path) = RelPath::from_bytes(&step.path) else {
            continue;
        };
        if known.contains(&path)
            || links.covers(&path)
            || is_git(&path)
            || attributes.is_filtered(step.path.as_bstr())?
        {
            continue;
        }
        let now = present(scratch, attributes, &path, request)?;
        candidates.push((path, now, now));
    }
    let paths = candidates.iter().map(|(path, ..)| path);
    let ignored = rules::ignored(&request.root, paths, scope)?;

    let mut rest = Rest {
        tree: tip_tree,
        paths: Vec::new(),
        dirty: HashSet::new(),
        notes: Vec::new(),
    };
    let mut steps = Vec::new();
    let mut unclear = Vec::new();
    let mut left = Vec::new();
    for (at_path, old, new) in candidates {
        let path: BString = at_path.as_str().into();
        let leaf = |slot: Slot| slot.filter(|(kind, _)| *kind != EntryKind::Tree);
        let was = leaf(at(inside, base_tree, path.as_bstr())?);
        let committed = leaf(at(inside, head, path.as_bstr())?);
        if committed == new {
            continue;
        }
        // What git has of such a file was made by the filter: the two cannot
        // be compared, and the new content replaces it as a whole.
        let filtered = attributes.is_filtered(path.as_bstr())?;
        if old != was && !filtered {
            rest.dirty.insert(at_path.to_string());
        }
        // Never known to git, and ignored: carried by an include, not for it.
        if committed.is_none() && was.is_none() && ignored.contains(&at_path) {
            left.push(at_path.to_string());
            continue;
        }
        let from = if filtered {
            committed
        } else if committed == was {
            old
        } else if old == was || merge(scratch, was, old, committed)? == Some(committed) {
            committed
        } else {
            unclear.push(at_path.to_string());
            continue;
        };
        steps.push(Step {
            path,
            base: from,
            theirs: new,
        });
    }
    let what = "tell the plan's changes from your own uncommitted ones";
    if !unclear.is_empty() {
        return Err(drift(what, unclear));
    }
    rest.tree = carry_over(scratch, tip_tree, &steps)?.map_err(|paths| drift(what, paths))?;
    rest.paths = steps.into_iter().map(|step| step.path).collect();
    if !left.is_empty() {
        left.truncate(20);
        rest.notes.push(format!(
            "ignored files are not committed: {}",
            left.join(", ")
        ));
    }
    Ok(rest)
}

/// Makes of a changed file what git would store for it.
fn stored(
    scratch: &gix::Repository,
    attributes: &mut Attributes<'_>,
    path: &RelPath,
    entry: Option<Entry>,
    request: &LandingRequest,
) -> PortResult<Slot> {
    match entry.filter(|entry| entry.kind != Kind::Directory) {
        Some(entry) => {
            let bytes = request.contents.read(entry.hash)?;
            store(scratch, attributes, path, entry.kind, bytes)
        }
        None => Ok(None),
    }
}

/// Makes the same of a file that is in the sandbox now.
fn present(
    scratch: &gix::Repository,
    attributes: &mut Attributes<'_>,
    path: &RelPath,
    request: &LandingRequest,
) -> PortResult<Slot> {
    match reading::content(&request.root.join(path))? {
        Some((kind, bytes)) => store(scratch, attributes, path, kind, bytes),
        None => Ok(None),
    }
}

fn store(
    scratch: &gix::Repository,
    attributes: &mut Attributes<'_>,
    path: &RelPath,
    kind: Kind,
    mut bytes: Vec<u8>,
) -> PortResult<Slot> {
    if kind.is_file() {
        bytes = attributes.store_form(path, bytes)?;
    }
    let id = scratch
        .write_blob(bytes)
        .map_err(failed(format!("make a blob of {path}")))?
        .detach();
    Ok(entry_kind(kind).map(|kind| (kind, id)))
}
