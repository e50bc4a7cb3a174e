//! The tables, as numbered migrations that are the same on both databases.
//!
//! `schema_version` holds one number: how many of [`MIGRATIONS`] were done.
//! A migration, once released, is never edited.

use sandbar_domain::Code;
use sandbar_ports::PortError;
use sea_orm::{ConnectionTrait, DatabaseConnection, DbBackend, DbErr, Statement};

use crate::error::{Fault, Trouble, trouble};
use crate::transact;

/// What each version adds.
const MIGRATIONS: &[&str] = &[include_str!("0001.sql"), include_str!("0002.sql")];

/// The version that this build writes.
pub(crate) fn newest() -> i64 {
    i64::try_from(MIGRATIONS.len()).expect("a handful")
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
        refuse_foreign(db).await?;
        write_ahead(db).await?;
    }
    let tx = transact::begin(db).await?;
    // In PostgreSQL a statement that fails ends the transaction: the table is
    // made first and read then.
    tx.execute_unprepared("CREATE TABLE IF NOT EXISTS schema_version (version BIGINT NOT NULL)")
        .await?;
    let from = version(&tx).await?;
    check(from)?;
    let done = usize::try_from(from).unwrap_or(0);
    for migration in &MIGRATIONS[done..] {
        tx.execute_unprepared(&dialect(migration, backend)).await?;
    }
    if done < MIGRATIONS.len() {
        tx.execute_unprepared("DELETE FROM schema_version").await?;
        tx.execute_unprepared(&format!("INSERT INTO schema_version VALUES ({})", newest()))
            .await?;
    }
    transact::commit(tx).await
}

/// Translates the one word that differs.
fn dialect(migration: &str, backend: DbBackend) -> String {
    let bytes = match backend {
        DbBackend::Postgres => " BYTEA",
        _ => " BLOB",
    };
    migration.replace(" BYTES", bytes)
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

/// Refuses a SQLite file that is some other program's, before anything in it
/// changes. One statement: another process may be making our tables just now.
async fn refuse_foreign(db: &DatabaseConnection) -> Result<(), Fault> {
    let query = Statement::from_string(
        DbBackend::Sqlite,
        "SELECT name FROM sqlite_master WHERE type = 'table' AND NOT EXISTS \
         (SELECT 1 FROM sqlite_master WHERE name = 'schema_version') LIMIT 1",
    );
    if let Some(row) = db.query_one_raw(query).await? {
        let name: String = row.try_get_by_index(0)?;
        return Err(PortError::new(
            Code::CorruptStore,
            format!("open the store: the file is another program's, it has a table {name}"),
        )
        .into());
    }
    Ok(())
}
