//! How one operation ended, and the report of all of them.

use std::collections::BTreeSet;

use sandbar_domain::{Code, Disposition, RelPath};
use sandbar_ports::target::Executed;
use sandbar_ports::{PortError, PortResult};

use super::job::Slots;
use crate::sys::{self, Errno, fail};

/// How one operation ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ended {
    /// Done, now or before.
    Done,
    /// Done, by writing in place.
    InPlace,
    /// Someone else came first; what they wrote stays.
    Raced,
    /// A directory that others put something into.
    Left,
}

/// Gathers what happened and which directories must be made durable.
pub(super) struct Report<'a> {
    verb: &'static str,
    slots: &'a Slots,
    touched: BTreeSet<Option<RelPath>>,
    out: Executed,
}

impl<'a> Report<'a> {
    pub(super) fn new(verb: &'static str, slots: &'a Slots) -> Self {
        Self {
            verb,
            slots,
            touched: BTreeSet::new(),
            out: Executed::default(),
        }
    }

    /// Adds the end of one operation; says whether the next may follow.
    pub(super) fn add(&mut self, path: &RelPath, ended: Result<Ended, Errno>) -> bool {
        self.touched.insert(path.parent());
        match ended {
            Ok(Ended::Done) => self.out.done.push(path.clone()),
            Ok(Ended::InPlace) => {
                self.out.in_place.push(path.clone());
                self.out.done.push(path.clone());
            }
            Ok(Ended::Left) => self.out.left.push(path.clone()),
            Ok(Ended::Raced) => {
                self.out.raced.push(path.clone());
                return false;
            }
            Err(errno) => {
                let reason = fail(self.verb, path, errno).to_string();
                self.out.failed.push((path.clone(), reason));
                return false;
            }
        }
        true
    }

    /// Makes everything durable: each touched directory once, then the slots.
    pub(super) fn finish(self) -> PortResult<Executed> {
        for dir in &self.touched {
            let open = match self.slots.root.beneath(dir.as_ref(), false) {
                Ok(open) => open,
                // Removed by the job itself, or swapped by someone else.
                Err(errno) if is_elsewhere(errno) => continue,
                Err(errno) => return Err(uncertain(self.verb, errno)),
            };
            sys::sync_dir(&open).map_err(|errno| uncertain(self.verb, errno))?;
        }
        for dir in [&self.slots.new, &self.slots.old].into_iter().flatten() {
            sys::sync_dir(dir).map_err(|errno| uncertain(self.verb, errno))?;
        }
        Ok(self.out)
    }
}

/// Says whether a path came to lead elsewhere, or nowhere: a directory was
/// removed, swapped for a symlink or file, or moved out while it was opened.
pub(super) fn is_elsewhere(errno: Errno) -> bool {
    matches!(
        errno,
        Errno::NOENT | Errno::NOTDIR | Errno::LOOP | Errno::XDEV | Errno::AGAIN
    )
}

/// A failed fsync proves nothing about what is on the disk.
fn uncertain(verb: &str, errno: Errno) -> PortError {
    let error = fail(verb, "the target, durably", errno);
    PortError::new(Code::Io, error.to_string())
        .with_disposition(Disposition::Indeterminate)
        .with_source(error)
}
