//! Patches that `git apply` takes: text hunks, binary literals, modes,
//! symlinks, type changes. Directories have no place in such a patch.

use std::fmt::Write as _;
use std::ops::Range;

use sandbar_domain::{Change, Entry, Kind};
use sha1::{Digest as _, Sha1};
use similar::{Algorithm, DiffOp, capture_diff_slices, group_diff_ops};

/// Lines of context around a hunk.
const CONTEXT: usize = 3;
/// Bytes that are looked at to tell text from binary, as git does.
const BINARY_PROBE: usize = 8000;

/// Writes the patch of one change. `old` and `new` are the contents of the
/// two sides; a side that is absent or a directory has none.
pub fn patch(change: &Change, old: &[u8], new: &[u8]) -> Vec<u8> {
    let side = |entry: Option<Entry>| entry.map(|e| e.kind).filter(|k| *k != Kind::Directory);
    let path = change.path.as_str();
    match (side(change.old), side(change.new)) {
        (None, None) => Vec::new(),
        (Some(a), Some(b)) if a.word() != b.word() => {
            let mut out = one(path, Some((a, old)), None);
            out.extend(one(path, None, Some((b, new))));
            out
        }
        (a, b) => one(path, a.map(|kind| (kind, old)), b.map(|kind| (kind, new))),
    }
}

/// Says whether git would call this content binary.
pub fn is_binary(content: &[u8]) -> bool {
    content[..content.len().min(BINARY_PROBE)].contains(&0)
}

/// Counts added and removed lines; `None` where a side is binary.
pub fn line_counts(old: &[u8], new: &[u8]) -> Option<(usize, usize)> {
    if is_binary(old) || is_binary(new) {
        return None;
    }
    let mut counts = (0, 0);
    for op in capture_diff_slices(Algorithm::Myers, &lines(old), &lines(new)) {
        if !matches!(op, DiffOp::Equal { .. }) {
            counts.0 += op.new_range().len();
            counts.1 += op.old_range().len();
        }
    }
    Some(counts)
}

type Side<'a> = Option<(Kind, &'a [u8])>;

fn one(path: &str, old: Side<'_>, new: Side<'_>) -> Vec<u8> {
    let (a, b) = (quoted("a/", path), quoted("b/", path));
    let mut head = format!("diff --git {a} {b}\n");
    match (old, new) {
        (Some((kind, _)), None) => writeln!(head, "deleted file mode {}", kind.mode()),
        (None, Some((kind, _))) => writeln!(head, "new file mode {}", kind.mode()),
        (Some((x, _)), Some((y, _))) if x != y => {
            writeln!(head, "old mode {}\nnew mode {}", x.mode(), y.mode())
        }
        _ => Ok(()),
    }
    .expect("writing to a string cannot fail");
    let content = |side: Side<'_>| side.map(|(_, bytes)| bytes.to_vec()).unwrap_or_default();
    let (before, after) = (content(old), content(new));
    if before == after && old.is_some() && new.is_some() {
        return head.into_bytes();
    }
    let name = |side: Side<'_>| match side {
        Some((_, bytes)) => blob_name(bytes),
        None => "0".repeat(40),
    };
    write!(head, "index {}..{}", name(old), name(new)).expect("writing to a string cannot fail");
    match (old, new) {
        (Some((x, _)), Some((y, _))) if x == y => head += &format!(" {}\n", x.mode()),
        _ => head.push('\n'),
    }
    let mut out = head.into_bytes();
    if is_binary(&before) || is_binary(&after) {
        out.extend_from_slice(b"GIT binary patch\n");
        literal(&after, &mut out);
        literal(&before, &mut out);
        return out;
    }
    if before.is_empty() && after.is_empty() {
        return out;
    }
    let label = |side: Side<'_>, name: &str| match side {
        Some(_) if name.contains(' ') && !name.starts_with('"') => format!("{name}\t"),
        Some(_) => name.to_owned(),
        None => "/dev/null".to_owned(),
    };
    out.extend_from_slice(format!("--- {}\n+++ {}\n", label(old, &a), label(new, &b)).as_bytes());
    hunks(&before, &after, &mut out);
    out
}

fn hunks(before: &[u8], after: &[u8], out: &mut Vec<u8>) {
    let (old, new) = (lines(before), lines(after));
    let ops = capture_diff_slices(Algorithm::Myers, &old, &new);
    for group in group_diff_ops(ops, CONTEXT) {
        let (Some(first), Some(last)) = (group.first(), group.last()) else {
            continue;
        };
        let span = |from: Range<usize>, to: Range<usize>| from.start..to.end;
        let a = range(span(first.old_range(), last.old_range()));
        let b = range(span(first.new_range(), last.new_range()));
        out.extend_from_slice(format!("@@ -{a} +{b} @@\n").as_bytes());
        for op in &group {
            if let DiffOp::Equal { .. } = op {
                put(b' ', &old[op.old_range()], out);
            } else {
                put(b'-', &old[op.old_range()], out);
                put(b'+', &new[op.new_range()], out);
            }
        }
    }
}

fn put(sign: u8, lines: &[&[u8]], out: &mut Vec<u8>) {
    for line in lines {
        out.push(sign);
        out.extend_from_slice(line);
        if !line.ends_with(b"\n") {
            out.extend_from_slice(b"\n\\ No newline at end of file\n");
        }
    }
}

/// Writes a range of lines as unified diffs do: from 1, an empty range one
/// line earlier, a length of one left out.
fn range(range: Range<usize>) -> String {
    match range.len() {
        0 => format!("{},0", range.start),
        1 => format!("{}", range.start + 1),
        length => format!("{},{length}", range.start + 1),
    }
}

fn lines(content: &[u8]) -> Vec<&[u8]> {
    content.split_inclusive(|byte| *byte == b'\n').collect()
}

fn blob_name(content: &[u8]) -> String {
    let mut hasher = Sha1::new();
    hasher.update(format!("blob {}\0", content.len()).as_bytes());
    hasher.update(content);
    hasher
        .finalize()
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

/// Quotes a name the way git does where it must be.
fn quoted(prefix: &str, path: &str) -> String {
    let plain = |c: char| !c.is_control() && c != '"' && c != '\\';
    if path.chars().all(plain) {
        return format!("{prefix}{path}");
    }
    let mut out = format!("\"{prefix}");
    for byte in path.bytes() {
        match byte {
            b'"' => out += "\\\"",
            b'\\' => out += "\\\\",
            b'\n' => out += "\\n",
            b'\t' => out += "\\t",
            0x20..=0x7e => out.push(char::from(byte)),
            _ => write!(out, "\\{byte:03o}").expect("writing to a string cannot fail"),
        }
    }
    out.push('"');
    out
}

/// Writes one half of a binary patch: deflated, in base 85, 52 bytes a line.
fn literal(content: &[u8], out: &mut Vec<u8>) {
    const DIGITS: &[u8; 85] =
        b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;<=>?@^_`{|}~";
    out.extend_from_slice(format!("literal {}\n", content.len()).as_bytes());
    let deflated = miniz_oxide::deflate::compress_to_vec_zlib(content, 6);
    for line in deflated.chunks(52) {
        let length = u8::try_from(line.len()).expect("a line has at most 52 bytes");
        out.push(if length <= 26 {
            b'A' + length - 1
        } else {
            b'a' + length - 27
        });
        for word in line.chunks(4) {
            let mut four = [0; 4];
            four[..word.len()].copy_from_slice(word);
            let mut value = u32::from_be_bytes(four);
            let mut digits = [0; 5];
            for digit in digits.iter_mut().rev() {
                *digit = DIGITS[usize::try_from(value % 85).expect("below 85")];
                value /= 85;
            }
            out.extend_from_slice(&digits);
        }
        out.push(b'\n');
    }
    out.push(b'\n');
}
