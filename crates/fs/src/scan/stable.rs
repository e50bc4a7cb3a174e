//! Reading one file that others may write: stat, read, stat, and again if it
//! moved (PLN-5).

use std::os::fd::OwnedFd;

use sandbar_domain::{Code, RelPath};
use sandbar_ports::{PortError, PortResult};

use super::mount_inside;
use crate::sys::{self, Dir, Errno, Seen, Type, fail};

/// Readings before a file counts as unstable.
const ATTEMPTS: usize = 6;
/// Files up to this size are read in one piece.
pub(crate) const BUFFER: u64 = 1 << 20;

/// Opens the regular file `name` and hands it to `read` until its stat is the
/// same before and after, and `read` says it saw as many bytes as the stat
/// does. `None` when it is gone, or no regular file any more. Errors:
/// `unstable_file`, `mount_inside`, `permission_denied`.
pub(crate) fn settle<T>(
    dir: &Dir,
    name: &str,
    path: &RelPath,
    mut read: impl FnMut(&OwnedFd, &Seen) -> PortResult<(T, u64)>,
) -> PortResult<Option<(T, Seen)>> {
    for _ in 0..ATTEMPTS {
        let (fd, before) = match sys::open_readable(dir, name) {
            Err(Errno::NOENT | Errno::LOOP | Errno::NXIO) => return Ok(None),
            other => other.map_err(|errno| fail("read", path, errno))?,
        };
        if before.mount_root {
            return Err(mount_inside(path));
        }
        if before.kind != Type::File {
            return Ok(None);
        }
        let (value, length) = read(&fd, &before)?;
        let after = sys::stat_fd(&fd).map_err(|errno| fail("stat", path, errno))?;
        if length == before.stat.size && before.same_state(&after) {
            return Ok(Some((value, before)));
        }
    }
    Err(unstable(path))
}

/// Returns the error for a file that will not hold still.
pub(crate) fn unstable(path: &RelPath) -> PortError {
    PortError::new(
        Code::UnstableFile,
        format!("read {path}: it changed each time it was read"),
    )
    .with_subjects([path.as_str()])
}
