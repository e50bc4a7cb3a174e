//! A world on a real disk, for the suites about files: somebody else's hands,
//! with nothing of the adapter under test in between.
#![allow(
    clippy::disallowed_methods,
    reason = "judges the file adapter from outside, in a temporary directory"
)]

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs;
use std::io::{self, ErrorKind};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _, PermissionsExt as _, symlink};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use rustix::fs::{IFlags, ioctl_getflags, ioctl_setflags};
use tempfile::TempDir;

use crate::contract::files::{What, World};

/// A temporary directory with a real root in it; removed when dropped.
#[derive(Debug)]
pub struct RealWorld {
    base: PathBuf,
    sealed: Mutex<BTreeSet<PathBuf>>,
    _dir: TempDir,
}

impl RealWorld {
    /// Makes one where temporary files go.
    pub fn new() -> Self {
        let dir = TempDir::new().expect("a temporary directory can be made");
        let base = dir.path().canonicalize().expect("it can be resolved");
        fs::create_dir(base.join("real")).expect("the real root can be made");
        Self {
            base,
            sealed: Mutex::default(),
            _dir: dir,
        }
    }
}

impl Drop for RealWorld {
    fn drop(&mut self) {
        // After a failed test, so that the directory can be removed.
        for dir in self.sealed.get_mut().into_iter().flat_map(|all| &*all) {
            let _ = set_sealed(dir, false);
        }
    }
}

/// Permissions do not stop root: there the directory is made immutable.
fn set_sealed(dir: &Path, sealed: bool) -> io::Result<()> {
    if !rustix::process::geteuid().is_root() {
        let mode = if sealed { 0o555 } else { 0o755 };
        return fs::set_permissions(dir, fs::Permissions::from_mode(mode));
    }
    let open = fs::File::open(dir)?;
    let mut flags = ioctl_getflags(&open)?;
    flags.set(IFlags::IMMUTABLE, sealed);
    Ok(ioctl_setflags(&open, flags)?)
}

impl Default for RealWorld {
    fn default() -> Self {
        Self::new()
    }
}

impl World for RealWorld {
    fn base(&self) -> PathBuf {
        self.base.clone()
    }

    fn put(&self, path: &Path, what: What) {
        let parent = path.parent().expect("not the root of everything");
        if !fs::symlink_metadata(parent).is_ok_and(|found| found.is_dir()) {
            self.put(parent, What::Directory);
        }
        let there = self.get(path);
        match (&there, &what) {
            (Some(What::Directory), What::Directory)
            | (Some(What::File { .. }), What::File { .. })
            | (None, _) => {}
            _ => self.remove(path),
        }
        let made = match &what {
            What::Directory if there == Some(What::Directory) => Ok(()),
            What::Directory => fs::create_dir(path),
            What::File { bytes, .. } => fs::write(path, bytes),
            What::Symlink(target) => symlink(OsString::from_vec(target.clone()), path),
            // A socket: its name stays when nobody listens any more.
            What::Special => UnixListener::bind(path).map(drop),
        };
        made.unwrap_or_else(|error| panic!("put {}: {error}", path.display()));
        if let What::File { executable, .. } = what {
            let mode = if executable { 0o755 } else { 0o644 };
            fs::set_permissions(path, fs::Permissions::from_mode(mode))
                .unwrap_or_else(|error| panic!("chmod {}: {error}", path.display()));
        }
    }

    fn remove(&self, path: &Path) {
        let removed = match fs::symlink_metadata(path) {
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
            Err(error) => Err(error),
            Ok(found) if found.is_dir() => fs::remove_dir_all(path),
            Ok(_) => fs::remove_file(path),
        };
        removed.unwrap_or_else(|error| panic!("remove {}: {error}", path.display()));
    }

    fn get(&self, path: &Path) -> Option<What> {
        let found = fs::symlink_metadata(path).ok()?;
        let kind = found.file_type();
        let what = if kind.is_dir() {
            What::Directory
        } else if kind.is_symlink() {
            let target = fs::read_link(path).expect("a symlink can be read");
            What::Symlink(target.as_os_str().as_bytes().to_vec())
        } else if kind.is_file() {
            What::File {
                bytes: fs::read(path).expect("a file can be read"),
                executable: found.mode() & 0o100 != 0,
            }
        } else {
            assert!(kind.is_fifo() || kind.is_socket(), "{kind:?}");
            What::Special
        };
        Some(what)
    }

    fn names(&self, dir: &Path) -> Vec<OsString> {
        let mut names: Vec<OsString> = fs::read_dir(dir)
            .into_iter()
            .flatten()
            .map(|entry| entry.expect("a directory can be listed").file_name())
            .collect();
        names.sort();
        names
    }

    fn seal(&self, dir: &Path, sealed: bool) {
        set_sealed(dir, sealed).unwrap_or_else(|error| panic!("seal {}: {error}", dir.display()));
        let mut all = self.sealed.lock().expect("no test panics while it seals");
        match sealed {
            true => all.insert(dir.to_owned()),
            false => all.remove(dir),
        };
    }

    fn stamp(&self, path: &Path) -> Option<(u64, i128)> {
        let found = fs::symlink_metadata(path).ok()?;
        let time = i128::from(found.mtime()) * 1_000_000_000 + i128::from(found.mtime_nsec());
        Some((found.ino(), time))
    }
}
