//! Snapshots: one immutable state of a sandbox (ENV-4).
//!
//! A snapshot binds its base, so two snapshots with the same content can have
//! different ids: equality of content compares tree hashes.

use crate::hash::Hash;

/// The tag at the head of every snapshot object.
pub const TAG: &[u8] = b"sandbar.snapshot.v1\0";

/// One state: the tree of the root and, for a checkout, the tree of its
/// private git directory, bound to the snapshot it came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Snapshot {
    /// The id of the snapshot it started from; none for a base.
    pub base: Option<Hash>,
    /// The directory object of the root.
    pub tree: Hash,
    /// The directory object of the private git directory, if there is one.
    pub git: Option<Hash>,
}

/// Bytes that are not a snapshot object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the bytes are not a sandbar.snapshot.v1 object")]
pub struct BadSnapshot;

impl Snapshot {
    /// Encodes the object: tag, then base, tree and git, each a presence byte
    /// and, where present, 32 bytes.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = TAG.to_vec();
        for part in [self.base, Some(self.tree), self.git] {
            match part {
                Some(hash) => {
                    out.push(1);
                    out.extend_from_slice(hash.as_bytes());
                }
                None => out.push(0),
            }
        }
        out
    }

    /// Returns the identity: the hash of the encoding.
    pub fn id(&self) -> Hash {
        Hash::of(&self.encode())
    }

    /// Decodes and checks an object.
    pub fn decode(bytes: &[u8]) -> Result<Self, BadSnapshot> {
        let mut rest = bytes.strip_prefix(TAG).ok_or(BadSnapshot)?;
        let mut part = || -> Result<Option<Hash>, BadSnapshot> {
            let (&flag, tail) = rest.split_first().ok_or(BadSnapshot)?;
            rest = tail;
            match flag {
                0 => Ok(None),
                1 => {
                    let (hash, tail) = rest.split_first_chunk::<32>().ok_or(BadSnapshot)?;
                    rest = tail;
                    Ok(Some(Hash::from_bytes(*hash)))
                }
                _ => Err(BadSnapshot),
            }
        };
        let (base, tree, git) = (part()?, part()?.ok_or(BadSnapshot)?, part()?);
        if rest.is_empty() {
            Ok(Self { base, tree, git })
        } else {
            Err(BadSnapshot)
        }
    }

    /// Says whether both hold the same content, whatever they came from.
    pub fn same_content(&self, other: &Self) -> bool {
        self.tree == other.tree && self.git == other.git
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // conformance: ENV-4
    #[test]
    fn round_trip_and_golden_id() {
        let base = Snapshot {
            base: None,
            tree: crate::tree::empty(),
            git: None,
        };
        let next = Snapshot {
            base: Some(base.id()),
            tree: base.tree,
            git: Some(Hash::of(b"")),
        };
        for snapshot in [base, next] {
            assert_eq!(Snapshot::decode(&snapshot.encode()), Ok(snapshot));
            let bytes = snapshot.encode();
            assert!((0..bytes.len()).all(|cut| Snapshot::decode(&bytes[..cut]).is_err()));
        }
        insta::assert_snapshot!(base.id(), @"b30c67f968c22152cf26b48489b84f9858b28897c429e032ec64012852ffb05a");
        insta::assert_snapshot!(next.id(), @"4691de4ac841d877e1262263d05258a5d3634e73a97c2cd50865cd35d3d74253");
        assert!(!base.same_content(&next));
    }
}
