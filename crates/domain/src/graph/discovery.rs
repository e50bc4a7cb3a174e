//! Places become resources: what was seen on the way to a path, as changes of
//! the graph (DSC-1, DSC-2).
//!
//! Only the way is added, never what lies beside it. Looking is for others:
//! this decides what a look means.

use std::collections::HashSet;
use std::path::Path;

use super::arena::{Graph, Node};
use super::change::Change;
use super::rows::{Edge, FileId, Resource};
use super::types::Protocol;
use crate::id::ResourceId;

/// What lies at one place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Sort {
    /// The working tree of a repository.
    Checkout {
        /// Its git directory.
        git_dir: String,
    },
    /// The working tree of a submodule.
    Submodule {
        /// Its git directory.
        git_dir: String,
    },
    /// A plain directory.
    Directory,
    /// A file.
    File,
    /// A symbolic link, wherever it leads.
    Symlink,
}

impl Sort {
    /// Returns the type of such a resource.
    pub fn type_name(&self) -> &'static str {
        match self {
            Self::Checkout { .. } => CHECKOUT,
            Self::Submodule { .. } => SUBMODULE,
            Self::Directory => DIRECTORY,
            Self::File => "fs-file",
            Self::Symlink => "fs-symlink",
        }
    }

    fn git_dir(&self) -> Option<&str> {
        match self {
            Self::Checkout { git_dir } | Self::Submodule { git_dir } => Some(git_dir),
            Self::Directory | Self::File | Self::Symlink => None,
        }
    }
}

/// One place on the way to a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sight {
    /// The absolute, resolved path.
    pub path: String,
    /// What lies there.
    pub sort: Sort,
    /// The file or directory itself.
    pub file: FileId,
    /// The id that it gets where the graph has none yet.
    pub id: ResourceId,
}

/// Why a path has no place in the graph.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NotPlaced {
    /// It lies in no registered root.
    #[error("it lies in no registered root")]
    NoRoot,
    /// It lies in the repository's own data.
    #[error("it is part of a repository's own data")]
    InGit,
}

const CHECKOUT: &str = "git-checkout";
const SUBMODULE: &str = "git-submodule";
const DIRECTORY: &str = "fs-directory";
const GIT: &str = "git";

impl Graph {
    /// Finds what the graph has at an absolute path; of a checkout and its
    /// root directory, the checkout. Never looks at a file system.
    pub fn at_path(&self, path: &str) -> Option<Node> {
        let mut names = Vec::new();
        let mut above = Path::new(path);
        let mut at = loop {
            if let Some(node) = above.to_str().and_then(|path| self.at_place(path)) {
                break node;
            }
            names.push(above.file_name()?.to_str()?);
            above = above.parent()?;
        };
        for name in names.into_iter().rev() {
            at = self.child_named(self.inside(at), name)?;
        }
        Some(at)
    }

    /// Returns what contains the children of a place: of a checkout its root
    /// directory.
    pub fn inside(&self, node: Node) -> Node {
        if self.is_working_tree(node) {
            let own = self.see(node).location();
            let mut inner = self.children(node).filter(|child| {
                let seen = self.see(*child);
                seen.type_name() == DIRECTORY && seen.location() == own
            });
            return inner.next().unwrap_or(node);
        }
        node
    }

    /// Returns the changes that bring the last of these places, seen from the
    /// top of the file system down, and its id. With `root`, the place of that
    /// number becomes a root if it lies in none. What is something else by now
    /// is replaced, with all it contained. Errors: [`NotPlaced`].
    pub fn discover(
        &self,
        sights: &[Sight],
        root: Option<usize>,
        mut new_id: impl FnMut() -> ResourceId,
    ) -> Result<(Vec<Change>, ResourceId), NotPlaced> {
        let known = sights
            .iter()
            .position(|sight| self.at_place(&sight.path).is_some());
        let first = match (known, root) {
            (Some(known), Some(root)) => known.min(root),
            (Some(one), None) | (None, Some(one)) => one,
            (None, None) => return Err(NotPlaced::NoRoot),
        };
        let mut changes = Vec::new();
        // The directory that contains the next place, and its node if known.
        let mut parent: Option<(ResourceId, Option<Node>)> = None;
        let mut last = None;
        let mut gone: HashSet<ResourceId> = HashSet::new();
        for sight in &sights[first..] {
            let name = name_of(&sight.path);
            if name == ".git" && parent.is_some() {
                return Err(NotPlaced::InGit);
            }
            let beneath = parent
                .and_then(|(_, node)| node)
                .and_then(|node| self.child_named(node, name));
            let found = beneath.or_else(|| self.at_place(&sight.path));
            let found = found.filter(|node| !gone.contains(&self.id(*node)));
            let fitting = found.filter(|node| self.may_become(*node, &sight.sort));
            if let Some(node) = found.filter(|_| fitting.is_none()) {
                let removal = self.removal(self.id(node));
                gone.extend(removal.iter().filter_map(|change| match change {
                    Change::Remove(id) => Some(*id),
                    _ => None,
                }));
                changes.extend(removal);
            }
            let id = fitting.map_or(sight.id, |node| self.id(node));
            self.describe_place(sight, fitting, parent.is_none(), id, &mut changes);
            if let Some((above, known)) = parent {
                let linked = fitting
                    .zip(known)
                    .is_some_and(|(node, above)| self.parents(node).any(|up| up == above));
                if !linked {
                    changes.push(Change::Link(Edge::contains(above, id)));
                }
            }
            parent = Some(match sight.sort.git_dir() {
                Some(git_dir) => {
                    self.furnish(sight, git_dir, fitting, id, &mut new_id, &mut changes)
                }
                None => (id, fitting),
            });
            last = Some(id);
        }
        last.map(|id| (changes, id)).ok_or(NotPlaced::NoRoot)
    }

    /// Puts the row of a place, unless it says all already.
    fn describe_place(
        &self,
        sight: &Sight,
        known: Option<Node>,
        top: bool,
        id: ResourceId,
        changes: &mut Vec<Change>,
    ) {
        let type_name = sight.sort.type_name();
        let old = known.map(|node| self.row(node));
        let mut row = old.clone().unwrap_or_else(|| {
            let mut row = Resource::new(id, type_name, name_of(&sight.path));
            if top || sight.sort.git_dir().is_some() {
                row.location = Some(sight.path.clone());
            }
            row
        });
        row.type_name = type_name.to_owned();
        if row.location.is_some() {
            row.file = Some(sight.file);
        }
        if old.as_ref() != Some(&row) {
            changes.push(Change::Put(row));
        }
    }

    /// Brings the repository and the root directory of a checkout; returns
    /// that directory.
    fn furnish(
        &self,
        sight: &Sight,
        git_dir: &str,
        known: Option<Node>,
        id: ResourceId,
        new_id: &mut impl FnMut() -> ResourceId,
        changes: &mut Vec<Change>,
    ) -> (ResourceId, Option<Node>) {
        let git = known.and_then(|node| {
            let mut all = self.children(node);
            all.find(|child| self.see(*child).type_name() == GIT)
        });
        match git {
            Some(git) if self.see(git).location() == Some(git_dir) => {}
            Some(git) => changes.push(Change::Put(self.row(git).at(git_dir))),
            None => {
                let git = new_id();
                changes.push(Change::Put(Resource::new(git, GIT, ".git").at(git_dir)));
                changes.push(Change::Link(Edge::contains(id, git)));
            }
        }
        let inner = known.map(|node| (node, self.inside(node)));
        if let Some((_, inner)) = inner.filter(|(node, inner)| node != inner) {
            return (self.id(inner), Some(inner));
        }
        let inner = new_id();
        let row = Resource::new(inner, DIRECTORY, ".").at(&sight.path);
        changes.push(Change::Put(row));
        changes.push(Change::Link(Edge::contains(id, inner)));
        (inner, None)
    }

    /// Says whether a resource can stay what it is, or only changes its type.
    fn may_become(&self, node: Node, sort: &Sort) -> bool {
        let now = self.see(node).type_name();
        now == sort.type_name() || self.is_working_tree(node) && sort.git_dir().is_some()
    }

    fn is_working_tree(&self, node: Node) -> bool {
        matches!(self.see(node).type_name(), CHECKOUT | SUBMODULE)
    }

    /// Finds what says of itself that it lies at `path`.
    fn at_place(&self, path: &str) -> Option<Node> {
        let here = |node: &Node| {
            let seen = self.see(*node);
            seen.location() == Some(path) && seen.kind().protocol == Protocol::Filesystem
        };
        let mut outer = self.nodes().filter(here);
        outer.find(|node| !self.parents(*node).any(|up| here(&up)))
    }

    fn child_named(&self, node: Node, name: &str) -> Option<Node> {
        let fits = |child: &Node| self.see(*child).name() == name;
        let mut all: Vec<Node> = self.children(node).filter(fits).collect();
        all.sort_unstable_by_key(|child| self.id(*child));
        all.first().copied()
    }
}

fn name_of(path: &str) -> &str {
    let name = Path::new(path).file_name();
    name.and_then(std::ffi::OsStr::to_str).unwrap_or(path)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::Registry;

    /// Numbers ids from 1,000 on, and the sights from 1.
    fn ids() -> impl FnMut() -> ResourceId {
        let mut next = 999;
        move || {
            next += 1;
            ResourceId::from_parts(1, next)
        }
    }

    fn sights(from: u128, all: &[(&str, Sort)]) -> Vec<Sight> {
        (from..)
            .zip(all)
            .map(|(number, (path, sort))| Sight {
                path: (*path).to_owned(),
                sort: sort.clone(),
                file: FileId {
                    device: 1,
                    inode: 1,
                },
                id: ResourceId::from_parts(1, number),
            })
            .collect()
    }

    fn checkout(path: &str) -> Sort {
        Sort::Checkout {
            git_dir: format!("{path}/.git"),
        }
    }

    fn apply(graph: &mut Graph, sights: &[Sight], root: Option<usize>) -> ResourceId {
        let (changes, id) = graph.discover(sights, root, ids()).expect("it is placed");
        graph.apply(&changes).expect("it is allowed");
        let (again, same) = graph.discover(sights, root, ids()).expect("it is placed");
        assert_eq!(
            (again, same),
            (Vec::new(), id),
            "a second look adds nothing"
        );
        id
    }

    fn boundary(graph: &Graph, path: &str) -> Option<String> {
        let node = graph.at_path(path).expect("it is known");
        graph.boundary(node).and_then(|node| graph.location(node))
    }

    #[test]
    fn only_the_way_is_added() {
        let mut graph = Graph::new(Registry::builtin());
        let way = sights(
            1,
            &[
                ("/", Sort::Directory),
                ("/w", checkout("/w")),
                ("/w/a", Sort::Directory),
                ("/w/a/f", Sort::File),
            ],
        );
        assert_eq!(graph.discover(&way, None, ids()), Err(NotPlaced::NoRoot));
        apply(&mut graph, &way, Some(1));
        // The checkout, its repository, its root directory, the way.
        assert_eq!(graph.len(), 5);
        assert_eq!(boundary(&graph, "/w/a/f").as_deref(), Some("/w"));
        assert_eq!(graph.at_path("/w/b"), None);
        assert_eq!(graph.at_path("/"), None);
    }

    #[test]
    fn what_became_a_checkout_is_replaced_and_back() {
        let mut graph = Graph::new(Registry::builtin());
        let plain = [
            ("/w", Sort::Directory),
            ("/w/a", Sort::Directory),
            ("/w/a/f", Sort::File),
        ];
        let mut nested = plain.clone();
        nested[1].1 = checkout("/w/a");
        for round in 0..3 {
            let from = 10 * (round + 1);
            apply(&mut graph, &sights(from, &plain), Some(0));
            assert_eq!(boundary(&graph, "/w/a/f").as_deref(), Some("/w"));
            assert_eq!(graph.len(), 3);
            let (changes, _) = graph
                .discover(&sights(from + 5, &nested), None, {
                    let mut next = 2_000 * (round + 1);
                    move || {
                        next += 1;
                        ResourceId::from_parts(1, next)
                    }
                })
                .expect("it is placed");
            graph.apply(&changes).expect("it is allowed");
            assert_eq!(boundary(&graph, "/w/a/f").as_deref(), Some("/w/a"));
            assert_eq!(graph.len(), 5);
        }
    }

    #[test]
    fn a_root_inside_a_later_root_keeps_its_id() {
        let mut graph = Graph::new(Registry::builtin());
        let inner = [("/w/a", checkout("/w/a"))];
        let id = apply(&mut graph, &sights(1, &inner), Some(0));
        let outer = [("/w", Sort::Directory), inner[0].clone()];
        assert_eq!(apply(&mut graph, &sights(50, &outer), Some(0)), id);
        let node = graph.node(id).expect("it is known");
        assert_eq!(graph.parents(node).count(), 1);
    }

    #[test]
    fn a_checkout_that_is_a_submodule_after_all_only_changes_its_type() {
        let mut graph = Graph::new(Registry::builtin());
        let git_dir = "/w/.git".to_owned();
        let one = [(
            "/w",
            Sort::Checkout {
                git_dir: git_dir.clone(),
            },
        )];
        let id = apply(&mut graph, &sights(1, &one), Some(0));
        let other = [("/w", Sort::Submodule { git_dir })];
        assert_eq!(apply(&mut graph, &sights(20, &other), Some(0)), id);
        let node = graph.node(id).expect("it is known");
        assert_eq!(graph.see(node).type_name(), "git-submodule");
        assert_eq!(graph.len(), 3);
    }

    #[test]
    fn the_data_of_a_repository_has_no_place() {
        let mut graph = Graph::new(Registry::builtin());
        let way = [("/w", checkout("/w")), ("/w/.git", Sort::Directory)];
        apply(&mut graph, &sights(1, &way[..1]), Some(0));
        let found = graph.discover(&sights(1, &way), None, ids());
        assert_eq!(found, Err(NotPlaced::InGit));
    }
}
