//! The tables, as numbered migrations that are the same on both databases.
//!
//! `schema_version` holds one number: how many of [`MIGRATIONS`] were done.
//! A migration, once released, is never edited.

use sea_orm::sea_query::{
    ColumnDef, Expr, ExprTrait as _, ForeignKey, ForeignKeyAction, ForeignKeyCreateStatement,
    Index, IndexCreateStatement, Table, TableCreateStatement,
};
use sea_orm::{
    ConditionalStatement as _, ConnectionTrait, DatabaseConnection, DbBackend, DbErr, EntityTrait,
    Iden, Iterable, Statement,
};

use crate::entity::{checkpoint, checkpoint_part, journal, plan, resource, sandbox};
use crate::error::{Fault, Trouble, trouble};
use crate::transact;
use sandbar_domain::Code;
use sandbar_domain::plan::PlanState;
use sandbar_ports::PortError;
use sandbar_ports::effect::effect_async;

/// What each version adds.
const MIGRATIONS: &[fn() -> Vec<Step>] = &[first];

/// The version that this build writes.
pub(crate) fn newest() -> i64 {
    i64::try_from(MIGRATIONS.len()).expect("a handful")
}

/// One statement of a migration.
enum Step {
    Table(Box<TableCreateStatement>),
    Index(IndexCreateStatement),
}

/// Reads the version; 0 for a database without our tables.
pub(crate) async fn version(db: &impl ConnectionTrait) -> Result<i64, DbErr> {
    let query = Statement::from_string(
        db.get_database_backend(),
        "SELECT version FROM schema_version",
    );
    match db.query_one_raw(query).await {
        Ok(Some(row)) => row.try_get_by_index(0),
        Ok(None) => Ok(0),
        Err(error) if trouble(&error) == Trouble::NoTable => Ok(0),
        Err(error) => Err(error),
    }
}

/// Refuses what a newer version wrote.
pub(crate) fn check(version: i64) -> Result<(), PortError> {
    if version > newest() {
        return Err(PortError::new(
            Code::NewerFormat,
            format!(
                "open the store: its format is {version}, this version reads up to {}",
                newest()
            ),
        ));
    }
    Ok(())
}

/// Brings the database to the newest version, in one transaction. Of several
/// processes one does it; the others wait and find it done.
pub(crate) async fn migrate(db: &DatabaseConnection) -> Result<(), Fault> {
    let backend = db.get_database_backend();
    if backend == DbBackend::Sqlite {
        write_ahead(db).await?;
    }
    let tx = transact::begin(db).await?;
    // In PostgreSQL a statement that fails ends the transaction: the table is
    // made first and read then.
    tx.execute_unprepared("CREATE TABLE IF NOT EXISTS schema_version (version BIGINT NOT NULL)")
        .await?;
    let from = version(&tx).await?;
    check(from)?;
    if from == 0 && backend == DbBackend::Sqlite {
        refuse_foreign(&tx).await?;
    }
    let done = usize::try_from(from).unwrap_or(0);
    for migration in &MIGRATIONS[done..] {
        for step in migration() {
            match step {
                Step::Table(table) => tx.execute(&*table).await?,
                Step::Index(index) => tx.execute(&index).await?,
            };
        }
    }
    if done < MIGRATIONS.len() {
        tx.execute_unprepared("DELETE FROM schema_version").await?;
        tx.execute_unprepared(&format!("INSERT INTO schema_version VALUES ({})", newest()))
            .await?;
    }
    effect_async("store-commit", tx.commit()).await?;
    Ok(())
}

/// Switches the file to a write-ahead log, which it then keeps. This needs
/// the file for itself, and SQLite does not wait for that: the caller does.
async fn write_ahead(db: &DatabaseConnection) -> Result<(), Fault> {
    let query = Statement::from_string(DbBackend::Sqlite, "PRAGMA journal_mode = WAL");
    let mode: Option<String> = match db.query_one_raw(query).await? {
        Some(row) => Some(row.try_get_by_index(0)?),
        None => None,
    };
    if mode.as_deref() == Some("wal") {
        return Ok(());
    }
    Err(PortError::new(
        Code::NotAvailable,
        "open the store: its file system allows no write-ahead log",
    )
    .with_hint("set SANDBAR_DATA_DIR to a local directory")
    .into())
}

/// Refuses a SQLite file that is some other program's.
async fn refuse_foreign(tx: &impl ConnectionTrait) -> Result<(), Fault> {
    let query = Statement::from_string(
        DbBackend::Sqlite,
        "SELECT name FROM sqlite_master WHERE type = 'table' AND name <> 'schema_version' LIMIT 1",
    );
    if let Some(row) = tx.query_one_raw(query).await? {
        let name: String = row.try_get_by_index(0)?;
        return Err(PortError::new(
            Code::CorruptStore,
            format!("open the store: the file is another program's, it has a table {name}"),
        )
        .into());
    }
    Ok(())
}

fn first() -> Vec<Step> {
    vec![
        define(
            table(resource::Entity, |column| match column {
                resource::Column::Id | resource::Column::Kind => text(column),
                resource::Column::Path => bytes(column),
                resource::Column::Device | resource::Column::Inode | resource::Column::Seen => {
                    number(column)
                }
            })
            .to_owned(),
        ),
        unique(
            "resources_inode",
            resource::Entity,
            &[
                resource::Column::Kind,
                resource::Column::Device,
                resource::Column::Inode,
            ],
        ),
        define(
            table(plan::Entity, |column| match column {
                plan::Column::Id
                | plan::Column::Name
                | plan::Column::Resource
                | plan::Column::State
                | plan::Column::Settings => text(column),
                plan::Column::OwnerHost | plan::Column::OwnerBoot => text(column).null().take(),
                plan::Column::OwnerSpace | plan::Column::OwnerPid | plan::Column::OwnerStarted => {
                    number(column).null().take()
                }
                plan::Column::Sequence
                | plan::Column::CreatedMs
                | plan::Column::ChangedMs
                | plan::Column::NextCheckpoint => number(column),
            })
            .foreign_key(&mut key(
                (plan::Entity, plan::Column::Resource),
                (resource::Entity, resource::Column::Id),
            ))
            .to_owned(),
        ),
        unique("plans_sequence", plan::Entity, &[plan::Column::Sequence]),
        Step::Index(
            Index::create()
                .name("plans_name")
                .table(plan::Entity)
                .col(plan::Column::Name)
                .unique()
                .and_where(Expr::col(plan::Column::State).ne(PlanState::Discarded.word()))
                .to_owned(),
        ),
        index("plans_resource", plan::Entity, &[plan::Column::Resource]),
        define(
            table(sandbox::Entity, |column| match column {
                sandbox::Column::Id
                | sandbox::Column::Plan
                | sandbox::Column::Resource
                | sandbox::Column::Strategy
                | sandbox::Column::State
                | sandbox::Column::View => text(column),
                sandbox::Column::Base
                | sandbox::Column::BaseBranch
                | sandbox::Column::BaseHead
                | sandbox::Column::Rules => text(column).null().take(),
                sandbox::Column::Place | sandbox::Column::Binds => bytes(column),
                sandbox::Column::RootPath => bytes(column).null().take(),
                sandbox::Column::RootDevice | sandbox::Column::RootInode => {
                    number(column).null().take()
                }
                sandbox::Column::Sequence | sandbox::Column::Ignored => number(column),
            })
            .foreign_key(&mut key(
                (sandbox::Entity, sandbox::Column::Plan),
                (plan::Entity, plan::Column::Id),
            ))
            .foreign_key(&mut key(
                (sandbox::Entity, sandbox::Column::Resource),
                (resource::Entity, resource::Column::Id),
            ))
            .to_owned(),
        ),
        unique(
            "sandboxes_boundary",
            sandbox::Entity,
            &[sandbox::Column::Plan, sandbox::Column::Resource],
        ),
        define(
            table(checkpoint::Entity, |column| match column {
                checkpoint::Column::Id | checkpoint::Column::Plan | checkpoint::Column::Step => {
                    text(column)
                }
                checkpoint::Column::Message => text(column).null().take(),
                checkpoint::Column::Number | checkpoint::Column::CreatedMs => number(column),
            })
            .foreign_key(&mut key(
                (checkpoint::Entity, checkpoint::Column::Plan),
                (plan::Entity, plan::Column::Id),
            ))
            .to_owned(),
        ),
        unique(
            "checkpoints_number",
            checkpoint::Entity,
            &[checkpoint::Column::Plan, checkpoint::Column::Number],
        ),
        define(
            table(checkpoint_part::Entity, |column| match column {
                checkpoint_part::Column::Checkpoint
                | checkpoint_part::Column::Sandbox
                | checkpoint_part::Column::Snapshot => text(column),
                checkpoint_part::Column::HiddenCommit => text(column).null().take(),
                checkpoint_part::Column::Position => number(column),
            })
            .foreign_key(
                key(
                    (checkpoint_part::Entity, checkpoint_part::Column::Checkpoint),
                    (checkpoint::Entity, checkpoint::Column::Id),
                )
                .on_delete(ForeignKeyAction::Cascade),
            )
            .foreign_key(&mut key(
                (checkpoint_part::Entity, checkpoint_part::Column::Sandbox),
                (sandbox::Entity, sandbox::Column::Id),
            ))
            .to_owned(),
        ),
        define(
            table(journal::Entity, |column| match column {
                journal::Column::Id
                | journal::Column::Kind
                | journal::Column::Phase
                | journal::Column::Plan
                | journal::Column::Payload => text(column),
                journal::Column::OwnerHost | journal::Column::OwnerBoot | journal::Column::Ops => {
                    text(column).null().take()
                }
                journal::Column::OwnerSpace
                | journal::Column::OwnerPid
                | journal::Column::OwnerStarted => number(column).null().take(),
                journal::Column::Sequence | journal::Column::Version => number(column),
            })
            .foreign_key(&mut key(
                (journal::Entity, journal::Column::Plan),
                (plan::Entity, plan::Column::Id),
            ))
            .to_owned(),
        ),
        unique(
            "journal_sequence",
            journal::Entity,
            &[journal::Column::Sequence],
        ),
        index("journal_plan", journal::Entity, &[journal::Column::Plan]),
        index("journal_phase", journal::Entity, &[journal::Column::Phase]),
    ]
}

/// Makes a table with every column of the entity; `define` must name each, so
/// that none is forgotten.
fn table<E: EntityTrait>(
    entity: E,
    define: impl Fn(E::Column) -> ColumnDef,
) -> TableCreateStatement {
    let mut table = Table::create();
    table.table(entity);
    for column in E::Column::iter() {
        table.col(define(column));
    }
    let mut primary = Index::create();
    for column in E::PrimaryKey::iter() {
        primary.col(sea_orm::sea_query::Alias::new(column.to_string()));
    }
    table.primary_key(&mut primary);
    table
}

fn define(table: TableCreateStatement) -> Step {
    Step::Table(Box::new(table))
}

fn text(column: impl Iden + 'static) -> ColumnDef {
    ColumnDef::new(column).text().not_null().take()
}

fn number(column: impl Iden + 'static) -> ColumnDef {
    ColumnDef::new(column).big_integer().not_null().take()
}

fn bytes(column: impl Iden + 'static) -> ColumnDef {
    ColumnDef::new(column).blob().not_null().take()
}

fn index<E: EntityTrait>(name: &'static str, entity: E, columns: &[E::Column]) -> Step {
    Step::Index(covering(name, entity, columns))
}

fn unique<E: EntityTrait>(name: &'static str, entity: E, columns: &[E::Column]) -> Step {
    Step::Index(covering(name, entity, columns).unique().take())
}

fn covering<E: EntityTrait>(
    name: &'static str,
    entity: E,
    columns: &[E::Column],
) -> IndexCreateStatement {
    let mut index = Index::create();
    index.name(name).table(entity);
    for column in columns {
        index.col(*column);
    }
    index
}

fn key<A: EntityTrait, B: EntityTrait>(
    from: (A, A::Column),
    to: (B, B::Column),
) -> ForeignKeyCreateStatement {
    ForeignKey::create()
        .from(from.0, from.1)
        .to(to.0, to.1)
        .to_owned()
}
