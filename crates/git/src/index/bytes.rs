//! The index file itself: read in versions 2 to 4, written in 2 or 3.

use std::ops::Range;

use sandbar_ports::PortResult;

use super::{EXTENDED, HEAD, ID, Index, Item};
use crate::open::failed;

/// Parses the bytes of an index file; `None` if they are not one.
pub(super) fn parse(bytes: &[u8]) -> Option<Index> {
    Parser { bytes, at: 0 }.index()
}

impl Index {
    /// Writes the file: version 2, or 3 where flags ask for it. The caches of
    /// the tree and of undone resolutions are kept; what describes another
    /// working tree (untracked cache, file system monitor) is not.
    pub(crate) fn to_bytes(&self) -> PortResult<Vec<u8>> {
        let version: u32 = if self.items.iter().any(|item| item.extended != 0) {
            3
        } else {
            2
        };
        let mut out = Vec::with_capacity(self.names.len() + self.items.len() * 72 + 1024);
        out.extend_from_slice(b"DIRC");
        out.extend_from_slice(&version.to_be_bytes());
        let count = u32::try_from(self.items.len()).expect("an index has under 2^32 entries");
        out.extend_from_slice(&count.to_be_bytes());
        for item in &self.items {
            let start = out.len();
            let path = &self.names[item.name.clone()];
            let length = u16::try_from(path.len().min(0x0fff)).expect("at most 4,095");
            let mut flags = (item.flags & !(0x0fff | EXTENDED)) | length;
            if item.extended != 0 {
                flags |= EXTENDED;
            }
            out.extend_from_slice(&item.head);
            out.extend_from_slice(&item.id);
            out.extend_from_slice(&flags.to_be_bytes());
            if item.extended != 0 {
                out.extend_from_slice(&item.extended.to_be_bytes());
            }
            out.extend_from_slice(path);
            let padding = 8 - (out.len() - start) % 8;
            out.extend_from_slice(&[0; 8][..padding]);
        }
        for (name, bytes) in &self.extensions {
            if !matches!(name, b"TREE" | b"REUC") {
                continue;
            }
            out.extend_from_slice(name);
            let length = u32::try_from(bytes.len()).expect("it was read with 32 bits");
            out.extend_from_slice(&length.to_be_bytes());
            out.extend_from_slice(bytes);
        }
        let mut hasher = gix::hash::hasher(gix::hash::Kind::Sha1);
        hasher.update(&out);
        let sum = hasher
            .try_finalize()
            .map_err(failed("hash the git index"))?;
        out.extend_from_slice(sum.as_slice());
        Ok(out)
    }
}

struct Parser<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Parser<'a> {
    fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let end = self.at.checked_add(length)?;
        let taken = self.bytes.get(self.at..end)?;
        self.at = end;
        Some(taken)
    }

    fn u32(&mut self) -> Option<u32> {
        Some(u32::from_be_bytes(self.take(4)?.try_into().ok()?))
    }

    fn u16(&mut self) -> Option<u16> {
        Some(u16::from_be_bytes(self.take(2)?.try_into().ok()?))
    }

    fn index(mut self) -> Option<Index> {
        let body_end = self.bytes.len().checked_sub(ID)?;
        if self.take(4)? != b"DIRC" {
            return None;
        }
        let version = self.u32()?;
        if !(2..=4).contains(&version) {
            return None;
        }
        let count = usize::try_from(self.u32()?).ok()?;
        // An entry has at least 62 bytes: a larger count is a lie.
        if count > self.bytes.len() / 62 {
            return None;
        }
        let mut index = Index {
            items: Vec::with_capacity(count),
            names: Vec::with_capacity(self.bytes.len().saturating_sub(count * 62)),
            ..Index::default()
        };
        let mut previous = 0..0;
        for _ in 0..count {
            let item = self.item(version, &mut index.names, previous)?;
            previous = item.name.clone();
            index.items.push(item);
        }
        while self.at < body_end {
            let name: [u8; 4] = self.take(4)?.try_into().ok()?;
            let length = usize::try_from(self.u32()?).ok()?;
            let bytes = self.take(length)?;
            // A name in lower case must be understood by who reads it.
            if name[0].is_ascii_lowercase() && !matches!(&name, b"link" | b"sdir") {
                return None;
            }
            if matches!(&name, b"link" | b"sdir" | b"TREE" | b"REUC") {
                index.extensions.push((name, bytes.to_vec()));
            }
        }
        (self.at == body_end).then_some(index)
    }

    fn item(&mut self, version: u32, names: &mut Vec<u8>, previous: Range<usize>) -> Option<Item> {
        let start = self.at;
        let head: [u8; HEAD] = self.take(HEAD)?.try_into().ok()?;
        let id: [u8; ID] = self.take(ID)?.try_into().ok()?;
        let flags = self.u16()?;
        let extended = if flags & EXTENDED != 0 {
            self.u16()?
        } else {
            0
        };
        let name_start = names.len();
        if version == 4 {
            let strip = self.varint()?;
            let kept = previous.len().checked_sub(strip)?;
            names.extend_from_within(previous.start..previous.start + kept);
        }
        let rest = &self.bytes[self.at..];
        let length = match usize::from(flags & 0x0fff) {
            known if version != 4 && known < 0x0fff => known,
            _ => gix::bstr::ByteSlice::find_byte(rest, 0)?,
        };
        names.extend_from_slice(self.take(length)?);
        if version == 4 {
            (self.take(1)? == [0]).then_some(())?;
        } else {
            let padding = 8 - (self.at - start) % 8;
            (self.take(padding)?.first() == Some(&0)).then_some(())?;
        }
        Some(Item {
            head,
            id,
            flags,
            extended,
            name: name_start..names.len(),
        })
    }

    fn varint(&mut self) -> Option<usize> {
        let mut byte = self.take(1)?[0];
        let mut value = usize::from(byte & 0x7f);
        while byte & 0x80 != 0 {
            byte = self.take(1)?[0];
            value = value.checked_add(1)?.checked_mul(128)?;
            value += usize::from(byte & 0x7f);
        }
        Some(value)
    }
}
