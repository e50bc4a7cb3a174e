//! What lies on the way to a path: one look at each place, no listing.

use std::path::Path;

use rustix::fs::CWD;
use sandbar_domain::Code;
use sandbar_domain::resource::Root;
use sandbar_ports::workspace::Place;
use sandbar_ports::{PortError, PortResult};

use crate::files;
use crate::sys::{self, Type, at, kind_of};

/// Looks at every place down to `path`; see the port.
pub(crate) fn look(path: &Path, mark: &str, follow: bool) -> PortResult<Vec<Place>> {
    let resolved = match (path.parent(), path.file_name()) {
        (Some(parent), Some(name)) if !follow => {
            let parent = match parent.as_os_str().is_empty() {
                true => Path::new("."),
                false => parent,
            };
            files::canonicalize(parent)?.join(name)
        }
        _ => files::canonicalize(path)?,
    };
    if resolved.to_str().is_none() {
        let message = format!("use {}: the path is not UTF-8", resolved.display());
        return Err(PortError::new(Code::UnsupportedEntry, message));
    }
    let mut places: Vec<Place> = resolved
        .ancestors()
        .map(|path| place(path, mark))
        .collect::<PortResult<_>>()?;
    places.reverse();
    Ok(places)
}

fn place(path: &Path, mark: &str) -> PortResult<Place> {
    let seen = sys::stat_at(CWD, path).map_err(at("look at", path.display()))?;
    let marked = seen.kind == Type::Directory && files::exists(&path.join(mark));
    Ok(Place {
        kind: kind_of(&seen),
        root: Root {
            path: path.to_owned(),
            device: seen.stat.dev,
            inode: seen.stat.ino,
        },
        marked,
    })
}
