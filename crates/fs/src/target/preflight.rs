//! Everything that could stop an apply, looked for before the first write
//! (APL-4). Writes nothing; reports all problems at once.

use std::collections::{HashMap, HashSet};
use std::path::PathBuf;

use sandbar_domain::apply::PathOp;
use sandbar_domain::resource::Root;
use sandbar_domain::{Code, Entry, RelPath};
use sandbar_ports::target::KeptPlace;
use sandbar_ports::{PortError, PortResult};

use super::{Core, place};
use crate::sys::{self, Actor, Dir, Errno, Listing, Seen, Type, at, fail};

/// How many problems are named.
const NAMED: usize = 100;
/// Bytes left free for the file system's own needs.
const SLACK: u64 = 1 << 20;

/// Checks that each of `ops` can be done; chooses the kept place.
pub(super) fn preflight(
    core: &Core,
    root: &Root,
    git_common_dir: Option<PathBuf>,
    ops: &[PathOp],
) -> PortResult<KeptPlace> {
    let dir = sys::open_root(root)?;
    let shown = root.path.display();
    if sys::is_read_only(&dir).map_err(at("inspect", &shown))? {
        return Err(PortError::new(
            Code::ReadOnly,
            format!("write {shown}: the file system is read-only"),
        ));
    }
    let mut check = Check::new(&dir, ops);
    for op in ops {
        check.op(op)?;
    }
    check.spellings(ops)?;
    check.report()?;
    space(core, &dir, root, ops)?;
    place::choose(&core.kept, root, &dir, git_common_dir)
}

struct Check<'a> {
    root: &'a Dir,
    actor: Actor,
    /// Directories that the job makes, and names that it takes away.
    made: HashSet<&'a RelPath>,
    gone: HashSet<&'a RelPath>,
    /// Paths that become a file after a directory was removed there.
    after_dir: HashSet<&'a RelPath>,
    /// Directories found writable before.
    writable: HashSet<Option<RelPath>>,
    problems: Vec<(Code, String)>,
}

impl<'a> Check<'a> {
    fn new(root: &'a Dir, ops: &'a [PathOp]) -> Self {
        let mut check = Self {
            root,
            actor: Actor::current(),
            made: HashSet::new(),
            gone: HashSet::new(),
            after_dir: HashSet::new(),
            writable: HashSet::new(),
            problems: Vec::new(),
        };
        for op in ops {
            match op {
                PathOp::MakeDir { path } => drop(check.made.insert(path)),
                PathOp::Remove { path, .. } | PathOp::RemoveDir { path } => {
                    check.gone.insert(path);
                }
                PathOp::Create { path, .. } => drop(check.after_dir.insert(path)),
                PathOp::Replace { .. } | PathOp::SetMode { .. } => {}
            }
        }
        check
    }

    fn problem(&mut self, code: Code, path: &RelPath, why: &str) {
        self.problems.push((code, format!("{path}: {why}")));
    }

    fn errno(&mut self, path: &RelPath, errno: Errno) {
        let error = fail("write", path, errno);
        self.problems.push((error.code, error.to_string()));
    }

    fn report(self) -> PortResult<()> {
        let Some((code, first)) = self.problems.first().cloned() else {
            return Ok(());
        };
        let more = match self.problems.len() - 1 {
            0 => String::new(),
            more => format!(", and {more} more"),
        };
        let texts = self.problems.into_iter().map(|(_, text)| text).take(NAMED);
        Err(PortError::new(code, format!("write {first}{more}")).with_subjects(texts))
    }

    /// Refuses paths that would be one file where names have no case (BAD-5).
    fn spellings(&mut self, ops: &'a [PathOp]) -> PortResult<()> {
        let mut met: HashMap<String, &RelPath> = HashMap::new();
        for op in ops {
            if matches!(op, PathOp::Remove { .. } | PathOp::RemoveDir { .. }) {
                continue;
            }
            let path = op.path();
            let first = *met.entry(path.as_str().to_lowercase()).or_insert(path);
            if first == path {
                continue;
            }
            let above = std::iter::successors(path.parent(), RelPath::parent)
                .find_map(|dir| self.root.beneath(Some(&dir), true).ok());
            let ignored = match &above {
                Some(dir) => sys::ignores_case(dir),
                None => sys::ignores_case(self.root),
            };
            if ignored.map_err(at("inspect", path))? {
                let why = format!(
                    "it differs from {first} in case only, and the file system ignores case"
                );
                self.problem(Code::CaseCollision, path, &why);
            }
        }
        Ok(())
    }

    fn op(&mut self, op: &PathOp) -> PortResult<()> {
        let path = op.path();
        let parent = path.parent();
        let new_parent = parent.as_ref().is_some_and(|dir| self.made.contains(dir));
        let found = match self.root.parent_of(path, true) {
            Ok(found) => found,
            // Its directory is made by the job, perhaps in a file's place.
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) if new_parent => return Ok(()),
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => {
                if self.leads_through_link(path) {
                    self.problem(Code::PathEscapes, path, "a symbolic link is in the way");
                } else {
                    self.problem(Code::Drift, path, "its directory is gone");
                }
                return Ok(());
            }
            Err(Errno::XDEV) => {
                self.problem(Code::MountInside, path, "something is mounted above it");
                return Ok(());
            }
            Err(errno) => {
                self.errno(path, errno);
                return Ok(());
            }
        };
        let dir_seen = found.dir.stat_self().map_err(at("inspect", path))?;
        let only_mode = matches!(op, PathOp::SetMode { .. });
        if !only_mode && !self.writable.contains(&parent) {
            match sys::may_write_dir(&found.dir) {
                Ok(()) => drop(self.writable.insert(parent)),
                Err(errno) => {
                    self.errno(path, errno);
                    return Ok(());
                }
            }
        }
        let seen = match found.dir.stat(found.name) {
            Ok(seen) => Some(seen),
            Err(Errno::NOENT) => None,
            Err(errno) => {
                self.errno(path, errno);
                return Ok(());
            }
        };
        match (op, seen) {
            (PathOp::MakeDir { .. }, Some(seen)) => {
                if seen.kind != Type::Directory && !self.gone.contains(path) {
                    self.problem(Code::Drift, path, "something else is there");
                }
            }
            (PathOp::Create { .. }, Some(_)) => {
                if !self.gone.contains(path) {
                    self.problem(Code::Drift, path, "something is there already");
                }
            }
            (PathOp::MakeDir { .. } | PathOp::Create { .. } | PathOp::RemoveDir { .. }, None) => {}
            (PathOp::Replace { .. } | PathOp::SetMode { .. } | PathOp::Remove { .. }, None) => {
                self.problem(Code::Drift, path, "it is gone");
            }
            (PathOp::RemoveDir { .. }, Some(seen)) => {
                if self.removable(path, &found.dir, found.name, &dir_seen, &seen) {
                    self.emptied(path)?;
                }
            }
            (PathOp::Remove { old, .. }, Some(seen)) => {
                self.removable(path, &found.dir, found.name, &dir_seen, &seen);
                self.readable(path, &found.dir, found.name, *old, &seen);
            }
            (PathOp::Replace { old, new, .. }, Some(seen)) => {
                // A file mounted alone is written in place.
                let alone = seen.mount_root && old.kind.is_file() && new.kind.is_file();
                if alone || self.removable(path, &found.dir, found.name, &dir_seen, &seen) {
                    self.carried(path, &seen);
                }
                self.readable(path, &found.dir, found.name, *old, &seen);
            }
            (PathOp::SetMode { old, .. }, Some(seen)) => {
                if !self.actor.is_root() && seen.stat.uid != self.actor.uid {
                    self.problem(Code::PermissionDenied, path, "it belongs to another user");
                }
                self.readable(path, &found.dir, found.name, *old, &seen);
            }
        }
        Ok(())
    }

    fn leads_through_link(&self, path: &RelPath) -> bool {
        std::iter::successors(path.parent(), RelPath::parent).any(|dir| {
            self.root
                .parent_of(&dir, true)
                .and_then(|found| found.dir.stat(found.name))
                .is_ok_and(|seen| seen.kind == Type::Symlink)
        })
    }

    /// Checks that the name can be taken away from its directory.
    fn removable(
        &mut self,
        path: &RelPath,
        dir: &Dir,
        name: &str,
        above: &Seen,
        seen: &Seen,
    ) -> bool {
        if seen.mount_root {
            self.problem(Code::MountInside, path, "something is mounted here");
            return false;
        }
        if sys::is_immutable(dir, name) == Ok(true) {
            self.problem(Code::PermissionDenied, path, "it is immutable");
            return false;
        }
        let sticky = above.stat.mode & 0o1000 != 0;
        let uid = self.actor.uid;
        if sticky && !self.actor.is_root() && above.stat.uid != uid && seen.stat.uid != uid {
            self.problem(
                Code::PermissionDenied,
                path,
                "it belongs to another user, in a sticky directory",
            );
            return false;
        }
        true
    }

    /// Checks that owner and group can be given to what replaces it.
    fn carried(&mut self, path: &RelPath, seen: &Seen) {
        if !self.actor.can_own(seen.stat.uid, seen.stat.gid) {
            self.problem(
                Code::PermissionDenied,
                path,
                "its owner and group cannot be carried",
            );
        }
    }

    /// Checks that the old content can be read, to be judged when it comes out.
    fn readable(&mut self, path: &RelPath, dir: &Dir, name: &str, old: Entry, seen: &Seen) {
        if sys::kind_of(seen).map(|kind| kind.word()) != Some(old.kind.word()) {
            self.problem(Code::Drift, path, "it became another type");
            return;
        }
        if seen.kind == Type::File
            && let Err(errno) = sys::open_readable(dir, name)
        {
            self.errno(path, errno);
        }
    }

    /// Checks that a directory whose place a file takes will be empty.
    fn emptied(&mut self, path: &RelPath) -> PortResult<()> {
        if !self.after_dir.contains(path) {
            return Ok(());
        }
        let dir = match self.root.beneath(Some(path), true) {
            Ok(dir) => dir,
            Err(errno) => {
                self.errno(path, errno);
                return Ok(());
            }
        };
        for entry in Listing::default().sorted(&dir).map_err(at("list", path))? {
            let stays = match entry.name.to_str().map(|name| path.join(name)) {
                Ok(Ok(child)) => !self.gone.contains(&child),
                _ => true,
            };
            if stays {
                let name = entry.name.to_string_lossy().into_owned();
                let why = format!("a file takes its place, but it still holds {name}");
                self.problem(Code::Drift, path, &why);
                break;
            }
        }
        Ok(())
    }
}

fn space(core: &Core, dir: &Dir, root: &Root, ops: &[PathOp]) -> PortResult<()> {
    let (mut bytes, mut files) = (0u64, 0u64);
    for op in ops {
        match op {
            PathOp::Create { new, .. } | PathOp::Replace { new, .. } => {
                // Whole blocks, as most file systems count.
                let length = core.contents.length(new.hash)?;
                bytes = bytes.saturating_add(length.next_multiple_of(4096));
                files += 1;
            }
            PathOp::MakeDir { .. } | PathOp::RemoveDir { .. } => files += 1,
            PathOp::SetMode { .. } | PathOp::Remove { .. } => {}
        }
    }
    let shown = root.path.display();
    let volume = sys::volume_of(dir).map_err(at("inspect", &shown))?;
    if files > 0 && bytes.saturating_add(SLACK) > volume.free {
        return Err(PortError::new(
            Code::NoSpace,
            format!(
                "write {shown}: {bytes} bytes are needed, {} are free",
                volume.free
            ),
        ));
    }
    if files > volume.free_files {
        return Err(PortError::new(
            Code::NoSpace,
            format!(
                "write {shown}: {files} inodes are needed, {} are free",
                volume.free_files
            ),
        ));
    }
    Ok(())
}
