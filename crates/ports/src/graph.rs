//! Where the resource graph is kept: rows, each with the generation that wrote
//! it, so that several processes see each other's changes.
//!
//! A process loads once, and before each use asks what is newer. To change
//! something it attempts the change on its own graph, which judges it, then
//! commits the same changes on the generation that the attempt started from;
//! when somebody was first it takes the attempt back, catches up and tries
//! again. Storage judges nothing.
//!
//! Errors beside their own: as [`crate::store`].

use async_trait::async_trait;
use sandbar_domain::graph::{Change, Delta, Saved};

use crate::error::PortResult;

/// Keeps the graph.
#[async_trait]
pub trait GraphStore: Send + Sync {
    /// Returns everything, as of one generation; 0 for a graph that nobody
    /// changed yet.
    async fn load_graph(&self) -> PortResult<(u64, Saved)>;

    /// Returns what differs from an earlier generation, and the present one;
    /// none when it is the present one. Errors: `graph_changed` (permanent) for
    /// a generation that is still to come: the store is not the one it was.
    async fn graph_since(&self, generation: u64) -> PortResult<Option<(u64, Delta)>>;

    /// Makes changes durable, all or none, and returns their generation, the
    /// one after `expected`. Changes that come to nothing leave it as it is.
    /// Errors: `graph_changed` when the present generation is another one;
    /// `usage` for a text with a NUL character.
    async fn commit_graph(&self, expected: u64, changes: Vec<Change>) -> PortResult<u64>;
}
