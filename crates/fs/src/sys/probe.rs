//! Questions about what could be done, answered without doing it.

use std::os::fd::AsFd;

use rustix::fs::{Access, AtFlags, RenameFlags, StatVfsMountFlags, StatxAttributes, StatxFlags};
use rustix::io::Errno;

use super::write::change;

/// Says whether the process may list, make and remove names in `dir`.
/// Errors: EACCES, EROFS.
pub fn may_write_dir(dir: impl AsFd) -> Result<(), Errno> {
    let access = Access::READ_OK | Access::WRITE_OK | Access::EXEC_OK;
    rustix::fs::accessat(&dir, c".", access, AtFlags::EACCESS)
}

/// Says whether a rename from one directory to the other stays on one mount.
/// A name that does not exist is renamed: the kernel looks at the mounts
/// first, so nothing is touched either way.
pub fn same_mount(a: impl AsFd, b: impl AsFd, missing: &str) -> Result<bool, Errno> {
    let flags = RenameFlags::NOREPLACE;
    match change("probe-mount", || {
        rustix::fs::renameat_with(&a, missing, &b, missing, flags)
    }) {
        Err(Errno::NOENT) | Ok(()) => Ok(true),
        Err(Errno::XDEV) => Ok(false),
        // A file system without the flag: the plain call answers as well.
        Err(Errno::INVAL | Errno::NOSYS) => {
            match change("probe-mount", || {
                rustix::fs::renameat(&a, missing, &b, missing)
            }) {
                Err(Errno::NOENT) | Ok(()) => Ok(true),
                Err(Errno::XDEV) => Ok(false),
                Err(errno) => Err(errno),
            }
        }
        Err(errno) => Err(errno),
    }
}

/// Says whether the file system of an open directory is mounted read-only.
pub fn is_read_only(dir: impl AsFd) -> Result<bool, Errno> {
    let s = rustix::fs::fstatvfs(&dir)?;
    Ok(s.f_flag.contains(StatVfsMountFlags::RDONLY))
}

/// Says whether `name` in `dir` may never be changed or removed (`chattr`).
pub fn is_immutable(dir: impl AsFd, name: &str) -> Result<bool, Errno> {
    let flags = AtFlags::SYMLINK_NOFOLLOW | AtFlags::NO_AUTOMOUNT;
    let s = rustix::fs::statx(&dir, name, flags, StatxFlags::TYPE)?;
    let fixed = StatxAttributes::IMMUTABLE | StatxAttributes::APPEND;
    Ok(s.stx_attributes.intersects(fixed))
}

/// Who the process acts as on files.
#[derive(Debug, Clone)]
pub struct Actor {
    /// The effective user.
    pub uid: u32,
    groups: Vec<u32>,
}

impl Actor {
    /// Reads it from the process.
    pub fn current() -> Self {
        let mut groups: Vec<u32> = rustix::process::getgroups()
            .unwrap_or_default()
            .into_iter()
            .map(rustix::process::Gid::as_raw)
            .collect();
        groups.push(rustix::process::getegid().as_raw());
        Self {
            uid: rustix::process::geteuid().as_raw(),
            groups,
        }
    }

    /// Says whether it may give files away.
    pub fn is_root(&self) -> bool {
        self.uid == 0
    }

    /// Says whether it can make a file of this owner and group.
    pub fn can_own(&self, uid: u32, gid: u32) -> bool {
        self.is_root() || (self.uid == uid && self.groups.contains(&gid))
    }
}
