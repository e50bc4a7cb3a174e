//! Sandbox policies and strategies, and which of them holds (RES-2).

use std::fmt;

/// How a boundary is isolated (STR-1 … STR-6).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Strategy {
    /// A private root with git working inside.
    GitWorktree,
    /// A private ordinary directory.
    CopyOnWrite,
    /// A layer of changes over a frozen base.
    Overlay,
    /// A clone of a container or volume.
    Snapshot,
    /// An open transaction with savepoints.
    TransactionRollback,
}

impl Strategy {
    /// Every strategy that isolates.
    pub const ALL: [Self; 5] = [
        Self::GitWorktree,
        Self::CopyOnWrite,
        Self::Overlay,
        Self::Snapshot,
        Self::TransactionRollback,
    ];

    /// Returns the name of the strategy.
    pub fn word(self) -> &'static str {
        match self {
            Self::GitWorktree => "git_worktree",
            Self::CopyOnWrite => "copy_on_write",
            Self::Overlay => "overlay",
            Self::Snapshot => "snapshot",
            Self::TransactionRollback => "transaction_rollback",
        }
    }

    /// Reads the name back; `filesystem_copy` is an alias.
    pub fn from_word(word: &str) -> Option<Self> {
        match word {
            "filesystem_copy" => Some(Self::CopyOnWrite),
            _ => Self::ALL.into_iter().find(|one| one.word() == word),
        }
    }

    /// Returns its place among write targets: higher is preferred, equal is a
    /// tie; no strategy at all counts 0 (RTE-1).
    pub fn strength(self) -> u8 {
        match self {
            Self::GitWorktree => 4,
            Self::Snapshot => 3,
            Self::Overlay | Self::CopyOnWrite => 2,
            Self::TransactionRollback => 1,
        }
    }

    pub(super) const fn bit(self) -> u8 {
        1 << self as u8
    }
}

impl From<crate::resource::Strategy> for Strategy {
    fn from(strategy: crate::resource::Strategy) -> Self {
        match strategy {
            crate::resource::Strategy::GitWorktree => Self::GitWorktree,
            crate::resource::Strategy::CopyOnWrite => Self::CopyOnWrite,
        }
    }
}

/// What a resource's sandbox is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Policy {
    /// That of the nearest ancestor.
    Inherit,
    /// Its own, by a strategy.
    Own(Strategy),
    /// None of its own; inside a boundary the ancestor's applies.
    None,
}

impl Policy {
    /// Reads `inherit`, `none`, `own(strategy)`.
    pub fn from_word(word: &str) -> Option<Self> {
        match word {
            "inherit" => Some(Self::Inherit),
            "none" => Some(Self::None),
            _ => {
                let inner = word.strip_prefix("own(")?.strip_suffix(')')?;
                Strategy::from_word(inner).map(Self::Own)
            }
        }
    }
}

impl fmt::Display for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Inherit => f.write_str("inherit"),
            Self::None => f.write_str("none"),
            Self::Own(strategy) => write!(f, "own({})", strategy.word()),
        }
    }
}

/// Why a policy holds, strongest first (RES-2).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PolicySource {
    /// Said of this resource.
    Instance,
    /// Said of its type in the configuration.
    TypeConfiguration,
    /// It lies inside a boundary, and its type inherits there.
    Inside,
    /// `sandbox.strategy`, set explicitly and supported by the type.
    Setting,
    /// The type's own default.
    TypeDefault,
}

impl PolicySource {
    /// Returns it as it reads after "because of".
    pub fn words(self) -> &'static str {
        match self {
            Self::Instance => "the resource's own policy",
            Self::TypeConfiguration => "the configuration of its type",
            Self::Inside => "the boundary it lies in",
            Self::Setting => "sandbox.strategy",
            Self::TypeDefault => "its type",
        }
    }
}
