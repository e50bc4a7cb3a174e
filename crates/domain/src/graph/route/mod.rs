//! Routing: which manifestation and which tool for a read or a write, and why
//! not the others (RTE-1 … RTE-4, RCH-6).

mod ahead;
mod canonical;
mod read;
mod write;

use std::collections::HashMap;

use super::access::Writability;
use super::reach::Reach;
use super::tool::QueryKind;
use crate::error::Code;
use crate::id::ResourceId;

pub use ahead::{Ahead, Routes, SharedTarget, Stale};
pub use canonical::{CanonicalAnswer, CanonicalReason};

/// What a read asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Query {
    /// The kind of answer.
    pub kind: QueryKind,
    /// How many milliseconds old the content may be.
    pub tolerates_ms: u64,
}

/// What the world is like at the moment, as far as it was looked at.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Conditions {
    /// Resources that cannot be reached, with the reason.
    pub unavailable: HashMap<ResourceId, String>,
    /// Tools that do not answer, by name, with the reason.
    pub tools_down: HashMap<String, String>,
    /// How many milliseconds behind the content of a resource is.
    pub behind_ms: HashMap<ResourceId, u64>,
}

/// The way that was chosen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Route {
    /// Tool, manifestation and projection.
    pub reach: Reach,
    /// Nothing could answer as asked; this is plain content instead.
    pub fallback: bool,
    /// The generation of the graph that it was computed for.
    pub generation: u64,
    /// The ways that were ranked before it, with the reason of each.
    pub skipped: Vec<Skipped>,
}

/// A way that was passed over.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Skipped {
    /// The manifestation.
    pub resource: ResourceId,
    /// The tool and slot; none where no tool reaches the manifestation.
    pub tool: Option<(String, String)>,
    /// Why.
    pub reason: SkipReason,
}

/// Why a way was passed over.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SkipReason {
    /// No tool can do it there.
    NoTool,
    /// The manifestation cannot be reached, for this reason.
    Unavailable(String),
    /// The tool does not answer, for this reason.
    ToolDown(String),
    /// Behind by more than the query tolerates, in milliseconds.
    Stale {
        /// How far behind it is.
        behind_ms: u64,
        /// How far it may be.
        tolerates_ms: u64,
    },
    /// The slot cannot answer that kind.
    WrongKind(QueryKind),
    /// Another way is better.
    Worse,
}

/// Nothing leads there.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NoRoute {
    /// A virtual resource that nothing manifests.
    #[error("nothing manifests {0}")]
    NoManifestation(ResourceId),
    /// The canonical target, or what contains it, may not be written (RTE-3).
    #[error("{} may not be written: {}", .0.resource, forbidding(.0))]
    NotWritable(Writability),
    /// No tool can; the candidates with the reason of each.
    #[error("no tool reaches {resource}")]
    NoTool {
        /// What was to be reached.
        resource: ResourceId,
        /// The candidates.
        skipped: Vec<Skipped>,
    },
}

impl NoRoute {
    /// Returns the code of the closed list.
    pub fn code(&self) -> Code {
        match self {
            Self::NotWritable(_) => Code::NotWritable,
            Self::NoManifestation(_) | Self::NoTool { .. } => Code::NoRoute,
        }
    }
}

impl std::fmt::Display for SkipReason {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::NoTool => f.write_str("no tool can do it there"),
            Self::Unavailable(why) => write!(f, "it cannot be reached: {why}"),
            Self::ToolDown(why) => write!(f, "the tool does not answer: {why}"),
            Self::Stale {
                behind_ms,
                tolerates_ms,
            } => write!(
                f,
                "{behind_ms} ms behind, where {tolerates_ms} ms are tolerated"
            ),
            Self::WrongKind(kind) => write!(f, "it cannot answer for {}", kind.word()),
            Self::Worse => f.write_str("another way is better"),
        }
    }
}

fn forbidding(answer: &Writability) -> String {
    let words: Vec<_> = answer.forbids.iter().map(ToString::to_string).collect();
    words.join("; ")
}
