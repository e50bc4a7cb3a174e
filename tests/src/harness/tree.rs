//! Trees as plain reads see them: fast enough to judge after every point.

use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

/// What is at a path.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Node {
    /// A directory.
    Directory,
    /// A symlink and where it leads.
    Link(PathBuf),
    /// A regular file: whether its owner may execute it, and its bytes.
    File(bool, Vec<u8>),
    /// Something else.
    Special,
}

/// Everything below a directory, by relative path.
pub type Tree = BTreeMap<PathBuf, Node>;

/// Reads a working tree; `.git` and `.sandbar` at its top are left out.
pub fn read(root: &Path) -> Tree {
    let mut tree = Tree::new();
    visit(root, &mut |path, meta| {
        let top = path.components().count() == 1;
        if top
            && [".git", ".sandbar"]
                .iter()
                .any(|name| path == Path::new(name))
        {
            return false;
        }
        tree.insert(path.to_owned(), node(&root.join(path), meta));
        true
    });
    tree
}

fn node(full: &Path, meta: &std::fs::Metadata) -> Node {
    if meta.is_dir() {
        Node::Directory
    } else if meta.is_symlink() {
        Node::Link(std::fs::read_link(full).expect("a link"))
    } else if meta.is_file() {
        Node::File(
            meta.mode() & 0o100 != 0,
            std::fs::read(full).expect("a file"),
        )
    } else {
        Node::Special
    }
}

/// Calls `see` for everything below `root`, parents first; a directory for
/// which it says false is not entered.
pub fn visit(root: &Path, see: &mut dyn FnMut(&Path, &std::fs::Metadata) -> bool) {
    let mut waiting = vec![PathBuf::new()];
    while let Some(dir) = waiting.pop() {
        let Ok(entries) = std::fs::read_dir(root.join(&dir)) else {
            continue;
        };
        for entry in entries {
            let entry = entry.expect("an entry");
            let path = dir.join(entry.file_name());
            // What goes away meanwhile was not there.
            let Ok(meta) = std::fs::symlink_metadata(root.join(&path)) else {
                continue;
            };
            if see(&path, &meta) && meta.is_dir() {
                waiting.push(path);
            }
        }
    }
}

/// What must not change at all: kind, mode, owner, size, time, inode, bytes.
/// Times of git's object files are left aside, since git freshens them.
pub fn exact(root: &Path) -> BTreeMap<PathBuf, String> {
    let mut tree = BTreeMap::new();
    visit(root, &mut |path, meta| {
        let object = meta.is_file() && path.starts_with("objects");
        let time = if object {
            0
        } else {
            meta.mtime() * 1_000_000_000 + meta.mtime_nsec()
        };
        let content = match node(&root.join(path), meta) {
            Node::File(_, bytes) => format!("{bytes:?}"),
            other => format!("{other:?}"),
        };
        let facts = format!(
            "{:o} {}:{} {} {time} {} {content}",
            meta.mode(),
            meta.uid(),
            meta.gid(),
            meta.len() * u64::from(!meta.is_dir()),
            meta.ino(),
        );
        tree.insert(path.to_owned(), facts);
        true
    });
    tree
}

/// Names the paths at which two trees differ.
pub fn difference<T: PartialEq>(a: &BTreeMap<PathBuf, T>, b: &BTreeMap<PathBuf, T>) -> Vec<String> {
    let paths: std::collections::BTreeSet<_> = a.keys().chain(b.keys()).collect();
    paths
        .into_iter()
        .filter(|path| a.get(*path) != b.get(*path))
        .map(|path| path.display().to_string())
        .collect()
}
