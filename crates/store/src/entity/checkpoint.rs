//! Checkpoints; what they hold of each sandbox is in `checkpoint_part`.

use sandbar_ports::store::{CheckpointPart, CheckpointRecord, NewCheckpoint};
use sea_orm::entity::prelude::*;

use super::checkpoint_part;
use crate::convert::{self, BadRow};

/// One checkpoint.
#[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "checkpoints")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub id: String,
    pub plan: String,
    pub number: i64,
    pub message: Option<String>,
    pub step: String,
    pub created_ms: i64,
}

#[derive(Clone, Copy, Debug, EnumIter, DeriveRelation)]
pub enum Relation {
    #[sea_orm(has_many = "super::checkpoint_part::Entity")]
    Part,
}

impl Related<checkpoint_part::Entity> for Entity {
    fn to() -> RelationDef {
        Relation::Part.def()
    }
}

impl ActiveModelBehavior for ActiveModel {}

/// Makes the rows of a checkpoint: its own, and one a part.
pub(crate) fn to_rows(record: &CheckpointRecord) -> (Model, Vec<checkpoint_part::Model>) {
    let CheckpointRecord {
        sequence,
        checkpoint,
    } = record;
    let NewCheckpoint {
        id,
        plan,
        parts,
        message,
        step,
        created_ms,
    } = checkpoint;
    let id = id.to_string();
    let parts = (0..)
        .zip(parts)
        .map(|(position, part)| {
            let CheckpointPart {
                sandbox,
                snapshot,
                commit,
            } = part;
            checkpoint_part::Model {
                checkpoint: id.clone(),
                position,
                sandbox: sandbox.to_string(),
                snapshot: snapshot.to_string(),
                hidden_commit: commit.clone(),
            }
        })
        .collect();
    let row = Model {
        id,
        plan: plan.to_string(),
        number: sequence.cast_signed(),
        message: message.clone(),
        step: step.clone(),
        created_ms: *created_ms,
    };
    (row, parts)
}

/// Reads the rows of a checkpoint; `parts` in any order.
pub(crate) fn from_rows(
    row: Model,
    mut parts: Vec<checkpoint_part::Model>,
) -> Result<CheckpointRecord, BadRow> {
    let Model {
        id,
        plan,
        number,
        message,
        step,
        created_ms,
    } = row;
    parts.sort_by_key(|part| part.position);
    let parts = parts
        .into_iter()
        .map(|part| {
            let checkpoint_part::Model {
                checkpoint: _,
                position: _,
                sandbox,
                snapshot,
                hidden_commit,
            } = part;
            Ok(CheckpointPart {
                sandbox: convert::parse("checkpoint_parts", "sandbox", &sandbox)?,
                snapshot: convert::parse("checkpoint_parts", "snapshot", &snapshot)?,
                commit: hidden_commit,
            })
        })
        .collect::<Result<_, BadRow>>()?;
    Ok(CheckpointRecord {
        sequence: number.cast_unsigned(),
        checkpoint: NewCheckpoint {
            id: convert::parse("checkpoints", "id", &id)?,
            plan: convert::parse("checkpoints", "plan", &plan)?,
            parts,
            message,
            step,
            created_ms,
        },
    })
}
