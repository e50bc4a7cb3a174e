//! Objects in memory. Nothing is stored twice, everything is verified on
//! reading, as if the bytes could rot.

use std::collections::{BTreeMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use sandbar_domain::tree::{self, Tree};
use sandbar_domain::{Change, Code, Entry, Hash, Kind, RelPath};
use sandbar_ports::git::Contents;
use sandbar_ports::objects::{Collected, Live, Objects, StoreHealth};
use sandbar_ports::{PortError, PortResult};

/// An object store that lives as long as its last clone; clones share it.
#[derive(Debug, Clone, Default)]
pub struct MemObjects(Arc<Mutex<BTreeMap<Hash, Stored>>>);

#[derive(Debug)]
struct Stored {
    bytes: Vec<u8>,
    since: Instant,
}

impl MemObjects {
    /// Makes an empty store.
    pub fn new() -> Self {
        Self::default()
    }

    fn hold(&self) -> MutexGuard<'_, BTreeMap<Hash, Stored>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Stores one object.
    pub fn put_now(&self, bytes: &[u8]) -> Hash {
        let hash = Hash::of(bytes);
        let stored = Stored {
            bytes: bytes.to_vec(),
            since: Instant::now(),
        };
        // What is damaged is healed, what is there keeps its bytes; either way
        // it is as young as if it were new.
        self.hold().insert(hash, stored);
        hash
    }

    /// Flips a bit of a stored object, as a disk might. Says whether it was
    /// there.
    pub fn damage(&self, hash: Hash) -> bool {
        match self.hold().get_mut(&hash) {
            None => false,
            Some(stored) => {
                match stored.bytes.first_mut() {
                    Some(byte) => *byte ^= 1,
                    None => stored.bytes.push(0),
                }
                true
            }
        }
    }

    /// Reads a directory object; the empty one need not be stored.
    pub fn tree(&self, hash: Hash) -> PortResult<Tree> {
        if hash == tree::empty() {
            return Ok(Tree::default());
        }
        Tree::decode(&self.read(hash)?).map_err(|error| corrupt(hash, &error.to_string()))
    }

    fn walk(&self, tree: Hash) -> PortResult<Vec<(RelPath, Entry)>> {
        let mut all = Vec::new();
        let mut open = vec![(None, tree)];
        while let Some((dir, hash)) = open.pop() {
            for (name, entry) in self.tree(hash)?.entries() {
                let path = child(dir.as_ref(), name, hash)?;
                if entry.kind == Kind::Directory {
                    open.push((Some(path.clone()), entry.hash));
                }
                all.push((path, *entry));
            }
        }
        all.sort_unstable_by(|a, b| a.0.cmp(&b.0));
        Ok(all)
    }

    fn reachable(&self, live: &Live) -> PortResult<HashSet<Hash>> {
        let mut reached = live.objects.clone();
        let mut entered = HashSet::new();
        let mut open: Vec<Hash> = live.trees.iter().copied().collect();
        while let Some(hash) = open.pop() {
            reached.insert(hash);
            if !entered.insert(hash) {
                continue;
            }
            for (_, entry) in self.tree(hash)?.entries() {
                if entry.kind == Kind::Directory {
                    open.push(entry.hash);
                } else {
                    reached.insert(entry.hash);
                }
            }
        }
        Ok(reached)
    }
}

#[async_trait]
impl Objects for MemObjects {
    async fn put(&self, contents: Vec<Vec<u8>>) -> PortResult<Vec<Hash>> {
        Ok(contents.iter().map(|bytes| self.put_now(bytes)).collect())
    }

    async fn get(&self, hash: Hash) -> PortResult<Vec<u8>> {
        self.read(hash)
    }

    async fn sweep(&self) -> PortResult<()> {
        // An addition in memory is whole or was never there.
        Ok(())
    }

    async fn diff(&self, old: Hash, new: Hash) -> PortResult<Vec<Change>> {
        // Plainly, unlike the real one: both trees in full, then compared.
        let before: BTreeMap<_, _> = self.walk(old)?.into_iter().collect();
        let after: BTreeMap<_, _> = self.walk(new)?.into_iter().collect();
        let paths = before.keys().chain(after.keys()).collect::<HashSet<_>>();
        let shown = |entry: Option<&Entry>| {
            entry.map(|entry| match entry.kind {
                Kind::Directory => Entry::new(Kind::Directory, tree::empty()),
                _ => *entry,
            })
        };
        let mut changes: Vec<Change> = paths
            .into_iter()
            .filter_map(|path| {
                Change::between(
                    path.clone(),
                    shown(before.get(path)),
                    shown(after.get(path)),
                )
            })
            .collect();
        changes.sort_unstable_by(|a, b| a.path.cmp(&b.path));
        Ok(changes)
    }

    async fn lookup(&self, tree: Hash, paths: Vec<RelPath>) -> PortResult<Vec<Option<Entry>>> {
        let all: BTreeMap<_, _> = self.walk(tree)?.into_iter().collect();
        Ok(paths.iter().map(|path| all.get(path).copied()).collect())
    }

    async fn list(&self, tree: Hash) -> PortResult<Vec<(RelPath, Entry)>> {
        self.walk(tree)
    }

    async fn missing(&self, hashes: Vec<Hash>) -> PortResult<Vec<Hash>> {
        let stored = self.hold();
        Ok(hashes
            .into_iter()
            .filter(|hash| !stored.contains_key(hash))
            .collect())
    }

    async fn collect(&self, live: Live) -> PortResult<Collected> {
        let reached = self.reachable(&live)?;
        let grace = Duration::from_millis(live.grace_ms);
        let mut done = Collected::default();
        self.hold().retain(|hash, stored| {
            let keep = reached.contains(hash) || stored.since.elapsed() < grace;
            if keep {
                done.kept += 1;
            } else {
                done.removed += 1;
                done.bytes += stored.bytes.len() as u64;
            }
            keep
        });
        Ok(done)
    }

    async fn verify(&self) -> PortResult<StoreHealth> {
        let mut health = StoreHealth::default();
        for (hash, stored) in self.hold().iter() {
            health.objects += 1;
            health.bytes += stored.bytes.len() as u64;
            if Hash::of(&stored.bytes) != *hash {
                health.damaged.push(*hash);
            }
        }
        Ok(health)
    }
}

impl Contents for MemObjects {
    fn read(&self, hash: Hash) -> PortResult<Vec<u8>> {
        match self.hold().get(&hash) {
            None => Err(corrupt(hash, "it is missing")),
            Some(stored) if Hash::of(&stored.bytes) != hash => {
                Err(corrupt(hash, "its bytes do not match its name"))
            }
            Some(stored) => Ok(stored.bytes.clone()),
        }
    }
}

fn child(parent: Option<&RelPath>, name: &str, tree: Hash) -> PortResult<RelPath> {
    RelPath::child(parent, name).map_err(|error| corrupt(tree, &error.to_string()))
}

fn corrupt(hash: Hash, why: &str) -> PortError {
    PortError::new(Code::CorruptObject, format!("read object {hash}: {why}"))
        .with_subjects([hash.to_string()])
}
