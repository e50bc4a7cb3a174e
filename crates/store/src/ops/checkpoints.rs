//! Checkpoints: numbered within their plan, never twice.

use async_trait::async_trait;
use sandbar_domain::PlanId;
use sandbar_ports::PortResult;
use sandbar_ports::store::{CheckpointRecord, NewCheckpoint};
use sea_orm::{
    ActiveValue::Set, ColumnTrait as _, DatabaseConnection, DatabaseTransaction, EntityTrait as _,
    IntoActiveModel as _, QueryFilter as _,
};

use super::{plain, plans};
use crate::entity::checkpoint::{self, Column, Entity};
use crate::entity::{checkpoint_part, plan};
use crate::error::Fault;
use crate::transact::{Change, read, write};

/// Adds one.
pub(super) async fn add(
    db: &DatabaseConnection,
    new: NewCheckpoint,
) -> PortResult<CheckpointRecord> {
    let commits = new.parts.iter().map(|part| part.commit.as_deref());
    let texts = [Some(new.step.as_str()), new.message.as_deref()];
    plain("add the checkpoint", commits.chain(texts))?;
    write(db, &Add(new)).await
}

/// Returns those of a plan, oldest first.
pub(super) async fn of_plan(
    db: &DatabaseConnection,
    plan: PlanId,
) -> PortResult<Vec<CheckpointRecord>> {
    read(
        db,
        || format!("read the checkpoints of plan {plan}"),
        |db| async move {
            // One statement: a checkpoint never appears without its parts.
            let mut rows = Entity::find()
                .find_with_related(checkpoint_part::Entity)
                .filter(Column::Plan.eq(plan.to_string()))
                .all(&db)
                .await?;
            // The library orders by id, to bring parts together.
            rows.sort_by_key(|(row, _)| row.number);
            Ok(rows
                .into_iter()
                .map(|(row, parts)| checkpoint::from_rows(row, parts))
                .collect::<Result<_, _>>()?)
        },
    )
    .await
}

/// Forgets some.
pub(super) async fn forget(
    db: &DatabaseConnection,
    plan: PlanId,
    numbers: Vec<u64>,
) -> PortResult<()> {
    if numbers.is_empty() {
        return Ok(());
    }
    write(db, &Forget { plan, numbers }).await
}

struct Add(NewCheckpoint);

#[async_trait]
impl Change for Add {
    type Output = CheckpointRecord;

    fn what(&self) -> String {
        format!("add checkpoint {}", self.0.id)
    }

    async fn perform(&self, tx: &DatabaseTransaction) -> Result<CheckpointRecord, Fault> {
        let plan = plans::row(tx, self.0.plan).await?;
        let number = plan.next_checkpoint;
        let mut plan = plan.into_active_model();
        plan.next_checkpoint = Set(number + 1);
        plan::Entity::update(plan).exec(tx).await?;
        let record = CheckpointRecord {
            sequence: number.cast_unsigned(),
            checkpoint: self.0.clone(),
        };
        let (row, parts) = checkpoint::to_rows(&record);
        Entity::insert(row.into_active_model())
            .exec_without_returning(tx)
            .await?;
        if !parts.is_empty() {
            let parts = parts.into_iter().map(|part| part.into_active_model());
            checkpoint_part::Entity::insert_many(parts)
                .exec_without_returning(tx)
                .await?;
        }
        Ok(record)
    }
}

struct Forget {
    plan: PlanId,
    numbers: Vec<u64>,
}

#[async_trait]
impl Change for Forget {
    type Output = ();

    fn what(&self) -> String {
        format!("forget checkpoints of plan {}", self.plan)
    }

    async fn perform(&self, tx: &DatabaseTransaction) -> Result<(), Fault> {
        // Their parts go with them (`ON DELETE CASCADE`). In slices, since a
        // statement takes a limited number of values.
        for numbers in self.numbers.chunks(500) {
            let numbers = numbers.iter().map(|number| number.cast_signed());
            Entity::delete_many()
                .filter(Column::Plan.eq(self.plan.to_string()))
                .filter(Column::Number.is_in(numbers))
                .exec(tx)
                .await?;
        }
        Ok(())
    }
}
