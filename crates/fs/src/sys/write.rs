//! Mutating calls; each one is a numbered effect. None follows a symlink.

use std::num::NonZeroU64;
use std::os::fd::{AsFd, OwnedFd};

use rustix::fs::{Advice, AtFlags, Gid, Mode, OFlags, RenameFlags, Timespec, Timestamps, Uid};
use rustix::io::Errno;
use rustix::path::Arg;
use sandbar_ports::effect::{effect, planted};

use super::dir::retry;

/// Performs one mutating call as one effect; a call that a signal interrupted
/// did nothing, and is made again.
pub(super) fn change<T>(
    name: &'static str,
    mut call: impl FnMut() -> Result<T, Errno>,
) -> Result<T, Errno> {
    retry(|| effect(name, &mut call))
}

/// Makes a regular file where nothing is (EEXIST), open for reading and
/// writing. The umask applies.
pub fn create_new(dir: impl AsFd, name: impl Arg, mode: u32) -> Result<OwnedFd, Errno> {
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let name = name.as_cow_c_str()?;
    change("create-file", || {
        rustix::fs::openat(&dir, &*name, flags, Mode::from_raw_mode(mode))
    })
}

/// Writes all of `bytes` at the current offset.
pub fn write_all(fd: impl AsFd, bytes: &[u8]) -> Result<(), Errno> {
    change("write", || {
        let mut rest = bytes;
        while !rest.is_empty() {
            let count = retry(|| rustix::io::write(&fd, rest))?;
            rest = &rest[count..];
        }
        Ok(())
    })
}

/// Writes all of `bytes` at `offset`.
pub fn write_at(fd: impl AsFd, bytes: &[u8], offset: u64) -> Result<(), Errno> {
    change("write-at", || {
        let (mut rest, mut at) = (bytes, offset);
        while !rest.is_empty() {
            let count = retry(|| rustix::io::pwrite(&fd, rest, at))?;
            rest = &rest[count..];
            at += u64::try_from(count).expect("a count fits 64 bits");
        }
        Ok(())
    })
}

/// Opens `name` in `dir` for appending; made with `mode` when missing.
pub fn append(dir: impl AsFd, name: impl Arg, mode: u32) -> Result<OwnedFd, Errno> {
    let flags = OFlags::RDWR
        | OFlags::CREATE
        | OFlags::APPEND
        | OFlags::NOFOLLOW
        | OFlags::NONBLOCK
        | OFlags::CLOEXEC;
    let name = name.as_cow_c_str()?;
    change("open-append", || {
        rustix::fs::openat(&dir, &*name, flags, Mode::from_raw_mode(mode))
    })
}

/// Makes the content of a file durable. A failure is final: the kernel may
/// have dropped the pages, so a second call proves nothing.
pub fn sync_file(fd: impl AsFd) -> Result<(), Errno> {
    if planted("skip-file-fsync") {
        return Ok(());
    }
    change("fsync-file", || rustix::fs::fsync(&fd))
}

/// Makes the names in a directory durable. A failure is final.
pub fn sync_dir(dir: impl AsFd) -> Result<(), Errno> {
    if planted("skip-directory-fsync") {
        return Ok(());
    }
    change("fsync-dir", || rustix::fs::fsync(&dir))
}

/// Makes everything on the volume of an open directory durable. A failure is
/// final.
pub fn sync_volume(dir: impl AsFd) -> Result<(), Errno> {
    change("sync-volume", || rustix::fs::syncfs(&dir))
}

/// Asks the kernel to begin writing a range back, without waiting. Only a
/// hint: what fails shows in the fsync that follows.
pub fn start_writeback(fd: impl AsFd, offset: u64, length: u64) {
    // On Linux this advice starts writeback of dirty pages at once.
    let _ = rustix::fs::fadvise(fd, offset, NonZeroU64::new(length), Advice::DontNeed);
}

/// Makes a directory where nothing is (EEXIST). The umask applies.
pub fn make_dir(dir: impl AsFd, name: impl Arg, mode: u32) -> Result<(), Errno> {
    let name = name.as_cow_c_str()?;
    change("mkdir", || {
        rustix::fs::mkdirat(&dir, &*name, Mode::from_raw_mode(mode))
    })
}

/// Makes a symlink where nothing is (EEXIST).
pub fn symlink(dir: impl AsFd, name: impl Arg, target: impl Arg) -> Result<(), Errno> {
    let (name, target) = (name.as_cow_c_str()?, target.as_cow_c_str()?);
    change("symlink", || rustix::fs::symlinkat(&*target, &dir, &*name))
}

/// Renames, replacing what is there: for Sandbar's own data only.
pub fn rename(from: impl AsFd, old: impl Arg, to: impl AsFd, new: impl Arg) -> Result<(), Errno> {
    let (old, new) = (old.as_cow_c_str()?, new.as_cow_c_str()?);
    change("rename", || rustix::fs::renameat(&from, &*old, &to, &*new))
}

/// Renames to a name that must be free (EEXIST).
pub fn rename_new(
    from: impl AsFd,
    old: impl Arg,
    to: impl AsFd,
    new: impl Arg,
) -> Result<(), Errno> {
    let (old, new) = (old.as_cow_c_str()?, new.as_cow_c_str()?);
    change("rename-noreplace", || {
        rustix::fs::renameat_with(&from, &*old, &to, &*new, RenameFlags::NOREPLACE)
    })
}

/// Exchanges two names: each leads to what the other led to.
pub fn exchange(from: impl AsFd, old: impl Arg, to: impl AsFd, new: impl Arg) -> Result<(), Errno> {
    let (old, new) = (old.as_cow_c_str()?, new.as_cow_c_str()?);
    change("rename-exchange", || {
        rustix::fs::renameat_with(&from, &*old, &to, &*new, RenameFlags::EXCHANGE)
    })
}

/// Removes a name that is not a directory.
pub fn remove_file(dir: impl AsFd, name: impl Arg) -> Result<(), Errno> {
    let name = name.as_cow_c_str()?;
    change("unlink", || {
        rustix::fs::unlinkat(&dir, &*name, AtFlags::empty())
    })
}

/// Removes an empty directory.
pub fn remove_dir(dir: impl AsFd, name: impl Arg) -> Result<(), Errno> {
    let name = name.as_cow_c_str()?;
    change("rmdir", || {
        rustix::fs::unlinkat(&dir, &*name, AtFlags::REMOVEDIR)
    })
}

/// Makes a further name of a file; a symlink is linked itself.
pub fn link(from: impl AsFd, old: impl Arg, to: impl AsFd, new: impl Arg) -> Result<(), Errno> {
    let (old, new) = (old.as_cow_c_str()?, new.as_cow_c_str()?);
    change("link", || {
        rustix::fs::linkat(&from, &*old, &to, &*new, AtFlags::empty())
    })
}

/// Makes `to` share the extents of `from`, where the file system can.
pub fn clone_into(to: impl AsFd, from: impl AsFd) -> Result<(), Errno> {
    change("clone-file", || rustix::fs::ioctl_ficlone(&to, &from))
}

/// Sets the permission bits of an open file or directory.
pub fn chmod_fd(fd: impl AsFd, mode: u32) -> Result<(), Errno> {
    change("chmod", || {
        rustix::fs::fchmod(&fd, Mode::from_raw_mode(mode & 0o7777))
    })
}

/// Sets the owner of `name`, a symlink itself included.
pub fn chown_at(dir: impl AsFd, name: impl Arg, uid: u32, gid: u32) -> Result<(), Errno> {
    let name = name.as_cow_c_str()?;
    change("chown", || {
        rustix::fs::chownat(
            &dir,
            &*name,
            Some(Uid::from_raw(uid)),
            Some(Gid::from_raw(gid)),
            AtFlags::SYMLINK_NOFOLLOW,
        )
    })
}

/// Sets access and modification time of an open file or directory.
pub fn set_times_fd(fd: impl AsFd, atime_ns: i128, mtime_ns: i128) -> Result<(), Errno> {
    let times = stamps(atime_ns, mtime_ns)?;
    change("set-times", || rustix::fs::futimens(&fd, &times))
}

/// Sets access and modification time of `name`, a symlink itself included.
pub fn set_times_at(
    dir: impl AsFd,
    name: impl Arg,
    atime_ns: i128,
    mtime_ns: i128,
) -> Result<(), Errno> {
    let times = stamps(atime_ns, mtime_ns)?;
    let name = name.as_cow_c_str()?;
    change("set-times", || {
        rustix::fs::utimensat(&dir, &*name, &times, AtFlags::SYMLINK_NOFOLLOW)
    })
}

fn stamps(atime_ns: i128, mtime_ns: i128) -> Result<Timestamps, Errno> {
    Ok(Timestamps {
        last_access: stamp(atime_ns)?,
        last_modification: stamp(mtime_ns)?,
    })
}

fn stamp(ns: i128) -> Result<Timespec, Errno> {
    const SECOND: i128 = 1_000_000_000;
    Ok(Timespec {
        tv_sec: i64::try_from(ns.div_euclid(SECOND)).map_err(|_| Errno::INVAL)?,
        tv_nsec: i64::try_from(ns.rem_euclid(SECOND)).map_err(|_| Errno::INVAL)?,
    })
}
