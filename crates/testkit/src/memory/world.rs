//! A disk in memory as a world of the contract suites.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::disk::{MemDisk, What};
use super::{MemObjects, MemTargets, MemWorkspaces};
use crate::contract::files::{Subject, World};

/// A disk with `/w/real` and `/w/data`.
#[derive(Debug, Clone)]
pub struct MemWorld(pub MemDisk);

impl MemWorld {
    /// Makes one, with the in-memory adapters on it.
    pub fn subject() -> Subject {
        let disk = MemDisk::new();
        let world = Self(disk.clone());
        world.put(&world.root(), What::Directory);
        let objects = MemObjects::new();
        let workspaces = MemWorkspaces::new(&disk, &objects, &world.data())
            .expect("a data directory can be made");
        Subject {
            targets: Arc::new(MemTargets::new(&disk, &objects, &world.data())),
            workspaces: Arc::new(workspaces),
            contents: Arc::new(objects.clone()),
            objects: Arc::new(objects),
            world: Arc::new(world),
        }
    }
}

impl World for MemWorld {
    fn base(&self) -> PathBuf {
        "/w".into()
    }

    fn put(&self, path: &Path, what: What) {
        let mut disk = self.0.hold();
        if what == What::Directory && disk.is_dir(path) {
            return;
        }
        // A file or symlink above it makes way.
        for above in path.ancestors().skip(1) {
            if disk.get(above).is_some() && !disk.is_dir(above) {
                disk.remove(above).expect("the disk is writable");
            }
        }
        disk.put(path, what).expect("the disk is writable");
    }

    fn remove(&self, path: &Path) {
        self.0.hold().remove(path).expect("the disk is writable");
    }

    fn get(&self, path: &Path) -> Option<What> {
        self.0.hold().get(path).map(|node| node.what.clone())
    }

    fn names(&self, dir: &Path) -> Vec<OsString> {
        self.0.hold().names(dir)
    }

    fn seal(&self, dir: &Path, sealed: bool) {
        self.0.hold().set_read_only(dir, sealed);
    }

    fn stamp(&self, path: &Path) -> Option<(u64, i128)> {
        let disk = self.0.hold();
        let node = disk.get(path)?;
        Some((node.inode, node.mtime.into()))
    }
}
