//! The resource graph: rows with the generation that wrote them.

use async_trait::async_trait;
use sandbar_domain::graph::{Change as GraphChange, Delta, Saved};
use sandbar_domain::{Code, Disposition, ResourceId};
use sandbar_ports::graph::GraphStore;
use sandbar_ports::{PortError, PortResult};
use sea_orm::sea_query::OnConflict;
use sea_orm::{
    ColumnTrait as _, ConnectionTrait, DatabaseConnection, DatabaseTransaction, DbBackend, DbErr,
    EntityTrait as _, IntoActiveModel as _, IsolationLevel, QueryFilter as _,
    SqliteTransactionMode, Statement, TransactionOptions, TransactionTrait as _,
};

use super::plain;
use crate::SqlStore;
use crate::entity::{graph_edge, graph_gone, graph_project, graph_resource};
use crate::error::Fault;
use crate::transact::{Change, read, write};

/// Rows in one statement: below the parameters that SQLite and PostgreSQL take.
const CHUNK: usize = 1_000;

#[async_trait]
impl GraphStore for SqlStore {
    async fn load_graph(&self) -> PortResult<(u64, Saved)> {
        let what = || "load the graph".to_owned();
        read(&self.db, what, |db| async move {
            let tx = begin_reading(&db).await?;
            let generation = present(&tx).await?;
            let resources = graph_resource::Entity::find().all(&tx).await?;
            let edges = graph_edge::Entity::find().all(&tx).await?;
            let projects = graph_project::Entity::find().all(&tx).await?;
            tx.rollback().await?;
            let resources = resources.into_iter().map(graph_resource::from_row);
            let edges = edges.into_iter().map(graph_edge::from_row);
            let projects = projects.into_iter().map(graph_project::from_row);
            let saved = Saved {
                resources: resources.collect::<Result<_, _>>()?,
                edges: edges.collect::<Result<_, _>>()?,
                projects: projects.collect::<Result<_, _>>()?,
            };
            Ok((generation.cast_unsigned(), saved))
        })
        .await
    }

    async fn graph_since(&self, generation: u64) -> PortResult<Option<(u64, Delta)>> {
        let what = || format!("follow the graph from generation {generation}");
        read(&self.db, what, |db| async move {
            let tx = begin_reading(&db).await?;
            let now = present(&tx).await?;
            if now.cast_unsigned() == generation {
                return Ok(None);
            }
            if generation > now.cast_unsigned() {
                let ahead = moved(generation, now).with_disposition(Disposition::Permanent);
                return Err(ahead.into());
            }
            let delta = newer(&tx, generation.cast_signed()).await?;
            tx.rollback().await?;
            Ok(Some((now.cast_unsigned(), delta)))
        })
        .await
    }

    async fn commit_graph(&self, expected: u64, changes: Vec<GraphChange>) -> PortResult<u64> {
        plain("change the graph", changes.iter().flat_map(texts))?;
        let delta = Delta::of(&changes);
        write(&self.db, &Commit { expected, delta }).await
    }
}

/// Begins a transaction in which all reads are of one moment.
async fn begin_reading(db: &DatabaseConnection) -> Result<DatabaseTransaction, DbErr> {
    let postgres = db.get_database_backend() == DbBackend::Postgres;
    db.begin_with_options(TransactionOptions {
        isolation_level: postgres.then_some(IsolationLevel::RepeatableRead),
        access_mode: None,
        sqlite_transaction_mode: Some(SqliteTransactionMode::Deferred),
    })
    .await
}

async fn present(tx: &DatabaseTransaction) -> Result<i64, Fault> {
    let query = Statement::from_string(
        tx.get_database_backend(),
        "SELECT generation FROM graph_state",
    );
    match tx.query_one_raw(query).await? {
        Some(row) => Ok(row.try_get_by_index(0)?),
        None => Err(PortError::new(
            Code::CorruptStore,
            "read the graph: its generation is missing",
        )
        .into()),
    }
}

async fn newer(tx: &DatabaseTransaction, than: i64) -> Result<Delta, Fault> {
    let mut delta = Delta::default();
    let resources = graph_resource::Entity::find()
        .filter(graph_resource::Column::Generation.gt(than))
        .all(tx)
        .await?;
    for row in resources {
        let row = graph_resource::from_row(row)?;
        delta.resources.insert(row.id, row);
    }
    let edges = graph_edge::Entity::find()
        .filter(graph_edge::Column::Generation.gt(than))
        .all(tx)
        .await?;
    for row in edges {
        let edge = graph_edge::from_row(row)?;
        let key = (edge.parent, edge.child, edge.link.kind());
        delta.edges.insert(key, edge);
    }
    let projects = graph_project::Entity::find()
        .filter(graph_project::Column::Generation.gt(than))
        .all(tx)
        .await?;
    for row in projects {
        let project = graph_project::from_row(row)?;
        delta.projects.insert(project.name.clone(), project);
    }
    let gone = graph_gone::Entity::find()
        .filter(graph_gone::Column::Generation.gt(than))
        .all(tx)
        .await?;
    for row in gone {
        graph_gone::read_into(&mut delta, row)?;
    }
    Ok(delta)
}

struct Commit {
    expected: u64,
    delta: Delta,
}

#[async_trait]
impl Change for Commit {
    type Output = u64;

    fn what(&self) -> String {
        "change the graph".to_owned()
    }

    async fn perform(&self, tx: &DatabaseTransaction) -> Result<u64, Fault> {
        let now = present(tx).await?;
        if now.cast_unsigned() != self.expected {
            return Err(moved(self.expected, now).into());
        }
        if self.delta.is_empty() {
            return Ok(self.expected);
        }
        let next = now + 1;
        self.remove(tx, next).await?;
        self.put(tx, next).await?;
        tx.execute_unprepared(&format!("UPDATE graph_state SET generation = {next}"))
            .await?;
        Ok(next.cast_unsigned())
    }
}

impl Commit {
    async fn remove(&self, tx: &DatabaseTransaction, at: i64) -> Result<(), DbErr> {
        use graph_edge::Column;
        let ids: Vec<_> = self
            .delta
            .gone_resources
            .iter()
            .map(ResourceId::to_string)
            .collect();
        for chunk in ids.chunks(CHUNK) {
            let of = |column: Column| column.is_in(chunk.iter().map(String::as_str));
            // One index at a time: a condition over both reads every edge.
            for column in [Column::Parent, Column::Child] {
                let edges = graph_edge::Entity::delete_many().filter(of(column));
                edges.exec(tx).await?;
            }
            graph_resource::Entity::delete_many()
                .filter(graph_resource::Column::Id.is_in(chunk.iter().map(String::as_str)))
                .exec(tx)
                .await?;
        }
        for (parent, child, kind) in &self.delta.gone_edges {
            let key = (
                parent.to_string(),
                child.to_string(),
                kind.word().to_owned(),
            );
            graph_edge::Entity::delete_by_id(key).exec(tx).await?;
        }
        for name in &self.delta.gone_projects {
            graph_project::Entity::delete_by_id(name.clone())
                .exec(tx)
                .await?;
        }
        let gone = graph_gone::to_rows(&self.delta, at);
        for chunk in gone.chunks(CHUNK) {
            let rows = chunk
                .iter()
                .cloned()
                .map(graph_gone::Model::into_active_model);
            let again = [graph_gone::Column::Kind, graph_gone::Column::Name];
            let again = OnConflict::columns(again)
                .update_column(graph_gone::Column::Generation)
                .to_owned();
            graph_gone::Entity::insert_many(rows)
                .on_conflict(again)
                .exec_without_returning(tx)
                .await?;
        }
        Ok(())
    }

    async fn put(&self, tx: &DatabaseTransaction, at: i64) -> Result<(), DbErr> {
        use sea_orm::Iterable as _;
        let Delta {
            resources,
            edges,
            projects,
            ..
        } = &self.delta;
        let rows: Vec<_> = resources.values().collect();
        let other = graph_resource::Column::iter().skip(1);
        let replace = OnConflict::column(graph_resource::Column::Id)
            .update_columns(other)
            .to_owned();
        for chunk in rows.chunks(CHUNK) {
            let rows = chunk
                .iter()
                .map(|row| graph_resource::to_row(row, at).into_active_model());
            graph_resource::Entity::insert_many(rows)
                .on_conflict(replace.clone())
                .exec_without_returning(tx)
                .await?;
        }
        use graph_edge::Column;
        let rows: Vec<_> = edges.values().collect();
        let replace = OnConflict::columns([Column::Parent, Column::Child, Column::Kind])
            .update_columns([Column::Coherence, Column::Generation])
            .to_owned();
        for chunk in rows.chunks(CHUNK) {
            let rows = chunk
                .iter()
                .map(|edge| graph_edge::to_row(edge, at).into_active_model());
            graph_edge::Entity::insert_many(rows)
                .on_conflict(replace.clone())
                .exec_without_returning(tx)
                .await?;
        }
        for project in projects.values() {
            let row = graph_project::to_row(project, at).into_active_model();
            let other = graph_project::Column::iter().skip(1);
            let replace = OnConflict::column(graph_project::Column::Name)
                .update_columns(other)
                .to_owned();
            graph_project::Entity::insert(row)
                .on_conflict(replace)
                .exec_without_returning(tx)
                .await?;
        }
        Ok(())
    }
}

fn moved(expected: u64, found: i64) -> PortError {
    PortError::new(
        Code::GraphChanged,
        format!("change the graph: it is at generation {found}, not {expected}"),
    )
}

/// Returns every text of a change.
fn texts(change: &GraphChange) -> Vec<Option<&str>> {
    match change {
        GraphChange::Put(row) => {
            let said = [row.location.as_deref(), row.content.as_deref()];
            let names = [Some(row.type_name.as_str()), Some(row.name.as_str())];
            let properties = row.properties.iter();
            let properties = properties.flat_map(|(k, v)| [Some(k.as_str()), Some(v.as_str())]);
            said.into_iter().chain(names).chain(properties).collect()
        }
        GraphChange::PutProject(project) => vec![Some(&project.name)],
        GraphChange::RemoveProject(name) => vec![Some(name)],
        GraphChange::Remove(_) | GraphChange::Link(_) | GraphChange::Unlink { .. } => Vec::new(),
    }
}
