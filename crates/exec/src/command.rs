//! The last steps of a process before it is the command: view, directory,
//! streams, environment, program. Reports why it cannot go on.

use std::ffi::{CString, OsStr, OsString};
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

use rustix::fs::stat;
use rustix::process::chdir;

use crate::enter::reason;
use crate::environment::{assign, value};
use crate::sys;
use crate::view::{self, same};
use crate::wire::{Aim, Failure, FailureKind, Order};

/// Where programs are looked for without `PATH`.
const DEFAULT_PATH: &str = "/usr/local/bin:/usr/bin:/bin";

/// Becomes the command; returns for a probe, or with the reason why not.
pub(crate) fn replace_by(order: &Order, link: &mut UnixStream) -> Result<(), Failure> {
    let root = match order.aim {
        Aim::InPlace | Aim::Probe => {
            view::cover(order, link)?;
            &order.real
        }
        Aim::Plain => &order.sandbox,
    };
    let directory = change_directory(root, &order.sandbox, &order.subdir, order.aim)?;
    if order.aim == Aim::Probe {
        return Ok(());
    }
    if order.stdout_to_stderr {
        sys::dup2(2, 1).map_err(|error| {
            Failure::new(
                FailureKind::Other,
                format!("send standard output to standard error: {}", reason(&error)),
            )
        })?;
    }
    let mut environment = order.environment.clone();
    assign(&mut environment, "PWD", &directory);
    let error = execute(&order.argv, &environment);
    let program = order
        .argv
        .first()
        .map_or(OsStr::new(""), OsString::as_os_str);
    let kind = match error.raw_os_error() {
        Some(libc::E2BIG | libc::ENOMEM | libc::EAGAIN) => FailureKind::Other,
        _ => FailureKind::Command,
    };
    let missing_interpreter = error.kind() == io::ErrorKind::NotFound
        && program.as_bytes().contains(&b'/')
        && stat(program).is_ok();
    let why = if missing_interpreter {
        "its interpreter does not exist".to_owned()
    } else {
        reason(&error)
    };
    Err(Failure::new(
        kind,
        format!("run {}: {why}", program.to_string_lossy()),
    ))
}

/// Goes to the sub-directory, or to the root where that does not exist.
fn change_directory(
    root: &Path,
    sandbox: &Path,
    subdir: &Path,
    aim: Aim,
) -> Result<PathBuf, Failure> {
    let failed = |path: &Path, error: io::Error| {
        let kind = match error.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => FailureKind::Gone,
            _ => FailureKind::Other,
        };
        Failure::new(
            kind,
            format!("enter {}: {}", path.display(), reason(&error)),
        )
    };
    chdir(root).map_err(|error| failed(root, error.into()))?;
    // In the plain view this also tells a sandbox from a stale path.
    if aim == Aim::Plain {
        let (here, there) = (stat("."), stat(sandbox));
        if !matches!((here, there), (Ok(here), Ok(there)) if same(&here, &there)) {
            return Err(failed(root, io::ErrorKind::NotFound.into()));
        }
    }
    if subdir.as_os_str().is_empty() {
        return Ok(root.to_owned());
    }
    match chdir(subdir) {
        Ok(()) => Ok(root.join(subdir)),
        Err(error) => {
            eprintln!(
                "sandbar: {}: {} in the sandbox; the command starts in its root",
                subdir.display(),
                reason(&error.into())
            );
            Ok(root.to_owned())
        }
    }
}

/// Replaces this process as `execvp` does, with the command's own `PATH`.
fn execute(argv: &[OsString], environment: &[(OsString, OsString)]) -> io::Error {
    let text = |bytes: &OsStr| CString::new(bytes.as_bytes());
    let Some(program) = argv.first().filter(|program| !program.is_empty()) else {
        return io::Error::from_raw_os_error(libc::ENOENT);
    };
    let Ok(arguments) = argv
        .iter()
        .map(|argument| text(argument))
        .collect::<Result<Vec<_>, _>>()
    else {
        return io::Error::new(io::ErrorKind::InvalidInput, "an argument holds a NUL byte");
    };
    // A name with `=` or a NUL cannot be passed on; the system never has one.
    let variables: Vec<_> = environment
        .iter()
        .filter_map(|(name, value)| {
            CString::new([name.as_bytes(), b"=", value.as_bytes()].concat()).ok()
        })
        .collect();
    let mut denied = None;
    for candidate in candidates(program, value(environment, "PATH")) {
        let Ok(path) = text(candidate.as_os_str()) else {
            continue;
        };
        let error = sys::execute(&path, &arguments, &variables);
        match error.raw_os_error() {
            Some(libc::ENOEXEC) => {
                // A script without `#!`, as the shell would start it.
                let mut shell = vec![c"/bin/sh".to_owned(), path];
                shell.extend(arguments.iter().skip(1).cloned());
                return sys::execute(c"/bin/sh", &shell, &variables);
            }
            Some(libc::ENOENT | libc::ENOTDIR | libc::ELOOP | libc::ENAMETOOLONG) => {}
            Some(libc::EACCES) => denied = Some(error),
            _ => return error,
        }
    }
    denied.unwrap_or_else(|| io::Error::from_raw_os_error(libc::ENOENT))
}

/// Lists where a program may be, in order; an empty part of `PATH` is the
/// current directory.
fn candidates(program: &OsStr, path: Option<&OsStr>) -> Vec<PathBuf> {
    if program.as_bytes().contains(&b'/') {
        return vec![program.into()];
    }
    path.unwrap_or(OsStr::new(DEFAULT_PATH))
        .as_bytes()
        .split(|&byte| byte == b':')
        .map(|dir| {
            Path::new(OsStr::from_bytes(if dir.is_empty() { b"." } else { dir })).join(program)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_are_looked_for_as_the_shell_does() {
        let list = |program: &str, path| candidates(OsStr::new(program), path);
        let path = Some(OsStr::new("/a::/b"));
        assert_eq!(list("p", path), ["/a/p", "./p", "/b/p"].map(PathBuf::from));
        assert_eq!(list("x/p", path), [PathBuf::from("x/p")]);
        assert_eq!(list("p", None).len(), 3);
    }
}
