//! What the use cases need from the outside, as small traits.
//!
//! Every call is a whole operation (materialise a tree, never write one
//! file), so that an adapter can do it at its own speed, and a dropped future
//! cannot halve it. Nothing here touches a disk, a process or a network.

pub mod cancel;
pub mod clock;
pub mod effect;
pub mod error;
pub mod exec;
pub mod git;
pub mod graph;
pub mod objects;
pub mod pins;
pub mod progress;
pub mod rules;
pub mod store;
pub mod target;
pub mod workspace;

pub use cancel::Cancel;
pub use error::{PortError, PortResult};
pub use progress::{Progress, Silent};
