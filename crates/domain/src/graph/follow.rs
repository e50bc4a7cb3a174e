//! Following the changes of other processes: what differs between two
//! generations, as rows.
//!
//! Storage keeps rows, each with the generation that wrote it, and the names
//! of what is gone. What it hands out leads from one valid state to another,
//! but its rows come in no order, so only the end is judged.

use std::collections::{BTreeMap, BTreeSet};

use super::arena::Graph;
use super::change::{Attempt, Change};
use super::refusal::Refusal;
use super::rows::{Edge, EdgeKind, Project, Resource};
use crate::id::ResourceId;

/// What differs: first all that is gone goes, then the rows come. What is both
/// gone and there was removed and made again.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Delta {
    /// Resources that were removed, with all their edges.
    pub gone_resources: BTreeSet<ResourceId>,
    /// Edges that were removed by themselves.
    pub gone_edges: BTreeSet<(ResourceId, ResourceId, EdgeKind)>,
    /// Projects that were removed.
    pub gone_projects: BTreeSet<String>,
    /// Resources that were added or changed.
    pub resources: BTreeMap<ResourceId, Resource>,
    /// Edges that were added.
    pub edges: BTreeMap<(ResourceId, ResourceId, EdgeKind), Edge>,
    /// Projects that were added or changed.
    pub projects: BTreeMap<String, Project>,
}

impl Delta {
    /// Returns what a batch comes to, for storage to write.
    pub fn of(changes: &[Change]) -> Self {
        let mut delta = Self::default();
        for change in changes {
            delta.add(change);
        }
        delta
    }

    /// Says whether nothing differs.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    fn add(&mut self, change: &Change) {
        match change {
            Change::Put(row) => {
                self.resources.insert(row.id, row.clone());
            }
            Change::Remove(id) => {
                self.resources.remove(id);
                self.edges
                    .retain(|(parent, child, _), _| parent != id && child != id);
                self.gone_resources.insert(*id);
            }
            Change::Link(edge) => {
                let key = (edge.parent, edge.child, edge.link.kind());
                self.edges.insert(key, *edge);
            }
            Change::Unlink {
                parent,
                child,
                kind,
            } => {
                let key = (*parent, *child, *kind);
                self.edges.remove(&key);
                self.gone_edges.insert(key);
            }
            Change::PutProject(project) => {
                self.projects.insert(project.name.clone(), project.clone());
            }
            Change::RemoveProject(name) => {
                self.projects.remove(name);
                self.gone_projects.insert(name.clone());
            }
        }
    }
}

impl Graph {
    /// Makes this the graph of a later generation. Errors: what the end would
    /// break; then nothing is changed, and loading everything anew will tell
    /// whether storage is damaged.
    pub fn catch_up(&mut self, generation: u64, delta: &Delta) -> Result<(), Refusal> {
        let mut attempt = Attempt::default();
        match self.follow(delta, &mut attempt) {
            Ok(()) => {
                self.generation = generation;
                Ok(())
            }
            Err(refusal) => {
                self.take_back(attempt);
                self.index_links();
                Err(refusal)
            }
        }
    }

    fn follow(&mut self, delta: &Delta, attempt: &mut Attempt) -> Result<(), Refusal> {
        let Delta {
            gone_resources,
            gone_edges,
            gone_projects,
            resources,
            edges,
            projects,
        } = delta;
        let mut doubtful: BTreeSet<ResourceId> = BTreeSet::new();
        let mut step = |graph: &mut Self, change: Change| {
            let mut inverse = Vec::new();
            let ambiguous = graph.perform(&change, &mut inverse);
            doubtful.extend(ambiguous.into_iter().map(|node| graph.ids[node as usize]));
            attempt.undo.extend(inverse.into_iter().rev());
        };
        for name in gone_projects {
            step(self, Change::RemoveProject(name.clone()));
        }
        for (parent, child, kind) in gone_edges {
            let (parent, child, kind) = (*parent, *child, *kind);
            let ends = self.node(parent).zip(self.node(child));
            if ends.is_some_and(|(from, to)| self.is_linked(from.0, to.0, kind)) {
                step(
                    self,
                    Change::Unlink {
                        parent,
                        child,
                        kind,
                    },
                );
            }
        }
        for id in gone_resources {
            step(self, Change::Remove(*id));
        }
        for row in resources.values() {
            let kind = self.registry.find(&row.type_name);
            let kind = kind.ok_or_else(|| Refusal::UnknownType {
                id: row.id,
                name: row.name.clone(),
                type_name: row.type_name.clone(),
            })?;
            self.check_policy(row, kind)?;
            step(self, Change::Put(row.clone()));
        }
        for edge in edges.values() {
            match self.check_ends(edge) {
                Ok((parent, child)) => {
                    let kind = edge.link.kind();
                    if kind != EdgeKind::Manifests && self.leads(child, parent) {
                        return Err(Refusal::Cycle {
                            parent: Box::new(self.end(parent)),
                            child: Box::new(self.end(child)),
                            kind,
                        });
                    }
                }
                // It says something else of the same two now.
                Err(Refusal::Duplicate { .. }) => step(
                    self,
                    Change::Unlink {
                        parent: edge.parent,
                        child: edge.child,
                        kind: edge.link.kind(),
                    },
                ),
                Err(refusal) => return Err(refusal),
            }
            step(self, Change::Link(*edge));
        }
        for project in projects.values() {
            self.check_project(project)?;
            step(self, Change::PutProject(project.clone()));
        }
        self.index_links();
        for row in resources.values() {
            let node = self.slot(row.id)?;
            for edge in self.edges_of(node) {
                let (parent, child) = (self.slot(edge.parent)?, self.slot(edge.child)?);
                self.check_types(&edge, self.at(parent).kind, self.at(child).kind)?;
            }
        }
        for project in &self.projects {
            self.check_project(project)?;
        }
        let doubtful = doubtful.iter().filter_map(|id| self.node(*id));
        let ambiguous = doubtful.filter(|node| self.judge(node.0).rival.is_some());
        let ambiguous: Vec<u32> = ambiguous.map(|node| node.0).collect();
        self.ambiguity(ambiguous).map_or(Ok(()), Err)
    }
}
