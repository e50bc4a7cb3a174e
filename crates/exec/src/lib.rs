//! Starts commands in their sandbox, and knows processes (STR-7).
//!
//! Two views: *plain* starts a command in the sandbox's own directory; *in
//! place* gives it a user and mount namespace in which the sandbox lies over
//! the real path. Each command has a supervisor, a second copy of this program
//! that [`init`] recognises before any thread exists: it makes the namespaces,
//! is the reaper of what the command leaves behind, and stops it.
//!
//! This crate never writes files and never decides what is sandboxed. It is
//! no security boundary: it keeps honest programs on the copy.

#[cfg(target_os = "linux")]
mod aliases;
#[cfg(target_os = "linux")]
mod command;
#[cfg(target_os = "linux")]
mod enter;
#[cfg(target_os = "linux")]
mod environment;
#[cfg(target_os = "linux")]
mod freeze;
#[cfg(target_os = "linux")]
mod idmap;
#[cfg(target_os = "linux")]
mod leftovers;
#[cfg(target_os = "linux")]
mod linux;
#[cfg(target_os = "linux")]
mod owner;
#[cfg(target_os = "linux")]
mod procfs;
#[cfg(target_os = "linux")]
mod session;
#[cfg(target_os = "linux")]
mod supervisor;
#[cfg(target_os = "linux")]
mod sys;
#[cfg(target_os = "linux")]
mod view;
#[cfg(target_os = "linux")]
mod wire;

#[cfg(not(target_os = "linux"))]
mod elsewhere;
mod pager;

#[cfg(target_os = "linux")]
pub use environment::GIT_VARIABLES;
#[cfg(target_os = "linux")]
pub use freeze::{Frozen, freeze};
#[cfg(target_os = "linux")]
pub use linux::{Processes, init};

#[cfg(not(target_os = "linux"))]
pub use elsewhere::{Processes, init};

pub use pager::Pager;

/// The variable that names the plan to a command in its sandbox.
pub const PLAN_VARIABLE: &str = "SANDBAR_PLAN";

/// The variable that names the sandbox root to a command in its sandbox.
pub const ROOT_VARIABLE: &str = "SANDBAR_ROOT";

/// Returns the plan in whose sandbox the calling process runs, if it does.
pub fn inside_sandbox() -> Option<String> {
    let plan = std::env::var_os(PLAN_VARIABLE)?;
    (!plan.is_empty()).then(|| plan.to_string_lossy().into_owned())
}
