//! Names, each stored once. A name is never taken out: a graph that was
//! loaded anew has only those in use.

use std::hash::{BuildHasher as _, RandomState};

const EMPTY: u32 = u32::MAX;

/// Interned names in one buffer.
#[derive(Debug, Clone, Default)]
pub(super) struct Names {
    text: String,
    ends: Vec<u32>,
    slots: Vec<u32>,
    hasher: RandomState,
}

impl Names {
    /// Returns the number of a name; none when 32 bits do not suffice.
    pub(super) fn intern(&mut self, name: &str) -> Option<u32> {
        if (self.ends.len() + 1) * 4 > self.slots.len() * 3 {
            self.grow();
        }
        let mut at = self.home(name);
        loop {
            match self.slots[at] {
                EMPTY => break,
                number if self.get(number) == name => return Some(number),
                _ => at = (at + 1) & (self.slots.len() - 1),
            }
        }
        let number = u32::try_from(self.ends.len())
            .ok()
            .filter(|n| *n != EMPTY)?;
        let end = u32::try_from(self.text.len() + name.len()).ok()?;
        self.text.push_str(name);
        self.ends.push(end);
        self.slots[at] = number;
        Some(number)
    }

    /// Says whether a name of that many bytes still fits.
    pub(super) fn has_room(&self, bytes: usize) -> bool {
        let most = EMPTY as usize;
        self.ends.len() + 1 < most && self.text.len().saturating_add(bytes) < most
    }

    /// Returns the number of a name that is known.
    pub(super) fn find(&self, name: &str) -> Option<u32> {
        if self.slots.is_empty() {
            return None;
        }
        let mut at = self.home(name);
        loop {
            match self.slots[at] {
                EMPTY => return None,
                number if self.get(number) == name => return Some(number),
                _ => at = (at + 1) & (self.slots.len() - 1),
            }
        }
    }

    pub(super) fn get(&self, number: u32) -> &str {
        let at = number as usize;
        let start = if at == 0 {
            0
        } else {
            self.ends[at - 1] as usize
        };
        &self.text[start..self.ends[at] as usize]
    }

    pub(super) fn bytes(&self) -> usize {
        self.text.capacity() + (self.ends.capacity() + self.slots.capacity()) * size_of::<u32>()
    }

    fn grow(&mut self) {
        let width = (self.slots.len() * 2).max(8);
        self.slots = vec![EMPTY; width];
        for number in 0..self.ends.len() as u32 {
            let mut at = self.home(self.get(number));
            while self.slots[at] != EMPTY {
                at = (at + 1) & (width - 1);
            }
            self.slots[at] = number;
        }
    }

    fn home(&self, name: &str) -> usize {
        self.hasher.hash_one(name) as usize & (self.slots.len() - 1)
    }
}
