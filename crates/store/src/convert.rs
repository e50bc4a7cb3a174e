//! Column values: paths as their exact bytes, 64-bit unsigned numbers by bit
//! pattern, ids and hashes as text. Never lossy in either direction.

use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};
use std::str::FromStr;

use sandbar_domain::RelPath;
use sandbar_ports::exec::{Owner, View};

/// A column that holds what it cannot hold.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("column {column} of table {table} holds {value:?}")]
pub(crate) struct BadRow {
    table: &'static str,
    column: &'static str,
    value: String,
}

impl BadRow {
    /// Names the column and what is in it.
    pub(crate) fn new(table: &'static str, column: &'static str, value: &str) -> Self {
        Self {
            table,
            column,
            value: value.to_owned(),
        }
    }
}

/// Parses an id or a hash.
pub(crate) fn parse<T: FromStr>(
    table: &'static str,
    column: &'static str,
    text: &str,
) -> Result<T, BadRow> {
    text.parse().map_err(|_| BadRow::new(table, column, text))
}

/// Reads a word of a closed list.
pub(crate) fn word<T>(
    table: &'static str,
    column: &'static str,
    text: &str,
    read: impl FnOnce(&str) -> Option<T>,
) -> Result<T, BadRow> {
    read(text).ok_or_else(|| BadRow::new(table, column, text))
}

/// Reads the word of a view.
pub(crate) fn view_from_word(text: &str) -> Option<View> {
    [View::InPlace, View::Plain]
        .into_iter()
        .find(|view| view.word() == text)
}

/// Returns the exact bytes of a path, UTF-8 or not.
pub(crate) fn path_to_bytes(path: &Path) -> Vec<u8> {
    path.as_os_str().as_bytes().to_vec()
}

/// Reads them back.
pub(crate) fn path_from_bytes(bytes: Vec<u8>) -> PathBuf {
    OsString::from_vec(bytes).into()
}

/// Encodes pairs of paths: each path as its length, 4 bytes big endian, and
/// its bytes.
pub(crate) fn binds_to_bytes(binds: &[(PathBuf, PathBuf)]) -> Vec<u8> {
    let mut out = Vec::new();
    for path in binds.iter().flat_map(|(what, at)| [what, at]) {
        let bytes = path.as_os_str().as_bytes();
        let length = u32::try_from(bytes.len()).expect("a path has under 2^32 bytes");
        out.extend_from_slice(&length.to_be_bytes());
        out.extend_from_slice(bytes);
    }
    out
}

/// Reads them back; `None` for bytes that are not the encoding.
pub(crate) fn binds_from_bytes(mut bytes: &[u8]) -> Option<Vec<(PathBuf, PathBuf)>> {
    let mut path = || -> Option<PathBuf> {
        let (length, rest) = bytes.split_first_chunk()?;
        let length = usize::try_from(u32::from_be_bytes(*length)).ok()?;
        let (path, rest) = rest.split_at_checked(length)?;
        bytes = rest;
        Some(path_from_bytes(path.to_vec()))
    };
    let mut binds = Vec::new();
    while let Some(what) = path() {
        binds.push((what, path()?));
    }
    bytes.is_empty().then_some(binds)
}

/// Encodes pairs of relative paths in the same way.
pub(crate) fn rel_pairs_to_bytes(pairs: &[(RelPath, RelPath)]) -> Vec<u8> {
    let path = |rel: &RelPath| PathBuf::from(rel.as_str());
    let pairs: Vec<_> = pairs.iter().map(|(a, b)| (path(a), path(b))).collect();
    binds_to_bytes(&pairs)
}

/// Reads them back; `None` for bytes that are not the encoding.
pub(crate) fn rel_pairs_from_bytes(bytes: &[u8]) -> Option<Vec<(RelPath, RelPath)>> {
    let rel = |path: PathBuf| RelPath::from_bytes(path.as_os_str().as_bytes()).ok();
    binds_from_bytes(bytes)?
        .into_iter()
        .map(|(a, b)| Some((rel(a)?, rel(b)?)))
        .collect()
}

/// The columns of an owner: all there, or none.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct OwnerColumns {
    /// The host.
    pub(crate) host: Option<String>,
    /// The boot id.
    pub(crate) boot: Option<String>,
    /// The pid namespace.
    pub(crate) space: Option<i64>,
    /// The process id.
    pub(crate) pid: Option<i64>,
    /// The start time.
    pub(crate) started: Option<i64>,
}

impl OwnerColumns {
    /// Spreads an owner over the columns.
    pub(crate) fn of(owner: Option<&Owner>) -> Self {
        let Some(owner) = owner else {
            return Self::default();
        };
        let Owner {
            host,
            boot,
            pid_namespace,
            pid,
            started,
        } = owner;
        Self {
            host: Some(host.clone()),
            boot: Some(boot.clone()),
            space: Some(pid_namespace.cast_signed()),
            pid: Some(i64::from(*pid)),
            started: Some(started.cast_signed()),
        }
    }

    /// Reads them back.
    pub(crate) fn read(self, table: &'static str) -> Result<Option<Owner>, BadRow> {
        let Self {
            host,
            boot,
            space,
            pid,
            started,
        } = self;
        match (host, boot, space, pid, started) {
            (None, None, None, None, None) => Ok(None),
            (Some(host), Some(boot), Some(space), Some(pid), Some(started)) => Ok(Some(Owner {
                host,
                boot,
                pid_namespace: space.cast_unsigned(),
                pid: u32::try_from(pid)
                    .map_err(|_| BadRow::new(table, "owner_pid", &pid.to_string()))?,
                started: started.cast_unsigned(),
            })),
            _ => Err(BadRow::new(table, "owner_pid", "an owner in part")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn binds_come_back_and_every_cut_is_refused() {
        let path = |bytes: &[u8]| path_from_bytes(bytes.to_vec());
        let binds = vec![
            (path(b"/a\xff"), path(b"")),
            (path(b"/\xe2\x82\xac"), path(b"/x\ny")),
        ];
        let bytes = binds_to_bytes(&binds);
        assert_eq!(binds_from_bytes(&bytes), Some(binds.clone()));
        assert_eq!(binds_from_bytes(&[]), Some(Vec::new()));
        let first_pair = binds_to_bytes(&binds[..1]).len();
        for cut in (1..bytes.len()).filter(|cut| *cut != first_pair) {
            assert_eq!(binds_from_bytes(&bytes[..cut]), None, "cut at {cut}");
        }
    }
}
