//! Small file systems of their own, mounted for one test and gone when
//! dropped. The tests run as root.

use std::path::{Path, PathBuf};

use crate::foreign::{command, text};

/// Something mounted.
pub struct Mount(PathBuf);

impl Mount {
    /// Mounts a tmpfs at `dir`.
    pub fn at(dir: &Path, options: &str) -> Self {
        Self::line(&["-t", "tmpfs", "-o", options, "tmpfs"], dir)
    }

    /// Mounts what `mount` is told to at `dir`.
    pub fn line(arguments: &[&str], dir: &Path) -> Self {
        text(command(Path::new("/"), "mount").args(arguments).arg(dir));
        Self(dir.to_owned())
    }

    /// Makes an image of a file system in `scratch` with `mkfs` and mounts it
    /// at `dir`.
    pub fn image(scratch: &Path, dir: &Path, mkfs: &[&str]) -> Self {
        let image = scratch.join("image");
        text(
            command(scratch, "truncate")
                .args(["--size=64M"])
                .arg(&image),
        );
        let (program, options) = mkfs.split_first().expect("a program");
        text(command(scratch, program).args(options).arg(&image));
        let image = image.to_str().expect("scratch is UTF-8");
        Self::line(&["-o", "loop", image], dir)
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        let _ = command(Path::new("/"), "umount")
            .arg("--lazy")
            .arg(&self.0)
            .status();
    }
}
