//! The git adapter: discovery, rules, private git directories, hidden commits
//! and landing, through gix alone. Starts no process, runs no hook, filter or
//! monitor, and writes nothing but git objects, refs and, in a landing, the
//! index.

mod discover;
mod fingerprint;
mod hidden;
mod index;
mod landing;
mod open;
mod outline;
mod port;
mod private;
mod reading;
mod refs;
mod rules;

pub use port::GixGit;
