//! Mode, owner, ACL and attributes of what is replaced, and those of what is
//! made new. Set-id bits and file capabilities are dropped, as any write to
//! the file would drop them.

use std::ffi::CString;
use std::os::fd::OwnedFd;

use sandbar_domain::{Kind, RelPath};
use sandbar_ports::PortResult;
use sandbar_ports::effect::planted;

use crate::sys::{self, Actor, Dir, Errno, Seen, at, fail};

/// The permission bits that stay when content changes.
pub(super) const KEPT_BITS: u32 = 0o1777;

/// Returns the mode of a file that becomes `kind`; the bits of others follow
/// their read bits, as `chmod +x` under a usual umask.
pub(super) fn mode_as(mode: u32, kind: Kind) -> u32 {
    let mode = mode & 0o7777;
    if planted("drop-executable-bit") {
        return mode & !0o111;
    }
    let executable = mode & 0o100 != 0;
    match kind {
        Kind::Executable if !executable => mode | ((mode & 0o444) >> 2) | 0o100,
        Kind::File if executable => mode & !0o111,
        _ => mode,
    }
}

/// Gives the staged file `fd`, called `slot` in `new`, what the file `old` has.
pub(super) fn from_file(
    path: &RelPath,
    (old, seen): (&OwnedFd, &Seen),
    (new, slot, fd): (&Dir, &str, &OwnedFd),
    kind: Kind,
) -> PortResult<()> {
    owner(path, new, slot, seen.stat.uid, seen.stat.gid)?;
    attributes(path, old, fd)?;
    // Last, since a change of owner or ACL takes bits away.
    let mode = mode_as(seen.stat.mode & KEPT_BITS, kind);
    sys::chmod_fd(fd, mode).map_err(at("set the mode of", path))
}

/// Sets the owner of a staged entry, if it is not right already.
pub(super) fn owner(path: &RelPath, new: &Dir, slot: &str, uid: u32, gid: u32) -> PortResult<()> {
    let seen = new.stat(slot).map_err(at("stage", path))?;
    if (seen.stat.uid, seen.stat.gid) == (uid, gid) {
        return Ok(());
    }
    sys::chown_at(new, slot, uid, gid).map_err(at("carry the owner of", path))
}

/// Copies every extended attribute that can be set. `user.*` and the ACL must
/// be carried; of other namespaces what the kernel refuses is left.
pub(super) fn attributes(path: &RelPath, old: &OwnedFd, new: &OwnedFd) -> PortResult<()> {
    let what = || format!("the attributes of {path}");
    for name in sys::list_attributes(old).map_err(at("read", what()))? {
        let text = name.to_bytes();
        if text == b"security.capability" {
            continue;
        }
        let must = text.starts_with(b"user.") || text == b"system.posix_acl_access";
        match copy(old, new, &name) {
            Ok(()) => {}
            Err(errno) if must => return Err(fail("carry", what(), errno)),
            Err(_) => {}
        }
    }
    Ok(())
}

fn copy(old: &OwnedFd, new: &OwnedFd, name: &CString) -> Result<(), Errno> {
    let value = match sys::get_attribute(old, name) {
        // Taken away meanwhile.
        Err(Errno::NODATA) => return Ok(()),
        other => other?,
    };
    if sys::get_attribute(new, name).is_ok_and(|have| have == value) {
        return Ok(());
    }
    sys::set_attribute(new, name, &value)
}

/// Makes an empty, durable directory in a slot with all that `old` has.
pub(super) fn twin(
    new: &Dir,
    slot: &str,
    path: &RelPath,
    old: Dir,
    actor: &Actor,
) -> PortResult<()> {
    let seen = old.stat_self().map_err(at("read", path))?;
    sys::make_dir(new, slot, 0o700).map_err(at("stage", path))?;
    if actor.can_own(seen.stat.uid, seen.stat.gid) {
        owner(path, new, slot, seen.stat.uid, seen.stat.gid)?;
    }
    let dir = new.child(slot).map_err(at("stage", path))?;
    let (old, dir) = (old.into(), dir.into());
    attributes(path, &old, &dir)?;
    sys::chmod_fd(&dir, seen.stat.mode).map_err(at("stage", path))?;
    sys::sync_file(&dir).map_err(at("make durable", path))
}

/// The owner of what is made new in a directory.
#[derive(Debug, Clone, Copy)]
pub(super) struct Newcomer {
    uid: Option<u32>,
    gid: Option<u32>,
    /// New directories inherit the set-group-id bit with the group.
    inherit: bool,
}

impl Newcomer {
    /// Looks at the nearest directory above `path` that exists.
    pub(super) fn of(root: &Dir, path: &RelPath, actor: &Actor) -> PortResult<Self> {
        let mut above = path.parent();
        let dir = loop {
            match root.beneath(above.as_ref(), true) {
                Ok(dir) => break dir,
                // Not made yet, or still a file that gives way to it.
                Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) if above.is_some() => {
                    above = above.and_then(|dir| dir.parent());
                }
                Err(errno) => return Err(fail("open the directory of", path, errno)),
            }
        };
        let seen = dir.stat_self().map_err(at("stage", path))?;
        let set_gid = seen.stat.mode & 0o2000 != 0;
        // Root works for the owner of the place it writes to.
        let foreign = actor.is_root() && seen.stat.uid != actor.uid;
        Ok(Self {
            uid: foreign.then_some(seen.stat.uid),
            gid: (foreign || set_gid).then_some(seen.stat.gid),
            inherit: set_gid,
        })
    }

    /// Applies it to a staged entry.
    pub(super) fn apply(self, path: &RelPath, new: &Dir, slot: &str) -> PortResult<()> {
        let seen = new.stat(slot).map_err(at("stage", path))?;
        let (uid, gid) = (
            self.uid.unwrap_or(seen.stat.uid),
            self.gid.unwrap_or(seen.stat.gid),
        );
        owner(path, new, slot, uid, gid)?;
        if self.inherit && seen.kind == sys::Type::Directory {
            let dir = new.child(slot).map_err(at("stage", path))?;
            sys::chmod_fd(&dir, seen.stat.mode & 0o777 | 0o2000).map_err(at("stage", path))?;
        }
        Ok(())
    }
}
