//! The data directory: its layout, and the `format` file that is read before
//! anything else. It must never be made on a network file system, nor opened
//! when a newer version wrote it.

use std::path::{Path, PathBuf};

use rustix::io::Errno;
use sandbar_domain::Code;
use sandbar_ports::{PortError, PortResult};

use crate::files;
use crate::sys::{self, Dir, at, fail};

/// The version of the layout that this program reads and writes.
const VERSION: u32 = 1;
const WORD: &str = "sandbar-data ";

/// An open data directory.
#[derive(Debug)]
pub struct DataDir {
    path: PathBuf,
    dir: Dir,
    writable: bool,
}

impl DataDir {
    /// Opens the data directory, making it (mode 0700) where it is missing.
    /// Errors: `read_only` or `permission_denied` where nothing can be
    /// written, `network_file_system`, `newer_format`, `corrupt_store` for a
    /// `format` file that says nothing.
    pub fn open(path: &Path) -> PortResult<Self> {
        refuse_network(&existing_part(path))?;
        files::make_dirs(path, 0o700)?;
        let data = Self::attach(path)?;
        sys::may_write_dir(&data.dir).map_err(at("write", data.path.display()))?;
        let is_new = data.version()?.is_none();
        let mut made = is_new;
        for name in [
            "objects",
            "objects/packs",
            "objects/loose",
            "objects/tmp",
            "s",
            "checkpoints",
        ] {
            match sys::make_dir(&data.dir, name, 0o700) {
                Ok(()) => made = true,
                Err(Errno::EXIST) => {}
                Err(errno) => return Err(fail("make", data.path.join(name).display(), errno)),
            }
        }
        if made {
            // What is stored later is only as durable as the way to it.
            for dir in [&data.sub("objects")?, &data.dir] {
                sys::sync_dir(dir).map_err(at("make durable", data.path.display()))?;
            }
        }
        if is_new {
            // The first writer of several wins; all write the same.
            files::write_atomic(
                &data.path.join("format"),
                format!("{WORD}{VERSION}\n").as_bytes(),
                0o600,
            )?;
        }
        Ok(data)
    }

    /// Opens a data directory that exists, and writes nothing. Errors:
    /// `path_not_found` when there is none, and those of [`DataDir::open`].
    pub fn open_read_only(path: &Path) -> PortResult<Self> {
        let mut data = Self::attach(path)?;
        data.writable = false;
        refuse_network(&data.path)?;
        if data.version()?.is_none() {
            return Err(PortError::new(
                Code::PathNotFound,
                format!("open {}: not a data directory", path.display()),
            ));
        }
        Ok(data)
    }

    fn attach(path: &Path) -> PortResult<Self> {
        let path = files::canonicalize(path)?;
        let dir = sys::open_dir(&path).map_err(at("open", path.display()))?;
        Ok(Self {
            path,
            dir,
            writable: true,
        })
    }

    fn version(&self) -> PortResult<Option<u32>> {
        let path = self.path.join("format");
        let bytes = match files::read_small(&path, 1024) {
            Err(error) if error.code == Code::PathNotFound => return Ok(None),
            other => other?,
        };
        let version = std::str::from_utf8(&bytes)
            .ok()
            .and_then(|text| text.trim_end().strip_prefix(WORD))
            .and_then(|text| text.parse::<u32>().ok())
            .ok_or_else(|| {
                PortError::new(
                    Code::CorruptStore,
                    format!("read {}: not a format file", path.display()),
                )
            })?;
        if version > VERSION {
            return Err(PortError::new(
                Code::NewerFormat,
                format!(
                    "open {}: format {version} is newer than {VERSION}",
                    self.path.display()
                ),
            ));
        }
        Ok(Some(version))
    }

    /// Returns its resolved path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Refuses what would write, where it was opened read-only.
    pub(crate) fn check_writable(&self) -> PortResult<()> {
        if self.writable {
            return Ok(());
        }
        Err(PortError::new(
            Code::ReadOnly,
            format!("write to {}: it was opened read-only", self.path.display()),
        ))
    }

    /// Says whether it may be written.
    pub(crate) fn is_writable(&self) -> bool {
        self.writable
    }

    /// Returns the directory of the sandbox places.
    pub fn places(&self) -> PathBuf {
        self.path.join("s")
    }

    /// Opens a directory inside it.
    pub(crate) fn sub(&self, name: &str) -> PortResult<Dir> {
        let rel = sandbar_domain::RelPath::new(name).expect("names of the layout are valid");
        self.dir
            .beneath(Some(&rel), false)
            .map_err(at("open", self.path.join(name).display()))
    }
}

fn existing_part(path: &Path) -> PathBuf {
    let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    absolute
        .ancestors()
        .find(|part| files::is_dir(part))
        .unwrap_or(Path::new("/"))
        .to_owned()
}

fn refuse_network(path: &Path) -> PortResult<()> {
    let real = files::canonicalize(path)?;
    let dir = sys::open_dir(&real).map_err(at("open", real.display()))?;
    let volume = sys::volume_of(&dir).map_err(at("inspect", real.display()))?;
    match volume.network {
        None => Ok(()),
        Some(name) => Err(PortError::new(
            Code::NetworkFileSystem,
            format!("use {} for data: it is on {name}", path.display()),
        )),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::disallowed_methods, reason = "tests judge by plain files")]
    use super::*;

    #[test]
    fn layout_and_format_are_as_documented() {
        let temp = tempfile::tempdir().unwrap();
        let path = temp.path().join("a/b");
        assert_eq!(
            DataDir::open_read_only(&path).unwrap_err().code,
            Code::PathNotFound
        );
        DataDir::open(&path).unwrap();
        DataDir::open(&path).unwrap();
        let format = std::fs::read_to_string(path.join("format")).unwrap();
        assert_eq!(format, "sandbar-data 1\n");
        assert_eq!(
            files::list(&path).unwrap(),
            ["checkpoints", "format", "objects", "s"]
        );
        assert_eq!(
            files::list(&path.join("objects")).unwrap(),
            ["loose", "packs", "tmp"]
        );
        DataDir::open_read_only(&path).unwrap();
    }

    #[test]
    fn newer_and_broken_formats_are_refused_untouched() {
        let temp = tempfile::tempdir().unwrap();
        for (text, code) in [
            ("sandbar-data 2\n", Code::NewerFormat),
            ("", Code::CorruptStore),
            ("sandbar-data x\n", Code::CorruptStore),
            ("\u{fffd}", Code::CorruptStore),
        ] {
            std::fs::write(temp.path().join("format"), text).unwrap();
            assert_eq!(
                DataDir::open(temp.path()).unwrap_err().code,
                code,
                "{text:?}"
            );
            assert_eq!(DataDir::open_read_only(temp.path()).unwrap_err().code, code);
            assert_eq!(files::list(temp.path()).unwrap(), ["format"]);
        }
    }
}
