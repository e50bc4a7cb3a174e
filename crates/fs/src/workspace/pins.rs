//! Pins: hard links beside immutable files that a sandbox on another file
//! system borrows (STR-1). A file in the sandbox's place names them, and is
//! durable before them; it goes after them. So pins without a place belong to
//! nobody. Their directory is `<holder>/sandbar/pins/<data>-<place>`; nothing
//! of another shape is ever removed.

use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};

use sandbar_domain::{Code, Hash};
use sandbar_ports::pins::{Pin, ShareRequest, Sharing};
use sandbar_ports::workspace::Assemble;
use sandbar_ports::{PortError, PortResult};

use super::assemble::assemble;
use super::place::place_name;
use super::remove::remove_tree;
use crate::data::DataDir;
use crate::files;
use crate::names;
use crate::sys::{self, Dir, Errno, Listing, Type, at, fail};

/// The name in a place of the file that names the pins.
pub(super) const NOTE: &str = "p";

/// The longest path that is noted, in bytes.
const LONGEST: u64 = 8192;

/// How many directories deep a sample is looked for: `objects/ab/cd…`.
const DEEP: usize = 2;

/// Finds out how files come into a place; see the port.
pub(crate) fn share(data: &DataDir, request: &ShareRequest) -> PortResult<Sharing> {
    let name = place_name(data, &request.place)?;
    let place = sys::open_dir(&request.place).map_err(at("open", request.place.display()))?;
    let from = sys::open_dir(&request.from).map_err(at("open", request.from.display()))?;
    let Some(sample) = Sample::find(&from, DEEP) else {
        return Ok(Sharing::Shared);
    };
    if sample.links_into(&place) || sample.clones_into(&place) {
        return Ok(Sharing::Shared);
    }
    let bytes = size(&from, DEEP);
    let (Some(holder), false) = (&request.holder, bytes <= request.small) else {
        return Ok(Sharing::Copied { bytes });
    };
    let name = tag(data) + &String::from_utf8_lossy(name);
    let dir = holder.join("sandbar/pins").join(name);
    // Tried in the directory itself, so that nothing is left that is not noted.
    note(&request.place, &dir)?;
    let can = files::make_dirs(&dir, 0o755).is_ok()
        && sys::open_dir(&dir).is_ok_and(|dir| sample.links_into(&dir));
    if !can {
        unpin(data, &request.place)?;
        return Ok(Sharing::Copied { bytes });
    }
    Ok(Sharing::Pinned { dir, bytes })
}

fn note(place: &Path, dir: &Path) -> PortResult<()> {
    files::write_atomic(&place.join(NOTE), dir.as_os_str().as_bytes(), 0o600)
}

/// Makes the pins of a place; see the port.
pub(crate) fn pin(data: &DataDir, request: &Pin) -> PortResult<()> {
    let Pin {
        place,
        dir,
        parts,
        cancel,
    } = request;
    check(data, place, dir)?;
    note(place, dir)?;
    let pins = dir.parent().expect("its shape was checked");
    files::make_dirs(pins, 0o755)?;
    let holder = sys::open_dir(pins).map_err(at("open", pins.display()))?;
    let name = dir.file_name().expect("its shape was checked");
    remove_tree(&holder, name.as_bytes(), dir)?;
    assemble(&Assemble {
        dest: dir.clone(),
        pool: None,
        parts: parts.clone(),
        cancel: cancel.clone(),
    })?;
    let made = holder.child(name).map_err(at("open", dir.display()))?;
    sync_below(&made).map_err(at("make durable", dir.display()))?;
    sys::sync_dir(&holder).map_err(at("make durable", pins.display()))
}

/// Removes the pins of a place; see the port.
pub(crate) fn unpin(data: &DataDir, place: &Path) -> PortResult<()> {
    let Some(dir) = noted(data, place)? else {
        return Ok(());
    };
    check(data, place, &dir)?;
    drop_dir(&dir)?;
    let holder = sys::open_dir(place).map_err(at("open", place.display()))?;
    match sys::remove_file(&holder, NOTE) {
        Ok(()) | Err(Errno::NOENT) => Ok(()),
        Err(errno) => Err(fail("remove", place.join(NOTE).display(), errno)),
    }
}

/// Returns where the pins of a place are, and whether they are; see the port.
pub(crate) fn pins_of(data: &DataDir, place: &Path) -> PortResult<Option<(PathBuf, bool)>> {
    Ok(noted(data, place)?.map(|dir| {
        let there = files::is_dir(&dir);
        (dir, there)
    }))
}

/// Lists, and removes, pins of places that are gone; see the port.
pub(crate) fn sweep(data: &DataDir, holder: &Path, dry_run: bool) -> PortResult<Vec<PathBuf>> {
    let pins = holder.join("sandbar/pins");
    let names = match files::list(&pins) {
        Err(error) if error.code == Code::PathNotFound => return Ok(Vec::new()),
        other => other?,
    };
    let tag = tag(data);
    let stray: Vec<PathBuf> = names
        .iter()
        .filter(|name| {
            let place = name.strip_prefix(&tag).map(|name| data.places().join(name));
            place.is_some_and(|place| place_name(data, &place).is_ok() && !files::exists(&place))
        })
        .map(|name| pins.join(name))
        .collect();
    if !dry_run {
        stray.iter().try_for_each(|dir| drop_dir(dir))?;
    }
    Ok(stray)
}

fn noted(data: &DataDir, place: &Path) -> PortResult<Option<PathBuf>> {
    place_name(data, place)?;
    match files::read_small(&place.join(NOTE), LONGEST) {
        Err(error) if error.code == Code::PathNotFound => Ok(None),
        Err(error) => Err(error),
        Ok(bytes) => Ok(Some(std::ffi::OsString::from_vec(bytes).into())),
    }
}

fn check(data: &DataDir, place: &Path, dir: &Path) -> PortResult<()> {
    let name = tag(data) + &String::from_utf8_lossy(place_name(data, place)?);
    if dir.is_absolute() && dir.ends_with(Path::new("sandbar/pins").join(name)) {
        return Ok(());
    }
    Err(PortError::new(
        Code::RootRefused,
        format!("pin objects in {}: not a directory of pins", dir.display()),
    ))
}

/// Tells the pins of one data directory from those of another.
fn tag(data: &DataDir) -> String {
    let name = Hash::of(data.path().as_os_str().as_bytes()).to_string();
    format!("{}-", &name[..12])
}

/// Removes a directory of pins, and what held it if that is empty then. A
/// repository that is gone has no pins.
fn drop_dir(dir: &Path) -> PortResult<()> {
    let (Some(pins), Some(name)) = (dir.parent(), dir.file_name()) else {
        return Ok(());
    };
    match sys::open_dir(pins) {
        Err(Errno::NOENT | Errno::NOTDIR) => return Ok(()),
        other => {
            let holder = other.map_err(at("open", pins.display()))?;
            remove_tree(&holder, name.as_bytes(), dir)?;
        }
    }
    tidy(pins);
    Ok(())
}

/// Removes `sandbar/pins` and `sandbar` where nothing is in them.
fn tidy(pins: &Path) {
    for dir in pins.ancestors().take(2) {
        let (Some(parent), Some(name)) = (dir.parent(), dir.file_name()) else {
            return;
        };
        if sys::open_dir(parent).is_err() {
            continue;
        }
        // Not empty: somebody else's are there.
        let removed = sys::open_dir(parent).and_then(|parent| sys::remove_dir(&parent, name));
        if removed.is_err() {
            return;
        }
    }
}

/// One file to try with.
struct Sample {
    dir: Dir,
    name: String,
}

impl Sample {
    fn find(dir: &Dir, deep: usize) -> Option<Self> {
        let reader = dir.reopen().ok()?;
        let entries = Listing::default().sorted(&reader).ok()?;
        for entry in entries {
            let name = entry.name.to_str().ok()?;
            let kind = dir.stat(name).map(|seen| seen.kind);
            match kind {
                Ok(Type::File) => {
                    let (dir, name) = (dir.reopen().ok()?, name.to_owned());
                    return Some(Self { dir, name });
                }
                Ok(Type::Directory) if deep > 0 => {
                    let found = dir.child(name).ok().and_then(|d| Self::find(&d, deep - 1));
                    if found.is_some() {
                        return found;
                    }
                }
                _ => {}
            }
        }
        None
    }

    fn links_into(&self, dir: &Dir) -> bool {
        let name = format!(".{}.tmp", names::random());
        let linked = sys::link(&self.dir, &*self.name, dir, &*name).is_ok();
        // What was made is removed again; what was not is not there.
        let _ = sys::remove_file(dir, &*name);
        linked
    }

    fn clones_into(&self, dir: &Dir) -> bool {
        let Ok((from, _)) = sys::open_readable(&self.dir, &*self.name) else {
            return false;
        };
        let name = format!(".{}.tmp", names::random());
        let cloned = sys::create_new(dir, &*name, 0o600)
            .and_then(|to| sys::clone_into(&to, &from))
            .is_ok();
        let _ = sys::remove_file(dir, &*name);
        cloned
    }
}

/// Adds up the files at and beneath a directory; what cannot be read counts
/// nothing here, and is an error where it is needed.
fn size(dir: &Dir, deep: usize) -> u64 {
    let names = dir
        .reopen()
        .and_then(|reader| Listing::default().sorted(&reader));
    let mut sum = 0u64;
    for entry in names.unwrap_or_default() {
        let name = &*entry.name;
        match dir.stat(name) {
            Ok(seen) if seen.kind == Type::File => sum = sum.saturating_add(seen.stat.size),
            Ok(seen) if seen.kind == Type::Directory && deep > 0 => {
                sum = sum.saturating_add(dir.child(name).map_or(0, |dir| size(&dir, deep - 1)));
            }
            _ => {}
        }
    }
    sum
}

/// Makes the names beneath a directory durable, and what had to be copied.
fn sync_below(dir: &Dir) -> Result<(), Errno> {
    let names = Listing::default().sorted(dir.reopen()?)?;
    for entry in names {
        let name = &*entry.name;
        let seen = dir.stat(name)?;
        match seen.kind {
            Type::Directory => sync_below(&dir.child(name)?)?,
            Type::File if seen.links == 1 => sys::sync_file(sys::open_readable(dir, name)?.0)?,
            _ => {}
        }
    }
    sys::sync_dir(dir)
}
