//! Running a command in a sandbox (STR-7).

use std::ffi::OsString;
use std::path::PathBuf;

use async_trait::async_trait;

use crate::error::PortResult;

/// Starts commands, and knows processes.
#[async_trait]
pub trait Runner: Send + Sync {
    /// Says, by doing it, which views work here. Never writes.
    async fn probe(&self) -> ViewReport;

    /// Runs a command with the terminal passed through, and waits for it and
    /// for what it left behind. Errors: `command_not_found`, `not_available`
    /// when the in-place view was demanded and cannot be had.
    async fn run(&self, request: Run) -> PortResult<RunEnd>;

    /// Describes the calling process as an owner of plans.
    fn owner(&self) -> Owner;

    /// Says whether an owner still lives. One on another host counts as alive;
    /// one of another boot of this host, or of a pid namespace that is gone,
    /// does not.
    fn is_alive(&self, owner: &Owner) -> bool;
}

/// How a command sees its sandbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum View {
    /// Bound over the real path, in a mount namespace of its own.
    InPlace,
    /// At the sandbox's own path.
    Plain,
}

impl View {
    /// Returns the word of the output contract.
    pub fn word(self) -> &'static str {
        match self {
            Self::InPlace => "in-place",
            Self::Plain => "plain",
        }
    }
}

/// Which views work here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ViewReport {
    /// Whether the in-place view works.
    pub in_place: bool,
    /// Why not.
    pub reason: Option<String>,
}

/// What to run.
#[derive(Debug, Clone)]
pub struct Run {
    /// Program and arguments; not empty.
    pub argv: Vec<OsString>,
    /// The real root.
    pub real: PathBuf,
    /// The sandbox root.
    pub sandbox: PathBuf,
    /// The sub-directory to start in, below either root; empty for the root.
    pub subdir: PathBuf,
    /// The view to use.
    pub view: View,
    /// Further binds of the in-place view: `(what, where)`; the place exists.
    pub binds: Vec<(PathBuf, PathBuf)>,
    /// Variables to set.
    pub set: Vec<(OsString, OsString)>,
    /// Variables to remove.
    pub unset: Vec<OsString>,
    /// Send the command's standard output to standard error (`--json`).
    pub stdout_to_stderr: bool,
}

/// How a command ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunEnd {
    /// Its exit code; 128 + n for signal n.
    pub code: u8,
    /// Processes it left behind, which were stopped: pid and name.
    pub left_behind: Vec<(u32, String)>,
}

/// Who drives a plan: enough to tell a dead owner from a reused pid.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Owner {
    /// The host: its machine id, else its name.
    pub host: String,
    /// The boot id: on the same host, an owner of another boot is dead.
    pub boot: String,
    /// The pid namespace, as its inode number.
    pub pid_namespace: u64,
    /// The process id.
    pub pid: u32,
    /// The start time of the process in clock ticks since boot.
    pub started: u64,
}
