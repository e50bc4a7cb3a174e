//! Patches, judged by `git apply`: it must take each and arrive at the result.
#![allow(
    clippy::disallowed_methods,
    reason = "tests write fixtures and start git as a judge"
)]

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::process::{Command, Stdio};

use sandbar::domain::{Change, Entry, Hash, Kind, RelPath};
use sandbar::patch::patch;

type Side = Option<(Kind, &'static [u8])>;

fn put(root: &Path, path: &str, side: Side) {
    let Some((kind, bytes)) = side else { return };
    let at = root.join(path);
    fs::create_dir_all(at.parent().expect("below the root")).expect("a directory");
    if kind == Kind::Symlink {
        symlink(std::str::from_utf8(bytes).expect("a text"), at).expect("a symlink");
        return;
    }
    fs::write(&at, bytes).expect("a file");
    let mode = if kind == Kind::Executable {
        0o755
    } else {
        0o644
    };
    fs::set_permissions(&at, fs::Permissions::from_mode(mode)).expect("a mode");
}

fn have(root: &Path, path: &str) -> Option<(Kind, Vec<u8>)> {
    let at = root.join(path);
    let meta = fs::symlink_metadata(&at).ok()?;
    if meta.is_symlink() {
        let target = fs::read_link(&at).expect("a target");
        return Some((
            Kind::Symlink,
            target.to_str().expect("a text").as_bytes().to_vec(),
        ));
    }
    let kind = match meta.permissions().mode() & 0o100 {
        0 => Kind::File,
        _ => Kind::Executable,
    };
    Some((kind, fs::read(&at).expect("a file")))
}

fn check(name: &str, path: &str, old: Side, new: Side) {
    let root = tempfile::tempdir().expect("a directory");
    put(root.path(), path, old);
    let entry = |side: Side| side.map(|(kind, bytes)| Entry::new(kind, Hash::of(bytes)));
    let change = Change {
        path: RelPath::new(path).expect("valid"),
        old: entry(old),
        new: entry(new),
    };
    let bytes = |side: Side| side.map_or(&b""[..], |(_, bytes)| bytes);
    let text = patch(&change, bytes(old), bytes(new));
    let mut git = Command::new("git")
        .args(["apply", "--unsafe-paths", "-"])
        .current_dir(root.path())
        .env("GIT_CEILING_DIRECTORIES", "/")
        .stdin(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("git starts");
    std::io::Write::write_all(git.stdin.as_mut().expect("piped"), &text).expect("a patch");
    let done = git.wait_with_output().expect("git ends");
    let said = String::from_utf8_lossy(&done.stderr);
    assert!(
        done.status.success(),
        "{name}: {said}\n{}",
        String::from_utf8_lossy(&text)
    );
    assert_eq!(
        have(root.path(), path),
        new.map(|(k, b)| (k, b.to_vec())),
        "{name}"
    );
}

// conformance: SRF-2 partial: the patch only
#[test]
fn git_takes_every_kind_of_patch() {
    const LONG: &[u8] = b"1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n11\n12\n13\n14\n15\n16\n17\n18\n19\n";
    const EDITED: &[u8] = b"one\n2\n3\n4\n5\n6\n7\n8\n9\n10\n11\n12\n13\n14\n15\n16\n17\n18\nend";
    const BINARY: &[u8] =
        b"\0\x01\x02binary\xff\xfe\n\0more bytes than one line of base 85 can hold, surely";
    let file = |bytes: &'static [u8]| Some((Kind::File, bytes));
    let exe = |bytes: &'static [u8]| Some((Kind::Executable, bytes));
    let link = |bytes: &'static [u8]| Some((Kind::Symlink, bytes));
    for (name, path, old, new) in [
        ("two hunks, last line open", "a", file(LONG), file(EDITED)),
        ("last line closed", "a", file(EDITED), file(LONG)),
        ("new file", "d/new", None, file(LONG)),
        ("new empty file", "d/new", None, file(b"")),
        ("emptied", "a", file(LONG), file(b"")),
        ("filled", "a", file(b""), file(LONG)),
        ("deleted", "a", file(LONG), None),
        ("deleted empty", "a", file(b""), None),
        ("mode", "a", file(LONG), exe(LONG)),
        ("mode and content", "a", exe(LONG), file(EDITED)),
        ("new executable", "run", None, exe(b"#!/bin/sh\n")),
        ("binary new", "b", None, file(BINARY)),
        ("binary changed", "b", file(BINARY), file(b"text now\n")),
        ("binary deleted", "b", file(BINARY), None),
        ("new symlink", "l", None, link(b"to/nowhere")),
        ("symlink changed", "l", link(b"x"), link(b"y")),
        ("symlink deleted", "l", link(b"x"), None),
        ("file to symlink", "t", file(LONG), link(b"x")),
        ("symlink to file", "t", link(b"x"), file(LONG)),
        ("space", "with space/a b", file(LONG), file(EDITED)),
        ("quote and backslash", "q\"u\\o", file(LONG), file(EDITED)),
        ("tab and newline", "t\tn\n", file(LONG), file(EDITED)),
        ("not ASCII", "grün/日本", file(LONG), file(EDITED)),
        (
            "carriage returns",
            "crlf",
            file(b"a\r\nb\r\n"),
            file(b"a\r\nc\r\n"),
        ),
        ("not UTF-8", "latin", file(b"caf\xe9\n"), file(b"th\xe9\n")),
    ] {
        check(name, path, old, new);
    }
}
