//! The graph in memory: 32 bytes of links and labels a resource, its id, and
//! side tables for what few resources have.
//!
//! This module keeps links in step and nothing else: what may be linked is
//! decided in `change`, what labels say in `label`.

use std::collections::HashMap;

use super::capability::{Capabilities, CapabilityChanges};
use super::index::Index;
use super::names::Names;
use super::policy::Policy;
use super::refusal::{End, Refusal};
use super::rows::{Canonical, Coherence, FileId, Project, Resource};
use super::types::{Kind, Registry, Type, TypeId};
use crate::id::ResourceId;

/// A resource inside one graph. It means nothing in another graph, nor after
/// the resource was removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Node(pub(super) u32);

pub(super) const NIL: u32 = u32::MAX;

/// Bits of [`Hot::flags`]; the lowest four are the capabilities.
pub(super) mod flag {
    pub(in crate::graph) const CAPABILITIES: u16 = 15;
    pub(in crate::graph) const BOUNDARY: u16 = 1 << 4;
    pub(in crate::graph) const DETAIL: u16 = 1 << 5;
    pub(in crate::graph) const MORE_PARENTS: u16 = 1 << 6;
    pub(in crate::graph) const MORE_CHILDREN: u16 = 1 << 7;
    pub(in crate::graph) const REFERENCES: u16 = 1 << 8;
    pub(in crate::graph) const REFERENCED: u16 = 1 << 9;
    pub(in crate::graph) const MANIFESTS: u16 = 1 << 10;
    pub(in crate::graph) const MANIFESTED: u16 = 1 << 11;
    pub(in crate::graph) const LINKED: u16 = 1 << 12;
    pub(in crate::graph) const LIVE: u16 = 1 << 13;
}

/// What every question walks over.
#[derive(Debug, Clone, Copy)]
pub(super) struct Hot {
    /// The `contains` parent with the lowest id.
    pub(super) parent: u32,
    /// The first of the children whose first parent it is.
    pub(super) child: u32,
    /// The next and previous child of the same parent.
    pub(super) next: u32,
    pub(super) prev: u32,
    /// The nearest boundary, and how far it is.
    pub(super) boundary: u32,
    pub(super) distance: u32,
    pub(super) name: u32,
    pub(super) kind: TypeId,
    pub(super) flags: u16,
}

/// What few resources have.
#[derive(Debug, Clone, Default)]
pub(super) struct Detail {
    pub(super) location: Option<String>,
    pub(super) capabilities: CapabilityChanges,
    pub(super) policy: Option<Policy>,
    pub(super) content: Option<String>,
    pub(super) file: Option<FileId>,
    pub(super) canonical: Option<Canonical>,
    pub(super) properties: std::collections::BTreeMap<String, String>,
}

/// Lists of nodes for the few that have them.
pub(super) type Side<T> = HashMap<u32, Vec<T>>;

/// The resource graph. See the module's page.
#[derive(Debug, Clone)]
pub struct Graph {
    pub(super) registry: Registry,
    pub(super) generation: u64,
    pub(super) hot: Vec<Hot>,
    pub(super) ids: Vec<ResourceId>,
    pub(super) index: Index,
    pub(super) names: Names,
    pub(super) details: HashMap<u32, Box<Detail>>,
    /// Further `contains` parents, by id.
    pub(super) more_parents: Side<u32>,
    pub(super) more_children: Side<u32>,
    pub(super) references: Side<u32>,
    pub(super) referenced: Side<u32>,
    pub(super) manifests: Side<(u32, Coherence)>,
    pub(super) manifested: Side<u32>,
    pub(super) projects: Vec<Project>,
    /// By linked node: which projects, and whether the link is read-only.
    pub(super) links: Side<(u32, bool)>,
    pub(super) free: Vec<u32>,
}

impl Graph {
    /// Returns a graph without resources, at generation 0.
    pub fn new(registry: Registry) -> Self {
        Self {
            registry,
            generation: 0,
            hot: Vec::new(),
            ids: Vec::new(),
            index: Index::default(),
            names: Names::default(),
            details: HashMap::new(),
            more_parents: HashMap::new(),
            more_children: HashMap::new(),
            references: HashMap::new(),
            referenced: HashMap::new(),
            manifests: HashMap::new(),
            manifested: HashMap::new(),
            projects: Vec::new(),
            links: HashMap::new(),
            free: Vec::new(),
        }
    }

    /// Returns the types.
    pub fn registry(&self) -> &Registry {
        &self.registry
    }

    /// Returns the number of the last change that took effect (RTE-4).
    pub fn generation(&self) -> u64 {
        self.generation
    }

    /// Counts the resources.
    pub fn len(&self) -> usize {
        self.hot.len() - self.free.len()
    }

    /// Says whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the bytes that it takes, those of names and side tables apart:
    /// (links, labels, ids and index; names).
    pub fn memory(&self) -> (usize, usize) {
        let nodes = self.hot.capacity() * size_of::<Hot>()
            + self.ids.capacity() * size_of::<ResourceId>()
            + self.index.bytes()
            + self.free.capacity() * size_of::<u32>();
        (nodes, self.names.bytes())
    }

    /// Finds a resource. Convert once, then ask with the node.
    pub fn node(&self, id: ResourceId) -> Option<Node> {
        self.index.find(id, &self.ids).map(Node)
    }

    /// Iterates over all resources, in no order.
    pub fn nodes(&self) -> impl Iterator<Item = Node> {
        (0..self.hot.len() as u32)
            .filter(|at| self.hot[*at as usize].flags & flag::LIVE != 0)
            .map(Node)
    }

    /// Returns the id of a resource.
    pub fn id(&self, node: Node) -> ResourceId {
        self.ids[node.0 as usize]
    }

    /// Returns the view of one resource that handlers get.
    pub fn see(&self, node: Node) -> Seen<'_> {
        Seen { graph: self, node }
    }

    /// Returns the projects, by name.
    pub fn projects(&self) -> &[Project] {
        &self.projects
    }

    pub(super) fn at(&self, node: u32) -> &Hot {
        &self.hot[node as usize]
    }

    pub(super) fn has(&self, node: u32, flag: u16) -> bool {
        self.at(node).flags & flag != 0
    }

    pub(super) fn capabilities(&self, node: u32) -> Capabilities {
        Capabilities::from_bits((self.at(node).flags & flag::CAPABILITIES) as u8)
    }

    pub(super) fn of_type(&self, node: u32) -> &Type {
        self.registry.get(self.at(node).kind)
    }

    pub(super) fn is_virtual(&self, node: u32) -> bool {
        self.of_type(node).kind == Kind::Virtual
    }

    pub(super) fn detail(&self, node: u32) -> Option<&Detail> {
        if self.has(node, flag::DETAIL) {
            self.details.get(&node).map(|detail| &**detail)
        } else {
            None
        }
    }

    /// Names a resource for an error.
    pub(super) fn end(&self, node: u32) -> End {
        End {
            id: self.ids[node as usize],
            type_name: self.of_type(node).name.clone(),
            name: self.names.get(self.at(node).name).to_owned(),
        }
    }

    /// Names a resource that may not exist.
    pub(super) fn end_of(&self, id: ResourceId) -> End {
        match self.index.find(id, &self.ids) {
            Some(node) => self.end(node),
            None => End {
                id,
                type_name: String::new(),
                name: String::new(),
            },
        }
    }

    /// Returns the list of a side table; empty without a look where the flag
    /// says that there is none.
    pub(super) fn side<'a, T>(&self, table: &'a Side<T>, node: u32, flag: u16) -> &'a [T] {
        if self.has(node, flag) {
            table.get(&node).map_or(&[], Vec::as_slice)
        } else {
            &[]
        }
    }

    /// Writes a resource into a slot, without edges and labels.
    pub(super) fn place(&mut self, row: &Resource, kind: TypeId) -> Result<u32, Refusal> {
        let name = self.names.intern(&row.name).ok_or(Refusal::Full)?;
        let hot = Hot {
            parent: NIL,
            child: NIL,
            next: NIL,
            prev: NIL,
            boundary: NIL,
            distance: 0,
            name,
            kind,
            flags: flag::LIVE,
        };
        let node = match self.free.pop() {
            Some(node) => {
                self.hot[node as usize] = hot;
                self.ids[node as usize] = row.id;
                node
            }
            None => {
                let node = u32::try_from(self.hot.len()).map_err(|_| Refusal::Full)?;
                if node == NIL {
                    return Err(Refusal::Full);
                }
                self.hot.push(hot);
                self.ids.push(row.id);
                node
            }
        };
        self.index.insert(node, &self.ids);
        self.describe(node, row, kind, name);
        Ok(node)
    }

    /// Takes a slot without edges out.
    pub(super) fn vacate(&mut self, node: u32) {
        self.index.remove(self.ids[node as usize], &self.ids);
        self.details.remove(&node);
        self.hot[node as usize].flags = 0;
        self.free.push(node);
    }

    /// Writes what the row says of the resource itself.
    pub(super) fn describe(&mut self, node: u32, row: &Resource, kind: TypeId, name: u32) {
        let Resource {
            id: _,
            type_name: _,
            name: _,
            location,
            capabilities,
            policy,
            content,
            file,
            canonical,
            properties,
        } = row;
        let detail = Detail {
            location: location.clone(),
            capabilities: *capabilities,
            policy: *policy,
            content: content.clone(),
            file: *file,
            canonical: *canonical,
            properties: properties.clone(),
        };
        let plain = location.is_none()
            && *capabilities == CapabilityChanges::default()
            && policy.is_none()
            && content.is_none()
            && file.is_none()
            && canonical.is_none()
            && properties.is_empty();
        let all = capabilities.over(self.registry.get(kind).capabilities);
        let hot = &mut self.hot[node as usize];
        hot.kind = kind;
        hot.name = name;
        hot.flags = hot.flags & !(flag::CAPABILITIES | flag::DETAIL) | u16::from(all.bits());
        if plain {
            self.details.remove(&node);
        } else {
            hot.flags |= flag::DETAIL;
            self.details.insert(node, Box::new(detail));
        }
    }

    /// Returns the row of a resource.
    pub fn row(&self, node: Node) -> Resource {
        let seen = self.see(node);
        let row = Resource::new(self.id(node), seen.type_name(), seen.name());
        match self.detail(node.0) {
            None => row,
            Some(detail) => {
                let Detail {
                    location,
                    capabilities,
                    policy,
                    content,
                    file,
                    canonical,
                    properties,
                } = detail.clone();
                Resource {
                    location,
                    capabilities,
                    policy,
                    content,
                    file,
                    canonical,
                    properties,
                    ..row
                }
            }
        }
    }
}

/// One resource as a handler sees it: its own row, and no way to others.
#[derive(Clone, Copy)]
pub struct Seen<'a> {
    graph: &'a Graph,
    node: Node,
}

impl<'a> Seen<'a> {
    /// Returns the id.
    pub fn id(self) -> ResourceId {
        self.graph.id(self.node)
    }

    /// Returns the name.
    pub fn name(self) -> &'a str {
        self.graph.names.get(self.graph.at(self.node.0).name)
    }

    /// Returns what is known about its type.
    pub fn kind(self) -> &'a Type {
        self.graph.of_type(self.node.0)
    }

    /// Returns the name of its type.
    pub fn type_name(self) -> &'a str {
        &self.kind().name
    }

    /// Returns the capabilities.
    pub fn capabilities(self) -> Capabilities {
        self.graph.capabilities(self.node.0)
    }

    /// Returns the place that it says of itself.
    pub fn location(self) -> Option<&'a str> {
        self.graph.detail(self.node.0)?.location.as_deref()
    }

    /// Returns its content hash or identity key, once known.
    pub fn content(self) -> Option<&'a str> {
        self.graph.detail(self.node.0)?.content.as_deref()
    }

    /// Returns one property.
    pub fn property(self, key: &str) -> Option<&'a str> {
        let detail = self.graph.detail(self.node.0)?;
        detail.properties.get(key).map(String::as_str)
    }
}
