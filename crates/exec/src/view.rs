//! The in-place view: a user and mount namespace in which the sandbox lies
//! over the real path (STR-7). Works on the calling process only, which has
//! one thread and becomes the command; nothing of it shows outside.

use std::os::fd::{AsRawFd as _, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

use rustix::fs::{FileType, Mode, OFlags, Stat, fstat, open, stat};
use rustix::io::Errno;
use rustix::mount::{MountPropagationFlags, mount_bind_recursive, mount_change};
use rustix::process::{WaitOptions, geteuid, getpid, waitpid};
use rustix::thread::UnshareFlags;

use crate::aliases::{Alias, aliases};
use crate::enter::{ask_for_ids, reason};
use crate::idmap;
use crate::procfs;
use crate::sys::{self, Forked};
use crate::wire::{self, Failure, FailureKind, Order};

/// Makes the view and checks it; the working directory is still the old one.
pub(crate) fn cover(order: &Order, link: &mut UnixStream) -> Result<(), Failure> {
    let failed = |text: String| {
        Failure::new(
            FailureKind::View,
            format!("make the in-place view: {text}{}", advice()),
        )
    };
    sys::unshare(UnshareFlags::NEWUSER | UnshareFlags::NEWNS)
        .map_err(|error| failed(format!("unshare: {}", reason(&error))))?;
    ask_for_ids(link).map_err(failed)?;
    // Mounts made outside later still arrive; ours never leave.
    mount_change(
        "/",
        MountPropagationFlags::DOWNSTREAM | MountPropagationFlags::REC,
    )
    .map_err(|error| failed(format!("make mounts private: {}", words(error))))?;

    // All sources are opened before anything is covered: they may lie below.
    let sandbox = handle(&order.sandbox).map_err(|error| {
        let kind = match error {
            Errno::NOENT | Errno::NOTDIR => FailureKind::Gone,
            _ => FailureKind::View,
        };
        Failure::new(
            kind,
            format!("open {}: {}", order.sandbox.display(), words(error)),
        )
    })?;
    let sources = order
        .binds
        .iter()
        .map(|(what, _)| at(what, handle(what)))
        .collect::<Result<Vec<_>, _>>()
        .map_err(failed)?;
    let wanted = fstat(&sandbox).map_err(|error| failed(words(error)))?;

    let others = other_ways(&order.real, &order.sandbox).map_err(failed)?;

    bind(&sandbox, &order.real).map_err(failed)?;
    for (source, place) in &others {
        bind(source, place).map_err(failed)?;
    }
    for (source, (_, place)) in sources.iter().zip(&order.binds) {
        bind(source, place).map_err(failed)?;
    }
    for socket in &order.hidden {
        hide(socket).map_err(failed)?;
    }
    let seen = at(&order.real, stat(&order.real)).map_err(failed)?;
    if !same(&seen, &wanted) {
        return Err(failed(format!(
            "{} does not lead to the sandbox",
            order.real.display()
        )));
    }
    if geteuid().is_root() {
        lock().map_err(failed)?;
    }
    Ok(())
}

/// Pairs each other path to the real tree with what is to lie over it.
fn other_ways(real: &Path, sandbox: &Path) -> Result<Vec<(OwnedFd, PathBuf)>, String> {
    let table = procfs::read("/proc/self/mountinfo")
        .map_err(|error| format!("read the mount table: {}", reason(&error)))?;
    let mut found = Vec::new();
    for Alias { place, part } in aliases(&table, real) {
        let (Ok(there), Ok(here)) = (stat(&place), stat(real.join(&part))) else {
            continue;
        };
        // A part that the sandbox lacks is left: nothing could lie over it.
        if same(&there, &here)
            && let Ok(source) = handle(&sandbox.join(&part))
        {
            found.push((source, place));
        }
    }
    Ok(found)
}

/// Moves on into one more pair of namespaces with the same ids: there the
/// mounts made so far cannot be taken off, not even by the superuser.
fn lock() -> Result<(), String> {
    let text = |error: std::io::Error| format!("lock the view: {}", reason(&error));
    let own = getpid();
    let (mut ours, mut theirs) = UnixStream::pair().map_err(text)?;
    let helper = match sys::fork().map_err(text)? {
        Forked::Child => {
            drop(ours);
            // Ids are mapped by one who stays outside, once we are inside.
            if let Ok(Some(_)) = wire::receive(&mut theirs) {
                let answer = idmap::write(own).err().unwrap_or_default();
                let _ = wire::send(&mut theirs, answer.as_bytes());
            }
            sys::exit(0)
        }
        Forked::Parent(helper) => helper,
    };
    drop(theirs);
    // Where namespaces cannot be nested the view stands, unlocked.
    let moved = sys::unshare(UnshareFlags::NEWUSER | UnshareFlags::NEWNS).is_ok();
    let answer = if moved {
        wire::send(&mut ours, &[]).and_then(|()| wire::receive(&mut ours))
    } else {
        Ok(Some(Vec::new()))
    };
    drop(ours);
    while let Err(Errno::INTR) = waitpid(Some(helper), WaitOptions::empty()) {}
    match answer.map_err(text)? {
        Some(bytes) if bytes.is_empty() => Ok(()),
        Some(bytes) => Err(format!(
            "lock the view: {}",
            String::from_utf8_lossy(&bytes)
        )),
        None => Err("lock the view: its helper ended".to_owned()),
    }
}

/// Says whether both are the same directory.
pub(crate) fn same(left: &Stat, right: &Stat) -> bool {
    (left.st_dev, left.st_ino) == (right.st_dev, right.st_ino)
}

fn words(error: Errno) -> String {
    reason(&error.into())
}

fn at<T>(path: &Path, result: rustix::io::Result<T>) -> Result<T, String> {
    result.map_err(|error| format!("open {}: {}", path.display(), words(error)))
}

fn handle(path: &Path) -> rustix::io::Result<OwnedFd> {
    open(path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty())
}

/// Binds by descriptors, so that no path is looked up twice.
fn bind(source: &OwnedFd, place: &Path) -> Result<(), String> {
    let target = at(place, handle(place))?;
    let name = |fd: &OwnedFd| format!("/proc/self/fd/{}", fd.as_raw_fd());
    mount_bind_recursive(name(source), name(&target))
        .map_err(|error| format!("bind over {}: {}", place.display(), words(error)))
}

/// Puts the null device over a socket; what is no socket stays.
fn hide(socket: &Path) -> Result<(), String> {
    let Ok(found) = stat(socket) else {
        return Ok(());
    };
    if FileType::from_raw_mode(found.st_mode) != FileType::Socket {
        return Ok(());
    }
    let null = Path::new("/dev/null");
    bind(&at(null, handle(null))?, socket)
}

/// Names a setting of the host that refuses user namespaces.
fn advice() -> String {
    let is = |name: &str, value: &str| {
        procfs::read(&format!("/proc/sys/{name}"))
            .is_ok_and(|bytes| bytes.trim_ascii() == value.as_bytes())
    };
    let settings = [
        ("kernel/apparmor_restrict_unprivileged_userns", "1"),
        ("kernel/unprivileged_userns_clone", "0"),
        ("user/max_user_namespaces", "0"),
        ("user/max_mnt_namespaces", "0"),
    ];
    settings
        .into_iter()
        .find(|(name, value)| is(name, value))
        .map(|(name, value)| format!(" ({} is {value})", name.replace('/', ".")))
        .unwrap_or_default()
}
