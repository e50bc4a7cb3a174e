//! Reading directory objects: one, all beneath one, or what differs between
//! two. It enters only directories that differ, and never recurses on the
//! stack: a tree can be 2,000 levels deep.

use std::collections::HashMap;
use std::collections::hash_map::Entry as Slot;

use sandbar_domain::tree::{self, Tree};
use sandbar_domain::{Change, Entry, Hash, Kind, RelPath};
use sandbar_ports::PortResult;

use super::corrupt;
use super::store::ObjectStore;

/// Reads one directory object.
pub(crate) fn read_tree(store: &ObjectStore, hash: Hash) -> PortResult<Tree> {
    if hash == tree::empty() {
        return Ok(Tree::default());
    }
    Tree::decode(&store.read(hash)?).map_err(|error| corrupt(hash, &error.to_string()))
}

fn child(parent: Option<&RelPath>, name: &str, tree: Hash) -> PortResult<RelPath> {
    RelPath::child(parent, name).map_err(|error| corrupt(tree, &error.to_string()))
}

/// What a change set shows of an entry: directories without their content.
fn shown(entry: Entry) -> Entry {
    match entry.kind {
        Kind::Directory => Entry::new(Kind::Directory, tree::empty()),
        _ => entry,
    }
}

/// Compares two directory objects; see the port.
pub(crate) fn diff(store: &ObjectStore, old: Hash, new: Hash) -> PortResult<Vec<Change>> {
    let mut changes = Vec::new();
    let mut open: Vec<(Option<RelPath>, Option<Hash>, Option<Hash>)> =
        vec![(None, Some(old), Some(new))];
    while let Some((dir, old, new)) = open.pop() {
        if old == new {
            continue;
        }
        let read = |side: Option<Hash>| side.map_or(Ok(Tree::default()), |h| read_tree(store, h));
        let (before, after) = (read(old)?, read(new)?);
        let at = new.or(old).unwrap_or_else(tree::empty);
        for (name, left, right) in pairs(&before, &after) {
            if left == right {
                continue;
            }
            let path = child(dir.as_ref(), name, at)?;
            let directory =
                |side: Option<Entry>| side.filter(|e| e.kind == Kind::Directory).map(|e| e.hash);
            let (left_dir, right_dir) = (directory(left), directory(right));
            changes.extend(Change::between(
                path.clone(),
                left.map(shown),
                right.map(shown),
            ));
            if left_dir.is_some() || right_dir.is_some() {
                open.push((Some(path), left_dir, right_dir));
            }
        }
    }
    changes.sort_unstable_by(|a, b| a.path.cmp(&b.path));
    Ok(changes)
}

/// Walks two sorted directories side by side.
fn pairs<'t>(
    before: &'t Tree,
    after: &'t Tree,
) -> impl Iterator<Item = (&'t str, Option<Entry>, Option<Entry>)> {
    let mut left = before.entries().iter().peekable();
    let mut right = after.entries().iter().peekable();
    std::iter::from_fn(move || {
        let order = match (left.peek(), right.peek()) {
            (None, None) => return None,
            (Some(_), None) => std::cmp::Ordering::Less,
            (None, Some(_)) => std::cmp::Ordering::Greater,
            (Some((a, _)), Some((b, _))) => a.as_bytes().cmp(b.as_bytes()),
        };
        let old = if order.is_le() { left.next() } else { None };
        let new = if order.is_ge() { right.next() } else { None };
        let name = old.or(new).map(|(name, _)| &**name)?;
        Some((name, old.map(|(_, e)| *e), new.map(|(_, e)| *e)))
    })
}

/// Returns what is at each of `paths`; see the port.
pub(crate) fn lookup(
    store: &ObjectStore,
    root: Hash,
    paths: &[RelPath],
) -> PortResult<Vec<Option<Entry>>> {
    let mut known: HashMap<Hash, Tree> = HashMap::new();
    let mut answers = Vec::with_capacity(paths.len());
    for path in paths {
        let mut entry = Some(Entry::new(Kind::Directory, root));
        for name in path.names() {
            entry = match entry {
                Some(dir) if dir.kind == Kind::Directory => {
                    let tree = match known.entry(dir.hash) {
                        Slot::Occupied(slot) => slot.into_mut(),
                        Slot::Vacant(slot) => slot.insert(read_tree(store, dir.hash)?),
                    };
                    tree.get(name)
                }
                _ => None,
            };
        }
        answers.push(entry);
    }
    Ok(answers)
}

/// Returns every path beneath a tree, sorted.
pub(crate) fn list(store: &ObjectStore, root: Hash) -> PortResult<Vec<(RelPath, Entry)>> {
    let mut all = Vec::new();
    let mut open = vec![(None, root)];
    while let Some((dir, hash)) = open.pop() {
        for (name, entry) in read_tree(store, hash)?.entries() {
            let path = child(dir.as_ref(), name, hash)?;
            if entry.kind == Kind::Directory {
                open.push((Some(path.clone()), entry.hash));
            }
            all.push((path, *entry));
        }
    }
    all.sort_unstable_by(|a, b| a.0.cmp(&b.0));
    Ok(all)
}
