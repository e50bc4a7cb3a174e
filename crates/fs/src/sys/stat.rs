//! What the kernel says of one entry, and the clock its stamps come from.

use std::os::fd::AsFd;

use rustix::fs::{AtFlags, FileType, StatxAttributes, StatxFlags, StatxTimestamp};
use rustix::io::Errno;
use rustix::path::Arg;
use sandbar_domain::Kind;
use sandbar_ports::workspace::FileStat;

/// The type of an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Type {
    /// A regular file.
    File,
    /// A directory.
    Directory,
    /// A symbolic link.
    Symlink,
    /// A FIFO, socket or device, with the word for it.
    Other(&'static str),
    /// A listing that does not say.
    Unknown,
}

impl From<FileType> for Type {
    fn from(kind: FileType) -> Self {
        match kind {
            FileType::RegularFile => Self::File,
            FileType::Directory => Self::Directory,
            FileType::Symlink => Self::Symlink,
            FileType::Fifo => Self::Other("a FIFO"),
            FileType::Socket => Self::Other("a socket"),
            FileType::CharacterDevice | FileType::BlockDevice => Self::Other("a device"),
            FileType::Unknown => Self::Unknown,
        }
    }
}

/// One entry as `statx` saw it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Seen {
    /// The part that ports know.
    pub stat: FileStat,
    /// The type.
    pub kind: Type,
    /// Whether something is mounted here.
    pub mount_root: bool,
    /// Hard links.
    pub links: u32,
    /// Nanoseconds since 1970 of the last access.
    pub atime_ns: i128,
}

impl Seen {
    /// Says whether both stats show the same state of the same file.
    pub fn same_state(&self, other: &Self) -> bool {
        let key = |s: &FileStat| (s.dev, s.ino, s.mode, s.size, s.mtime_ns, s.ctime_ns);
        key(&self.stat) == key(&other.stat)
    }
}

/// Returns the canonical kind: owner-execute makes a file executable.
/// `None` for what has no canonical form.
pub fn kind_of(seen: &Seen) -> Option<Kind> {
    match seen.kind {
        Type::File if seen.stat.mode & 0o100 != 0 => Some(Kind::Executable),
        Type::File => Some(Kind::File),
        Type::Directory => Some(Kind::Directory),
        Type::Symlink => Some(Kind::Symlink),
        Type::Other(_) | Type::Unknown => None,
    }
}

/// Looks at `name` in `dir`, never through a symlink.
pub fn stat_at(dir: impl AsFd, name: impl Arg) -> Result<Seen, Errno> {
    let flags = AtFlags::SYMLINK_NOFOLLOW | AtFlags::NO_AUTOMOUNT;
    rustix::fs::statx(dir, name, flags, StatxFlags::BASIC_STATS).map(seen)
}

/// Looks at an open file or directory.
pub fn stat_fd(fd: impl AsFd) -> Result<Seen, Errno> {
    rustix::fs::statx(fd, c"", AtFlags::EMPTY_PATH, StatxFlags::BASIC_STATS).map(seen)
}

fn seen(s: rustix::fs::Statx) -> Seen {
    Seen {
        stat: FileStat {
            dev: rustix::fs::makedev(s.stx_dev_major, s.stx_dev_minor),
            ino: s.stx_ino,
            mode: u32::from(s.stx_mode),
            uid: s.stx_uid,
            gid: s.stx_gid,
            size: s.stx_size,
            mtime_ns: nanoseconds(s.stx_mtime),
            ctime_ns: nanoseconds(s.stx_ctime),
        },
        kind: FileType::from_raw_mode(u32::from(s.stx_mode)).into(),
        mount_root: s.stx_attributes.contains(StatxAttributes::MOUNT_ROOT),
        links: s.stx_nlink,
        atime_ns: nanoseconds(s.stx_atime),
    }
}

fn nanoseconds(stamp: StatxTimestamp) -> i128 {
    i128::from(stamp.tv_sec) * 1_000_000_000 + i128::from(stamp.tv_nsec)
}

/// Returns the time that the kernel would stamp on an inode now, at its
/// coarsest. Only for comparison with stamps of files, never shown.
pub fn coarse_now_ns() -> i128 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::RealtimeCoarse);
    i128::from(now.tv_sec) * 1_000_000_000 + i128::from(now.tv_nsec)
}
