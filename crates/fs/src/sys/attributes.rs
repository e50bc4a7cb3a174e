//! Extended attributes, and writing a file where it stands.

use std::ffi::CString;
use std::os::fd::{AsFd, OwnedFd};

use rustix::fs::{Mode, OFlags, XattrFlags};
use rustix::io::Errno;
use rustix::path::Arg;

use super::dir::retry;
use super::stat::{Seen, stat_fd};
use super::write::change;

/// The largest list or value that the kernel gives.
const LIMIT: usize = 64 * 1024;

/// Returns the names of the extended attributes of an open file; none where
/// the file system has none.
pub fn list_attributes(fd: impl AsFd) -> Result<Vec<CString>, Errno> {
    match rustix::fs::flistxattr_query(&fd) {
        Ok(0) | Err(Errno::NOTSUP) => return Ok(Vec::new()),
        Ok(_) => {}
        Err(errno) => return Err(errno),
    }
    let mut names: Vec<u8> = Vec::with_capacity(LIMIT);
    rustix::fs::flistxattr(&fd, rustix::buffer::spare_capacity(&mut names))?;
    Ok(names
        .split(|byte| *byte == 0)
        .filter(|name| !name.is_empty())
        .filter_map(|name| CString::new(name).ok())
        .collect())
}

/// Returns the value of one extended attribute of an open file.
pub fn get_attribute(fd: impl AsFd, name: &CString) -> Result<Vec<u8>, Errno> {
    let mut value: Vec<u8> = Vec::with_capacity(LIMIT);
    rustix::fs::fgetxattr(&fd, name, rustix::buffer::spare_capacity(&mut value))?;
    Ok(value)
}

/// Sets one extended attribute of an open file.
pub fn set_attribute(fd: impl AsFd, name: &CString, value: &[u8]) -> Result<(), Errno> {
    change("set-xattr", || {
        rustix::fs::fsetxattr(&fd, name, value, XattrFlags::empty())
    })
}

/// Opens the file `name` in `dir` for reading and writing, as it is: nothing
/// is cut off, no symlink is followed.
pub fn open_in_place(dir: impl AsFd, name: impl Arg) -> Result<(OwnedFd, Seen), Errno> {
    let flags =
        OFlags::RDWR | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let name = name.as_cow_c_str()?;
    let fd = retry(|| rustix::fs::openat(&dir, &*name, flags, Mode::empty()))?;
    let seen = stat_fd(&fd)?;
    Ok((fd, seen))
}

/// Cuts an open file off, or fills it up, at `length` bytes.
pub fn set_length(fd: impl AsFd, length: u64) -> Result<(), Errno> {
    change("truncate", || rustix::fs::ftruncate(&fd, length))
}
