//! Waits for one command, passes signals on, and stops what it leaves behind.
//!
//! The supervisor stays outside the command's namespaces and is the reaper of
//! all its descendants. It outlives its caller only to stop them: a plan
//! whose owner is dead has no writers. It never interprets what a command does.

use std::io::Read as _;
use std::os::fd::AsFd as _;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, Signal, WaitOptions, WaitStatus, kill_process, wait};

use crate::leftovers;
use crate::procfs;
use crate::sys::{self, Supervision};
use crate::wire::{self, Report};

/// How long a command must have been stopped from the terminal alone before
/// the caller follows it: a stop of the whole group is over by then, since
/// the continuation reaches all members at once.
const ALONE: Duration = Duration::from_millis(100);

/// Waits for `child` to its end, reports, and ends this process.
pub(crate) fn supervise(child: Pid, supervision: &Supervision, mut control: UnixStream) -> ! {
    let ended = watch(child, supervision, &mut control);
    let left = leftovers::stop(supervision);
    if let Some(code) = ended {
        // One that ended it came from the terminal, if it has not reached us.
        let ended_by = [Signal::INT, Signal::QUIT].map(|signal| 128 + signal.as_raw());
        let at_least = u8::from(ended_by.contains(&i32::from(code)));
        let interrupts = sys::interrupts().max(at_least);
        // A caller that is gone needs no answer.
        let report = Report::Ended(code, interrupts, left);
        let _ = wire::send(&mut control, &report.encode());
    }
    sys::exit(0)
}

/// Returns the code of the command, or `None` when the caller is gone.
fn watch(child: Pid, supervision: &Supervision, control: &mut UnixStream) -> Option<u8> {
    let mut stopped: Option<Instant> = None;
    loop {
        while let Ok(Some((pid, status))) = wait(WaitOptions::NOHANG | WaitOptions::UNTRACED) {
            if pid != child {
                continue;
            }
            match exit_code(status) {
                Some(code) => return Some(code),
                None => stopped = from_terminal(status).then(Instant::now),
            }
        }
        let rest = stopped.map(|since| ALONE.saturating_sub(since.elapsed()));
        if rest == Some(Duration::ZERO) {
            stopped = None;
            if procfs::process(child).is_some_and(|process| process.is_stopped()) {
                let _ = wire::send(control, &Report::Stopped.encode());
            }
            continue;
        }
        let readable = ready(supervision, control, rest);
        supervision.drain();
        if readable {
            let mut signals = [0; 64];
            match control.read(&mut signals) {
                Ok(0) | Err(_) => return None,
                Ok(count) => signals[..count].iter().for_each(|&raw| pass_on(child, raw)),
            }
        }
    }
}

/// Waits until a child changed or the caller speaks; says the latter.
pub(crate) fn ready(
    supervision: &Supervision,
    control: &UnixStream,
    limit: Option<Duration>,
) -> bool {
    let limit = limit.and_then(|limit| Timespec::try_from(limit).ok());
    let mut fds = [
        PollFd::from_borrowed_fd(supervision.as_fd(), PollFlags::IN),
        PollFd::from_borrowed_fd(control.as_fd(), PollFlags::IN),
    ];
    // An interrupted wait is one that found nothing.
    poll(&mut fds, limit.as_ref()).is_ok() && !fds[1].revents().is_empty()
}

fn pass_on(child: Pid, raw: u8) {
    for signal in [Signal::TERM, Signal::HUP] {
        if i32::from(raw) == signal.as_raw() {
            // It is our unreaped child: the id cannot belong to another.
            let _ = kill_process(child, signal);
        }
    }
}

/// Says whether the terminal stopped it. A plain SIGSTOP is somebody's
/// deliberate freeze and no business of the caller's.
fn from_terminal(status: WaitStatus) -> bool {
    [Signal::TSTP, Signal::TTIN, Signal::TTOU]
        .iter()
        .any(|signal| status.stopping_signal() == Some(signal.as_raw()))
}

/// Turns an end into an exit code; `None` if it has not ended.
pub(crate) fn exit_code(status: WaitStatus) -> Option<u8> {
    let code = match (status.exit_status(), status.terminating_signal()) {
        (Some(code), _) => code,
        (None, Some(signal)) => 128 + signal,
        (None, None) => return None,
    };
    Some(u8::try_from(code).unwrap_or(u8::MAX))
}
