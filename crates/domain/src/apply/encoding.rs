//! The stored form of a list of operations, `sandbar.ops.v1`: an object that
//! the journal names by its hash.
//!
//! Layout: the tag and a NUL; the number of operations, big endian, 8 bytes;
//! for each one byte (`m` make directory, `c` create, `r` replace, `x` set
//! mode, `d` remove, `u` remove directory), the length of the path, big
//! endian, 2 bytes, the path, then what must be there and what it will be, so
//! far as the operation has them, each a kind byte and a hash; at the end the
//! SHA-256 of all that came before. One list has exactly one encoding.

use crate::apply::PathOp;
use crate::entry::{Entry, Kind};
use crate::hash::Hash;
use crate::path::RelPath;
use crate::tree::kind_byte;

/// The tag at the head of every operation list.
pub const TAG: &[u8] = b"sandbar.ops.v1\0";

/// Bytes that are not a list of operations.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BadOps {
    /// Another tag: not a list, or one of another version.
    #[error("the bytes are not a sandbar.ops.v1 object")]
    Tag,
    /// The check sum at the end does not match.
    #[error("a list of operations is damaged")]
    CheckSum,
    /// The check sum is right and the content still makes no sense.
    #[error("a list of operations holds an impossible operation")]
    Content,
}

/// Encodes `ops`.
pub fn encode_ops(ops: &[PathOp]) -> Vec<u8> {
    let mut out = TAG.to_vec();
    let count = u64::try_from(ops.len()).expect("a length fits 64 bits");
    out.extend_from_slice(&count.to_be_bytes());
    for op in ops {
        let (byte, old, new) = match op {
            PathOp::MakeDir { path: _ } => (b'm', None, None),
            PathOp::Create { path: _, new } => (b'c', None, Some(new)),
            PathOp::Replace { path: _, old, new } => (b'r', Some(old), Some(new)),
            PathOp::SetMode { path: _, old, new } => (b'x', Some(old), Some(new)),
            PathOp::Remove { path: _, old } => (b'd', Some(old), None),
            PathOp::RemoveDir { path: _ } => (b'u', None, None),
        };
        out.push(byte);
        let path = op.path().as_str();
        let length = u16::try_from(path.len()).expect("a path has at most 4,095 bytes");
        out.extend_from_slice(&length.to_be_bytes());
        out.extend_from_slice(path.as_bytes());
        for entry in [old, new].into_iter().flatten() {
            out.push(kind_byte(entry.kind));
            out.extend_from_slice(entry.hash.as_bytes());
        }
    }
    let sum = Hash::of(&out);
    out.extend_from_slice(sum.as_bytes());
    out
}

/// Decodes and checks a list: tag, check sum, paths, kinds, nothing left over.
pub fn decode_ops(bytes: &[u8]) -> Result<Vec<PathOp>, BadOps> {
    if !bytes.starts_with(TAG) {
        return Err(BadOps::Tag);
    }
    let (body, sum) = bytes.split_last_chunk::<32>().ok_or(BadOps::CheckSum)?;
    if Hash::of(body) != Hash::from_bytes(*sum) {
        return Err(BadOps::CheckSum);
    }
    let mut reader = Reader(body.get(TAG.len()..).ok_or(BadOps::Content)?);
    let count = u64::from_be_bytes(reader.array()?);
    let mut ops = Vec::new();
    for _ in 0..count {
        ops.push(reader.op()?);
    }
    if reader.0.is_empty() {
        Ok(ops)
    } else {
        Err(BadOps::Content)
    }
}

struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, length: usize) -> Result<&'a [u8], BadOps> {
        let (head, rest) = self.0.split_at_checked(length).ok_or(BadOps::Content)?;
        self.0 = rest;
        Ok(head)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], BadOps> {
        let head = self.take(N)?;
        Ok(head.try_into().expect("take returns the length asked for"))
    }

    /// Reads a file or symlink: no operation replaces or makes a directory by
    /// its content.
    fn entry(&mut self) -> Result<Entry, BadOps> {
        let kind = match self.take(1)? {
            b"f" => Kind::File,
            b"x" => Kind::Executable,
            b"l" => Kind::Symlink,
            _ => return Err(BadOps::Content),
        };
        Ok(Entry::new(kind, Hash::from_bytes(self.array()?)))
    }

    fn op(&mut self) -> Result<PathOp, BadOps> {
        let [byte] = self.array()?;
        let length = usize::from(u16::from_be_bytes(self.array()?));
        let path = RelPath::from_bytes(self.take(length)?).map_err(|_| BadOps::Content)?;
        let op = match byte {
            b'm' => PathOp::MakeDir { path },
            b'u' => PathOp::RemoveDir { path },
            b'c' => PathOp::Create {
                path,
                new: self.entry()?,
            },
            b'd' => PathOp::Remove {
                path,
                old: self.entry()?,
            },
            b'r' => PathOp::Replace {
                path,
                old: self.entry()?,
                new: self.entry()?,
            },
            b'x' => PathOp::SetMode {
                path,
                old: self.entry()?,
                new: self.entry()?,
            },
            _ => return Err(BadOps::Content),
        };
        match &op {
            PathOp::Replace { old, new, .. } if old == new => Err(BadOps::Content),
            PathOp::SetMode { old, new, .. }
                if old.hash != new.hash
                    || old.kind == new.kind
                    || !old.kind.is_file()
                    || !new.kind.is_file() =>
            {
                Err(BadOps::Content)
            }
            _ => Ok(op),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Vec<PathOp> {
        let path = |text| RelPath::new(text).expect("valid");
        let file = |bytes: &[u8]| Entry::new(Kind::File, Hash::of(bytes));
        vec![
            PathOp::Remove {
                path: path("old/f"),
                old: file(b"a"),
            },
            PathOp::RemoveDir { path: path("old") },
            PathOp::MakeDir { path: path("new") },
            PathOp::SetMode {
                path: path("m"),
                old: file(b"m"),
                new: Entry::new(Kind::Executable, Hash::of(b"m")),
            },
            PathOp::Create {
                path: path("new/é"),
                new: Entry::new(Kind::Symlink, Hash::of(b"../m")),
            },
            PathOp::Replace {
                path: path("r"),
                old: file(b"1"),
                new: file(b"2"),
            },
        ]
    }

    // conformance: ENV-4
    #[test]
    fn golden_vector_never_changes() {
        insta::assert_snapshot!(Hash::of(&encode_ops(&[])), @"d6bb2a260a533a23f3400f328b6ab144a305c17c470902388100cade9a912e45");
        insta::assert_snapshot!(Hash::of(&encode_ops(&sample())), @"0a18152e7dc9a71e843f1a233bab8a24a6cd472e99c155277de2cb44dd590954");
    }

    #[test]
    fn decode_inverts_encode_and_refuses_every_cut_and_every_flipped_bit() {
        let bytes = encode_ops(&sample());
        assert_eq!(decode_ops(&bytes), Ok(sample()));
        for cut in 0..bytes.len() {
            assert!(decode_ops(&bytes[..cut]).is_err(), "cut at {cut}");
        }
        for bit in 0..bytes.len() * 8 {
            let mut bad = bytes.clone();
            bad[bit / 8] ^= 1 << (bit % 8);
            assert!(decode_ops(&bad).is_err(), "bit {bit}");
        }
    }

    #[test]
    fn impossible_operations_are_refused_though_the_sum_is_right() {
        let resum = |mut body: Vec<u8>| {
            let sum = Hash::of(&body);
            body.extend_from_slice(sum.as_bytes());
            body
        };
        let with = |op: &[u8]| {
            let mut body = TAG.to_vec();
            body.extend_from_slice(&1u64.to_be_bytes());
            body.extend_from_slice(op);
            resum(body)
        };
        assert!(decode_ops(&with(b"m\0\x01a")).is_ok());
        for bad in [&b"m\0\x02.."[..], b"m\0\x02/a", b"?\0\x01a", b"m\0\x01a!"] {
            assert_eq!(decode_ops(&with(bad)), Err(BadOps::Content), "{bad:?}");
        }
        let mut directory = b"c\0\x01ad".to_vec();
        directory.extend_from_slice(&[0; 32]);
        assert_eq!(decode_ops(&with(&directory)), Err(BadOps::Content));
        let file = Entry::new(Kind::File, Hash::of(b"a"));
        let path = RelPath::new("a").expect("valid");
        let same = PathOp::SetMode {
            path,
            old: file,
            new: file,
        };
        assert_eq!(decode_ops(&encode_ops(&[same])), Err(BadOps::Content));
    }
}
