//! What tests stand on: contract suites that every implementation of a port
//! must pass, in-memory implementations that pass them, and starters of real
//! engines. Never a dependency of the product, except that the in-memory parts
//! make up the composition that needs no file system.
//!
//! A suite panics with what was expected of the port, so that it reads the
//! same whichever adapter it runs on.

pub mod contract;
pub mod engines;
pub mod memory;
pub mod real_world;
mod run;

pub use real_world::RealWorld;
pub use run::run;
