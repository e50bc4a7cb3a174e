//! Writing a file where it stands, for targets that cannot be exchanged: a
//! single-file mount, a file system without it (APL-5). The old bytes are
//! kept durably first. A writer that races with the write itself can lose
//! bytes; that window is named in the report.

use std::os::fd::OwnedFd;

use sandbar_domain::Entry;

use super::carry;
use super::job::Slots;
use super::look::hash_of;
use super::outcome::Ended;
use crate::sys::{self, Dir, Errno, Type};

const CHUNK: usize = 256 * 1024;
/// The end of the name of a copy that is not complete yet.
pub(super) const PART: &str = ".part";

/// Writes the staged file over the target. `old/slot` holds the old bytes
/// from before the first write until the job ends, and is the sign that the
/// write began.
pub(super) fn write(
    slots: &Slots,
    slot: &str,
    (dir, name): (&Dir, &str),
    old: Entry,
    new: Entry,
) -> Result<Ended, Errno> {
    if !(old.kind.is_file() && new.kind.is_file()) {
        return Err(Errno::BUSY);
    }
    let kept = slots.displaced()?;
    let Some((target, mode)) = open(dir, name)? else {
        return Ok(Ended::Raced);
    };
    match kept.stat(slot) {
        Ok(_) => {}
        Err(Errno::NOENT) => {
            if !keep(&target, kept, slot, old, mode)? {
                return Ok(Ended::Raced);
            }
        }
        Err(errno) => return Err(errno),
    }
    let (staged, _) = sys::open_readable(slots.staged()?, slot)?;
    let (copy, _) = sys::open_readable(kept, slot)?;
    let now = hash_of(&target)?;
    if now != new.hash {
        if now != old.hash && !torn(&target, &staged, &copy)? {
            return Ok(Ended::Raced);
        }
        pour(&staged, &target)?;
    }
    let wanted = carry::mode_as(mode, new.kind);
    if wanted != mode {
        sys::chmod_fd(&target, wanted)?;
    }
    sys::sync_file(&target)?;
    Ok(Ended::InPlace)
}

/// Writes the kept bytes back, over the new ones or a torn write of ours.
pub(super) fn restore(
    slots: &Slots,
    slot: &str,
    (dir, name): (&Dir, &str),
    old: Entry,
    new: Entry,
) -> Result<Ended, Errno> {
    let kept = slots.displaced()?;
    let Some((target, mode)) = open(dir, name)? else {
        return Ok(Ended::Raced);
    };
    let (copy, seen) = sys::open_readable(kept, slot)?;
    let (staged, _) = sys::open_readable(slots.staged()?, slot)?;
    let now = hash_of(&target)?;
    if now != old.hash {
        let ours =
            now == new.hash || torn(&target, &staged, &copy)? || torn(&target, &copy, &staged)?;
        if !ours {
            return Ok(Ended::Raced);
        }
        pour(&copy, &target)?;
    }
    if mode != seen.stat.mode & 0o7777 {
        sys::chmod_fd(&target, seen.stat.mode)?;
    }
    sys::sync_file(&target)?;
    // The bytes are back where they were: the sign goes last.
    sys::remove_file(kept, slot)?;
    Ok(Ended::InPlace)
}

fn open(dir: &Dir, name: &str) -> Result<Option<(OwnedFd, u32)>, Errno> {
    match sys::open_in_place(dir, name) {
        Err(Errno::NOENT | Errno::LOOP | Errno::ISDIR) => Ok(None),
        Ok((fd, seen)) if seen.kind == Type::File => Ok(Some((fd, seen.stat.mode & 0o7777))),
        Ok(_) => Ok(None),
        Err(errno) => Err(errno),
    }
}

/// Copies the target into a slot, durably; false when it is not what the
/// operation replaces.
fn keep(target: &OwnedFd, kept: &Dir, slot: &str, old: Entry, mode: u32) -> Result<bool, Errno> {
    let part = format!("{slot}{PART}");
    match sys::remove_file(kept, &*part) {
        Ok(()) | Err(Errno::NOENT) => {}
        Err(errno) => return Err(errno),
    }
    let copy = sys::create_new(kept, &*part, 0o600)?;
    pour(target, &copy)?;
    sys::chmod_fd(&copy, mode)?;
    if hash_of(&copy)? != old.hash {
        sys::remove_file(kept, &*part)?;
        return Ok(false);
    }
    sys::sync_file(&copy)?;
    sys::rename_new(kept, &*part, kept, slot).or_else(|errno| match errno {
        Errno::INVAL | Errno::NOSYS => sys::rename(kept, &*part, kept, slot),
        errno => Err(errno),
    })?;
    sys::sync_dir(kept)?;
    Ok(true)
}

/// Says whether `file` is what an interrupted write of `over` onto `under`
/// leaves: a beginning of the one, then the rest of the other.
fn torn(file: &OwnedFd, over: &OwnedFd, under: &OwnedFd) -> Result<bool, Errno> {
    let [file, over, under] = [file, over, under].map(whole);
    let (file, over, under) = (file?, over?, under?);
    let same = file
        .iter()
        .zip(&over)
        .take_while(|(have, want)| have == want)
        .count();
    Ok(file[same..] == *under.get(same..).unwrap_or_default())
}

fn whole(fd: &OwnedFd) -> Result<Vec<u8>, Errno> {
    let size = sys::stat_fd(fd)?.stat.size;
    let mut bytes = vec![0; usize::try_from(size).map_err(|_| Errno::FBIG)?];
    sys::pread_exact(fd, &mut bytes, 0)?;
    Ok(bytes)
}

/// Makes `to` hold exactly the bytes of `from`.
fn pour(from: &OwnedFd, to: &OwnedFd) -> Result<(), Errno> {
    let mut buffer = vec![0; CHUNK];
    let mut offset = 0;
    loop {
        let count = sys::pread_some(from, &mut buffer, offset)?;
        if count == 0 {
            return sys::set_length(to, offset);
        }
        sys::write_at(to, &buffer[..count], offset)?;
        offset += u64::try_from(count).expect("a count fits 64 bits");
    }
}
