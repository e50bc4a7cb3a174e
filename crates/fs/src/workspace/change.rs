//! What differs between a root and a tree, and the changes that make it
//! vanish: removals, directories, files by temporary file and rename, modes.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use sandbar_domain::tree::Tree;
use sandbar_domain::{Code, Entry, Hash, Kind, RelPath};
use sandbar_ports::progress::{Progress, Stage};
use sandbar_ports::{PortError, PortResult};

use super::remove::remove_tree;
use super::writing::Writer;
use crate::objects::{ObjectStore, corrupt, read_tree};
use crate::scan::{Assembled, threads};
use crate::sys::{self, Dir, Errno, at, fail};

/// The directory in a sandbox directory that new files come from.
const TEMPORARY: &str = "t";

/// The changes that turn what a scan found into a tree.
#[derive(Debug, Default)]
pub(crate) struct Differences {
    remove: Vec<RelPath>,
    remove_dirs: Vec<RelPath>,
    make_dirs: Vec<RelPath>,
    write: Vec<(RelPath, Entry)>,
    set_mode: Vec<(RelPath, Entry)>,
}

/// What was done.
#[derive(Debug, Default)]
pub(crate) struct Done {
    pub(crate) written: u64,
    pub(crate) removed: u64,
    /// Directories that stayed because something ignored lies in them.
    pub(crate) kept: Vec<RelPath>,
}

/// What is at one name of a scanned directory.
#[derive(Clone, Copy)]
enum Now {
    Leaf(Entry),
    Dir(usize, Hash),
}

impl Differences {
    /// Compares a scan with a tree. Directories in `kept` are known to stay.
    /// Errors: `illegal_state` when ignored files lie where a file must go.
    pub(crate) fn between(
        store: &ObjectStore,
        now: &Assembled,
        tree: Hash,
        kept: &BTreeSet<RelPath>,
    ) -> PortResult<Self> {
        let mut all = Self::default();
        let mut open: Vec<(Option<RelPath>, Option<usize>, Option<Hash>)> =
            vec![(None, Some(0), Some(tree))];
        while let Some((dir, node, wanted)) = open.pop() {
            if let (Some(node), Some(wanted)) = (node, wanted)
                && now.hashes[node] == Some(wanted)
            {
                continue;
            }
            let wanted = match wanted {
                Some(hash) => read_tree(store, hash)?,
                None => Tree::default(),
            };
            let current = names_of(now, node);
            for (name, have, want) in side_by_side(&current, &wanted) {
                let path = RelPath::child(dir.as_ref(), name)
                    .map_err(|error| corrupt(tree, &error.to_string()))?;
                all.compare(now, path, have, want, kept, &mut open)?;
            }
        }
        all.remove_dirs.sort_unstable_by(|a, b| b.cmp(a));
        all.make_dirs.sort_unstable();
        all.write.sort_unstable_by(|a, b| a.0.cmp(&b.0));
        Ok(all)
    }

    fn compare(
        &mut self,
        now: &Assembled,
        path: RelPath,
        have: Option<Now>,
        want: Option<Entry>,
        kept: &BTreeSet<RelPath>,
        open: &mut Vec<(Option<RelPath>, Option<usize>, Option<Hash>)>,
    ) -> PortResult<()> {
        let want_dir = want.filter(|entry| entry.kind == Kind::Directory);
        match (have, want) {
            (Some(Now::Dir(node, hash)), _) if want_dir.is_some() => {
                let wanted = want_dir.map(|entry| entry.hash);
                if wanted != Some(hash) {
                    open.push((Some(path), Some(node), wanted));
                }
            }
            (Some(Now::Dir(node, _)), want) => {
                if !(want.is_none() && kept.contains(&path)) {
                    self.remove_dirs.push(path.clone());
                }
                if let Some(entry) = want {
                    if holds_ignored(now, &path) {
                        return Err(in_the_way(&path));
                    }
                    self.write.push((path.clone(), entry));
                }
                open.push((Some(path), Some(node), None));
            }
            (leaf, Some(entry)) if entry.kind == Kind::Directory => {
                if leaf.is_some() {
                    self.remove.push(path.clone());
                }
                self.make_dirs.push(path.clone());
                open.push((Some(path), None, Some(entry.hash)));
            }
            (Some(Now::Leaf(have)), Some(want)) if have == want => {}
            (Some(Now::Leaf(have)), Some(want))
                if have.kind.is_file() && want.kind.is_file() && have.hash == want.hash =>
            {
                self.set_mode.push((path, want));
            }
            (_, Some(want)) => self.write.push((path, want)),
            (Some(Now::Leaf(_)), None) => self.remove.push(path),
            (None, None) => {}
        }
        Ok(())
    }

    /// Says whether there is nothing to do.
    pub(crate) fn is_empty(&self) -> bool {
        self.remove.is_empty()
            && self.remove_dirs.is_empty()
            && self.make_dirs.is_empty()
            && self.write.is_empty()
            && self.set_mode.is_empty()
    }

    /// Checks, before the first change, that all content is there.
    pub(crate) fn check(&self, store: &ObjectStore) -> PortResult<()> {
        for (path, entry) in self.write.iter().chain(&self.set_mode) {
            if !store.contains(&entry.hash) {
                // Another process may have stored it since.
                store.read(entry.hash).map_err(|error| {
                    PortError::new(error.code, format!("restore {path}: {error}"))
                        .with_subjects([entry.hash.to_string()])
                })?;
            }
        }
        Ok(())
    }

    /// Makes the changes.
    pub(crate) fn perform(
        &self,
        store: &ObjectStore,
        root: &Dir,
        temporary: &Temporary<'_>,
        progress: &dyn Progress,
    ) -> PortResult<Done> {
        let mut done = Done::default();
        let mut writer = Writer::new(store, root, &temporary.dir, 0);
        for path in &self.remove {
            done.removed += u64::from(writer.remove(path)?);
        }
        for path in &self.remove_dirs {
            if writer.remove_dir(path)? {
                done.removed += 1;
            } else {
                done.kept.push(path.clone());
            }
        }
        for path in &self.make_dirs {
            writer.make_dir(path)?;
        }
        drop(writer);
        self.write_all(store, root, temporary, progress)?;
        let mut writer = Writer::new(store, root, &temporary.dir, usize::MAX);
        for (path, entry) in &self.set_mode {
            writer.set_mode(path, *entry)?;
        }
        done.written = (self.make_dirs.len() + self.write.len() + self.set_mode.len()) as u64;
        Ok(done)
    }

    fn write_all(
        &self,
        store: &ObjectStore,
        root: &Dir,
        temporary: &Temporary<'_>,
        progress: &dyn Progress,
    ) -> PortResult<()> {
        /// Files a thread takes at once: neighbours share a directory.
        const SHARE: usize = 64;
        let next = AtomicUsize::new(0);
        let error = Mutex::new(None);
        let total = self.write.len();
        let work = |number: usize| {
            let mut writer = Writer::new(store, root, &temporary.dir, number);
            loop {
                let start = next.fetch_add(SHARE, Ordering::Relaxed);
                if start >= total {
                    return;
                }
                let end = total.min(start + SHARE);
                for (path, entry) in &self.write[start..end] {
                    if let Err(failed) = writer.write(path, *entry) {
                        next.store(total, Ordering::Relaxed);
                        error
                            .lock()
                            .unwrap_or_else(PoisonError::into_inner)
                            .get_or_insert(failed);
                        return;
                    }
                }
                progress.update(Stage::Restore, end as u64, total as u64);
            }
        };
        let extra = threads().min(total.div_ceil(SHARE)).saturating_sub(1);
        std::thread::scope(|scope| {
            for number in 0..extra {
                scope.spawn(move || work(number + 1));
            }
            work(0);
        });
        match error.into_inner().unwrap_or_else(PoisonError::into_inner) {
            Some(error) => Err(error),
            None => Ok(()),
        }
    }
}

fn names_of(now: &Assembled, node: Option<usize>) -> Vec<(&str, Now)> {
    let Some(node) = node.map(|number| &now.nodes[number]) else {
        return Vec::new();
    };
    let leaves = node
        .leaves
        .iter()
        .map(|leaf| (&*leaf.name, Now::Leaf(leaf.entry)));
    let dirs = node.children.iter().filter_map(|(name, child)| {
        now.hashes[*child].map(|hash| (&**name, Now::Dir(*child, hash)))
    });
    let mut names: Vec<_> = leaves.chain(dirs).collect();
    names.sort_unstable_by(|a, b| a.0.as_bytes().cmp(b.0.as_bytes()));
    names
}

fn side_by_side<'a>(
    now: &'a [(&'a str, Now)],
    wanted: &'a Tree,
) -> Vec<(&'a str, Option<Now>, Option<Entry>)> {
    let mut left = now.iter().peekable();
    let mut right = wanted.entries().iter().peekable();
    let mut rows = Vec::new();
    loop {
        let order = match (left.peek(), right.peek()) {
            (None, None) => return rows,
            (Some(_), None) => std::cmp::Ordering::Less,
            (None, Some(_)) => std::cmp::Ordering::Greater,
            (Some((a, _)), Some((b, _))) => a.as_bytes().cmp(b.as_bytes()),
        };
        let have = if order.is_le() { left.next() } else { None };
        let want = if order.is_ge() { right.next() } else { None };
        let name = have
            .map(|(name, _)| *name)
            .or(want.map(|(name, _)| &**name));
        if let Some(name) = name {
            rows.push((
                name,
                have.map(|(_, now)| *now),
                want.map(|(_, entry)| *entry),
            ));
        }
    }
}

fn holds_ignored(now: &Assembled, dir: &RelPath) -> bool {
    now.nodes.iter().any(|node| {
        !node.ignored.is_empty() && node.path.as_ref().is_some_and(|path| path.is_within(dir))
    })
}

pub(super) fn in_the_way(path: &RelPath) -> PortError {
    PortError::new(
        Code::IllegalState,
        format!("restore {path}: a directory with ignored files is in the way"),
    )
    .with_subjects([path.as_str()])
    .with_hint("move the directory away, then try again")
}

/// The directory that new files come from, which is nobody's.
#[derive(Debug)]
pub(crate) struct Temporary<'p> {
    place: &'p Dir,
    path: PathBuf,
    pub(crate) dir: Dir,
}

impl<'p> Temporary<'p> {
    /// Removes what a killed restore left.
    pub(crate) fn sweep(place: &Dir, shown: &Path) -> PortResult<()> {
        remove_tree(place, TEMPORARY.as_bytes(), &shown.join(TEMPORARY))
    }

    /// Makes it anew.
    pub(crate) fn make(place: &'p Dir, shown: &Path) -> PortResult<Self> {
        Self::sweep(place, shown)?;
        let path = shown.join(TEMPORARY);
        match sys::make_dir(place, TEMPORARY, 0o700) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(errno) => return Err(fail("make", path.display(), errno)),
        }
        let dir = place.child(TEMPORARY).map_err(at("open", path.display()))?;
        Ok(Self { place, path, dir })
    }

    /// Removes it; what stays is swept by the next restore.
    pub(crate) fn remove(self) {
        let _ = remove_tree(self.place, TEMPORARY.as_bytes(), &self.path);
    }
}
