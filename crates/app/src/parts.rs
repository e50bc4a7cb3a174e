//! The adapters that a composition is made of.

use std::sync::Arc;

use sandbar_ports::clock::{Clock, Ids, Names};
use sandbar_ports::exec::Runner;
use sandbar_ports::git::{Contents, GitState};
use sandbar_ports::graph::GraphStore;
use sandbar_ports::objects::Objects;
use sandbar_ports::pins::Pins;
use sandbar_ports::store::Store;
use sandbar_ports::target::Targets;
use sandbar_ports::workspace::Workspaces;

/// One adapter for each port. Any of them can be swapped (SRF-1).
#[derive(Clone)]
pub struct Parts {
    /// Makes sandbox roots.
    pub workspaces: Arc<dyn Workspaces>,
    /// Shares git objects with sandboxes, or pins them.
    pub pins: Arc<dyn Pins>,
    /// Keeps content.
    pub objects: Arc<dyn Objects>,
    /// Reads content from a blocking thread.
    pub contents: Arc<dyn Contents>,
    /// Writes real roots.
    pub targets: Arc<dyn Targets>,
    /// Knows git.
    pub git: Arc<dyn GitState>,
    /// Remembers plans.
    pub store: Arc<dyn Store>,
    /// Remembers the resource graph.
    pub graph: Arc<dyn GraphStore>,
    /// Runs commands.
    pub runner: Arc<dyn Runner>,
    /// Tells the time.
    pub clock: Arc<dyn Clock>,
    /// Makes random bits.
    pub ids: Arc<dyn Ids>,
}

impl Parts {
    pub(crate) fn names(&self) -> Names<'_> {
        Names(&*self.clock, &*self.ids)
    }
}
