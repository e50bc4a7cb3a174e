//! Sandboxes: one a plan and resource (SBX-6).

use async_trait::async_trait;
use sandbar_domain::{Code, PlanId};
use sandbar_ports::store::SandboxRecord;
use sandbar_ports::{PortError, PortResult};
use sea_orm::{
    ActiveModelTrait as _, ColumnTrait as _, DatabaseConnection, DatabaseTransaction,
    EntityTrait as _, IntoActiveModel as _, QueryFilter as _, QueryOrder as _,
};

use super::{next, plain, plans};
use crate::entity::sandbox::{self, Column, Entity};
use crate::error::Fault;
use crate::transact::{Change, read, write};

/// Adds one.
pub(super) async fn add(db: &DatabaseConnection, record: SandboxRecord) -> PortResult<()> {
    write(db, &Put::new(record, true)?).await
}

/// Replaces one.
pub(super) async fn update(db: &DatabaseConnection, record: SandboxRecord) -> PortResult<()> {
    write(db, &Put::new(record, false)?).await
}

/// Returns those of a plan, oldest first.
pub(super) async fn of_plan(
    db: &DatabaseConnection,
    plan: PlanId,
) -> PortResult<Vec<SandboxRecord>> {
    read(
        db,
        || format!("read the sandboxes of plan {plan}"),
        |db| async move {
            let rows = Entity::find()
                .filter(Column::Plan.eq(plan.to_string()))
                .order_by_asc(Column::Sequence)
                .all(&db)
                .await?;
            Ok(rows
                .into_iter()
                .map(sandbox::from_row)
                .collect::<Result<_, _>>()?)
        },
    )
    .await
}

struct Put {
    record: SandboxRecord,
    new: bool,
}

impl Put {
    fn new(record: SandboxRecord, new: bool) -> PortResult<Self> {
        let texts = [&record.base_branch, &record.base_head];
        plain(
            "record the sandbox",
            texts.into_iter().map(Option::as_deref),
        )?;
        Ok(Self { record, new })
    }
}

#[async_trait]
impl Change for Put {
    type Output = ();

    fn what(&self) -> String {
        let verb = if self.new { "add" } else { "update" };
        format!("{verb} sandbox {}", self.record.id)
    }

    async fn perform(&self, tx: &DatabaseTransaction) -> Result<(), Fault> {
        let record = &self.record;
        plans::row(tx, record.plan).await?;
        let twin = Entity::find()
            .filter(Column::Plan.eq(record.plan.to_string()))
            .filter(Column::Resource.eq(record.resource.to_string()))
            .filter(Column::Id.ne(record.id.to_string()))
            .one(tx)
            .await?;
        if let Some(twin) = twin {
            return Err(PortError::new(
                Code::IllegalState,
                format!(
                    "{}: plan {} has sandbox {} for that resource",
                    self.what(),
                    record.plan,
                    twin.id
                ),
            )
            .into());
        }
        if self.new {
            let sequence = next::<Entity>(tx, Column::Sequence).await?;
            let row = sandbox::to_row(record, sequence).into_active_model();
            Entity::insert(row).exec_without_returning(tx).await?;
            return Ok(());
        }
        let old = Entity::find_by_id(record.id.to_string()).one(tx).await?;
        let old = old.ok_or_else(|| {
            PortError::new(
                Code::Internal,
                format!("{}: there is none of that id", self.what()),
            )
        })?;
        let row = sandbox::to_row(record, old.sequence).into_active_model();
        Entity::update(row.reset_all()).exec(tx).await?;
        Ok(())
    }
}
