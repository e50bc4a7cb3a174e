//! Directory objects: the Merkle encoding `sandbar.tree.v1` (ENV-4).
//!
//! Layout: the tag and a NUL; the number of entries, big endian, 4 bytes; for
//! each entry, sorted by name bytes: one kind byte (`d`, `f`, `x`, `l`), the
//! length of the name, big endian, 2 bytes; the name; the 32-byte hash.
//! Golden vectors in the tests fix it for ever.

use std::collections::BTreeMap;

use crate::entry::{Entry, Kind};
use crate::hash::Hash;
use crate::path::RelPath;

/// The tag at the head of every directory object.
pub const TAG: &[u8] = b"sandbar.tree.v1\0";

/// One directory: names to entries, sorted by name bytes, none twice.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Tree(Vec<(Box<str>, Entry)>);

/// Why entries or bytes are not a directory object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BadTree {
    /// A name twice, or a path beneath a file.
    #[error("a name occurs twice in one directory")]
    Duplicate,
    /// A name that no directory can hold.
    #[error("a directory object holds an impossible name")]
    Name,
    /// Bytes that are not the encoding.
    #[error("the bytes are not a sandbar.tree.v1 object")]
    Encoding,
}

impl Tree {
    /// Sorts and checks `entries`.
    pub fn new(mut entries: Vec<(Box<str>, Entry)>) -> Result<Self, BadTree> {
        entries.sort_unstable_by(|a, b| a.0.as_bytes().cmp(b.0.as_bytes()));
        if entries.windows(2).any(|pair| pair[0].0 == pair[1].0) {
            return Err(BadTree::Duplicate);
        }
        if entries
            .iter()
            .any(|(name, _)| RelPath::child(None, name).is_err())
        {
            return Err(BadTree::Name);
        }
        Ok(Self(entries))
    }

    /// Returns the entries in order.
    pub fn entries(&self) -> &[(Box<str>, Entry)] {
        &self.0
    }

    /// Finds one name.
    pub fn get(&self, name: &str) -> Option<Entry> {
        self.0
            .binary_search_by(|(have, _)| have.as_bytes().cmp(name.as_bytes()))
            .ok()
            .map(|index| self.0[index].1)
    }

    /// Encodes the directory; its identity is the hash of these bytes.
    pub fn encode(&self) -> Vec<u8> {
        let size: usize = self.0.iter().map(|(name, _)| name.len() + 35).sum();
        let mut out = Vec::with_capacity(TAG.len() + 4 + size);
        out.extend_from_slice(TAG);
        let count = u32::try_from(self.0.len()).expect("a directory has under 2^32 names");
        out.extend_from_slice(&count.to_be_bytes());
        for (name, entry) in &self.0 {
            out.push(kind_byte(entry.kind));
            let length = u16::try_from(name.len()).expect("a name has at most 255 bytes");
            out.extend_from_slice(&length.to_be_bytes());
            out.extend_from_slice(name.as_bytes());
            out.extend_from_slice(entry.hash.as_bytes());
        }
        out
    }

    /// Decodes and checks: order, names, length, nothing left over.
    pub fn decode(bytes: &[u8]) -> Result<Self, BadTree> {
        let mut reader = Reader(bytes);
        if reader.take(TAG.len())? != TAG {
            return Err(BadTree::Encoding);
        }
        let count = u32::from_be_bytes(reader.array()?);
        let mut entries: Vec<(Box<str>, Entry)> = Vec::new();
        for _ in 0..count {
            let kind = match reader.take(1)? {
                b"d" => Kind::Directory,
                b"f" => Kind::File,
                b"x" => Kind::Executable,
                b"l" => Kind::Symlink,
                _ => return Err(BadTree::Encoding),
            };
            let length = usize::from(u16::from_be_bytes(reader.array()?));
            let name = std::str::from_utf8(reader.take(length)?).map_err(|_| BadTree::Encoding)?;
            if RelPath::child(None, name).is_err() {
                return Err(BadTree::Name);
            }
            if entries
                .last()
                .is_some_and(|(last, _)| last.as_bytes() >= name.as_bytes())
            {
                return Err(BadTree::Encoding);
            }
            let hash = Hash::from_bytes(reader.array()?);
            entries.push((name.into(), Entry { kind, hash }));
        }
        if !reader.0.is_empty() {
            return Err(BadTree::Encoding);
        }
        Ok(Self(entries))
    }
}

/// A whole tree as directory objects.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Built {
    /// The root's hash.
    pub root: Hash,
    /// Every directory object, encoded; children before parents.
    pub objects: Vec<Vec<u8>>,
}

/// Makes the directory objects of a tree from its files, symlinks and empty
/// directories: what a list of a tree's paths says, put together again.
/// Directories above a path need not be given. Errors: `Duplicate`.
pub fn build(paths: impl IntoIterator<Item = (RelPath, Entry)>) -> Result<Built, BadTree> {
    let mut top = BTreeMap::new();
    for (path, entry) in paths {
        place(&mut top, path.as_str(), entry)?;
    }
    let mut objects = Vec::new();
    let root = seal(top, &mut objects)?;
    Ok(Built { root, objects })
}

#[derive(Debug)]
enum Node {
    Leaf(Entry),
    Directory(Names),
}

type Names = BTreeMap<Box<str>, Node>;

fn place(mut names: &mut Names, path: &str, entry: Entry) -> Result<(), BadTree> {
    let mut rest = path;
    while let Some((name, below)) = rest.split_once('/') {
        let node = names
            .entry(name.into())
            .or_insert_with(|| Node::Directory(Names::new()));
        let Node::Directory(inner) = node else {
            return Err(BadTree::Duplicate);
        };
        (names, rest) = (inner, below);
    }
    let directory = entry.kind == Kind::Directory;
    match (names.get(rest), directory) {
        (None, true) => names.insert(rest.into(), Node::Directory(Names::new())),
        (None, false) => names.insert(rest.into(), Node::Leaf(entry)),
        (Some(Node::Directory(_)), true) => None,
        _ => return Err(BadTree::Duplicate),
    };
    Ok(())
}

fn seal(names: Names, objects: &mut Vec<Vec<u8>>) -> Result<Hash, BadTree> {
    let mut entries = Vec::with_capacity(names.len());
    for (name, node) in names {
        let entry = match node {
            Node::Leaf(entry) => entry,
            Node::Directory(inner) => Entry::new(Kind::Directory, seal(inner, objects)?),
        };
        entries.push((name, entry));
    }
    let bytes = Tree::new(entries)?.encode();
    let hash = Hash::of(&bytes);
    objects.push(bytes);
    Ok(hash)
}

/// Returns the hash of a directory without entries.
pub fn empty() -> Hash {
    Hash::of(&Tree::default().encode())
}

pub(crate) fn kind_byte(kind: Kind) -> u8 {
    match kind {
        Kind::Directory => b'd',
        Kind::File => b'f',
        Kind::Executable => b'x',
        Kind::Symlink => b'l',
    }
}

struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, length: usize) -> Result<&'a [u8], BadTree> {
        let (head, rest) = self.0.split_at_checked(length).ok_or(BadTree::Encoding)?;
        self.0 = rest;
        Ok(head)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], BadTree> {
        Ok(self
            .take(N)?
            .try_into()
            .expect("take returns the length asked for"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Tree {
        Tree::new(vec![
            (
                "run".into(),
                Entry::new(Kind::Executable, Hash::of(b"#!/bin/sh\n")),
            ),
            ("a.txt".into(), Entry::new(Kind::File, Hash::of(b"hello\n"))),
            ("link".into(), Entry::new(Kind::Symlink, Hash::of(b"a.txt"))),
            ("dir".into(), Entry::new(Kind::Directory, empty())),
        ])
        .expect("valid")
    }

    // conformance: ENV-4
    #[test]
    fn golden_vectors_never_change() {
        let empty_bytes = b"sandbar.tree.v1\0\0\0\0\0";
        assert_eq!(Tree::default().encode(), empty_bytes);
        insta::assert_snapshot!(empty(), @"cc12bf44eff48257f003ff261f1242dfe714ad1517f9d629aedd1b52b833f21f");
        insta::assert_snapshot!(Hash::of(&sample().encode()), @"5d9bdedd60bc42ac7f5ec3e28f63dbd820b1312147474ba8989c0617c2c6d57b");
    }

    fn path(text: &str) -> RelPath {
        RelPath::new(text).expect("valid")
    }

    #[test]
    fn build_makes_the_objects_that_each_directory_has_by_itself() {
        let file = Entry::new(Kind::File, Hash::of(b"hello\n"));
        let hollow = Entry::new(Kind::Directory, empty());
        let inner = Tree::new(vec![("f".into(), file)]).expect("valid");
        let deep = Entry::new(Kind::Directory, Hash::of(&inner.encode()));
        let outer = Tree::new(vec![("a-b".into(), file), ("a".into(), deep)]).expect("valid");
        let built = build([
            (path("a-b"), file),
            (path("a/f"), file),
            (path("a"), hollow),
        ]);
        assert_eq!(
            built,
            Ok(Built {
                root: Hash::of(&outer.encode()),
                objects: vec![inner.encode(), outer.encode()],
            })
        );
        let bare = build([(path("d"), hollow)]).expect("valid");
        assert_eq!(bare.objects[0], Tree::default().encode());
        assert_eq!(build([]).map(|built| built.root), Ok(empty()));
    }

    #[test]
    fn build_refuses_two_things_at_one_path() {
        let file = Entry::new(Kind::File, Hash::of(b""));
        for pair in [["a", "a"], ["a", "a/b"], ["a/b", "a"]] {
            let both = pair.map(|text| (path(text), file));
            assert_eq!(build(both), Err(BadTree::Duplicate), "{pair:?}");
        }
    }

    #[test]
    fn decode_inverts_encode_and_refuses_every_cut() {
        let bytes = sample().encode();
        assert_eq!(Tree::decode(&bytes), Ok(sample()));
        for cut in 0..bytes.len() {
            assert!(Tree::decode(&bytes[..cut]).is_err(), "cut at {cut}");
        }
        let mut longer = bytes;
        longer.push(0);
        assert!(Tree::decode(&longer).is_err());
    }
}
