//! The objects of a private git directory: links to those of the repository
//! and of everything it borrows from, so that the result stands alone. Where
//! no links can be made to it, the links are made beside the originals, and
//! the private git directory borrows from them: whatever the repository
//! prunes, the links keep.

use std::collections::HashSet;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};

use sandbar_domain::Code;
use sandbar_ports::git::{PrivateGit, PrivateRequest};
use sandbar_ports::workspace::Part;
use sandbar_ports::{PortError, PortResult};

use super::rel;
use crate::reading;

/// Left out: what git makes again by itself, and what it rewrites in place of
/// replacing, so that it cannot be shared by links.
const EXCEPT: &[&str] = &["info", "pack/multi-pack-index", "pack/multi-pack-index.d"];

/// Adds all objects of the object directory `from`: as links, or, where they
/// are pinned, as one more place to look for objects.
pub(super) fn add(
    request: &PrivateRequest,
    from: &Path,
    to: &str,
    made: &mut PrivateGit,
) -> PortResult<()> {
    made.parts.push(Part::Copy {
        from: from.join("info/commit-graph"),
        to: rel(&format!("{to}/info/commit-graph"))?,
    });
    let parts = match &request.pins {
        None => &mut made.parts,
        Some(pins) => {
            // Without a directory there git complains, with none to borrow too.
            made.pins.push(Part::Directory(rel(to)?));
            let mut line = pins.join(to).into_os_string().into_vec();
            line.push(b'\n');
            let list = rel(&format!("{to}/info/alternates"))?;
            made.parts.push(Part::Write(list, line));
            &mut made.pins
        }
    };
    for from in with_borrowed(from)? {
        parts.push(Part::Link {
            from,
            to: rel(to)?,
            except: EXCEPT.iter().map(|name| (*name).to_owned()).collect(),
        });
    }
    Ok(())
}

/// Prepares the place at which the in-place view shows the pins: there the
/// real path of the repository leads into the sandbox.
pub(super) fn show_pins(request: &PrivateRequest, made: &mut PrivateGit) -> PortResult<()> {
    let Some(pins) = &request.pins else {
        return Ok(());
    };
    let git_dir = request.checkout.root.join(".git");
    if let Ok(inside) = pins.strip_prefix(&git_dir) {
        let text = inside.to_str().ok_or_else(|| {
            PortError::new(
                Code::RepositoryRefused,
                format!("pin objects in {}: not UTF-8", pins.display()),
            )
        })?;
        made.parts.push(Part::Directory(rel(text)?));
        made.binds.push((pins.clone(), pins.clone()));
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
