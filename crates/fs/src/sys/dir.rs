//! Opening directories: a root once, everything else beneath a descriptor.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;

use rustix::fs::{CWD, Mode, OFlags, ResolveFlags};
use rustix::io::Errno;
use rustix::path::Arg;
use sandbar_domain::resource::Root;
use sandbar_domain::{Code, RelPath};
use sandbar_ports::{PortError, PortResult};

use super::error::{at, fail};
use super::stat::{Seen, stat_at, stat_fd};

const DIRECTORY: OFlags = OFlags::RDONLY
    .union(OFlags::DIRECTORY)
    .union(OFlags::NOFOLLOW)
    .union(OFlags::CLOEXEC);

/// An open directory.
#[derive(Debug)]
pub struct Dir(OwnedFd);

/// A name inside an open directory.
#[derive(Debug)]
pub struct Found<'a> {
    /// The directory that holds it.
    pub dir: Dir,
    /// The name in it.
    pub name: &'a str,
}

impl AsFd for Dir {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl From<OwnedFd> for Dir {
    fn from(fd: OwnedFd) -> Self {
        Self(fd)
    }
}

impl From<Dir> for OwnedFd {
    fn from(dir: Dir) -> Self {
        dir.0
    }
}

impl Dir {
    /// Opens the same directory again, with an offset of its own.
    pub fn reopen(&self) -> Result<Self, Errno> {
        quietly(|quiet| rustix::fs::openat(&self.0, c".", DIRECTORY | quiet, Mode::empty()))
            .map(Self)
    }

    /// Opens the directory `name` in this one, never through a symlink.
    pub fn child(&self, name: impl Arg) -> Result<Self, Errno> {
        let name = name.as_cow_c_str()?;
        quietly(|quiet| {
            retry(|| rustix::fs::openat(&self.0, &*name, DIRECTORY | quiet, Mode::empty()))
        })
        .map(Self)
    }

    /// Opens the directory `rel` beneath this one (`None`: this one again).
    /// No symlink is followed; with `one_mount` no mount is crossed (EXDEV).
    pub fn beneath(&self, rel: Option<&RelPath>, one_mount: bool) -> Result<Self, Errno> {
        match rel {
            None => self.reopen(),
            Some(rel) => {
                quietly(|quiet| open_beneath(&self.0, rel.as_str(), DIRECTORY | quiet, one_mount))
                    .map(Self)
            }
        }
    }

    /// Opens the directory that holds `rel`. Errors: ELOOP or ENOTDIR when a
    /// symlink or file is in the way, ENOENT, EXDEV as in [`Dir::beneath`].
    pub fn parent_of<'a>(&self, rel: &'a RelPath, one_mount: bool) -> Result<Found<'a>, Errno> {
        match rel.as_str().rsplit_once('/') {
            None => Ok(Found {
                dir: self.reopen()?,
                name: rel.as_str(),
            }),
            Some((parent, name)) => Ok(Found {
                dir: Self(open_beneath(&self.0, parent, DIRECTORY, one_mount)?),
                name,
            }),
        }
    }

    /// Looks at `name` in this directory, never through a symlink.
    pub fn stat(&self, name: impl Arg) -> Result<Seen, Errno> {
        stat_at(&self.0, name)
    }

    /// Looks at the directory itself.
    pub fn stat_self(&self) -> Result<Seen, Errno> {
        stat_fd(&self.0)
    }
}

/// Says whether `name` can be one name in a directory.
pub fn is_single_name(name: &[u8]) -> bool {
    !name.is_empty() && name != b"." && name != b".." && !name.contains(&b'/')
}

/// Opens a directory of Sandbar's own by its path. Not for roots of users.
pub fn open_dir(path: &Path) -> Result<Dir, Errno> {
    retry(|| rustix::fs::openat(CWD, path, DIRECTORY, Mode::empty())).map(Dir)
}

/// Opens a registered root and checks that the path still leads to the same
/// directory. Errors: `path_not_found`, `sandbox_gone` when it leads to
/// another one.
pub fn open_root(root: &Root) -> PortResult<Dir> {
    let shown = root.path.display();
    let dir = open_dir(&root.path).map_err(|errno| match errno {
        Errno::NOTDIR | Errno::LOOP => gone(root),
        other => fail("open", &shown, other),
    })?;
    let seen = dir.stat_self().map_err(at("stat", &shown))?;
    if (seen.stat.dev, seen.stat.ino) == (root.device, root.inode) {
        Ok(dir)
    } else {
        Err(gone(root))
    }
}

fn gone(root: &Root) -> PortError {
    PortError::new(
        Code::SandboxGone,
        format!(
            "open {}: another directory is there now",
            root.path.display()
        ),
    )
}

/// Opens `rel` beneath `dir`: no symlink, no magic link, no way out; with
/// `one_mount` no mount either (EXDEV).
pub fn open_beneath(
    dir: impl AsFd,
    rel: impl Arg,
    flags: OFlags,
    one_mount: bool,
) -> Result<OwnedFd, Errno> {
    let mut resolve =
        ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS | ResolveFlags::NO_SYMLINKS;
    if one_mount {
        resolve |= ResolveFlags::NO_XDEV;
    }
    let rel = rel.as_cow_c_str()?;
    let flags = flags | OFlags::CLOEXEC;
    retry(|| rustix::fs::openat2(&dir, &*rel, flags, Mode::empty(), resolve))
}

/// Opens without touching the access time, which takes the owner or a
/// privilege, and else as usual.
pub(super) fn quietly<T>(open: impl Fn(OFlags) -> Result<T, Errno>) -> Result<T, Errno> {
    match open(OFlags::NOATIME) {
        Err(Errno::PERM) => open(OFlags::empty()),
        other => other,
    }
}

/// Repeats a call that was interrupted, or whose resolution raced (EAGAIN).
pub(super) fn retry<T>(mut call: impl FnMut() -> Result<T, Errno>) -> Result<T, Errno> {
    let mut again = 0u32;
    loop {
        match call() {
            // openat2 reports a rename that ran meanwhile; it asks to retry.
            Err(Errno::INTR | Errno::AGAIN) if again < 1_000 => again += 1,
            other => return other,
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(
        clippy::disallowed_methods,
        reason = "tests set the stage with plain files"
    )]
    use std::os::unix::fs::symlink;

    use super::*;

    fn rel(text: &str) -> RelPath {
        RelPath::new(text).unwrap()
    }

    #[test]
    fn no_way_leads_out_of_a_root() {
        let temp = tempfile::tempdir().unwrap();
        let root = temp.path().join("root");
        std::fs::create_dir_all(root.join("a/b")).unwrap();
        std::fs::create_dir(temp.path().join("outside")).unwrap();
        std::fs::write(temp.path().join("outside/f"), "x").unwrap();
        std::fs::write(root.join("a/file"), "x").unwrap();
        symlink(temp.path().join("outside"), root.join("out")).unwrap();
        symlink("../../outside", root.join("a/rel")).unwrap();
        symlink("b", root.join("a/in")).unwrap();
        let dir = open_dir(&root).unwrap();
        assert!(dir.beneath(Some(&rel("a/b")), true).is_ok());
        // As the last name a symlink is no directory; before it, a loop.
        for (path, last, before) in [
            ("out", Errno::NOTDIR, Errno::LOOP),
            ("a/rel", Errno::NOTDIR, Errno::LOOP),
            ("a/in", Errno::NOTDIR, Errno::LOOP),
            ("a/file", Errno::NOTDIR, Errno::NOTDIR),
            ("a/none", Errno::NOENT, Errno::NOENT),
        ] {
            let below = |rest: &str| rel(&format!("{path}/{rest}"));
            assert_eq!(
                dir.beneath(Some(&rel(path)), true).unwrap_err(),
                last,
                "{path}"
            );
            assert_eq!(
                dir.parent_of(&below("f"), true).unwrap_err(),
                last,
                "{path}"
            );
            assert_eq!(
                dir.parent_of(&below("d/f"), true).unwrap_err(),
                before,
                "{path}"
            );
        }
        let flags = OFlags::RDONLY;
        for path in ["..", "a/../..", "/etc/passwd", "../outside/f"] {
            assert_eq!(
                open_beneath(&dir, path, flags, false).unwrap_err(),
                Errno::XDEV,
                "{path}"
            );
        }
        assert!(matches!(
            dir.child("out").unwrap_err(),
            Errno::LOOP | Errno::NOTDIR
        ));
        assert!(open_dir(&root.join("out")).is_err());
    }

    #[test]
    fn a_root_is_known_by_what_its_path_leads_to() {
        let temp = tempfile::tempdir().unwrap();
        let path = temp.path().join("root");
        std::fs::create_dir(&path).unwrap();
        let seen = open_dir(&path).unwrap().stat_self().unwrap();
        let root = Root {
            path: path.clone(),
            device: seen.stat.dev,
            inode: seen.stat.ino,
        };
        open_root(&root).unwrap();
        std::fs::rename(&path, temp.path().join("moved")).unwrap();
        assert_eq!(open_root(&root).unwrap_err().code, Code::PathNotFound);
        std::fs::create_dir(&path).unwrap();
        assert_eq!(open_root(&root).unwrap_err().code, Code::SandboxGone);
        std::fs::remove_dir(&path).unwrap();
        symlink("moved", &path).unwrap();
        assert_eq!(open_root(&root).unwrap_err().code, Code::SandboxGone);
    }

    #[test]
    fn single_names_are_told_from_paths() {
        for (name, single) in [("a", true), ("..a", true), ("", false), (".", false)] {
            assert_eq!(is_single_name(name.as_bytes()), single, "{name}");
        }
        assert!(!is_single_name(b"..") && !is_single_name(b"a/b"));
    }
}
