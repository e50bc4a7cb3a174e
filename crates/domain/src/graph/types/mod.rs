//! The type registry: types of resources as data (RES-3 … RES-5).
//!
//! A registry is complete before a graph is made with it; a graph with other
//! types or settings is another graph ([`super::Graph::reconfigured`]).

mod builtin;
mod definition;
mod registry;

use std::fmt;

use super::capability::Capabilities;
use super::policy::{Policy, Strategy};

pub use definition::{BadDefinition, Definition};
pub use registry::{BadSetting, Registry};

/// A type inside one registry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TypeId(pub(super) u16);

/// Things, or identities of things.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    /// Exists somewhere.
    Physical,
    /// What equal physical ones have in common.
    Virtual,
}

/// How resources of a type are reached (PRJ-1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Protocol {
    /// Paths.
    Filesystem,
    /// Names and ids of objects in a repository.
    GitObject,
    /// The API of a container runtime.
    DockerApi,
    /// Paths inside a container.
    ContainerExec,
    /// A language server.
    Lsp,
    /// A document of a language server, by URI.
    LspTextDocument,
    /// Names in a database.
    Sql,
}

impl Protocol {
    /// Every protocol.
    pub const ALL: [Self; 7] = [
        Self::Filesystem,
        Self::GitObject,
        Self::DockerApi,
        Self::ContainerExec,
        Self::Lsp,
        Self::LspTextDocument,
        Self::Sql,
    ];

    /// Returns the name.
    pub fn word(self) -> &'static str {
        match self {
            Self::Filesystem => "filesystem",
            Self::GitObject => "git-object",
            Self::DockerApi => "docker-api",
            Self::ContainerExec => "container-exec",
            Self::Lsp => "lsp",
            Self::LspTextDocument => "lsp-textdocument",
            Self::Sql => "sql",
        }
    }

    /// Reads the name back.
    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|one| one.word() == word)
    }
}

/// How much one checkpoint takes (SBX-5).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Scope {
    /// Files.
    File,
    /// Changes inside a transaction.
    Transaction,
    /// A commit.
    Commit,
    /// The whole.
    Snapshot,
}

impl Scope {
    /// Every scope.
    pub const ALL: [Self; 4] = [Self::File, Self::Transaction, Self::Commit, Self::Snapshot];

    /// Returns the name.
    pub fn word(self) -> &'static str {
        match self {
            Self::File => "file",
            Self::Transaction => "transaction",
            Self::Commit => "commit",
            Self::Snapshot => "snapshot",
        }
    }

    /// Reads the name back.
    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|one| one.word() == word)
    }
}

/// A set of scopes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Scopes(u8);

impl Scopes {
    /// No scope.
    pub const NONE: Self = Self(0);

    /// Returns the set of these.
    pub fn of(scopes: &[Scope]) -> Self {
        Self(scopes.iter().fold(0, |all, one| all | 1 << *one as u8))
    }

    /// Says whether it holds `scope`.
    pub fn has(self, scope: Scope) -> bool {
        self.0 & 1 << scope as u8 != 0
    }

    /// Iterates over the scopes in it.
    pub fn iter(self) -> impl Iterator<Item = Scope> {
        Scope::ALL.into_iter().filter(move |one| self.has(*one))
    }
}

/// A set of strategies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Strategies(u8);

impl Strategies {
    /// Returns the set of these.
    pub fn of(strategies: &[Strategy]) -> Self {
        Self(strategies.iter().fold(0, |all, one| all | one.bit()))
    }

    /// Says whether it holds `strategy`.
    pub fn has(self, strategy: Strategy) -> bool {
        self.0 & strategy.bit() != 0
    }

    /// Iterates over the strategies in it.
    pub fn iter(self) -> impl Iterator<Item = Strategy> {
        Strategy::ALL.into_iter().filter(move |one| self.has(*one))
    }
}

/// The policy that a type has by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct DefaultPolicy {
    /// The policy.
    pub policy: Policy,
    /// Inside a boundary it inherits instead: plain directories.
    pub inherits_inside: bool,
}

/// Everything that is known about a type (RES-3).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Type {
    /// Its name.
    pub name: String,
    /// Physical or virtual.
    pub kind: Kind,
    /// What its policy is unless something stronger says otherwise.
    pub policy: DefaultPolicy,
    /// The strategies that can isolate it.
    pub strategies: Strategies,
    /// What its resources can do unless they say otherwise.
    pub capabilities: Capabilities,
    /// The types it may contain.
    pub children: Vec<TypeId>,
    /// The checkpoint scopes it can take as a boundary.
    pub scopes: Scopes,
    /// How its resources are reached.
    pub protocol: Protocol,
    /// How much a read of it tells: 1 is plain content.
    pub richness: u8,
    /// The virtual type that equal ones have in common.
    pub equivalence: Option<TypeId>,
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Physical => "physical",
            Self::Virtual => "virtual",
        })
    }
}
