//! Ways over `contains`: parents, children, ancestors with the way to them,
//! descendants. Lazy; nothing is visited twice.

use std::collections::{HashSet, VecDeque};

use super::arena::{Graph, NIL, Node, flag};

impl Graph {
    /// Iterates over the `contains` parents, by id.
    pub fn parents(&self, node: Node) -> impl Iterator<Item = Node> {
        self.parents_of(node.0).map(Node)
    }

    /// Iterates over the `contains` children, in no order.
    pub fn children(&self, node: Node) -> impl Iterator<Item = Node> {
        self.children_of(node.0).map(Node)
    }

    /// Iterates over the `contains` descendants, the resource itself first,
    /// each once, parents before the children that were reached through them.
    pub fn descendants(&self, node: Node) -> Descendants<'_> {
        Descendants {
            graph: self,
            stack: vec![node.0],
            twice: HashSet::new(),
            within: None,
        }
    }

    /// Iterates over the `contains` ancestors, the resource itself first, by
    /// distance, each once with a shortest way to it.
    pub fn ancestors(&self, node: Node) -> Ancestors<'_> {
        Ancestors {
            graph: self,
            trail: vec![(node.0, NIL)],
            at: 0,
            seen: HashSet::new(),
            forked: false,
        }
    }

    pub(super) fn parents_of(&self, node: u32) -> impl Iterator<Item = u32> {
        let first = Some(self.at(node).parent).filter(|parent| *parent != NIL);
        let more = self.side(&self.more_parents, node, flag::MORE_PARENTS);
        first.into_iter().chain(more.iter().copied())
    }

    pub(super) fn children_of(&self, node: u32) -> impl Iterator<Item = u32> {
        let more = self.side(&self.more_children, node, flag::MORE_CHILDREN);
        let first = Some(self.at(node).child).filter(|child| *child != NIL);
        std::iter::successors(first, |child| {
            Some(self.at(*child).next).filter(|next| *next != NIL)
        })
        .chain(more.iter().copied())
    }

    /// Says whether `child` may be reached from `parent` over `contains` and
    /// `references`, by walking up.
    pub(super) fn leads(&self, parent: u32, child: u32) -> bool {
        let leaf = |node: u32| {
            self.at(node).child == NIL && !self.has(node, flag::MORE_CHILDREN | flag::REFERENCES)
        };
        if parent == child {
            return true;
        }
        if leaf(parent) {
            return false;
        }
        let mut seen = HashSet::new();
        let mut queue = VecDeque::from([child]);
        while let Some(node) = queue.pop_front() {
            let referenced = self.side(&self.referenced, node, flag::REFERENCED);
            for up in self.parents_of(node).chain(referenced.iter().copied()) {
                if up == parent {
                    return true;
                }
                if seen.insert(up) {
                    queue.push_back(up);
                }
            }
        }
        false
    }
}

/// See [`Graph::descendants`].
pub struct Descendants<'a> {
    graph: &'a Graph,
    stack: Vec<u32>,
    /// Only what has several parents can be met twice.
    twice: HashSet<u32>,
    /// Only what has this boundary.
    within: Option<u32>,
}

impl Descendants<'_> {
    /// Leaves out, with everything beneath, what has another boundary.
    pub(super) fn within(mut self, boundary: u32) -> Self {
        self.within = Some(boundary);
        self
    }
}

impl Iterator for Descendants<'_> {
    type Item = Node;

    fn next(&mut self) -> Option<Node> {
        let graph = self.graph;
        loop {
            let node = self.stack.pop()?;
            let outside = self.within.is_some_and(|b| graph.at(node).boundary != b);
            if outside || graph.has(node, flag::MORE_PARENTS) && !self.twice.insert(node) {
                continue;
            }
            self.stack.extend(graph.children_of(node));
            return Some(Node(node));
        }
    }
}

/// See [`Graph::ancestors`].
pub struct Ancestors<'a> {
    graph: &'a Graph,
    /// Nodes met, each with the place in the trail that it was met from.
    trail: Vec<(u32, u32)>,
    at: usize,
    seen: HashSet<u32>,
    forked: bool,
}

impl Ancestors<'_> {
    /// Returns the way from the ancestor returned last down to the start.
    pub fn path(&self) -> Vec<Node> {
        let mut path = Vec::new();
        let mut at = self.at.wrapping_sub(1);
        while let Some((node, from)) = self.trail.get(at) {
            path.push(Node(*node));
            at = if *from == NIL {
                usize::MAX
            } else {
                *from as usize
            };
        }
        path
    }
}

impl Iterator for Ancestors<'_> {
    type Item = Node;

    fn next(&mut self) -> Option<Node> {
        let (node, _) = *self.trail.get(self.at)?;
        let from = self.at as u32;
        self.at += 1;
        let graph = self.graph;
        if !self.forked && graph.has(node, flag::MORE_PARENTS) {
            // From here on ways can meet again.
            self.forked = true;
            self.seen.extend(self.trail.iter().map(|(node, _)| *node));
        }
        for parent in graph.parents_of(node) {
            if !self.forked || self.seen.insert(parent) {
                self.trail.push((parent, from));
            }
        }
        Some(Node(node))
    }
}
