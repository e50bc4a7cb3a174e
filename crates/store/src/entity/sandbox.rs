//! Sandboxes.

use sandbar_domain::resource::{Root, Strategy};
use sandbar_ports::store::{SandboxRecord, SandboxState};
use sea_orm::entity::prelude::*;

use crate::convert::{self, BadRow};

/// One sandbox.
#[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "sandboxes")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub id: String,
    pub sequence: i64,
    pub plan: String,
    pub resource: String,
    pub strategy: String,
    pub state: String,
    pub place: Vec<u8>,
    pub root_path: Option<Vec<u8>>,
    pub root_device: Option<i64>,
    pub root_inode: Option<i64>,
    pub view: String,
    pub base: Option<String>,
    pub base_branch: Option<String>,
    pub base_head: Option<String>,
    pub rules: Option<String>,
    pub ignored: i64,
    pub binds: Vec<u8>,
    pub unsettled: Vec<u8>,
}

#[derive(Clone, Copy, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}

/// Makes the row of a sandbox.
pub(crate) fn to_row(record: &SandboxRecord, sequence: i64) -> Model {
    let SandboxRecord {
        id,
        plan,
        resource,
        strategy,
        state,
        place,
        root,
        view,
        base,
        base_branch,
        base_head,
        rules,
        ignored,
        binds,
        unsettled,
    } = record;
    let (root_path, root_device, root_inode) = match root {
        None => (None, None, None),
        Some(Root {
            path,
            device,
            inode,
        }) => (
            Some(convert::path_to_bytes(path)),
            Some(device.cast_signed()),
            Some(inode.cast_signed()),
        ),
    };
    Model {
        id: id.to_string(),
        sequence,
        plan: plan.to_string(),
        resource: resource.to_string(),
        strategy: strategy.word().to_owned(),
        state: state.word().to_owned(),
        place: convert::path_to_bytes(place),
        root_path,
        root_device,
        root_inode,
        view: view.word().to_owned(),
        base: base.map(|hash| hash.to_string()),
        base_branch: base_branch.clone(),
        base_head: base_head.clone(),
        rules: rules.map(|hash| hash.to_string()),
        ignored: ignored.cast_signed(),
        binds: convert::binds_to_bytes(binds),
        unsettled: convert::rel_pairs_to_bytes(unsettled),
    }
}

/// Reads the row of a sandbox.
pub(crate) fn from_row(row: Model) -> Result<SandboxRecord, BadRow> {
    const TABLE: &str = "sandboxes";
    let Model {
        id,
        sequence: _,
        plan,
        resource,
        strategy,
        state,
        place,
        root_path,
        root_device,
        root_inode,
        view,
        base,
        base_branch,
        base_head,
        rules,
        ignored,
        binds,
        unsettled,
    } = row;
    let root = match (root_path, root_device, root_inode) {
        (None, None, None) => None,
        (Some(path), Some(device), Some(inode)) => Some(Root {
            path: convert::path_from_bytes(path),
            device: device.cast_unsigned(),
            inode: inode.cast_unsigned(),
        }),
        _ => return Err(BadRow::new(TABLE, "root_path", "a root in part")),
    };
    let hash = |column, text: Option<String>| {
        text.map(|text| convert::parse(TABLE, column, &text))
            .transpose()
    };
    Ok(SandboxRecord {
        id: convert::parse(TABLE, "id", &id)?,
        plan: convert::parse(TABLE, "plan", &plan)?,
        resource: convert::parse(TABLE, "resource", &resource)?,
        strategy: convert::word(TABLE, "strategy", &strategy, Strategy::from_word)?,
        state: convert::word(TABLE, "state", &state, SandboxState::from_word)?,
        place: convert::path_from_bytes(place),
        root,
        view: convert::word(TABLE, "view", &view, convert::view_from_word)?,
        base: hash("base", base)?,
        base_branch,
        base_head,
        rules: hash("rules", rules)?,
        ignored: ignored.cast_unsigned(),
        binds: convert::binds_from_bytes(&binds)
            .ok_or_else(|| BadRow::new(TABLE, "binds", "cut short"))?,
        unsettled: convert::rel_pairs_from_bytes(&unsettled)
            .ok_or_else(|| BadRow::new(TABLE, "unsettled", "cut short"))?,
    })
}
