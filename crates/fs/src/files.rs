//! Small file services for other crates: whole, small, own files only.
//! Never for what lies inside a root.

use std::path::{Path, PathBuf};

use rustix::fs::{CWD, Mode, OFlags};
use rustix::io::Errno;
use sandbar_domain::Code;
use sandbar_ports::{PortError, PortResult};

use crate::sys::{self, Type, at, fail};

/// Reads a whole file; a symlink to it is followed. Errors: `path_not_found`,
/// `io` when it is no regular file or longer than `limit` bytes.
pub fn read_small(path: &Path, limit: u64) -> PortResult<Vec<u8>> {
    let shown = path.display();
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let fd = rustix::fs::openat(CWD, path, flags, Mode::empty()).map_err(at("open", &shown))?;
    let seen = sys::stat_fd(&fd).map_err(at("stat", &shown))?;
    if seen.kind != Type::File {
        return Err(PortError::new(
            Code::Io,
            format!("read {shown}: not a regular file"),
        ));
    }
    sys::read_small(&fd, seen.stat.size, limit).map_err(at("read", &shown))
}

/// Says whether something is at `path`; a dangling symlink counts.
pub fn exists(path: &Path) -> bool {
    sys::stat_at(CWD, path).is_ok()
}

/// Says whether `path` leads to a directory, symlinks followed.
pub fn is_dir(path: &Path) -> bool {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    rustix::fs::openat(CWD, path, flags, Mode::empty()).is_ok()
}

/// Resolves every symlink of a path that exists.
#[allow(clippy::disallowed_methods, reason = "this module is its home")]
pub fn canonicalize(path: &Path) -> PortResult<PathBuf> {
    std::fs::canonicalize(path).map_err(|error| fail("resolve", path.display(), errno_of(&error)))
}

/// Returns the names in a directory, sorted; those that are not UTF-8 are
/// left out.
pub fn list(path: &Path) -> PortResult<Vec<String>> {
    let shown = path.display();
    let dir = sys::open_dir(path).map_err(at("open", &shown))?;
    let names = sys::Listing::default()
        .sorted(&dir)
        .map_err(at("list", &shown))?;
    Ok(names
        .into_iter()
        .filter_map(|entry| entry.name.into_string().ok())
        .collect())
}

/// Writes a whole file atomically and durably, with `mode`: a reader sees the
/// old or the new content, also after a power loss. Makes missing parents.
pub fn write_atomic(path: &Path, content: &[u8], mode: u32) -> PortResult<()> {
    let shown = path.display();
    let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
        return Err(fail("write", &shown, Errno::INVAL));
    };
    make_dirs(parent, 0o700)?;
    let dir = sys::open_dir(parent).map_err(at("open", parent.display()))?;
    let temporary = format!(".{}.tmp", crate::names::random());
    let fd = sys::create_new(&dir, &temporary, mode).map_err(at("create", &shown))?;
    let result = sys::write_all(&fd, content)
        .and_then(|()| sys::chmod_fd(&fd, mode))
        .and_then(|()| sys::sync_file(&fd))
        .and_then(|()| sys::rename(&dir, &temporary, &dir, name))
        .and_then(|()| sys::sync_dir(&dir));
    result.map_err(|errno| {
        let _ = sys::remove_file(&dir, &temporary);
        fail("write", &shown, errno)
    })
}

/// Makes a directory and its missing parents, durably.
pub fn make_dirs(path: &Path, mode: u32) -> PortResult<()> {
    if is_dir(path) {
        return Ok(());
    }
    let shown = path.display();
    if let Some(parent) = path
        .parent()
        .filter(|parent| !parent.as_os_str().is_empty())
    {
        make_dirs(parent, mode)?;
    }
    match sys::make_dir(CWD, path, mode) {
        Ok(()) => {}
        Err(Errno::EXIST) if is_dir(path) => return Ok(()),
        Err(errno) => return Err(fail("make", &shown, errno)),
    }
    let parent = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let parent =
        rustix::fs::openat(CWD, parent, flags, Mode::empty()).map_err(at("open", &shown))?;
    sys::sync_dir(&parent).map_err(at("make durable", &shown))
}

fn errno_of(error: &std::io::Error) -> Errno {
    Errno::from_io_error(error).unwrap_or(Errno::IO)
}
