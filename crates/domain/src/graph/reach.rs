//! Reach: what a bound tool can touch, which tools touch something, and by
//! which other ways (RCH-2 … RCH-6). Lazy: nothing is computed before it is
//! asked for.

use std::collections::VecDeque;

use super::arena::{Graph, Node};
use super::capability::Capabilities;
use super::project::{AccessProjection, Handlers, LiveSandbox};
use super::rows::Plan;
use super::tool::{Access, Bind, Slot, Toolbox};
use super::types::{Protocol, TypeId};
use super::walk::Ancestors;

/// Everything that questions about tools take into account.
#[derive(Clone, Copy)]
pub struct Situation<'a> {
    /// The graph.
    pub graph: &'a Graph,
    /// The tools there are.
    pub tools: &'a Toolbox,
    /// The handlers there are.
    pub handlers: &'a dyn Handlers,
    /// The live sandboxes of the plan.
    pub sandboxes: &'a [LiveSandbox],
    /// The plan; without one, all projects count.
    pub plan: Option<&'a Plan>,
}

/// A way from a tool to a resource.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reach {
    /// The slot.
    pub slot: Bind,
    /// What it is or could be bound to.
    pub bound: Node,
    /// What it reaches.
    pub target: Node,
    /// The shortest way over `contains`, both included.
    pub path: Vec<Node>,
    /// What is possible.
    pub ability: Ability,
}

/// What a way makes possible (RCH-2).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ability {
    /// The slot reads, the resource is readable, and the protocol can.
    pub read: bool,
    /// The slot writes, the resource is effectively writable, and the
    /// protocol can.
    pub write: bool,
    /// How; none where there is no way for the protocol.
    pub projection: Option<AccessProjection>,
}

impl Ability {
    /// Says whether it allows what is wanted.
    pub fn allows(&self, want: Want) -> bool {
        match want {
            Want::Anything => true,
            Want::Read => self.read,
            Want::Write => self.write,
        }
    }
}

/// Which ways are asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Want {
    /// All, possible or not.
    Anything,
    /// Those that can read.
    Read,
    /// Those that can write.
    Write,
}

/// What a binding gives, from its position alone (RCH-5).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Inferred {
    /// It can read the bound resource.
    pub reads: bool,
    /// It can write the bound resource.
    pub writes: bool,
    /// The types of which it may make new resources beneath.
    pub creates: Vec<TypeId>,
    /// It may touch the repository's own data.
    pub git_metadata: bool,
}

impl<'a> Situation<'a> {
    /// Iterates over everything that a slot reaches from what it is bound to,
    /// with what is possible (RCH-2).
    pub fn forward(self, slot: Bind, bound: Node) -> impl Iterator<Item = Reach> + use<'a> {
        self.graph.descendants(bound).map(move |target| {
            let path = self.graph.path(bound, target);
            let path = path.expect("a descendant has a way to it");
            self.reach(slot, path, None)
        })
    }

    /// Iterates over the ways by which tools reach a resource, nearest bound
    /// resource first (RCH-3).
    pub fn inverse(self, target: Node, want: Want) -> Inverse<'a> {
        Inverse {
            situation: self,
            target,
            want,
            above: self.graph.ancestors(target),
            waiting: VecDeque::new(),
            writable: None,
        }
    }

    /// Iterates over the ways to a resource and its siblings, that resource
    /// first, then by id; each target is the manifestation (RCH-4). Whoever
    /// asks materialises what is [`Graph::unidentified`] before.
    pub fn equivalent(self, target: Node, want: Want) -> impl Iterator<Item = Reach> + use<'a> {
        let all = self.graph.same_as(target).into_iter();
        all.flat_map(move |one| self.inverse(one, want))
    }

    /// Returns what a binding gives from its position (RCH-5).
    pub fn infer(self, slot: Bind, bound: Node) -> Inferred {
        let ability = self.reach(slot, vec![bound], None).ability;
        let registry = self.graph.registry();
        let mut below: Vec<TypeId> = Vec::new();
        let mut queue = vec![self.graph.at(bound.0).kind];
        while let Some(kind) = queue.pop() {
            for child in &registry.get(kind).children {
                if !below.contains(child) {
                    below.push(*child);
                    queue.push(*child);
                }
            }
        }
        below.sort_unstable();
        let of_git = |kind: &TypeId| registry.get(*kind).protocol == Protocol::GitObject;
        let itself = of_git(&self.graph.at(bound.0).kind);
        Inferred {
            reads: ability.read,
            writes: ability.write,
            git_metadata: itself || below.iter().any(of_git),
            creates: if ability.write { below } else { Vec::new() },
        }
    }

    /// Iterates over what a binding may write: what it reaches of the domain
    /// of the bound resource (RCH-5). What lies in nested boundaries is reached
    /// with `crosses_sandbox`, and is not of this scope.
    pub fn write_scope(self, slot: Bind, bound: Node) -> impl Iterator<Item = Node> + use<'a> {
        let graph = self.graph;
        let home = graph.boundary(bound);
        let reached = home.map(|_| graph.descendants(bound));
        // Not a walk within the domain: with several parents, the only way
        // from here to one of its own may lead through a nested boundary.
        let own = reached
            .into_iter()
            .flatten()
            .filter(move |target| graph.boundary(*target) == home);
        own.filter(move |target| {
            let path = self.graph.path(bound, *target);
            path.is_some_and(|path| self.reach(slot, path, None).ability.write)
        })
    }

    /// Computes what is possible along a way; `writable` where that is known.
    pub(super) fn reach(self, bind: Bind, path: Vec<Node>, writable: Option<bool>) -> Reach {
        let Self {
            graph,
            tools,
            handlers,
            sandboxes,
            plan,
        } = self;
        let (bound, target) = (path[0], path[path.len() - 1]);
        let slot = tools.slot(bind);
        let mut projection = graph.project_along(&path, sandboxes, handlers);
        if let (Some(projection), Some(richness)) = (&mut projection, slot.richness) {
            projection.read_richness = richness;
        }
        let readable = graph.capabilities(target.0).has(Capabilities::READABLE);
        let can = |asked: fn(&AccessProjection) -> bool| projection.as_ref().is_some_and(asked);
        let writable = || writable.unwrap_or_else(|| graph.is_writable(target, plan));
        let ability = Ability {
            read: slot.access.reads() && readable && can(|p| p.readable),
            write: slot.access.writes() && can(|p| p.writable) && writable(),
            projection,
        };
        Reach {
            slot: bind,
            bound,
            target,
            path,
            ability,
        }
    }

    /// The order among tools that can do the same: shortest way, fewest types
    /// taken, names (RTE-3).
    pub(super) fn tool_rank(self, reach: &Reach) -> (usize, usize, &'a str, &'a str) {
        let slot: &Slot = self.tools.slot(reach.slot);
        let tool = self.tools.tool(reach.slot);
        (reach.path.len(), slot.accepts.len(), &tool.name, &slot.name)
    }
}

/// See [`Situation::inverse`].
pub struct Inverse<'a> {
    situation: Situation<'a>,
    target: Node,
    want: Want,
    above: Ancestors<'a>,
    /// Slots that could be bound to the ancestor met last.
    waiting: VecDeque<Bind>,
    writable: Option<bool>,
}

impl Iterator for Inverse<'_> {
    type Item = Reach;

    fn next(&mut self) -> Option<Reach> {
        let Situation {
            graph, tools, plan, ..
        } = self.situation;
        loop {
            let Some(bind) = self.waiting.pop_front() else {
                let bound = self.above.next()?;
                let taking = tools.taking(graph.at(bound.0).kind).iter().copied();
                let fits = |bind: &Bind| {
                    let access = tools.slot(*bind).access;
                    fits_access(access, self.want) && tools.may_bind(graph, plan, *bind, bound)
                };
                self.waiting.extend(taking.filter(fits));
                continue;
            };
            if self.want == Want::Write && self.writable.is_none() {
                self.writable = Some(graph.is_writable(self.target, plan));
            }
            let reach = self.situation.reach(bind, self.above.path(), self.writable);
            if reach.ability.allows(self.want) {
                return Some(reach);
            }
        }
    }
}

fn fits_access(access: Access, want: Want) -> bool {
    match want {
        Want::Anything => true,
        Want::Read => access.reads(),
        Want::Write => access.writes(),
    }
}

impl Graph {
    /// Returns what has the same identity: for a virtual resource what it
    /// manifests as, for a physical one itself first and then its siblings, by
    /// id.
    pub fn same_as(&self, node: Node) -> Vec<Node> {
        if self.is_virtual(node.0) {
            let manifestations = self.manifestations(node).into_iter();
            return manifestations.map(|(one, _)| one).collect();
        }
        let mut siblings: Vec<Node> = self
            .virtual_parents(node)
            .into_iter()
            .flat_map(|virtual_one| self.manifestations(virtual_one))
            .map(|(one, _)| one)
            .filter(|one| *one != node)
            .collect();
        siblings.sort_unstable_by_key(|one| self.id(*one));
        siblings.dedup();
        siblings.insert(0, node);
        siblings
    }

    /// Returns those of a resource and its siblings whose type has identities
    /// but whose own is not known yet: more may be equal to them than the
    /// graph says (IDN-3).
    pub fn unidentified(&self, node: Node) -> Vec<Node> {
        let mut all = self.same_as(node);
        all.retain(|one| {
            let seen = self.see(*one);
            seen.kind().equivalence.is_some() && seen.content().is_none()
        });
        all
    }
}
