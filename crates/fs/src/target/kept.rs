//! Displaced files: listed, read, copied out. The kept file itself is never
//! changed, and nothing is ever overwritten.

use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};

use sandbar_domain::apply::PathOp;
use sandbar_domain::{Code, Entry, Kind, RelPath};
use sandbar_ports::target::{Job, KeptFile, Takeout};
use sandbar_ports::{PortError, PortResult};

use super::contents::Contents;
use super::job::{KEPT, LEFT, NEW, OLD};
use super::look::look;
use crate::files;
use crate::sys::{self, Dir, Errno, Seen, Type, at, fail};

/// Lists what lies in a job; see the port.
pub(super) fn list(job: &Job) -> PortResult<Vec<KeptFile>> {
    let shown = job.dir.display();
    let dir = match sys::open_dir(&job.dir) {
        Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => return Ok(Vec::new()),
        other => other.map_err(at("open", &shown))?,
    };
    let part = |name: &'static str| match dir.child(name) {
        Ok(dir) => Ok(Some((name, dir))),
        Err(Errno::NOENT) => Ok(None),
        Err(errno) => Err(fail("open", job.dir.join(name).display(), errno)),
    };
    let homes = [part(KEPT)?, part(LEFT)?, part(OLD)?];
    let staged = part(NEW)?;
    let mut out = Vec::new();
    for (index, op) in job.ops.iter().enumerate() {
        let Some((path, entry)) = displaced(op) else {
            continue;
        };
        let slot = index.to_string();
        for (name, home) in homes.iter().flatten() {
            let at = job.dir.join(name).join(&slot);
            out.extend(file(home, &slot, index, path, entry, at)?);
        }
        // What an exchange of an open job brought out lies where the new file
        // was staged.
        if let (Some((name, new)), PathOp::Replace { new: to, .. }) = (&staged, op)
            && !look(new, &slot)
                .map_err(at("read what is kept of", path))?
                .is(*to)
        {
            let at = job.dir.join(name).join(&slot);
            out.extend(file(new, &slot, index, path, entry, at)?);
        }
    }
    Ok(out)
}

fn displaced(op: &PathOp) -> Option<(&RelPath, Entry)> {
    match op {
        PathOp::Replace { path, old, new: _ } | PathOp::Remove { path, old } => Some((path, *old)),
        PathOp::MakeDir { .. }
        | PathOp::Create { .. }
        | PathOp::SetMode { .. }
        | PathOp::RemoveDir { .. } => None,
    }
}

fn file(
    home: &Dir,
    slot: &str,
    index: usize,
    path: &RelPath,
    entry: Entry,
    at: PathBuf,
) -> PortResult<Option<KeptFile>> {
    let seen = match home.stat(slot) {
        Err(Errno::NOENT) => return Ok(None),
        other => other.map_err(sys::at("read what is kept of", path))?,
    };
    if !matches!(seen.kind, Type::File | Type::Symlink) {
        return Ok(None);
    }
    Ok(Some(KeptFile {
        index,
        path: path.clone(),
        entry,
        at,
        size: seen.stat.size,
    }))
}

/// Opens the directory of a kept file; `None` when it is gone.
pub(super) fn open_home(at: &Path) -> PortResult<Option<(Dir, String)>> {
    let name = at.file_name().and_then(|name| name.to_str());
    let (Some(home), Some(name)) = (at.parent(), name) else {
        return Err(fail("open", at.display(), Errno::INVAL));
    };
    match sys::open_dir(home) {
        Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => Ok(None),
        other => Ok(Some((
            other.map_err(sys::at("open", home.display()))?,
            name.to_owned(),
        ))),
    }
}

/// Returns the bytes; see the port.
pub(super) fn read_out(contents: &dyn Contents, what: &Takeout) -> PortResult<Vec<u8>> {
    if let Some((home, name)) = home_of(what)?
        && look(&home, &name)
            .map_err(at("read", shown(what)))?
            .is(what.entry)
    {
        if what.entry.kind == Kind::Symlink {
            return sys::read_link(&home, &*name).map_err(at("read", shown(what)));
        }
        let (fd, seen) = sys::open_readable(&home, &*name).map_err(at("read", shown(what)))?;
        return sys::read_small(&fd, seen.stat.size, u64::MAX).map_err(at("read", shown(what)));
    }
    contents
        .read(what.entry.hash)
        .map_err(|error| gone(what, error))
}

fn home_of(what: &Takeout) -> PortResult<Option<(Dir, String)>> {
    match &what.at {
        Some(at) => open_home(at),
        None => Ok(None),
    }
}

fn shown(what: &Takeout) -> String {
    match &what.at {
        Some(at) => at.display().to_string(),
        None => format!("object {}", what.entry.hash),
    }
}

fn gone(what: &Takeout, error: PortError) -> PortError {
    if error.code != Code::CorruptObject {
        return error;
    }
    let message = format!("read {}: its bytes are kept nowhere any more", shown(what));
    PortError::new(Code::KeptGone, message).with_source(error)
}

/// Copies them to a new place; see the port.
pub(super) fn copy_out(contents: &dyn Contents, what: &Takeout, to: &Path) -> PortResult<()> {
    let target = to.display();
    let (Some(parent), Some(name)) = (to.parent(), to.file_name()) else {
        return Err(fail("write", &target, Errno::INVAL));
    };
    let kept = match home_of(what)? {
        Some((home, slot)) => {
            let there = look(&home, &slot).map_err(at("read", shown(what)))?;
            there.is(what.entry).then_some((home, slot))
        }
        None => None,
    };
    if kept.is_none() {
        contents
            .length(what.entry.hash)
            .map_err(|error| gone(what, error))?;
    }
    files::make_dirs(parent, 0o777)?;
    let dir = sys::open_dir(parent).map_err(at("open", parent.display()))?;
    let refused = |errno: Errno| match errno {
        Errno::EXIST => {
            let message = format!("write {target}: something is there already");
            PortError::new(Code::Exists, message)
        }
        errno => fail("write", &target, errno),
    };
    if what.entry.kind == Kind::Symlink {
        let bytes = read_out(contents, what)?;
        sys::symlink(&dir, name, &*bytes).map_err(refused)?;
        return sys::sync_dir(&dir).map_err(at("make durable", &target));
    }
    let fd = sys::create_new(&dir, name, 0o600).map_err(refused)?;
    let written = fill(contents, what, kept, &fd)
        .and_then(|()| sys::sync_file(&fd).map_err(at("make durable", &target)))
        .and_then(|()| sys::sync_dir(&dir).map_err(at("make durable", &target)));
    if written.is_err() {
        // Made by this very call: nobody else's bytes are in it.
        let _ = sys::remove_file(&dir, name);
    }
    written
}

fn fill(
    contents: &dyn Contents,
    what: &Takeout,
    kept: Option<(Dir, String)>,
    to: &OwnedFd,
) -> PortResult<()> {
    let Some((home, slot)) = kept else {
        let mode = if what.entry.kind == Kind::Executable {
            0o755
        } else {
            0o644
        };
        contents
            .copy(what.entry.hash, to.as_fd())
            .map_err(|error| gone(what, error))?;
        return sys::chmod_fd(to, mode).map_err(at("write", shown(what)));
    };
    let (from, seen) = sys::open_readable(&home, &*slot).map_err(at("read", shown(what)))?;
    pour(&from, to).map_err(at("copy", shown(what)))?;
    dress(&seen, to).map_err(at("copy", shown(what)))
}

fn pour(from: &OwnedFd, to: &OwnedFd) -> Result<(), Errno> {
    let mut buffer = vec![0; 1 << 20];
    let mut offset = 0;
    loop {
        let count = sys::pread_some(from, &mut buffer, offset)?;
        if count == 0 {
            return Ok(());
        }
        sys::write_at(to, &buffer[..count], offset)?;
        offset += u64::try_from(count).expect("a count fits 64 bits");
    }
}

/// Gives a copy the permission bits and times of what it is a copy of; owner
/// and set-id bits belong to the place, not to the bytes.
fn dress(seen: &Seen, to: &OwnedFd) -> Result<(), Errno> {
    sys::chmod_fd(to, seen.stat.mode & 0o777)?;
    sys::set_times_fd(to, seen.stat.mtime_ns, seen.stat.mtime_ns)
}
