//! The operations of the port, one module a kind of record.

mod check;
mod checkpoints;
mod graph;
mod journal;
mod plans;
mod resources;
mod sandboxes;

use async_trait::async_trait;
use sandbar_domain::resource::Resource;
use sandbar_domain::{Code, PlanId, ResourceId};
use sandbar_ports::exec::Owner;
use sandbar_ports::store::{
    CheckpointRecord, JournalQuery, JournalRecord, JournalStep, NewCheckpoint, NewPlan, PlanMark,
    PlanRecord, SandboxRecord, Store,
};
use sandbar_ports::{PortError, PortResult};
use sea_orm::sea_query::{Expr, ExprTrait as _};
use sea_orm::{ConnectionTrait, DbErr, EntityTrait, QuerySelect as _};

use crate::SqlStore;

#[async_trait]
impl Store for SqlStore {
    async fn register(&self, new: Resource) -> PortResult<Resource> {
        resources::register(&self.db, new).await
    }

    async fn resource(&self, id: ResourceId) -> PortResult<Option<Resource>> {
        resources::get(&self.db, id).await
    }

    async fn add_plan(&self, plan: NewPlan) -> PortResult<PlanRecord> {
        plans::add(&self.db, plan).await
    }

    async fn plans(&self) -> PortResult<Vec<PlanRecord>> {
        plans::all(&self.db).await
    }

    async fn plan(&self, id: PlanId) -> PortResult<Option<PlanRecord>> {
        plans::get(&self.db, id).await
    }

    async fn find_plans(&self, text: String) -> PortResult<Vec<PlanRecord>> {
        plans::find(&self.db, text).await
    }

    async fn newest_plan(&self, resource: ResourceId) -> PortResult<Option<PlanRecord>> {
        plans::newest(&self.db, resource).await
    }

    async fn move_plan(
        &self,
        id: PlanId,
        from: PlanMark,
        to: PlanMark,
        now_ms: i64,
    ) -> PortResult<PlanRecord> {
        plans::shift(&self.db, id, from, to, now_ms).await
    }

    async fn add_sandbox(&self, sandbox: SandboxRecord) -> PortResult<()> {
        sandboxes::add(&self.db, sandbox).await
    }

    async fn update_sandbox(&self, sandbox: SandboxRecord) -> PortResult<()> {
        sandboxes::update(&self.db, sandbox).await
    }

    async fn sandboxes(&self, plan: PlanId) -> PortResult<Vec<SandboxRecord>> {
        sandboxes::of_plan(&self.db, plan).await
    }

    async fn add_checkpoint(&self, checkpoint: NewCheckpoint) -> PortResult<CheckpointRecord> {
        checkpoints::add(&self.db, checkpoint).await
    }

    async fn checkpoints(&self, plan: PlanId) -> PortResult<Vec<CheckpointRecord>> {
        checkpoints::of_plan(&self.db, plan).await
    }

    async fn forget_plan(&self, id: PlanId) -> PortResult<()> {
        plans::forget(&self.db, id).await
    }

    async fn drop_checkpoints(&self, plan: PlanId, sequence: Vec<u64>) -> PortResult<()> {
        checkpoints::forget(&self.db, plan, sequence).await
    }

    async fn open_journal(&self, entry: JournalRecord) -> PortResult<JournalRecord> {
        journal::open(&self.db, entry).await
    }

    async fn advance_journal(&self, step: JournalStep) -> PortResult<JournalRecord> {
        journal::advance(&self.db, step).await
    }

    async fn journal(&self, of: JournalQuery) -> PortResult<Vec<JournalRecord>> {
        journal::entries(&self.db, of).await
    }

    async fn check(&self) -> PortResult<Vec<String>> {
        check::run(self).await
    }
}

/// Returns the number after the highest in `column`, from 1. The write lock
/// must be held.
async fn next<E: EntityTrait>(tx: &impl ConnectionTrait, column: E::Column) -> Result<i64, DbErr> {
    let highest: Option<Option<i64>> = E::find()
        .select_only()
        .column_as(Expr::col(column).max(), "highest")
        .into_tuple()
        .one(tx)
        .await?;
    Ok(highest.flatten().unwrap_or(0) + 1)
}

/// Returns the texts of an owner.
fn texts_of(owner: Option<&Owner>) -> [Option<&str>; 2] {
    [
        owner.map(|owner| owner.host.as_str()),
        owner.map(|owner| owner.boot.as_str()),
    ]
}

/// Refuses texts that PostgreSQL cannot hold, on every database alike.
fn plain<'a>(what: &str, texts: impl IntoIterator<Item = Option<&'a str>>) -> PortResult<()> {
    if texts.into_iter().flatten().any(|text| text.contains('\0')) {
        return Err(PortError::new(
            Code::Usage,
            format!("{what}: a text holds a NUL character"),
        ));
    }
    Ok(())
}
