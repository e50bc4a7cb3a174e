//! Edges of the graph.

use sandbar_domain::graph::{Coherence, Edge, EdgeKind, Link};
use sea_orm::entity::prelude::*;

use crate::convert::{self, BadRow};

const TABLE: &str = "graph_edges";

/// One edge.
#[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "graph_edges")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub parent: String,
    #[sea_orm(primary_key, auto_increment = false)]
    pub child: String,
    #[sea_orm(primary_key, auto_increment = false)]
    pub kind: String,
    pub coherence: Option<String>,
    pub generation: i64,
}

#[derive(Clone, Copy, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}

/// Makes the row of an edge.
pub(crate) fn to_row(edge: &Edge, generation: i64) -> Model {
    let Edge {
        parent,
        child,
        link,
    } = edge;
    Model {
        parent: parent.to_string(),
        child: child.to_string(),
        kind: link.kind().word().to_owned(),
        coherence: edge.coherence().map(|how| how.word().to_owned()),
        generation,
    }
}

/// Reads the row of an edge.
pub(crate) fn from_row(row: Model) -> Result<Edge, BadRow> {
    let Model {
        parent,
        child,
        kind,
        coherence,
        generation: _,
    } = row;
    let kind = convert::word(TABLE, "kind", &kind, EdgeKind::from_word)?;
    let coherence = coherence
        .map(|text| convert::word(TABLE, "coherence", &text, Coherence::from_word))
        .transpose()?;
    let link = match (kind, coherence) {
        (EdgeKind::Contains, None) => Link::Contains,
        (EdgeKind::References, None) => Link::References,
        (EdgeKind::Manifests, Some(how)) => Link::Manifests(how),
        (kind, _) => return Err(BadRow::new(TABLE, "coherence", kind.word())),
    };
    Ok(Edge {
        parent: convert::parse(TABLE, "parent", &parent)?,
        child: convert::parse(TABLE, "child", &child)?,
        link,
    })
}
