//! Facts about processes, read from `/proc`. Never signals anything.
#![allow(
    clippy::disallowed_methods,
    reason = "/proc describes processes; it holds no files of anyone"
)]

use std::collections::HashMap;
use std::io;
use std::path::PathBuf;

use rustix::process::Pid;

/// One process as its `stat` line shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Process {
    pub(crate) pid: Pid,
    pub(crate) parent: i32,
    pub(crate) name: String,
    pub(crate) state: u8,
    pub(crate) threads: u32,
    /// Clock ticks from boot to its start.
    pub(crate) started: u64,
}

impl Process {
    /// Says whether it has ended and only waits to be reaped; its first
    /// thread alone may end earlier.
    pub(crate) fn is_dead(&self) -> bool {
        matches!(self.state, b'Z' | b'X') && self.threads <= 1
    }

    /// Says whether a signal or a debugger holds its first thread.
    pub(crate) fn is_stopped(&self) -> bool {
        matches!(self.state, b'T' | b't')
    }

    /// Says whether no thread of it runs or can run before it is told to.
    ///
    /// One that hangs in `vfork` until its child is a program counts: if the
    /// child was stopped first, the parent cannot be, and cannot go on.
    pub(crate) fn is_still(&self) -> bool {
        if self.threads == 1 {
            return self.is_stopped() || is_in_vfork(self.state, &format!("/proc/{}", self.pid));
        }
        let Ok(tasks) = std::fs::read_dir(format!("/proc/{}/task", self.pid)) else {
            return false;
        };
        tasks.flatten().all(|task| {
            let path = task.path().to_string_lossy().into_owned();
            match read(&format!("{path}/stat"))
                .ok()
                .and_then(|line| parse(&line))
            {
                Some(task) => {
                    matches!(task.state, b'T' | b't' | b'Z' | b'X')
                        || is_in_vfork(task.state, &path)
                }
                None => false,
            }
        })
    }
}

/// Reads a file of `/proc`.
pub(crate) fn read(path: &str) -> io::Result<Vec<u8>> {
    std::fs::read(path)
}

/// Reads a link of `/proc`.
pub(crate) fn link(path: &str) -> io::Result<PathBuf> {
    std::fs::read_link(path)
}

fn is_in_vfork(state: u8, task: &str) -> bool {
    const NAMES: [&[u8]; 4] = [
        b"kernel_clone",
        b"wait_for_vfork_done",
        b"_do_fork",
        b"do_fork",
    ];
    state == b'D'
        && read(&format!("{task}/wchan")).is_ok_and(|name| NAMES.contains(&name.trim_ascii()))
}

/// Parses a `stat` line. The name may hold anything, parentheses included, so
/// that the fields are counted from the last one.
fn parse(line: &[u8]) -> Option<Process> {
    let open = line.iter().position(|&byte| byte == b'(')?;
    let close = line.iter().rposition(|&byte| byte == b')')?;
    let pid = std::str::from_utf8(&line[..open]).ok()?.trim();
    let name = String::from_utf8_lossy(line.get(open + 1..close)?).into_owned();
    let mut fields = std::str::from_utf8(&line[close + 1..])
        .ok()?
        .split_ascii_whitespace();
    let state = *fields.next()?.as_bytes().first()?;
    let parent = fields.next()?.parse().ok()?;
    // Fields 20 and 22 of the line; state is field 3.
    let threads = fields.nth(15)?.parse().ok()?;
    let started = fields.nth(1)?.parse().ok()?;
    Some(Process {
        pid: Pid::from_raw(pid.parse().ok()?)?,
        parent,
        name,
        state,
        threads,
        started,
    })
}

/// Describes one process; `None` when it does not exist or is hidden.
pub(crate) fn process(pid: Pid) -> Option<Process> {
    parse(&read(&format!("/proc/{pid}/stat")).ok()?)
}

/// Lists the ids of all processes that can be seen.
pub(crate) fn pids() -> Vec<Pid> {
    let Ok(entries) = std::fs::read_dir("/proc") else {
        return Vec::new();
    };
    entries
        .flatten()
        .filter_map(|entry| Pid::from_raw(entry.file_name().to_str()?.parse().ok()?))
        .collect()
}

/// Lists what descends from `root`, itself not included, parents first.
pub(crate) fn descendants(root: Pid) -> Vec<Process> {
    look(root).0
}

/// Lists what descends from `root`, and says whether any process of the
/// system ended during the look: it may have had a child that was missed.
pub(crate) fn look(root: Pid) -> (Vec<Process>, bool) {
    let mut children: HashMap<i32, Vec<Process>> = HashMap::new();
    let mut ended = false;
    for found in pids().into_iter().map(process) {
        match found {
            Some(process) => children.entry(process.parent).or_default().push(process),
            None => ended = true,
        }
    }
    let mut found = children.remove(&root.as_raw_pid()).unwrap_or_default();
    let mut next = 0;
    while let Some(process) = found.get(next) {
        let below = children.remove(&process.pid.as_raw_pid());
        found.extend(below.unwrap_or_default());
        next += 1;
    }
    (found, ended)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_parentheses_and_spaces_hides_nothing() {
        let line = b"42 (a) R 1 (b) T 7 42 42 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 9876 1 2 3\n";
        let process = parse(line).expect("valid");
        assert_eq!(process.name, "a) R 1 (b");
        assert_eq!((process.state, process.parent), (b'T', 7));
        assert_eq!((process.threads, process.started), (1, 9876));
        assert!(process.is_stopped() && !process.is_dead());
        for cut in 0..60 {
            assert_eq!(parse(&line[..cut]), None, "cut at {cut}");
        }
    }

    #[test]
    fn it_finds_itself() {
        let own = process(rustix::process::getpid()).expect("it runs");
        assert_eq!(own.pid, rustix::process::getpid());
        assert!(own.started > 0 && !own.is_dead());
    }
}
