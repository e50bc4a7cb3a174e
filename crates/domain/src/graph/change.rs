//! Changes: each checked, a batch whole or not at all (DAG-2, DAG-3).

use std::collections::BTreeSet;

use super::arena::{Graph, NIL, Node, flag};
use super::order::Direction;
use super::refusal::Refusal;
use super::rows::{Edge, EdgeKind, Link, Project, Resource};
use super::types::{Kind, TypeId};
use crate::id::ResourceId;

/// One change of a graph.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// Adds a resource, or replaces what is said of it.
    Put(Resource),
    /// Removes a resource and its edges; what it contained stays.
    Remove(ResourceId),
    /// Adds an edge.
    Link(Edge),
    /// Removes an edge.
    Unlink {
        /// Where it starts.
        parent: ResourceId,
        /// Where it leads.
        child: ResourceId,
        /// Its kind.
        kind: EdgeKind,
    },
    /// Adds a project, or replaces it.
    PutProject(Project),
    /// Removes a project.
    RemoveProject(String),
}

/// Changes that were applied and can still be taken back.
#[derive(Debug, Default)]
#[must_use = "an attempt is settled or taken back"]
pub struct Attempt {
    pub(super) undo: Vec<Change>,
}

impl Attempt {
    /// Says whether the graph differs from what it was.
    pub fn changed_something(&self) -> bool {
        !self.undo.is_empty()
    }
}

impl Graph {
    /// Applies changes one after the other and returns the new generation,
    /// which is the old one if nothing differs. Errors: the first refusal;
    /// then everything is as it was.
    pub fn apply(&mut self, changes: &[Change]) -> Result<u64, Refusal> {
        self.apply_as(self.generation + 1, changes)
    }

    /// Applies changes that storage has numbered. Errors: as [`Graph::apply`].
    pub fn apply_as(&mut self, generation: u64, changes: &[Change]) -> Result<u64, Refusal> {
        let attempt = self.attempt(changes)?;
        if attempt.changed_something() {
            self.generation = generation;
        }
        Ok(self.generation)
    }

    /// Applies changes for which storage has still to be asked: they are to be
    /// settled or taken back before anything else. Errors: as
    /// [`Graph::apply`].
    pub fn attempt(&mut self, changes: &[Change]) -> Result<Attempt, Refusal> {
        let mut attempt = Attempt::default();
        for change in changes {
            let mut inverse = Vec::new();
            let done = self.step(change, &mut inverse);
            attempt.undo.extend(inverse.into_iter().rev());
            if let Err(refusal) = done {
                self.take_back(attempt);
                return Err(refusal);
            }
        }
        Ok(attempt)
    }

    /// Makes an attempt the state of this generation, as storage has numbered
    /// it.
    pub fn settle(&mut self, attempt: Attempt, generation: u64) {
        if attempt.changed_something() {
            self.generation = generation;
        }
    }

    /// Makes everything as it was before the attempt.
    pub fn take_back(&mut self, attempt: Attempt) {
        for step in attempt.undo.iter().rev() {
            self.step_unchecked(step);
        }
    }

    /// Returns the changes that remove a resource and everything that it alone
    /// contains, children first.
    pub fn removal(&self, id: ResourceId) -> Vec<Change> {
        let Some(top) = self.node(id) else {
            return vec![Change::Remove(id)];
        };
        // What has a parent outside stays, and so does what it contains.
        let mut all: BTreeSet<u32> = self.descendants(top).map(|node| node.0).collect();
        loop {
            let before = all.len();
            let kept: Vec<u32> = all
                .iter()
                .copied()
                .filter(|node| *node != top.0)
                .filter(|node| self.parents_of(*node).any(|parent| !all.contains(&parent)))
                .collect();
            for node in kept {
                all.remove(&node);
            }
            if all.len() == before {
                break;
            }
        }
        let part: Vec<_> = all.into_iter().map(Node).collect();
        let pass = self.pass(Direction::ChildrenFirst, &part);
        pass.flat().into_iter().map(Change::Remove).collect()
    }

    /// Performs one change and notes what takes it back. After a refusal the
    /// notes tell what was done already.
    fn step(&mut self, change: &Change, inverse: &mut Vec<Change>) -> Result<(), Refusal> {
        self.check(change)?;
        let relabelled = self.perform(change, inverse);
        match self.ambiguity(relabelled) {
            Some(refusal) => Err(refusal),
            None => Ok(()),
        }
    }

    /// Performs a change that led from a valid state to another, backwards.
    /// Single steps of it may be ambiguous on the way; the end is not.
    fn step_unchecked(&mut self, change: &Change) {
        self.perform(change, &mut Vec::new());
    }

    fn check(&self, change: &Change) -> Result<(), Refusal> {
        match change {
            Change::Put(row) => self.check_row(row).map(drop),
            Change::Remove(id) => {
                let node = self.slot(*id)?;
                let links = self.side(&self.links, node, flag::LINKED);
                links.first().map_or(Ok(()), |(project, _)| {
                    Err(Refusal::Linked {
                        resource: Box::new(self.end(node)),
                        project: self.projects[*project as usize].name.clone(),
                    })
                })
            }
            Change::Link(edge) => {
                let (parent, child) = self.check_ends(edge)?;
                let kind = edge.link.kind();
                if kind != EdgeKind::Manifests && self.leads(child, parent) {
                    return Err(Refusal::Cycle {
                        parent: Box::new(self.end(parent)),
                        child: Box::new(self.end(child)),
                        kind,
                    });
                }
                Ok(())
            }
            Change::Unlink {
                parent,
                child,
                kind,
            } => {
                let ends = self.node(*parent).zip(self.node(*child));
                if ends.is_some_and(|(p, c)| self.is_linked(p.0, c.0, *kind)) {
                    return Ok(());
                }
                Err(Refusal::NoEdge {
                    parent: Box::new(self.end_of(*parent)),
                    child: Box::new(self.end_of(*child)),
                    kind: *kind,
                })
            }
            Change::PutProject(project) => self.check_project(project),
            Change::RemoveProject(name) => {
                if self.projects.iter().any(|project| project.name == *name) {
                    Ok(())
                } else {
                    Err(Refusal::NoProject(name.clone()))
                }
            }
        }
    }

    /// Performs a change that was checked; returns what is ambiguous now.
    pub(super) fn perform(&mut self, change: &Change, inverse: &mut Vec<Change>) -> BTreeSet<u32> {
        match change {
            Change::Put(row) => self.put(row, inverse),
            Change::Remove(id) => match self.node(*id) {
                Some(node) => self.take_out(node.0, inverse),
                None => BTreeSet::new(),
            },
            Change::Link(edge) => {
                let (Some(parent), Some(child)) = (self.node(edge.parent), self.node(edge.child))
                else {
                    return BTreeSet::new();
                };
                self.tie(parent.0, child.0, edge.link);
                inverse.push(Change::Unlink {
                    parent: edge.parent,
                    child: edge.child,
                    kind: edge.link.kind(),
                });
                self.relabel((edge.link == Link::Contains).then_some(child.0))
            }
            Change::Unlink {
                parent,
                child,
                kind,
            } => {
                let (Some(from), Some(to)) = (self.node(*parent), self.node(*child)) else {
                    return BTreeSet::new();
                };
                let link = self.untie(from.0, to.0, *kind);
                inverse.push(Change::Link(Edge {
                    parent: *parent,
                    child: *child,
                    link,
                }));
                self.relabel((*kind == EdgeKind::Contains).then_some(to.0))
            }
            Change::PutProject(project) => {
                self.put_project(project, inverse);
                BTreeSet::new()
            }
            Change::RemoveProject(name) => {
                if let Some(at) = self.projects.iter().position(|one| one.name == *name) {
                    inverse.push(Change::PutProject(self.projects.remove(at)));
                    self.index_links();
                }
                BTreeSet::new()
            }
        }
    }

    fn put(&mut self, row: &Resource, inverse: &mut Vec<Change>) -> BTreeSet<u32> {
        let kind = self.registry.find(&row.type_name);
        let kind = kind.expect("the type was checked");
        let node = match self.node(row.id) {
            Some(node) => {
                let old = self.row(node);
                if old == *row {
                    return BTreeSet::new();
                }
                inverse.push(Change::Put(old));
                let name = self.names.intern(&row.name);
                let name = name.expect("room for the name was checked");
                self.describe(node.0, row, kind, name);
                node.0
            }
            None => {
                inverse.push(Change::Remove(row.id));
                self.place(row, kind).expect("room for the row was checked")
            }
        };
        self.relabel([node])
    }

    fn take_out(&mut self, node: u32, inverse: &mut Vec<Change>) -> BTreeSet<u32> {
        let children: Vec<u32> = self.children_of(node).collect();
        let edges = self.edges_of(node);
        // Taken back in this order: the row first, then its edges.
        inverse.push(Change::Put(self.row(Node(node))));
        inverse.extend(edges.iter().map(|edge| Change::Link(*edge)));
        for edge in edges {
            let (Some(parent), Some(child)) = (self.node(edge.parent), self.node(edge.child))
            else {
                continue;
            };
            self.untie(parent.0, child.0, edge.link.kind());
        }
        self.vacate(node);
        self.relabel(children)
    }

    /// Checks a row against the types and the edges it has already.
    fn check_row(&self, row: &Resource) -> Result<TypeId, Refusal> {
        let unknown = || Refusal::UnknownType {
            id: row.id,
            name: row.name.clone(),
            type_name: row.type_name.clone(),
        };
        let kind = self.registry.find(&row.type_name).ok_or_else(unknown)?;
        self.check_policy(row, kind)?;
        if !self.names.has_room(row.name.len()) || self.hot.len() >= NIL as usize {
            return Err(Refusal::Full);
        }
        let Some(node) = self.node(row.id) else {
            return Ok(kind);
        };
        if self.at(node.0).kind != kind {
            for edge in self.edges_of(node.0) {
                let of = |id: ResourceId| match self.node(id) {
                    _ if id == row.id => kind,
                    Some(other) => self.at(other.0).kind,
                    None => kind,
                };
                self.check_types(&edge, of(edge.parent), of(edge.child))?;
            }
        }
        Ok(kind)
    }

    pub(super) fn check_policy(&self, row: &Resource, kind: TypeId) -> Result<(), Refusal> {
        let unsupported = row
            .policy
            .and_then(|policy| self.registry.unsupported(kind, policy));
        match unsupported {
            None => Ok(()),
            Some(strategy) => Err(Refusal::UnsupportedStrategy {
                resource: Box::new(super::End {
                    id: row.id,
                    type_name: row.type_name.clone(),
                    name: row.name.clone(),
                }),
                strategy,
            }),
        }
    }

    /// Checks everything about an edge but cycles; returns its ends.
    pub(super) fn check_ends(&self, edge: &Edge) -> Result<(u32, u32), Refusal> {
        let kind = edge.link.kind();
        let ends = self.node(edge.parent).zip(self.node(edge.child));
        let boxed = || {
            let (parent, child) = (self.end_of(edge.parent), self.end_of(edge.child));
            (Box::new(parent), Box::new(child))
        };
        let Some((parent, child)) = ends else {
            let (parent, child) = boxed();
            return Err(Refusal::MissingEnd {
                parent,
                child,
                kind,
            });
        };
        let (parent, child) = (parent.0, child.0);
        self.check_types(edge, self.at(parent).kind, self.at(child).kind)?;
        if self.is_linked(parent, child, kind) {
            let (parent, child) = boxed();
            return Err(Refusal::Duplicate {
                parent,
                child,
                kind,
            });
        }
        Ok((parent, child))
    }

    pub(super) fn check_types(
        &self,
        edge: &Edge,
        parent: TypeId,
        child: TypeId,
    ) -> Result<(), Refusal> {
        let (from, to) = (self.registry.get(parent), self.registry.get(child));
        let kind = edge.link.kind();
        let wanted = match kind {
            EdgeKind::Manifests => (Kind::Virtual, Kind::Physical),
            EdgeKind::Contains | EdgeKind::References => (Kind::Physical, Kind::Physical),
        };
        let allowed = match kind {
            EdgeKind::Contains => self.registry.may_contain(parent, child),
            EdgeKind::References => true,
            EdgeKind::Manifests => to.equivalence == Some(parent),
        };
        let fits = (from.kind, to.kind) == wanted;
        if fits && allowed {
            return Ok(());
        }
        let (parent, child) = (self.end_of(edge.parent), self.end_of(edge.child));
        let (parent, child) = (Box::new(parent), Box::new(child));
        Err(if fits {
            Refusal::ChildType {
                parent,
                child,
                kind,
            }
        } else {
            Refusal::WrongKinds {
                parent,
                child,
                kind,
            }
        })
    }

    pub(super) fn check_project(&self, project: &Project) -> Result<(), Refusal> {
        let mut seen = BTreeSet::new();
        for link in &project.links {
            let twice = !seen.insert(link.resource);
            if twice || self.node(link.resource).is_none() {
                return Err(Refusal::BadProjectLink {
                    project: project.name.clone(),
                    resource: Box::new(self.end_of(link.resource)),
                    twice,
                });
            }
        }
        Ok(())
    }

    fn put_project(&mut self, project: &Project, inverse: &mut Vec<Change>) {
        let at = self
            .projects
            .binary_search_by(|one| one.name.cmp(&project.name));
        match at {
            Ok(at) if self.projects[at] == *project => return,
            Ok(at) => {
                let old = std::mem::replace(&mut self.projects[at], project.clone());
                inverse.push(Change::PutProject(old));
            }
            Err(at) => {
                self.projects.insert(at, project.clone());
                inverse.push(Change::RemoveProject(project.name.clone()));
            }
        }
        self.index_links();
    }

    /// Finds the links of all projects by node again.
    pub(super) fn index_links(&mut self) {
        for node in self.links.keys() {
            self.hot[*node as usize].flags &= !flag::LINKED;
        }
        self.links.clear();
        for (at, project) in (0u32..).zip(&self.projects) {
            for link in &project.links {
                let Some(node) = self.index.find(link.resource, &self.ids) else {
                    continue;
                };
                self.hot[node as usize].flags |= flag::LINKED;
                let read_only = project.read_only || link.read_only;
                self.links.entry(node).or_default().push((at, read_only));
            }
        }
    }

    pub(super) fn slot(&self, id: ResourceId) -> Result<u32, Refusal> {
        let node = self.node(id).ok_or(Refusal::NoResource(id))?;
        Ok(node.0)
    }
}
