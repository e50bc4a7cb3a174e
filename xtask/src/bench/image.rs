//! A fresh ext4 in a file, mounted for one run: the machine's own file system
//! has a past that would be measured too.
#![allow(
    clippy::disallowed_methods,
    reason = "xtask is no product: it makes a file system"
)]

use std::path::{Path, PathBuf};

use crate::process::{Outcome, Step};

/// A mounted image; unmounted and removed when dropped.
pub(super) struct Image {
    dir: PathBuf,
}

impl Image {
    /// Makes and mounts one below `place`.
    pub(super) fn make(place: &Path) -> Outcome<Self> {
        let dir = place.join(format!("sandbar-bench-{}", std::process::id()));
        std::fs::create_dir_all(dir.join("mnt"))
            .map_err(|why| format!("make {}: {why}", dir.display()))?;
        let image = Self { dir };
        let file = image.dir.join("image");
        Step::words("truncate --size=20G").arg(&file).run()?;
        // Inode tables written now, or the kernel would do it meanwhile.
        Step::words("mkfs.ext4 -q -N 1500000")
            .args(["-E", "nodiscard,lazy_itable_init=0,lazy_journal_init=0"])
            .arg(&file)
            .run()?;
        Step::words("mount -o loop,nodiscard")
            .arg(&file)
            .arg(image.root())
            .run()?;
        Ok(image)
    }

    /// Returns where it is mounted.
    pub(super) fn root(&self) -> PathBuf {
        self.dir.join("mnt")
    }
}

impl Drop for Image {
    fn drop(&mut self) {
        let unmounted = Step::words("umount").arg(self.root()).read();
        match unmounted {
            Ok(_) => drop(std::fs::remove_dir_all(&self.dir)),
            Err(why) => eprintln!("{} stays: {why}", self.dir.display()),
        }
    }
}
