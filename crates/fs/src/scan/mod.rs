//! Reading a whole root: a parallel walk under carry rules, the stat cache,
//! and the directory objects that come of it. Nothing here writes to the root
//! that is read.

mod cache;
mod capture;
mod nodes;
mod stable;
mod walk;

pub(crate) use cache::{CacheFile, encode as encode_cache, seal as seal_cache};
pub(crate) use capture::{Scan, Scanned, scan};
pub(crate) use nodes::{Assembled, Leaf, Node, assemble};
pub(crate) use stable::{BUFFER, settle, unstable};
pub(crate) use walk::{Found, Known, Visitor, Walk, threads, unsupported, walk};

use sandbar_domain::Code;
use sandbar_ports::PortError;

pub(crate) fn mount_inside(path: impl std::fmt::Display) -> PortError {
    PortError::new(
        Code::MountInside,
        format!("read {path}: something is mounted there"),
    )
    .with_subjects([path.to_string()])
}
