//! The dirfd-safe layer: every system call on files that the product makes.
//!
//! A root directory is opened once; everything after is relative to a
//! directory descriptor, one name at a time (`O_NOFOLLOW`) or through
//! `openat2` with `RESOLVE_BENEATH`. It must never resolve a path string
//! against a root, follow a symlink inside one, or block on a FIFO. Each
//! mutating call is one numbered effect.

mod attributes;
mod case;
mod dir;
mod error;
mod lock;
mod probe;
mod read;
mod stat;
mod volume;
mod write;

pub use attributes::{get_attribute, list_attributes, open_in_place, set_attribute, set_length};
pub use case::ignores_case;
pub use dir::{Dir, Found, is_single_name, open_beneath, open_dir, open_root};
pub use error::{at, fail, is_space};
pub use lock::{FileLock, lock_exclusive, lock_shared, try_lock_exclusive};
pub use probe::{Actor, is_immutable, is_read_only, may_write_dir, same_mount};
pub use read::{
    Listed, Listing, open_readable, pread_exact, pread_some, read_into, read_link, read_small,
    read_some,
};
pub use stat::{Seen, Type, coarse_now_ns, kind_of, stat_at, stat_fd};
pub use volume::{Volume, volume_of};
pub use write::{
    append, chmod_fd, chown_at, clone_into, create_new, exchange, link, make_dir, remove_dir,
    remove_file, rename, rename_new, set_times_at, set_times_fd, start_writeback, symlink,
    sync_dir, sync_file, sync_volume, write_all, write_at,
};

/// The error of one system call.
pub use rustix::io::Errno;
