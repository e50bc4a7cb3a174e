//! Verifying every object. It reads everything and changes nothing.

use sandbar_domain::Hash;
use sandbar_domain::{Code, hash::Hasher};
use sandbar_ports::objects::StoreHealth;
use sandbar_ports::{PortError, PortResult};

use super::loose;
use super::store::ObjectStore;
use crate::sys::{self, Listing, at};

/// One loose file: its object, its size on disk, when it was last stored.
pub(super) struct LooseFile {
    pub(super) hash: Hash,
    pub(super) bytes: u64,
    pub(super) mtime_ns: i128,
}

impl ObjectStore {
    /// Verifies every object. Errors: `corrupt_object` naming a pack whose
    /// records cannot be read, so that its objects have no names.
    pub(crate) fn verify(&self) -> PortResult<StoreHealth> {
        self.refresh()?;
        let mut health = StoreHealth::default();
        let mut lost = Vec::new();
        for pack in self.snapshot().iter() {
            let Ok(index) = self.index(pack) else {
                lost.push(pack.name.clone());
                continue;
            };
            if let Ok(seen) = sys::stat_at(&self.packs_dir, &pack.name) {
                health.bytes += seen.stat.size;
            }
            for record in index.iter() {
                match self.read_record(pack, record) {
                    Ok(_) => health.objects += 1,
                    Err(_) => health.damaged.push(record.hash),
                }
            }
        }
        for file in self.loose_files()? {
            health.bytes += file.bytes;
            if self.is_sound(file.hash) {
                health.objects += 1;
            } else {
                health.damaged.push(file.hash);
            }
        }
        if lost.is_empty() {
            health.damaged.sort_unstable();
            health.damaged.dedup();
            return Ok(health);
        }
        let names = lost.join(", ");
        Err(PortError::new(
            Code::CorruptObject,
            format!("verify objects: the records of pack {names} are damaged"),
        )
        .with_subjects(lost))
    }

    fn is_sound(&self, hash: Hash) -> bool {
        let Ok(Some((fd, _))) = loose::open(self, hash) else {
            return false;
        };
        loose::pour(&fd, |_| Ok(())).is_ok_and(|found| found == hash)
    }

    /// Lists the loose files; what is none of ours is left out.
    pub(super) fn loose_files(&self) -> PortResult<Vec<LooseFile>> {
        let mut listing = Listing::default();
        let mut all = Vec::new();
        let dir = self.loose_dir.reopen().map_err(at("open", "objects"))?;
        for shelf in listing.sorted(&dir).map_err(at("list", "objects"))? {
            let Ok(shelf_dir) = self.loose_dir.child(&*shelf.name) else {
                continue;
            };
            let files = listing.sorted(&shelf_dir).map_err(at("list", "objects"))?;
            for file in files {
                let hex = format!(
                    "{}{}",
                    shelf.name.to_string_lossy(),
                    file.name.to_string_lossy()
                );
                let (Ok(hash), Ok(seen)) = (hex.parse(), shelf_dir.stat(&*file.name)) else {
                    continue;
                };
                all.push(LooseFile {
                    hash,
                    bytes: seen.stat.size,
                    mtime_ns: seen.stat.mtime_ns,
                });
            }
        }
        Ok(all)
    }

    /// Copies one object, verified, to an open file. On an error the file
    /// holds rubbish.
    pub(crate) fn copy_to(&self, hash: Hash, to: impl std::os::fd::AsFd) -> PortResult<()> {
        if loose::copy(self, hash, &to)? {
            return Ok(());
        }
        let bytes = self.read(hash)?;
        sys::write_all(&to, &bytes).map_err(at("copy object", hash))
    }

    /// Returns the length of an object, without reading it. Errors:
    /// `corrupt_object` when it is missing.
    pub(crate) fn length(&self, hash: Hash) -> PortResult<u64> {
        let look = || {
            let packed = self
                .snapshot()
                .iter()
                .find_map(|pack| self.find_in(pack, &hash));
            match packed {
                Some(record) => Ok(Some(u64::from(record.length))),
                None => Ok(loose::open(self, hash)?.map(|(_, length)| length)),
            }
        };
        if let Some(length) = look()? {
            return Ok(length);
        }
        // Another process may have added it, or moved it to another pack.
        self.refresh()?;
        look()?.ok_or_else(|| super::corrupt(hash, "it is missing"))
    }

    /// Says whether an object is present, without reading it.
    pub(crate) fn contains(&self, hash: &Hash) -> bool {
        self.snapshot()
            .iter()
            .any(|pack| self.find_in(pack, hash).is_some())
            || {
                let (shelf, name) = loose::place(*hash);
                sys::stat_at(&self.loose_dir, format!("{shelf}/{name}")).is_ok()
            }
    }
}

/// Names the state of the store in which no object has been removed since;
/// what was seen under another name must be looked for again.
pub(crate) type Generation = Hash;

impl ObjectStore {
    /// Returns the present generation.
    pub(crate) fn generation(&self) -> Generation {
        let mut hasher = Hasher::new();
        if let Ok((fd, seen)) = sys::open_readable(&self.root, "generation")
            && let Ok(bytes) = sys::read_small(&fd, seen.stat.size, 1024)
        {
            hasher.update(&bytes);
        }
        hasher.finish()
    }
}
