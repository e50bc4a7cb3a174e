//! Plans: names, order, and the compare-and-swap of state and owner.

use async_trait::async_trait;
use sandbar_domain::plan::PlanState;
use sandbar_domain::{Code, PlanId, ResourceId};
use sandbar_ports::store::{NewPlan, PlanMark, PlanRecord};
use sandbar_ports::{PortError, PortResult};
use sea_orm::{
    ActiveModelTrait as _, ColumnTrait as _, ConnectionTrait, DatabaseConnection,
    DatabaseTransaction, EntityTrait as _, IntoActiveModel as _, QueryFilter as _, QueryOrder as _,
};

use super::{next, plain, texts_of};
use crate::entity::plan::{self, Column, Entity, Model};
use crate::entity::{checkpoint, journal, sandbox};
use crate::error::Fault;
use crate::transact::{Change, read, write};

/// Adds one.
pub(super) async fn add(db: &DatabaseConnection, new: NewPlan) -> PortResult<PlanRecord> {
    let change = Add(new);
    let NewPlan {
        name,
        settings,
        mark,
        ..
    } = &change.0;
    let texts = [Some(name.as_str()), Some(settings)];
    let owner = texts_of(mark.owner.as_ref());
    plain("add the plan", texts.into_iter().chain(owner))?;
    write(db, &change).await
}

/// Forgets one that never came to be.
pub(super) async fn forget(db: &DatabaseConnection, id: PlanId) -> PortResult<()> {
    write(db, &Forget(id)).await
}

/// Returns all, oldest first.
pub(super) async fn all(db: &DatabaseConnection) -> PortResult<Vec<PlanRecord>> {
    read(
        db,
        || "read the plans".to_owned(),
        |db| async move {
            records(
                Entity::find()
                    .order_by_asc(Column::Sequence)
                    .all(&db)
                    .await?,
            )
        },
    )
    .await
}

/// Returns one.
pub(super) async fn get(db: &DatabaseConnection, id: PlanId) -> PortResult<Option<PlanRecord>> {
    read(
        db,
        || format!("read plan {id}"),
        |db| async move {
            let row = Entity::find_by_id(id.to_string()).one(&db).await?;
            Ok(row.map(plan::from_row).transpose()?)
        },
    )
    .await
}

/// Finds by name, else by id prefix.
pub(super) async fn find(db: &DatabaseConnection, text: String) -> PortResult<Vec<PlanRecord>> {
    read(
        db,
        || format!("find plan {text}"),
        |db| {
            let text = text.clone();
            async move {
                if text.contains('\0') {
                    return Ok(Vec::new());
                }
                // The newest of the discarded ones, unless one is not discarded.
                let named = Entity::find()
                    .filter(Column::Name.eq(&*text))
                    .order_by_desc(Column::Sequence)
                    .all(&db)
                    .await?;
                let living = named
                    .iter()
                    .position(|row| row.state != PlanState::Discarded.word());
                let best = living.unwrap_or(0);
                if let Some(row) = named.into_iter().nth(best) {
                    return records(vec![row]);
                }
                let rows = match prefix(&text) {
                    None => Vec::new(),
                    Some(prefix) => {
                        Entity::find()
                            .filter(Column::Id.starts_with(prefix))
                            .order_by_asc(Column::Sequence)
                            .all(&db)
                            .await?
                    }
                };
                records(rows)
            }
        },
    )
    .await
}

/// Returns the prefix as ids are spelled; `None` for what no id starts with.
fn prefix(text: &str) -> Option<String> {
    let plausible = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric());
    plausible.then(|| text.to_ascii_uppercase())
}

/// Returns the newest on a resource.
pub(super) async fn newest(
    db: &DatabaseConnection,
    resource: ResourceId,
) -> PortResult<Option<PlanRecord>> {
    read(
        db,
        || format!("find the newest plan on {resource}"),
        |db| async move {
            let row = Entity::find()
                .filter(Column::Resource.eq(resource.to_string()))
                .order_by_desc(Column::Sequence)
                .one(&db)
                .await?;
            Ok(row.map(plan::from_row).transpose()?)
        },
    )
    .await
}

/// Moves one, if its mark is the expected one.
pub(super) async fn shift(
    db: &DatabaseConnection,
    id: PlanId,
    from: PlanMark,
    to: PlanMark,
    now_ms: i64,
) -> PortResult<PlanRecord> {
    plain("move the plan", texts_of(to.owner.as_ref()))?;
    write(
        db,
        &Shift {
            id,
            from,
            to,
            now_ms,
        },
    )
    .await
}

struct Add(NewPlan);

#[async_trait]
impl Change for Add {
    type Output = PlanRecord;

    fn what(&self) -> String {
        format!("add plan {}", self.0.name)
    }

    async fn perform(&self, tx: &DatabaseTransaction) -> Result<PlanRecord, Fault> {
        let NewPlan {
            name,
            mark,
            created_ms,
            ..
        } = &self.0;
        if mark.state != PlanState::Discarded {
            let taken = Entity::find()
                .filter(Column::Name.eq(name))
                .filter(Column::State.ne(PlanState::Discarded.word()))
                .one(tx)
                .await?;
            if taken.is_some() {
                return Err(PortError::new(
                    Code::NameInUse,
                    format!("{}: the name is in use", self.what()),
                )
                .into());
            }
        }
        let record = PlanRecord {
            sequence: next::<Entity>(tx, Column::Sequence).await?.cast_unsigned(),
            plan: self.0.clone(),
            changed_ms: *created_ms,
        };
        let row = plan::to_row(&record, 1).into_active_model();
        Entity::insert(row).exec_without_returning(tx).await?;
        Ok(record)
    }
}

struct Shift {
    id: PlanId,
    from: PlanMark,
    to: PlanMark,
    now_ms: i64,
}

#[async_trait]
impl Change for Shift {
    type Output = PlanRecord;

    fn what(&self) -> String {
        format!("move plan {} to {}", self.id, self.to.state.word())
    }

    async fn perform(&self, tx: &DatabaseTransaction) -> Result<PlanRecord, Fault> {
        swap(tx, self.id, &self.from, &self.to, self.now_ms).await
    }
}

/// The compare-and-swap, also as a part of a journal step.
pub(super) async fn swap(
    tx: &DatabaseTransaction,
    id: PlanId,
    from: &PlanMark,
    to: &PlanMark,
    now_ms: i64,
) -> Result<PlanRecord, Fault> {
    let row = row(tx, id).await?;
    let next_checkpoint = row.next_checkpoint;
    let mut record = plan::from_row(row)?;
    if record.plan.mark != *from {
        return Err(busy(&record).into());
    }
    // A discarded name may have been taken since.
    let revived = from.state == PlanState::Discarded && to.state != PlanState::Discarded;
    if revived {
        let taken = Entity::find()
            .filter(Column::Name.eq(&*record.plan.name))
            .filter(Column::State.ne(PlanState::Discarded.word()))
            .one(tx)
            .await?;
        if taken.is_some() {
            return Err(PortError::new(
                Code::NameInUse,
                format!("move plan {}: the name is in use", record.plan.name),
            )
            .into());
        }
    }
    record.plan.mark = to.clone();
    record.changed_ms = now_ms;
    let row = plan::to_row(&record, next_checkpoint).into_active_model();
    Entity::update(row.reset_all()).exec(tx).await?;
    Ok(record)
}

/// Says who has the plan.
fn busy(record: &PlanRecord) -> PortError {
    let NewPlan { name, mark, .. } = &record.plan;
    let state = mark.state.word();
    let who = match &mark.owner {
        Some(owner) => format!("it is {state}, driven by process {}", owner.pid),
        None => format!("it is {state} by now"),
    };
    PortError::new(Code::PlanBusy, format!("move plan {name}: {who}"))
        .with_subjects(mark.owner.as_ref().map(|owner| owner.pid.to_string()))
}

/// Reads the row of a plan that must be there.
pub(super) async fn row(tx: &impl ConnectionTrait, id: PlanId) -> Result<Model, Fault> {
    let row = Entity::find_by_id(id.to_string()).one(tx).await?;
    row.ok_or_else(|| {
        PortError::new(
            Code::PlanNotFound,
            format!("find plan {id}: there is none of that id"),
        )
        .into()
    })
}

fn records(rows: Vec<Model>) -> Result<Vec<PlanRecord>, Fault> {
    Ok(rows
        .into_iter()
        .map(plan::from_row)
        .collect::<Result<_, _>>()?)
}

struct Forget(PlanId);

#[async_trait]
impl Change for Forget {
    type Output = ();

    fn what(&self) -> String {
        format!("forget plan {}", self.0)
    }

    async fn perform(&self, tx: &DatabaseTransaction) -> Result<(), Fault> {
        let id = self.0.to_string();
        let checkpoints = checkpoint::Entity::find().filter(checkpoint::Column::Plan.eq(&id));
        let entries = journal::Entity::find().filter(journal::Column::Plan.eq(&id));
        if checkpoints.one(tx).await?.is_some() || entries.one(tx).await?.is_some() {
            let message = format!("forget plan {id}: it has a past");
            return Err(PortError::new(Code::IllegalState, message).into());
        }
        sandbox::Entity::delete_many()
            .filter(sandbox::Column::Plan.eq(&id))
            .exec(tx)
            .await?;
        Entity::delete_by_id(id).exec(tx).await?;
        Ok(())
    }
}
