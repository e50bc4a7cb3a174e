//! Reads small files of a git directory or a working tree that gix has no
//! call for. Must never write, create or follow what it was not told to.
#![allow(
    clippy::disallowed_methods,
    reason = "the only module of this crate that reads files by itself; it writes none"
)]

use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use rustix::fd::OwnedFd;
use rustix::fs::{AtFlags, FileType, Mode, OFlags};
use rustix::io::Errno;
use sandbar_domain::{Code, Kind, RelPath};
use sandbar_ports::workspace::FileStat;
use sandbar_ports::{PortError, PortResult};

use crate::index::Stat;

/// The most that a rule file, a ref list or a state file may have, in bytes.
pub(crate) const SMALL: u64 = 256 << 20;

/// Reads a regular file; `None` if there is none. A symlink is no file.
pub(crate) fn file(path: &Path) -> PortResult<Option<Vec<u8>>> {
    read(path, OFlags::NOFOLLOW)
}

/// Reads a regular file through symlinks, as git does for files of the user's
/// own configuration; `None` if there is none.
pub(crate) fn followed(path: &Path) -> PortResult<Option<Vec<u8>>> {
    read(path, OFlags::empty())
}

fn read(path: &Path, flags: OFlags) -> PortResult<Option<Vec<u8>>> {
    let flags = flags | OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
    let opened = match rustix::fs::open(path, flags, Mode::empty()) {
        Ok(opened) => opened,
        Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP | Errno::ISDIR) => return Ok(None),
        Err(errno) => return Err(failed(path, errno.into())),
    };
    let stat = rustix::fs::fstat(&opened).map_err(|errno| failed(path, errno.into()))?;
    if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
        return Ok(None);
    }
    let size = u64::try_from(stat.st_size).unwrap_or(0);
    if size > SMALL {
        return Err(PortError::new(
            Code::RepositoryRefused,
            format!("read {}: larger than {SMALL} bytes", path.display()),
        ));
    }
    let mut bytes = Vec::with_capacity(usize::try_from(size).unwrap_or(0) + 1);
    File::from(opened)
        .take(SMALL)
        .read_to_end(&mut bytes)
        .map_err(|error| failed(path, error))?;
    Ok(Some(bytes))
}

/// Reads what a tree would hold of a path: a file's bytes or a symlink's
/// target; `None` for a directory and where nothing is.
pub(crate) fn content(path: &Path) -> PortResult<Option<(Kind, Vec<u8>)>> {
    let Ok(stat) = rustix::fs::lstat(path) else {
        return Ok(None);
    };
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::Symlink => {
            let target = rustix::fs::readlink(path, Vec::new())
                .map_err(|errno| failed(path, errno.into()))?;
            Ok(Some((Kind::Symlink, target.into_bytes())))
        }
        FileType::RegularFile if stat.st_mode & 0o100 != 0 => {
            Ok(file(path)?.map(|bytes| (Kind::Executable, bytes)))
        }
        FileType::RegularFile => Ok(file(path)?.map(|bytes| (Kind::File, bytes))),
        _ => Ok(None),
    }
}

/// Says what kind of thing is at `path`, without following a symlink.
pub(crate) fn kind(path: &Path) -> Option<FileType> {
    let stat = rustix::fs::lstat(path).ok()?;
    Some(FileType::from_raw_mode(stat.st_mode))
}

/// Says whether anything is at `path`.
pub(crate) fn present(path: &Path) -> bool {
    kind(path).is_some()
}

/// Lists the names in a directory, sorted; none if there is no directory.
pub(crate) fn names(path: &Path) -> PortResult<Vec<String>> {
    let listing = match std::fs::read_dir(path) {
        Ok(listing) => listing,
        Err(error)
            if matches!(
                error.kind(),
                std::io::ErrorKind::NotFound | std::io::ErrorKind::NotADirectory
            ) =>
        {
            return Ok(Vec::new());
        }
        Err(error) => return Err(failed(path, error)),
    };
    let mut names = Vec::new();
    for entry in listing {
        let entry = entry.map_err(|error| failed(path, error))?;
        if let Ok(name) = entry.file_name().into_string() {
            names.push(name);
        }
    }
    names.sort_unstable();
    Ok(names)
}

/// Resolves all symlinks of an existing path.
pub(crate) fn resolved(path: &Path) -> PortResult<PathBuf> {
    std::fs::canonicalize(path).map_err(|error| failed(path, error))
}

/// Returns what tells one version of a file from another: size, modification
/// and change time, inode; `None` if there is no file.
pub(crate) fn stamp(path: &Path) -> Option<[i128; 4]> {
    let stat = rustix::fs::stat(path).ok()?;
    let nanos = |seconds: i64, nanos| i128::from(seconds) * 1_000_000_000 + nanos;
    Some([
        i128::from(stat.st_size),
        nanos(stat.st_mtime, i128::from(stat.st_mtime_nsec)),
        nanos(stat.st_ctime, i128::from(stat.st_ctime_nsec)),
        i128::from(stat.st_ino),
    ])
}

/// Returns the stats of files below `root` as the index keeps them, in order;
/// `None` where there is none. Paths of one directory should lie together.
pub(crate) fn index_stats(root: &Path, paths: &[&RelPath]) -> Vec<Option<Stat>> {
    let half = paths.len().div_ceil(2);
    let (first, second) = paths.split_at(half);
    std::thread::scope(|scope| {
        let other = scope.spawn(|| stats_of(root, second));
        let mut stats = stats_of(root, first);
        stats.extend(other.join().unwrap_or_default());
        stats.resize(paths.len(), None);
        stats
    })
}

fn stats_of(root: &Path, paths: &[&RelPath]) -> Vec<Option<Stat>> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    let mut open: Option<(&str, Option<OwnedFd>)> = None;
    let mut stats = Vec::with_capacity(paths.len());
    for path in paths {
        let (dir, name) = path
            .as_str()
            .rsplit_once('/')
            .unwrap_or(("", path.as_str()));
        if open.as_ref().is_none_or(|(have, _)| *have != dir) {
            let opened = rustix::fs::open(root.join(dir), flags, Mode::empty());
            open = Some((dir, opened.ok()));
        }
        let fd = open.as_ref().and_then(|(_, fd)| fd.as_ref());
        stats.push(fd.and_then(|fd| stat_at(fd, name)));
    }
    stats
}

fn stat_at(dir: &OwnedFd, name: &str) -> Option<Stat> {
    let stat = rustix::fs::statat(dir, name, AtFlags::SYMLINK_NOFOLLOW).ok()?;
    let nanos = |seconds: i64, nanos| i128::from(seconds) * 1_000_000_000 + nanos;
    Some(Stat::of(&FileStat {
        dev: stat.st_dev,
        ino: stat.st_ino,
        mode: stat.st_mode,
        uid: stat.st_uid,
        gid: stat.st_gid,
        size: u64::try_from(stat.st_size).unwrap_or(0),
        mtime_ns: nanos(stat.st_mtime, i128::from(stat.st_mtime_nsec)),
        ctime_ns: nanos(stat.st_ctime, i128::from(stat.st_ctime_nsec)),
    }))
}

fn failed(path: &Path, error: std::io::Error) -> PortError {
    let code = match error.kind() {
        std::io::ErrorKind::PermissionDenied => Code::PermissionDenied,
        std::io::ErrorKind::NotFound => Code::PathNotFound,
        _ => Code::Io,
    };
    PortError::new(code, format!("read {}: {error}", path.display())).with_source(error)
}
