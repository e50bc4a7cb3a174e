//! Sealed packs: many small objects in one file that never changes.
//!
//! Layout, integers big endian: the head `sandbar.pack.v1\n`; the stored
//! bytes of each object; one record an object, sorted by hash (hash 32,
//! offset 8, stored length 4, length 4, codec 1); the offset of the records
//! 8; their number 8; the SHA-256 of records, offset and number 32; the end
//! mark `sandbar.pack.end`. A golden vector in the tests fixes it.

use std::os::fd::AsFd;

use sandbar_domain::Hash;
use sandbar_domain::hash::Hasher;

use crate::sys::{self, Errno};

pub(super) const HEAD: &[u8; 16] = b"sandbar.pack.v1\n";
const END: &[u8; 16] = b"sandbar.pack.end";
const RECORD: usize = 49;
const TAIL: usize = 64;

/// Where one object lies in a pack.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Record {
    pub(super) hash: Hash,
    pub(super) offset: u64,
    pub(super) stored: u32,
    pub(super) length: u32,
    pub(super) codec: u8,
}

/// The records of a pack, searched where they lie.
#[derive(Debug)]
pub(super) struct Index {
    records: Box<[u8]>,
    /// For each first byte of a hash, how many records come before it.
    fan: Box<[u32; 257]>,
}

/// A pack that cannot be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum BadPack {
    /// The file could not be read.
    Unreadable(Errno),
    /// Its records do not match their checksum, or make no sense.
    Damaged,
}

impl Index {
    /// Builds the index and footer of new `records`.
    pub(super) fn seal(mut records: Vec<Record>, offset: u64) -> (Self, Vec<u8>) {
        records.sort_unstable_by_key(|record| record.hash);
        let mut footer = Vec::with_capacity(records.len() * RECORD + TAIL);
        for record in &records {
            footer.extend_from_slice(record.hash.as_bytes());
            footer.extend_from_slice(&record.offset.to_be_bytes());
            footer.extend_from_slice(&record.stored.to_be_bytes());
            footer.extend_from_slice(&record.length.to_be_bytes());
            footer.push(record.codec);
        }
        let index = Self::new(footer.clone().into_boxed_slice());
        let count = u64::try_from(records.len()).expect("a length fits 64 bits");
        footer.extend_from_slice(&offset.to_be_bytes());
        footer.extend_from_slice(&count.to_be_bytes());
        let sum = Hash::of(&footer);
        footer.extend_from_slice(sum.as_bytes());
        footer.extend_from_slice(END);
        (index, footer)
    }

    /// Reads and checks the records at the end of a pack file.
    pub(super) fn load(fd: impl AsFd) -> Result<Self, BadPack> {
        let size = sys::stat_fd(&fd).map_err(BadPack::Unreadable)?.stat.size;
        let mut tail = [0; TAIL];
        let tail_at = size.checked_sub(TAIL as u64).ok_or(BadPack::Damaged)?;
        sys::pread_exact(&fd, &mut tail, tail_at).map_err(BadPack::Unreadable)?;
        let number = |at: usize| {
            u64::from_be_bytes(tail[at..at + 8].try_into().expect("eight bytes are eight"))
        };
        let (offset, count) = (number(0), number(8));
        let length = count
            .checked_mul(RECORD as u64)
            .filter(|length| offset.checked_add(*length) == Some(tail_at))
            .and_then(|length| usize::try_from(length).ok())
            .ok_or(BadPack::Damaged)?;
        if &tail[48..] != END || offset < HEAD.len() as u64 {
            return Err(BadPack::Damaged);
        }
        let mut records = vec![0; length];
        sys::pread_exact(&fd, &mut records, offset).map_err(BadPack::Unreadable)?;
        let mut sum = Hasher::new();
        sum.update(&records);
        sum.update(&tail[..16]);
        if sum.finish().as_bytes() != &tail[16..48] {
            return Err(BadPack::Damaged);
        }
        Ok(Self::new(records.into_boxed_slice()))
    }

    fn new(records: Box<[u8]>) -> Self {
        let mut fan = Box::new([0u32; 257]);
        for record in records.chunks_exact(RECORD) {
            fan[usize::from(record[0]) + 1] += 1;
        }
        for first in 0..256 {
            fan[first + 1] += fan[first];
        }
        Self { records, fan }
    }

    /// Counts the objects.
    pub(super) fn len(&self) -> usize {
        self.records.len() / RECORD
    }

    /// Finds one object.
    pub(super) fn find(&self, hash: &Hash) -> Option<Record> {
        let first = usize::from(hash.as_bytes()[0]);
        let (mut low, mut high) = (self.fan[first] as usize, self.fan[first + 1] as usize);
        while low < high {
            let middle = low.midpoint(high);
            match self.records[middle * RECORD..middle * RECORD + 32].cmp(hash.as_bytes()) {
                std::cmp::Ordering::Less => low = middle + 1,
                std::cmp::Ordering::Greater => high = middle,
                std::cmp::Ordering::Equal => return Some(self.get(middle)),
            }
        }
        None
    }

    /// Iterates over all objects, sorted by hash.
    pub(super) fn iter(&self) -> impl Iterator<Item = Record> {
        (0..self.len()).map(|position| self.get(position))
    }

    fn get(&self, position: usize) -> Record {
        let bytes = &self.records[position * RECORD..(position + 1) * RECORD];
        let short = |at: usize| {
            u32::from_be_bytes(bytes[at..at + 4].try_into().expect("four bytes are four"))
        };
        Record {
            hash: Hash::from_bytes(bytes[..32].try_into().expect("a hash has 32 bytes")),
            offset: u64::from_be_bytes(bytes[32..40].try_into().expect("eight bytes are eight")),
            stored: short(40),
            length: short(44),
            codec: bytes[48],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn records(count: u32) -> Vec<Record> {
        (0..count)
            .map(|n| Record {
                hash: Hash::of(&n.to_be_bytes()),
                offset: 16 + u64::from(n),
                stored: 1,
                length: n,
                codec: 0,
            })
            .collect()
    }

    #[test]
    fn golden_footer_never_changes() {
        let (_, footer) = Index::seal(records(3), 19);
        assert_eq!(footer.len(), 3 * RECORD + TAIL);
        assert_eq!(
            Hash::of(&footer).to_string(),
            "b3fa419fea45bcabd75892c80a3503c314291af673b8c8ccf0b47e65af7dbe6f"
        );
    }

    #[test]
    fn every_record_is_found_and_no_other() {
        let all = records(2000);
        let (index, _) = Index::seal(all.clone(), 2016);
        for record in &all {
            assert_eq!(index.find(&record.hash), Some(*record));
        }
        for n in 2000u32..4000 {
            assert_eq!(index.find(&Hash::of(&n.to_be_bytes())), None);
        }
        assert_eq!(index.iter().count(), 2000);
        assert!(Index::seal(Vec::new(), 16).0.find(&all[0].hash).is_none());
    }
}
