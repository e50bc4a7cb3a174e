//! The objects of a private git directory: links to those of the repository
//! and of everything it borrows from, so that the result stands alone.

use std::collections::HashSet;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use sandbar_ports::PortResult;
use sandbar_ports::workspace::Part;

use super::rel;
use crate::reading;

/// Left out: what git makes again by itself, and what it rewrites in place of
/// replacing, so that it cannot be shared by links.
const EXCEPT: &[&str] = &["info", "pack/multi-pack-index", "pack/multi-pack-index.d"];

/// Adds all objects of the object directory `from`.
pub(super) fn add(from: &Path, to: &str, parts: &mut Vec<Part>) -> PortResult<()> {
    parts.push(Part::Copy {
        from: from.join("info/commit-graph"),
        to: rel(&format!("{to}/info/commit-graph"))?,
    });
    for from in with_borrowed(from)? {
        parts.push(Part::Link {
            from,
            to: rel(to)?,
            except: EXCEPT.iter().map(|name| (*name).to_owned()).collect(),
        });
    }
    Ok(())
}

/// Lists an object directory and those it borrows from, each once.
fn with_borrowed(first: &Path) -> PortResult<Vec<PathBuf>> {
    let mut found = Vec::new();
    let mut seen = HashSet::new();
    let mut open = vec![first.to_owned()];
    while let Some(directory) = open.pop() {
        if !reading::present(&directory) {
            continue;
        }
        let directory = reading::resolved(&directory)?;
        if !seen.insert(directory.clone()) {
            continue;
        }
        let list = reading::followed(&directory.join("info/alternates"))?.unwrap_or_default();
        for line in list.split(|byte| *byte == b'\n') {
            if !line.is_empty() && !line.starts_with(b"#") {
                open.push(directory.join(std::ffi::OsStr::from_bytes(line)));
            }
        }
        found.push(directory);
    }
    Ok(found)
}
