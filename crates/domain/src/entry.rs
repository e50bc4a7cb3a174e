//! What is at one path: the canonical content contract of ENV-3.

use crate::hash::Hash;

/// The kind of an entry. The executable bit is part of the kind, as in git.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// A directory.
    Directory,
    /// A regular file without the executable bit.
    File,
    /// A regular file that its owner may execute.
    Executable,
    /// A symbolic link.
    Symlink,
}

impl Kind {
    /// Says whether it is a regular file, executable or not.
    pub fn is_file(self) -> bool {
        matches!(self, Self::File | Self::Executable)
    }

    /// Returns the mode as git writes it, for output.
    pub fn mode(self) -> &'static str {
        match self {
            Self::Directory => "040000",
            Self::File => "100644",
            Self::Executable => "100755",
            Self::Symlink => "120000",
        }
    }

    /// Returns the type word of the output contract.
    pub fn word(self) -> &'static str {
        match self {
            Self::Directory => "directory",
            Self::File | Self::Executable => "file",
            Self::Symlink => "symlink",
        }
    }
}

/// One entry: its kind and the hash of its content. For a file that is the
/// bytes, for a symlink the target bytes, for a directory its tree object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Entry {
    /// What it is.
    pub kind: Kind,
    /// The identity of what it holds.
    pub hash: Hash,
}

impl Entry {
    /// Pairs a kind with a content hash.
    pub const fn new(kind: Kind, hash: Hash) -> Self {
        Self { kind, hash }
    }
}
