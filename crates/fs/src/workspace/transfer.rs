//! Bringing single files and directories into a directory being made.

use std::os::fd::AsFd;

use sandbar_domain::RelPath;
use sandbar_ports::PortResult;

use super::copying::{first_mode, like_original, symlink_like_original};
use crate::sys::{self, Dir, Errno, Type, at, fail};

const CHUNK: usize = 256 * 1024;

/// Makes the directories above `rel`.
pub(super) fn make_parents(root: &Dir, rel: &RelPath) -> PortResult<()> {
    match rel.parent() {
        Some(parent) => make_dirs(root, &parent),
        None => Ok(()),
    }
}

/// Makes the directory `rel` and those above it; what is there is fine.
pub(super) fn make_dirs(root: &Dir, rel: &RelPath) -> PortResult<()> {
    if root.beneath(Some(rel), false).is_ok() {
        return Ok(());
    }
    let mut dir = root.reopen().map_err(at("open", rel))?;
    for name in rel.names() {
        match sys::make_dir(&dir, name, 0o755) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(errno) => return Err(fail("make", rel, errno)),
        }
        dir = dir.child(name).map_err(at("open", rel))?;
    }
    Ok(())
}

/// Writes a new file with this content; one that is there is replaced.
pub(super) fn write(root: &Dir, rel: &RelPath, content: &[u8]) -> PortResult<()> {
    make_parents(root, rel)?;
    let found = root.parent_of(rel, false).map_err(at("open", rel))?;
    let fd = create(&found.dir, found.name, 0o644).map_err(at("write", rel))?;
    sys::write_all(&fd, content).map_err(at("write", rel))
}

fn create(dir: &Dir, name: &str, mode: u32) -> Result<std::os::fd::OwnedFd, Errno> {
    match sys::create_new(dir, name, mode) {
        Err(Errno::EXIST) => {
            sys::remove_file(dir, name)?;
            sys::create_new(dir, name, mode)
        }
        other => other,
    }
}

/// Copies one regular file or symlink with mode and times; what is gone, or
/// neither of the two, is left out.
pub(super) fn copy(
    from: impl AsFd,
    name: impl rustix::path::Arg + Copy,
    dir: &Dir,
    to: &str,
    shown: &RelPath,
) -> PortResult<()> {
    let (fd, seen) = match sys::open_readable(from.as_fd(), name) {
        Err(Errno::NOENT | Errno::NXIO) => return Ok(()),
        Err(Errno::LOOP) => {
            let seen = sys::stat_at(from.as_fd(), name).map_err(at("stat", shown))?;
            let target = sys::read_link(from, name).map_err(at("read", shown))?;
            symlink_like_original(dir, to, &target, &seen).map_err(at("write", shown))?;
            return Ok(());
        }
        other => other.map_err(at("read", shown))?,
    };
    if seen.kind != Type::File {
        return Ok(());
    }
    let new = create(dir, to, first_mode(&seen)).map_err(at("write", shown))?;
    let mut buffer = vec![0; CHUNK.min(usize::try_from(seen.stat.size).unwrap_or(CHUNK) + 1)];
    loop {
        match sys::read_some(&fd, &mut buffer).map_err(at("read", shown))? {
            0 => break,
            count => sys::write_all(&new, &buffer[..count]).map_err(at("write", shown))?,
        }
    }
    like_original(&new, dir, to, &seen).map_err(at("finish", shown))?;
    Ok(())
}

/// Links one immutable file, or clones it, or copies it. Says whether a new
/// file was made, whose content is not durable yet.
pub(super) fn link_or_copy(
    from: &Dir,
    name: &str,
    dir: &Dir,
    to: &str,
    shown: &RelPath,
) -> PortResult<bool> {
    match sys::link(from, name, dir, to) {
        Ok(()) | Err(Errno::EXIST) => return Ok(false),
        // Removed meanwhile, as by a repack of the repository.
        Err(Errno::NOENT) => return Ok(false),
        // Another file system, too many links, not ours to link, or none at
        // all on this file system.
        Err(Errno::XDEV | Errno::MLINK | Errno::PERM | Errno::ACCESS | Errno::OPNOTSUPP) => {}
        Err(errno) => return Err(fail("link", shown, errno)),
    }
    let (fd, seen) = match sys::open_readable(from, name) {
        Err(Errno::NOENT) => return Ok(false),
        other => other.map_err(at("read", shown))?,
    };
    let new = create(dir, to, first_mode(&seen)).map_err(at("write", shown))?;
    if sys::clone_into(&new, &fd).is_ok() {
        like_original(&new, dir, to, &seen).map_err(at("finish", shown))?;
        return Ok(true);
    }
    drop(new);
    sys::remove_file(dir, to).map_err(at("write", shown))?;
    copy(from, name, dir, to, shown).map(|()| true)
}
