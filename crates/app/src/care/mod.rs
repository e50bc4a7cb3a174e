//! Care: recovery after crashes, garbage collection, diagnosis.

mod doctor;
mod gc;
mod recover;

pub use doctor::{Doctor, Finding};
pub use gc::{GcReport, GcRequest};
pub use recover::Recovered;
