//! What a walk found, directory by directory, and the directory objects made
//! of it from the leaves up.

use sandbar_domain::tree::{self, Tree};
use sandbar_domain::{Code, Entry, Hash, Kind, RelPath};
use sandbar_ports::workspace::{FileStat, Tally};
use sandbar_ports::{PortError, PortResult};

/// The most ignored paths that are named.
const NAMED: usize = 1_000;

/// One carried file or symlink.
#[derive(Debug, Clone)]
pub(crate) struct Leaf {
    pub(crate) name: Box<str>,
    pub(crate) entry: Entry,
    /// What `lstat` says of the file the scan read.
    pub(crate) stat: FileStat,
    /// What `lstat` says of the copy that was made.
    pub(crate) copy: Option<FileStat>,
    /// Whether its content is known to be in the object store.
    pub(crate) stored: bool,
    /// Whether it is carried whatever rule files come to say.
    pub(crate) lasting: bool,
}

/// One directory that was entered. Parents come before children.
#[derive(Debug, Default)]
pub(crate) struct Node {
    pub(crate) path: Option<RelPath>,
    pub(crate) parent: Option<usize>,
    /// Kept only if something beneath is carried.
    pub(crate) look: bool,
    /// It vanished before it could be entered.
    pub(crate) gone: bool,
    /// Sorted by name.
    pub(crate) leaves: Vec<Leaf>,
    pub(crate) children: Vec<(Box<str>, usize)>,
    pub(crate) ignored: Vec<Box<str>>,
    pub(crate) unsupported: Vec<(String, String)>,
    /// The files in it are those that the cache knows, all unchanged. Where
    /// `leaves` is empty, they were left there and are counted here.
    pub(crate) same: Option<Same>,
    /// Whether it is carried whatever rule files come to say.
    pub(crate) lasting: bool,
}

/// Files that are what the cache says.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Same {
    /// How many, symlinks among them.
    pub(crate) files: u32,
    /// Their size, symlinks apart.
    pub(crate) bytes: u64,
}

impl Node {
    fn count(&self) -> Same {
        if self.leaves.is_empty() {
            return self.same.unwrap_or_default();
        }
        let files = self.leaves.iter().filter(|leaf| leaf.entry.kind.is_file());
        Same {
            files: u32::try_from(self.leaves.len()).unwrap_or(u32::MAX),
            bytes: files.map(|leaf| leaf.stat.size).sum(),
        }
    }

    pub(crate) fn shown(&self, name: &str) -> String {
        match &self.path {
            Some(path) => format!("{path}/{name}"),
            None => name.to_owned(),
        }
    }
}

/// The directory objects of a walk.
#[derive(Debug)]
pub(crate) struct Assembled {
    pub(crate) nodes: Vec<Node>,
    /// For each node, its directory object; none where it is no part of the tree.
    pub(crate) hashes: Vec<Option<Hash>>,
    pub(crate) tally: Tally,
}

impl Assembled {
    /// Returns the hash of the root directory.
    pub(crate) fn root(&self) -> Hash {
        self.hashes
            .first()
            .copied()
            .flatten()
            .unwrap_or_else(tree::empty)
    }
}

/// Makes the directory objects. `known` may answer with the hash of a node
/// whose content did not change, given the hashes of its children; `list`
/// names the files of one that left them in the cache; `keep` receives every
/// new object.
pub(crate) fn assemble(
    mut nodes: Vec<Node>,
    known: impl Fn(&Node, &[Option<Hash>]) -> Option<Hash>,
    list: impl Fn(&Node) -> Vec<(Box<str>, Entry)>,
    mut keep: impl FnMut(Hash, &[u8]) -> PortResult<()>,
) -> PortResult<Assembled> {
    let mut hashes: Vec<Option<Hash>> = vec![None; nodes.len()];
    let mut tally = Tally::default();
    // Children have higher numbers than their parents.
    for number in (0..nodes.len()).rev() {
        let node = &nodes[number];
        let count = node.count();
        let carried = count.files > 0 || node.children.iter().any(|(_, c)| hashes[*c].is_some());
        if node.gone || (node.look && !carried) {
            drop_look(&mut nodes, number);
            continue;
        }
        tally.files += u64::from(count.files);
        tally.directories += u64::from(node.parent.is_some());
        tally.bytes += count.bytes;
        if let Some(hash) = known(node, &hashes) {
            hashes[number] = Some(hash);
            continue;
        }
        let mut entries: Vec<_> = match node.leaves.is_empty() && count.files > 0 {
            true => list(node),
            false => {
                let of = |leaf: &Leaf| (leaf.name.clone(), leaf.entry);
                node.leaves.iter().map(of).collect()
            }
        };
        entries.extend(node.children.iter().filter_map(|(name, child)| {
            hashes[*child].map(|hash| (name.clone(), Entry::new(Kind::Directory, hash)))
        }));
        let tree = Tree::new(entries).map_err(|error| {
            PortError::new(
                Code::UnstableFile,
                format!("read {}: {error}", node.shown("")),
            )
        })?;
        let bytes = tree.encode();
        let hash = Hash::of(&bytes);
        keep(hash, &bytes)?;
        hashes[number] = Some(hash);
    }
    count_left(&nodes, &mut tally);
    Ok(Assembled {
        nodes,
        hashes,
        tally,
    })
}

/// A directory looked into for nothing counts as one ignored path.
fn drop_look(nodes: &mut [Node], number: usize) {
    let (gone, name) = (nodes[number].gone, nodes[number].path.clone());
    let beneath = !gone;
    nodes[number].ignored.clear();
    if let (true, Some(parent), Some(path)) = (beneath, nodes[number].parent, name) {
        nodes[parent].ignored.push(path.name().into());
    }
}

fn count_left(nodes: &[Node], tally: &mut Tally) {
    for node in nodes {
        tally.ignored += node.ignored.len() as u64;
        for name in &node.ignored {
            if tally.ignored_paths.len() == NAMED {
                break;
            }
            tally.ignored_paths.push(node.shown(name));
        }
        tally.unsupported.extend(node.unsupported.iter().cloned());
    }
    tally.ignored_paths.sort_unstable();
    tally.unsupported.sort_unstable();
}
