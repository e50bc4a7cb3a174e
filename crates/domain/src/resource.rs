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

/// What a strategy can be asked for (STR-8).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Ability {
    /// Make a sandbox.
    Create,
    /// Say where it is.
    Path,
    /// Save its state.
    Checkpoint,
    /// Go back to a saved state.
    Rollback,
    /// Say exactly what changed.
    ChangeSet,
    /// Prepare the result beside the real resource, invisibly.
    Stage,
    /// Bring the result to the real resource.
    Apply,
    /// Take an applied result back.
    Undo,
    /// Bring the result as commits.
    Commits,
    /// Remove the sandbox.
    CleanUp,
}

impl Ability {
    /// Every ability.
    pub const ALL: [Self; 10] = [
        Self::Create,
        Self::Path,
        Self::Checkpoint,
        Self::Rollback,
        Self::ChangeSet,
        Self::Stage,
        Self::Apply,
        Self::Undo,
        Self::Commits,
        Self::CleanUp,
    ];

    /// Returns the word of the output contract.
    pub fn word(self) -> &'static str {
        match self {
            Self::Create => "create",
            Self::Path => "path",
            Self::Checkpoint => "checkpoint",
            Self::Rollback => "rollback",
            Self::ChangeSet => "change_set",
            Self::Stage => "stage",
            Self::Apply => "apply",
            Self::Undo => "undo",
            Self::Commits => "commits",
            Self::CleanUp => "clean_up",
        }
    }
}

impl Strategy {
    /// Says whether the strategy has an ability.
    pub fn can(self, ability: Ability) -> bool {
        match (self, ability) {
            (Self::CopyOnWrite, Ability::Commits) => false,
            (Self::GitWorktree | Self::CopyOnWrite, _) => true,
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
