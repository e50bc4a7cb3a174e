//! Holds a process tree still while its files are scanned (CKP-1), and lets it
//! go on. Never ends a process, and never holds the one that asks.

use std::collections::{HashMap, HashSet};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, getpid, kill_process};
use sandbar_domain::{Code, Disposition};
use sandbar_ports::{PortError, PortResult};

use crate::procfs::{look, process};

/// How long a process may take to stop: one in an uninterruptible wait does
/// so when that is over.
const LIMIT: Duration = Duration::from_secs(10);
/// The pause between two looks.
const PAUSE: Duration = Duration::from_millis(1);

/// A process tree that is held still; it goes on when this is dropped.
#[derive(Debug)]
#[must_use = "dropping it lets the processes go on"]
pub struct Frozen(HashMap<Pid, u64>);

impl Frozen {
    /// Counts the processes that are held.
    pub fn count(&self) -> usize {
        self.0.len()
    }

    /// Lets them go on.
    pub fn thaw(self) {}
}

impl Drop for Frozen {
    fn drop(&mut self) {
        for (&pid, &started) in &self.0 {
            // One that ended meanwhile may have given its id to another.
            if process(pid).is_some_and(|process| process.started == started) {
                let _ = kill_process(pid, Signal::CONT);
            }
        }
    }
}

/// Stops every descendant of `pid` (itself not included), except this process
/// and its ancestors, until no more appear. Those that were stopped before
/// are not touched, and stay so afterwards. Blocks its thread. Errors: `io`,
/// retryable, names what would not stop; nothing is held then.
pub fn freeze(pid: u32) -> PortResult<Frozen> {
    let Some(root) = i32::try_from(pid).ok().and_then(Pid::from_raw) else {
        return Ok(Frozen(HashMap::new()));
    };
    let spared = chain(getpid());
    let mut frozen = Frozen(HashMap::new());
    let mut stopped_before = HashSet::new();
    let mut quiet: Option<HashSet<Pid>> = None;
    let end = Instant::now() + LIMIT;
    loop {
        let (all, ended) = look(root);
        let mut moving = None;
        let mut seen = HashSet::new();
        for found in all {
            let pid = found.pid;
            if spared.contains(&pid) || stopped_before.contains(&pid) || found.is_dead() {
                continue;
            }
            seen.insert(pid);
            let known = frozen.0.contains_key(&pid);
            if !known && found.is_stopped() {
                stopped_before.insert(pid);
            } else if !known || !found.is_still() {
                // One that refuses is named in the end.
                if kill_process(pid, Signal::STOP).is_ok() {
                    frozen.0.insert(pid, found.started);
                }
                moving = Some(found);
            }
        }
        // A process that was born late in one look is in the next, since its
        // parent is held by then: two looks must agree.
        let settled = moving.is_none() && !ended;
        if settled && quiet.as_ref() == Some(&seen) {
            return Ok(frozen);
        }
        quiet = settled.then_some(seen);
        if Instant::now() >= end {
            let restless = moving.map_or_else(
                || "the processes of the command".to_owned(),
                |process| format!("process {} ({})", process.pid, process.name),
            );
            return Err(PortError::new(Code::Io, format!("hold {restless} still"))
                .with_disposition(Disposition::Retryable));
        }
        if moving.is_some() {
            std::thread::sleep(PAUSE);
        }
    }
}

/// Lists a process and its ancestors.
fn chain(from: Pid) -> HashSet<Pid> {
    let mut found = HashSet::new();
    let mut next = Some(from);
    while let Some(pid) = next.filter(|&pid| found.insert(pid)) {
        next = process(pid).and_then(|process| Pid::from_raw(process.parent));
    }
    found
}
