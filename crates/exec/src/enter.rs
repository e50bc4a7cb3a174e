//! The hidden `__enter` start of this program: from the order to a running
//! command and its supervisor. Runs before any thread exists, and never
//! returns to the program's own `main`.

use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream;

use rustix::process::Pid;

use crate::command;
use crate::idmap;
use crate::supervisor;
use crate::sys::{self, Forked, Supervision};
use crate::wire::{self, Aim, Failure, FailureKind, Order, Report};

/// What the new process asks of the supervisor.
const MAP_IDS: u8 = b'M';
/// What the new process says before it gives a failure.
const FAILED: u8 = b'F';

/// Serves one order that comes over the inherited socket `fd`.
pub(crate) fn enter(fd: &str) -> ! {
    let taken = fd
        .parse()
        .ok()
        .and_then(|fd| sys::forget_on_exec(fd).ok())
        .and_then(|mut control| {
            let bytes = wire::receive(&mut control).ok()??;
            Some((Order::decode(&bytes).ok()?, control))
        });
    let Some((order, mut control)) = taken else {
        // Best effort: there may be no standard error.
        let _ = writeln!(
            std::io::stderr(),
            "`__enter` is how this program starts itself; it takes no orders from people"
        );
        sys::exit(125);
    };
    let failure = match start(&order, &mut control) {
        Ok((child, supervision)) => supervisor::supervise(child, &supervision, control),
        Err(failure) => failure,
    };
    // A caller that is gone needs no answer.
    let _ = wire::send(&mut control, &Report::Failed(failure).encode());
    sys::exit(125)
}

/// Starts the command and reports it; for a probe the end is the answer.
fn start(order: &Order, control: &mut UnixStream) -> Result<(Pid, Supervision), Failure> {
    let other = |what: &str, error: std::io::Error| {
        Failure::new(FailureKind::Other, format!("{what}: {}", reason(&error)))
    };
    // Cosmetic: the name would be the number of a descriptor.
    let _ = rustix::thread::set_name(c"sandbar");
    rustix::process::set_child_subreaper(Some(rustix::process::getpid()))
        .map_err(|error| other("become the reaper of the command", error.into()))?;
    let supervision = Supervision::hold().map_err(|error| other("hold signals", error))?;
    let (mut ours, theirs) =
        UnixStream::pair().map_err(|error| other("make a socket pair", error))?;
    let child = match sys::fork().map_err(|error| other("start a process", error))? {
        Forked::Child => {
            drop(ours);
            Supervision::release();
            become_command(order, theirs)
        }
        Forked::Parent(child) => child,
    };
    drop(theirs);
    supervision.settle();
    serve(child, &mut ours)?;
    // A caller that is gone is noticed by the supervisor.
    let _ = wire::send(control, &Report::Started.encode());
    Ok((child, supervision))
}

/// Helps the new process until it has become the command, which closes its
/// end of the socket, or says why it cannot.
fn serve(child: Pid, link: &mut UnixStream) -> Result<(), Failure> {
    loop {
        let mut word = [0];
        match link.read(&mut word) {
            Ok(0) => return Ok(()),
            Ok(_) if word[0] == MAP_IDS => {
                let answer = idmap::write(child).err().unwrap_or_default();
                if wire::send(link, answer.as_bytes()).is_err() {
                    return Ok(());
                }
            }
            Ok(_) => {
                let failure = wire::receive(link).ok().flatten().and_then(|bytes| {
                    match Report::decode(&bytes) {
                        Ok(Report::Failed(failure)) => Some(failure),
                        _ => None,
                    }
                });
                return Err(failure.unwrap_or_else(|| {
                    Failure::new(FailureKind::Other, "start the command: no reason given")
                }));
            }
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            // It was ended before it read an answer; the wait says by what.
            Err(error) if error.kind() == std::io::ErrorKind::ConnectionReset => return Ok(()),
            Err(error) => {
                return Err(Failure::new(
                    FailureKind::Other,
                    format!("start the command: {}", reason(&error)),
                ));
            }
        }
    }
}

fn become_command(order: &Order, mut link: UnixStream) -> ! {
    let failure = match command::replace_by(order, &mut link) {
        Ok(()) => {
            debug_assert_eq!(order.aim, Aim::Probe, "a command replaces this process");
            sys::exit(0)
        }
        Err(failure) => failure,
    };
    // Without a supervisor there is nobody to tell.
    let _ = link.write_all(&[FAILED]);
    let _ = wire::send(&mut link, &Report::Failed(failure).encode());
    sys::exit(125)
}

/// Asks the supervisor, which is outside, to map the ids of this process.
pub(crate) fn ask_for_ids(link: &mut UnixStream) -> Result<(), String> {
    let answer = link
        .write_all(&[MAP_IDS])
        .and_then(|()| wire::receive(link))
        .map_err(|error| format!("map ids: {}", reason(&error)))?;
    match answer {
        Some(bytes) if bytes.is_empty() => Ok(()),
        Some(bytes) => Err(String::from_utf8_lossy(&bytes).into_owned()),
        None => Err("map ids: the supervisor ended".to_owned()),
    }
}

/// Words an error as messages have it: lower case, no number.
pub(crate) fn reason(error: &std::io::Error) -> String {
    let text = error.to_string();
    let text = text.split(" (os error").next().unwrap_or_default();
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| {
        first.to_lowercase().chain(letters).collect()
    })
}

#[cfg(test)]
mod tests {
    #[test]
    fn reasons_are_fragments() {
        let error = std::io::Error::from_raw_os_error(libc::EACCES);
        assert_eq!(super::reason(&error), "permission denied");
    }
}
