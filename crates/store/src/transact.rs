//! Transactions: one writer at a time, patience with the others, and a
//! numbered effect around each durable commit.

use std::future::Future;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use sandbar_ports::PortResult;
use sandbar_ports::effect::effect_async;
use sea_orm::{
    ConnectionTrait as _, DatabaseConnection, DatabaseTransaction, DbBackend, DbErr,
    SqliteTransactionMode, TransactionOptions, TransactionTrait as _,
};

use crate::error::{Fault, Trouble, trouble};

/// How long an operation goes on trying while others hold the store. One
/// attempt waits up to 30 s inside the database (`open`), so the whole is
/// bounded by twice that.
const PATIENCE: Duration = Duration::from_secs(60);

/// The advisory lock that serialises writers in PostgreSQL: "sandbar" in ASCII.
const WRITE_LOCK: i64 = 0x73_61_6e_64_62_61_72;

/// What one transaction does. `perform` may run several times: it must have no
/// effect but those on `tx`.
#[async_trait]
pub(crate) trait Change: Send + Sync {
    /// What it returns.
    type Output: Send;

    /// Says what it does, to read well after "failed to".
    fn what(&self) -> String;

    /// Does it. The write lock is held.
    async fn perform(&self, tx: &DatabaseTransaction) -> Result<Self::Output, Fault>;
}

/// Performs one change as one durable transaction.
pub(crate) async fn write<C: Change>(db: &DatabaseConnection, change: &C) -> PortResult<C::Output> {
    let mut wait = Backoff::new();
    loop {
        let (fault, committing) = match attempt(db, change).await {
            Ok(output) => return Ok(output),
            Err(failure) => failure,
        };
        // A busy answer means that nothing was done, at the commit as well.
        if is_busy(&fault) && wait.again().await {
            continue;
        }
        let what = change.what();
        return Err(if committing {
            fault.at_commit(&what)
        } else {
            fault.at(&what)
        });
    }
}

/// Tries once; the flag says whether the failure was that of the commit.
async fn attempt<C: Change>(
    db: &DatabaseConnection,
    change: &C,
) -> Result<C::Output, (Fault, bool)> {
    let tx = begin(db).await.map_err(|error| (error.into(), false))?;
    match change.perform(&tx).await {
        Ok(output) => match commit(tx).await {
            Ok(()) => Ok(output),
            Err(fault) => Err((fault, true)),
        },
        Err(fault) => {
            // The failure that counts is the first one; a transaction that
            // cannot be rolled back dies with its connection.
            let _ = tx.rollback().await;
            Err((fault, false))
        }
    }
}

/// Makes a transaction durable.
pub(crate) async fn commit(tx: DatabaseTransaction) -> Result<(), Fault> {
    effect_async("store-commit", async {
        tx.commit().await.map_err(Fault::from)
    })
    .await
}

/// Begins a transaction that holds the write lock.
pub(crate) async fn begin(db: &DatabaseConnection) -> Result<DatabaseTransaction, DbErr> {
    let tx = db
        .begin_with_options(TransactionOptions {
            isolation_level: None,
            access_mode: None,
            sqlite_transaction_mode: Some(SqliteTransactionMode::Immediate),
        })
        .await?;
    if db.get_database_backend() == DbBackend::Postgres {
        // Read committed, locked first: every statement after the lock sees
        // what the writer before committed, as in SQLite.
        tx.execute_unprepared(&format!("SELECT pg_advisory_xact_lock({WRITE_LOCK})"))
            .await?;
    }
    Ok(tx)
}

/// Reads, again while the store is busy.
pub(crate) async fn read<T, F>(
    db: &DatabaseConnection,
    what: impl Fn() -> String,
    query: impl Fn(DatabaseConnection) -> F,
) -> PortResult<T>
where
    F: Future<Output = Result<T, Fault>>,
{
    let mut wait = Backoff::new();
    loop {
        match query(db.clone()).await {
            Ok(value) => return Ok(value),
            Err(fault) if is_busy(&fault) && wait.again().await => {}
            Err(fault) => return Err(fault.at(&what())),
        }
    }
}

fn is_busy(fault: &Fault) -> bool {
    matches!(fault, Fault::Database(error)
        if matches!(trouble(error), Trouble::Busy | Trouble::Exhausted))
}

/// Waits longer each time, up to [`PATIENCE`] in all. Processes differ in
/// their pid, so that they do not come back in step.
pub(crate) struct Backoff {
    until: Instant,
    pause: Duration,
}

impl Backoff {
    /// Starts the clock.
    pub(crate) fn new() -> Self {
        let skew = u64::from(std::process::id() % 7);
        Self {
            until: Instant::now() + PATIENCE,
            pause: Duration::from_micros(1_000 + skew * 300),
        }
    }

    /// Waits; false when patience is at its end.
    pub(crate) async fn again(&mut self) -> bool {
        if Instant::now() >= self.until {
            return false;
        }
        tokio::time::sleep(self.pause).await;
        self.pause = (self.pause * 3 / 2).min(Duration::from_millis(100));
        true
    }
}
