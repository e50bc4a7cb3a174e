//! Who drives a plan, and whether they live. Never ends anybody.

use std::os::unix::ffi::OsStrExt as _;

use rustix::io::Errno;
use rustix::process::{Pid, getpid, test_kill_process};
use sandbar_ports::exec::Owner;

use crate::procfs;

/// The pid namespace of the host, from which all others can be seen.
const INITIAL_NAMESPACE: u64 = 0xEFFF_FFFC;

/// Describes this process.
pub(crate) fn own() -> Owner {
    Owner {
        host: line("/etc/machine-id")
            .or_else(|| line("/proc/sys/kernel/hostname"))
            .unwrap_or_default(),
        boot: line("/proc/sys/kernel/random/boot_id").unwrap_or_default(),
        pid_namespace: namespace("self").unwrap_or_default(),
        pid: getpid().as_raw_pid().unsigned_abs(),
        started: procfs::process(getpid()).map_or(0, |process| process.started),
    }
}

/// Says whether `owner` may still be at work. In doubt it is.
pub(crate) fn is_alive(owner: &Owner) -> bool {
    let here = own();
    if owner.boot != here.boot {
        // Another boot of this host ended it; another host did not. (One boot
        // may show several hosts: containers have names of their own.)
        return owner.host != here.host;
    }
    if owner.pid_namespace != here.pid_namespace {
        return here.pid_namespace != INITIAL_NAMESPACE || has_members(owner.pid_namespace);
    }
    let Some(pid) = i32::try_from(owner.pid).ok().and_then(Pid::from_raw) else {
        return false;
    };
    match procfs::process(pid) {
        Some(process) => process.started == owner.started && !process.is_dead(),
        // A hidden process can be told from none by a signal that is not sent.
        None => !matches!(test_kill_process(pid), Err(Errno::SRCH)),
    }
}

fn line(path: &str) -> Option<String> {
    let bytes = procfs::read(path).ok()?;
    let text = String::from_utf8_lossy(&bytes).trim().to_owned();
    (!text.is_empty()).then_some(text)
}

/// Reads the pid namespace of a process.
fn namespace(pid: &str) -> Option<u64> {
    let link = procfs::link(&format!("/proc/{pid}/ns/pid")).ok()?;
    let text = std::str::from_utf8(link.as_os_str().as_bytes()).ok()?;
    text.strip_prefix("pid:[")?.strip_suffix(']')?.parse().ok()
}

/// Says whether a pid namespace has members; one that may not be looked at
/// could be one.
fn has_members(wanted: u64) -> bool {
    procfs::pids()
        .into_iter()
        .any(|pid| match namespace(&pid.to_string()) {
            Some(found) => found == wanted,
            None => procfs::process(pid).is_some_and(|process| !process.is_dead()),
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_own_process_lives_and_its_doubles_do_not() {
        let own = own();
        assert!(is_alive(&own));
        assert!(own.started > 0 && own.pid_namespace > 0);
        assert!(!own.host.is_empty() && !own.boot.is_empty());
        let doubles = [
            (
                false,
                Owner {
                    started: own.started + 1,
                    ..own.clone()
                },
            ),
            (
                false,
                Owner {
                    pid: 0,
                    ..own.clone()
                },
            ),
            (
                false,
                Owner {
                    pid: 0x7fff_fff0,
                    ..own.clone()
                },
            ),
            (
                false,
                Owner {
                    boot: "earlier".into(),
                    ..own.clone()
                },
            ),
            (
                true,
                Owner {
                    boot: "other".into(),
                    host: "elsewhere".into(),
                    ..own.clone()
                },
            ),
            (
                true,
                Owner {
                    host: "a container".into(),
                    ..own.clone()
                },
            ),
        ];
        for (alive, owner) in doubles {
            assert_eq!(is_alive(&owner), alive, "{owner:?}");
        }
    }
}
