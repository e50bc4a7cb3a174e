//! Lifecycle orders: which boundary first (DAG-4).

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, HashMap};

use super::arena::{Graph, Node, flag};
use crate::id::ResourceId;

/// What is done to several boundaries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Operation {
    /// Making sandboxes.
    Create,
    /// Going back to a checkpoint.
    Rollback,
    /// Finding resources.
    Discover,
    /// Bringing results back.
    Apply,
    /// Removing sandboxes.
    CleanUp,
    /// Looking at what changed, then at what follows from it.
    Refresh,
}

/// Which way edges are followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Direction {
    /// Parents before children.
    ParentsFirst,
    /// Children before parents.
    ChildrenFirst,
}

impl Operation {
    /// Every operation.
    pub const ALL: [Self; 6] = [
        Self::Create,
        Self::Rollback,
        Self::Discover,
        Self::Apply,
        Self::CleanUp,
        Self::Refresh,
    ];

    /// Returns the passes it takes.
    pub fn directions(self) -> &'static [Direction] {
        match self {
            Self::Create | Self::Rollback | Self::Discover => &[Direction::ParentsFirst],
            Self::Apply | Self::CleanUp => &[Direction::ChildrenFirst],
            Self::Refresh => &[Direction::ChildrenFirst, Direction::ParentsFirst],
        }
    }
}

/// One pass over the part asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pass {
    /// Which way.
    pub direction: Direction,
    /// Independent components, by their first member's id; each in order.
    pub components: Vec<Vec<ResourceId>>,
}

impl Pass {
    /// Returns one order over all components.
    pub fn flat(&self) -> Vec<ResourceId> {
        self.components.concat()
    }
}

impl Graph {
    /// Orders a part of the graph for an operation. One comes before another
    /// when a way over `contains` and `references` leads from it, whatever
    /// lies between; ties go to the lower id. What is named twice counts once.
    pub fn order(&self, operation: Operation, part: &[Node]) -> Vec<Pass> {
        let directions = operation.directions().iter();
        directions.map(|way| self.pass(*way, part)).collect()
    }

    /// Returns every boundary, by id.
    pub fn all_boundaries(&self) -> Vec<Node> {
        let mut all: Vec<_> = self.nodes().filter(|n| self.is_boundary(*n)).collect();
        all.sort_unstable_by_key(|node| self.id(*node));
        all
    }

    pub(super) fn pass(&self, direction: Direction, part: &[Node]) -> Pass {
        let region = Region::above(self, part);
        let order = region.sort(self, direction);
        let roots = region.components(&order, direction);
        let mut components: BTreeMap<usize, Vec<ResourceId>> = BTreeMap::new();
        for at in order.into_iter().filter(|at| region.asked[*at]) {
            let id = self.ids[region.nodes[at] as usize];
            components.entry(roots[at]).or_default().push(id);
        }
        let mut components: Vec<_> = components.into_values().collect();
        components.sort_unstable_by_key(|members| members.iter().min().copied());
        Pass {
            direction,
            components,
        }
    }
}

/// The part asked for and everything above it: all ways between its members
/// lie in it.
struct Region {
    nodes: Vec<u32>,
    /// Whether it was asked for.
    asked: Vec<bool>,
    /// Places of the parents.
    above: Vec<Vec<usize>>,
    below: Vec<Vec<usize>>,
}

impl Region {
    fn above(graph: &Graph, part: &[Node]) -> Self {
        let mut places: HashMap<u32, usize> = HashMap::new();
        let mut region = Self {
            nodes: Vec::new(),
            asked: Vec::new(),
            above: Vec::new(),
            below: Vec::new(),
        };
        for node in part {
            let next = region.nodes.len();
            if *places.entry(node.0).or_insert(next) == next {
                region.nodes.push(node.0);
            }
        }
        region.asked = vec![true; region.nodes.len()];
        let mut at = 0;
        while at < region.nodes.len() {
            let node = region.nodes[at];
            let references = graph.side(&graph.referenced, node, flag::REFERENCED);
            let mut above = Vec::new();
            for up in graph.parents_of(node).chain(references.iter().copied()) {
                let next = region.nodes.len();
                let place = *places.entry(up).or_insert(next);
                if place == next {
                    region.nodes.push(up);
                    region.asked.push(false);
                }
                above.push(place);
            }
            region.above.push(above);
            at += 1;
        }
        region.below = vec![Vec::new(); region.nodes.len()];
        for (at, above) in region.above.iter().enumerate() {
            for up in above {
                region.below[*up].push(at);
            }
        }
        region
    }

    /// Sorts topologically. What was not asked for goes as early as it can, so
    /// that among the asked the lowest id possible is always next.
    fn sort(&self, graph: &Graph, direction: Direction) -> Vec<usize> {
        let (before, after) = match direction {
            Direction::ParentsFirst => (&self.above, &self.below),
            Direction::ChildrenFirst => (&self.below, &self.above),
        };
        let mut waiting: Vec<usize> = before.iter().map(Vec::len).collect();
        let rank = |at: usize| (self.asked[at], graph.ids[self.nodes[at] as usize], at);
        let mut ready: BinaryHeap<Reverse<(bool, ResourceId, usize)>> = (0..self.nodes.len())
            .filter(|at| waiting[*at] == 0)
            .map(|at| Reverse(rank(at)))
            .collect();
        let mut order = Vec::with_capacity(self.nodes.len());
        while let Some(Reverse((_, _, at))) = ready.pop() {
            order.push(at);
            for next in &after[at] {
                waiting[*next] -= 1;
                if waiting[*next] == 0 {
                    ready.push(Reverse(rank(*next)));
                }
            }
        }
        order
    }

    /// Returns for each place what stands for its component: members are
    /// together when one comes before the other, not for having an ancestor in
    /// common that nobody asked for.
    fn components(&self, order: &[usize], direction: Direction) -> Vec<usize> {
        let mut roots: Vec<usize> = (0..self.nodes.len()).collect();
        let mut below_asked = self.asked.clone();
        let mut parents_first = order.to_vec();
        if direction == Direction::ChildrenFirst {
            parents_first.reverse();
        }
        for at in parents_first {
            for up in &self.above[at] {
                if below_asked[*up] {
                    below_asked[at] = true;
                    let (a, b) = (find(&mut roots, at), find(&mut roots, *up));
                    roots[a] = b;
                }
            }
        }
        (0..roots.len()).map(|at| find(&mut roots, at)).collect()
    }
}

fn find(roots: &mut [usize], mut at: usize) -> usize {
    while roots[at] != at {
        roots[at] = roots[roots[at]];
        at = roots[at];
    }
    at
}
