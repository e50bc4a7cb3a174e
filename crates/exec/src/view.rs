//! The in-place view: a user and mount namespace in which the sandbox lies
//! over the real path (STR-7). Works on the calling process only, which has
//! one thread and becomes the command; nothing of it shows outside.

use std::os::fd::{AsRawFd as _, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::Path;

use rustix::fs::{FileType, Mode, OFlags, Stat, fstat, open, stat};
use rustix::io::Errno;
use rustix::mount::{MountPropagationFlags, mount_bind_recursive, mount_change};
use rustix::thread::UnshareFlags;

use crate::enter::{ask_for_ids, reason};
use crate::procfs;
use crate::sys;
use crate::wire::{Failure, FailureKind, Order};

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

    bind(&sandbox, &order.real).map_err(failed)?;
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
    Ok(())
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
