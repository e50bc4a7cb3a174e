//! Boundary algebra: where something is sandboxed, what shares that sandbox,
//! where a checkpoint is taken (SBX-1 … SBX-6).

use super::arena::{Graph, NIL, Node, flag};
use super::capability::Capabilities;
use super::policy::{Policy, PolicySource, Strategy};
use super::types::Scope;
use crate::id::ResourceId;

/// Where something is sandboxed, and how that was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BoundaryAnswer {
    /// What was asked about.
    pub resource: ResourceId,
    /// The nearest boundary, with its strategy.
    pub boundary: Option<(ResourceId, Strategy)>,
    /// The resources looked at: the first is the one asked about, the last the
    /// boundary or, without one, an outermost ancestor. Without a boundary
    /// every ancestor is listed.
    pub path: Vec<BoundaryStep>,
}

/// One resource on the way to a boundary.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BoundaryStep {
    /// The resource.
    pub resource: ResourceId,
    /// The policy that holds for it.
    pub policy: Policy,
    /// Why that one.
    pub source: PolicySource,
    /// Whether it can be sandboxed at all.
    pub sandboxable: bool,
}

impl BoundaryStep {
    /// Says whether it is a boundary: sandboxable, with a strategy (SBX-1).
    pub fn is_boundary(&self) -> bool {
        self.sandboxable && matches!(self.policy, Policy::Own(_))
    }
}

/// Where a checkpoint of some scope is taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CheckpointAnswer {
    /// What was asked about.
    pub resource: ResourceId,
    /// The scope asked for.
    pub scope: Scope,
    /// The nearest boundary that can take it.
    pub boundary: Option<ResourceId>,
    /// The nearer boundaries that cannot, with the reason.
    pub skipped: Vec<(ResourceId, NotHere)>,
}

/// Why a boundary cannot take a checkpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NotHere {
    /// Its type does not know the scope.
    Scope,
    /// It is not checkpointable.
    NotCheckpointable,
}

impl Graph {
    /// Returns the nearest boundary, the resource included (SBX-1). One read.
    pub fn boundary(&self, node: Node) -> Option<Node> {
        Some(self.at(node.0).boundary)
            .filter(|boundary| *boundary != NIL)
            .map(Node)
    }

    /// Says whether a resource is a boundary.
    pub fn is_boundary(&self, node: Node) -> bool {
        self.has(node.0, flag::BOUNDARY)
    }

    /// Returns the policy that holds for a resource, and why (RES-2).
    pub fn policy(&self, node: Node) -> (Policy, PolicySource) {
        self.policy_of(node.0, self.is_inside(node.0))
    }

    /// Returns the strategy of a boundary; none for other resources.
    pub fn strategy(&self, node: Node) -> Option<Strategy> {
        match self.policy(node).0 {
            Policy::Own(strategy) if self.is_boundary(node) => Some(strategy),
            _ => None,
        }
    }

    /// Iterates over everything whose boundary is `boundary`, lazily and in no
    /// order; nothing where it is no boundary (SBX-1).
    pub fn domain(&self, boundary: Node) -> impl Iterator<Item = Node> {
        let own = self.is_boundary(boundary);
        let all = own.then(|| self.descendants(boundary).within(boundary.0));
        all.into_iter().flatten()
    }

    /// Iterates over the boundaries right inside another: they are left out of
    /// its scan and made with it (SBX-2).
    pub fn nested(&self, boundary: Node) -> Vec<Node> {
        let inner = self.domain(boundary).flat_map(|node| self.children(node));
        let mut inner: Vec<_> = inner.filter(|node| self.is_boundary(*node)).collect();
        inner.sort_unstable_by_key(|node| self.id(*node));
        inner.dedup();
        inner
    }

    /// Returns each manifestation of a virtual resource with its boundary,
    /// by id; "none" is among the boundaries (SBX-4).
    pub fn boundaries(&self, virtual_one: Node) -> Vec<(Node, Option<Node>)> {
        self.manifestations(virtual_one)
            .into_iter()
            .map(|(node, _)| (node, self.boundary(node)))
            .collect()
    }

    /// Answers where a resource is sandboxed, with the way walked.
    pub fn explain_boundary(&self, node: Node) -> BoundaryAnswer {
        let Some(boundary) = self.boundary(node) else {
            return BoundaryAnswer {
                resource: self.id(node),
                boundary: None,
                path: self.ancestors(node).map(|up| self.step_at(up)).collect(),
            };
        };
        let mut path = vec![self.step_at(node)];
        let mut at = node;
        while at != boundary {
            let hot = self.at(at.0);
            let nearer = |up: &Node| {
                let up = self.at(up.0);
                up.boundary == boundary.0 && up.distance + 1 == hot.distance
            };
            at = self
                .parents(at)
                .find(nearer)
                .expect("a label follows from a parent's");
            path.push(self.step_at(at));
        }
        BoundaryAnswer {
            resource: self.id(node),
            boundary: self
                .strategy(boundary)
                .map(|strategy| (self.id(boundary), strategy)),
            path,
        }
    }

    /// Answers where a checkpoint of a scope is taken: the nearest ancestor
    /// boundary that can; at equal distance the lower id (SBX-5).
    pub fn checkpoint_boundary(&self, node: Node, scope: Scope) -> CheckpointAnswer {
        let mut answer = CheckpointAnswer {
            resource: self.id(node),
            scope,
            boundary: None,
            skipped: Vec::new(),
        };
        let mut level = vec![node];
        let mut seen = std::collections::HashSet::from([node]);
        while !level.is_empty() && answer.boundary.is_none() {
            let mut here: Vec<_> = level
                .iter()
                .copied()
                .filter(|node| self.is_boundary(*node))
                .collect();
            here.sort_unstable_by_key(|node| self.id(*node));
            for boundary in here {
                match self.cannot_take(boundary, scope) {
                    None => {
                        answer.boundary = Some(self.id(boundary));
                        break;
                    }
                    Some(reason) => answer.skipped.push((self.id(boundary), reason)),
                }
            }
            let above = level.iter().flat_map(|node| self.parents(*node));
            level = above.filter(|node| seen.insert(*node)).collect();
        }
        answer
    }

    fn cannot_take(&self, boundary: Node, scope: Scope) -> Option<NotHere> {
        let capabilities = self.capabilities(boundary.0);
        if !self.of_type(boundary.0).scopes.has(scope) {
            Some(NotHere::Scope)
        } else if !capabilities.has(Capabilities::CHECKPOINTABLE) {
            Some(NotHere::NotCheckpointable)
        } else {
            None
        }
    }

    fn step_at(&self, node: Node) -> BoundaryStep {
        let (policy, source) = self.policy(node);
        let capabilities = self.capabilities(node.0);
        BoundaryStep {
            resource: self.id(node),
            policy,
            source,
            sandboxable: capabilities.has(Capabilities::SANDBOXABLE),
        }
    }
}
