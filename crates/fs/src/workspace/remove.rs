//! Removing a directory with all beneath. It never follows a symlink, never
//! crosses into a mount, and keeps few descriptors however deep the tree.

use std::ffi::CString;
use std::fmt::Write as _;
use std::os::fd::{AsFd as _, AsRawFd as _, OwnedFd};
use std::path::Path;

use rustix::fs::{CWD, Mode, OFlags};
use rustix::path::Arg;
use sandbar_ports::PortResult;
use sandbar_ports::effect::effect;

use crate::names;
use crate::scan::mount_inside;
use crate::sys::{self, Dir, Errno, Listing, Type, at, fail};

/// Deeper directories are moved to the top first.
const DEEP: usize = 32;

/// Removes `name` in `holder`, whatever it is; what is not there is fine.
/// `shown` names it in errors. Errors: `mount_inside`, and nothing under the
/// mount is touched.
pub(crate) fn remove_tree(holder: &Dir, name: &[u8], shown: &Path) -> PortResult<()> {
    let seen = match holder.stat(name) {
        Err(Errno::NOENT) => return Ok(()),
        other => other.map_err(at("stat", shown.display()))?,
    };
    if seen.kind != Type::Directory {
        return done(sys::remove_file(holder, name), shown);
    }
    let top = open_writable(holder, name, shown)?;
    let mut listing = Listing::default();
    loop {
        let mut moved = false;
        empty(&top, &top, 0, &mut listing, shown, &mut moved)?;
        if !moved {
            break;
        }
    }
    done(sys::remove_dir(holder, name), shown)
}

fn empty(
    top: &Dir,
    dir: &Dir,
    depth: usize,
    listing: &mut Listing,
    shown: &Path,
    moved: &mut bool,
) -> PortResult<()> {
    let reader = dir.reopen().map_err(at("open", shown.display()))?;
    let names = listing
        .sorted(&reader)
        .map_err(at("list", shown.display()))?;
    drop(reader);
    for entry in names {
        let name = &*entry.name;
        let directory = match entry.kind {
            Type::Directory => true,
            Type::Unknown => dir
                .stat(name)
                .is_ok_and(|seen| seen.kind == Type::Directory),
            _ => false,
        };
        let path = shown.join(&*name.to_string_lossy());
        if !directory {
            done(sys::remove_file(dir, name), &path)?;
            continue;
        }
        match sys::remove_dir(dir, name) {
            Ok(()) | Err(Errno::NOENT) => continue,
            Err(Errno::BUSY) => return Err(mount_inside(path.display())),
            // Not empty, or its mode is in the way.
            Err(_) => {}
        }
        let child = open_writable(dir, name.to_bytes(), &path)?;
        if depth < DEEP {
            empty(top, &child, depth + 1, listing, &path, moved)?;
            drop(child);
            done(sys::remove_dir(dir, name), &path)?;
        } else {
            let shallow = format!(".{}", names::random());
            sys::rename_new(dir, name, top, &shallow).map_err(at("remove", path.display()))?;
            *moved = true;
        }
    }
    Ok(())
}

fn done(result: Result<(), Errno>, path: &Path) -> PortResult<()> {
    match result {
        Ok(()) | Err(Errno::NOENT) => Ok(()),
        Err(Errno::BUSY) => Err(mount_inside(path.display())),
        Err(errno) => Err(fail("remove", path.display(), errno)),
    }
}

/// Opens a directory, and first makes it one that can be emptied.
fn open_writable(dir: &Dir, name: &[u8], shown: &Path) -> PortResult<Dir> {
    let failed = |errno| match errno {
        Errno::XDEV => mount_inside(shown.display()),
        other => fail("open", shown.display(), other),
    };
    let handle = sys::open_beneath(
        dir,
        name,
        OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW,
        true,
    )
    .map_err(failed)?;
    let seen = sys::stat_fd(&handle).map_err(failed)?;
    if seen.stat.mode & 0o700 != 0o700 {
        // A handle of this kind takes no fchmod; its own /proc entry does. A
        // failure shows when the directory is emptied.
        let _ = chmod_handle(&handle, seen.stat.mode | 0o700);
    }
    drop(handle);
    sys::open_beneath(
        dir,
        name,
        OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW,
        true,
    )
    .map(Dir::from)
    .map_err(failed)
}

fn chmod_handle(handle: &OwnedFd, mode: u32) -> Result<(), Errno> {
    let mut path = String::from("/proc/self/fd/");
    write!(path, "{}", handle.as_fd().as_raw_fd()).map_err(|_| Errno::INVAL)?;
    let path: CString = path.as_str().into_c_str()?.into_owned();
    effect("chmod", || {
        rustix::fs::chmodat(
            CWD,
            &*path,
            Mode::from_raw_mode(mode & 0o7777),
            rustix::fs::AtFlags::empty(),
        )
    })
}
