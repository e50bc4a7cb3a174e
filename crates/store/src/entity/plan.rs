//! Plans.

use sandbar_domain::plan::PlanState;
use sandbar_ports::store::{NewPlan, PlanMark, PlanRecord};
use sea_orm::entity::prelude::*;

use crate::convert::{self, BadRow, OwnerColumns};

/// One plan. `next_checkpoint` only grows: a number is never given twice.
#[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "plans")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub id: String,
    pub sequence: i64,
    pub name: String,
    pub resource: String,
    pub state: String,
    pub owner_host: Option<String>,
    pub owner_boot: Option<String>,
    pub owner_space: Option<i64>,
    pub owner_pid: Option<i64>,
    pub owner_started: Option<i64>,
    pub settings: String,
    pub created_ms: i64,
    pub changed_ms: i64,
    pub next_checkpoint: i64,
}

#[derive(Clone, Copy, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}

/// Makes the row of a plan.
pub(crate) fn to_row(record: &PlanRecord, next_checkpoint: i64) -> Model {
    let PlanRecord {
        sequence,
        plan,
        changed_ms,
    } = record;
    let NewPlan {
        id,
        name,
        resource,
        mark,
        settings,
        created_ms,
    } = plan;
    let PlanMark { state, owner } = mark;
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
        name: name.clone(),
        resource: resource.to_string(),
        state: state.word().to_owned(),
        owner_host: host,
        owner_boot: boot,
        owner_space: space,
        owner_pid: pid,
        owner_started: started,
        settings: settings.clone(),
        created_ms: *created_ms,
        changed_ms: *changed_ms,
        next_checkpoint,
    }
}

/// Reads the row of a plan.
pub(crate) fn from_row(row: Model) -> Result<PlanRecord, BadRow> {
    let Model {
        id,
        sequence,
        name,
        resource,
        state,
        owner_host,
        owner_boot,
        owner_space,
        owner_pid,
        owner_started,
        settings,
        created_ms,
        changed_ms,
        next_checkpoint: _,
    } = row;
    let owner = OwnerColumns {
        host: owner_host,
        boot: owner_boot,
        space: owner_space,
        pid: owner_pid,
        started: owner_started,
    };
    Ok(PlanRecord {
        sequence: sequence.cast_unsigned(),
        plan: NewPlan {
            id: convert::parse("plans", "id", &id)?,
            name,
            resource: convert::parse("plans", "resource", &resource)?,
            mark: PlanMark {
                state: convert::word("plans", "state", &state, PlanState::from_word)?,
                owner: owner.read("plans")?,
            },
            settings,
            created_ms,
        },
        changed_ms,
    })
}
