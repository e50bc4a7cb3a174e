//! Reading: files that cannot block, links, listings.

use std::ffi::CString;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};

use rustix::fs::{Mode, OFlags, RawDir};
use rustix::io::Errno;
use rustix::path::Arg;

use super::dir::{quietly, retry};
use super::stat::{Seen, Type, stat_fd};

/// Opens `name` in `dir` for reading, without following a symlink (ELOOP) and
/// without waiting for a FIFO, and looks at it. Reading leaves no trace in
/// the access time where the kernel allows it. The caller checks the type.
pub fn open_readable(dir: impl AsFd, name: impl Arg) -> Result<(OwnedFd, Seen), Errno> {
    let flags =
        OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let name = name.as_cow_c_str()?;
    let fd =
        quietly(|quiet| retry(|| rustix::fs::openat(&dir, &*name, flags | quiet, Mode::empty())))?;
    let seen = stat_fd(&fd)?;
    Ok((fd, seen))
}

/// Reads the next bytes; 0 at the end.
pub fn read_some(fd: impl AsFd, buffer: &mut [u8]) -> Result<usize, Errno> {
    retry(|| rustix::io::read(&fd, &mut *buffer))
}

/// Reads some bytes at `offset`; 0 at the end.
pub fn pread_some(fd: impl AsFd, buffer: &mut [u8], offset: u64) -> Result<usize, Errno> {
    retry(|| rustix::io::pread(&fd, &mut *buffer, offset))
}

/// Fills `buffer` from `offset`. Errors: EIO where the file ends before.
pub fn pread_exact(fd: impl AsFd, buffer: &mut [u8], offset: u64) -> Result<(), Errno> {
    let mut done = 0;
    while done < buffer.len() {
        let at = offset + u64::try_from(done).expect("a buffer length fits 64 bits");
        match pread_some(&fd, &mut buffer[done..], at)? {
            0 => return Err(Errno::IO),
            count => done += count,
        }
    }
    Ok(())
}

/// Reads a file that should have `expected` bytes to the front of `buffer`,
/// which grows as needed; returns how many there were, at most one more than
/// expected.
pub fn read_into(fd: impl AsFd, buffer: &mut Vec<u8>, expected: u64) -> Result<usize, Errno> {
    let expected = usize::try_from(expected).map_err(|_| Errno::FBIG)?;
    if buffer.len() <= expected {
        buffer.resize(expected + 1, 0);
    }
    let mut have = 0;
    while have <= expected {
        let count = read_some(&fd, &mut buffer[have..=expected])?;
        have += count;
        // A regular file gives fewer bytes than asked for only at its end.
        if count == 0 || have == expected {
            break;
        }
    }
    Ok(have)
}

/// Reads to the end. Errors: EFBIG past `limit` bytes.
pub fn read_small(fd: impl AsFd, hint: u64, limit: u64) -> Result<Vec<u8>, Errno> {
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    let hint = usize::try_from(hint).unwrap_or(limit).min(limit);
    // One byte more than expected, so that the end shows without growing.
    let mut bytes = vec![0; hint.saturating_add(1)];
    let mut have = 0;
    loop {
        if have == bytes.len() {
            bytes.resize(bytes.len() * 2 + 4096, 0);
        }
        match read_some(&fd, &mut bytes[have..])? {
            0 => break,
            count => have += count,
        }
        if have > limit {
            return Err(Errno::FBIG);
        }
    }
    bytes.truncate(have);
    Ok(bytes)
}

/// Reads the target of the symlink `name`.
pub fn read_link(dir: impl AsFd, name: impl Arg) -> Result<Vec<u8>, Errno> {
    rustix::fs::readlinkat(dir, name, Vec::with_capacity(256)).map(CString::into_bytes)
}

/// One name of a listing.
#[derive(Debug, Clone)]
pub struct Listed {
    /// The name, as the kernel gives it.
    pub name: CString,
    /// Its type, where the file system says.
    pub kind: Type,
}

/// Lists directories with one buffer for all of them.
#[derive(Debug)]
pub struct Listing {
    buffer: Vec<u8>,
}

impl Default for Listing {
    fn default() -> Self {
        Self {
            buffer: Vec::with_capacity(64 * 1024),
        }
    }
}

impl Listing {
    /// Calls `each` for every entry but `.` and `..`, in no order. The
    /// descriptor must not have been listed before.
    pub fn each(
        &mut self,
        dir: impl AsFd,
        mut each: impl FnMut(&std::ffi::CStr, Type),
    ) -> Result<(), Errno> {
        let spare: &mut [MaybeUninit<u8>] = self.buffer.spare_capacity_mut();
        let mut entries = RawDir::new(dir, spare);
        while let Some(entry) = entries.next() {
            let entry = match entry {
                Err(Errno::INTR) => continue,
                other => other?,
            };
            let name = entry.file_name();
            if !matches!(name.to_bytes(), b"." | b"..") {
                each(name, entry.file_type().into());
            }
        }
        Ok(())
    }

    /// Returns every entry but `.` and `..`, sorted by bytes.
    pub fn sorted(&mut self, dir: impl AsFd) -> Result<Vec<Listed>, Errno> {
        let mut all = Vec::new();
        self.each(dir, |name, kind| {
            all.push(Listed {
                name: name.to_owned(),
                kind,
            });
        })?;
        all.sort_unstable_by(|a, b| a.name.cmp(&b.name));
        Ok(all)
    }
}
