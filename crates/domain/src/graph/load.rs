//! Bulk loading and saving: one pass over the rows, one over the graph.
//!
//! Loading checks as much as single changes do: a store that was damaged or
//! edited gives a refusal, never a graph that breaks its rules.

use std::collections::BTreeSet;

use super::arena::{Graph, Hot, NIL, flag};
use super::change::Change;
use super::index::Index;
use super::refusal::Refusal;
use super::rows::{Edge, EdgeKind, Link, Project, Resource, Saved};
use super::types::Registry;
use crate::id::ResourceId;

/// Takes rows in any order and makes a graph of them.
#[derive(Debug)]
pub struct Loader {
    graph: Graph,
    edges: Vec<Edge>,
}

impl Loader {
    /// Expects about so many resources, with as many edges. More are fine.
    pub fn new(registry: Registry, resources: usize) -> Self {
        let mut graph = Graph::new(registry);
        graph.hot = Vec::<Hot>::with_capacity(resources);
        graph.ids = Vec::<ResourceId>::with_capacity(resources);
        graph.index = Index::with_room(resources);
        Self {
            graph,
            edges: Vec::with_capacity(resources),
        }
    }

    /// Adds a resource. Errors: an unknown type, a strategy that does not fit
    /// it, an id that came before.
    pub fn resource(&mut self, row: &Resource) -> Result<(), Refusal> {
        let graph = &mut self.graph;
        let kind = graph.registry.find(&row.type_name);
        let kind = kind.ok_or_else(|| Refusal::UnknownType {
            id: row.id,
            name: row.name.clone(),
            type_name: row.type_name.clone(),
        })?;
        graph.check_policy(row, kind)?;
        if graph.node(row.id).is_some() {
            return Err(Refusal::Twice(format!("resource {}", row.id)));
        }
        graph.place(row, kind).map(drop)
    }

    /// Adds an edge; its ends may come later.
    pub fn edge(&mut self, edge: Edge) {
        self.edges.push(edge);
    }

    /// Adds a project; its resources may come later.
    pub fn project(&mut self, project: Project) {
        self.graph.projects.push(project);
    }

    /// Ties everything together, at this generation. Errors: whatever
    /// [`Graph::apply`] would refuse.
    pub fn finish(self, generation: u64) -> Result<Graph, Refusal> {
        let Self { mut graph, edges } = self;
        for edge in edges {
            let (parent, child) = graph.check_ends(&edge)?;
            graph.tie(parent, child, edge.link);
        }
        graph.label_all()?;
        let projects = &mut graph.projects;
        projects.sort_by(|a, b| a.name.cmp(&b.name));
        if let Some(pair) = projects
            .windows(2)
            .find(|pair| pair[0].name == pair[1].name)
        {
            return Err(Refusal::Twice(format!("project {}", pair[0].name)));
        }
        for project in &graph.projects {
            graph.check_project(project)?;
        }
        graph.index_links();
        graph.generation = generation;
        Ok(graph)
    }
}

impl Graph {
    /// Makes a graph of rows, at generation 0. Errors: as [`Loader::finish`].
    pub fn load(registry: Registry, rows: &Saved) -> Result<Self, Refusal> {
        let mut loader = Loader::new(registry, rows.resources.len());
        for row in &rows.resources {
            loader.resource(row)?;
        }
        for edge in &rows.edges {
            loader.edge(*edge);
        }
        for project in &rows.projects {
            loader.project(project.clone());
        }
        loader.finish(0)
    }

    /// Returns the rows: resources by id, edges by parent, child and kind,
    /// projects by name.
    pub fn save(&self) -> Saved {
        let mut order: Vec<_> = self.nodes().collect();
        order.sort_unstable_by_key(|node| self.id(*node));
        let mut edges: Vec<Edge> = Vec::with_capacity(order.len());
        for node in &order {
            let me = self.id(*node);
            let from_me = |edge: &Edge| edge.parent == me;
            edges.extend(self.edges_of(node.0).into_iter().filter(from_me));
        }
        edges.sort_unstable_by_key(|edge| (edge.parent, edge.child, edge.link.kind()));
        Saved {
            resources: order.into_iter().map(|node| self.row(node)).collect(),
            edges,
            projects: self.projects.clone(),
        }
    }

    /// Returns the changes that make this graph of an empty one, in an order
    /// in which each is allowed: what storage writes at first.
    pub fn as_changes(&self) -> Vec<Change> {
        let Saved {
            resources,
            edges,
            projects,
        } = self.save();
        let rows = resources.into_iter().map(Change::Put);
        let edges = edges.into_iter().map(Change::Link);
        let projects = projects.into_iter().map(Change::PutProject);
        rows.chain(edges).chain(projects).collect()
    }

    /// Makes the same graph with other types or settings, one generation on.
    /// Nodes keep nothing of their numbers. Errors: a type that is gone and
    /// still used, a boundary that becomes ambiguous; then nothing changes.
    pub fn reconfigured(&self, registry: Registry) -> Result<Self, Refusal> {
        let mut next = Self::load(registry, &self.save())?;
        next.generation = self.generation + 1;
        Ok(next)
    }

    /// Labels every node, parents first. Errors: a cycle, an ambiguity.
    fn label_all(&mut self) -> Result<(), Refusal> {
        let mut waiting: Vec<u32> = vec![0; self.hot.len()];
        let mut ready: Vec<u32> = Vec::new();
        for node in 0..self.hot.len() as u32 {
            let references = self.side(&self.referenced, node, flag::REFERENCED);
            let parents = self.parents_of(node).count() + references.len();
            waiting[node as usize] = parents as u32;
            if parents == 0 {
                ready.push(node);
            }
        }
        let (mut labelled, mut ambiguous) = (0, BTreeSet::new());
        let mut next = Vec::new();
        while let Some(node) = ready.pop() {
            labelled += 1;
            let judged = self.judge(node);
            if judged.rival.is_some() {
                ambiguous.insert(node);
            }
            self.set_label(node, &judged);
            next.clear();
            next.extend(self.children_of(node));
            next.extend(self.side(&self.references, node, flag::REFERENCES));
            for child in &next {
                let waiting = &mut waiting[*child as usize];
                *waiting -= 1;
                if *waiting == 0 {
                    ready.push(*child);
                }
            }
        }
        if labelled < self.hot.len() {
            return Err(self.cycle_among(&waiting));
        }
        self.ambiguity(ambiguous).map_or(Ok(()), Err)
    }

    /// Names an edge of a cycle among the nodes that still wait for a parent.
    fn cycle_among(&self, waiting: &[u32]) -> Refusal {
        let stuck = |node: &u32| waiting[*node as usize] > 0;
        let above = |node: u32| {
            let references = self.side(&self.referenced, node, flag::REFERENCED);
            let contains = self.parents_of(node).map(|up| (up, EdgeKind::Contains));
            let references = references.iter().map(|up| (*up, EdgeKind::References));
            contains
                .chain(references)
                .find(|(up, _)| stuck(up))
                .expect("a node that waits has a parent that waits")
        };
        let first = (0..self.hot.len() as u32).find(stuck).unwrap_or(NIL);
        // After as many steps as there are nodes the walk is on a cycle.
        let node = (0..self.hot.len()).fold(first, |node, _| above(node).0);
        let (parent, kind) = above(node);
        Refusal::Cycle {
            parent: Box::new(self.end(parent)),
            child: Box::new(self.end(node)),
            kind,
        }
    }
}

/// Says of which kind the rows of an edge are; for storage.
impl Edge {
    /// Returns the coherence, which only `manifests` edges have (COH-1).
    pub fn coherence(&self) -> Option<super::Coherence> {
        match self.link {
            Link::Manifests(coherence) => Some(coherence),
            Link::Contains | Link::References => None,
        }
    }
}
