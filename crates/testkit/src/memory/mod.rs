//! In-memory implementations with real behaviour: the composition that needs
//! no file system, no git and no database. Each passes the contract suite of
//! its port.

pub mod store;

pub use store::MemStore;
