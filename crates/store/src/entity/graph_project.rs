//! Projects: what they link.

use sandbar_domain::graph::{Project, ProjectLink};
use sea_orm::entity::prelude::*;

use crate::convert::{self, BadRow};

const TABLE: &str = "graph_projects";

/// One project. `links` are ids with a space between; `!` after one says that
/// the link is read-only.
#[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "graph_projects")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub name: String,
    pub generation: i64,
    pub read_only: bool,
    pub links: String,
}

#[derive(Clone, Copy, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}

/// Makes the row of a project.
pub(crate) fn to_row(project: &Project, generation: i64) -> Model {
    let Project {
        name,
        read_only,
        links,
    } = project;
    let links = links.iter().map(|link| {
        let mark = if link.read_only { "!" } else { "" };
        format!("{}{mark}", link.resource)
    });
    Model {
        name: name.clone(),
        generation,
        read_only: *read_only,
        links: links.collect::<Vec<_>>().join(" "),
    }
}

/// Reads the row of a project.
pub(crate) fn from_row(row: Model) -> Result<Project, BadRow> {
    let Model {
        name,
        generation: _,
        read_only,
        links,
    } = row;
    let links = links.split_whitespace().map(|word| {
        let id = word.strip_suffix('!');
        Ok(ProjectLink {
            resource: convert::parse(TABLE, "links", id.unwrap_or(word))?,
            read_only: id.is_some(),
        })
    });
    Ok(Project {
        name,
        read_only,
        links: links.collect::<Result<_, BadRow>>()?,
    })
}
