//! In-memory implementations with real behaviour: the composition that needs
//! no file system, no git and no database. Each passes the contract suite of
//! its port.

pub mod clock;
pub mod disk;
pub mod git;
pub mod graph;
pub mod handlers;
pub mod objects;
pub mod pins;
pub mod runner;
mod scan;
pub mod store;
pub mod targets;
pub mod workspaces;
pub mod world;

pub use clock::{FixedClock, SeqIds};
pub use disk::MemDisk;
pub use git::MemGit;
pub use graph::MemGraphStore;
pub use handlers::{MemHandlers, MemRefusal};
pub use objects::MemObjects;
pub use pins::MemPins;
pub use runner::{MemRunner, Seat};
pub use store::MemStore;
pub use targets::MemTargets;
pub use workspaces::MemWorkspaces;
pub use world::MemWorld;
