//! Single changes inside a sandbox root, all relative to the open parent of
//! the path. Read-only directories of the sandbox are opened up as needed.

use std::os::fd::AsFd as _;

use sandbar_domain::{Entry, Kind, RelPath};
use sandbar_ports::PortResult;

use super::change::in_the_way;
use crate::objects::ObjectStore;
use crate::sys::{self, Dir, Errno, Seen, Type, at, fail, kind_of};

/// Changes paths of one root, and remembers the last parent it opened.
pub(super) struct Writer<'a> {
    store: &'a ObjectStore,
    root: &'a Dir,
    temporary: &'a Dir,
    /// Names of temporary files are this and a count.
    number: usize,
    count: u64,
    parent: Option<(Option<RelPath>, Dir, Seen)>,
}

impl<'a> Writer<'a> {
    pub(super) fn new(
        store: &'a ObjectStore,
        root: &'a Dir,
        temporary: &'a Dir,
        number: usize,
    ) -> Self {
        Self {
            store,
            root,
            temporary,
            number,
            count: 0,
            parent: None,
        }
    }

    fn parent(&mut self, path: &RelPath) -> PortResult<(&Dir, &Seen)> {
        let wanted = path.parent();
        if !matches!(&self.parent, Some((have, _, _)) if *have == wanted) {
            let dir = self
                .root
                .beneath(wanted.as_ref(), true)
                .map_err(at("open the directory of", path))?;
            let seen = dir.stat_self().map_err(at("stat the directory of", path))?;
            self.parent = Some((wanted, dir, seen));
        }
        let (_, dir, seen) = self.parent.as_ref().expect("it was set just above");
        Ok((dir, seen))
    }

    /// Repeats a change after opening up the directory it is in.
    fn insist(
        dir: &Dir,
        seen: &Seen,
        mut change: impl FnMut() -> Result<(), Errno>,
    ) -> Result<(), Errno> {
        match change() {
            Err(Errno::ACCESS) if seen.stat.mode & 0o300 != 0o300 => {
                sys::chmod_fd(dir, seen.stat.mode | 0o300)?;
                change()
            }
            other => other,
        }
    }

    /// Removes a file or symlink; false when it is not there.
    pub(super) fn remove(&mut self, path: &RelPath) -> PortResult<bool> {
        let (dir, seen) = match self.parent(path) {
            Err(error) if error.code == sandbar_domain::Code::PathNotFound => return Ok(false),
            other => other?,
        };
        match Self::insist(dir, seen, || sys::remove_file(dir, path.name())) {
            Ok(()) => Ok(true),
            Err(Errno::NOENT) => Ok(false),
            Err(errno) => Err(fail("remove", path, errno)),
        }
    }

    /// Removes a directory; false when something ignored lies in it.
    pub(super) fn remove_dir(&mut self, path: &RelPath) -> PortResult<bool> {
        // The directory in hand may be the one that goes.
        self.parent = None;
        let (dir, seen) = self.parent(path)?;
        match Self::insist(dir, seen, || sys::remove_dir(dir, path.name())) {
            Ok(()) | Err(Errno::NOENT) => Ok(true),
            Err(Errno::NOTEMPTY | Errno::EXIST) => Ok(false),
            Err(errno) => Err(fail("remove", path, errno)),
        }
    }

    /// Makes a directory; one that is there is fine, an ignored file there
    /// gives way.
    pub(super) fn make_dir(&mut self, path: &RelPath) -> PortResult<()> {
        let (dir, seen) = self.parent(path)?;
        let name = path.name();
        let mut made = Self::insist(dir, seen, || sys::make_dir(dir, name, 0o755));
        if made == Err(Errno::EXIST) {
            let there = dir.stat(name).map_err(at("stat", path))?;
            if there.kind == Type::Directory {
                return Ok(());
            }
            made = sys::remove_file(dir, name).and_then(|()| sys::make_dir(dir, name, 0o755));
        }
        made.map_err(at("make", path))?;
        let new = dir.child(name).map_err(at("open", path))?;
        give(dir, name, seen).map_err(at("make", path))?;
        sys::chmod_fd(&new, 0o755).map_err(at("make", path))
    }

    /// Writes a file or symlink, by rename; what was there is replaced.
    pub(super) fn write(&mut self, path: &RelPath, entry: Entry) -> PortResult<()> {
        let temporary = format!("{}-{}", self.number, self.count);
        self.count += 1;
        let (store, holder) = (self.store, self.temporary);
        let (dir, parent) = self.parent(path)?;
        let name = path.name();
        let old = match dir.stat(name) {
            Ok(seen) => Some(seen),
            Err(Errno::NOENT) => None,
            Err(errno) => return Err(fail("stat", path, errno)),
        };
        if old.is_some_and(|seen| seen.kind == Type::Directory) {
            return Err(in_the_way(path));
        }
        let like = old.as_ref().unwrap_or(parent);
        if entry.kind == Kind::Symlink {
            let target = store.read(entry.hash)?;
            sys::symlink(holder, &temporary, &*target)
                .and_then(|()| give(holder, &temporary, like))
                .map_err(at("write", path))?;
        } else {
            let fd = sys::create_new(holder, &temporary, 0o600).map_err(at("write", path))?;
            store.copy_to(entry.hash, fd.as_fd())?;
            let old_mode = old
                .filter(|seen| seen.kind == Type::File)
                .map_or(0o644, |seen| seen.stat.mode & 0o777);
            give(holder, &temporary, like)
                .and_then(|()| sys::chmod_fd(&fd, with_executable(old_mode, entry.kind)))
                .map_err(at("write", path))?;
        }
        Self::insist(dir, parent, || sys::rename(holder, &temporary, dir, name))
            .map_err(at("write", path))
    }

    /// Sets or clears the executable bit; a file that others share by a hard
    /// link is written anew instead.
    pub(super) fn set_mode(&mut self, path: &RelPath, entry: Entry) -> PortResult<()> {
        let (dir, _) = self.parent(path)?;
        if let Ok((fd, seen)) = sys::open_readable(dir, path.name())
            && seen.kind == Type::File
            && seen.links == 1
        {
            if kind_of(&seen) == Some(entry.kind) {
                return Ok(());
            }
            let mode = with_executable(seen.stat.mode & 0o7777, entry.kind);
            return sys::chmod_fd(&fd, mode).map_err(at("set the mode of", path));
        }
        self.write(path, entry)
    }
}

/// Whoever may read it may execute it, as git and umask would have it.
fn with_executable(mode: u32, kind: Kind) -> u32 {
    if kind == Kind::Executable {
        mode | 0o100 | ((mode & 0o444) >> 2)
    } else {
        mode & !0o111
    }
}

/// As root, gives a new entry the owner of what it stands beside or replaces.
fn give(dir: &Dir, name: &str, like: &Seen) -> Result<(), Errno> {
    if !rustix::process::geteuid().is_root() || (like.stat.uid, like.stat.gid) == (0, 0) {
        return Ok(());
    }
    sys::chown_at(dir, name, like.stat.uid, like.stat.gid)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_executable_bit_follows_who_may_read() {
        for (mode, kind, want) in [
            (0o644, Kind::Executable, 0o755),
            (0o640, Kind::Executable, 0o750),
            (0o200, Kind::Executable, 0o300),
            (0o755, Kind::File, 0o644),
            (0o711, Kind::File, 0o600),
        ] {
            assert_eq!(with_executable(mode, kind), want, "{mode:o}");
        }
    }
}
