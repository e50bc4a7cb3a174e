//! The caller's side of one command: starts the supervisor, hands it the
//! order, passes signals on, and waits. Blocks its thread; holds the
//! terminal's foreground as an ordinary parent of a command would.

use std::ffi::{CString, OsStr};
use std::io::{self, Write as _};
use std::os::fd::{AsFd as _, AsRawFd as _, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::net::UnixStream;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::{Mode, OFlags};
use rustix::process::{Pid, Signal, WaitOptions, getpgrp, getpid, kill_process, waitpid};
use rustix::termios::{tcgetpgrp, tcsetpgrp};
use sandbar_domain::{Code, Disposition};
use sandbar_ports::exec::RunEnd;
use sandbar_ports::{PortError, PortResult};

use crate::enter::reason;
use crate::linux::{ENTER, own_binary};
use crate::supervisor::exit_code;
use crate::sys::{self, Watch};
use crate::wire::{self, Failure, FailureKind, Order, Report};

/// Runs one order to its end.
pub(crate) fn run(order: &Order) -> PortResult<RunEnd> {
    let internal = |what: &str, error: io::Error| {
        PortError::new(Code::Internal, format!("{what}: {}", reason(&error))).with_source(error)
    };
    let (mut control, theirs) =
        UnixStream::pair().map_err(|error| internal("make a socket pair", error))?;
    let terminal = Terminal::remember();
    let watch = Watch::begin().map_err(|error| internal("watch signals", error))?;
    let supervisor = start(&theirs).map_err(|error| {
        PortError::new(
            Code::Io,
            format!("start the supervisor of the command: {}", reason(&error)),
        )
        .with_source(error)
    })?;
    drop(theirs);
    let mut progress = Progress::default();
    // A supervisor that is gone shows in what follows.
    if wire::send(&mut control, &order.encode()).is_ok() {
        converse(&mut control, &watch, &mut progress);
    }
    drop(control);
    let end = reap(supervisor);
    drop(watch);
    terminal.take_back();
    progress.verdict(end)
}

fn start(theirs: &UnixStream) -> io::Result<Pid> {
    let text = |bytes: &OsStr| CString::new(bytes.as_bytes()).map_err(io::Error::from);
    let binary =
        own_binary().ok_or_else(|| io::Error::other("`init` was not called first in `main`"))?;
    // The path of the binary may be covered or rebuilt meanwhile; this is not.
    let program = text(OsStr::new(&format!("/proc/self/fd/{}", binary.as_raw_fd())))?;
    let name = std::env::args_os()
        .next()
        .unwrap_or_else(|| "sandbar".into());
    let argv = [
        text(&name)?,
        text(OsStr::new(ENTER))?,
        text(OsStr::new(&theirs.as_raw_fd().to_string()))?,
    ];
    let environment: Vec<_> = std::env::vars_os()
        .filter_map(|(name, value)| {
            CString::new([name.as_bytes(), b"=", value.as_bytes()].concat()).ok()
        })
        .collect();
    sys::spawn(&program, &argv, &environment, theirs.as_fd())
}

#[derive(Default)]
struct Progress {
    started: bool,
    failure: Option<Failure>,
    end: Option<RunEnd>,
}

/// Listens until the supervisor closes its end.
fn converse(control: &mut UnixStream, watch: &Watch, progress: &mut Progress) {
    loop {
        let mut fds = [
            PollFd::from_borrowed_fd(control.as_fd(), PollFlags::IN),
            PollFd::from_borrowed_fd(watch.as_fd(), PollFlags::IN),
        ];
        // An interrupted wait is one that found nothing.
        let polled = poll(&mut fds, None).is_ok();
        let spoken = polled && !fds[0].revents().is_empty();
        for signal in watch.take() {
            let _ = control.write_all(&[signal]);
        }
        if !spoken {
            continue;
        }
        let report = match wire::receive(control) {
            Ok(Some(bytes)) => Report::decode(&bytes),
            Ok(None) | Err(_) => return,
        };
        match report {
            Ok(Report::Started) => progress.started = true,
            Ok(Report::Failed(failure)) => progress.failure = Some(failure),
            Ok(Report::Ended(code, interrupts, left_behind)) => {
                watch.await_interrupts(interrupts);
                progress.end = Some(RunEnd { code, left_behind });
            }
            Ok(Report::Stopped) => {
                // Follow the command, so that the shell gets its prompt back.
                let _ = kill_process(getpid(), Signal::TSTP);
            }
            Err(_) => return,
        }
    }
}

/// Waits for the supervisor; `None` if somebody else reaped it.
fn reap(supervisor: Pid) -> Option<u8> {
    loop {
        match waitpid(Some(supervisor), WaitOptions::empty()) {
            Ok(Some((_, status))) => {
                if let Some(code) = exit_code(status) {
                    return Some(code);
                }
            }
            Ok(None) | Err(rustix::io::Errno::INTR) => {}
            Err(_) => return None,
        }
    }
}

impl Progress {
    fn verdict(self, supervisor: Option<u8>) -> PortResult<RunEnd> {
        if let Some(end) = self.end {
            return Ok(end);
        }
        if let Some(failure) = self.failure {
            return Err(error_of(failure));
        }
        match supervisor {
            // Ctrl-C before anything ran.
            Some(code) if !self.started && code > 128 => Ok(RunEnd {
                code,
                left_behind: Vec::new(),
            }),
            _ if !self.started => Err(PortError::new(
                Code::Internal,
                "start the command: its supervisor ended at once",
            )),
            _ => Err(PortError::new(
                Code::Internal,
                "wait for the command: its supervisor was killed, the command may still run",
            )
            .with_disposition(Disposition::Indeterminate)),
        }
    }
}

fn error_of(failure: Failure) -> PortError {
    let code = match failure.kind {
        FailureKind::Command => Code::CommandNotFound,
        FailureKind::View => Code::NotAvailable,
        FailureKind::Gone => Code::SandboxGone,
        FailureKind::Other => Code::Io,
    };
    let error = PortError::new(code, failure.text);
    if failure.kind == FailureKind::View {
        error.with_hint("`--view plain` works without namespaces")
    } else {
        error
    }
}

/// The controlling terminal, if this process is in its foreground.
struct Terminal(Option<OwnedFd>);

impl Terminal {
    fn remember() -> Self {
        let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
        let terminal = rustix::fs::open("/dev/tty", flags, Mode::empty()).ok();
        Self(terminal.filter(|terminal| tcgetpgrp(terminal) == Ok(getpgrp())))
    }

    /// An interactive shell makes itself the foreground, and one that was
    /// killed leaves it so.
    fn take_back(&self) {
        if let Some(terminal) = &self.0
            && tcgetpgrp(terminal) != Ok(getpgrp())
        {
            // A terminal that is gone needs no foreground.
            let _ = sys::allowing_terminal_output(|| tcsetpgrp(terminal, getpgrp()));
        }
    }
}
