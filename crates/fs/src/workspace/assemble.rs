//! A directory of explicit parts, such as a private git directory: files
//! written, copied, or linked to immutable ones. On failure it is gone again.

use std::path::Path;

use sandbar_domain::RelPath;
use sandbar_ports::workspace::{Assemble, Part};
use sandbar_ports::{Cancel, PortResult};

use super::pool::name_of;
use super::remove::remove_tree;
use super::transfer::{copy, link_or_copy, make_dirs, make_parents, write};
use crate::files;
use crate::scan::unsupported;
use crate::sys::{self, Dir, Errno, Listing, Type, at, fail};

/// More copies than these are made durable by one call for the whole volume.
const FEW: usize = 256;

/// Makes a directory of parts; see the port.
pub(crate) fn assemble(request: &Assemble) -> PortResult<()> {
    let shown = request.dest.display();
    let (Some(parent), Some(name)) = (request.dest.parent(), request.dest.file_name()) else {
        return Err(fail("make", &shown, Errno::INVAL));
    };
    let holder = sys::open_dir(parent).map_err(at("open", parent.display()))?;
    sys::make_dir(&holder, name, 0o755).map_err(at("make", &shown))?;
    let result = fill(request, &holder, name);
    if result.is_err() {
        let _ = remove_tree(&holder, name.as_encoded_bytes(), &request.dest);
    }
    result
}

fn fill(request: &Assemble, holder: &Dir, name: &std::ffi::OsStr) -> PortResult<()> {
    let dest = holder
        .child(name)
        .map_err(at("open", request.dest.display()))?;
    let pool = match &request.pool {
        None => None,
        Some(path) => {
            files::make_dirs(path, 0o700)?;
            Some(sys::open_dir(path).map_err(at("open", path.display()))?)
        }
    };
    let mut copied = Vec::new();
    for part in &request.parts {
        request.cancel.check()?;
        match part {
            Part::Directory(rel) => make_dirs(&dest, rel)?,
            Part::Write(rel, content) => write(&dest, rel, content)?,
            Part::Copy { from, to } => copy_one(&dest, from, to)?,
            Part::CopyTree { from, to, except } => {
                let mut each = |from: &Dir, name: &str, rel: &RelPath| {
                    put(&dest, to, rel, |dir, new| copy(from, name, dir, new, rel))
                };
                tree(from, except, &request.cancel, &mut each, &dest, to)?;
            }
            Part::Link { from, to, except } => {
                let mut each = |from: &Dir, name: &str, rel: &RelPath| {
                    if is_temporary(name) {
                        return Ok(());
                    }
                    put(&dest, to, rel, |dir, new| {
                        let is_copy = link_or_copy(from, name, dir, new, rel)?;
                        let Some(pool) = &pool else { return Ok(()) };
                        if is_copy {
                            copied.push(name_of(rel.as_str()));
                        }
                        keep(dir, new, pool, rel)
                    })
                };
                tree(from, except, &request.cancel, &mut each, &dest, to)?;
            }
        }
    }
    if let (Some(pool), Some(path)) = (&pool, &request.pool) {
        sync_copies(pool, &copied)
            .and_then(|()| sys::sync_dir(pool))
            .map_err(at("make durable", path.display()))?;
    }
    Ok(())
}

/// Makes the content of files in the pool durable that are no links to files
/// which are durable elsewhere.
fn sync_copies(pool: &Dir, names: &[String]) -> Result<(), Errno> {
    if names.len() > FEW {
        return sys::sync_volume(pool);
    }
    for name in names {
        match sys::open_readable(pool, &**name) {
            Ok((file, _)) => sys::sync_file(file)?,
            // The original went before it was copied.
            Err(Errno::NOENT) => {}
            Err(errno) => return Err(errno),
        }
    }
    Ok(())
}

/// Files that are being made, or guard one that is.
fn is_temporary(name: &str) -> bool {
    name.starts_with("tmp_") || name.ends_with(".lock")
}

fn copy_one(dest: &Dir, from: &Path, to: &RelPath) -> PortResult<()> {
    if !files::exists(from) {
        return Ok(());
    }
    make_parents(dest, to)?;
    let found = dest.parent_of(to, false).map_err(at("open", to))?;
    copy(rustix::fs::CWD, from, &found.dir, found.name, to)
}

/// Calls `make` with the open directory and the name for `rel` beneath `to`.
fn put(
    dest: &Dir,
    to: &RelPath,
    rel: &RelPath,
    make: impl FnOnce(&Dir, &str) -> PortResult<()>,
) -> PortResult<()> {
    let whole = below(to, rel)?;
    let found = dest.parent_of(&whole, false).map_err(at("open", &whole))?;
    make(&found.dir, found.name)
}

fn below(to: &RelPath, rel: &RelPath) -> PortResult<RelPath> {
    RelPath::new(&format!("{to}/{rel}")).map_err(|error| {
        sandbar_ports::PortError::new(
            sandbar_domain::Code::UnsupportedEntry,
            format!("copy {to}/{rel}: {error}"),
        )
    })
}

fn keep(dir: &Dir, name: &str, pool: &Dir, rel: &RelPath) -> PortResult<()> {
    match sys::link(dir, name, pool, name_of(rel.as_str())) {
        Ok(()) | Err(Errno::EXIST | Errno::NOENT) => Ok(()),
        Err(Errno::MLINK | Errno::PERM | Errno::XDEV) => {
            copy(dir, name, pool, &name_of(rel.as_str()), rel)
        }
        Err(errno) => Err(fail("keep", rel, errno)),
    }
}

/// Goes through a source directory, parents first, and makes the directories
/// of the copy. Sockets and the like are left out; a name that is not UTF-8
/// is an error, for a branch can have one.
fn tree(
    from: &Path,
    except: &[String],
    cancel: &Cancel,
    each: &mut dyn FnMut(&Dir, &str, &RelPath) -> PortResult<()>,
    dest: &Dir,
    to: &RelPath,
) -> PortResult<()> {
    let root = match sys::open_dir(from) {
        Err(Errno::NOENT) => return Ok(()),
        other => other.map_err(at("open", from.display()))?,
    };
    make_dirs(dest, to)?;
    let mut listing = Listing::default();
    let mut open: Vec<Option<RelPath>> = vec![None];
    while let Some(path) = open.pop() {
        cancel.check()?;
        let shown = || {
            path.as_ref()
                .map_or_else(|| from.to_owned(), |path| from.join(path))
        };
        let dir = match root.beneath(path.as_ref(), false) {
            Err(Errno::NOENT) => continue,
            other => other.map_err(|errno| fail("open", shown().display(), errno))?,
        };
        let names = listing
            .sorted(&dir)
            .map_err(|errno| fail("list", shown().display(), errno))?;
        for entry in names {
            let lossy = entry.name.to_string_lossy();
            let refused =
                |why: &str| unsupported(&format!("{}", shown().join(&*lossy).display()), why);
            let name = entry
                .name
                .to_str()
                .map_err(|_| refused("its name is not UTF-8"))?;
            let rel =
                RelPath::child(path.as_ref(), name).map_err(|error| refused(&error.to_string()))?;
            if except.iter().any(|out| out == rel.as_str()) {
                continue;
            }
            let kind = match entry.kind {
                Type::Unknown => dir.stat(name).map_or(Type::Unknown, |seen| seen.kind),
                known => known,
            };
            match kind {
                Type::Directory => {
                    make_dirs(dest, &below(to, &rel)?)?;
                    open.push(Some(rel));
                }
                Type::File | Type::Symlink => each(&dir, name, &rel)?,
                Type::Other(_) | Type::Unknown => {}
            }
        }
    }
    Ok(())
}
