//! What was removed from the graph, and when: so that others can follow.

use sandbar_domain::ResourceId;
use sandbar_domain::graph::{Delta, EdgeKind};
use sea_orm::entity::prelude::*;

use crate::convert::{self, BadRow};

const TABLE: &str = "graph_gone";

/// One thing that is gone: `resource` with its id, `edge` with parent, child
/// and kind, `project` with its name. It may have come back since.
#[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "graph_gone")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub kind: String,
    #[sea_orm(primary_key, auto_increment = false)]
    pub name: String,
    pub generation: i64,
}

#[derive(Clone, Copy, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}

/// Makes the rows of everything that a batch removes.
pub(crate) fn to_rows(delta: &Delta, generation: i64) -> Vec<Model> {
    let row = |kind: &str, name: String| Model {
        kind: kind.to_owned(),
        name,
        generation,
    };
    let resources = delta.gone_resources.iter();
    let resources = resources.map(|id| row("resource", id.to_string()));
    let edges = delta.gone_edges.iter().map(|(parent, child, kind)| {
        let name = format!("{parent} {child} {}", kind.word());
        row("edge", name)
    });
    let projects = delta.gone_projects.iter();
    let projects = projects.map(|name| row("project", name.clone()));
    resources.chain(edges).chain(projects).collect()
}

/// Adds a row to what a follower is told.
pub(crate) fn read_into(delta: &mut Delta, row: Model) -> Result<(), BadRow> {
    let Model {
        kind,
        name,
        generation: _,
    } = row;
    let id = |text: &str| convert::parse::<ResourceId>(TABLE, "name", text);
    match kind.as_str() {
        "resource" => {
            delta.gone_resources.insert(id(&name)?);
        }
        "edge" => {
            let words: Vec<_> = name.split(' ').collect();
            let [parent, child, kind] = words.as_slice() else {
                return Err(BadRow::new(TABLE, "name", &name));
            };
            let kind = convert::word(TABLE, "name", kind, EdgeKind::from_word)?;
            delta.gone_edges.insert((id(parent)?, id(child)?, kind));
        }
        "project" => {
            delta.gone_projects.insert(name);
        }
        other => return Err(BadRow::new(TABLE, "kind", other)),
    }
    Ok(())
}
