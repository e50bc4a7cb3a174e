//! Where displaced bytes go: the first place on the mount of the root.

use std::path::{Path, PathBuf};

use rustix::fs::CWD;
use sandbar_domain::Code;
use sandbar_domain::resource::Root;
use sandbar_ports::target::KeptPlace;
use sandbar_ports::{PortError, PortResult};

use crate::names;
use crate::sys::{self, Dir, Errno};

/// Chooses among the data directory, the repository and the root itself.
pub(super) fn choose(
    data: &Path,
    root: &Root,
    dir: &Dir,
    git_common_dir: Option<PathBuf>,
) -> PortResult<KeptPlace> {
    let candidates = [
        Some(data.to_owned()),
        git_common_dir.map(|dir| dir.join("sandbar/kept")),
        Some(root.path.join(".sandbar/kept")),
    ];
    for place in candidates.into_iter().flatten() {
        let Some(existing) = nearest(&place) else {
            continue;
        };
        if sys::may_write_dir(&existing).is_ok()
            && sys::same_mount(dir, &existing, &names::random()) == Ok(true)
        {
            return Ok(KeptPlace { dir: place });
        }
    }
    Err(PortError::new(
        Code::PermissionDenied,
        format!(
            "keep what is replaced in {}: no place on its mount can be written",
            root.path.display()
        ),
    ))
}

/// Opens the nearest directory that exists at or above `path`; what is missing
/// will be made in it. `None` where something else is in the way.
fn nearest(path: &Path) -> Option<Dir> {
    for part in path.ancestors() {
        match sys::open_dir(part) {
            Ok(dir) => return Some(dir),
            Err(Errno::NOENT) if sys::stat_at(CWD, part).is_err() => {}
            Err(_) => return None,
        }
    }
    None
}
