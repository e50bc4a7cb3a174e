//! Copies commits with all that they need from one object database to
//! another, blobs before trees before commits, so that what is there is whole.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use gix::ObjectId;
use gix::objs::tree::EntryKind;
use rustix::fs::{Mode, OFlags};
use sandbar_domain::Code;
use sandbar_ports::effect::effect;
use sandbar_ports::{PortError, PortResult};

use crate::open::failed;

/// More new files than these are made durable by one call for all of them.
const FEW: usize = 64;

/// Copies `commits`, oldest first, into a database in memory.
pub(super) fn commits(
    from: &gix::Repository,
    to: &gix::Repository,
    commits: &[ObjectId],
) -> PortResult<()> {
    let mut copy = Copy {
        from,
        to,
        effects: false,
        seen: HashSet::new(),
        written: Vec::new(),
    };
    commits.iter().try_for_each(|commit| copy.commit(*commit))
}

/// Copies `commits` to disk, and returns when they would survive a crash.
pub(super) fn durable(
    from: &gix::Repository,
    to: &gix::Repository,
    commits: &[ObjectId],
) -> PortResult<()> {
    let mut copy = Copy {
        from,
        to,
        effects: true,
        seen: HashSet::new(),
        written: Vec::new(),
    };
    commits.iter().try_for_each(|commit| copy.commit(*commit))?;
    let objects = to.objects.store_ref().path().to_owned();
    let mut paths: Vec<PathBuf> = Vec::new();
    for id in &copy.written {
        let hex = id.to_string();
        paths.push(objects.join(&hex[..2]).join(&hex[2..]));
        paths.push(objects.join(&hex[..2]));
    }
    if paths.is_empty() {
        return Ok(());
    }
    paths.push(objects.clone());
    paths.sort();
    paths.dedup();
    if paths.len() > FEW {
        let opened = open(&objects)?;
        return effect("git-sync", || rustix::fs::syncfs(&opened))
            .map_err(|errno| unsynced(&objects, errno));
    }
    paths.iter().try_for_each(|path| sync(path))
}

/// Makes one file or directory durable.
pub(crate) fn sync(path: &Path) -> PortResult<()> {
    let opened = open(path)?;
    effect("git-sync", || rustix::fs::fsync(&opened)).map_err(|errno| unsynced(path, errno))
}

fn open(path: &Path) -> PortResult<rustix::fd::OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    rustix::fs::open(path, flags, Mode::empty()).map_err(|errno| unsynced(path, errno))
}

fn unsynced(path: &Path, errno: rustix::io::Errno) -> PortError {
    PortError::new(
        Code::Io,
        format!("make {} durable: {errno}", path.display()),
    )
}

struct Copy<'a> {
    from: &'a gix::Repository,
    to: &'a gix::Repository,
    effects: bool,
    seen: HashSet<ObjectId>,
    written: Vec<ObjectId>,
}

impl Copy<'_> {
    fn is_needed(&mut self, id: ObjectId) -> bool {
        self.seen.insert(id) && !self.to.objects.exists_without_refresh(&id)
    }

    fn commit(&mut self, id: ObjectId) -> PortResult<()> {
        if !self.is_needed(id) {
            return Ok(());
        }
        let tree = super::tree_of(self.from, id)?;
        self.tree(tree)?;
        self.object(id)
    }

    fn tree(&mut self, id: ObjectId) -> PortResult<()> {
        if !self.is_needed(id) {
            return Ok(());
        }
        let what = || format!("read tree {id}");
        let tree = self.from.find_tree(id).map_err(failed(what()))?;
        for entry in tree.iter() {
            let entry = entry.map_err(failed(what()))?;
            let child = entry.object_id();
            match entry.mode().kind() {
                EntryKind::Tree => self.tree(child)?,
                // A commit of a submodule is in a repository of its own.
                EntryKind::Commit => {}
                _ if self.is_needed(child) => self.object(child)?,
                _ => {}
            }
        }
        self.object(id)
    }

    fn object(&mut self, id: ObjectId) -> PortResult<()> {
        use gix::objs::Write as _;

        let object = self
            .from
            .find_object(id)
            .map_err(failed(format!("read object {id}")))?;
        let write = || {
            let written = self.to.objects.write_buf(object.kind, &object.data);
            written.map_err(failed(format!("write object {id}")))
        };
        if self.effects {
            effect("git-object", write)?;
        } else {
            write()?;
        }
        self.written.push(id);
        Ok(())
    }
}
