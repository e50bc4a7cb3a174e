//! Labels: each node's nearest boundary and how far it is (SBX-1, SBX-3).
//!
//! A label follows from the node and the labels of its `contains` parents. A
//! change relabels downwards until nothing changes any more, so the labels of
//! a graph are always those of its definition.

use std::collections::{BTreeSet, VecDeque};

use super::arena::{Graph, NIL, flag};
use super::capability::Capabilities;
use super::policy::{Policy, PolicySource};
use super::refusal::Refusal;

/// What a node's parents say about it.
pub(super) struct Judged {
    pub(super) boundary: u32,
    pub(super) distance: u32,
    pub(super) own: bool,
    /// Another boundary at the same distance.
    pub(super) rival: Option<u32>,
}

impl Graph {
    /// Returns the policy that holds, and why (RES-2).
    pub(super) fn policy_of(&self, node: u32, inside: bool) -> (Policy, PolicySource) {
        if let Some(policy) = self.detail(node).and_then(|detail| detail.policy) {
            return (policy, PolicySource::Instance);
        }
        let of_type = self.registry.resolved(self.at(node).kind);
        if of_type.inherits_inside && inside {
            (Policy::Inherit, PolicySource::Inside)
        } else {
            (of_type.policy, of_type.source)
        }
    }

    /// Says whether a parent lies within a boundary.
    pub(super) fn is_inside(&self, node: u32) -> bool {
        self.parents_of(node)
            .any(|parent| self.at(parent).boundary != NIL)
    }

    pub(super) fn judge(&self, node: u32) -> Judged {
        let (mut boundary, mut distance, mut rival) = (NIL, 0, None);
        for parent in self.parents_of(node) {
            let hot = self.at(parent);
            if hot.boundary == NIL {
                continue;
            }
            let further = hot.distance + 1;
            if boundary == NIL || further < distance {
                (boundary, distance, rival) = (hot.boundary, further, None);
            } else if further == distance && hot.boundary != boundary {
                let lower = self.ids[hot.boundary as usize] < self.ids[boundary as usize];
                rival = Some(if lower { boundary } else { hot.boundary });
                if lower {
                    boundary = hot.boundary;
                }
            }
        }
        let can = self.capabilities(node).has(Capabilities::SANDBOXABLE);
        let inside = boundary != NIL;
        if can && matches!(self.policy_of(node, inside).0, Policy::Own(_)) {
            return Judged {
                boundary: node,
                distance: 0,
                own: true,
                rival: None,
            };
        }
        Judged {
            boundary,
            distance,
            own: false,
            rival,
        }
    }

    /// Writes a label; says whether it differs from the one before.
    pub(super) fn set_label(&mut self, node: u32, judged: &Judged) -> bool {
        let hot = &mut self.hot[node as usize];
        let same = hot.boundary == judged.boundary && hot.distance == judged.distance;
        hot.boundary = judged.boundary;
        hot.distance = judged.distance;
        hot.flags = if judged.own {
            hot.flags | flag::BOUNDARY
        } else {
            hot.flags & !flag::BOUNDARY
        };
        !same
    }

    /// Relabels these nodes and whatever follows from them; returns those that
    /// have two nearest boundaries now. A node is judged again whenever a
    /// parent changed, so the last judgement of each is the valid one.
    pub(super) fn relabel(&mut self, start: impl IntoIterator<Item = u32>) -> BTreeSet<u32> {
        let mut ambiguous = BTreeSet::new();
        let mut queue: VecDeque<u32> = start.into_iter().collect();
        let mut children = Vec::new();
        while let Some(node) = queue.pop_front() {
            let judged = self.judge(node);
            if judged.rival.is_some() {
                ambiguous.insert(node);
            } else if !ambiguous.is_empty() {
                ambiguous.remove(&node);
            }
            if self.set_label(node, &judged) {
                children.clear();
                children.extend(self.children_of(node));
                queue.extend(&children);
            }
        }
        ambiguous
    }

    /// Makes the refusal for the lowest id among these.
    pub(super) fn ambiguity(&self, nodes: impl IntoIterator<Item = u32>) -> Option<Refusal> {
        let node = nodes
            .into_iter()
            .min_by_key(|node| self.ids[*node as usize])?;
        let judged = self.judge(node);
        Some(Refusal::Ambiguous {
            resource: Box::new(self.end(node)),
            first: Box::new(self.end(judged.boundary)),
            second: Box::new(self.end(judged.rival?)),
        })
    }
}
