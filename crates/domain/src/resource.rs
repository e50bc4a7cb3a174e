//! Resources as far as a plan on one boundary needs them: what a sandboxed
//! place is and by which strategy it is sandboxed (RES-1, RES-2).

use std::path::PathBuf;

use crate::id::ResourceId;

/// The physical types that can be a boundary today (RES-4).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ResourceType {
    /// A git checkout: a working tree with its repository.
    GitCheckout,
    /// A plain directory.
    FsDirectory,
}

impl ResourceType {
    /// Every type.
    pub const ALL: [Self; 2] = [Self::GitCheckout, Self::FsDirectory];

    /// Returns the name of the type.
    pub fn word(self) -> &'static str {
        match self {
            Self::GitCheckout => "git-checkout",
            Self::FsDirectory => "fs-directory",
        }
    }

    /// Reads the name back.
    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.word() == word)
    }

    /// Returns the default strategy of the type.
    pub fn strategy(self) -> Strategy {
        match self {
            Self::GitCheckout => Strategy::GitWorktree,
            Self::FsDirectory => Strategy::CopyOnWrite,
        }
    }
}

/// How a boundary is sandboxed (STR-1, STR-2).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Strategy {
    /// A private root with git working inside.
    GitWorktree,
    /// A private ordinary directory.
    CopyOnWrite,
}

impl Strategy {
    /// Every strategy.
    pub const ALL: [Self; 2] = [Self::GitWorktree, Self::CopyOnWrite];

    /// Returns the name of the strategy.
    pub fn word(self) -> &'static str {
        match self {
            Self::GitWorktree => "git_worktree",
            Self::CopyOnWrite => "copy_on_write",
        }
    }

    /// Reads the name back; `filesystem_copy` is an alias.
    pub fn from_word(word: &str) -> Option<Self> {
        match word {
            "filesystem_copy" => Some(Self::CopyOnWrite),
            _ => Self::ALL.into_iter().find(|kind| kind.word() == word),
        }
    }
}

/// A root on a file system: its path and what the path led to, so that a
/// replaced directory is noticed.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Root {
    /// The absolute, resolved path.
    pub path: PathBuf,
    /// The device number.
    pub device: u64,
    /// The inode number.
    pub inode: u64,
}

/// One registered place (RES-1).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Resource {
    /// Its id.
    pub id: ResourceId,
    /// Its type.
    pub kind: ResourceType,
    /// Where it lives.
    pub root: Root,
}
