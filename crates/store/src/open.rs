//! Opening a store: cheap when nothing is to be done, safe when many
//! processes do it at once on a new data directory.

use std::path::{Path, PathBuf};
use std::time::Duration;

use sandbar_domain::Code;
use sandbar_ports::effect::planted;
use sandbar_ports::{PortError, PortResult};
use sea_orm::{ConnectOptions, Database, DatabaseConnection, DbBackend};

use crate::error::{Fault, Trouble, trouble};
use crate::place::{self, Address};
use crate::schema;
use crate::transact::Backoff;

/// How long one statement waits for the write lock inside the database.
const LOCK_WAIT: Duration = Duration::from_secs(30);

/// How long a task waits for a connection, be it one of its own process that
/// is in use or a server that does not answer.
const CONNECTION_WAIT: Duration = Duration::from_secs(10);

/// The store of one data directory or server. Clones share the connections.
///
/// Needs a tokio runtime with its time driver, and for PostgreSQL its io
/// driver, enabled.
#[derive(Debug, Clone)]
pub struct SqlStore {
    pub(crate) db: DatabaseConnection,
}

/// How a SQLite file is opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Access {
    Create,
    Write,
    Read,
    /// For a directory in which not even shared memory can be made. Right only
    /// while nobody writes: it takes no locks.
    Immutable,
}

impl SqlStore {
    /// Opens `sqlite:<path>` (the path as it stands, made when missing; its
    /// directory must exist) or `postgres://…`, and brings it to the newest
    /// format. Errors: `bad_config`, `newer_format`, `corrupt_store`,
    /// `store_unavailable`, `read_only`, `permission_denied`, `no_space`.
    pub async fn open(url: &str) -> PortResult<Self> {
        match place::parse(url)? {
            Address::File(file) => Self::open_file(&file).await,
            Address::Server(url) => {
                let what = || "open the store".to_owned();
                let db = patiently(what, || connect_server(&url)).await?;
                Self::ready(db, what).await
            }
        }
    }

    /// Opens a SQLite file, made when missing. Errors: as [`SqlStore::open`].
    pub async fn open_file(file: &Path) -> PortResult<Self> {
        let what = || format!("open {}", file.display());
        let db = patiently(what, || connect_file(file, Access::Create)).await?;
        Self::ready(db, what).await
    }

    /// Opens what is there, for commands that only look: `None` when there is
    /// no store yet. Never creates one. Where the directory cannot be written
    /// it is opened for reading only. Errors: as [`SqlStore::open`].
    pub async fn open_existing(url: &str) -> PortResult<Option<Self>> {
        match place::parse(url)? {
            Address::File(file) => Self::open_existing_file(&file).await,
            Address::Server(url) => {
                let what = || "open the store".to_owned();
                let db = patiently(what, || connect_server(&url)).await?;
                match Self::version_of(&db, what).await? {
                    0 => Ok(None),
                    _ => Self::ready(db, what).await.map(Some),
                }
            }
        }
    }

    /// The same for a SQLite file.
    pub async fn open_existing_file(file: &Path) -> PortResult<Option<Self>> {
        let what = || format!("open {}", file.display());
        if !place::exists(file)? {
            return Ok(None);
        }
        let (db, version) = match Self::look(file, Access::Write).await {
            Err(fault) if cannot_write(&fault) => match Self::look(file, Access::Read).await {
                // Without a log there is nothing but the file itself to read.
                Err(fault) if cannot_write(&fault) && !place::has_log(file) => {
                    Self::look(file, Access::Immutable).await
                }
                found => found,
            },
            found => found,
        }
        .map_err(|fault| fault.at(&what()))?;
        match version {
            // A crash while it was made leaves an empty file.
            0 => Ok(None),
            found if found == schema::newest() => Ok(Some(Self { db })),
            _ => Self::ready(db, what).await.map(Some),
        }
    }

    /// Closes the connections and, where this process is the last one, moves
    /// the write-ahead log into the file. Not needed for safety.
    pub async fn close(self) {
        // What is committed is durable whether or not this succeeds.
        let _ = self.db.close().await;
    }

    async fn look(file: &Path, access: Access) -> Result<(DatabaseConnection, i64), Fault> {
        let mut wait = Backoff::new();
        loop {
            let found: Result<_, Fault> = async {
                let db = connect_file(file, access).await?;
                let version = schema::version(&db).await?;
                Ok((db, version))
            }
            .await;
            match found {
                Err(Fault::Database(error))
                    if trouble(&error) == Trouble::Busy && wait.again().await => {}
                found => return found,
            }
        }
    }

    async fn version_of(db: &DatabaseConnection, what: impl Fn() -> String) -> PortResult<i64> {
        patiently(what, || async { Ok(schema::version(db).await?) }).await
    }

    async fn ready(db: DatabaseConnection, what: impl Fn() -> String) -> PortResult<Self> {
        let version = Self::version_of(&db, &what).await?;
        schema::check(version)?;
        if version < schema::newest() {
            patiently(&what, || schema::migrate(&db)).await?;
        }
        Ok(Self { db })
    }

    /// Says whether the store is a SQLite file.
    pub(crate) fn is_file(&self) -> bool {
        self.db.get_database_backend() == DbBackend::Sqlite
    }
}

fn cannot_write(fault: &Fault) -> bool {
    matches!(fault, Fault::Database(error)
        if matches!(trouble(error), Trouble::CannotOpen | Trouble::ReadOnly | Trouble::Denied))
}

/// Calls again while the store is busy.
async fn patiently<T, F>(what: impl Fn() -> String, call: impl Fn() -> F) -> PortResult<T>
where
    F: Future<Output = Result<T, Fault>>,
{
    let mut wait = Backoff::new();
    loop {
        match call().await {
            Ok(value) => return Ok(value),
            Err(Fault::Database(error))
                if trouble(&error) == Trouble::Busy && wait.again().await => {}
            Err(fault) => return Err(fault.at(&what())),
        }
    }
}

fn options(url: &str) -> ConnectOptions {
    let mut options = ConnectOptions::new(url);
    options
        .sqlx_logging(false)
        .test_before_acquire(false)
        .min_connections(0)
        .acquire_timeout(CONNECTION_WAIT)
        .idle_timeout(None)
        .max_lifetime(None);
    options
}

async fn connect_file(file: &Path, access: Access) -> Result<DatabaseConnection, Fault> {
    let file: PathBuf = file.to_owned();
    if file.to_str().is_none() {
        return Err(PortError::new(
            Code::BadConfig,
            format!(
                "open {}: the path of the store is not UTF-8",
                file.display()
            ),
        )
        .into());
    }
    // The name in this address is replaced below: a path may hold characters
    // that mean something in an address.
    let mut options = options("sqlite:store");
    // One connection: a process never waits for itself inside SQLite.
    options
        .max_connections(1)
        .map_sqlx_sqlite_opts(move |options| {
            let options = options
                .filename(&file)
                .create_if_missing(access == Access::Create)
                .read_only(matches!(access, Access::Read | Access::Immutable))
                .immutable(access == Access::Immutable)
                .foreign_keys(true)
                .busy_timeout(LOCK_WAIT);
            match access {
                Access::Create | Access::Write if planted("store-not-durable") => {
                    options.pragma("synchronous", "OFF")
                }
                Access::Create | Access::Write => options.pragma("synchronous", "FULL"),
                Access::Read | Access::Immutable => options,
            }
        });
    Ok(Database::connect(options).await?)
}

async fn connect_server(url: &str) -> Result<DatabaseConnection, Fault> {
    let mut options = options(url);
    options
        .max_connections(2)
        .test_before_acquire_if_idle_for(Duration::from_secs(30))
        .set_application_name("sandbar")
        .map_sqlx_postgres_opts(|options| {
            options.options([
                ("synchronous_commit", "on"),
                ("default_transaction_isolation", "read committed"),
                ("lock_timeout", "30s"),
                ("idle_in_transaction_session_timeout", "60s"),
            ])
        });
    match Database::connect(options).await {
        Ok(db) => Ok(db),
        // sea-orm quotes an address that it cannot parse, password included.
        Err(error) if trouble(&error) == Trouble::Other => Err(PortError::new(
            Code::BadConfig,
            "open the store: store.url is no address of a PostgreSQL server",
        )
        .into()),
        Err(error) => Err(error.into()),
    }
}

#[cfg(test)]
mod tests {
    use sandbar_domain::Disposition;
    use sandbar_ports::store::{NewPlan, Store as _};
    use sandbar_testkit::contract::store::sample;
    use sea_orm::{ConnectionTrait as _, Statement, TransactionTrait as _};

    use super::*;

    async fn pragma(db: &DatabaseConnection, name: &str) -> String {
        let query = Statement::from_string(DbBackend::Sqlite, format!("PRAGMA {name}"));
        let row = db.query_one_raw(query).await.expect("a pragma can be read");
        let row = row.expect("it has a value");
        row.try_get_by_index::<String>(0)
            .or_else(|_| row.try_get_by_index::<i64>(0).map(|n| n.to_string()))
            .expect("it is a text or a number")
    }

    #[test]
    fn every_connection_is_durable_and_patient() {
        sandbar_testkit::run(async {
            let dir = tempfile::tempdir().expect("a directory can be made");
            let file = dir.path().join("store?#%20.db");
            for _ in 0..2 {
                let store = SqlStore::open_file(&file).await.expect("it opens");
                for (name, value) in [
                    ("journal_mode", "wal"),
                    ("synchronous", "2"),
                    ("foreign_keys", "1"),
                    ("busy_timeout", "30000"),
                ] {
                    assert_eq!(pragma(&store.db, name).await, value, "{name}");
                }
            }
            assert!(place::exists(&file).expect("it can be looked at"));
        });
    }

    #[test]
    fn a_full_disk_is_told_and_changes_nothing() {
        sandbar_testkit::run(async {
            let dir = tempfile::tempdir().expect("a directory can be made");
            let store = SqlStore::open_file(&dir.path().join("store.db")).await;
            let store = store.expect("it opens");
            let resource = store.register(sample::resource(1)).await;
            let resource = resource.expect("it registers").id;
            let limit = "PRAGMA max_page_count = 40";
            store.db.execute_unprepared(limit).await.expect("a limit");
            let plan = NewPlan {
                settings: "x".repeat(1_000_000),
                ..sample::plan(1, "large", resource)
            };
            let error = store.add_plan(plan).await.expect_err("no space for it");
            assert_eq!(error.code, Code::NoSpace, "{error}");
            assert_eq!(error.message, "add plan large: no space left for the store");
            assert_eq!(store.plans().await.expect("a read"), []);
            let plan = sample::plan(2, "small", resource);
            store.add_plan(plan).await.expect("there is space for this");
        });
    }

    #[test]
    fn a_held_lock_is_busy_and_retryable() {
        sandbar_testkit::run(async {
            let dir = tempfile::tempdir().expect("a directory can be made");
            let file = dir.path().join("store.db");
            let one = SqlStore::open_file(&file).await.expect("it opens");
            let two = SqlStore::open_file(&file).await.expect("it opens");
            let hurry = "PRAGMA busy_timeout = 0";
            two.db.execute_unprepared(hurry).await.expect("a pragma");
            let held = crate::transact::begin(&one.db).await.expect("the lock");
            let error = crate::transact::begin(&two.db).await.expect_err("held");
            assert_eq!(trouble(&error), Trouble::Busy, "{error}");
            let error = Fault::from(error).at("add plan demo");
            assert_eq!(error.code, Code::StoreUnavailable);
            assert_eq!(error.disposition, Disposition::Retryable);
            // Readers are not held up, and the lock is free when it is given back.
            two.plans().await.expect("a read while another writes");
            held.rollback().await.expect("it is rolled back");
            let free = crate::transact::begin(&two.db).await.expect("the lock");
            free.commit().await.expect("nothing to commit");
            // A transaction that is dropped gives the lock back as well.
            drop(crate::transact::begin(&two.db).await.expect("the lock"));
            let plans = two.db.begin().await.expect("the connection is usable");
            drop(plans);
            one.register(sample::resource(1))
                .await
                .expect("the lock is free");
        });
    }
}
