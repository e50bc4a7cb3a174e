//! Access projection: how a resource is named in the space of the one that a
//! tool is bound to (PRJ-1 … PRJ-3).
//!
//! The rules of each protocol are pure ([`Rules`]). A handler answers from the
//! question alone: the way, the places and the mounts come with it, so it
//! never walks.

mod arguments;
mod ask;
mod paths;
mod rules;

use super::types::Protocol;
use crate::id::ResourceId;

pub use arguments::{ArgumentRefused, rewrite_argument};
pub use ask::{Ask, LiveSandbox, Mount};
pub use rules::Rules;

/// How to reach a target from a bound resource (PRJ-1).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AccessProjection {
    /// The name of the target in the space of the bound resource.
    pub access_path: String,
    /// How it is reached.
    pub protocol: Protocol,
    /// What the path is meant in, where that is not the machine itself: a
    /// container (the sandbox's, with a live one), a repository, a database.
    pub within: Option<String>,
    /// Whether it leads into another sandbox domain.
    pub crosses_sandbox: bool,
    /// The boundary of the target.
    pub target_boundary: Option<ResourceId>,
    /// Whether the protocol can read it.
    pub readable: bool,
    /// Whether the protocol can write it; rights are another question.
    pub writable: bool,
    /// How much a read tells.
    pub read_richness: u8,
    /// The generation of the graph that this was computed for.
    pub generation: u64,
}

/// Projects access for the resources that a protocol binds.
pub trait Handler {
    /// Answers how to reach the target, or that it cannot (PRJ-1). O(1): no
    /// look at anything but the question.
    fn project_access(&self, ask: &Ask<'_>) -> Option<AccessProjection>;
}

/// The handlers there are.
pub trait Handlers {
    /// Returns the handler for bound resources of a protocol, if there is one.
    fn handler(&self, protocol: Protocol) -> Option<&dyn Handler>;
}

impl Handlers for Rules {
    fn handler(&self, protocol: Protocol) -> Option<&dyn Handler> {
        Some(Self::of(protocol))
    }
}
