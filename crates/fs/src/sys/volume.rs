//! What file system a descriptor is on.

use std::os::fd::AsFd;

use rustix::io::Errno;

/// A file system, as far as decisions need it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Volume {
    /// Its magic number.
    pub magic: u64,
    /// Its name, where it is one over a network that Sandbar's own data must
    /// not live on.
    pub network: Option<&'static str>,
    /// Bytes that can still be written.
    pub free: u64,
    /// Inodes that can still be made; `u64::MAX` where there is no limit.
    pub free_files: u64,
}

/// Names of network file systems by magic number. FUSE is among them: most of
/// what it carries to a person's machine is remote, and its locks are not.
const NETWORK: [(u64, &str); 10] = [
    (0x6969, "NFS"),
    (0x517B, "SMB"),
    (0xFF53_4D42, "CIFS"),
    (0xFE53_4D42, "SMB2"),
    (0x0102_1997, "9p"),
    (0x6573_5546, "FUSE"),
    (0x5346_414F, "AFS"),
    (0x7375_7245, "Coda"),
    (0x00C3_6400, "Ceph"),
    (0x0BD0_0BD0, "Lustre"),
];

/// Looks at the file system of an open file or directory.
pub fn volume_of(fd: impl AsFd) -> Result<Volume, Errno> {
    let s = rustix::fs::fstatfs(fd)?;
    // The word is signed on some architectures; only its low 32 bits count.
    #[allow(
        clippy::cast_sign_loss,
        clippy::cast_possible_truncation,
        reason = "a magic number is 32 bits"
    )]
    let magic = u64::from(s.f_type as u32);
    let unit = u64::try_from(s.f_bsize).unwrap_or(0);
    Ok(Volume {
        magic,
        network: network(magic),
        free: s.f_bavail.saturating_mul(unit),
        free_files: if s.f_files == 0 { u64::MAX } else { s.f_ffree },
    })
}

fn network(magic: u64) -> Option<&'static str> {
    NETWORK
        .iter()
        .find(|(have, _)| *have == magic)
        .map(|(_, name)| *name)
}

#[cfg(test)]
mod tests {
    use super::network;

    #[test]
    fn network_file_systems_are_known_by_their_magic() {
        assert_eq!(network(0x6969), Some("NFS"));
        assert_eq!(network(0x6573_5546), Some("FUSE"));
        assert_eq!(network(0xEF53), None, "ext4");
        assert_eq!(network(0x0102_1994), None, "tmpfs");
    }
}
