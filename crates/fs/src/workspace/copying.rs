//! Copying one file, symlink or directory with mode, owner and times: the
//! explicit byte copy that other backends are judged by.

use std::os::fd::{AsFd, OwnedFd};
use std::sync::OnceLock;

use sandbar_ports::workspace::FileStat;

use crate::sys::{self, Dir, Errno, Seen};

/// Says whether owners can be kept.
fn may_chown() -> bool {
    static ROOT: OnceLock<bool> = OnceLock::new();
    *ROOT.get_or_init(|| rustix::process::geteuid().is_root())
}

/// The mode a new copy is made with: never more open than the original.
pub(crate) fn first_mode(source: &Seen) -> u32 {
    source.stat.mode & 0o777
}

/// Gives an open copy the owner, mode and times of its original.
pub(crate) fn like_original(
    fd: &OwnedFd,
    dir: &Dir,
    name: &str,
    source: &Seen,
) -> Result<FileStat, Errno> {
    sys::set_times_fd(fd, source.atime_ns, source.stat.mtime_ns)?;
    let copy = sys::stat_fd(fd)?.stat;
    if !fix_owner_and_mode(fd.as_fd(), dir, name, source, &copy)? {
        return Ok(copy);
    }
    Ok(sys::stat_fd(fd)?.stat)
}

/// Gives an open directory the owner, mode and times of its original.
pub(crate) fn directory_like_original(copy: &Dir, source: &Seen) -> Result<(), Errno> {
    let now = copy.stat_self()?.stat;
    fix_owner_and_mode(copy.as_fd(), copy, ".", source, &now)?;
    sys::set_times_fd(copy, source.atime_ns, source.stat.mtime_ns)
}

fn fix_owner_and_mode(
    fd: impl AsFd,
    dir: &Dir,
    name: &str,
    source: &Seen,
    copy: &FileStat,
) -> Result<bool, Errno> {
    let owner = may_chown() && (copy.uid, copy.gid) != (source.stat.uid, source.stat.gid);
    if owner {
        sys::chown_at(dir, name, source.stat.uid, source.stat.gid)?;
    }
    // A change of owner clears the set-id bits.
    let mode =
        (copy.mode ^ source.stat.mode) & 0o7777 != 0 || (owner && source.stat.mode & 0o6000 != 0);
    if mode {
        sys::chmod_fd(fd, source.stat.mode)?;
    }
    Ok(owner || mode)
}

/// Makes a symlink like its original.
pub(crate) fn symlink_like_original(
    dir: &Dir,
    name: &str,
    target: &[u8],
    source: &Seen,
) -> Result<FileStat, Errno> {
    sys::symlink(dir, name, target)?;
    let copy = dir.stat(name)?.stat;
    if may_chown() && (copy.uid, copy.gid) != (source.stat.uid, source.stat.gid) {
        sys::chown_at(dir, name, source.stat.uid, source.stat.gid)?;
    }
    sys::set_times_at(dir, name, source.atime_ns, source.stat.mtime_ns)?;
    Ok(dir.stat(name)?.stat)
}
