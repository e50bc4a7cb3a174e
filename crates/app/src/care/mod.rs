//! Care: recovery after crashes, garbage collection, diagnosis.

mod doctor;
mod gc;
mod kept;
mod recover;

pub use doctor::{Doctor, Finding};
pub use gc::{GcReport, GcRequest};
pub use kept::{Displacer, KeptItem, KeptRequest, Restored};
pub use recover::Recovered;
