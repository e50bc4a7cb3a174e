//! Plans and their sandboxes: make, run, look, save, go back.

mod abilities;
mod beyond;
mod capture;
mod checkpoint;
mod clean;
mod create;
mod end;
mod find;
mod locate;
mod look;
mod mark;
mod pins;
mod rollback;
mod run;
mod steps;
mod update;

pub(crate) use capture::path_of;
pub use checkpoint::CheckpointReport;
pub use find::no_plan;
pub use look::{DiffReport, LogEntry, PlanReport, SandboxReport, StatusReport};
pub use rollback::RollbackReport;
pub use run::{Bring, ExecRequest, RunReport, RunRequest};
pub use steps::StepOutcome;
pub(crate) use update::refuse_unsettled;
pub use update::{Unsettled, UpdateReport};
