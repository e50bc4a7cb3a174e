//! Stage: everything new is written and durable before the first change of
//! the root (APL-5). Never touches the root, nor a job that was executed.

use std::os::fd::{AsFd, OwnedFd};

use sandbar_domain::apply::PathOp;
use sandbar_domain::{Code, Entry, Kind, RelPath};
use sandbar_ports::progress::Stage;
use sandbar_ports::target::Job;
use sandbar_ports::{PortError, PortResult};

use super::carry::{self, Newcomer};
use super::contents::Contents;
use super::job::{self, KEPT, LEFT, NEW, OLD};
use crate::sys::{self, Actor, Dir, Errno, Seen, Type, at, fail};

/// Writes the slots of `job`. A second call begins anew.
pub(super) fn stage(contents: &dyn Contents, job: &Job) -> PortResult<()> {
    job::check(job)?;
    let root = sys::open_root(&job.root)?;
    let dir = job::make_job_dir(job, &root)?;
    let shown = job.dir.display();
    if [OLD, KEPT, LEFT].iter().any(|name| dir.stat(*name).is_ok()) {
        return Err(PortError::new(
            Code::IllegalState,
            format!("stage in {shown}: the job was executed"),
        ));
    }
    match sys::make_dir(&dir, NEW, 0o700) {
        Ok(()) | Err(Errno::EXIST) => {}
        Err(errno) => return Err(fail("make", &shown, errno)),
    }
    let new = dir.child(NEW).map_err(at("open", &shown))?;
    let stager = Stager {
        contents,
        root,
        new,
        actor: Actor::current(),
    };
    let total = job.ops.len() as u64;
    for (index, op) in job.ops.iter().enumerate() {
        job.cancel.check()?;
        stager.op(&index.to_string(), op)?;
        job.progress.update(Stage::Stage, index as u64 + 1, total);
    }
    sys::sync_dir(&stager.new).map_err(at("make durable", &shown))?;
    sys::sync_dir(&dir).map_err(at("make durable", &shown))
}

/// What a staged entry takes from its place.
enum Dress<'a> {
    /// Everything of the file that it replaces.
    Like(&'a OwnedFd, &'a Seen),
    /// The owner of what it replaces, which is of another type.
    Owner(u32, u32),
    /// The owner of what is made new there.
    Newcomer(Newcomer),
}

struct Stager<'a> {
    contents: &'a dyn Contents,
    root: Dir,
    new: Dir,
    actor: Actor,
}

impl Stager<'_> {
    fn op(&self, slot: &str, op: &PathOp) -> PortResult<()> {
        clear(&self.new, slot).map_err(at("stage", op.path()))?;
        match op {
            PathOp::Remove { path: _, old: _ } => Ok(()),
            PathOp::MakeDir { path } => {
                sys::make_dir(&self.new, slot, 0o755).map_err(at("stage", path))?;
                Newcomer::of(&self.root, path, &self.actor)?.apply(path, &self.new, slot)?;
                self.sync_slot_dir(slot, path)
            }
            PathOp::RemoveDir { path } => self.twin(slot, path),
            PathOp::SetMode { path, old: _, new } => self.modes(slot, path, new.kind),
            PathOp::Create { path, new } => {
                let newcomer = Newcomer::of(&self.root, path, &self.actor)?;
                self.write(slot, path, *new, Dress::Newcomer(newcomer))
            }
            PathOp::Replace { path, old, new } => self.replace(slot, path, *old, *new),
        }
    }

    fn replace(&self, slot: &str, path: &RelPath, old: Entry, new: Entry) -> PortResult<()> {
        let found = self.root.parent_of(path, true).map_err(at("stage", path))?;
        if old.kind.is_file() && new.kind.is_file() {
            let (fd, seen) =
                sys::open_readable(&found.dir, found.name).map_err(at("read", path))?;
            if seen.kind != Type::File {
                return Err(changed(path));
            }
            return self.write(slot, path, new, Dress::Like(&fd, &seen));
        }
        // Another type: there is no mode to carry, only the owner.
        let seen = found.dir.stat(found.name).map_err(at("read", path))?;
        self.write(slot, path, new, Dress::Owner(seen.stat.uid, seen.stat.gid))
    }

    /// Writes a file or symlink into a slot, dressed before it is durable.
    fn write(&self, slot: &str, path: &RelPath, entry: Entry, dress: Dress<'_>) -> PortResult<()> {
        if entry.kind == Kind::Symlink {
            let bytes = self.contents.read(entry.hash)?;
            sys::symlink(&self.new, slot, &*bytes).map_err(at("stage", path))?;
            return self.dress(slot, path, &dress);
        }
        let mode = match (&dress, entry.kind) {
            (Dress::Like(..), _) => 0o600,
            (_, Kind::Executable) => 0o755,
            _ => 0o644,
        };
        let fd = sys::create_new(&self.new, slot, mode).map_err(at("stage", path))?;
        self.contents.copy(entry.hash, fd.as_fd())?;
        if let Dress::Like(old, seen) = dress {
            carry::from_file(path, (old, seen), (&self.new, slot, &fd), entry.kind)?;
        } else {
            self.dress(slot, path, &dress)?;
            owner_may(path, &fd, entry.kind)?;
        }
        sys::sync_file(&fd).map_err(at("make durable", path))
    }

    fn dress(&self, slot: &str, path: &RelPath, dress: &Dress<'_>) -> PortResult<()> {
        match dress {
            Dress::Newcomer(newcomer) => newcomer.apply(path, &self.new, slot),
            Dress::Owner(uid, gid) if self.actor.can_own(*uid, *gid) => {
                carry::owner(path, &self.new, slot, *uid, *gid)
            }
            Dress::Owner(..) | Dress::Like(..) => Ok(()),
        }
    }

    /// Makes an empty directory like the one that will be removed.
    fn twin(&self, slot: &str, path: &RelPath) -> PortResult<()> {
        let old = match self.root.beneath(Some(path), true) {
            Ok(dir) => dir,
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => return Err(changed(path)),
            Err(errno) => return Err(fail("read", path, errno)),
        };
        carry::twin(&self.new, slot, path, old, &self.actor)
    }

    fn sync_slot_dir(&self, slot: &str, path: &RelPath) -> PortResult<()> {
        let dir = self.new.child(slot).map_err(at("stage", path))?;
        sys::sync_dir(&dir).map_err(at("make durable", path))
    }

    /// Records both modes of a file as the text of a link.
    fn modes(&self, slot: &str, path: &RelPath, kind: Kind) -> PortResult<()> {
        let found = self.root.parent_of(path, true).map_err(at("stage", path))?;
        let seen = found.dir.stat(found.name).map_err(at("read", path))?;
        if seen.kind != Type::File {
            return Err(changed(path));
        }
        let modes = Modes {
            old: seen.stat.mode & 0o7777,
            new: carry::mode_as(seen.stat.mode, kind),
        };
        sys::symlink(&self.new, slot, modes.text()).map_err(at("stage", path))
    }
}

/// Makes sure that the owner's executable bit says the kind, whatever the
/// umask took away.
fn owner_may(path: &RelPath, fd: &OwnedFd, kind: Kind) -> PortResult<()> {
    let seen = sys::stat_fd(fd).map_err(at("stage", path))?;
    if sys::kind_of(&seen) == Some(kind) {
        return Ok(());
    }
    sys::chmod_fd(fd, carry::mode_as(seen.stat.mode, kind)).map_err(at("stage", path))
}

/// The permission bits of a file before and after.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Modes {
    pub(super) old: u32,
    pub(super) new: u32,
}

impl Modes {
    fn text(self) -> String {
        format!("mode {:04o} {:04o}", self.old, self.new)
    }

    pub(super) fn read(dir: &Dir, slot: &str) -> Result<Self, Errno> {
        let text = sys::read_link(dir, slot)?;
        let mut words = std::str::from_utf8(&text)
            .map_err(|_| Errno::ILSEQ)?
            .split(' ');
        let octal = |word: Option<&str>| {
            word.and_then(|word| u32::from_str_radix(word, 8).ok())
                .ok_or(Errno::ILSEQ)
        };
        if words.next() != Some("mode") {
            return Err(Errno::ILSEQ);
        }
        Ok(Self {
            old: octal(words.next())?,
            new: octal(words.next())?,
        })
    }
}

/// Removes what an earlier attempt staged.
fn clear(new: &Dir, slot: &str) -> Result<(), Errno> {
    match new.stat(slot) {
        Err(Errno::NOENT) => Ok(()),
        Ok(seen) if seen.kind == Type::Directory => sys::remove_dir(new, slot),
        Ok(_) => sys::remove_file(new, slot),
        Err(errno) => Err(errno),
    }
}

fn changed(path: &RelPath) -> PortError {
    PortError::new(
        Code::Drift,
        format!("replace {path}: it changed since it was looked at"),
    )
    .with_subjects([path.as_str()])
}
