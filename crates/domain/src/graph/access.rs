//! Rights: whether something may be written follows from its ancestors and
//! the projects that link them, at the moment of asking (DAG-5). Nothing here
//! is remembered.

use std::collections::HashSet;

use super::arena::{Graph, NIL, Node, flag};
use super::capability::Capabilities;
use super::rows::Plan;
use crate::id::ResourceId;

/// Whether a resource may be written, and what forbids it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Writability {
    /// The resource.
    pub resource: ResourceId,
    /// Everything that forbids it, nearest first; empty when it is writable.
    pub forbids: Vec<Forbids>,
    /// The resource and every ancestor that was looked at.
    pub path: Vec<ResourceId>,
}

impl Writability {
    /// Says whether nothing forbids it.
    pub fn is_writable(&self) -> bool {
        self.forbids.is_empty()
    }
}

/// What forbids writing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Forbids {
    /// The resource itself, or an ancestor, is not writable.
    NotWritable {
        /// Which one.
        resource: ResourceId,
    },
    /// A project links it, or an ancestor, read-only.
    ReadOnlyLink {
        /// The project.
        project: String,
        /// What it links.
        resource: ResourceId,
        /// The whole project is read-only, not this link alone.
        whole: bool,
    },
}

impl Graph {
    /// Says whether a resource may be written: itself and every ancestor is
    /// writable, and no read-only link of the plan's projects (of all, without
    /// a plan) is on one of them (DAG-5).
    pub fn is_writable(&self, node: Node, plan: Option<&Plan>) -> bool {
        let mut at = node.0;
        loop {
            let hot = self.at(at);
            if hot.flags & flag::MORE_PARENTS != 0 {
                return self.is_writable_above(at, plan);
            }
            if !self.is_writable_alone(at, plan) {
                return false;
            }
            if hot.parent == NIL {
                return true;
            }
            at = hot.parent;
        }
    }

    /// Answers the same, with everything that forbids it.
    pub fn explain_writable(&self, node: Node, plan: Option<&Plan>) -> Writability {
        let mut forbids = Vec::new();
        let mut path = Vec::new();
        for up in self.ancestors(node) {
            path.push(self.id(up));
            if !self.capabilities(up.0).has(Capabilities::WRITABLE) {
                let resource = self.id(up);
                forbids.push(Forbids::NotWritable { resource });
            }
            for (project, read_only) in self.side(&self.links, up.0, flag::LINKED) {
                let project = &self.projects[*project as usize];
                if *read_only && plan.is_none_or(|plan| plan.has(&project.name)) {
                    forbids.push(Forbids::ReadOnlyLink {
                        project: project.name.clone(),
                        resource: self.id(up),
                        whole: project.read_only,
                    });
                }
            }
        }
        Writability {
            resource: self.id(node),
            forbids,
            path,
        }
    }

    /// Iterates over the resources that the plan's projects link, by id
    /// (RES-6); of all projects, without a plan.
    pub fn linked(&self, plan: Option<&Plan>) -> Vec<Node> {
        let meant = |name: &str| plan.is_none_or(|plan| plan.has(name));
        let mut linked: Vec<Node> = self
            .projects
            .iter()
            .filter(|project| meant(&project.name))
            .flat_map(|project| &project.links)
            .filter_map(|link| self.node(link.resource))
            .collect();
        linked.sort_unstable_by_key(|node| self.id(*node));
        linked.dedup();
        linked
    }

    /// Returns the boundaries of a plan's resources, each once, by id: one
    /// sandbox each, whichever projects share it (RES-6, SBX-6).
    pub fn plan_boundaries(&self, plan: &Plan) -> Vec<Node> {
        let linked = self.linked(Some(plan)).into_iter();
        let mut all: Vec<_> = linked.filter_map(|node| self.boundary(node)).collect();
        all.sort_unstable_by_key(|node| self.id(*node));
        all.dedup();
        all
    }

    /// Says whether a project links a resource or an ancestor of it.
    pub(super) fn is_of_project(&self, node: Node, project: &str) -> bool {
        self.ancestors(node).any(|up| {
            self.side(&self.links, up.0, flag::LINKED)
                .iter()
                .any(|(at, _)| self.projects[*at as usize].name == project)
        })
    }

    fn is_writable_alone(&self, node: u32, plan: Option<&Plan>) -> bool {
        if !self.capabilities(node).has(Capabilities::WRITABLE) {
            return false;
        }
        let links = self.side(&self.links, node, flag::LINKED);
        !links.iter().any(|(project, read_only)| {
            let name = &self.projects[*project as usize].name;
            *read_only && plan.is_none_or(|plan| plan.has(name))
        })
    }

    /// As [`Graph::is_writable`], from where ways fork and may meet again.
    fn is_writable_above(&self, node: u32, plan: Option<&Plan>) -> bool {
        let mut seen = HashSet::from([node]);
        let mut stack = vec![node];
        while let Some(at) = stack.pop() {
            if !self.is_writable_alone(at, plan) {
                return false;
            }
            stack.extend(self.parents_of(at).filter(|up| seen.insert(*up)));
        }
        true
    }
}

impl std::fmt::Display for Forbids {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::NotWritable { resource } => write!(f, "{resource} is not writable"),
            Self::ReadOnlyLink {
                project,
                resource,
                whole: false,
            } => write!(f, "project {project} links {resource} read-only"),
            Self::ReadOnlyLink {
                project,
                resource,
                whole: true,
            } => write!(f, "project {project}, which links {resource}, is read-only"),
        }
    }
}
