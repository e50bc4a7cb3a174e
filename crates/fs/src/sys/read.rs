//! Reading: files that cannot block, links, listings.

use std::ffi::CString;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};

use rustix::fs::{Mode, OFlags, RawDir};
use rustix::io::Errno;
use rustix::path::Arg;
use sandbar_ports::effect::planted;

use super::dir::{quietly, retry};
use super::stat::{Seen, Type, stat_fd};

/// Opens `name` in `dir` for reading, without following a symlink (ELOOP) and
/// without waiting for a FIFO, and looks at it. Reading leaves no trace in
/// the access time where the kernel allows it. The caller checks the type.
pub fn open_readable(dir: impl AsFd, name: impl Arg) -> Result<(OwnedFd, Seen), Errno> {
    let mut flags =
        OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    if planted("follow-leaf-symlink") {
        flags.remove(OFlags::NOFOLLOW);
    }
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

#[cfg(test)]
mod tests {
    #![allow(
        clippy::disallowed_methods,
        reason = "tests set the stage with plain files"
    )]
    use super::*;
    use crate::sys::open_dir;

    #[test]
    fn a_fifo_without_a_writer_does_not_block() {
        let temp = tempfile::tempdir().unwrap();
        let path = temp.path().join("pipe");
        rustix::fs::mknodat(
            rustix::fs::CWD,
            &path,
            rustix::fs::FileType::Fifo,
            Mode::from_raw_mode(0o600),
            0,
        )
        .unwrap();
        let dir = open_dir(temp.path()).unwrap();
        let (_, seen) = open_readable(&dir, "pipe").unwrap();
        assert_eq!(seen.kind, Type::Other("a FIFO"));
    }

    #[test]
    fn reading_tells_more_from_less() {
        let temp = tempfile::tempdir().unwrap();
        std::fs::write(temp.path().join("f"), "hello").unwrap();
        let dir = open_dir(temp.path()).unwrap();
        let open = || open_readable(&dir, "f").unwrap().0;
        let mut buffer = Vec::new();
        for (expected, have) in [(5, 5), (4, 5), (2, 3), (9, 5)] {
            assert_eq!(
                read_into(open(), &mut buffer, expected),
                Ok(have),
                "{expected}"
            );
            assert_eq!(buffer[..have], b"hello"[..have]);
        }
        assert_eq!(read_small(open(), 0, 5).unwrap(), b"hello");
        assert_eq!(read_small(open(), 5, 4), Err(Errno::FBIG));
        let mut exact = [0; 3];
        assert_eq!(pread_exact(open(), &mut exact, 2), Ok(()));
        assert_eq!(&exact, b"llo");
        assert_eq!(pread_exact(open(), &mut exact, 3), Err(Errno::IO));
    }

    #[test]
    fn long_listings_are_complete_and_sorted() {
        let temp = tempfile::tempdir().unwrap();
        let mut names: Vec<_> = (0..3000)
            .map(|n| format!("{n}-{}", "x".repeat(100)))
            .collect();
        for name in &names {
            std::fs::write(temp.path().join(name), "").unwrap();
        }
        names.sort();
        let dir = open_dir(temp.path()).unwrap();
        let found = Listing::default().sorted(&dir).unwrap();
        assert!(found.iter().all(|entry| entry.kind == Type::File));
        assert!(found.iter().map(|e| e.name.to_str().unwrap()).eq(&names));
    }
}
