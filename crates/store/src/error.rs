//! What a database's complaint means: one table from the codes of SQLite and
//! the states of PostgreSQL to the codes of the port.

use sandbar_domain::{Code, Disposition};
use sandbar_ports::PortError;
use sea_orm::sqlx::error::DatabaseError;
use sea_orm::{ConnAcquireErr, DbErr, RuntimeErr, SqlErr, SqlxError};

use crate::convert::BadRow;

/// Why an operation stopped.
#[derive(Debug)]
pub(crate) enum Fault {
    /// The database said no, or nothing.
    Database(DbErr),
    /// The state asked for does not allow it.
    Refused(PortError),
    /// A row cannot be read.
    Row(BadRow),
}

impl From<DbErr> for Fault {
    fn from(error: DbErr) -> Self {
        Self::Database(error)
    }
}

impl From<PortError> for Fault {
    fn from(error: PortError) -> Self {
        Self::Refused(error)
    }
}

impl From<BadRow> for Fault {
    fn from(error: BadRow) -> Self {
        Self::Row(error)
    }
}

#[cfg(feature = "faults")]
impl sandbar_ports::effect::Injected for Fault {
    fn injected(errno: sandbar_ports::effect::Errno) -> Self {
        Self::Refused(PortError::injected(errno).with_disposition(Disposition::Indeterminate))
    }
}

/// The kinds of complaint that are treated differently.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Trouble {
    /// Another writer is first, or the server is starting: try again.
    Busy,
    /// The connection is gone or was never there.
    Lost,
    /// No connection of the pool became free.
    Exhausted,
    /// The bytes are no database, or a damaged one.
    Corrupt,
    /// No space.
    Full,
    /// The file or the server takes no writes.
    ReadOnly,
    /// The file cannot be opened.
    CannotOpen,
    /// Not allowed.
    Denied,
    /// Reading or writing failed.
    Io,
    /// A table is not there.
    NoTable,
    /// A row with that key is there already.
    Duplicate,
    /// A row that is referred to is not there.
    Dangling,
    /// Anything else: a fault of this crate.
    Other,
}

/// Classifies an error.
pub(crate) fn trouble(error: &DbErr) -> Trouble {
    match error {
        DbErr::ConnectionAcquire(ConnAcquireErr::Timeout) => return Trouble::Exhausted,
        DbErr::ConnectionAcquire(ConnAcquireErr::ConnectionClosed) => return Trouble::Lost,
        _ => {}
    }
    match error.sql_err() {
        Some(SqlErr::UniqueConstraintViolation(_)) => return Trouble::Duplicate,
        Some(SqlErr::ForeignKeyConstraintViolation(_)) => return Trouble::Dangling,
        _ => {}
    }
    let (DbErr::Conn(inner) | DbErr::Exec(inner) | DbErr::Query(inner)) = error else {
        return Trouble::Other;
    };
    let RuntimeErr::SqlxError(inner) = inner else {
        return Trouble::Other;
    };
    match inner.as_ref() {
        SqlxError::Database(database) => of_database(&**database),
        SqlxError::PoolTimedOut => Trouble::Exhausted,
        SqlxError::Io(_)
        | SqlxError::Tls(_)
        | SqlxError::Protocol(_)
        | SqlxError::PoolClosed
        | SqlxError::WorkerCrashed => Trouble::Lost,
        _ => Trouble::Other,
    }
}

fn of_database(error: &dyn DatabaseError) -> Trouble {
    let code = error.code().unwrap_or_default();
    if error
        .try_downcast_ref::<sea_orm::SqlxSqliteError>()
        .is_some()
    {
        // The low byte is the primary code, the rest a refinement.
        return match code.parse::<u32>().map(|code| code & 0xff) {
            Ok(1) if error.message().starts_with("no such table") => Trouble::NoTable,
            Ok(5 | 6 | 15) => Trouble::Busy,
            Ok(3 | 23) => Trouble::Denied,
            Ok(8) => Trouble::ReadOnly,
            Ok(10) => Trouble::Io,
            Ok(11 | 26) => Trouble::Corrupt,
            Ok(13) => Trouble::Full,
            Ok(14) => Trouble::CannotOpen,
            _ => Trouble::Other,
        };
    }
    match &*code {
        "42P01" => Trouble::NoTable,
        // Serialisation, deadlock, lock timeout; starting up, too many clients.
        "40001" | "40P01" | "55P03" | "57P03" | "53300" => Trouble::Busy,
        // Shut down by an administrator or by a crash; idle for too long.
        "57P01" | "57P02" | "57P05" | "25P03" => Trouble::Lost,
        "53100" => Trouble::Full,
        "25006" => Trouble::ReadOnly,
        "58030" => Trouble::Io,
        "42501" => Trouble::Denied,
        "3D000" => Trouble::CannotOpen,
        code if code.starts_with("28") => Trouble::Denied,
        code if code.starts_with("08") => Trouble::Lost,
        code if code.starts_with("XX") => Trouble::Corrupt,
        _ => Trouble::Other,
    }
}

impl Fault {
    /// Turns it into the error of the port. `what` reads well after "failed
    /// to": "add plan demo".
    pub(crate) fn at(self, what: &str) -> PortError {
        let error = match self {
            Self::Refused(error) => return error,
            Self::Row(row) => {
                return PortError::new(Code::CorruptStore, format!("{what}: {row}"))
                    .with_source(row);
            }
            Self::Database(error) => error,
        };
        let (code, disposition, why) = match trouble(&error) {
            Trouble::Busy => (
                Code::StoreUnavailable,
                Disposition::Retryable,
                "the store is held by another process for too long",
            ),
            Trouble::Exhausted => (
                Code::StoreUnavailable,
                Disposition::Retryable,
                "no connection to the store within ten seconds",
            ),
            Trouble::Lost => (
                Code::StoreUnavailable,
                Disposition::Retryable,
                "the connection to the store broke",
            ),
            Trouble::CannotOpen => (
                Code::StoreUnavailable,
                Disposition::Permanent,
                "the store cannot be opened",
            ),
            Trouble::Corrupt => (
                Code::CorruptStore,
                Disposition::Permanent,
                "the store is damaged or is no store",
            ),
            Trouble::Full => (
                Code::NoSpace,
                Disposition::Retryable,
                "no space left for the store",
            ),
            Trouble::ReadOnly => (
                Code::ReadOnly,
                Disposition::Permanent,
                "the store takes no writes",
            ),
            Trouble::Denied => (
                Code::PermissionDenied,
                Disposition::Permanent,
                "access to the store is denied",
            ),
            Trouble::Io => (
                Code::Io,
                Disposition::Permanent,
                "reading or writing the store failed",
            ),
            Trouble::NoTable => (
                Code::CorruptStore,
                Disposition::Permanent,
                "the store lacks a table",
            ),
            Trouble::Duplicate => (
                Code::Internal,
                Disposition::Permanent,
                "an id that is taken",
            ),
            Trouble::Dangling => (
                Code::Internal,
                Disposition::Permanent,
                "something it refers to is not in the store",
            ),
            Trouble::Other => (
                Code::Internal,
                Disposition::Permanent,
                "the store refused it",
            ),
        };
        PortError::new(code, format!("{what}: {why}"))
            .with_disposition(disposition)
            .with_source(error)
    }

    /// The same for an error of the commit itself: where the answer is missing
    /// or the disk failed, it may or may not have happened.
    pub(crate) fn at_commit(self, what: &str) -> PortError {
        let in_doubt = matches!(
            &self,
            Self::Database(error)
                if matches!(trouble(error), Trouble::Lost | Trouble::Io | Trouble::Other)
        );
        let mut error = self.at(what);
        if in_doubt {
            error.message += "; it may or may not have happened";
            error.disposition = Disposition::Indeterminate;
        }
        error
    }
}
