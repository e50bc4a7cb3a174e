//! Trees as lists of leaves: differences, and three-way merges path by path.
//! A rename is a removal and an addition; what is not certain is a conflict.

use std::collections::HashSet;

use gix::ObjectId;
use gix::bstr::{BStr, BString, ByteSlice as _, ByteVec as _};
use gix::objs::tree::EntryKind;
use sandbar_domain::merge::merge3;
use sandbar_ports::PortResult;

use crate::open::failed;

/// What is at one path of a tree; none, or a leaf.
pub(super) type Slot = Option<(EntryKind, ObjectId)>;

/// One path that one side changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Step {
    pub(super) path: BString,
    /// What the change started from.
    pub(super) base: Slot,
    /// What it made.
    pub(super) theirs: Slot,
}

/// Lists the leaves that differ, sorted.
pub(super) fn diff(
    repository: &gix::Repository,
    old: Option<ObjectId>,
    new: Option<ObjectId>,
) -> PortResult<Vec<Step>> {
    let mut steps = Vec::new();
    diff_in(repository, old, new, BStr::new(""), &mut steps)?;
    steps.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(steps)
}

fn diff_in(
    repository: &gix::Repository,
    old: Option<ObjectId>,
    new: Option<ObjectId>,
    prefix: &BStr,
    steps: &mut Vec<Step>,
) -> PortResult<()> {
    if old == new {
        return Ok(());
    }
    let (old, new) = (entries(repository, old)?, entries(repository, new)?);
    let mut names: Vec<&BString> = old.iter().chain(&new).map(|(name, ..)| name).collect();
    names.sort_unstable();
    names.dedup();
    for name in names {
        let find = |list: &[(BString, EntryKind, ObjectId)]| {
            list.iter()
                .find(|(have, ..)| have == name)
                .map(|(_, kind, id)| (*kind, *id))
        };
        let (was, is) = (find(&old), find(&new));
        if was == is {
            continue;
        }
        let tree = |slot: Slot| {
            slot.filter(|(kind, _)| *kind == EntryKind::Tree)
                .map(|(_, id)| id)
        };
        let leaf = |slot: Slot| slot.filter(|(kind, _)| *kind != EntryKind::Tree);
        let mut path = prefix.to_owned();
        path.push_str(name);
        if leaf(was) != leaf(is) {
            steps.push(Step {
                path: path.clone(),
                base: leaf(was),
                theirs: leaf(is),
            });
        }
        path.push(b'/');
        diff_in(repository, tree(was), tree(is), path.as_bstr(), steps)?;
    }
    Ok(())
}

fn entries(
    repository: &gix::Repository,
    tree: Option<ObjectId>,
) -> PortResult<Vec<(BString, EntryKind, ObjectId)>> {
    let Some(id) = tree else {
        return Ok(Vec::new());
    };
    let what = || format!("read tree {id}");
    let tree = repository.find_tree(id).map_err(failed(what()))?;
    let mut entries = Vec::new();
    for entry in tree.iter() {
        let entry = entry.map_err(failed(what()))?;
        entries.push((
            entry.filename().to_owned(),
            entry.mode().kind(),
            entry.object_id(),
        ));
    }
    Ok(entries)
}

/// Looks a path up; a directory is returned as a tree.
pub(super) fn at(repository: &gix::Repository, tree: ObjectId, path: &BStr) -> PortResult<Slot> {
    let what = || format!("look for {path} in tree {tree}");
    let found = repository
        .find_tree(tree)
        .map_err(failed(what()))?
        .lookup_entry(path.split_str("/"))
        .map_err(failed(what()))?;
    Ok(found.map(|entry| (entry.mode().kind(), entry.object_id())))
}

/// Carries `steps` over to the tree `ours`. Returns the new tree, or the paths
/// that conflict.
pub(super) fn carry_over(
    repository: &gix::Repository,
    ours: ObjectId,
    steps: &[Step],
) -> PortResult<Result<ObjectId, Vec<String>>> {
    let mut conflicts = Vec::new();
    let mut edits = Vec::new();
    for step in steps {
        let here = at(repository, ours, step.path.as_bstr())?;
        let leaf = here.filter(|(kind, _)| *kind != EntryKind::Tree);
        match merge(repository, step.base, leaf, step.theirs)? {
            Some(merged) if merged == leaf => {}
            Some(merged) => edits.push((&step.path, merged)),
            None => conflicts.push(step.path.to_string()),
        }
    }
    let removed: HashSet<&BStr> = edits
        .iter()
        .filter(|(_, slot)| slot.is_none())
        .map(|(path, _)| path.as_bstr())
        .collect();
    for (path, slot) in &edits {
        if slot.is_some() && !is_free(repository, ours, path.as_bstr(), &removed)? {
            conflicts.push(path.to_string());
        }
    }
    if !conflicts.is_empty() {
        return Ok(Err(conflicts));
    }
    let what = "make a tree";
    let tree = repository.find_tree(ours).map_err(failed(what))?;
    let mut editor = tree.edit().map_err(failed(what))?.detach();
    let components =
        |path: &'_ BString| -> Vec<BString> { path.split_str("/").map(BString::from).collect() };
    // Removals first: what was a directory may be a file now.
    for (path, _) in edits.iter().filter(|(_, slot)| slot.is_none()) {
        editor
            .remove(components(path).iter().map(|name| name.as_bstr()))
            .map_err(failed(what))?;
    }
    for (path, slot) in &edits {
        if let Some((kind, id)) = slot {
            editor
                .upsert(
                    components(path).iter().map(|name| name.as_bstr()),
                    *kind,
                    *id,
                )
                .map_err(failed(what))?;
        }
    }
    editor
        .write(|tree| repository.write_object(tree).map(gix::Id::detach))
        .map(Ok)
        .map_err(failed(what))
}

/// Says whether nothing of `tree` that stays is in the way of a leaf at
/// `path`: a file where a directory must be, or a directory with content.
fn is_free(
    repository: &gix::Repository,
    tree: ObjectId,
    path: &BStr,
    removed: &HashSet<&BStr>,
) -> PortResult<bool> {
    for slash in path.find_iter("/") {
        let above = path[..slash].as_bstr();
        match at(repository, tree, above)? {
            None => break,
            Some((EntryKind::Tree, _)) => {}
            Some(_) if removed.contains(above) => break,
            Some(_) => return Ok(false),
        }
    }
    if let Some((EntryKind::Tree, id)) = at(repository, tree, path)? {
        for step in diff(repository, None, Some(id))? {
            let mut whole = path.to_owned();
            whole.push(b'/');
            whole.push_str(&step.path);
            if !removed.contains(whole.as_bstr()) {
                return Ok(false);
            }
        }
    }
    Ok(true)
}

/// Merges one path; the outer `None` is a conflict.
pub(super) fn merge(
    repository: &gix::Repository,
    base: Slot,
    ours: Slot,
    theirs: Slot,
) -> PortResult<Option<Slot>> {
    if ours == theirs || theirs == base {
        return Ok(Some(ours));
    }
    if ours == base {
        return Ok(Some(theirs));
    }
    let (Some(base), Some(ours), Some(theirs)) = (base, ours, theirs) else {
        return Ok(None);
    };
    let is_file = |(kind, _): (EntryKind, ObjectId)| {
        matches!(kind, EntryKind::Blob | EntryKind::BlobExecutable)
    };
    if ![base, ours, theirs].into_iter().all(is_file) {
        return Ok(None);
    }
    let kind = if ours.0 == base.0 { theirs.0 } else { ours.0 };
    if ours.1 == theirs.1 || theirs.1 == base.1 {
        return Ok(Some(Some((kind, ours.1))));
    }
    if ours.1 == base.1 {
        return Ok(Some(Some((kind, theirs.1))));
    }
    let read = |id: ObjectId| -> PortResult<Vec<u8>> {
        let mut blob = repository
            .find_blob(id)
            .map_err(failed(format!("read blob {id}")))?;
        Ok(blob.take_data())
    };
    match merge3(&read(base.1)?, &read(ours.1)?, &read(theirs.1)?) {
        Ok(merged) => {
            let id = repository
                .write_blob(merged)
                .map_err(failed("make a merged blob"))?
                .detach();
            Ok(Some(Some((kind, id))))
        }
        Err(_) => Ok(None),
    }
}
