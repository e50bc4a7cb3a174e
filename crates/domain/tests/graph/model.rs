//! The reference: the definitions written down as plainly as possible, over
//! sets, without regard to cost. It shares no code with the graph but rows and
//! the table of types.

use std::collections::{BTreeMap, BTreeSet};

use sandbar_domain::ResourceId;
use sandbar_domain::graph::types::Kind;
use sandbar_domain::graph::{
    Capabilities, Change, Coherence, Edge, EdgeKind, Link, Plan, Policy, Project, Refusal,
    Registry, Resource, Saved, Strategy,
};

/// Why something was refused, without the details.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Why {
    Cycle,
    ChildType,
    WrongKinds,
    Duplicate,
    MissingEnd,
    Ambiguous,
    UnknownType,
    UnsupportedStrategy,
    NoResource,
    NoEdge,
    NoProject,
    BadProjectLink,
    Linked,
    Other,
}

impl Why {
    pub(crate) fn of(refusal: &Refusal) -> Self {
        match refusal {
            Refusal::Cycle { .. } => Self::Cycle,
            Refusal::ChildType { .. } => Self::ChildType,
            Refusal::WrongKinds { .. } => Self::WrongKinds,
            Refusal::Duplicate { .. } => Self::Duplicate,
            Refusal::MissingEnd { .. } => Self::MissingEnd,
            Refusal::Ambiguous { .. } => Self::Ambiguous,
            Refusal::UnknownType { .. } => Self::UnknownType,
            Refusal::UnsupportedStrategy { .. } => Self::UnsupportedStrategy,
            Refusal::NoResource(_) => Self::NoResource,
            Refusal::NoEdge { .. } => Self::NoEdge,
            Refusal::NoProject(_) => Self::NoProject,
            Refusal::BadProjectLink { .. } => Self::BadProjectLink,
            Refusal::Linked { .. } => Self::Linked,
            Refusal::Twice(_) | Refusal::Full => Self::Other,
        }
    }
}

/// Plain sets, and a registry whose settings the reference applies itself.
#[derive(Debug, Clone)]
pub(crate) struct Model {
    pub(crate) registry: Registry,
    pub(crate) configured: BTreeMap<String, Policy>,
    pub(crate) setting: Option<Policy>,
    pub(crate) resources: BTreeMap<ResourceId, Resource>,
    pub(crate) edges: BTreeMap<(ResourceId, ResourceId, EdgeKind), Edge>,
    pub(crate) projects: BTreeMap<String, Project>,
}

impl Model {
    pub(crate) fn new(registry: Registry) -> Self {
        Self {
            registry,
            configured: BTreeMap::new(),
            setting: None,
            resources: BTreeMap::new(),
            edges: BTreeMap::new(),
            projects: BTreeMap::new(),
        }
    }

    pub(crate) fn save(&self) -> Saved {
        Saved {
            resources: self.resources.values().cloned().collect(),
            edges: self.edges.values().copied().collect(),
            projects: self.projects.values().cloned().collect(),
        }
    }

    fn kind(&self, id: ResourceId) -> &sandbar_domain::graph::types::Type {
        let name = &self.resources[&id].type_name;
        self.registry.get(self.registry.find(name).expect("known"))
    }

    pub(crate) fn is_virtual(&self, id: ResourceId) -> bool {
        self.kind(id).kind == Kind::Virtual
    }

    pub(crate) fn capabilities(&self, id: ResourceId) -> Capabilities {
        let of_type = self.kind(id).capabilities;
        self.resources[&id].capabilities.over(of_type)
    }

    pub(crate) fn parents(&self, id: ResourceId, kinds: &[EdgeKind]) -> BTreeSet<ResourceId> {
        let edges = self.edges.keys();
        let here = edges.filter(|(_, child, kind)| *child == id && kinds.contains(kind));
        here.map(|(parent, _, _)| *parent).collect()
    }

    /// Every ancestor with its least distance, the resource itself at 0.
    pub(crate) fn ancestors(
        &self,
        id: ResourceId,
        kinds: &[EdgeKind],
    ) -> BTreeMap<ResourceId, usize> {
        let mut all = BTreeMap::from([(id, 0)]);
        let mut level = BTreeSet::from([id]);
        let mut distance = 0;
        while !level.is_empty() {
            distance += 1;
            let above = level.iter().flat_map(|one| self.parents(*one, kinds));
            level = above.filter(|one| !all.contains_key(one)).collect();
            all.extend(level.iter().map(|one| (*one, distance)));
        }
        all
    }

    pub(crate) fn contains_ancestors(&self, id: ResourceId) -> BTreeMap<ResourceId, usize> {
        self.ancestors(id, &[EdgeKind::Contains])
    }

    pub(crate) fn descendants(&self, id: ResourceId) -> BTreeSet<ResourceId> {
        let all = self.resources.keys().copied();
        all.filter(|one| self.contains_ancestors(*one).contains_key(&id))
            .collect()
    }

    pub(crate) fn policy(&self, id: ResourceId) -> Policy {
        let row = &self.resources[&id];
        if let Some(own) = row.policy {
            return own;
        }
        if let Some(configured) = self.configured.get(&row.type_name) {
            return *configured;
        }
        let kind = self.kind(id);
        let inside = self
            .contains_ancestors(id)
            .keys()
            .any(|up| *up != id && self.is_boundary(*up));
        if kind.policy.inherits_inside && inside {
            return Policy::Inherit;
        }
        match (kind.policy.policy, self.setting) {
            (Policy::Own(_), Some(Policy::None)) => Policy::None,
            (Policy::Own(_), Some(Policy::Own(asked))) if kind.strategies.has(asked) => {
                Policy::Own(asked)
            }
            (own, _) => own,
        }
    }

    pub(crate) fn is_boundary(&self, id: ResourceId) -> bool {
        self.capabilities(id).has(Capabilities::SANDBOXABLE)
            && matches!(self.policy(id), Policy::Own(_))
    }

    /// The boundaries at the least distance: none, one, or an ambiguity.
    pub(crate) fn nearest(&self, id: ResourceId) -> BTreeSet<ResourceId> {
        let above = self.contains_ancestors(id).into_iter();
        let bounds: Vec<_> = above.filter(|(up, _)| self.is_boundary(*up)).collect();
        let least = bounds.iter().map(|(_, distance)| *distance).min();
        let nearest = bounds.into_iter().filter(|(_, d)| Some(*d) == least);
        nearest.map(|(up, _)| up).collect()
    }

    pub(crate) fn boundary(&self, id: ResourceId) -> Option<ResourceId> {
        let nearest = self.nearest(id);
        assert!(nearest.len() < 2, "{id} has two nearest boundaries");
        nearest.first().copied()
    }

    pub(crate) fn strategy(&self, id: ResourceId) -> Option<Strategy> {
        match self.policy(self.boundary(id)?) {
            Policy::Own(strategy) => Some(strategy),
            _ => None,
        }
    }

    pub(crate) fn is_writable(&self, id: ResourceId, plan: Option<&Plan>) -> bool {
        self.contains_ancestors(id).keys().all(|up| {
            let linked_read_only = self.projects.values().any(|project| {
                plan.is_none_or(|plan| plan.has(&project.name))
                    && project
                        .links
                        .iter()
                        .any(|link| link.resource == *up && (link.read_only || project.read_only))
            });
            self.capabilities(*up).has(Capabilities::WRITABLE) && !linked_read_only
        })
    }

    pub(crate) fn manifestations(&self, id: ResourceId) -> BTreeSet<ResourceId> {
        let edges = self.edges.keys();
        let here = edges.filter(|(parent, _, kind)| *parent == id && *kind == EdgeKind::Manifests);
        here.map(|(_, child, _)| *child).collect()
    }

    /// Whether a way of at least one step leads from a resource to itself.
    fn has_cycle(&self) -> bool {
        let kinds = [EdgeKind::Contains, EdgeKind::References];
        self.resources.keys().any(|id| {
            self.parents(*id, &kinds)
                .into_iter()
                .any(|up| self.ancestors(up, &kinds).contains_key(id))
        })
    }

    fn check_types(&self, edge: &Edge) -> Result<(), Why> {
        let (parent, child) = (self.kind(edge.parent), self.kind(edge.child));
        let kind = edge.link.kind();
        let fits = match kind {
            EdgeKind::Manifests => parent.kind == Kind::Virtual && child.kind == Kind::Physical,
            _ => parent.kind == Kind::Physical && child.kind == Kind::Physical,
        };
        let id = |name: &str| self.registry.find(name).expect("known");
        let allowed = match kind {
            EdgeKind::Contains => parent.children.contains(&id(&child.name)),
            EdgeKind::References => true,
            EdgeKind::Manifests => child.equivalence == Some(id(&parent.name)),
        };
        match (fits, allowed) {
            (false, _) => Err(Why::WrongKinds),
            (_, false) => Err(Why::ChildType),
            _ => Ok(()),
        }
    }

    /// Every pair that the types allow an edge of that kind between.
    pub(crate) fn allowed(&self, kind: EdgeKind) -> Vec<(ResourceId, ResourceId)> {
        let link = match kind {
            EdgeKind::Contains => Link::Contains,
            EdgeKind::References => Link::References,
            EdgeKind::Manifests => Link::Manifests(Coherence::Cached),
        };
        let ids = || self.resources.keys().copied();
        let pairs = ids().flat_map(|parent| ids().map(move |child| (parent, child)));
        pairs
            .filter(|(parent, child)| {
                let (parent, child) = (*parent, *child);
                self.check_types(&Edge {
                    parent,
                    child,
                    link,
                })
                .is_ok()
            })
            .collect()
    }

    /// Applies a change that was allowed, without judging.
    pub(crate) fn trust(&mut self, change: &Change) {
        self.change(change).expect("it was allowed");
    }

    /// Applies one change to a copy, then judges the whole.
    pub(crate) fn apply(&mut self, change: &Change) -> Result<(), Why> {
        let mut next = self.clone();
        next.change(change)?;
        if next.has_cycle() {
            return Err(Why::Cycle);
        }
        let ids: Vec<_> = next.resources.keys().copied().collect();
        if ids.iter().any(|id| next.nearest(*id).len() > 1) {
            return Err(Why::Ambiguous);
        }
        *self = next;
        Ok(())
    }

    fn change(&mut self, change: &Change) -> Result<(), Why> {
        match change {
            Change::Put(row) => {
                let kind = self.registry.find(&row.type_name).ok_or(Why::UnknownType)?;
                if let Some(Policy::Own(strategy)) = row.policy
                    && !self.registry.get(kind).strategies.has(strategy)
                {
                    return Err(Why::UnsupportedStrategy);
                }
                self.resources.insert(row.id, row.clone());
                let touching = |e: &&Edge| e.parent == row.id || e.child == row.id;
                for edge in self.edges.values().filter(touching) {
                    self.check_types(edge)?;
                }
            }
            Change::Remove(id) => {
                if !self.resources.contains_key(id) {
                    return Err(Why::NoResource);
                }
                let links = |project: &Project| project.links.iter().any(|l| l.resource == *id);
                if self.projects.values().any(links) {
                    return Err(Why::Linked);
                }
                self.resources.remove(id);
                self.edges.retain(|(p, c, _), _| p != id && c != id);
            }
            Change::Link(edge) => {
                let there = |id| self.resources.contains_key(id);
                if !there(&edge.parent) || !there(&edge.child) {
                    return Err(Why::MissingEnd);
                }
                self.check_types(edge)?;
                let key = (edge.parent, edge.child, edge.link.kind());
                if self.edges.insert(key, *edge).is_some() {
                    return Err(Why::Duplicate);
                }
            }
            Change::Unlink {
                parent,
                child,
                kind,
            } => {
                let gone = self.edges.remove(&(*parent, *child, *kind));
                gone.ok_or(Why::NoEdge)?;
            }
            Change::PutProject(project) => {
                let mut seen = BTreeSet::new();
                for link in &project.links {
                    if !seen.insert(link.resource) || !self.resources.contains_key(&link.resource) {
                        return Err(Why::BadProjectLink);
                    }
                }
                self.projects.insert(project.name.clone(), project.clone());
            }
            Change::RemoveProject(name) => {
                self.projects.remove(name).ok_or(Why::NoProject)?;
            }
        }
        Ok(())
    }
}

impl Model {
    /// Takes rows as a whole and judges only the end.
    pub(crate) fn force(&mut self, saved: &Saved) -> Result<(), Why> {
        for row in &saved.resources {
            self.change(&Change::Put(row.clone()))?;
        }
        for edge in &saved.edges {
            self.change(&Change::Link(*edge))?;
        }
        if self.has_cycle() {
            return Err(Why::Cycle);
        }
        let ids: Vec<_> = self.resources.keys().copied().collect();
        if ids.iter().any(|id| self.nearest(*id).len() > 1) {
            return Err(Why::Ambiguous);
        }
        Ok(())
    }
}
