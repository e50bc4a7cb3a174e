//! Small graphs written as text: one resource a line, contained by the one
//! above it that is less indented.
//!
//! `type name [@place] [own(strategy)|inherit|none] [-writable …] [key=value …]`

use std::collections::BTreeMap;

use sandbar_domain::ResourceId;
use sandbar_domain::graph::{
    Access, BindingMode, CapabilityChanges, Change, Coherence, Edge, Graph, Node, Policy, Project,
    ProjectLink, QueryKind, QueryKinds, Registry, Resource, Slot, Tool, Toolbox,
};

/// A graph whose resources are known by name.
pub(crate) struct Ground {
    pub(crate) graph: Graph,
    ids: BTreeMap<String, ResourceId>,
}

pub(crate) fn id(n: usize) -> ResourceId {
    ResourceId::from_parts(1, n as u128)
}

impl Ground {
    pub(crate) fn new(text: &str) -> Self {
        Self::with(Registry::builtin(), text)
    }

    pub(crate) fn with(registry: Registry, text: &str) -> Self {
        let mut ground = Self {
            graph: Graph::new(registry),
            ids: BTreeMap::new(),
        };
        let mut above: Vec<(usize, ResourceId)> = Vec::new();
        for line in text.lines().filter(|line| !line.trim().is_empty()) {
            let indent = line.len() - line.trim_start().len();
            above.retain(|(depth, _)| *depth < indent);
            let parent = above.last().map(|(_, id)| *id);
            let id = ground.add(line.trim(), parent);
            above.push((indent, id));
        }
        ground
    }

    pub(crate) fn add(&mut self, line: &str, parent: Option<ResourceId>) -> ResourceId {
        let mut words = line.split_whitespace();
        let (kind, name) = (words.next().expect("type"), words.next().expect("name"));
        let id = id(self.ids.len() + 1);
        let shown = name.split('#').next().expect("a name");
        let mut row = Resource::new(id, kind, shown);
        for word in words {
            if let Some(place) = word.strip_prefix('@') {
                row.location = Some(place.to_owned());
            } else if let Some((key, value)) = word.split_once('=') {
                row.properties.insert(key.to_owned(), value.to_owned());
            } else if word == "-writable" {
                row.capabilities.writable = Some(false);
            } else if word == "-sandboxable" {
                row.capabilities.sandboxable = Some(false);
            } else if word == "-checkpointable" {
                row.capabilities.checkpointable = Some(false);
            } else {
                row.policy = Some(Policy::from_word(word).expect(word));
            }
        }
        assert!(
            self.ids.insert(name.to_owned(), id).is_none(),
            "{name} twice"
        );
        let mut changes = vec![Change::Put(row)];
        changes.extend(parent.map(|parent| Change::Link(Edge::contains(parent, id))));
        self.apply(&changes);
        id
    }

    pub(crate) fn apply(&mut self, changes: &[Change]) {
        self.graph.apply(changes).expect("the rules allow it");
    }

    pub(crate) fn id(&self, name: &str) -> ResourceId {
        *self.ids.get(name).unwrap_or_else(|| panic!("no {name}"))
    }

    pub(crate) fn node(&self, name: &str) -> Node {
        self.graph.node(self.id(name)).expect("it is there")
    }

    /// The name that a resource has in the text.
    pub(crate) fn name(&self, id: ResourceId) -> &str {
        let found = self.ids.iter().find(|(_, one)| **one == id);
        found.expect("it is there").0
    }

    pub(crate) fn names(&self, nodes: impl IntoIterator<Item = Node>) -> Vec<&str> {
        let mut names: Vec<_> = nodes
            .into_iter()
            .map(|node| self.name(self.graph.id(node)))
            .collect();
        names.sort_unstable();
        names
    }

    /// Makes a virtual resource with these manifestations.
    pub(crate) fn same(&mut self, kind: &str, name: &str, of: &[(&str, Coherence)]) {
        let v = self.add(&format!("{kind} {name}"), None);
        let links = of
            .iter()
            .map(|(one, how)| Change::Link(Edge::manifests(v, self.id(one), *how)));
        let links: Vec<_> = links.collect();
        self.apply(&links);
    }

    pub(crate) fn project(&mut self, name: &str, read_only: bool, links: &[(&str, bool)]) {
        let links = links.iter().map(|(one, read_only)| ProjectLink {
            resource: self.id(one),
            read_only: *read_only,
        });
        let project = Project {
            name: name.to_owned(),
            read_only,
            links: links.collect(),
        };
        self.apply(&[Change::PutProject(project)]);
    }

    /// Changes the row of a resource.
    pub(crate) fn edit(&self, name: &str, edit: impl FnOnce(&mut Resource)) -> Change {
        let mut row = self.graph.row(self.node(name));
        edit(&mut row);
        Change::Put(row)
    }
}

pub(crate) fn sandboxable(is: bool) -> CapabilityChanges {
    CapabilityChanges {
        sandboxable: Some(is),
        ..CapabilityChanges::default()
    }
}

pub(crate) fn slot(name: &str, access: Access, accepts: &str) -> Slot {
    Slot {
        name: name.to_owned(),
        accepts: accepts.split_whitespace().map(str::to_owned).collect(),
        access,
        checkpointable: false,
        checkpoint_scope: None,
        rollback: String::new(),
        queries: QueryKinds::of(&[QueryKind::Content]),
        richness: None,
        binding: BindingMode::Parameter,
    }
}

pub(crate) fn tool(name: &str, access: Access, accepts: &str) -> Tool {
    Tool {
        name: name.to_owned(),
        slots: vec![slot("on", access, accepts)],
    }
}

pub(crate) fn toolbox(tools: Vec<Tool>) -> Toolbox {
    Toolbox::new(&Registry::builtin(), tools).expect("valid tools")
}
