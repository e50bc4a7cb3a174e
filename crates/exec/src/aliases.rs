//! Other mounts through which a directory can be reached: a bind mount of it,
//! of what it lies in, or of a part of it. Reads the mount table only.

use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};

/// One line of the mount table, as far as it matters here.
struct Mount {
    device: Vec<u8>,
    /// The directory of the file system that is mounted.
    root: PathBuf,
    /// Where.
    place: PathBuf,
}

/// A second way to a directory or to a part of it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Alias {
    /// The other path.
    pub(crate) place: PathBuf,
    /// What it shows, below the directory; empty for the whole.
    pub(crate) part: PathBuf,
}

/// Lists the paths that may lead to `real` beside itself, by the table
/// `mounts` (`/proc/self/mountinfo`). A later mount may hide one of them, so
/// that each must be looked at.
pub(crate) fn aliases(mounts: &[u8], real: &Path) -> Vec<Alias> {
    let table: Vec<Mount> = mounts
        .split(|&byte| byte == b'\n')
        .filter_map(parse)
        .collect();
    let own = table
        .iter()
        .filter(|mount| real.starts_with(&mount.place))
        .enumerate()
        .max_by_key(|(order, mount)| (mount.place.as_os_str().len(), *order));
    let Some((_, own)) = own else {
        return Vec::new();
    };
    let below = real.strip_prefix(&own.place).unwrap_or(Path::new(""));
    let inner = join(&own.root, below);
    table
        .iter()
        .filter(|mount| mount.device == own.device)
        .filter_map(|mount| {
            if let Ok(rest) = inner.strip_prefix(&mount.root) {
                let (place, part) = (join(&mount.place, rest), PathBuf::new());
                return Some(Alias { place, part });
            }
            let part = mount.root.strip_prefix(&inner).ok()?.to_owned();
            let place = mount.place.clone();
            Some(Alias { place, part })
        })
        .filter(|alias| !alias.place.starts_with(real))
        .collect()
}

/// Joins without a slash at the end.
fn join(left: &Path, right: &Path) -> PathBuf {
    if right.as_os_str().is_empty() {
        left.to_owned()
    } else {
        left.join(right)
    }
}

fn parse(line: &[u8]) -> Option<Mount> {
    let mut fields = line.split(|&byte| byte == b' ').skip(2);
    let device = fields.next()?.to_owned();
    let root = unescape(fields.next()?);
    let place = unescape(fields.next()?);
    Some(Mount {
        device,
        root,
        place,
    })
}

/// Turns `\040` and its like back into bytes.
fn unescape(field: &[u8]) -> PathBuf {
    let mut bytes = Vec::with_capacity(field.len());
    let mut rest = field;
    while let Some((&byte, tail)) = rest.split_first() {
        rest = tail;
        let octal = tail.first_chunk::<3>().and_then(|digits| {
            let text = std::str::from_utf8(digits).ok()?;
            u8::from_str_radix(text, 8).ok()
        });
        match octal {
            Some(value) if byte == b'\\' => {
                bytes.push(value);
                rest = &tail[3..];
            }
            _ => bytes.push(byte),
        }
    }
    debug_assert!(!OsString::from_vec(bytes.clone()).as_bytes().contains(&0));
    OsString::from_vec(bytes).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bind_mounts_of_the_directory_its_parents_and_parts_are_found() {
        let table = b"1 0 8:1 / / rw - ext4 a rw\n\
            2 1 8:2 / /data rw - ext4 b rw\n\
            3 1 8:2 /home /home rw - ext4 b rw\n\
            4 1 8:2 /home/u/my\\040repo /mnt/x rw - ext4 b rw\n\
            5 1 8:2 /home/u/my\\040repo/src /srv/src rw - ext4 b rw\n\
            6 1 8:2 /other /opt rw - ext4 b rw\n\
            7 1 8:1 /home /old rw - ext4 a rw\n\
            8 3 8:2 /home/u/my\\040repo/out /home/u/my\\040repo/in rw - ext4 b rw\n";
        let found = aliases(table, Path::new("/home/u/my repo"));
        let found: Vec<_> = found
            .iter()
            .map(|alias| (alias.place.to_str(), alias.part.to_str()))
            .collect();
        assert_eq!(
            found,
            [
                (Some("/data/home/u/my repo"), Some("")),
                (Some("/mnt/x"), Some("")),
                (Some("/srv/src"), Some("src")),
            ]
        );
        assert_eq!(aliases(b"", Path::new("/x")), []);
        assert_eq!(aliases(b"rubbish\n1 2\n", Path::new("/x")), []);
    }
}
