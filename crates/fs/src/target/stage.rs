//! Stage: everything new is written and durable before the first change of
//! the root (APL-5). Never touches the root, nor a job that was executed.

use std::collections::BTreeMap;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};

use sandbar_domain::apply::PathOp;
use sandbar_domain::{Code, Entry, Kind, RelPath};
use sandbar_ports::progress::Stage;
use sandbar_ports::target::Job;
use sandbar_ports::{PortError, PortResult};

use super::carry::{self, Newcomer};
use super::contents::Contents;
use super::job::{self, KEPT, LEFT, NEW, OLD};
use super::kept::open_home;
use super::look::look;
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
        sources: &job.sources,
    };
    let total = job.ops.len() as u64;
    for (index, op) in job.ops.iter().enumerate() {
        job.cancel.check()?;
        stager.op(index, op)?;
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
    sources: &'a BTreeMap<usize, PathBuf>,
}

impl Stager<'_> {
    fn op(&self, index: usize, op: &PathOp) -> PortResult<()> {
        let slot = &*index.to_string();
        let source = self.sources.get(&index).map(PathBuf::as_path);
        clear(&self.new, slot).map_err(at("stage", op.path()))?;
        match op {
            PathOp::Remove { path: _, old: _ } => Ok(()),
            PathOp::MakeDir { path } => {
                if let Some(old) = directory_at(source)? {
                    return carry::twin(&self.new, slot, path, old, &self.actor);
                }
                sys::make_dir(&self.new, slot, 0o755).map_err(at("stage", path))?;
                Newcomer::of(&self.root, path, &self.actor)?.apply(path, &self.new, slot)?;
                self.sync_slot_dir(slot, path)
            }
            PathOp::RemoveDir { path } => self.twin(slot, path),
            PathOp::SetMode { path, old: _, new } => self.modes(slot, path, new.kind, source),
            PathOp::Create { path, new } => {
                if self.bring_back(slot, path, source, *new, None)? {
                    return Ok(());
                }
                let newcomer = Newcomer::of(&self.root, path, &self.actor)?;
                self.write(slot, path, *new, Dress::Newcomer(newcomer))
            }
            PathOp::Replace { path, old, new } => self.replace(slot, path, *old, *new, source),
        }
    }

    fn replace(
        &self,
        slot: &str,
        path: &RelPath,
        old: Entry,
        new: Entry,
        source: Option<&Path>,
    ) -> PortResult<()> {
        let found = self.root.parent_of(path, true).map_err(at("stage", path))?;
        if old.kind.is_file() && new.kind.is_file() {
            let (fd, seen) =
                sys::open_readable(&found.dir, found.name).map_err(at("read", path))?;
            if seen.kind != Type::File {
                return Err(changed(path));
            }
            if self.bring_back(slot, path, source, new, Some((&seen, old.kind)))? {
                return Ok(());
            }
            return self.write(slot, path, new, Dress::Like(&fd, &seen));
        }
        if self.bring_back(slot, path, source, new, None)? {
            return Ok(());
        }
        // Another type: there is no mode to carry, only the owner.
        let seen = found.dir.stat(found.name).map_err(at("read", path))?;
        self.write(slot, path, new, Dress::Owner(seen.stat.uid, seen.stat.gid))
    }

    /// Puts the very file that an earlier job keeps into a slot, as a further
    /// name of it; says whether that was possible. Not where its mode or owner
    /// was changed in the root since: that change is somebody's too.
    fn bring_back(
        &self,
        slot: &str,
        path: &RelPath,
        source: Option<&Path>,
        entry: Entry,
        present: Option<(&Seen, Kind)>,
    ) -> PortResult<bool> {
        let Some((home, name)) = source.map(open_home).transpose()?.flatten() else {
            return Ok(false);
        };
        let Ok(seen) = home.stat(&*name) else {
            return Ok(false);
        };
        if let Some((there, kind)) = present {
            let expected = carry::mode_as(seen.stat.mode & carry::KEPT_BITS, kind);
            let same = (there.stat.uid, there.stat.gid) == (seen.stat.uid, seen.stat.gid)
                && there.stat.mode & 0o7777 == expected;
            if !same {
                return Ok(false);
            }
        }
        if !look(&home, &name)
            .map_err(at("read what is kept of", path))?
            .is(entry)
        {
            return Ok(false);
        }
        match sys::link(&home, &*name, &self.new, slot) {
            Ok(()) => {}
            // Where it cannot be linked its content is copied.
            Err(
                Errno::PERM
                | Errno::ACCESS
                | Errno::XDEV
                | Errno::MLINK
                | Errno::OPNOTSUPP
                | Errno::NOENT,
            ) => return Ok(false),
            Err(errno) => return Err(fail("stage", path, errno)),
        }
        if seen.kind == Type::File {
            let (fd, _) = sys::open_readable(&self.new, slot).map_err(at("stage", path))?;
            sys::sync_file(&fd).map_err(at("make durable", path))?;
        }
        Ok(true)
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
    fn modes(
        &self,
        slot: &str,
        path: &RelPath,
        kind: Kind,
        source: Option<&Path>,
    ) -> PortResult<()> {
        let found = self.root.parent_of(path, true).map_err(at("stage", path))?;
        let seen = found.dir.stat(found.name).map_err(at("read", path))?;
        if seen.kind != Type::File {
            return Err(changed(path));
        }
        let old = seen.stat.mode & 0o7777;
        let earlier = match source.map(open_home).transpose()?.flatten() {
            Some((home, name)) => Modes::read(&home, &name).ok(),
            None => None,
        };
        let modes = Modes {
            old,
            new: match earlier {
                // Back to what it was, to the bit; never to more than that.
                Some(earlier) if earlier.new == old && (earlier.old ^ old) & !0o111 == 0 => {
                    earlier.old
                }
                _ => carry::mode_as(seen.stat.mode, kind),
            },
        };
        sys::symlink(&self.new, slot, modes.text()).map_err(at("stage", path))
    }
}

/// Opens the twin of a directory that an earlier job removed.
fn directory_at(source: Option<&Path>) -> PortResult<Option<Dir>> {
    let Some((home, name)) = source.map(open_home).transpose()?.flatten() else {
        return Ok(None);
    };
    match home.child(&*name) {
        Ok(dir) => Ok(Some(dir)),
        Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => Ok(None),
        Err(errno) => Err(fail(
            "open",
            source.unwrap_or(Path::new("")).display(),
            errno,
        )),
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
