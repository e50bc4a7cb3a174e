//! What this crate answers where it is not supported. It never starts anything.

use async_trait::async_trait;
use sandbar_domain::Code;
use sandbar_ports::exec::{Owner, Run, RunEnd, Runner, ViewReport};
use sandbar_ports::{PortError, PortResult};

const REASON: &str = "commands in sandboxes are available on Linux only";

/// Does nothing here.
pub fn init() {}

/// The runner of a system without one.
#[derive(Debug, Clone, Copy, Default)]
pub struct Processes;

#[async_trait]
impl Runner for Processes {
    async fn probe(&self) -> ViewReport {
        ViewReport {
            in_place: false,
            reason: Some(REASON.to_owned()),
        }
    }

    async fn run(&self, _request: Run) -> PortResult<RunEnd> {
        Err(PortError::new(Code::NotAvailable, REASON))
    }

    fn owner(&self) -> Owner {
        Owner {
            host: String::new(),
            boot: String::new(),
            pid_namespace: 0,
            pid: std::process::id(),
            started: 0,
        }
    }

    fn is_alive(&self, _owner: &Owner) -> bool {
        true
    }
}
