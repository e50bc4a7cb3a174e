//! The composition of real adapters: the only place that names them.

#[cfg(all(feature = "fs", feature = "git", feature = "exec", feature = "store"))]
mod real;
mod system;

#[cfg(all(feature = "fs", feature = "git", feature = "exec", feature = "store"))]
pub use real::{Opening, Pager, configure, data_dir, init, open, open_existing, views};
pub use system::{RandomIds, SystemClock};
