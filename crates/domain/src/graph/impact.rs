//! Change propagation: what else is affected when something changed, with a
//! guaranteed end (CHG-1, CHG-2).
//!
//! Whether an identity changed is for [`Identities`] to say; nothing here
//! hashes. The cascade goes up where an identity changed and stops where it
//! did not. Each resource is looked at once a pass, so it ends.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, HashSet};

use super::arena::{Graph, Node};
use super::rows::Coherence;
use crate::id::ResourceId;

/// Whether a resource is still what it was.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Identity {
    /// It has the identity it had.
    Unchanged,
    /// It has another one.
    Changed,
    /// It cannot be said yet; counts as changed, and is to be asked again.
    Unknown,
}

/// Says whether identities changed.
pub trait Identities {
    /// Looks at one resource. Asked at most once a pass for each.
    fn look(&mut self, resource: ResourceId) -> Identity;
}

/// Takes every identity for changed: the most that can follow.
#[derive(Debug, Clone, Copy, Default)]
pub struct AnyChange;

impl Identities for AnyChange {
    fn look(&mut self, _: ResourceId) -> Identity {
        Identity::Changed
    }
}

impl<F: FnMut(ResourceId) -> Identity> Identities for F {
    fn look(&mut self, resource: ResourceId) -> Identity {
        self(resource)
    }
}

/// How something was changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Touch {
    /// Its content.
    Content,
    /// The mode of a directory, which bears on all it contains.
    Mode,
}

/// How something is affected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum What {
    /// It is what was changed.
    Changed,
    /// It contains what was changed: its status changes.
    Status,
    /// It is contained in what changed its mode.
    Mode,
    /// It shares the storage: to be checked by hash.
    Check,
    /// It caches the content: to be refreshed.
    Refresh,
    /// It is a copy of its own: its equivalence no longer holds by itself.
    Invalidate,
    /// It is a virtual resource whose identity is to be evaluated again.
    Reevaluate,
}

impl What {
    /// Returns the word of the output contract.
    pub fn word(self) -> &'static str {
        match self {
            Self::Changed => "changed",
            Self::Status => "status",
            Self::Mode => "mode",
            Self::Check => "check",
            Self::Refresh => "refresh",
            Self::Invalidate => "invalidate",
            Self::Reevaluate => "reevaluate",
        }
    }
}

/// One affected resource.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Effect {
    /// What is affected.
    pub resource: ResourceId,
    /// How.
    pub what: What,
    /// What it follows from; itself for what was changed.
    pub because: ResourceId,
}

/// Everything that one change leads to.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Impact {
    /// What is affected, children before parents; then the siblings that the
    /// change stops at, then what is contained in a changed mode.
    pub effects: Vec<Effect>,
    /// The virtual resources to evaluate again, each once, parents of what
    /// manifests them before children.
    pub identities: Vec<Effect>,
    /// What could not be identified yet.
    pub pending: Vec<ResourceId>,
    /// What was looked at before something else of the same pass bore on it:
    /// only through storage that is shared across places. To be passed again.
    pub again: Vec<ResourceId>,
}

impl Graph {
    /// Reports what changes lead to, in lifecycle order (CHG-1). Cost follows
    /// what is affected, not the size of the graph (CHG-2). A virtual resource
    /// stands for all that manifests it.
    pub fn impact(&self, touched: &[(Node, Touch)], identities: &mut dyn Identities) -> Impact {
        let mut pass = Cascade {
            graph: self,
            impact: Impact::default(),
            queue: BinaryHeap::new(),
            queued: HashMap::new(),
            done: HashSet::new(),
            told: HashSet::new(),
            stops: Vec::new(),
            depths: HashMap::new(),
        };
        for (node, _) in touched {
            if !self.is_virtual(node.0) {
                pass.enqueue(*node, What::Changed, *node);
            }
            for (manifestation, _) in self.manifestations(*node) {
                pass.enqueue(manifestation, What::Check, *node);
            }
        }
        while let Some((_, Reverse(id))) = pass.queue.pop() {
            if let Some(node) = self.node(id) {
                pass.look(node, identities);
            }
        }
        for (node, what, because) in std::mem::take(&mut pass.stops) {
            pass.tell(node, what, because);
        }
        for (node, _) in touched.iter().filter(|(_, touch)| *touch == Touch::Mode) {
            for below in self.descendants(*node).skip(1) {
                pass.tell(below, What::Mode, *node);
            }
        }
        pass.impact.identities.reverse();
        pass.impact
    }
}

struct Cascade<'a> {
    graph: &'a Graph,
    impact: Impact,
    /// Deepest first, so that children come before parents; then by id.
    queue: BinaryHeap<(u32, Reverse<ResourceId>)>,
    queued: HashMap<Node, (What, Node)>,
    done: HashSet<Node>,
    told: HashSet<Node>,
    /// Siblings that the change stops at, unless it comes to them otherwise.
    stops: Vec<(Node, What, Node)>,
    depths: HashMap<Node, u32>,
}

impl Cascade<'_> {
    fn enqueue(&mut self, node: Node, what: What, because: Node) {
        if self.done.contains(&node) {
            if what == What::Status {
                let id = self.graph.id(node);
                if !self.impact.again.contains(&id) {
                    self.impact.again.push(id);
                }
            }
            return;
        }
        if let std::collections::hash_map::Entry::Vacant(new) = self.queued.entry(node) {
            new.insert((what, because));
            let depth = self.depth(node);
            self.queue.push((depth, Reverse(self.graph.id(node))));
        }
    }

    /// Notes how something is affected, once.
    fn tell(&mut self, node: Node, what: What, because: Node) {
        if !self.told.insert(node) {
            return;
        }
        let effect = Effect {
            resource: self.graph.id(node),
            what,
            because: self.graph.id(because),
        };
        match what {
            What::Reevaluate => self.impact.identities.push(effect),
            _ => self.impact.effects.push(effect),
        }
    }

    fn look(&mut self, node: Node, identities: &mut dyn Identities) {
        if !self.done.insert(node) {
            return;
        }
        let graph = self.graph;
        let (what, because) = self.queued[&node];
        self.tell(node, what, because);
        // What has no identity of its own passes the change on.
        if graph.see(node).kind().equivalence.is_some() {
            match identities.look(graph.id(node)) {
                Identity::Unchanged => return,
                Identity::Changed => {}
                Identity::Unknown => self.impact.pending.push(graph.id(node)),
            }
        }
        for virtual_one in graph.virtual_parents(node) {
            self.tell(virtual_one, What::Reevaluate, node);
            for (sibling, coherence) in graph.manifestations(virtual_one) {
                if sibling == node {
                    continue;
                }
                let shared = graph.coherence_of(virtual_one.0, node.0);
                match coherence {
                    // Shared storage is shared by both ends.
                    Coherence::Transparent if shared == Some(Coherence::Transparent) => {
                        self.enqueue(sibling, What::Check, node);
                    }
                    Coherence::Transparent => self.stops.push((sibling, What::Check, node)),
                    Coherence::Cached => self.stops.push((sibling, What::Refresh, node)),
                    Coherence::Independent(_) => {
                        self.stops.push((sibling, What::Invalidate, node));
                    }
                }
            }
        }
        for parent in graph.parents(node) {
            self.enqueue(parent, What::Status, node);
        }
    }

    /// Returns the length of the longest way from the top, so that whatever
    /// contains something is less deep.
    fn depth(&mut self, node: Node) -> u32 {
        let mut stack = vec![node];
        while let Some(at) = stack.last().copied() {
            if self.depths.contains_key(&at) {
                stack.pop();
                continue;
            }
            let parents: Vec<_> = self.graph.parents(at).collect();
            let open = parents.iter().filter(|up| !self.depths.contains_key(up));
            let before = stack.len();
            stack.extend(open);
            if stack.len() == before {
                let above = parents.iter().filter_map(|up| self.depths.get(up));
                let depth = above.max().map_or(0, |deepest| deepest + 1);
                self.depths.insert(at, depth);
            }
        }
        self.depths[&node]
    }
}
