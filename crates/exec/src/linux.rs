//! The runner of Linux: puts the parts behind the port. Decides nothing.

use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::OnceLock;

use async_trait::async_trait;
use rustix::fs::{Mode, OFlags, stat};
use sandbar_domain::Code;
use sandbar_ports::exec::{Owner, Run, RunEnd, Runner, View, ViewReport};
use sandbar_ports::{PortError, PortResult};

use crate::enter::enter;
use crate::environment::{engine_sockets, environment};
use crate::owner;
use crate::session;
use crate::view::same;
use crate::wire::{Aim, Order};

/// The first argument with which this program starts itself.
pub(crate) const ENTER: &str = "__enter";

static OWN_BINARY: OnceLock<OwnedFd> = OnceLock::new();

/// Prepares this program for starting commands. Call it first in `main`,
/// before any thread: in the copy that serves a command it never returns.
pub fn init() {
    let mut arguments = std::env::args_os().skip(1);
    if arguments.next().is_some_and(|first| first == ENTER) {
        let fd = arguments.next().unwrap_or_default();
        enter(&fd.to_string_lossy());
    }
    // Without it commands cannot be started, which each attempt then says.
    let flags = OFlags::PATH | OFlags::CLOEXEC;
    if let Ok(binary) = rustix::fs::open("/proc/self/exe", flags, Mode::empty()) {
        OWN_BINARY.get_or_init(|| binary);
    }
}

/// Returns the binary of this program, once [`init`] was called.
pub(crate) fn own_binary() -> Option<&'static OwnedFd> {
    OWN_BINARY.get()
}

/// Starts commands on Linux. [`init`] must have been called first.
#[derive(Debug, Clone, Copy, Default)]
pub struct Processes;

#[async_trait]
impl Runner for Processes {
    async fn probe(&self) -> ViewReport {
        let reason = blocking(probe).await.err().map(|error| error.message);
        ViewReport {
            in_place: reason.is_none(),
            reason,
        }
    }

    async fn run(&self, request: Run) -> PortResult<RunEnd> {
        if request.argv.is_empty() {
            return Err(PortError::new(Code::Usage, "run a command: none was given"));
        }
        blocking(move || session::run(&order(request))).await
    }

    fn owner(&self) -> Owner {
        owner::own()
    }

    fn is_alive(&self, owner: &Owner) -> bool {
        owner::is_alive(owner)
    }
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> PortResult<T> + Send + 'static,
) -> PortResult<T> {
    tokio::task::spawn_blocking(work)
        .await
        .unwrap_or_else(|error| {
            Err(
                PortError::new(Code::Internal, "run a command: the thread ended")
                    .with_source(error),
            )
        })
}

fn order(request: Run) -> Order {
    let Run {
        argv,
        real,
        sandbox,
        subdir,
        view,
        binds,
        set,
        unset,
        stdout_to_stderr,
    } = request;
    let environment = environment(std::env::vars_os(), &set, &unset);
    Order {
        aim: match view {
            View::InPlace => Aim::InPlace,
            View::Plain => Aim::Plain,
        },
        hidden: engine_sockets(&environment),
        real,
        sandbox,
        subdir,
        binds,
        argv,
        environment,
        stdout_to_stderr,
    }
}

/// Makes an in-place view of one directory that every system has over
/// another, in a process of its own, and looks whether it is there. Nothing
/// is written.
fn probe() -> PortResult<()> {
    let found: Vec<_> = ["/etc", "/usr", "/var", "/tmp", "/home"]
        .into_iter()
        .filter_map(|path| Some((PathBuf::from(path), stat(path).ok()?)))
        .collect();
    let pair = found.iter().find_map(|(sandbox, one)| {
        let (real, _) = found.iter().find(|(_, other)| !same(one, other))?;
        Some((real.clone(), sandbox.clone()))
    });
    let Some((real, sandbox)) = pair else {
        return Err(PortError::new(
            Code::NotAvailable,
            "make the in-place view: no two directories to try it on",
        ));
    };
    let order = Order {
        aim: Aim::Probe,
        real,
        sandbox,
        subdir: PathBuf::new(),
        binds: Vec::new(),
        hidden: Vec::new(),
        argv: Vec::new(),
        environment: Vec::new(),
        stdout_to_stderr: false,
    };
    match session::run(&order)? {
        RunEnd { code: 0, .. } => Ok(()),
        RunEnd { code, .. } => Err(PortError::new(
            Code::NotAvailable,
            format!("make the in-place view: the trial ended with code {code}"),
        )),
    }
}
