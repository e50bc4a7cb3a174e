//! The world that the suites about files act in: a place with a real root and
//! a data directory, on a disk in memory or on a real one.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use sandbar_domain::resource::Root;
use sandbar_domain::tree::Tree;
use sandbar_domain::{Entry, Hash, Kind, RelPath};
use sandbar_ports::git::Contents;
use sandbar_ports::objects::Objects;
use sandbar_ports::target::Targets;
use sandbar_ports::workspace::Workspaces;

use super::done;
pub use crate::memory::disk::What;

/// Somebody else's hands: changes and looks that go past the ports.
pub trait World: Send + Sync {
    /// Returns an absolute, resolved directory that exists.
    fn base(&self) -> PathBuf;

    /// Puts something in the place of whatever is there; what is missing above
    /// is made. A file that stays a file is written in place.
    fn put(&self, path: &Path, what: What);

    /// Takes away whatever is there, with all beneath.
    fn remove(&self, path: &Path);

    /// Returns what is there, never through a symlink.
    fn get(&self, path: &Path) -> Option<What>;

    /// Returns the names in a directory, sorted by bytes; none where there is
    /// no directory.
    fn names(&self, dir: &Path) -> Vec<OsString>;

    /// Returns what changes when a node is replaced or its content written:
    /// inode and time of change.
    fn stamp(&self, path: &Path) -> Option<(u64, i128)>;

    /// Seals a directory: no name in it can be added, changed or removed; or
    /// opens it again. What is beneath may be sealed with it.
    fn seal(&self, dir: &Path, sealed: bool);

    /// Returns the real root, which exists.
    fn root(&self) -> PathBuf {
        self.base().join("real")
    }

    /// Returns the data directory of the adapters.
    fn data(&self) -> PathBuf {
        self.base().join("data")
    }
}

/// The adapters to judge, on one world.
#[derive(Clone)]
pub struct Subject {
    /// The world.
    pub world: Arc<dyn World>,
    /// The content store.
    pub objects: Arc<dyn Objects>,
    /// The same, for reading at once.
    pub contents: Arc<dyn Contents>,
    /// Sandbox roots.
    pub workspaces: Arc<dyn Workspaces>,
    /// Real roots.
    pub targets: Arc<dyn Targets>,
}

impl Subject {
    /// Returns a path below the real root.
    pub(super) fn at(&self, rel: &str) -> PathBuf {
        self.world.root().join(rel)
    }

    /// Writes a file below the real root.
    pub(super) fn write(&self, rel: &str, bytes: &[u8]) {
        self.world.put(&self.at(rel), file(bytes));
    }

    /// Fills the real root with one of everything that is carried.
    pub(super) fn fill(&self) {
        self.write("a.txt", b"hello\n");
        self.write("empty", b"");
        self.write("dir/sub/deep.rs", b"fn main() {}\n");
        self.world
            .put(&self.at("dir/run.sh"), executable(b"#!/bin/sh\n"));
        self.world.put(&self.at("hollow"), What::Directory);
        self.world.put(&self.at("link"), symlink("a.txt"));
        self.world
            .put(&self.at("dir/dangling"), symlink("/nowhere/at all"));
        self.write("ünï cödé/名前 '\"\n", b"odd name");
        self.write("large.bin", &vec![7; 300 * 1024]);
    }

    /// Resolves the real root.
    pub(super) async fn root(&self) -> Root {
        done(
            self.workspaces.identify(self.world.root()).await,
            "resolving the real root",
        )
    }

    /// Returns everything at and beneath a path, with content.
    pub(super) fn snapshot(&self, path: &Path) -> Vec<(PathBuf, What)> {
        let mut all = Vec::new();
        let mut open = vec![path.to_owned()];
        while let Some(path) = open.pop() {
            let Some(what) = self.world.get(&path) else {
                continue;
            };
            if what == What::Directory {
                open.extend(self.world.names(&path).iter().map(|name| path.join(name)));
            }
            all.push((path, what));
        }
        all.sort_by(|a, b| a.0.cmp(&b.0));
        all
    }

    /// Returns the same relative to the path.
    pub(super) fn content(&self, path: &Path) -> Vec<(PathBuf, What)> {
        let all = self.snapshot(path);
        let relative = |(at, what): (PathBuf, What)| {
            let rel = at.strip_prefix(path).expect("it lies beneath").to_owned();
            (rel, what)
        };
        all.into_iter().map(relative).collect()
    }

    /// Computes the directory object of what is at a path, independently of
    /// any adapter.
    pub(super) fn expected_tree(&self, dir: &Path) -> Hash {
        let mut entries = Vec::new();
        for name in self.world.names(dir) {
            let path = dir.join(&name);
            let what = self.world.get(&path).expect("it was listed");
            let entry = match what {
                What::Directory => Entry::new(Kind::Directory, self.expected_tree(&path)),
                what => what.entry().expect("only what can be carried"),
            };
            entries.push((name.to_str().expect("UTF-8").into(), entry));
        }
        Hash::of(&Tree::new(entries).expect("valid names").encode())
    }
}

/// A file.
pub(super) fn file(bytes: &[u8]) -> What {
    What::of(Kind::File, bytes.to_vec())
}

/// An executable file.
pub(super) fn executable(bytes: &[u8]) -> What {
    What::of(Kind::Executable, bytes.to_vec())
}

/// A symlink.
pub(super) fn symlink(target: &str) -> What {
    What::Symlink(target.as_bytes().to_vec())
}

/// A path of a root.
pub(super) fn rel(text: &str) -> RelPath {
    RelPath::new(text).expect("a valid path")
}

/// The entry of a file.
pub(super) fn entry(kind: Kind, bytes: &[u8]) -> Entry {
    Entry::new(kind, Hash::of(bytes))
}
