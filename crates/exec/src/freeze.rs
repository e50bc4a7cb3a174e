//! Holds a process tree still while its files are scanned (CKP-1), and lets it
//! go on. Never ends a process, and never holds the one that asks.

use std::collections::{HashMap, HashSet};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, getpid, kill_process};
use sandbar_domain::Code;
use sandbar_ports::{PortError, PortResult};

use crate::procfs::{Process, descendants, process};

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
    let end = Instant::now() + LIMIT;
    loop {
        let mut moving = None;
        for found in descendants(root) {
            let Process { pid, started, .. } = found;
            if spared.contains(&pid) || stopped_before.contains(&pid) || found.is_dead() {
                continue;
            }
            let known = frozen.0.contains_key(&pid);
            if !known && found.is_stopped() {
                stopped_before.insert(pid);
                continue;
            }
            if !found.is_stopped() {
                if !known || Instant::now() < end {
                    // One that refuses is named below.
                    if kill_process(pid, Signal::STOP).is_ok() {
                        frozen.0.insert(pid, started);
                    }
                }
                moving = Some(found);
            }
        }
        let Some(restless) = moving else {
            return Ok(frozen);
        };
        if Instant::now() >= end {
            return Err(PortError::new(
                Code::Io,
                format!("hold process {} ({}) still", restless.pid, restless.name),
            )
            .with_disposition(sandbar_domain::Disposition::Retryable));
        }
        std::thread::sleep(PAUSE);
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
