//! What a command leaves behind: named, asked to end, then made to end.
//! Only descendants of this supervisor are ever signalled.

use std::collections::BTreeMap;
use std::os::fd::AsFd as _;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Signal, WaitOptions, getpid, kill_process, wait};

use crate::procfs::{Process, descendants};
use crate::sys::Supervision;

/// Stragglers of a pipeline end by themselves; only later ones are named.
const SETTLE: Duration = Duration::from_millis(100);
/// The grace between TERM and KILL.
const GRACE: Duration = Duration::from_secs(2);
/// After this long a process that KILL cannot end is given up.
const LIMIT: Duration = Duration::from_secs(10);

/// Stops every descendant and returns their ids and names; a name ends in
/// " (still running)" where that was not possible.
pub(crate) fn stop(supervision: &Supervision) -> Vec<(u32, String)> {
    if all_gone(supervision, SETTLE) {
        return Vec::new();
    }
    let mut named = BTreeMap::new();
    signal_all(Signal::TERM, &mut named);
    if !all_gone(supervision, GRACE) {
        let end = Instant::now() + LIMIT;
        loop {
            // A process may be born while we look: look until none is left.
            signal_all(Signal::KILL, &mut named);
            if all_gone(supervision, SETTLE) {
                break;
            }
            if Instant::now() >= end {
                for process in living() {
                    named.insert(
                        number(&process),
                        format!("{} (still running)", process.name),
                    );
                }
                break;
            }
        }
    }
    named.into_iter().collect()
}

fn number(process: &Process) -> u32 {
    process.pid.as_raw_pid().unsigned_abs()
}

fn living() -> Vec<Process> {
    let mut found = descendants(getpid());
    found.retain(|process| !process.is_dead());
    found
}

fn signal_all(signal: Signal, named: &mut BTreeMap<u32, String>) {
    for process in living() {
        // A refusal shows in what is left in the end.
        let _ = kill_process(process.pid, signal);
        if process.is_stopped() {
            let _ = kill_process(process.pid, Signal::CONT);
        }
        named.entry(number(&process)).or_insert(process.name);
    }
}

/// Reaps until no child is left or the time is over; says whether none is.
fn all_gone(supervision: &Supervision, limit: Duration) -> bool {
    let end = Instant::now() + limit;
    loop {
        loop {
            match wait(WaitOptions::NOHANG) {
                Ok(Some(_)) => {}
                Ok(None) => break,
                Err(rustix::io::Errno::INTR) => {}
                Err(_) => return true,
            }
        }
        let rest = end.saturating_duration_since(Instant::now());
        if rest.is_zero() {
            return false;
        }
        let limit = Timespec::try_from(rest).ok();
        let mut fds = [PollFd::from_borrowed_fd(supervision.as_fd(), PollFlags::IN)];
        // Woken early or not, the children decide.
        let _ = poll(&mut fds, limit.as_ref());
        supervision.drain();
    }
}
