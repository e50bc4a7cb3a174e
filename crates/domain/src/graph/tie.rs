//! Edges in memory: tying and untying them, and reading them back as rows.
//! What may be tied was checked before; nothing here refuses.

use super::arena::{Graph, NIL, Node, Side, flag};
use super::rows::{Coherence, Edge, EdgeKind, Link};
use crate::id::ResourceId;

impl Graph {
    /// Says whether there is such an edge.
    pub(super) fn is_linked(&self, parent: u32, child: u32, kind: EdgeKind) -> bool {
        match kind {
            EdgeKind::Contains => self.parents_of(child).any(|one| one == parent),
            EdgeKind::References => {
                let out = self.side(&self.references, parent, flag::REFERENCES);
                let back = self.side(&self.referenced, child, flag::REFERENCED);
                if out.len() <= back.len() {
                    out.contains(&child)
                } else {
                    back.contains(&parent)
                }
            }
            EdgeKind::Manifests => self
                .side(&self.manifested, child, flag::MANIFESTED)
                .contains(&parent),
        }
    }

    pub(super) fn tie(&mut self, parent: u32, child: u32, link: Link) {
        match link {
            Link::Contains => self.tie_contains(parent, child),
            Link::References => {
                self.references.entry(parent).or_default().push(child);
                self.referenced.entry(child).or_default().push(parent);
                self.raise(parent, flag::REFERENCES);
                self.raise(child, flag::REFERENCED);
            }
            Link::Manifests(coherence) => {
                let list = self.manifests.entry(parent).or_default();
                list.push((child, coherence));
                self.manifested.entry(child).or_default().push(parent);
                self.raise(parent, flag::MANIFESTS);
                self.raise(child, flag::MANIFESTED);
            }
        }
    }

    /// Removes an edge that is there; returns what it said.
    pub(super) fn untie(&mut self, parent: u32, child: u32, kind: EdgeKind) -> Link {
        match kind {
            EdgeKind::Contains => {
                self.untie_contains(parent, child);
                Link::Contains
            }
            EdgeKind::References => {
                let emptied = drop_from(&mut self.references, parent, |one| *one == child);
                self.lower(parent, flag::REFERENCES, emptied.1);
                let emptied = drop_from(&mut self.referenced, child, |one| *one == parent);
                self.lower(child, flag::REFERENCED, emptied.1);
                Link::References
            }
            EdgeKind::Manifests => {
                let (taken, empty) = drop_from(&mut self.manifests, parent, |one| one.0 == child);
                self.lower(parent, flag::MANIFESTS, empty);
                let (_, empty) = drop_from(&mut self.manifested, child, |one| *one == parent);
                self.lower(child, flag::MANIFESTED, empty);
                let (_, coherence) = taken.expect("the edge was checked to be there");
                Link::Manifests(coherence)
            }
        }
    }

    /// Returns every edge that touches a node.
    pub(super) fn edges_of(&self, node: u32) -> Vec<Edge> {
        let me = self.ids[node as usize];
        let id = |other: u32| self.ids[other as usize];
        let mut edges: Vec<Edge> = Vec::new();
        edges.extend(self.parents_of(node).map(|up| Edge::contains(id(up), me)));
        edges.extend(self.children_of(node).map(|c| Edge::contains(me, id(c))));
        let out = self.side(&self.references, node, flag::REFERENCES);
        edges.extend(out.iter().map(|to| Edge::references(me, id(*to))));
        let back = self.side(&self.referenced, node, flag::REFERENCED);
        edges.extend(back.iter().map(|from| Edge::references(id(*from), me)));
        let out = self.side(&self.manifests, node, flag::MANIFESTS);
        edges.extend(
            out.iter()
                .map(|(to, how)| Edge::manifests(me, id(*to), *how)),
        );
        for from in self.side(&self.manifested, node, flag::MANIFESTED) {
            if let Some(how) = self.coherence_of(*from, node) {
                edges.push(Edge::manifests(id(*from), me, how));
            }
        }
        edges
    }

    pub(super) fn coherence_of(&self, parent: u32, child: u32) -> Option<Coherence> {
        let list = self.side(&self.manifests, parent, flag::MANIFESTS);
        let found = list.iter().find(|(node, _)| *node == child);
        found.map(|(_, coherence)| *coherence)
    }

    /// Iterates over what a virtual resource manifests as, by id.
    pub fn manifestations(&self, node: Node) -> Vec<(Node, Coherence)> {
        let list = self.side(&self.manifests, node.0, flag::MANIFESTS);
        let mut list: Vec<_> = list.iter().map(|(to, how)| (Node(*to), *how)).collect();
        list.sort_unstable_by_key(|(to, _)| self.id(*to));
        list
    }

    /// Returns the virtual resources that a physical one manifests, by id.
    pub fn virtual_parents(&self, node: Node) -> Vec<Node> {
        let list = self.side(&self.manifested, node.0, flag::MANIFESTED);
        let mut list: Vec<_> = list.iter().copied().map(Node).collect();
        list.sort_unstable_by_key(|virtual_one| self.id(*virtual_one));
        list
    }

    /// Iterates over what a resource references, by id.
    pub fn references(&self, node: Node) -> Vec<Node> {
        let list = self.side(&self.references, node.0, flag::REFERENCES);
        let mut list: Vec<_> = list.iter().copied().map(Node).collect();
        list.sort_unstable_by_key(|to| self.id(*to));
        list
    }

    fn tie_contains(&mut self, parent: u32, child: u32) {
        let first = self.at(child).parent;
        if first == NIL {
            self.push_child(parent, child);
        } else if self.ids[parent as usize] < self.ids[first as usize] {
            self.pull_child(child);
            self.add_more(first, child);
            self.push_child(parent, child);
        } else {
            self.add_more(parent, child);
        }
    }

    fn untie_contains(&mut self, parent: u32, child: u32) {
        if self.at(child).parent != parent {
            self.drop_more(parent, child);
            return;
        }
        self.pull_child(child);
        let more = self.side(&self.more_parents, child, flag::MORE_PARENTS);
        if let Some(next) = more.first().copied() {
            self.drop_more(next, child);
            self.push_child(next, child);
        }
    }

    fn push_child(&mut self, parent: u32, child: u32) {
        let first = self.at(parent).child;
        let hot = &mut self.hot[child as usize];
        (hot.parent, hot.prev, hot.next) = (parent, NIL, first);
        if first != NIL {
            self.hot[first as usize].prev = child;
        }
        self.hot[parent as usize].child = child;
    }

    fn pull_child(&mut self, child: u32) {
        let hot = &mut self.hot[child as usize];
        let (parent, prev, next) = (hot.parent, hot.prev, hot.next);
        (hot.parent, hot.prev, hot.next) = (NIL, NIL, NIL);
        if prev == NIL {
            self.hot[parent as usize].child = next;
        } else {
            self.hot[prev as usize].next = next;
        }
        if next != NIL {
            self.hot[next as usize].prev = prev;
        }
    }

    fn add_more(&mut self, parent: u32, child: u32) {
        let ids = &self.ids;
        let by_id = |node: &u32| -> ResourceId { ids[*node as usize] };
        let list = self.more_parents.entry(child).or_default();
        let at = list.partition_point(|one| by_id(one) < by_id(&parent));
        list.insert(at, parent);
        self.more_children.entry(parent).or_default().push(child);
        self.raise(child, flag::MORE_PARENTS);
        self.raise(parent, flag::MORE_CHILDREN);
    }

    fn drop_more(&mut self, parent: u32, child: u32) {
        let list = self.more_parents.get_mut(&child);
        let list = list.expect("a further parent is listed");
        // The list is ordered: what is taken out leaves no gap.
        list.retain(|one| *one != parent);
        let empty = list.is_empty();
        if empty {
            self.more_parents.remove(&child);
        }
        self.lower(child, flag::MORE_PARENTS, empty);
        let (_, empty) = drop_from(&mut self.more_children, parent, |one| *one == child);
        self.lower(parent, flag::MORE_CHILDREN, empty);
    }

    fn raise(&mut self, node: u32, flag: u16) {
        self.hot[node as usize].flags |= flag;
    }

    fn lower(&mut self, node: u32, flag: u16, when: bool) {
        if when {
            self.hot[node as usize].flags &= !flag;
        }
    }
}

/// Takes the one that fits out of a list; says whether none is left.
fn drop_from<T>(table: &mut Side<T>, key: u32, fits: impl Fn(&T) -> bool) -> (Option<T>, bool) {
    let Some(list) = table.get_mut(&key) else {
        return (None, true);
    };
    let at = list.iter().position(fits);
    let taken = at.map(|at| list.swap_remove(at));
    let empty = list.is_empty();
    if empty {
        table.remove(&key);
    }
    (taken, empty)
}
