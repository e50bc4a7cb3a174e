//! Why a change of the graph was refused. Both ends are always named.

use std::fmt;

use super::policy::Strategy;
use super::rows::EdgeKind;
use crate::error::Code;
use crate::id::ResourceId;

/// One end of an edge, as a person knows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct End {
    /// Its id.
    pub id: ResourceId,
    /// Its type; empty where no such resource exists.
    pub type_name: String,
    /// Its name.
    pub name: String,
}

impl fmt::Display for End {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            id,
            type_name,
            name,
        } = self;
        if type_name.is_empty() {
            write!(f, "{id}, which does not exist")
        } else {
            write!(f, "{type_name} {name} ({id})")
        }
    }
}

/// A change that was refused; nothing was changed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The edge would close a cycle over `contains` and `references` (DAG-2).
    #[error("an edge {} from {parent} to {child} closes a cycle", .kind.word())]
    Cycle {
        /// Where it starts.
        parent: Box<End>,
        /// Where it leads.
        child: Box<End>,
        /// Its kind.
        kind: EdgeKind,
    },
    /// The parent's type may not have children of that type (DAG-2).
    #[error("{parent} may not have an edge {} to {child}: the types do not allow it", .kind.word())]
    ChildType {
        /// Where it starts.
        parent: Box<End>,
        /// Where it leads.
        child: Box<End>,
        /// Its kind.
        kind: EdgeKind,
    },
    /// A `manifests` edge that is not virtual → physical, or another edge that
    /// touches a virtual resource (DAG-2).
    #[error("an edge {} cannot lead from {parent} to {child}: {}", .kind.word(), kinds(*.kind))]
    WrongKinds {
        /// Where it starts.
        parent: Box<End>,
        /// Where it leads.
        child: Box<End>,
        /// Its kind.
        kind: EdgeKind,
    },
    /// There is such an edge (DAG-2).
    #[error("there is an edge {} from {parent} to {child} already", .kind.word())]
    Duplicate {
        /// Where it starts.
        parent: Box<End>,
        /// Where it leads.
        child: Box<End>,
        /// Its kind.
        kind: EdgeKind,
    },
    /// An end that does not exist (DAG-2).
    #[error("an edge {} from {parent} to {child}", .kind.word())]
    MissingEnd {
        /// Where it starts.
        parent: Box<End>,
        /// Where it leads.
        child: Box<End>,
        /// Its kind.
        kind: EdgeKind,
    },
    /// Two boundaries would be nearest (DAG-3).
    #[error("{resource} would have two nearest boundaries, {first} and {second}")]
    Ambiguous {
        /// The resource.
        resource: Box<End>,
        /// The boundary with the lower id.
        first: Box<End>,
        /// The other.
        second: Box<End>,
    },
    /// A type that the registry does not know.
    #[error("resource {name} ({id}) has type {type_name:?}, which is not known")]
    UnknownType {
        /// The resource.
        id: ResourceId,
        /// Its name.
        name: String,
        /// The type asked for.
        type_name: String,
    },
    /// A strategy that cannot isolate resources of that type.
    #[error("{resource} cannot be isolated by {}", .strategy.word())]
    UnsupportedStrategy {
        /// The resource.
        resource: Box<End>,
        /// The strategy.
        strategy: Strategy,
    },
    /// No such resource.
    #[error("no resource {0}")]
    NoResource(ResourceId),
    /// No such edge.
    #[error("no edge {} from {parent} to {child}", .kind.word())]
    NoEdge {
        /// Where it would start.
        parent: Box<End>,
        /// Where it would lead.
        child: Box<End>,
        /// Its kind.
        kind: EdgeKind,
    },
    /// No such project.
    #[error("no project {0}")]
    NoProject(String),
    /// A project links what does not exist, or the same twice.
    #[error("project {project} links {resource}{}", if *.twice { " twice" } else { "" })]
    BadProjectLink {
        /// The project.
        project: String,
        /// The resource.
        resource: Box<End>,
        /// It exists, but is linked twice.
        twice: bool,
    },
    /// The resource is linked into a project, which must let go first.
    #[error("{resource} is linked into project {project}")]
    Linked {
        /// The resource.
        resource: Box<End>,
        /// The project.
        project: String,
    },
    /// Two rows with one id, or two projects with one name, in a bulk load.
    #[error("{0} comes twice")]
    Twice(String),
    /// More resources or bytes of names than 32 bits count.
    #[error("the graph is full")]
    Full,
}

fn kinds(kind: EdgeKind) -> &'static str {
    match kind {
        EdgeKind::Manifests => "it leads from a virtual resource to a physical one",
        EdgeKind::Contains | EdgeKind::References => "only physical resources have such edges",
    }
}

impl Refusal {
    /// Returns the code of the closed list.
    pub fn code(&self) -> Code {
        match self {
            Self::Ambiguous { .. } => Code::AmbiguousBoundary,
            Self::NoResource(_) | Self::NoProject(_) => Code::ResourceNotFound,
            Self::Full => Code::Internal,
            Self::Cycle { .. }
            | Self::ChildType { .. }
            | Self::WrongKinds { .. }
            | Self::Duplicate { .. }
            | Self::MissingEnd { .. }
            | Self::UnknownType { .. }
            | Self::UnsupportedStrategy { .. }
            | Self::NoEdge { .. }
            | Self::BadProjectLink { .. }
            | Self::Linked { .. }
            | Self::Twice(_) => Code::GraphRefused,
        }
    }
}
