//! Resources as answers name them, and the graph as a whole.

use std::collections::HashSet;

use sandbar_domain::graph::{Edge, Graph, Node};
use sandbar_domain::{Code, ResourceId};
use sandbar_ports::{PortError, PortResult};

use crate::Sandbar;

/// One resource as answers name it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Card {
    /// Its id.
    pub id: ResourceId,
    /// The name of its type.
    pub type_name: String,
    /// Its name.
    pub name: String,
    /// Where it lives, in its own namespace, if that is known.
    pub place: Option<String>,
}

/// Resources with their edges.
#[derive(Debug, Clone, Default)]
pub struct GraphReport {
    /// The number of the last change.
    pub generation: u64,
    /// The resources by place, then id, each with its boundary.
    pub resources: Vec<(Card, Option<ResourceId>)>,
    /// The edges among them.
    pub edges: Vec<Edge>,
    /// Those that nothing among them contains.
    pub tops: Vec<ResourceId>,
}

/// Describes a resource.
pub(super) fn card(graph: &Graph, node: Node) -> Card {
    let seen = graph.see(node);
    Card {
        id: seen.id(),
        type_name: seen.type_name().to_owned(),
        name: seen.name().to_owned(),
        place: graph.location(node),
    }
}

/// Describes resources, by place, then id.
pub(super) fn cards(graph: &Graph, nodes: impl IntoIterator<Item = Node>) -> Vec<Card> {
    let mut all: Vec<Card> = nodes.into_iter().map(|node| card(graph, node)).collect();
    // A checkout and its root directory share a place: the checkout first.
    all.sort_by_cached_key(|card| (card.place.clone(), card.name == ".", card.id));
    all
}

/// Describes the resource of an id that an answer named.
pub(super) fn card_of(graph: &Graph, id: ResourceId) -> Card {
    let node = graph.node(id).expect("an answer names what its graph has");
    card(graph, node)
}

/// Says that there is no resource `text`.
pub fn no_resource(text: &str) -> PortError {
    let message = format!("find resource {text}: none has that id, and there is no such path");
    PortError::new(Code::ResourceNotFound, message)
        .with_hint("`sandbar resource list` shows what is known")
}

impl Sandbar {
    /// Returns everything that is known, or what one resource contains.
    /// Errors: `resource_not_found`, `ambiguous_resource`, `path_not_found`.
    pub async fn graph(&self, of: Option<&str>, cwd: &std::path::Path) -> PortResult<GraphReport> {
        let (graph, nodes) = match of {
            None => {
                let graph = self.load_graph().await?;
                let nodes: Vec<Node> = graph.nodes().collect();
                (graph, nodes)
            }
            Some(text) => {
                let (graph, top) = self.resolve(text, cwd).await?;
                let nodes = graph.descendants(top).collect();
                (graph, nodes)
            }
        };
        let among: HashSet<ResourceId> = nodes.iter().map(|node| graph.id(*node)).collect();
        let inside = |edge: &Edge| among.contains(&edge.parent) && among.contains(&edge.child);
        let edges: Vec<Edge> = graph.save().edges.into_iter().filter(inside).collect();
        let resources: Vec<_> = cards(&graph, nodes)
            .into_iter()
            .map(|card| {
                let node = graph.node(card.id);
                let boundary = node.and_then(|node| graph.boundary(node));
                (card, boundary.map(|node| graph.id(node)))
            })
            .collect();
        let contained: HashSet<ResourceId> = edges
            .iter()
            .filter(|edge| edge.link.kind().word() == "contains")
            .map(|edge| edge.child)
            .collect();
        let ids = resources.iter().map(|(card, _)| card.id);
        Ok(GraphReport {
            generation: graph.generation(),
            tops: ids.filter(|id| !contained.contains(id)).collect(),
            resources,
            edges,
        })
    }
}
