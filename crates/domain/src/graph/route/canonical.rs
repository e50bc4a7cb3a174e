//! The canonical write target of a virtual resource (RTE-1).

use super::super::arena::{Graph, Node};
use super::super::policy::Strategy;
use super::super::rows::{Canonical, Plan};
use crate::id::ResourceId;

/// The canonical write target, and how it was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CanonicalAnswer {
    /// The manifestation.
    pub resource: ResourceId,
    /// Which rule decided.
    pub reason: CanonicalReason,
    /// Every manifestation with its boundary and the strategy of that, by id.
    pub candidates: Vec<(ResourceId, Option<(ResourceId, Strategy)>)>,
}

/// Which rule decided, in the order in which they are tried.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CanonicalReason {
    /// A person said so.
    Override,
    /// No other manifestation has a boundary.
    OnlyBoundary,
    /// Its strategy is stronger than the others'.
    Strongest,
    /// It belongs to the plan's primary project, as no other does.
    PrimaryProject,
    /// Its id is the lowest of what was left.
    LowestId,
}

impl Graph {
    /// Answers where writes to a virtual resource go; none where nothing
    /// manifests it (RTE-1). An override counts while it manifests.
    pub fn canonical(&self, virtual_one: Node, plan: Option<&Plan>) -> Option<CanonicalAnswer> {
        let all: Vec<_> = self.boundaries(virtual_one);
        let described = all.iter().map(|(node, boundary)| {
            let boundary = boundary.and_then(|b| Some((self.id(b), self.strategy(b)?)));
            (self.id(*node), boundary)
        });
        let candidates: Vec<_> = described.collect();
        let (node, reason) = self.choose(virtual_one, &all, plan)?;
        Some(CanonicalAnswer {
            resource: self.id(node),
            reason,
            candidates,
        })
    }

    /// Returns what to store on a virtual resource: what a person said stays.
    pub fn settled_canonical(&self, virtual_one: Node, plan: Option<&Plan>) -> Option<Canonical> {
        let said = self
            .detail(virtual_one.0)
            .and_then(|detail| detail.canonical);
        match said {
            Some(said) if !said.auto => Some(said),
            _ => self.canonical(virtual_one, plan).map(|answer| Canonical {
                resource: answer.resource,
                auto: true,
            }),
        }
    }

    /// Orders manifestations as write targets, best first, whatever a person
    /// said: strongest strategy, primary project, lowest id.
    pub(super) fn write_rank(&self, node: Node, plan: Option<&Plan>) -> (u8, bool, ResourceId) {
        let strategy = self.boundary(node).and_then(|b| self.strategy(b));
        let strength = strategy.map_or(0, Strategy::strength);
        let primary = plan.is_some_and(|plan| self.is_of_project(node, &plan.primary));
        (u8::MAX - strength, !primary, self.id(node))
    }

    fn choose(
        &self,
        virtual_one: Node,
        all: &[(Node, Option<Node>)],
        plan: Option<&Plan>,
    ) -> Option<(Node, CanonicalReason)> {
        let said = self
            .detail(virtual_one.0)
            .and_then(|detail| detail.canonical);
        if let Some(said) = said.filter(|said| !said.auto) {
            let still = all.iter().find(|(node, _)| self.id(*node) == said.resource);
            if let Some((node, _)) = still {
                return Some((*node, CanonicalReason::Override));
            }
        }
        let mut bounded = all.iter().filter(|(_, boundary)| boundary.is_some());
        if let (Some((node, _)), None) = (bounded.next(), bounded.next()) {
            return Some((*node, CanonicalReason::OnlyBoundary));
        }
        let ranked = all
            .iter()
            .map(|(node, _)| (self.write_rank(*node, plan), *node));
        let mut ranked: Vec<_> = ranked.collect();
        ranked.sort_unstable_by_key(|(rank, _)| *rank);
        let (best, node) = *ranked.first()?;
        let reason = match ranked.get(1) {
            Some((next, _)) if next.0 == best.0 && next.1 == best.1 => CanonicalReason::LowestId,
            Some((next, _)) if next.0 == best.0 => CanonicalReason::PrimaryProject,
            _ => CanonicalReason::Strongest,
        };
        Some((node, reason))
    }
}
