//! Trees of hidden commits: from the one before, or from nothing.

use std::collections::HashSet;

use gix::ObjectId;
use gix::bstr::BStr;
use gix::objs::tree::{Entry, EntryKind};
use sandbar_domain::{Code, Hash, Kind, RelPath};
use sandbar_ports::git::HideRequest;
use sandbar_ports::workspace::CopiedFile;
use sandbar_ports::{PortError, PortResult};

use super::sink::Sink;
use crate::index::{Index, Stat, mode};
use crate::open::failed;
use crate::reading;

/// One file or symlink that the tree of everything is to hold.
struct Wish<'r> {
    path: &'r RelPath,
    kind: Kind,
    hash: Hash,
    /// What the index would say of it now.
    stat: Option<Stat>,
}

/// Makes the tree of everything. What the index knows by stat is not read:
/// its object is there already.
pub(super) fn whole(sink: &mut Sink<'_>, request: &HideRequest) -> PortResult<ObjectId> {
    let repository = sink.repository;
    let index = index_of(repository);
    let links = Gitlinks::of(&index);
    let converts = converts(repository, &index);
    let mut known = index.entries().peekable();
    let mut leaves: Vec<(&[u8], EntryKind, ObjectId)> = Vec::new();
    let wishes = match &request.copied {
        Some(copied) => copied.iter().filter_map(of_copy).collect(),
        None => of_changes(request),
    };
    for wish in wishes {
        let Some(kind) = entry_kind(wish.kind) else {
            continue;
        };
        if links.covers(wish.path) || is_git(wish.path) {
            continue;
        }
        let path = wish.path.as_str().as_bytes();
        while known.next_if(|entry| entry.path < path).is_some() {}
        let clean = known
            .peek()
            .filter(|entry| entry.path == path && entry.stage() == 0 && !entry.intent_to_add())
            .filter(|entry| same_type(entry.mode(), wish.kind))
            .filter(|entry| {
                wish.stat.is_some_and(|stat| {
                    index.written_ns > stat.modified_ns() && stat == entry.stat()
                })
            })
            .filter(|entry| !converts || has_size(repository, entry.id(), entry.stat().size));
        let id = match clean {
            Some(entry) => entry.id(),
            None => sink.blob(&request.contents.read(wish.hash)?)?,
        };
        leaves.push((path, kind, id));
    }
    for (path, id) in &links.0 {
        leaves.push((path, EntryKind::Commit, *id));
    }
    leaves.sort_by(|a, b| a.0.cmp(b.0));
    leaves.dedup_by(|a, b| a.0 == b.0);
    build(sink, &leaves, 0)
}

fn of_copy(file: &CopiedFile) -> Option<Wish<'_>> {
    let kind = match file.copy.mode & 0o170_000 {
        0o120_000 => Kind::Symlink,
        0o100_000 if file.copy.mode & 0o100 != 0 => Kind::Executable,
        0o100_000 => Kind::File,
        _ => return None,
    };
    Some(Wish {
        path: &file.path,
        kind,
        hash: file.hash,
        stat: Some(Stat::of(&file.copy)),
    })
}

fn of_changes(request: &HideRequest) -> Vec<Wish<'_>> {
    let mut wishes: Vec<_> = request
        .changes
        .iter()
        .filter_map(|change| {
            let new = change.new.filter(|new| new.kind != Kind::Directory)?;
            Some(Wish {
                path: &change.path,
                kind: new.kind,
                hash: new.hash,
                stat: None,
            })
        })
        .collect();
    wishes.sort_unstable_by(|a, b| a.path.cmp(b.path));
    let paths: Vec<&RelPath> = wishes.iter().map(|wish| wish.path).collect();
    let stats = reading::index_stats(&request.root, &paths);
    for (wish, stat) in wishes.iter_mut().zip(stats) {
        wish.stat = stat;
    }
    wishes
}

/// Makes the tree that differs from that of `parent` by the changes.
pub(super) fn changed(
    sink: &mut Sink<'_>,
    parent: ObjectId,
    request: &HideRequest,
) -> PortResult<ObjectId> {
    let repository = sink.repository;
    let what = || format!("read the hidden commit {parent}");
    let unreadable = |error: PortError| PortError::new(Code::CorruptObject, error.message);
    let before = repository
        .find_commit(parent)
        .map_err(failed(what()))
        .and_then(|commit| commit.tree().map_err(failed(what())))
        .map_err(unreadable)?;
    let index = index_of(repository);
    let links = Gitlinks::of(&index);
    let mut editor = before.edit().map_err(failed(what()))?.detach();
    let mine =
        |change: &&sandbar_domain::Change| !links.covers(&change.path) && !is_git(&change.path);
    // Removals first: what was a directory may be a file now.
    for change in request.changes.iter().filter(mine) {
        let was = change.old.and_then(|old| entry_kind(old.kind));
        let is = change.new.and_then(|new| entry_kind(new.kind));
        if was.is_some() && is.is_none() {
            editor
                .remove(components(&change.path))
                .map_err(failed(format!("remove {} from a tree", change.path)))?;
        }
    }
    for change in request.changes.iter().filter(mine) {
        let Some(new) = change.new else { continue };
        let Some(kind) = entry_kind(new.kind) else {
            continue;
        };
        let id = sink.blob(&request.contents.read(new.hash)?)?;
        editor
            .upsert(components(&change.path), kind, id)
            .map_err(failed(format!("put {} into a tree", change.path)))?;
    }
    for (path, id) in &links.0 {
        let names = path.split(|byte| *byte == b'/').map(BStr::new);
        editor
            .upsert(names, EntryKind::Commit, *id)
            .map_err(failed("put a submodule into a tree"))?;
    }
    editor
        .write(|tree| sink.write(tree).map_err(gix::Error::from_error))
        .map_err(failed("write the tree of a hidden commit"))
}

/// A damaged index must not keep a checkpoint from being taken.
fn index_of(repository: &gix::Repository) -> Index {
    Index::load(repository).unwrap_or_default()
}

fn components(path: &RelPath) -> impl Iterator<Item = &BStr> {
    path.names().map(BStr::new)
}

/// Says which kind of tree entry it is; a directory is none of its own.
pub(crate) fn entry_kind(kind: Kind) -> Option<EntryKind> {
    match kind {
        Kind::Directory => None,
        Kind::File => Some(EntryKind::Blob),
        Kind::Executable => Some(EntryKind::BlobExecutable),
        Kind::Symlink => Some(EntryKind::Link),
    }
}

fn same_type(mode: u32, kind: Kind) -> bool {
    match mode {
        mode::FILE | mode::EXECUTABLE => kind.is_file(),
        mode::SYMLINK => kind == Kind::Symlink,
        _ => false,
    }
}

fn has_size(repository: &gix::Repository, id: ObjectId, size: u32) -> bool {
    repository
        .find_header(id)
        .is_ok_and(|header| header.size() == u64::from(size))
}

/// Says whether git may store other bytes than the working tree has.
fn converts(repository: &gix::Repository, index: &Index) -> bool {
    let config = repository.config_snapshot();
    config
        .string("core.autocrlf")
        .is_some_and(|value| value != "false")
        || reading::present(&repository.common_dir().join("info/attributes"))
        || config.string("core.attributesFile").is_some()
        || index
            .entries()
            .any(|entry| entry.path.ends_with(b".gitattributes"))
}

/// No tree may hold a name that git takes for its own directory.
pub(crate) fn is_git(path: &RelPath) -> bool {
    path.names().any(|name| name.eq_ignore_ascii_case(".git"))
}

/// The submodules of an index.
pub(crate) struct Gitlinks(Vec<(Vec<u8>, ObjectId)>, HashSet<String>);

impl Gitlinks {
    /// Lists them.
    pub(crate) fn of(index: &Index) -> Self {
        let list: Vec<_> = index
            .entries()
            .filter(|entry| entry.mode() == mode::GITLINK)
            .map(|entry| (entry.path.to_vec(), entry.id()))
            .collect();
        let names = list
            .iter()
            .filter_map(|(path, _)| String::from_utf8(path.clone()).ok())
            .collect();
        Self(list, names)
    }

    /// Says whether `path` is a submodule or lies in one.
    pub(crate) fn covers(&self, path: &RelPath) -> bool {
        if self.1.is_empty() {
            return false;
        }
        let text = path.as_str();
        self.1.contains(text)
            || text
                .match_indices('/')
                .any(|(at, _)| self.1.contains(&text[..at]))
    }
}

/// Writes the trees of sorted leaves; `skip` bytes of each path are done.
fn build(
    sink: &mut Sink<'_>,
    leaves: &[(&[u8], EntryKind, ObjectId)],
    skip: usize,
) -> PortResult<ObjectId> {
    let mut entries = Vec::new();
    let mut at = 0;
    while at < leaves.len() {
        let (path, kind, id) = &leaves[at];
        let rest = &path[skip..];
        let Some(slash) = rest.iter().position(|byte| *byte == b'/') else {
            entries.push(Entry {
                mode: (*kind).into(),
                filename: rest.into(),
                oid: *id,
            });
            at += 1;
            continue;
        };
        let prefix = &path[..=skip + slash];
        let length = leaves[at..].partition_point(|(path, ..)| path.starts_with(prefix));
        let oid = build(sink, &leaves[at..at + length], prefix.len())?;
        entries.push(Entry {
            mode: EntryKind::Tree.into(),
            filename: rest[..slash].into(),
            oid,
        });
        at += length;
    }
    entries.sort_unstable();
    if entries
        .windows(2)
        .any(|pair| pair[0].filename == pair[1].filename)
    {
        return Err(PortError::new(
            Code::Internal,
            "write a tree: a name is a file and a directory at once",
        ));
    }
    sink.write(&gix::objs::Tree { entries })
}
