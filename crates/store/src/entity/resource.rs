//! Registered resources.

use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use sandbar_domain::Hash;
use sandbar_domain::resource::{Resource, ResourceType, Root};
use sea_orm::entity::prelude::*;

use crate::convert::{self, BadRow};

/// One resource. `path_hash` is what the index holds: PostgreSQL refuses
/// to index paths of full length.
#[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "resources")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub id: String,
    pub kind: String,
    pub path: Vec<u8>,
    pub device: i64,
    pub inode: i64,
    pub path_hash: String,
}

#[derive(Clone, Copy, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}

/// Returns what a path is found by.
pub(crate) fn path_hash(path: &Path) -> String {
    Hash::of(path.as_os_str().as_bytes()).to_string()
}

/// Makes the row of a resource.
pub(crate) fn to_row(resource: &Resource) -> Model {
    let Resource { id, kind, root } = resource;
    let Root {
        path,
        device,
        inode,
    } = root;
    Model {
        id: id.to_string(),
        kind: kind.word().to_owned(),
        path: convert::path_to_bytes(path),
        device: device.cast_signed(),
        inode: inode.cast_signed(),
        path_hash: path_hash(path),
    }
}

/// Reads the row of a resource.
pub(crate) fn from_row(row: Model) -> Result<Resource, BadRow> {
    let Model {
        id,
        kind,
        path,
        device,
        inode,
        path_hash: _,
    } = row;
    Ok(Resource {
        id: convert::parse("resources", "id", &id)?,
        kind: convert::word("resources", "kind", &kind, ResourceType::from_word)?,
        root: Root {
            path: convert::path_from_bytes(path),
            device: device.cast_unsigned(),
            inode: inode.cast_unsigned(),
        },
    })
}
