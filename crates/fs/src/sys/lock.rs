//! Advisory locks that die with the process.

use std::os::fd::{AsFd, OwnedFd};

use rustix::fs::FlockOperation;
use rustix::io::Errno;

use super::dir::retry;

/// A lock on an open file or directory; released when dropped.
#[derive(Debug)]
pub struct FileLock {
    fd: OwnedFd,
}

impl FileLock {
    /// Returns the locked file.
    pub fn file(&self) -> &OwnedFd {
        &self.fd
    }
}

/// Waits for a lock that several may hold.
pub fn lock_shared(fd: impl Into<OwnedFd>) -> Result<FileLock, Errno> {
    lock(fd.into(), FlockOperation::LockShared)
}

/// Waits for a lock that one may hold.
pub fn lock_exclusive(fd: impl Into<OwnedFd>) -> Result<FileLock, Errno> {
    lock(fd.into(), FlockOperation::LockExclusive)
}

/// Takes the lock that one may hold, or returns EWOULDBLOCK.
pub fn try_lock_exclusive(fd: impl Into<OwnedFd>) -> Result<FileLock, Errno> {
    let fd = fd.into();
    loop {
        match rustix::fs::flock(fd.as_fd(), FlockOperation::NonBlockingLockExclusive) {
            Err(Errno::INTR) => {}
            Err(other) => return Err(other),
            Ok(()) => return Ok(FileLock { fd }),
        }
    }
}

fn lock(fd: OwnedFd, operation: FlockOperation) -> Result<FileLock, Errno> {
    retry(|| rustix::fs::flock(fd.as_fd(), operation))?;
    Ok(FileLock { fd })
}
