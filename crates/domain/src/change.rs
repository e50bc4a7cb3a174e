//! Change sets: exactly what differs between two trees (ENV-4).

use crate::entry::{Entry, Kind};
use crate::hash::Hash;
use crate::path::RelPath;
use crate::tree::kind_byte;

/// The tag at the head of every change-set object.
pub const TAG: &[u8] = b"sandbar.changes.v1\0";

/// How one path differs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ChangeKind {
    /// Only in the result.
    Added,
    /// The same type with other content (and perhaps another mode).
    Modified,
    /// Only in the base.
    Deleted,
    /// Only the executable bit differs.
    Mode,
    /// Another type: file, directory or symlink.
    Type,
}

impl ChangeKind {
    /// Returns the word of the output contract.
    pub fn word(self) -> &'static str {
        match self {
            Self::Added => "added",
            Self::Modified => "modified",
            Self::Deleted => "deleted",
            Self::Mode => "mode",
            Self::Type => "type",
        }
    }
}

/// One changed path. Directories appear when they themselves were added or
/// deleted, never because something beneath them changed; their hash is then
/// that of the empty directory, since their content is listed path by path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// Where.
    pub path: RelPath,
    /// What was there.
    pub old: Option<Entry>,
    /// What is there now.
    pub new: Option<Entry>,
}

impl Change {
    /// Compares two sides of one path; `None` if they are the same.
    pub fn between(path: RelPath, old: Option<Entry>, new: Option<Entry>) -> Option<Self> {
        (old != new).then_some(Self { path, old, new })
    }

    /// Classifies the change.
    pub fn kind(&self) -> ChangeKind {
        match (self.old, self.new) {
            (None, _) => ChangeKind::Added,
            (_, None) => ChangeKind::Deleted,
            (Some(old), Some(new)) if old.kind.word() != new.kind.word() => ChangeKind::Type,
            (Some(old), Some(new)) if old.hash == new.hash => ChangeKind::Mode,
            _ => ChangeKind::Modified,
        }
    }
}

/// All changes from one snapshot to another, sorted by path bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChangeSet {
    /// The id of the snapshot before.
    pub base: Hash,
    /// The id of the snapshot after.
    pub result: Hash,
    changes: Vec<Change>,
}

/// How many paths were added, modified (modes and types included), deleted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts {
    /// Paths only in the result.
    pub added: u64,
    /// Paths in both that differ.
    pub modified: u64,
    /// Paths only in the base.
    pub deleted: u64,
}

impl ChangeSet {
    /// Sorts `changes` and binds them to their ends.
    pub fn new(base: Hash, result: Hash, mut changes: Vec<Change>) -> Self {
        changes.sort_unstable_by(|a, b| a.path.cmp(&b.path));
        Self {
            base,
            result,
            changes,
        }
    }

    /// Returns the changes in order.
    pub fn changes(&self) -> &[Change] {
        &self.changes
    }

    /// Says whether nothing differs.
    pub fn is_empty(&self) -> bool {
        self.changes.is_empty()
    }

    /// Counts files and symlinks by kind of change; a directory counts only
    /// where it is the whole story (an empty one that came or went).
    pub fn counts(&self) -> Counts {
        let mut counts = Counts::default();
        for change in &self.changes {
            let directory =
                |entry: Option<Entry>| entry.is_none_or(|entry| entry.kind == Kind::Directory);
            if directory(change.old) && directory(change.new) && self.any_below(&change.path) {
                continue;
            }
            match change.kind() {
                ChangeKind::Added => counts.added += 1,
                ChangeKind::Deleted => counts.deleted += 1,
                _ => counts.modified += 1,
            }
        }
        counts
    }

    fn any_below(&self, dir: &RelPath) -> bool {
        let prefix = format!("{dir}/");
        let first = self
            .changes
            .partition_point(|change| change.path.as_str() < &*prefix);
        self.changes
            .get(first)
            .is_some_and(|change| change.path.as_str().starts_with(&prefix))
    }

    /// Encodes the object, for its identity and for the record.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = TAG.to_vec();
        out.extend_from_slice(self.base.as_bytes());
        out.extend_from_slice(self.result.as_bytes());
        let count = u64::try_from(self.changes.len()).expect("a length fits 64 bits");
        out.extend_from_slice(&count.to_be_bytes());
        for change in &self.changes {
            let path = change.path.as_str();
            let length = u16::try_from(path.len()).expect("a path has at most 4,095 bytes");
            out.extend_from_slice(&length.to_be_bytes());
            out.extend_from_slice(path.as_bytes());
            for side in [change.old, change.new] {
                match side {
                    Some(entry) => {
                        out.push(kind_byte(entry.kind));
                        out.extend_from_slice(entry.hash.as_bytes());
                    }
                    None => out.push(b'-'),
                }
            }
        }
        out
    }

    /// Returns the identity: the hash of the encoding.
    pub fn id(&self) -> Hash {
        Hash::of(&self.encode())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn change(path: &str, old: Option<Entry>, new: Option<Entry>) -> Change {
        Change {
            path: RelPath::new(path).expect("valid"),
            old,
            new,
        }
    }

    // conformance: ENV-4
    #[test]
    fn kinds_counts_and_golden_id() {
        let file = |bytes: &[u8]| Some(Entry::new(Kind::File, Hash::of(bytes)));
        let exe = Some(Entry::new(Kind::Executable, Hash::of(b"a")));
        let link = Some(Entry::new(Kind::Symlink, Hash::of(b"a")));
        let dir = Some(Entry::new(Kind::Directory, crate::tree::empty()));
        let changes = vec![
            change("t", file(b"a"), link),
            change("m", file(b"a"), exe),
            change("c", file(b"a"), file(b"b")),
            change("d", file(b"a"), None),
            change("n", None, dir),
            change("n-f", None, file(b"a")),
            change("n/f", None, file(b"a")),
            change("e", None, dir),
        ];
        let set = ChangeSet::new(Hash::of(b"1"), Hash::of(b"2"), changes);
        let words: Vec<_> = set
            .changes()
            .iter()
            .map(|c| (c.path.as_str(), c.kind().word()))
            .collect();
        assert_eq!(
            words,
            [
                ("c", "modified"),
                ("d", "deleted"),
                ("e", "added"),
                ("m", "mode"),
                ("n", "added"),
                ("n-f", "added"),
                ("n/f", "added"),
                ("t", "type")
            ]
        );
        assert_eq!(
            set.counts(),
            Counts {
                added: 3,
                modified: 3,
                deleted: 1
            }
        );
        insta::assert_snapshot!(set.id(), @"059c5eec3a9a40e000e9b1f343a0afbe0b7ce8a76d1264bb3e03c13c0c972f88");
    }
}
