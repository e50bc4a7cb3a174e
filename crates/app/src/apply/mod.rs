//! Bringing a result back: freeze, decide, stage, intent, execute, settle
//! (section 9, for one boundary).
//!
//! The decision is the domain's; this module gathers its facts and carries it
//! out through ports. What was decided is durable before the first write, so
//! that `recover` can complete or undo it after a crash anywhere.

mod decide;
mod entry;
mod execute;
mod part;
mod payload;
mod report;
mod undo;

pub(crate) use decide::warn;
pub(crate) use part::below_root;
pub(crate) use payload::Payload;
pub use report::{ApplyReport, ApplyRequest, Conflict, Outcome, Resulting, UndoRequest};
