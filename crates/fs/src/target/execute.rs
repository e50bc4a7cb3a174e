//! Execute: each operation by one rename of the kernel, then a look at what
//! came out. Stops at the first path that raced or failed; the caller undoes.

use sandbar_domain::apply::PathOp;
use sandbar_domain::{Entry, RelPath};
use sandbar_ports::effect::planted;
use sandbar_ports::progress::Stage;
use sandbar_ports::target::{Executed, Job};
use sandbar_ports::{PortError, PortResult};

use super::carry;
use super::in_place;
use super::job::{self, Slots};
use super::look::{There, hash_of, look};
use super::outcome::{Ended, Report, is_elsewhere};
use super::stage::Modes;
use crate::sys::{self, Dir, Errno, Type, at};

/// Performs the operations of `job` that are not done yet.
pub(super) fn execute(job: &Job) -> PortResult<Executed> {
    let Some(mut slots) = Slots::open(job)? else {
        return finished(job);
    };
    if slots.kept.is_some() {
        // Settled, so it was all done; what came after is the user's.
        return Ok(all_done(job));
    }
    if slots.left.is_some() || slots.new.is_none() {
        return Err(job::illegal("execute", job, "it was swept"));
    }
    slots.begin(job)?;
    let mut report = Report::new("write", &slots);
    let total = job.ops.len() as u64;
    for (index, op) in job.ops.iter().enumerate() {
        let ended = perform(&slots, &index.to_string(), op);
        if !report.add(op.path(), ended) {
            break;
        }
        job.progress.update(Stage::Apply, index as u64 + 1, total);
    }
    report.finish()
}

fn all_done(job: &Job) -> Executed {
    Executed {
        done: job.ops.iter().map(|op| op.path().clone()).collect(),
        ..Executed::default()
    }
}

/// A job without a directory was settled with nothing to keep, or was never
/// staged: the targets tell.
fn finished(job: &Job) -> PortResult<Executed> {
    let root = sys::open_root(&job.root)?;
    for op in &job.ops {
        let path = op.path();
        let there = match root.parent_of(path, true) {
            Ok(found) => look(&found.dir, found.name).map_err(at("read", path))?,
            Err(_) => There::Nothing,
        };
        let fits = match op {
            PathOp::MakeDir { .. } => there.is_directory(),
            PathOp::Create { new, .. }
            | PathOp::Replace { new, .. }
            | PathOp::SetMode { new, .. } => there.is(*new),
            // The place may have been taken by a later operation of the job.
            PathOp::Remove { old, .. } => !there.is(*old),
            PathOp::RemoveDir { .. } => true,
        };
        if !fits {
            return Err(job::illegal("execute", job, "it was never staged"));
        }
    }
    Ok(all_done(job))
}

fn perform(slots: &Slots, slot: &str, op: &PathOp) -> Result<Ended, Errno> {
    match op {
        PathOp::MakeDir { path } => at_target(slots, path, |dir, name| {
            make_dir(slots.staged()?, slot, dir, name)
        }),
        PathOp::Create { path, new } => at_target(slots, path, |dir, name| {
            create(slots.staged()?, slot, dir, name, *new)
        }),
        PathOp::Replace { path, old, new } => at_target(slots, path, |dir, name| {
            replace(slots, slot, (dir, name), *old, *new)
        }),
        PathOp::SetMode { path, old, new: _ } => at_target(slots, path, |dir, name| {
            let modes = Modes::read(slots.staged()?, slot)?;
            set_mode(dir, name, *old, modes.old, modes.new)
        }),
        PathOp::Remove { path, old } => remove(slots, slot, path, *old),
        PathOp::RemoveDir { path } => remove_dir(slots, slot, path),
    }
}

/// Opens the directory that holds `path` and acts in it. A directory that is
/// gone, or no directory any more, was changed by someone else.
pub(super) fn at_target(
    slots: &Slots,
    path: &RelPath,
    act: impl FnOnce(&Dir, &str) -> Result<Ended, Errno>,
) -> Result<Ended, Errno> {
    match slots.root.parent_of(path, true) {
        Ok(found) => act(&found.dir, found.name),
        Err(errno) if is_elsewhere(errno) => Ok(Ended::Raced),
        Err(errno) => Err(errno),
    }
}

fn make_dir(new: &Dir, slot: &str, dir: &Dir, name: &str) -> Result<Ended, Errno> {
    if look(new, slot)? == There::Nothing {
        // Made before; made again where an undo or someone took it away.
        return match sys::make_dir(dir, name, 0o755) {
            Ok(()) | Err(Errno::EXIST) => Ok(Ended::Done),
            Err(errno) => Err(errno),
        };
    }
    match place(new, slot, dir, name) {
        Ok(ended) => Ok(ended),
        Err(Errno::EXIST) if look(dir, name)?.is_directory() => Ok(Ended::Done),
        Err(Errno::EXIST) => Ok(Ended::Raced),
        Err(errno) => Err(errno),
    }
}

fn create(new: &Dir, slot: &str, dir: &Dir, name: &str, entry: Entry) -> Result<Ended, Errno> {
    if look(new, slot)? == There::Nothing {
        return Ok(Ended::Done);
    }
    match place(new, slot, dir, name) {
        Ok(ended) => Ok(ended),
        // The same content by another hand is as good.
        Err(Errno::EXIST) if look(dir, name)?.is(entry) => Ok(Ended::Done),
        Err(Errno::EXIST) => Ok(Ended::Raced),
        Err(errno) => Err(errno),
    }
}

/// Moves a slot to a name that must be free, where the file system can; else
/// gives it a second name first; else looks, and moves, and says so: what is
/// made there in between is lost.
pub(super) fn place(from: &Dir, slot: &str, to: &Dir, name: &str) -> Result<Ended, Errno> {
    match sys::rename_new(from, slot, to, name) {
        Ok(()) => return Ok(Ended::Done),
        Err(Errno::INVAL | Errno::NOSYS) => {}
        Err(errno) => return Err(errno),
    }
    let seen = from.stat(slot)?;
    if seen.kind == Type::Directory {
        sys::make_dir(to, name, seen.stat.mode & 0o7777)?;
        return sys::remove_dir(from, slot).map(|()| Ended::Done);
    }
    match sys::link(from, slot, to, name) {
        Ok(()) => {}
        // Ours already: the crash came between the two calls.
        Err(Errno::EXIST) if to.stat(name)?.stat.ino == seen.stat.ino => {}
        // No links either.
        Err(Errno::PERM | Errno::OPNOTSUPP | Errno::NOSYS) => {
            return match to.stat(name) {
                Err(Errno::NOENT) => sys::rename(from, slot, to, name).map(|()| Ended::InPlace),
                Ok(_) => Err(Errno::EXIST),
                Err(errno) => Err(errno),
            };
        }
        Err(errno) => return Err(errno),
    }
    sys::remove_file(from, slot).map(|()| Ended::Done)
}

fn replace(
    slots: &Slots,
    slot: &str,
    (dir, name): (&Dir, &str),
    old: Entry,
    new: Entry,
) -> Result<Ended, Errno> {
    let staged = slots.staged()?;
    if slots.displaced()?.stat(slot).is_ok() {
        return in_place::write(slots, slot, (dir, name), old, new);
    }
    let mut came_out = look(staged, slot)?;
    if came_out.is(new) {
        // A directory or device would be exchanged as readily: not ours.
        match dir.stat(name) {
            Err(Errno::NOENT) => return Ok(Ended::Raced),
            Ok(seen) if !matches!(seen.kind, Type::File | Type::Symlink) => {
                return Ok(Ended::Raced);
            }
            other => other?,
        };
        match sys::exchange(staged, slot, dir, name) {
            Ok(()) => {}
            Err(Errno::NOENT) => return Ok(Ended::Raced),
            Err(Errno::BUSY | Errno::XDEV | Errno::INVAL | Errno::NOSYS) => {
                return in_place::write(slots, slot, (dir, name), old, new);
            }
            Err(errno) => return Err(errno),
        }
        came_out = look(staged, slot)?;
    }
    // Equal to the new content: someone else wrote the same.
    if came_out.is(old) || came_out.is(new) || planted("skip-pre-image-check") {
        return Ok(Ended::Done);
    }
    give_back(staged, slot, dir, name, new)?;
    Ok(Ended::Raced)
}

/// Exchanges what came out back, but only against what was put there. Where a
/// further writer came in between, the newest stays and the other is kept in
/// the slot: an exchange destroys nothing.
fn give_back(staged: &Dir, slot: &str, dir: &Dir, name: &str, ours: Entry) -> Result<(), Errno> {
    if !look(dir, name)?.is(ours) {
        return Ok(());
    }
    match sys::exchange(staged, slot, dir, name) {
        Err(Errno::NOENT) => return Ok(()),
        other => other?,
    }
    if look(staged, slot)?.is(ours) {
        return Ok(());
    }
    match sys::exchange(staged, slot, dir, name) {
        Err(Errno::NOENT) => Ok(()),
        other => other,
    }
}

/// Sets the mode from `from` to `to` on the very file whose content was
/// checked.
pub(super) fn set_mode(
    dir: &Dir,
    name: &str,
    old: Entry,
    from: u32,
    to: u32,
) -> Result<Ended, Errno> {
    let (fd, seen) = match sys::open_readable(dir, name) {
        Err(Errno::NOENT | Errno::LOOP) => return Ok(Ended::Raced),
        other => other?,
    };
    let mode = seen.stat.mode & 0o7777;
    if seen.kind != Type::File || hash_of(&fd)? != old.hash || ![from, to].contains(&mode) {
        return Ok(Ended::Raced);
    }
    if mode != to {
        sys::chmod_fd(&fd, to)?;
    }
    // The inode carries the mode; the directory's fsync would not.
    sys::sync_file(&fd)?;
    Ok(Ended::Done)
}

fn remove(slots: &Slots, slot: &str, path: &RelPath, old: Entry) -> Result<Ended, Errno> {
    let kept = slots.displaced()?;
    let found = match slots.root.parent_of(path, true) {
        // The directory went with its content; ours may have come out before.
        Err(errno) if is_elsewhere(errno) => {
            let fine = matches!(look(kept, slot)?, There::Nothing) || look(kept, slot)?.is(old);
            return Ok(if fine { Ended::Done } else { Ended::Raced });
        }
        other => other?,
    };
    let (dir, name) = (&found.dir, found.name);
    let mut came_out = look(kept, slot)?;
    if came_out == There::Nothing {
        match dir.stat(name) {
            // Someone else removed it: as it should be.
            Err(Errno::NOENT) => return Ok(Ended::Done),
            Ok(seen) if !matches!(seen.kind, Type::File | Type::Symlink) => {
                return Ok(Ended::Raced);
            }
            other => other?,
        };
        match displace(dir, name, kept, slot) {
            Err(Errno::NOENT) => return Ok(Ended::Done),
            other => other?,
        }
        came_out = look(kept, slot)?;
    }
    if came_out.is(old) {
        return Ok(Ended::Done);
    }
    match place(kept, slot, dir, name) {
        // Someone made the name anew: both versions exist.
        Ok(_) | Err(Errno::EXIST) => Ok(Ended::Raced),
        Err(errno) => Err(errno),
    }
}

/// Moves a name into a free slot; the slots are private, so a plain rename is
/// as good where the file system has no other.
pub(super) fn displace(dir: &Dir, name: &str, to: &Dir, slot: &str) -> Result<(), Errno> {
    match sys::rename_new(dir, name, to, slot) {
        Err(Errno::INVAL | Errno::NOSYS) => sys::rename(dir, name, to, slot),
        other => other,
    }
}

/// Finds the kernel's error behind an error of the ports.
fn errno_of(error: &PortError) -> Errno {
    std::error::Error::source(error)
        .and_then(|source| source.downcast_ref::<std::io::Error>())
        .and_then(Errno::from_io_error)
        .unwrap_or(Errno::IO)
}

fn remove_dir(slots: &Slots, slot: &str, path: &RelPath) -> Result<Ended, Errno> {
    let found = match slots.root.parent_of(path, true) {
        // What was above it is gone or a file by now, perhaps by a later
        // operation of this job: there is no such directory.
        Err(errno) if is_elsewhere(errno) => return Ok(Ended::Done),
        other => other?,
    };
    // An undo used the twin up: the next one needs another.
    if look(slots.staged()?, slot)? == There::Nothing
        && let Ok(old) = found.dir.child(found.name)
    {
        let actor = sys::Actor::current();
        carry::twin(slots.staged()?, slot, path, old, &actor).map_err(|error| errno_of(&error))?;
    }
    match sys::remove_dir(&found.dir, found.name) {
        Ok(()) | Err(Errno::NOENT) => Ok(Ended::Done),
        Err(Errno::NOTEMPTY | Errno::EXIST) => Ok(Ended::Left),
        // A later operation of this job may have put a file here already.
        Err(Errno::NOTDIR) => Ok(Ended::Done),
        Err(errno) => Err(errno),
    }
}
