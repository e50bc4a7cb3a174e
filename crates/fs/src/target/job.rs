//! The directory of a job: its slots, made once, opened without following.

use std::path::Path;

use rustix::fs::CWD;
use sandbar_domain::resource::Root;
use sandbar_domain::{Code, RelPath};
use sandbar_ports::target::Job;
use sandbar_ports::{PortError, PortResult};

use crate::sys::{self, Dir, Errno, at, fail};

/// Slots of what is to come, and of what came out of exchanges.
pub(super) const NEW: &str = "new";
/// Slots of what was displaced.
pub(super) const OLD: &str = "old";
/// The name of `old` once the job is settled.
pub(super) const KEPT: &str = "kept";
/// The name of `old` once the job was undone and swept.
pub(super) const LEFT: &str = "left";

/// An open job.
pub(super) struct Slots {
    /// The real root.
    pub(super) root: Dir,
    /// The job's directory.
    pub(super) dir: Dir,
    /// `new`, until the job is settled.
    pub(super) new: Option<Dir>,
    /// `old`, once the job was executed.
    pub(super) old: Option<Dir>,
    /// `kept`, once the job was settled.
    pub(super) kept: Option<Dir>,
    /// `left`, once the job was undone and swept.
    pub(super) left: Option<Dir>,
}

impl Slots {
    /// Opens what exists of a job; `None` when its directory does not.
    pub(super) fn open(job: &Job) -> PortResult<Option<Self>> {
        let root = sys::open_root(&job.root)?;
        let dir = match open_job_dir(job, &root) {
            Err(Errno::NOENT) => return Ok(None),
            other => other.map_err(at("open", job.dir.display()))?,
        };
        let part = |name: &str| match dir.child(name) {
            Ok(dir) => Ok(Some(dir)),
            Err(Errno::NOENT) => Ok(None),
            Err(errno) => Err(fail("open", job.dir.join(name).display(), errno)),
        };
        Ok(Some(Self {
            new: part(NEW)?,
            old: part(OLD)?,
            kept: part(KEPT)?,
            left: part(LEFT)?,
            root,
            dir,
        }))
    }

    /// Prepares a staged job for execution: `old` is made, durably, first.
    pub(super) fn begin(&mut self, job: &Job) -> PortResult<()> {
        if self.old.is_some() {
            return Ok(());
        }
        let shown = || job.dir.join(OLD).display().to_string();
        sys::make_dir(&self.dir, OLD, 0o700).map_err(at("make", shown()))?;
        sys::sync_dir(&self.dir).map_err(at("make durable", shown()))?;
        self.old = Some(self.dir.child(OLD).map_err(at("open", shown()))?);
        Ok(())
    }

    /// Ends the job, durably, by giving `old` the name `KEPT` or `LEFT`. First
    /// of all: from here on it is over, whatever is still left of it.
    pub(super) fn end(&mut self, job: &Job, name: &str) -> PortResult<()> {
        let Some(old) = self.old.take() else {
            return Ok(());
        };
        sys::rename_new(&self.dir, OLD, &self.dir, name)
            .or_else(|errno| match errno {
                Errno::INVAL | Errno::NOSYS => sys::rename(&self.dir, OLD, &self.dir, name),
                errno => Err(errno),
            })
            .and_then(|()| sys::sync_dir(&self.dir))
            .map_err(at("end", job.dir.display()))?;
        if name == KEPT {
            self.kept = Some(old);
        } else {
            self.left = Some(old);
        }
        Ok(())
    }

    pub(super) fn staged(&self) -> Result<&Dir, Errno> {
        self.new.as_ref().ok_or(Errno::NOENT)
    }

    pub(super) fn displaced(&self) -> Result<&Dir, Errno> {
        self.old.as_ref().ok_or(Errno::NOENT)
    }
}

fn open_job_dir(job: &Job, root: &Dir) -> Result<Dir, Errno> {
    match inside(&job.root, &job.dir) {
        Some(rel) => root.beneath(Some(&rel), false),
        None => sys::open_dir(&job.dir),
    }
}

/// Returns the path below the root, if `path` lies there.
pub(super) fn inside(root: &Root, path: &Path) -> Option<RelPath> {
    let rest = path.strip_prefix(&root.path).ok()?;
    RelPath::new(rest.to_str()?).ok()
}

/// Makes the job's directory and every missing one above it, mode 0700, each
/// durable in its parent. A place inside the root is made below the root's
/// descriptor, and hides itself from git.
pub(super) fn make_job_dir(job: &Job, root: &Dir) -> PortResult<Dir> {
    let shown = job.dir.display();
    if let Some(rel) = inside(&job.root, &job.dir) {
        let mut dir = root.reopen().map_err(at("open", &shown))?;
        for (depth, name) in rel.names().enumerate() {
            let next = enter(&dir, name).map_err(at("make", &shown))?;
            if depth == 0 && name == ".sandbar" {
                hide(&next).map_err(at("make", &shown))?;
            }
            dir = next;
        }
        return Ok(dir);
    }
    make_outside(&job.dir).map_err(at("make", &shown))
}

fn make_outside(path: &Path) -> Result<Dir, Errno> {
    match sys::open_dir(path) {
        Err(Errno::NOENT) => {}
        other => return other,
    }
    let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
        return sys::open_dir(path);
    };
    let parent = make_outside(parent)?;
    let name = name.to_str().ok_or(Errno::ILSEQ)?;
    enter(&parent, name)
}

fn enter(dir: &Dir, name: &str) -> Result<Dir, Errno> {
    match sys::make_dir(dir, name, 0o700) {
        Ok(()) => sys::sync_dir(dir)?,
        Err(Errno::EXIST) => {}
        Err(errno) => return Err(errno),
    }
    dir.child(name)
}

fn hide(dir: &Dir) -> Result<(), Errno> {
    let fd = match sys::create_new(dir, ".gitignore", 0o600) {
        Err(Errno::EXIST) => return Ok(()),
        other => other?,
    };
    sys::write_all(&fd, b"*\n")?;
    sys::sync_file(&fd)?;
    sys::sync_dir(dir)
}

/// Removes an empty directory outside or inside the root, with its name made
/// gone durably. One that is not empty stays.
pub(super) fn remove_job_dir(job: &Job, root: &Dir) -> PortResult<()> {
    let shown = job.dir.display();
    let (parent, name) = match inside(&job.root, &job.dir) {
        Some(rel) => {
            let found = root.parent_of(&rel, false).map_err(at("open", &shown))?;
            (found.dir, found.name.to_owned())
        }
        None => {
            let name = job.dir.file_name().and_then(|name| name.to_str());
            let (Some(parent), Some(name)) = (job.dir.parent(), name) else {
                return Err(fail("remove", &shown, Errno::INVAL));
            };
            let parent = sys::open_dir(parent).map_err(at("open", &shown))?;
            (parent, name.to_owned())
        }
    };
    match sys::remove_dir(&parent, &*name) {
        Ok(()) => sys::sync_dir(&parent).map_err(at("make durable", &shown)),
        Err(Errno::NOENT | Errno::NOTEMPTY | Errno::EXIST) => Ok(()),
        Err(errno) => Err(fail("remove", &shown, errno)),
    }
}

/// Says that a job is not in the state that `verb` needs.
pub(super) fn illegal(verb: &str, job: &Job, why: &str) -> PortError {
    let text = format!("{verb} {}: {why}", job.dir.display());
    PortError::new(Code::IllegalState, text)
}

/// Checks that the directory of a job can be one at all.
pub(super) fn check(job: &Job) -> PortResult<()> {
    let sane = job.dir.is_absolute()
        && sys::stat_at(CWD, &job.root.path).is_ok()
        && job.dir != job.root.path;
    if sane {
        Ok(())
    } else {
        Err(PortError::new(
            Code::Internal,
            format!("stage in {}: not a job directory", job.dir.display()),
        ))
    }
}
