//! The end of a job: what is not needed goes, displaced bytes stay.

use std::path::Path;

use sandbar_domain::apply::PathOp;
use sandbar_domain::{Entry, Kind, RelPath};
use sandbar_ports::PortResult;
use sandbar_ports::effect::planted;
use sandbar_ports::target::{Job, Kept};

use super::contents::Contents;
use super::in_place;
use super::job::{self, KEPT, LEFT, NEW, Slots};
use super::kept::open_home;
use super::look::{There, look};
use crate::sys::{self, Dir, Errno, Listing, Type, at, fail};

/// Ends an executed job: `new` goes, displaced bytes lie in `kept`, durably.
///
/// A displaced file is not made durable again where the content store has what
/// it holds: that copy was made durable when the file was looked at, before
/// the intent, and whoever asks for kept bytes gets them from the store where
/// the kept file does not match.
pub(super) fn settle(contents: &dyn Contents, job: &Job) -> PortResult<Vec<Kept>> {
    let Some(mut slots) = Slots::open(job)? else {
        return Ok(Vec::new());
    };
    if slots.kept.is_none() && slots.old.is_none() {
        return Err(job::illegal("settle", job, "it was never executed"));
    }
    slots.end(job, KEPT)?;
    clear_new(job, &slots)?;
    let mut out = Vec::new();
    if let Some(old) = &slots.kept {
        for (index, op) in job.ops.iter().enumerate() {
            let (path, entry) = match op {
                PathOp::Replace { path, old, new: _ } | PathOp::Remove { path, old } => {
                    (path, *old)
                }
                PathOp::MakeDir { .. }
                | PathOp::Create { .. }
                | PathOp::SetMode { .. }
                | PathOp::RemoveDir { .. } => continue,
            };
            if planted("forget-kept-bytes") {
                let _ = sys::remove_file(old, index.to_string());
                continue;
            }
            out.extend(kept(contents, job, old, &index.to_string(), path, entry)?);
        }
    }
    release(job, &slots)?;
    remove_if_empty(job, slots)?;
    Ok(out)
}

/// Takes away the kept name of each file that came back itself: a further
/// name of a file in use would show what is written to it, not what was kept.
fn release(job: &Job, slots: &Slots) -> PortResult<()> {
    let mut homes: Vec<(&Path, Dir)> = Vec::new();
    for (index, source) in &job.sources {
        let Some(op) = job.ops.get(*index) else {
            continue;
        };
        let Some((home, name)) = open_home(source)? else {
            continue;
        };
        let there = slots
            .root
            .parent_of(op.path(), true)
            .and_then(|found| found.dir.stat(found.name));
        let (Ok(there), Ok(kept)) = (there, home.stat(&*name)) else {
            continue;
        };
        let same = (there.stat.dev, there.stat.ino) == (kept.stat.dev, kept.stat.ino);
        if !same || !matches!(kept.kind, Type::File | Type::Symlink) {
            continue;
        }
        sys::remove_file(&home, &*name).map_err(at("release", source.display()))?;
        if let Some(dir) = source.parent()
            && homes.iter().all(|(known, _)| *known != dir)
        {
            homes.push((dir, home));
        }
    }
    for (shown, home) in &homes {
        sys::sync_dir(home).map_err(at("make durable", shown.display()))?;
    }
    Ok(())
}

/// Removes a job that was never executed, or undone: staged files go, bytes
/// of others stay.
pub(super) fn sweep(job: &Job) -> PortResult<()> {
    let Some(mut slots) = Slots::open(job)? else {
        return Ok(());
    };
    if slots.kept.is_some() {
        return Err(job::illegal("sweep", job, "it was settled"));
    }
    slots.end(job, LEFT)?;
    clear_new(job, &slots)?;
    remove_if_empty(job, slots)
}

/// Empties and removes `new`. A slot that holds what was not put there goes
/// to `old`.
fn clear_new(job: &Job, slots: &Slots) -> PortResult<()> {
    let Some(new) = &slots.new else {
        // It went after what moved over was durable.
        return Ok(());
    };
    let home = slots.kept.as_ref().or(slots.left.as_ref());
    for (index, op) in job.ops.iter().enumerate() {
        clear_slot(new, (home, slots.kept.as_ref()), &index.to_string(), op)
            .map_err(at("clear the slot of", op.path()))?;
    }
    if let Some(old) = home {
        drop_parts(old).map_err(at("clear", job.dir.display()))?;
        // What moved over must have its new name before the old one goes.
        sys::sync_dir(old).map_err(at("make durable", job.dir.display()))?;
    }
    match sys::remove_dir(&slots.dir, NEW) {
        Ok(()) | Err(Errno::NOENT) => {}
        Err(errno) => return Err(fail("remove", job.dir.join(NEW).display(), errno)),
    }
    sys::sync_dir(&slots.dir).map_err(at("make durable", job.dir.display()))
}

/// Removes copies that a crash cut short before they were of use.
fn drop_parts(old: &Dir) -> Result<(), Errno> {
    for entry in Listing::default().sorted(&old.reopen()?)? {
        if entry.name.to_bytes().ends_with(in_place::PART.as_bytes()) {
            sys::remove_file(old, &*entry.name)?;
        }
    }
    Ok(())
}

fn clear_slot(
    new: &Dir,
    (old, settled): (Option<&Dir>, Option<&Dir>),
    slot: &str,
    op: &PathOp,
) -> Result<(), Errno> {
    let seen = match new.stat(slot) {
        Err(Errno::NOENT) => return Ok(()),
        other => other?,
    };
    let staged = match (op, old) {
        // A job without `old` was never executed: all of it was staged, a
        // half-written file too.
        (_, None) => None,
        (PathOp::Replace { new, .. } | PathOp::Create { new, .. }, Some(old)) => Some((*new, old)),
        _ => None,
    };
    if let Some((entry, old)) = staged
        && !look(new, slot)?.is(entry)
    {
        return sys::rename_new(new, slot, old, slot).or_else(|errno| match errno {
            Errno::INVAL | Errno::NOSYS => sys::rename(new, slot, old, slot),
            errno => Err(errno),
        });
    }
    // What a removed directory and a changed mode were like, for `undo`.
    if let (PathOp::SetMode { .. } | PathOp::RemoveDir { .. }, Some(kept)) = (op, settled) {
        return sys::rename_new(new, slot, kept, slot).or_else(|errno| match errno {
            Errno::INVAL | Errno::NOSYS => sys::rename(new, slot, kept, slot),
            errno => Err(errno),
        });
    }
    if seen.kind == Type::Directory {
        sys::remove_dir(new, slot)
    } else {
        sys::remove_file(new, slot)
    }
}

fn kept(
    contents: &dyn Contents,
    job: &Job,
    old: &Dir,
    slot: &str,
    path: &RelPath,
    entry: Entry,
) -> PortResult<Option<Kept>> {
    let hash = match look(old, slot).map_err(at("read what is kept of", path))? {
        There::Nothing | There::Foreign(_) => return Ok(None),
        There::Entry(there) => {
            if there.kind != Kind::Symlink && there.kind != Kind::Directory {
                let (fd, seen) = sys::open_readable(old, slot).map_err(at("open", path))?;
                // Its last writer may not have made it durable.
                if !contents.has(there.hash, seen.stat.size)? {
                    sys::sync_file(&fd).map_err(at("make durable", path))?;
                }
            }
            there.hash
        }
    };
    Ok(Some(Kept {
        path: path.clone(),
        entry,
        at: job.dir.join(KEPT).join(slot),
        hash,
    }))
}

/// Removes the directories of a job that keeps nothing.
fn remove_if_empty(job: &Job, slots: Slots) -> PortResult<()> {
    for name in [KEPT, LEFT] {
        match sys::remove_dir(&slots.dir, name) {
            Ok(()) | Err(Errno::NOENT | Errno::NOTEMPTY | Errno::EXIST) => {}
            Err(errno) => return Err(fail("remove", job.dir.join(name).display(), errno)),
        }
    }
    job::remove_job_dir(job, &slots.root)
}
