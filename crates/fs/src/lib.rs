//! Files: the only crate that reads and writes them.
//!
//! Holds the dirfd-safe system layer, the object store, the scanner with its
//! stat cache, and the workspace engine. It decides nothing about plans,
//! never starts a process, and never trusts a path string against a root.

mod data;
mod engine;
pub mod files;
mod names;
mod objects;
mod scan;
pub mod sys;
pub mod target;
mod workspace;

pub use data::DataDir;
pub use engine::FsEngine;
