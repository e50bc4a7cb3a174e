//! What storage keeps and processes exchange: plain rows without references
//! into any graph (RES-1, RES-6, DAG-1, COH-1).

use std::collections::BTreeMap;

use super::capability::CapabilityChanges;
use super::policy::Policy;
use crate::id::ResourceId;

/// One resource (RES-1). Its kind follows from its type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Resource {
    /// Its id.
    pub id: ResourceId,
    /// The name of its type.
    pub type_name: String,
    /// Its name: for a file the last part of its path.
    pub name: String,
    /// Where it lives, in its own namespace (path, URI, object id, container
    /// id); none where that is its parent's place and its name.
    pub location: Option<String>,
    /// Where it differs from the capabilities of its type.
    pub capabilities: CapabilityChanges,
    /// Its own sandbox policy.
    pub policy: Option<Policy>,
    /// The content hash; for a virtual resource the identity key. None while
    /// it is not known.
    pub content: Option<String>,
    /// What the root of a file system led to, so that a moved one is known
    /// again.
    pub file: Option<FileId>,
    /// Where writes to a virtual resource go (RTE-1).
    pub canonical: Option<Canonical>,
    /// What else its type knows of it.
    pub properties: BTreeMap<String, String>,
}

impl Resource {
    /// Makes a resource that says nothing but its type and name.
    pub fn new(id: ResourceId, type_name: &str, name: &str) -> Self {
        Self {
            id,
            type_name: type_name.to_owned(),
            name: name.to_owned(),
            location: None,
            capabilities: CapabilityChanges::default(),
            policy: None,
            content: None,
            file: None,
            canonical: None,
            properties: BTreeMap::new(),
        }
    }

    /// Sets the place.
    #[must_use]
    pub fn at(mut self, location: &str) -> Self {
        self.location = Some(location.to_owned());
        self
    }

    /// Sets the policy.
    #[must_use]
    pub fn with_policy(mut self, policy: Policy) -> Self {
        self.policy = Some(policy);
        self
    }

    /// Sets one property.
    #[must_use]
    pub fn with_property(mut self, key: &str, value: &str) -> Self {
        self.properties.insert(key.to_owned(), value.to_owned());
        self
    }
}

/// Device and inode.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct FileId {
    /// The device number.
    pub device: u64,
    /// The inode number.
    pub inode: u64,
}

/// The canonical write target of a virtual resource (RTE-1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Canonical {
    /// `canonical_write_resource_id`.
    pub resource: ResourceId,
    /// `canonical_write_auto`: chosen by rule, not by a person.
    pub auto: bool,
}

/// The kinds of edges (DAG-1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum EdgeKind {
    /// Physical hierarchy.
    Contains,
    /// Soft dependency.
    References,
    /// From a virtual resource to a physical one.
    Manifests,
}

impl EdgeKind {
    /// Every kind.
    pub const ALL: [Self; 3] = [Self::Contains, Self::References, Self::Manifests];

    /// Returns the name.
    pub fn word(self) -> &'static str {
        match self {
            Self::Contains => "contains",
            Self::References => "references",
            Self::Manifests => "manifests",
        }
    }

    /// Reads the name back.
    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|one| one.word() == word)
    }
}

/// How a manifestation follows changes of the others (COH-1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Coherence {
    /// Same storage.
    Transparent,
    /// Sees changes after a refresh.
    Cached,
    /// A copy of its own.
    Independent(OnChange),
}

/// What a change does to an independent manifestation (COH-3).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum OnChange {
    /// It is copied there: corresponding positions of counterparts.
    Sync,
    /// The sibling is unlinked and stays as it is.
    Diverge,
}

impl Coherence {
    /// Returns the words that storage and output use.
    pub fn word(self) -> &'static str {
        match self {
            Self::Transparent => "transparent",
            Self::Cached => "cached",
            Self::Independent(OnChange::Sync) => "independent+sync",
            Self::Independent(OnChange::Diverge) => "independent+diverge",
        }
    }

    /// Reads the words back; `independent` alone diverges.
    pub fn from_word(word: &str) -> Option<Self> {
        Some(match word {
            "transparent" => Self::Transparent,
            "cached" => Self::Cached,
            "independent+sync" => Self::Independent(OnChange::Sync),
            "independent" | "independent+diverge" => Self::Independent(OnChange::Diverge),
            _ => return None,
        })
    }
}

/// What an edge says. Only `manifests` edges have a coherence.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Link {
    /// See [`EdgeKind::Contains`].
    Contains,
    /// See [`EdgeKind::References`].
    References,
    /// See [`EdgeKind::Manifests`].
    Manifests(Coherence),
}

impl Link {
    /// Returns the kind of the edge.
    pub fn kind(self) -> EdgeKind {
        match self {
            Self::Contains => EdgeKind::Contains,
            Self::References => EdgeKind::References,
            Self::Manifests(_) => EdgeKind::Manifests,
        }
    }
}

/// One edge. There is at most one of a kind between two ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Edge {
    /// Where it starts.
    pub parent: ResourceId,
    /// Where it leads.
    pub child: ResourceId,
    /// What it says.
    pub link: Link,
}

impl Edge {
    /// Makes a `contains` edge.
    pub fn contains(parent: ResourceId, child: ResourceId) -> Self {
        let link = Link::Contains;
        Self {
            parent,
            child,
            link,
        }
    }

    /// Makes a `references` edge.
    pub fn references(parent: ResourceId, child: ResourceId) -> Self {
        let link = Link::References;
        Self {
            parent,
            child,
            link,
        }
    }

    /// Makes a `manifests` edge.
    pub fn manifests(parent: ResourceId, child: ResourceId, coherence: Coherence) -> Self {
        let link = Link::Manifests(coherence);
        Self {
            parent,
            child,
            link,
        }
    }
}

/// A project: resources that belong together (RES-6).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Project {
    /// Its name, which is unique.
    pub name: String,
    /// Nothing linked by it may be written.
    pub read_only: bool,
    /// Its resources, each once.
    pub links: Vec<ProjectLink>,
}

/// A resource in a project.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ProjectLink {
    /// The resource.
    pub resource: ResourceId,
    /// It may not be written through this project.
    pub read_only: bool,
}

/// The projects of a plan, as questions about rights need them (RES-6).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    /// The name of the primary project.
    pub primary: String,
    /// The names of the others.
    pub others: Vec<String>,
    /// Only tools that can take checkpoints are bound (CKP-5).
    pub require_checkpoints: bool,
}

impl Plan {
    /// Makes a plan on one project.
    pub fn on(primary: &str) -> Self {
        Self {
            primary: primary.to_owned(),
            others: Vec::new(),
            require_checkpoints: false,
        }
    }

    /// Says whether the plan belongs to a project.
    pub fn has(&self, project: &str) -> bool {
        self.primary == project || self.others.iter().any(|other| other == project)
    }
}

/// A whole graph as rows: resources by id, edges by (parent, child, kind),
/// projects by name.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Saved {
    /// The resources.
    pub resources: Vec<Resource>,
    /// The edges.
    pub edges: Vec<Edge>,
    /// The projects.
    pub projects: Vec<Project>,
}
