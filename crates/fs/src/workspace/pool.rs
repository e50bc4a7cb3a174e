//! The pool of immutable files: a flat, durable directory of hard links to
//! what was linked into a root, so that it can be linked back.

use std::path::Path;

use sandbar_domain::RelPath;
use sandbar_ports::PortResult;

use super::transfer::{link_or_copy, make_parents};
use crate::sys::{self, Dir, Errno, Listing, Type, at, fail};

/// Returns the name in the pool of the file at `rel`.
pub(super) fn name_of(rel: &str) -> String {
    rel.replace('/', "!")
}

/// Links each file of the pool to its place below `dir` of `root`, where
/// nothing is there. A pool that does not exist is empty.
pub(crate) fn link_back(pool: &Path, root: &Dir, dir: &RelPath) -> PortResult<()> {
    let holder = match sys::open_dir(pool) {
        Err(Errno::NOENT) => return Ok(()),
        other => other.map_err(at("open", pool.display()))?,
    };
    let reader = holder.reopen().map_err(at("open", pool.display()))?;
    let names = Listing::default()
        .sorted(&reader)
        .map_err(at("list", pool.display()))?;
    for entry in names {
        let Ok(name) = entry.name.to_str() else {
            continue;
        };
        let Ok(rel) = RelPath::new(&format!("{dir}/{}", name.replace('!', "/"))) else {
            continue;
        };
        if root
            .parent_of(&rel, false)
            .is_ok_and(|found| found.dir.stat(found.name).is_ok())
        {
            continue;
        }
        make_parents(root, &rel)?;
        let found = root.parent_of(&rel, false).map_err(at("open", &rel))?;
        match holder.stat(name) {
            Ok(seen) if seen.kind == Type::File => {}
            Ok(_) | Err(Errno::NOENT) => continue,
            Err(errno) => return Err(fail("stat", pool.join(name).display(), errno)),
        }
        // A copy need not be durable: the pool is.
        let _copied = link_or_copy(&holder, name, &found.dir, found.name, &rel)?;
    }
    Ok(())
}
