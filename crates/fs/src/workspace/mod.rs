//! The workspace engine: sandbox roots made, scanned, restored and removed
//! (STR-2, backend full-copy). It writes below the data directory only, and
//! never into a root of a user.

pub(crate) mod assemble;
mod change;
mod copying;
pub(crate) mod create;
pub(crate) mod look;
pub(crate) mod pins;
pub(crate) mod place;
mod pool;
pub(crate) mod remove;
pub(crate) mod restore;
mod transfer;
mod writing;
