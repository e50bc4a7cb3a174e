//! The configuration of a private git directory: the repository's own, with
//! its includes put in line, less what runs programs outside the plan, signs,
//! pushes or points at the real working tree.

use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};

use gix::bstr::{BStr, ByteSlice as _};
use gix::config::Source;
use gix::config::file::SectionRef;
use sandbar_ports::PortResult;

use crate::open::failed;

/// Where a push is sent while pushing is disabled: no transport has the name.
const NOWHERE: &str = "sandbar-push-is-disabled://allow-it-with--allow-push";

/// Values that hold in every sandbox.
const PINNED: &[(&str, &str, &str)] = &[
    ("core", "bare", "false"),
    ("core", "hooksPath", "/dev/null"),
    ("core", "fsmonitor", "false"),
    ("core", "splitIndex", "false"),
    ("index", "sparse", "false"),
    ("commit", "gpgSign", "false"),
    ("tag", "gpgSign", "false"),
    ("push", "gpgSign", "false"),
    ("gc", "auto", "0"),
    ("maintenance", "auto", "false"),
];

/// What the configuration depends on.
pub(super) struct Wish<'a> {
    /// Keep what pushes.
    pub(super) allow_push: bool,
    /// What `core.worktree` is set to: submodules have one.
    pub(super) worktree: Option<&'a str>,
    /// The real root, to which relative URLs are relative.
    pub(super) root: &'a std::path::Path,
}

/// Writes the configuration of the checkout itself.
pub(super) fn of_repository(repository: &gix::Repository, wish: &Wish<'_>) -> Vec<u8> {
    let snapshot = repository.config_snapshot();
    let sections = snapshot
        .plumbing()
        .sections()
        .filter(|section| matches!(section.meta().source, Source::Local | Source::Worktree));
    write(sections, wish)
}

/// Writes the configuration of a submodule from the bytes of its file.
pub(super) fn of_bytes(bytes: &[u8], wish: &Wish<'_>) -> PortResult<Vec<u8>> {
    let file = gix::config::File::from_bytes_no_includes(
        bytes,
        gix::config::file::Metadata::from(Source::Local),
        gix::config::file::init::Options::default(),
    )
    .map_err(failed("read the configuration of a submodule"))?;
    Ok(write(file.sections(), wish))
}

/// Reads one value from the bytes of a file.
pub(super) fn value(bytes: &[u8], key: &str) -> Option<String> {
    let file = gix::config::File::from_bytes_no_includes(
        bytes,
        gix::config::file::Metadata::from(Source::Local),
        gix::config::file::init::Options::default(),
    )
    .ok()?;
    file.string(key).map(|value| value.to_string())
}

fn write<'a>(sections: impl Iterator<Item = SectionRef<'a>>, wish: &Wish<'_>) -> Vec<u8> {
    let mut out = Vec::new();
    let mut remotes: Vec<Vec<u8>> = Vec::new();
    for section in sections {
        let name = section.header().name().to_str_lossy().to_lowercase();
        let subsection = section.header().subsection_name().map(BStr::to_owned);
        if name == "remote"
            && let Some(subsection) = &subsection
            && !remotes.contains(subsection)
        {
            remotes.push(subsection.to_vec());
        }
        let mut lines = Vec::new();
        let mut met: Vec<String> = Vec::new();
        for key in section.value_names() {
            let lower = key.to_lowercase();
            let number = met.iter().filter(|have| **have == lower).count();
            let values = section.values(&key);
            met.push(lower.clone());
            if is_dropped(&name, &lower, wish.allow_push) {
                continue;
            }
            let Some(value) = values.get(number) else {
                continue;
            };
            let implicit = value.is_empty() && section.value_implicit(&key) == Some(None);
            lines.extend_from_slice(format!("\t{key}").as_bytes());
            if !implicit {
                lines.extend_from_slice(b" = ");
                if name == "remote" && lower == "url" {
                    lines.extend_from_slice(&quoted(&absolute(value, wish.root)));
                } else {
                    lines.extend_from_slice(&quoted(value));
                }
            }
            lines.push(b'\n');
        }
        if !lines.is_empty() {
            header(&mut out, &name, subsection.as_deref().map(|sub| &**sub));
            out.extend_from_slice(&lines);
        }
    }
    for (section, key, value) in PINNED {
        header(&mut out, section, None);
        out.extend_from_slice(format!("\t{key} = {value}\n").as_bytes());
    }
    if let Some(worktree) = wish.worktree {
        header(&mut out, "core", None);
        out.extend_from_slice(b"\tworktree = ");
        out.extend_from_slice(&quoted(worktree.as_bytes()));
        out.push(b'\n');
    }
    if !wish.allow_push {
        for remote in remotes {
            header(&mut out, "remote", Some(&remote));
            out.extend_from_slice(format!("\tpushurl = {NOWHERE}\n").as_bytes());
        }
        // The empty prefix is one of every URL, so that `git push URL` goes
        // nowhere too.
        header(&mut out, "url", Some(NOWHERE.as_bytes()));
        out.extend_from_slice(b"\tpushInsteadOf = \"\"\n");
    }
    out
}

fn is_dropped(section: &str, key: &str, allow_push: bool) -> bool {
    match (section, key) {
        ("gpg" | "include" | "includeif" | "maintenance" | "hook", _) => true,
        // How git reaches a remote is needed by whoever may push.
        ("credential", _) | ("core", "sshcommand" | "gitproxy" | "askpass") => !allow_push,
        (
            "core",
            "hookspath" | "fsmonitor" | "fsmonitorhookversion" | "worktree" | "bare" | "splitindex",
        ) => true,
        ("commit" | "tag" | "push", "gpgsign") | ("tag", "forcesignannotated") => true,
        ("extensions", "worktreeconfig" | "relativeworktrees" | "preciousobjects") => true,
        ("gc", "auto") | ("index", "sparse") => true,
        ("remote", "pushurl") | ("url", "pushinsteadof") => !allow_push,
        _ => false,
    }
}

fn header(out: &mut Vec<u8>, section: &str, subsection: Option<&[u8]>) {
    out.extend_from_slice(format!("[{section}").as_bytes());
    if let Some(subsection) = subsection {
        out.extend_from_slice(b" \"");
        for byte in subsection {
            if matches!(byte, b'"' | b'\\') {
                out.push(b'\\');
            }
            out.push(*byte);
        }
        out.push(b'"');
    }
    out.extend_from_slice(b"]\n");
}

fn quoted(value: &[u8]) -> Vec<u8> {
    let mut out = vec![b'"'];
    for byte in value {
        match byte {
            b'"' => out.extend_from_slice(b"\\\""),
            b'\\' => out.extend_from_slice(b"\\\\"),
            b'\n' => out.extend_from_slice(b"\\n"),
            b'\t' => out.extend_from_slice(b"\\t"),
            8 => out.extend_from_slice(b"\\b"),
            byte => out.push(*byte),
        }
    }
    out.push(b'"');
    out
}

/// A relative path as URL is relative to the working tree: in the sandbox it
/// would lead elsewhere.
fn absolute(url: &[u8], root: &std::path::Path) -> Vec<u8> {
    if url.starts_with(b"./") || url.starts_with(b"../") || matches!(url, b"." | b"..") {
        let path = root.join(std::ffi::OsStr::from_bytes(url));
        return path.into_os_string().into_vec();
    }
    url.to_vec()
}
