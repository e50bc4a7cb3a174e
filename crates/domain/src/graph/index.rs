//! From resource id to slot: open addressing over slot numbers alone, so that
//! ids are not stored twice. Must be told the ids with each call.

use std::hash::{Hash as _, Hasher};

use crate::id::ResourceId;

const EMPTY: u32 = u32::MAX;

/// Slots by the hash of their id; linear probing, at most three quarters full.
#[derive(Debug, Clone, Default)]
pub(super) struct Index {
    slots: Vec<u32>,
    used: usize,
}

/// Mixes the halves of an id. The lower half is random; ids come from
/// ourselves, so nobody can aim at collisions.
#[derive(Default)]
struct Mix(u64);

impl Hasher for Mix {
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u128(u128::from(*byte));
        }
    }

    fn write_u128(&mut self, value: u128) {
        let folded = (value as u64) ^ ((value >> 64) as u64).rotate_left(29) ^ self.0;
        let mixed = (folded ^ (folded >> 32)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.0 = mixed ^ (mixed >> 29);
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

impl Index {
    /// Returns an index with room for `count` slots.
    pub(super) fn with_room(count: usize) -> Self {
        let mut index = Self::default();
        if count > 0 {
            index.slots = vec![EMPTY; (count * 4 / 3 + 1).next_power_of_two().max(8)];
        }
        index
    }

    pub(super) fn find(&self, id: ResourceId, ids: &[ResourceId]) -> Option<u32> {
        if self.slots.is_empty() {
            return None;
        }
        let mut at = self.home(id);
        loop {
            match self.slots[at] {
                EMPTY => return None,
                slot if ids[slot as usize] == id => return Some(slot),
                _ => at = (at + 1) & self.mask(),
            }
        }
    }

    /// Adds a slot whose id is not in it yet.
    pub(super) fn insert(&mut self, slot: u32, ids: &[ResourceId]) {
        if (self.used + 1) * 4 > self.slots.len() * 3 {
            self.grow(ids);
        }
        self.place(slot, ids);
        self.used += 1;
    }

    /// Takes a slot out and closes the gap.
    pub(super) fn remove(&mut self, id: ResourceId, ids: &[ResourceId]) {
        let mut hole = self.home(id);
        while self.slots[hole] == EMPTY || ids[self.slots[hole] as usize] != id {
            if self.slots[hole] == EMPTY {
                return;
            }
            hole = (hole + 1) & self.mask();
        }
        self.used -= 1;
        let mut at = hole;
        loop {
            at = (at + 1) & self.mask();
            let slot = self.slots[at];
            if slot == EMPTY {
                break;
            }
            let home = self.home(ids[slot as usize]);
            let from_home = at.wrapping_sub(home) & self.mask();
            if from_home >= at.wrapping_sub(hole) & self.mask() {
                self.slots[hole] = slot;
                hole = at;
            }
        }
        self.slots[hole] = EMPTY;
    }

    pub(super) fn bytes(&self) -> usize {
        self.slots.capacity() * size_of::<u32>()
    }

    fn grow(&mut self, ids: &[ResourceId]) {
        let wider = vec![EMPTY; (self.slots.len() * 2).max(8)];
        let old = std::mem::replace(&mut self.slots, wider);
        for slot in old.into_iter().filter(|slot| *slot != EMPTY) {
            self.place(slot, ids);
        }
    }

    fn place(&mut self, slot: u32, ids: &[ResourceId]) {
        let mut at = self.home(ids[slot as usize]);
        while self.slots[at] != EMPTY {
            at = (at + 1) & self.mask();
        }
        self.slots[at] = slot;
    }

    fn home(&self, id: ResourceId) -> usize {
        let mut mix = Mix::default();
        id.hash(&mut mix);
        mix.finish() as usize & self.mask()
    }

    fn mask(&self) -> usize {
        self.slots.len() - 1
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn it_is_a_map(steps in prop::collection::vec((0u128..40, any::<bool>()), 0..300)) {
            // Ids that share homes: the low bits are equal.
            let id = |n: u128| ResourceId::from_parts(0, n << 60);
            let ids: Vec<_> = (0..40).map(id).collect();
            let (mut index, mut model) = (Index::default(), HashMap::new());
            for (n, add) in steps {
                let slot = u32::try_from(n).expect("small");
                if add && model.insert(id(n), slot).is_none() {
                    index.insert(slot, &ids);
                } else if !add && model.remove(&id(n)).is_some() {
                    index.remove(id(n), &ids);
                }
                for id in &ids {
                    prop_assert_eq!(index.find(*id, &ids), model.get(id).copied());
                }
            }
        }
    }
}
