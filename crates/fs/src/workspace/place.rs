//! Roots and places: what a path leads to, and the short directories that
//! sandboxes live in. A place is `<data>/s/<8 characters>`; nothing of
//! another shape is ever taken for one.

use std::path::{Path, PathBuf};

use sandbar_domain::Code;
use sandbar_domain::resource::Root;
use sandbar_ports::{PortError, PortResult};

use super::pins;
use super::remove::remove_tree;
use crate::data::DataDir;
use crate::files;
use crate::names;
use crate::sys::{self, Dir, Errno, Listing, Type, at, fail};

/// What outlives the root in a place, besides the note of its pins: the pool
/// (STR-9).
const POOL: &[u8] = b"o";

/// Resolves a directory; see the port.
pub(crate) fn identify(data: &Path, path: &Path) -> PortResult<Root> {
    let root = resolve(path)?;
    let refuse = |why: &str| {
        PortError::new(
            Code::RootRefused,
            format!("use {} as a root: {why}", root.path.display()),
        )
    };
    if root.path == Path::new("/") {
        return Err(refuse("it is the root of everything"));
    }
    if data.starts_with(&root.path) {
        return Err(refuse("it holds Sandbar's own data"));
    }
    if root.path.starts_with(data) {
        return Err(refuse("it lies in Sandbar's own data"));
    }
    Ok(root)
}

/// Resolves a directory inside a sandbox; see the port.
pub(crate) fn identify_own(data: &DataDir, path: &Path) -> PortResult<Root> {
    let gone = || {
        PortError::new(
            Code::SandboxGone,
            format!("open {}: it is not there any more", path.display()),
        )
    };
    let root = resolve(path).map_err(|error| match error.code {
        Code::PathNotFound | Code::PathEscapes => gone(),
        _ => error,
    })?;
    let inside = root
        .path
        .strip_prefix(data.places())
        .ok()
        .and_then(|rest| rest.components().next())
        .is_some_and(|name| is_place_name(name.as_os_str().as_encoded_bytes()));
    if inside { Ok(root) } else { Err(gone()) }
}

fn resolve(path: &Path) -> PortResult<Root> {
    let path = files::canonicalize(path)?;
    let shown = path.display();
    let dir = sys::open_dir(&path).map_err(|errno| match errno {
        Errno::NOTDIR => {
            PortError::new(Code::PathNotFound, format!("open {shown}: not a directory"))
        }
        other => fail("open", &shown, other),
    })?;
    let seen = dir.stat_self().map_err(at("stat", &shown))?;
    Ok(Root {
        device: seen.stat.dev,
        inode: seen.stat.ino,
        path,
    })
}

/// Makes a new, empty place.
pub(crate) fn reserve(data: &DataDir) -> PortResult<PathBuf> {
    let dir = data.sub("s")?;
    loop {
        let name = names::short();
        match sys::make_dir(&dir, &name, 0o700) {
            Ok(()) => return Ok(data.places().join(name)),
            Err(Errno::EXIST) => {}
            Err(errno) => return Err(fail("make", data.places().join(name).display(), errno)),
        }
    }
}

/// Lists the places, sorted.
pub(crate) fn places(data: &DataDir) -> PortResult<Vec<PathBuf>> {
    let dir = data.sub("s")?;
    let names = Listing::default()
        .sorted(&dir)
        .map_err(at("list", data.places().display()))?;
    Ok(names
        .into_iter()
        .filter(|entry| is_place_name(entry.name.to_bytes()))
        .filter_map(|entry| entry.name.into_string().ok())
        .map(|name| data.places().join(name))
        .collect())
}

/// Removes a place with all in it, and first its pins.
pub(crate) fn remove(data: &DataDir, place: &Path) -> PortResult<()> {
    let name = place_name(data, place)?;
    pins::unpin(data, place)?;
    remove_tree(&data.sub("s")?, name, place)
}

/// Removes what is in a place but its pool and its pins.
pub(crate) fn retire(data: &DataDir, place: &Path) -> PortResult<()> {
    let name = place_name(data, place)?;
    let dir: Dir = match data.sub("s")?.child(name) {
        Err(Errno::NOENT) => return Ok(()),
        other => other.map_err(at("open", place.display()))?,
    };
    let reader = dir.reopen().map_err(at("open", place.display()))?;
    let entries = Listing::default()
        .sorted(&reader)
        .map_err(at("list", place.display()))?;
    for entry in entries {
        let is_dir = entry.kind == Type::Directory;
        let name = entry.name.to_bytes();
        if is_dir && name == POOL || !is_dir && name == pins::NOTE.as_bytes() {
            continue;
        }
        let shown = place.join(&*entry.name.to_string_lossy());
        remove_tree(&dir, entry.name.to_bytes(), &shown)?;
    }
    Ok(())
}

pub(super) fn place_name<'p>(data: &DataDir, place: &'p Path) -> PortResult<&'p [u8]> {
    let name = place.file_name().map(std::ffi::OsStr::as_encoded_bytes);
    match (place.parent(), name) {
        (Some(parent), Some(name)) if parent == data.places() && is_place_name(name) => Ok(name),
        _ => Err(PortError::new(
            Code::RootRefused,
            format!("remove {}: no sandbox was made there", place.display()),
        )),
    }
}

fn is_place_name(name: &[u8]) -> bool {
    name.len() == 8
        && name
            .iter()
            .all(|byte| matches!(byte, b'a'..=b'z' | b'2'..=b'7'))
}
