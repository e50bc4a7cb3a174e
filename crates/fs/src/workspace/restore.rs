//! Making a root hold exactly a tree (CKP-4): scan, compare, change, and scan
//! again until nothing differs. Each file is wholly old or wholly new; killed
//! anywhere, the same call goes on. What the rules ignore stays.

use std::collections::BTreeSet;

use sandbar_domain::Code;
use sandbar_domain::resource::Root;
use sandbar_ports::progress::Stage;
use sandbar_ports::workspace::{CacheKey, Restore, Restored};
use sandbar_ports::{Cancel, PortError, PortResult};

use super::change::{self, Differences};
use super::pool;
use crate::objects::ObjectStore;
use crate::scan::{CacheFile, Scan, Scanned, scan};
use crate::sys::{self, Dir, Errno, Type, at, fail};

/// Rule files that come back can make more paths belong, once or twice.
const ROUNDS: usize = 5;

/// Restores a root; see the port.
pub(crate) fn restore(store: &ObjectStore, request: &Restore) -> PortResult<Restored> {
    let shown = request.path.display();
    let (Some(parent), Some(name)) = (request.path.parent(), request.path.file_name()) else {
        return Err(fail("restore", &shown, Errno::INVAL));
    };
    request.cancel.check()?;
    let place = sys::open_dir(parent).map_err(at("open", parent.display()))?;
    // Never beside the root where that is somebody's: a git directory lies in
    // the very files it belongs to.
    let beside = match &request.cache {
        CacheKey::Named { place, .. } => place.as_path(),
        CacheKey::None => parent,
    };
    let scratch = sys::open_dir(beside).map_err(at("open", beside.display()))?;
    change::Temporary::sweep(&scratch, beside)?;
    let root = open_or_make(&place, name, request)?;
    let mut restored = Restored {
        root: identity(&root, request)?,
        written: 0,
        removed: 0,
        kept_directories: Vec::new(),
    };
    let mut kept = BTreeSet::new();
    let cache = CacheFile::from(&request.cache);
    let mut settled = false;
    for round in 0..ROUNDS {
        let scanned = look(store, request, &root, &cache)?;
        let differences = Differences::between(store, &scanned.assembled, request.tree, &kept)?;
        if differences.is_empty() {
            if let Some(bytes) = scanned.cache {
                cache.save(&bytes);
            }
            settled = true;
            break;
        }
        if round == 0 {
            differences.check(store)?;
            request.cancel.check()?;
        }
        let temporary = change::Temporary::make(&scratch, beside)?;
        let done = differences.perform(store, &root, &temporary, &*request.progress);
        temporary.remove();
        let done = done?;
        restored.written += done.written;
        restored.removed += done.removed;
        kept.extend(done.kept);
    }
    if !settled {
        return Err(PortError::new(
            Code::UnstableFile,
            format!("restore {shown}: something keeps changing it"),
        ));
    }
    if let Some((from, dir)) = &request.pool {
        pool::link_back(from, &root, dir)?;
    }
    restored.kept_directories = kept.into_iter().collect();
    Ok(restored)
}

fn look(
    store: &ObjectStore,
    request: &Restore,
    root: &Dir,
    cache: &CacheFile,
) -> PortResult<Scanned> {
    scan(&Scan {
        root,
        hidden: &request.hidden,
        rules: &*request.rules,
        cache,
        generation: store.generation(),
        transaction: None,
        leaves: true,
        // Only the first look may be interrupted, and it is asked before.
        cancel: &Cancel::new(),
        progress: &*request.progress,
        stage: Stage::Scan,
    })
}

fn open_or_make(place: &Dir, name: &std::ffi::OsStr, request: &Restore) -> PortResult<Dir> {
    let shown = request.path.display();
    match place.stat(name) {
        Err(Errno::NOENT) => {
            sys::make_dir(place, name, 0o755).map_err(at("make", &shown))?;
            let dir = place.child(name).map_err(at("open", &shown))?;
            sys::chmod_fd(&dir, 0o755).map_err(at("make", &shown))?;
            Ok(dir)
        }
        Err(errno) => Err(fail("stat", &shown, errno)),
        Ok(seen) if seen.kind == Type::Directory => place.child(name).map_err(at("open", &shown)),
        Ok(_) => Err(PortError::new(
            Code::SandboxGone,
            format!("restore {shown}: it is no directory"),
        )),
    }
}

fn identity(root: &Dir, request: &Restore) -> PortResult<Root> {
    let seen = root
        .stat_self()
        .map_err(at("stat", request.path.display()))?;
    Ok(Root {
        path: request.path.clone(),
        device: seen.stat.dev,
        inode: seen.stat.ino,
    })
}
