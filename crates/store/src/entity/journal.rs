//! Journal entries.

use sandbar_domain::journal::{JournalKind, Phase};
use sandbar_ports::store::JournalRecord;
use sea_orm::entity::prelude::*;

use crate::convert::{self, BadRow, OwnerColumns};

/// One entry.
#[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "journal")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub id: String,
    pub sequence: i64,
    pub version: i64,
    pub kind: String,
    pub phase: String,
    pub plan: String,
    pub owner_host: Option<String>,
    pub owner_boot: Option<String>,
    pub owner_space: Option<i64>,
    pub owner_pid: Option<i64>,
    pub owner_started: Option<i64>,
    pub ops: Option<String>,
    pub payload: String,
}

#[derive(Clone, Copy, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}

/// Makes the row of an entry.
pub(crate) fn to_row(record: &JournalRecord) -> Model {
    let JournalRecord {
        id,
        sequence,
        version,
        kind,
        phase,
        plan,
        owner,
        ops,
        payload,
    } = record;
    let OwnerColumns {
        host,
        boot,
        space,
        pid,
        started,
    } = OwnerColumns::of(owner.as_ref());
    Model {
        id: id.to_string(),
        sequence: sequence.cast_signed(),
        version: i64::from(*version),
        kind: kind.word().to_owned(),
        phase: phase.word().to_owned(),
        plan: plan.to_string(),
        owner_host: host,
        owner_boot: boot,
        owner_space: space,
        owner_pid: pid,
        owner_started: started,
        ops: ops.map(|hash| hash.to_string()),
        payload: payload.clone(),
    }
}

/// Reads the row of an entry.
pub(crate) fn from_row(row: Model) -> Result<JournalRecord, BadRow> {
    const TABLE: &str = "journal";
    let Model {
        id,
        sequence,
        version,
        kind,
        phase,
        plan,
        owner_host,
        owner_boot,
        owner_space,
        owner_pid,
        owner_started,
        ops,
        payload,
    } = row;
    let owner = OwnerColumns {
        host: owner_host,
        boot: owner_boot,
        space: owner_space,
        pid: owner_pid,
        started: owner_started,
    };
    Ok(JournalRecord {
        id: convert::parse(TABLE, "id", &id)?,
        sequence: sequence.cast_unsigned(),
        version: u32::try_from(version)
            .map_err(|_| BadRow::new(TABLE, "version", &version.to_string()))?,
        kind: convert::word(TABLE, "kind", &kind, JournalKind::from_word)?,
        phase: convert::word(TABLE, "phase", &phase, Phase::from_word)?,
        plan: convert::parse(TABLE, "plan", &plan)?,
        owner: owner.read(TABLE)?,
        ops: ops
            .map(|hash| convert::parse(TABLE, "ops", &hash))
            .transpose()?,
        payload,
    })
}
