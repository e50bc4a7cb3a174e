//! `strace` as the second witness: which mutating system calls a run made.

use std::ffi::OsString;
use std::path::Path;
use std::process::Command;

use crate::product::Done;

/// The calls that change a file system. A write counts too, since data is lost
/// by writes as well.
const CALLS: &[&str] = &[
    "rename",
    "renameat",
    "renameat2",
    "link",
    "linkat",
    "unlink",
    "unlinkat",
    "mkdir",
    "mkdirat",
    "rmdir",
    "symlink",
    "symlinkat",
    "mknod",
    "mknodat",
    "truncate",
    "ftruncate",
    "fallocate",
    "chmod",
    "fchmod",
    "fchmodat",
    "fchmodat2",
    "chown",
    "fchown",
    "lchown",
    "fchownat",
    "setxattr",
    "lsetxattr",
    "fsetxattr",
    "removexattr",
    "lremovexattr",
    "fremovexattr",
    "utimensat",
    "write",
    "pwrite64",
    "writev",
    "pwritev",
    "pwritev2",
    "copy_file_range",
    "sendfile",
    "fsync",
    "fdatasync",
    "sync_file_range",
    "syncfs",
    "creat",
    "open",
    "openat",
    "openat2",
    "ioctl",
];

/// One call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Call {
    /// The process.
    pub pid: u32,
    /// Its name.
    pub name: String,
    /// Its arguments as strace prints them, descriptors with their paths.
    pub arguments: String,
    /// Whether it succeeded.
    pub done: bool,
}

impl Call {
    /// Says whether it mentions `path`, as an argument or behind a descriptor.
    pub fn concerns(&self, path: &Path) -> bool {
        self.arguments.contains(&*path.to_string_lossy())
    }
}

/// Runs a prepared command under strace and returns how it ended with the
/// mutating calls it made or tried, in order.
pub fn mutating(command: &Command, log: &Path) -> (Done, Vec<Call>) {
    let mut traced = Command::new("strace");
    traced
        .args(["-f", "-y", "-qq", "-s", "256", "-e", "signal=none"])
        .arg("-e")
        .arg(format!("trace={}", trace_list()))
        .arg("-o")
        .arg(log)
        .arg("--")
        .arg(command.get_program())
        .args(command.get_args())
        .env_clear();
    for (name, value) in command.get_envs() {
        if let Some(value) = value {
            traced.env(name, value);
        }
    }
    if let Some(dir) = command.get_current_dir() {
        traced.current_dir(dir);
    }
    let path: Option<OsString> = std::env::var_os("PATH");
    traced.env("PATH", path.unwrap_or_default());
    let done = Done::of(&mut traced);
    let text = match std::fs::read(log) {
        Ok(text) => text,
        Err(why) => panic!("strace wrote no log: {why}: {}", done.stderr),
    };
    (done, parse(&String::from_utf8_lossy(&text)))
}

/// Names the calls for strace. The question mark lets a machine lack one.
fn trace_list() -> String {
    let names: Vec<String> = CALLS.iter().map(|name| format!("?{name}")).collect();
    names.join(",")
}

/// Reads strace's lines; calls that were interrupted by another process's
/// line are joined again.
fn parse(text: &str) -> Vec<Call> {
    let mut pending: Vec<(u32, String)> = Vec::new();
    let mut calls = Vec::new();
    for line in text.lines() {
        let Some((pid, rest)) = line.trim_start().split_once(' ') else {
            continue;
        };
        let Ok(pid) = pid.parse::<u32>() else {
            continue;
        };
        let rest = rest.trim_start();
        if let Some(head) = rest.strip_suffix("<unfinished ...>") {
            pending.push((pid, head.to_owned()));
            continue;
        }
        let whole = if rest.starts_with("<... ") {
            let tail = rest.split_once("resumed>").map_or("", |(_, tail)| tail);
            let Some(at) = pending.iter().position(|(other, _)| *other == pid) else {
                continue;
            };
            format!("{}{tail}", pending.remove(at).1)
        } else {
            rest.to_owned()
        };
        calls.extend(call(pid, &whole));
    }
    calls
}

fn call(pid: u32, line: &str) -> Option<Call> {
    let (name, rest) = line.split_once('(')?;
    let (arguments, result) = rest.rsplit_once(" = ")?;
    let arguments = arguments.trim_end().strip_suffix(')')?;
    let result = result.trim_start();
    if result.starts_with('?') {
        return None;
    }
    let opens = matches!(name, "open" | "openat" | "openat2" | "creat");
    let creates = name == "creat" || arguments.contains("O_CREAT") || arguments.contains("O_TRUNC");
    let clones = name == "ioctl" && !arguments.contains("FICLONE");
    if (opens && !creates) || clones {
        return None;
    }
    Some(Call {
        pid,
        name: name.to_owned(),
        arguments: arguments.to_owned(),
        done: !result.starts_with('-'),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::foreign;

    #[test]
    fn only_what_changes_is_listed() {
        let dir = tempfile::tempdir().expect("scratch");
        let mut command = foreign::command(dir.path(), "sh");
        command.args(["-c", "echo x > a; cat a; mv a b; rm b; rmdir gone; mkdir d"]);
        let (done, calls) = mutating(&command, &dir.path().join("log"));
        assert_eq!(done.code, Some(0));
        let names: Vec<_> = calls
            .iter()
            .filter(|call| call.done && !call.name.contains("write"))
            .map(|call| call.name.trim_end_matches("at").trim_end_matches("at2"))
            .collect();
        assert_eq!(names, ["open", "rename", "unlink", "mkdir"]);
        assert!(
            calls
                .iter()
                .any(|call| call.name == "write" && call.concerns(dir.path()))
        );
    }

    #[test]
    fn interrupted_lines_are_joined() {
        let text = "7 rename(\"a\", <unfinished ...>\n8 unlink(\"c\") = -1 ENOENT (No such file)\n\
                    7 <... rename resumed>\"b\") = 0\n";
        let calls = parse(text);
        assert!(calls.len() == 2 && !calls[0].done && calls[1].done);
        assert_eq!(calls[1].arguments, "\"a\", \"b\"");
    }
}
