//! Whether names in a directory are told apart by case: asked of the file
//! system by looking, never by writing.

use rustix::fs::IFlags;
use rustix::io::Errno;

use super::dir::Dir;
use super::read::Listing;
use super::volume::volume_of;

/// The flag of a directory whose names have no case (ext4, f2fs, tmpfs).
const CASEFOLD: u32 = 0x4000_0000;

/// File systems whose names have none unless they were told otherwise: FAT,
/// exFAT, NTFS, SMB, CIFS, and FUSE, behind which such a one may be.
const CASELESS: [u64; 8] = [
    0x4D44,
    0x2011_BAB0,
    0x7366_746E,
    0x5346_544E,
    0x517B,
    0xFE53_4D42,
    0xFF53_4D42,
    0x6573_5546,
];

/// Says whether two names in `dir` that differ in case only are one. Where
/// nothing in it can be asked for by another spelling, its kind answers.
pub fn ignores_case(dir: &Dir) -> Result<bool, Errno> {
    if rustix::fs::ioctl_getflags(dir).is_ok_and(|flags: IFlags| flags.bits() & CASEFOLD != 0) {
        return Ok(true);
    }
    let names = Listing::default().sorted(dir.reopen()?)?;
    for entry in &names {
        let Ok(name) = entry.name.to_str() else {
            continue;
        };
        let other = swapped(name);
        if other == name {
            continue;
        }
        if names
            .iter()
            .any(|one| one.name.to_bytes() == other.as_bytes())
        {
            return Ok(false);
        }
        return match (dir.stat(name), dir.stat(&*other)) {
            // It is there and not listed. Inodes prove nothing: some file
            // systems give one out for each spelling.
            (Ok(_), Ok(_)) => Ok(true),
            (Ok(_), Err(Errno::NOENT)) => Ok(false),
            // It went while it was looked at.
            _ => continue,
        };
    }
    Ok(CASELESS.contains(&volume_of(dir)?.magic))
}

fn swapped(name: &str) -> String {
    let swap = |c: char| match c.is_ascii_lowercase() {
        true => c.to_ascii_uppercase(),
        false => c.to_ascii_lowercase(),
    };
    name.chars().map(swap).collect()
}
