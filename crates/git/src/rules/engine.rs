//! The judgement itself. What is known of a directory is worked out once,
//! from its parent, and kept.

use std::collections::{BTreeMap, HashMap};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use sandbar_ports::rules::Verdict;

use super::patterns::List;
use super::realm::Realm;
use super::tracked::Standing;
use crate::open::Scope;
use crate::reading;

/// Rules of one working tree.
#[derive(Debug)]
pub(crate) struct Engine {
    root: Arc<Realm>,
    includes: List,
    track_ignored: bool,
    /// Where to look for nested repositories; none for saved rules.
    probe: Option<(PathBuf, Scope)>,
    seen: RwLock<Seen>,
}

#[derive(Debug, Default)]
struct Seen {
    /// Ignore files by directory; the root is the empty text.
    files: BTreeMap<String, Arc<List>>,
    /// Repositories in the tree by directory; none where it cannot be read.
    realms: BTreeMap<String, Option<Arc<Realm>>>,
    folders: HashMap<Box<str>, Arc<Folder>>,
}

/// What is known of one directory.
#[derive(Debug, Clone)]
struct Folder {
    ignored: bool,
    included: bool,
    /// Everything beneath is carried: a `.git`, a repository that cannot be
    /// read.
    whole: bool,
    realm: Arc<Realm>,
    range: Range<usize>,
    chain: Option<Arc<Link>>,
}

/// Ignore files from the deepest up.
#[derive(Debug)]
struct Link {
    list: Arc<List>,
    /// Bytes of a path before the part that the list judges.
    cut: usize,
    up: Option<Arc<Link>>,
}

impl Engine {
    /// Makes rules that know no directory yet.
    pub(crate) fn new(root: Realm, includes: List, track_ignored: bool) -> Self {
        let engine = Self {
            root: Arc::new(root),
            includes,
            track_ignored,
            probe: None,
            seen: RwLock::default(),
        };
        let root = Arc::clone(&engine.root);
        engine.write().take_absent(&root);
        engine
    }

    /// Adds the directory in which nested repositories are looked for.
    pub(crate) fn probing(mut self, root: &Path, scope: Scope) -> Self {
        self.probe = Some((root.to_owned(), scope));
        self
    }

    /// Adds what a saved form knows.
    pub(super) fn recall(&self, realm: Option<Realm>, dir: &str) {
        let realm = realm.map(Arc::new);
        let mut seen = self.write();
        if let Some(realm) = &realm {
            seen.take_absent(realm);
        }
        seen.realms.insert(dir.to_owned(), realm);
    }

    pub(super) fn root(&self) -> &Realm {
        &self.root
    }

    pub(super) fn includes(&self) -> &List {
        &self.includes
    }

    /// Says whether ignored files are carried too.
    pub(crate) fn track_ignored(&self) -> bool {
        self.track_ignored
    }

    pub(super) fn files(&self) -> Vec<(String, Arc<List>)> {
        let seen = self.read();
        seen.files
            .iter()
            .map(|(dir, list)| (dir.clone(), Arc::clone(list)))
            .collect()
    }

    pub(super) fn realms(&self) -> Vec<(String, Option<Arc<Realm>>)> {
        let seen = self.read();
        seen.realms
            .iter()
            .map(|(dir, realm)| (dir.clone(), realm.clone()))
            .collect()
    }

    fn read(&self) -> RwLockReadGuard<'_, Seen> {
        self.seen.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, Seen> {
        self.seen.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes the ignore file of a directory.
    pub(crate) fn enter(&self, dir: &str, name: &str, content: &[u8]) {
        if name != ".gitignore" {
            return;
        }
        let mut seen = self.write();
        if seen
            .files
            .get(dir)
            .is_some_and(|list| list.raw() == content)
        {
            return;
        }
        seen.files
            .insert(dir.to_owned(), Arc::new(List::parse(content)));
        // What was worked out beneath rests on the file before.
        if seen.folders.contains_key(dir) {
            seen.folders.clear();
        }
    }

    /// Says whether a path is in an index.
    pub(crate) fn is_tracked(&self, path: &str) -> bool {
        let folder = self.folder(parent(path));
        let relative = folder.realm.relative(path).as_bytes();
        let tracked = &folder.realm.tracked;
        let standing = |is_dir| tracked.standing(folder.range.clone(), relative, is_dir);
        standing(false) == Standing::File || standing(true) == Standing::Gitlink
    }

    /// Says whether an include pattern matches a path or a directory above it.
    pub(crate) fn is_included(&self, path: &str) -> bool {
        let case = self.root.case();
        let above = path.match_indices('/').map(|(at, _)| (&path[..at], true));
        above
            .chain([(path, false), (path, true)])
            .any(|(path, is_dir)| self.includes.judge(path, is_dir, case) == Some(true))
    }

    /// Judges one path.
    pub(crate) fn verdict(&self, path: &str, is_dir: bool) -> Verdict {
        if !path.contains('/') && matches!(path, ".git" | ".sandbar") {
            return Verdict::Hide;
        }
        if self.track_ignored {
            return Verdict::Carry;
        }
        let folder = self.folder(parent(path));
        if folder.whole || folder.included {
            return Verdict::Carry;
        }
        let relative = folder.realm.relative(path);
        let standing =
            folder
                .realm
                .tracked
                .standing(folder.range.clone(), relative.as_bytes(), is_dir);
        if standing != Standing::Unknown {
            return Verdict::Carry;
        }
        if !folder.ignored && (name(path) == ".git" || !folder.judge(path, is_dir)) {
            return Verdict::Carry;
        }
        if self.includes.is_empty() {
            return Verdict::Ignore;
        }
        let case = self.root.case();
        match self.includes.judge(path, is_dir, case) {
            Some(true) => Verdict::Carry,
            _ if is_dir && self.includes.reaches_into(path, case) => Verdict::Look,
            _ => Verdict::Ignore,
        }
    }

    fn folder(&self, dir: &str) -> Arc<Folder> {
        if let Some(folder) = self.read().folders.get(dir) {
            return Arc::clone(folder);
        }
        let folder = Arc::new(if dir.is_empty() {
            self.top(&self.root, "")
        } else {
            self.below(&self.folder(parent(dir)), dir)
        });
        let mut seen = self.write();
        Arc::clone(seen.folders.entry(dir.into()).or_insert(folder))
    }

    /// The top of a repository, to which nothing above applies.
    fn top(&self, realm: &Arc<Realm>, dir: &str) -> Folder {
        let cut = if dir.is_empty() { 0 } else { dir.len() + 1 };
        let mut chain = None;
        for list in [&realm.user, &realm.exclude] {
            chain = link(Arc::new(list.clone()), cut, chain);
        }
        if let Some(list) = self.read().files.get(dir) {
            chain = link(Arc::clone(list), cut, chain);
        }
        Folder {
            ignored: false,
            included: false,
            whole: false,
            realm: Arc::clone(realm),
            range: realm.tracked.all(),
            chain,
        }
    }

    fn below(&self, up: &Folder, dir: &str) -> Folder {
        let included =
            up.included || self.includes.judge(dir, true, self.root.case()) == Some(true);
        let relative = up.realm.relative(dir);
        let mut folder = Folder {
            included: false,
            range: 0..0,
            ..up.clone()
        };
        if up.whole || name(dir) == ".git" && !up.ignored {
            folder.whole = true;
            return folder;
        }
        let standing = up
            .realm
            .tracked
            .standing(up.range.clone(), relative.as_bytes(), true);
        folder.ignored = up.ignored || up.judge(dir, true);
        // A tracked submodule, or a repository that happens to lie here.
        if standing == Standing::Gitlink || standing == Standing::Unknown && !folder.ignored {
            match self.realm(dir) {
                Some(Some(realm)) => return self.top(&realm, dir),
                Some(None) => {
                    folder.whole = true;
                    return folder;
                }
                None if standing == Standing::Gitlink => {
                    folder.ignored = false;
                    folder.chain = None;
                }
                None => {}
            }
        }
        if standing == Standing::Leads {
            folder.range = up
                .realm
                .tracked
                .beneath(up.range.clone(), relative.as_bytes());
        }
        folder.included = included && folder.ignored;
        // Below an ignored directory, git reads no ignore file.
        if !folder.ignored
            && let Some(list) = self.read().files.get(dir)
        {
            folder.chain = link(Arc::clone(list), dir.len() + 1, folder.chain);
        }
        folder
    }

    /// Finds the repository whose working tree is `dir`, if it is one.
    fn realm(&self, dir: &str) -> Option<Option<Arc<Realm>>> {
        if let Some(known) = self.read().realms.get(dir) {
            return Some(known.clone());
        }
        let (root, scope) = self.probe.as_ref()?;
        let workdir = root.join(dir);
        if !reading::present(&workdir.join(".git")) {
            return None;
        }
        let realm = Realm::load(&workdir, dir, *scope).ok().map(Arc::new);
        let mut seen = self.write();
        if let Some(realm) = &realm {
            seen.take_absent(realm);
        }
        Some(seen.realms.entry(dir.to_owned()).or_insert(realm).clone())
    }
}

impl Seen {
    /// Takes ignore files that are in the index only; those on disk win.
    fn take_absent(&mut self, realm: &Realm) {
        for (dir, content) in &realm.absent {
            let dir = match (&*realm.prefix, &**dir) {
                ("", dir) => dir.to_owned(),
                (prefix, "") => prefix.to_owned(),
                (prefix, dir) => format!("{prefix}/{dir}"),
            };
            self.files
                .entry(dir)
                .or_insert_with(|| Arc::new(List::parse(content)));
        }
    }
}

impl Folder {
    /// Says whether the ignore files ignore `path`, a child of this directory.
    fn judge(&self, path: &str, is_dir: bool) -> bool {
        let case = self.realm.case();
        let mut next = &self.chain;
        while let Some(link) = next {
            if let Some(ignored) = link.list.judge(&path[link.cut..], is_dir, case) {
                return ignored;
            }
            next = &link.up;
        }
        false
    }
}

fn link(list: Arc<List>, cut: usize, up: Option<Arc<Link>>) -> Option<Arc<Link>> {
    if list.is_empty() {
        return up;
    }
    Some(Arc::new(Link { list, cut, up }))
}

fn parent(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |(parent, _)| parent)
}

fn name(path: &str) -> &str {
    path.rsplit_once('/').map_or(path, |(_, name)| name)
}
