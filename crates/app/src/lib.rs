//! Sandbar as a library: the use cases, and the composition of adapters.
//!
//! A use case reads what a decision needs through ports, calls one pure
//! function of the domain, performs what it returned, and records the
//! outcome. No use case touches a disk, a process or a database itself, and
//! adapters are named only below [`compose`].
//!
//! An embedder calls [`compose::init`] first in `main`, then
//! [`compose::open`], or builds [`Parts`] from adapters of its own.

mod apply;
mod care;
pub mod compose;
pub mod config;
mod graph;
mod parts;
pub mod patch;
mod plans;

use std::path::PathBuf;
use std::sync::Arc;

pub use apply::{ApplyReport, ApplyRequest, Conflict, Outcome, Resulting, UndoRequest};
pub use care::{
    Displacer, Doctor, Finding, GcReport, GcRequest, KeptItem, KeptRequest, Recovered, Restored,
};
pub use config::Config;
pub use graph::{
    BoundaryReport, Card, DomainReport, GraphReport, ImpactReport, ProjectReport, ReachReport,
    RouteReport, ShownReport, SkippedWay, Way, no_resource,
};
pub use parts::Parts;
pub use plans::{
    Bring, CheckpointReport, DiffReport, ExecRequest, LogEntry, PlanReport, RollbackReport,
    RunReport, RunRequest, SandboxReport, StatusReport, StepOutcome, Unsettled, UpdateReport,
    no_plan,
};
pub use sandbar_domain as domain;
pub use sandbar_ports as ports;
use sandbar_ports::{Cancel, Progress};

/// All use cases over one composition.
#[derive(Clone)]
pub struct Sandbar {
    parts: Parts,
    config: Config,
    around: Surroundings,
}

/// What a use case needs to know of the process that asks.
#[derive(Clone)]
pub struct Surroundings {
    /// The home directory, which is refused as a root.
    pub home: Option<PathBuf>,
    /// The plan whose sandbox the process is in, if any.
    pub inside: Option<String>,
    /// Where progress goes.
    pub progress: Arc<dyn Progress>,
    /// Set by Ctrl-C.
    pub cancel: Cancel,
    /// Says something a person should know while the work goes on.
    pub say: Arc<dyn Fn(&str) + Send + Sync>,
}

impl Surroundings {
    /// Knows nothing and says nothing.
    pub fn silent() -> Self {
        Self {
            home: None,
            inside: None,
            progress: Arc::new(sandbar_ports::Silent),
            cancel: Cancel::new(),
            say: Arc::new(|_| {}),
        }
    }
}

impl std::fmt::Debug for Surroundings {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Surroundings")
            .field("home", &self.home)
            .finish_non_exhaustive()
    }
}

impl Sandbar {
    /// Composes the use cases from parts.
    pub fn new(parts: Parts, config: Config, around: Surroundings) -> Self {
        Self {
            parts,
            config,
            around,
        }
    }

    /// Returns the configuration that holds.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// Returns the adapters, for what has no use case.
    pub fn parts(&self) -> &Parts {
        &self.parts
    }
}
