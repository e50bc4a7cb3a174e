//! The journal: phases as the domain allows them, together with the plan.

use async_trait::async_trait;
use sandbar_domain::Code;
use sandbar_domain::journal::Phase;
use sandbar_ports::store::{JournalQuery, JournalRecord, JournalStep};
use sandbar_ports::{PortError, PortResult};
use sea_orm::{
    ActiveModelTrait as _, ColumnTrait as _, DatabaseConnection, DatabaseTransaction,
    EntityTrait as _, IntoActiveModel as _, QueryFilter as _, QueryOrder as _,
};

use super::{next, plain, plans, texts_of};
use crate::entity::journal::{self, Column, Entity};
use crate::error::Fault;
use crate::transact::{Change, read, write};

/// Opens an entry.
pub(super) async fn open(
    db: &DatabaseConnection,
    entry: JournalRecord,
) -> PortResult<JournalRecord> {
    let owner = texts_of(entry.owner.as_ref());
    let payload = [Some(entry.payload.as_str())];
    plain("open the journal entry", payload.into_iter().chain(owner))?;
    write(db, &Open(entry)).await
}

/// Moves an entry on.
pub(super) async fn advance(
    db: &DatabaseConnection,
    step: JournalStep,
) -> PortResult<JournalRecord> {
    let next = step.plan.as_ref().and_then(|(_, to, _)| to.owner.as_ref());
    let owners = texts_of(step.owner.as_ref())
        .into_iter()
        .chain(texts_of(next));
    let texts = owners.chain([Some(step.payload.as_str())]);
    plain("advance the journal entry", texts)?;
    write(db, &Advance(step)).await
}

/// Returns entries, oldest first.
pub(super) async fn entries(
    db: &DatabaseConnection,
    of: JournalQuery,
) -> PortResult<Vec<JournalRecord>> {
    read(
        db,
        || "read the journal".to_owned(),
        |db| async move {
            let query = Entity::find().order_by_asc(Column::Sequence);
            let query = match of {
                JournalQuery::Open => {
                    let open = Phase::ALL.into_iter().filter(|phase| phase.is_open());
                    query.filter(Column::Phase.is_in(open.map(Phase::word)))
                }
                JournalQuery::OfPlan(plan) => query.filter(Column::Plan.eq(plan.to_string())),
            };
            Ok(query
                .all(&db)
                .await?
                .into_iter()
                .map(journal::from_row)
                .collect::<Result<_, _>>()?)
        },
    )
    .await
}

struct Open(JournalRecord);

#[async_trait]
impl Change for Open {
    type Output = JournalRecord;

    fn what(&self) -> String {
        format!("open journal entry {}", self.0.id)
    }

    async fn perform(&self, tx: &DatabaseTransaction) -> Result<JournalRecord, Fault> {
        plans::row(tx, self.0.plan).await?;
        let record = JournalRecord {
            sequence: next::<Entity>(tx, Column::Sequence).await?.cast_unsigned(),
            ..self.0.clone()
        };
        let row = journal::to_row(&record).into_active_model();
        Entity::insert(row).exec_without_returning(tx).await?;
        Ok(record)
    }
}

struct Advance(JournalStep);

#[async_trait]
impl Change for Advance {
    type Output = JournalRecord;

    fn what(&self) -> String {
        format!("move journal entry {} to {}", self.0.id, self.0.to.word())
    }

    async fn perform(&self, tx: &DatabaseTransaction) -> Result<JournalRecord, Fault> {
        let JournalStep {
            id,
            from,
            to,
            ops,
            payload,
            owner,
            plan,
        } = &self.0;
        let refused =
            |why: &str| PortError::new(Code::IllegalState, format!("{}: {why}", self.what()));
        let row = Entity::find_by_id(id.to_string()).one(tx).await?;
        let row = row.ok_or_else(|| refused("there is none of that id"))?;
        let old = journal::from_row(row)?;
        if old.phase != *from {
            return Err(refused(&format!("it is {}", old.phase.word())).into());
        }
        if from != to && !from.allows(*to) {
            return Err(refused(&format!("not after {}", from.word())).into());
        }
        let record = JournalRecord {
            phase: *to,
            ops: *ops,
            payload: payload.clone(),
            owner: owner.clone(),
            ..old
        };
        if let Some((before, after, now_ms)) = plan {
            plans::swap(tx, record.plan, before, after, *now_ms).await?;
        }
        let row = journal::to_row(&record).into_active_model();
        Entity::update(row.reset_all()).exec(tx).await?;
        Ok(record)
    }
}
