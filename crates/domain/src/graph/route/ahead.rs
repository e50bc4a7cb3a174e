//! Routes computed ahead, never used stale, and targets that several
//! boundaries share (RTE-4).

use std::collections::{BTreeMap, HashMap};

use super::super::arena::{Graph, Node};
use super::super::reach::Situation;
use super::{Conditions, NoRoute, Query, Route};
use crate::id::ResourceId;

/// What a route is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Ahead {
    /// Reading something.
    Read(ResourceId, Query),
    /// Writing something.
    Write(ResourceId),
}

/// Routes computed while a plan was made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Routes {
    generation: u64,
    routes: HashMap<Ahead, Result<Route, NoRoute>>,
}

/// The graph has changed since, or nothing was computed for that.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Stale {
    /// The graph has changed: compute it anew.
    #[error("the routes are of generation {routes}, the graph is of {graph}")]
    Changed {
        /// The generation of the routes.
        routes: u64,
        /// The generation of the graph.
        graph: u64,
    },
    /// No such route was computed.
    #[error("no route was computed for that")]
    NotComputed,
}

impl Routes {
    /// Returns the generation that the routes were computed for.
    pub fn generation(&self) -> u64 {
        self.generation
    }

    /// Returns a route, if the graph is still the one it was computed for.
    pub fn get(&self, graph: &Graph, ahead: Ahead) -> Result<&Result<Route, NoRoute>, Stale> {
        if self.generation != graph.generation() {
            return Err(Stale::Changed {
                routes: self.generation,
                graph: graph.generation(),
            });
        }
        self.routes.get(&ahead).ok_or(Stale::NotComputed)
    }
}

/// A virtual resource that a write scope reaches through several boundaries:
/// a conflict is possible there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SharedTarget {
    /// The virtual resource.
    pub resource: ResourceId,
    /// The manifestations in the scope by boundary, "none" included.
    pub through: Vec<(Option<ResourceId>, Vec<ResourceId>)>,
}

impl Situation<'_> {
    /// Computes routes ahead of execution. What is not in the graph is left
    /// out, and so not found later.
    pub fn routes_ahead(self, wanted: &[Ahead], conditions: &Conditions) -> Routes {
        let each = wanted.iter().filter_map(|ahead| {
            let route = match *ahead {
                Ahead::Read(id, query) => self.route_read(self.graph.node(id)?, query, conditions),
                Ahead::Write(id) => self.route_write(self.graph.node(id)?, conditions),
            };
            Some((*ahead, route))
        });
        Routes {
            generation: self.graph.generation(),
            routes: each.collect(),
        }
    }

    /// Lists the virtual resources that can be written through several
    /// boundaries from these bound resources, by id: conflicts that are
    /// possible before anything runs (RTE-4).
    pub fn shared_targets(self, scope: &[Node]) -> Vec<SharedTarget> {
        let graph = self.graph;
        let in_scope = |node: Node| {
            graph.is_writable(node, self.plan)
                && graph.ancestors(node).any(|up| scope.contains(&up))
        };
        let mut shared: Vec<SharedTarget> = graph
            .manifests
            .keys()
            .map(|virtual_one| Node(*virtual_one))
            .filter_map(|virtual_one| {
                let mut through: BTreeMap<_, Vec<_>> = BTreeMap::new();
                for (node, boundary) in graph.boundaries(virtual_one) {
                    if in_scope(node) {
                        let boundary = boundary.map(|boundary| graph.id(boundary));
                        through.entry(boundary).or_default().push(graph.id(node));
                    }
                }
                (through.len() > 1).then(|| SharedTarget {
                    resource: graph.id(virtual_one),
                    through: through.into_iter().collect(),
                })
            })
            .collect();
        shared.sort_unstable_by_key(|target| target.resource);
        shared
    }
}
