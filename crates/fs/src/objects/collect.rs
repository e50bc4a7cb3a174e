//! Removing what nothing needs (ENV-9), and merging small packs.
//!
//! A collection holds the exclusive lock, so no addition runs beside it. What
//! it keeps is durable in its new place before the old one goes: killed
//! anywhere, it leaves duplicates and nothing missing. It must never remove a
//! pack it cannot read.

use std::sync::Arc;
use std::time::{Duration, Instant};

use sandbar_domain::tree::{self, Tree};
use sandbar_domain::{Code, Hash, Kind};
use sandbar_ports::effect::planted;
use sandbar_ports::objects::{Collected, Live};
use sandbar_ports::{PortError, PortResult};

use super::pack::Record;
use super::store::{ObjectStore, Pack};
use super::transaction::HashedSet;
use super::{corrupt, loose};
use crate::names;
use crate::sys::{self, Errno, FileLock, Listing, at, fail};

/// More packs than this are merged.
const MANY: usize = 64;
/// So many of the largest stay as they are when packs are merged.
const LARGEST: usize = 16;
/// Packs up to this size are rewritten for any dead object.
const SMALL: u64 = 4 << 20;
/// How long a collection waits for additions to end.
const PATIENCE: Duration = Duration::from_secs(30);

/// What is to become of one pack.
struct Fate {
    pack: Arc<Pack>,
    bytes: u64,
    young: bool,
    live: Vec<Record>,
    dead: u64,
    rewrite: bool,
}

impl ObjectStore {
    /// Removes what is reachable from none of the live roots. Errors:
    /// `corrupt_object` when a live directory object cannot be read (nothing
    /// is removed then), `store_unavailable` when additions do not end.
    pub(crate) fn collect(&self, live: &Live) -> PortResult<Collected> {
        let _lock = self.lock_for_collection()?;
        self.refresh()?;
        let reached = self.mark(live)?;
        let cut = match live.grace_ms {
            // A stamp can be finer than the clock, so it proves nothing here.
            0 => i128::MAX,
            grace => sys::coarse_now_ns() - i128::from(grace) * 1_000_000,
        };
        let mut fates = self.judge(&reached, cut)?;
        choose_small(&mut fates);
        let doomed: Vec<_> = self
            .loose_files()?
            .into_iter()
            .filter(|file| !reached.contains(&file.hash) && file.mtime_ns <= cut)
            .collect();
        let mut done = Collected::default();
        if fates.iter().any(|fate| fate.rewrite) || !doomed.is_empty() {
            self.next_generation()?;
        }
        self.rewrite(fates, &mut done)?;
        for file in doomed {
            let (shelf, name) = loose::place(file.hash);
            sys::remove_file(&self.loose_dir, format!("{shelf}/{name}"))
                .map_err(at("remove object", file.hash))?;
            done.removed += 1;
            done.bytes += file.bytes;
        }
        self.sweep_temporary()?;
        done.kept += self.loose_files()?.len() as u64;
        Ok(done)
    }

    /// Merges small packs when there are many, if no addition runs just now.
    pub(crate) fn compact_if_many(&self) -> PortResult<()> {
        if self.snapshot().len() <= MANY {
            return Ok(());
        }
        let _lock = match sys::try_lock_exclusive(self.lock_file()?) {
            Err(Errno::AGAIN) => return Ok(()),
            other => other.map_err(at("lock", "objects"))?,
        };
        self.refresh()?;
        let mut fates = self.judge_all_live()?;
        choose_small(&mut fates);
        self.rewrite(fates, &mut Collected::default())
    }

    fn lock_for_collection(&self) -> PortResult<FileLock> {
        let start = Instant::now();
        loop {
            match sys::try_lock_exclusive(self.lock_file()?) {
                Err(Errno::AGAIN) if start.elapsed() < PATIENCE => {
                    std::thread::sleep(Duration::from_millis(10));
                }
                Err(Errno::AGAIN) => {
                    return Err(PortError::new(
                        Code::StoreUnavailable,
                        "collect objects: others are adding some",
                    ));
                }
                other => return other.map_err(at("lock", "objects")),
            }
        }
    }

    fn mark(&self, live: &Live) -> PortResult<HashedSet> {
        let mut reached = HashedSet::default();
        reached.extend(live.objects.iter().copied());
        let mut open: Vec<Hash> = Vec::new();
        let mut entered = HashedSet::default();
        open.extend(live.trees.iter().copied());
        while let Some(hash) = open.pop() {
            if !entered.insert(hash) || hash == tree::empty() {
                reached.insert(hash);
                continue;
            }
            reached.insert(hash);
            let tree = Tree::decode(&self.read(hash)?)
                .map_err(|error| corrupt(hash, &error.to_string()))?;
            for (_, entry) in tree.entries() {
                if entry.kind == Kind::Directory {
                    open.push(entry.hash);
                } else {
                    reached.insert(entry.hash);
                }
            }
        }
        Ok(reached)
    }

    fn judge(&self, reached: &HashedSet, cut: i128) -> PortResult<Vec<Fate>> {
        let mut fates = self.judge_all_live()?;
        let mut placed = HashedSet::default();
        for fate in &mut fates {
            let seen = match sys::stat_at(&self.packs_dir, &fate.pack.name) {
                Err(Errno::NOENT) => continue,
                other => other.map_err(at("stat pack", &fate.pack.name))?,
            };
            fate.young = seen.stat.mtime_ns > cut;
            if fate.young {
                continue;
            }
            let before = fate.live.len();
            fate.live
                .retain(|record| reached.contains(&record.hash) && placed.insert(record.hash));
            let dead_bytes: u64 = fate.bytes.saturating_sub(
                fate.live
                    .iter()
                    .map(|record| u64::from(record.stored))
                    .sum(),
            );
            fate.dead = (before - fate.live.len()) as u64;
            fate.rewrite = fate.dead > 0 && (fate.bytes <= SMALL || dead_bytes > fate.bytes / 4);
        }
        Ok(fates)
    }

    fn judge_all_live(&self) -> PortResult<Vec<Fate>> {
        let mut fates = Vec::new();
        for pack in self.snapshot().iter() {
            let Ok(index) = self.index(pack) else {
                continue;
            };
            let seen =
                sys::stat_at(&self.packs_dir, &pack.name).map_err(at("stat pack", &pack.name))?;
            fates.push(Fate {
                pack: Arc::clone(pack),
                bytes: seen.stat.size,
                young: false,
                live: index.iter().collect(),
                dead: 0,
                rewrite: false,
            });
        }
        Ok(fates)
    }

    /// Writes what is live in the chosen packs to one new pack, then removes
    /// them. A pack with a live object that cannot be read stays.
    fn rewrite(&self, fates: Vec<Fate>, done: &mut Collected) -> PortResult<()> {
        let fresh = self.begin_rewrite();
        let mut old = Vec::new();
        for fate in fates {
            if !fate.rewrite {
                done.kept += fate.live.len() as u64;
                continue;
            }
            let mut sound = true;
            for record in &fate.live {
                match self.read_record(&fate.pack, *record) {
                    Ok(Some(bytes)) => fresh.put_hashed(record.hash, &bytes)?,
                    Ok(None) | Err(_) => sound = false,
                }
            }
            done.kept += fate.live.len() as u64;
            if sound {
                let stored: u64 = fate.live.iter().map(|r| u64::from(r.stored)).sum();
                done.removed += fate.dead;
                done.bytes += fate.bytes.saturating_sub(stored);
                old.push(fate.pack);
            }
        }
        fresh.commit()?;
        for pack in &old {
            sys::remove_file(&self.packs_dir, &pack.name).map_err(at("remove pack", &pack.name))?;
        }
        self.forget_open();
        self.refresh()
    }

    /// Removes what dead processes left half-written, if nobody is at work.
    pub(crate) fn sweep(&self) -> PortResult<()> {
        if planted("leave-temporary-files") {
            return Ok(());
        }
        match sys::try_lock_exclusive(self.lock_file()?) {
            Ok(_lock) => self.sweep_temporary(),
            Err(Errno::WOULDBLOCK) => Ok(()),
            Err(errno) => Err(fail("lock", "objects", errno)),
        }
    }

    /// Whatever lies among the temporary files is stale: additions hold the
    /// shared lock.
    fn sweep_temporary(&self) -> PortResult<()> {
        let dir = self.tmp_dir.reopen().map_err(at("open", "objects/tmp"))?;
        for entry in Listing::default()
            .sorted(&dir)
            .map_err(at("list", "objects/tmp"))?
        {
            sys::remove_file(&self.tmp_dir, &*entry.name)
                .map_err(at("remove", "a temporary file"))?;
        }
        Ok(())
    }

    /// Announces, before the first removal, that objects known to be present
    /// may be so no longer.
    fn next_generation(&self) -> PortResult<()> {
        let what = "objects/generation";
        let name = names::random();
        let fd = sys::create_new(&self.tmp_dir, &name, 0o600).map_err(at("create", what))?;
        sys::write_all(&fd, name.as_bytes())
            .and_then(|()| sys::sync_file(&fd))
            .and_then(|()| sys::rename(&self.tmp_dir, &name, &self.root, "generation"))
            .and_then(|()| sys::sync_dir(&self.root))
            .map_err(|errno| fail("write", what, errno))
    }
}

fn choose_small(fates: &mut [Fate]) {
    if fates.len() <= MANY {
        return;
    }
    fates.sort_by_key(|fate| fate.bytes);
    let small = fates.len() - LARGEST;
    for fate in &mut fates[..small] {
        fate.rewrite = true;
    }
}
