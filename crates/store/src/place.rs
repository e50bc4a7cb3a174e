//! Where the store is: the address, and what is in the file's place. Never
//! opens the file; that is SQLite's.
#![allow(
    clippy::disallowed_methods,
    reason = "SQLite itself writes the database file; this module looks whether it is there"
)]

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use sandbar_domain::Code;
use sandbar_ports::{PortError, PortResult};

/// A parsed address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Address {
    /// A SQLite database file.
    File(PathBuf),
    /// A PostgreSQL server, as a URL.
    Server(String),
}

/// Parses `sqlite:<path>` (taken literally, no escapes and no parameters) or
/// `postgres://…`.
pub(crate) fn parse(url: &str) -> PortResult<Address> {
    if let Some(path) = url.strip_prefix("sqlite:") {
        let path = path.strip_prefix("//").unwrap_or(path);
        if path.is_empty() || path == ":memory:" {
            return Err(PortError::new(
                Code::BadConfig,
                format!("read store.url: {url:?} names no file"),
            ));
        }
        return Ok(Address::File(path.into()));
    }
    if url.starts_with("postgres://") || url.starts_with("postgresql://") {
        return Ok(Address::Server(url.to_owned()));
    }
    // Neither the whole text nor any part but the scheme: it may hold a password.
    let scheme = url.split_once(':').map_or("", |(scheme, _)| scheme);
    Err(PortError::new(
        Code::BadConfig,
        format!("read store.url: {scheme:?} is neither sqlite: nor postgres://"),
    ))
}

/// Says whether the database file exists.
pub(crate) fn exists(file: &Path) -> PortResult<bool> {
    match std::fs::metadata(file) {
        Ok(found) if found.is_file() => Ok(true),
        Ok(_) => Err(PortError::new(
            Code::CorruptStore,
            format!("open {}: not a regular file", file.display()),
        )),
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            Ok(false)
        }
        Err(error) => {
            let code = if error.kind() == ErrorKind::PermissionDenied {
                Code::PermissionDenied
            } else {
                Code::Io
            };
            Err(
                PortError::new(code, format!("open {}: {error}", file.display()))
                    .with_source(error),
            )
        }
    }
}

/// Says whether a write-ahead log with something in it lies beside the file.
pub(crate) fn has_log(file: &Path) -> bool {
    let mut name = file.as_os_str().to_owned();
    name.push("-wal");
    std::fs::metadata(name).is_ok_and(|log| log.len() > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses() {
        let file = |path: &str| Address::File(path.into());
        assert_eq!(parse("sqlite:/a/b.db").ok(), Some(file("/a/b.db")));
        assert_eq!(parse("sqlite:///a/b.db").ok(), Some(file("/a/b.db")));
        assert_eq!(
            parse("sqlite:a%20b?c#d.db").ok(),
            Some(file("a%20b?c#d.db"))
        );
        assert_eq!(
            parse("postgres://h/d").ok(),
            Some(Address::Server("postgres://h/d".to_owned()))
        );
        for bad in ["", "mysql://u:secret@h/d", "sqlite:", "sqlite::memory:"] {
            let error = parse(bad).expect_err(bad);
            assert_eq!(error.code, Code::BadConfig);
            assert!(!error.message.contains("secret"), "{error}");
        }
    }
}
