//! Undo: the operations in reverse, each only where the target still holds
//! what the job put there. Goes on past what it must leave, so that as much
//! as possible is as it was.

use sandbar_domain::apply::PathOp;
use sandbar_domain::{Entry, RelPath};
use sandbar_ports::PortResult;
use sandbar_ports::progress::Stage;
use sandbar_ports::target::{Executed, Job};

use super::execute::{at_target, displace, place, set_mode};
use super::in_place;
use super::job::{self, Slots};
use super::look::{There, look};
use super::outcome::{Ended, Report, is_elsewhere};
use super::stage::Modes;
use crate::sys::{self, Errno};

/// Takes back what was done of `job`.
pub(super) fn undo(job: &Job) -> PortResult<Executed> {
    let Some(slots) = Slots::open(job)? else {
        return Ok(Executed::default());
    };
    if slots.kept.is_some() {
        return Err(job::illegal("undo", job, "it was settled"));
    }
    if slots.old.is_none() {
        // Never executed, or swept after an undo: nothing to take back.
        return Ok(Executed::default());
    }
    let mut report = Report::new("undo", &slots);
    let total = job.ops.len() as u64;
    for (index, op) in job.ops.iter().enumerate().rev() {
        let ended = take_back(&slots, &index.to_string(), op);
        report.add(op.path(), ended);
        job.progress
            .update(Stage::Apply, total - index as u64, total);
    }
    report.finish()
}

fn take_back(slots: &Slots, slot: &str, op: &PathOp) -> Result<Ended, Errno> {
    match op {
        PathOp::MakeDir { path } => unmake_dir(slots, slot, path),
        PathOp::Create { path, new } => uncreate(slots, slot, path, *new),
        PathOp::Replace { path, old, new } => unreplace(slots, slot, path, *old, *new),
        PathOp::SetMode { path, old, new: _ } => {
            let modes = Modes::read(slots.staged()?, slot)?;
            at_target(slots, path, |dir, name| {
                set_mode(dir, name, *old, modes.new, modes.old)
            })
        }
        PathOp::Remove { path, old: _ } => restore(slots, slot, path),
        PathOp::RemoveDir { path } => restore_dir(slots, slot, path),
    }
}

fn unmake_dir(slots: &Slots, slot: &str, path: &RelPath) -> Result<Ended, Errno> {
    if look(slots.staged()?, slot)? != There::Nothing {
        return Ok(Ended::Done);
    }
    let found = match slots.root.parent_of(path, true) {
        // Undone before: a file may be above it again.
        Err(errno) if is_elsewhere(errno) => return Ok(Ended::Done),
        other => other?,
    };
    match sys::remove_dir(&found.dir, found.name) {
        Ok(()) | Err(Errno::NOENT) => Ok(Ended::Done),
        Err(Errno::NOTEMPTY | Errno::EXIST) => Ok(Ended::Left),
        // Undone before, and a file is here again; else someone's file.
        Err(Errno::NOTDIR) => Ok(Ended::Done),
        Err(errno) => Err(errno),
    }
}

fn uncreate(slots: &Slots, slot: &str, path: &RelPath, new: Entry) -> Result<Ended, Errno> {
    let home = slots.staged()?;
    if look(home, slot)? != There::Nothing {
        return Ok(Ended::Done);
    }
    let found = match slots.root.parent_of(path, true) {
        Err(Errno::NOENT) => return Ok(Ended::Done),
        Err(errno) if is_elsewhere(errno) => return Ok(Ended::Raced),
        other => other?,
    };
    let (dir, name) = (&found.dir, found.name);
    match look(dir, name)? {
        There::Nothing => return Ok(Ended::Done),
        there if there.is(new) => {}
        _ => return Ok(Ended::Raced),
    }
    match displace(dir, name, home, slot) {
        Err(Errno::NOENT) => return Ok(Ended::Done),
        other => other?,
    }
    if look(home, slot)?.is(new) {
        return Ok(Ended::Done);
    }
    match place(home, slot, dir, name) {
        Ok(_) | Err(Errno::EXIST) => Ok(Ended::Raced),
        Err(errno) => Err(errno),
    }
}

fn unreplace(
    slots: &Slots,
    slot: &str,
    path: &RelPath,
    old: Entry,
    new: Entry,
) -> Result<Ended, Errno> {
    let home = slots.staged()?;
    if slots.displaced()?.stat(slot).is_ok() {
        // Written in place: the slot still holds the new file.
        return at_target(slots, path, |dir, name| {
            in_place::restore(slots, slot, (dir, name), old, new)
        });
    }
    if look(home, slot)?.is(new) {
        // Not executed, or taken back before.
        return Ok(Ended::Done);
    }
    at_target(slots, path, |dir, name| {
        if !look(dir, name)?.is(new) {
            return Ok(Ended::Raced);
        }
        match sys::exchange(home, slot, dir, name) {
            Err(Errno::NOENT) => return Ok(Ended::Raced),
            other => other?,
        }
        if look(home, slot)?.is(new) {
            return Ok(Ended::Done);
        }
        // Someone wrote between the look and the exchange: theirs goes back.
        match sys::exchange(home, slot, dir, name) {
            Ok(()) | Err(Errno::NOENT) => Ok(Ended::Raced),
            Err(errno) => Err(errno),
        }
    })
}

fn restore(slots: &Slots, slot: &str, path: &RelPath) -> Result<Ended, Errno> {
    let kept = slots.displaced()?;
    if look(kept, slot)? == There::Nothing {
        return Ok(Ended::Done);
    }
    at_target(slots, path, |dir, name| {
        match place(kept, slot, dir, name) {
            Ok(ended) => Ok(ended),
            Err(Errno::EXIST) => Ok(Ended::Raced),
            Err(errno) => Err(errno),
        }
    })
}

fn restore_dir(slots: &Slots, slot: &str, path: &RelPath) -> Result<Ended, Errno> {
    let home = slots.staged()?;
    if look(home, slot)? == There::Nothing {
        return Ok(Ended::Done);
    }
    at_target(slots, path, |dir, name| {
        match place(home, slot, dir, name) {
            Ok(ended) => Ok(ended),
            // Never removed, left because it was in use, or made again.
            Err(Errno::EXIST) if look(dir, name)?.is_directory() => Ok(Ended::Done),
            Err(Errno::EXIST) => Ok(Ended::Raced),
            Err(errno) => Err(errno),
        }
    })
}
