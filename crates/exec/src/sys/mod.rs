//! The only `unsafe` of this crate: signal dispositions, starting a second
//! copy of this program, and the steps of a process that is about to become a
//! command. Everything else goes through rustix or the standard library.
#![allow(unsafe_code)]

mod process;
mod signals;

pub(crate) use process::{Forked, dup2, execute, exit, forget_on_exec, fork, spawn, unshare};
pub(crate) use signals::{Supervision, Watch, allowing_terminal_output, interrupts};
