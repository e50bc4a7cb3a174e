//! The user and group ids of a new user namespace, written from outside it.
//!
//! The superuser keeps every id it has, so that `chown` and package managers
//! work inside. Everybody else keeps the own one. Never maps an id to another.

use std::io::Write as _;

use rustix::fs::{Mode, OFlags};
use rustix::process::{Pid, getegid, geteuid};

use crate::enter::reason;
use crate::procfs;

/// Maps the ids of `pid`, which has just entered a new user namespace.
/// Errors: the step and why, as one fragment.
pub(crate) fn write(pid: Pid) -> Result<(), String> {
    if geteuid().is_root() && whole(pid).is_ok() {
        return Ok(());
    }
    // Without capabilities only the own id may be mapped, and only after
    // giving up the right to drop groups.
    let (uid, gid) = (geteuid().as_raw(), getegid().as_raw());
    put(pid, "setgroups", "deny")
        .and_then(|()| put(pid, "uid_map", &format!("{uid} {uid} 1\n")))
        .and_then(|()| put(pid, "gid_map", &format!("{gid} {gid} 1\n")))
}

/// Maps every id that this process can see to itself.
fn whole(pid: Pid) -> Result<(), String> {
    for file in ["uid_map", "gid_map"] {
        let own = procfs::read(&format!("/proc/self/{file}"))
            .map_err(|error| format!("read /proc/self/{file}: {}", reason(&error)))?;
        let map = identity(&String::from_utf8_lossy(&own))
            .ok_or_else(|| format!("read /proc/self/{file}: not understood"))?;
        put(pid, file, &map)?;
    }
    Ok(())
}

/// Turns the map of this namespace into one that leaves its ids as they are.
fn identity(own: &str) -> Option<String> {
    let mut map = String::new();
    for line in own.lines() {
        let mut fields = line.split_ascii_whitespace();
        let (first, count) = (fields.next()?, fields.nth(1)?);
        map += &format!("{first} {first} {count}\n");
    }
    (!map.is_empty()).then_some(map)
}

fn put(pid: Pid, file: &str, text: &str) -> Result<(), String> {
    let path = format!("/proc/{pid}/{file}");
    rustix::fs::open(&path, OFlags::WRONLY | OFlags::CLOEXEC, Mode::empty())
        .map_err(std::io::Error::from)
        .and_then(|fd| std::fs::File::from(fd).write_all(text.as_bytes()))
        .map_err(|error| format!("write {file}: {}", reason(&error)))
}

#[cfg(test)]
mod tests {
    use super::identity;

    #[test]
    fn every_extent_maps_to_itself() {
        let own = "         0       1000          1\n         1     100000      65536\n";
        assert_eq!(identity(own).as_deref(), Some("0 0 1\n1 1 65536\n"));
        assert_eq!(
            identity("0 0 4294967295\n").as_deref(),
            Some("0 0 4294967295\n")
        );
        assert_eq!(identity(""), None);
        assert_eq!(identity("0 0\n"), None);
    }
}
