//! What a handler is asked, and how the graph puts the question together.

use super::{AccessProjection, Handlers};
use crate::graph::arena::{Graph, Node, Seen};
use crate::graph::capability::Capabilities;
use crate::graph::types::Protocol;
use crate::id::ResourceId;

/// A sandbox that is live for a plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LiveSandbox {
    /// The boundary.
    pub boundary: ResourceId,
    /// The real place: an absolute path, or the id of a container, volume or
    /// database.
    pub real: String,
    /// The sandbox's place, of the same kind.
    pub root: String,
    /// The caller sees it at the real place.
    pub in_place: bool,
}

/// One mount of a container (PRJ-3).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mount {
    /// The resource.
    pub resource: ResourceId,
    /// The absolute path inside the container.
    pub destination: String,
    /// Nothing under it can be written.
    pub read_only: bool,
}

/// The question put to a handler.
pub struct Ask<'a> {
    /// What the tool is bound to.
    pub binding: Seen<'a>,
    /// What it wants to reach.
    pub target: Seen<'a>,
    /// The way from one to the other over `contains`, both included.
    pub path: &'a [Seen<'a>],
    /// The place of the bound resource, in its own namespace.
    pub binding_place: Option<&'a str>,
    /// The boundary of the bound resource.
    pub binding_boundary: Option<ResourceId>,
    /// The boundary of the target.
    pub target_boundary: Option<ResourceId>,
    /// The live sandbox that the target lies in: that of its boundary, else of
    /// the nearest boundary above that has one.
    pub sandbox: Option<&'a LiveSandbox>,
    /// All live sandboxes of the plan.
    pub sandboxes: &'a [LiveSandbox],
    /// The way from the container, volume or database that it lies in, both
    /// included; empty where it lies in none.
    pub engine_path: &'a [Seen<'a>],
    /// The mounts of that container.
    pub mounts: &'a [Mount],
    /// The generation of the graph.
    pub generation: u64,
}

impl Ask<'_> {
    /// Says whether the target lies in another domain than the bound resource.
    pub fn crosses(&self) -> bool {
        self.binding_boundary != self.target_boundary
    }
}

/// What has a file system of its own.
const ENGINES: [&str; 2] = ["container-instance", "container-volume"];

/// The property of a `container-mount` that forbids writing.
const READ_ONLY: &str = "read_only";

impl Graph {
    /// Returns where a resource lives, in its own namespace: the place it says
    /// of itself, else its parent's place and its name. None where nothing
    /// above says a place.
    pub fn location(&self, node: Node) -> Option<String> {
        let mut names = Vec::new();
        let mut at = node;
        let place = loop {
            let seen = self.see(at);
            if let Some(place) = seen.location() {
                break place;
            }
            names.push(seen.name());
            at = self.parents(at).next()?;
        };
        let separator = match self.see(node).kind().protocol {
            Protocol::Sql => '.',
            _ => '/',
        };
        let mut place = place.to_owned();
        for name in names.into_iter().rev() {
            if !place.ends_with(separator) {
                place.push(separator);
            }
            place.push_str(name);
        }
        Some(place)
    }

    /// Returns the shortest way over `contains` from one resource down to
    /// another, both included; none where none leads there.
    pub fn path(&self, from: Node, to: Node) -> Option<Vec<Node>> {
        let mut up = self.ancestors(to);
        up.find(|node| *node == from)?;
        Some(up.path())
    }

    /// Answers how a tool that is bound to one resource reaches another; none
    /// where it cannot (PRJ-1).
    pub fn project(
        &self,
        binding: Node,
        target: Node,
        sandboxes: &[LiveSandbox],
        handlers: &dyn Handlers,
    ) -> Option<AccessProjection> {
        let path = self.path(binding, target)?;
        self.project_along(&path, sandboxes, handlers)
    }

    /// As [`Graph::project`], with the way known.
    pub(in crate::graph) fn project_along(
        &self,
        path: &[Node],
        sandboxes: &[LiveSandbox],
        handlers: &dyn Handlers,
    ) -> Option<AccessProjection> {
        let (binding, target) = (*path.first()?, *path.last()?);
        let engine = self.engine_path(path);
        let in_engine = !engine.is_empty() && engine.len() >= path.len();
        let protocol = match self.see(binding).kind().protocol {
            // A directory of a container is not one of this machine.
            Protocol::Filesystem if in_engine => Protocol::ContainerExec,
            protocol => protocol,
        };
        let handler = handlers.handler(protocol)?;
        let place = self.location(binding);
        let mounts = engine
            .first()
            .map_or_else(Vec::new, |top| self.mounts(*top));
        let see = |nodes: &[Node]| nodes.iter().map(|node| self.see(*node)).collect::<Vec<_>>();
        let id = |node: Option<Node>| node.map(|node| self.id(node));
        handler.project_access(&Ask {
            binding: self.see(binding),
            target: self.see(target),
            path: &see(path),
            binding_place: place.as_deref(),
            binding_boundary: id(self.boundary(binding)),
            target_boundary: id(self.boundary(target)),
            sandbox: self.live_above(target, sandboxes),
            sandboxes,
            engine_path: &see(&engine),
            mounts: &mounts,
            generation: self.generation(),
        })
    }

    /// Finds the live sandbox of the nearest boundary that has one.
    fn live_above<'a>(&self, node: Node, sandboxes: &'a [LiveSandbox]) -> Option<&'a LiveSandbox> {
        if sandboxes.is_empty() {
            return None;
        }
        self.ancestors(node)
            .filter(|up| self.is_boundary(*up))
            .find_map(|up| {
                let id = self.id(up);
                sandboxes.iter().find(|live| live.boundary == id)
            })
    }

    /// Returns the way from the container, volume or database that a target
    /// lies in.
    fn engine_path(&self, path: &[Node]) -> Vec<Node> {
        let is_engine = |node: &Node| {
            let kind = self.see(*node).kind();
            let database =
                kind.protocol == Protocol::Sql && kind.capabilities.has(Capabilities::SANDBOXABLE);
            database || ENGINES.contains(&kind.name.as_str())
        };
        if let Some(at) = path.iter().rposition(is_engine) {
            return path[at..].to_vec();
        }
        let reached_in_one = |node: &Node| {
            let protocol = self.see(*node).kind().protocol;
            use Protocol::{ContainerExec, Filesystem, Sql};
            matches!(protocol, Filesystem | ContainerExec | Sql)
        };
        let mut above = Vec::new();
        let mut at = path.first().copied();
        while let Some(node) = at.filter(reached_in_one) {
            above.push(node);
            if is_engine(&node) {
                above.reverse();
                above.extend(&path[1..]);
                return above;
            }
            at = self.parents(node).next();
        }
        Vec::new()
    }

    /// Returns the mounts of a container, by destination.
    pub fn mounts(&self, container: Node) -> Vec<Mount> {
        let children = self.children(container).map(|node| self.see(node));
        let mut mounts: Vec<_> = children
            .filter(|seen| seen.type_name() == "container-mount")
            .filter_map(|seen| {
                Some(Mount {
                    resource: seen.id(),
                    destination: seen.location()?.to_owned(),
                    read_only: seen.property(READ_ONLY) == Some("true"),
                })
            })
            .collect();
        mounts.sort_by(|a, b| (&a.destination, a.resource).cmp(&(&b.destination, b.resource)));
        mounts
    }
}
