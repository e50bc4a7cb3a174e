//! Routing of reads: the richest way that can answer (RTE-2).

use std::cmp::Reverse;

use super::super::arena::Node;
use super::super::reach::{Reach, Situation, Want};
use super::super::tool::QueryKind;
use super::{Conditions, NoRoute, Query, Route, SkipReason, Skipped};

impl<'a> Situation<'a> {
    /// Chooses how to read something: the richest way that is available, fresh
    /// enough and able to answer; else plain content from whatever is
    /// available (RTE-2). Errors: [`NoRoute`], with what was passed over.
    pub fn route_read(
        self,
        target: Node,
        query: Query,
        conditions: &Conditions,
    ) -> Result<Route, NoRoute> {
        let manifestations = self.graph.same_as(target);
        if manifestations.is_empty() {
            return Err(NoRoute::NoManifestation(self.graph.id(target)));
        }
        let ranked = self.ranked_reads(&manifestations);
        let mut skipped = Vec::new();
        for reach in &ranked {
            match self.unfit(reach, query, conditions) {
                None => return Ok(self.route(reach.clone(), false, skipped)),
                Some(reason) => skipped.push(self.skipped(reach, reason)),
            }
        }
        let there = |reach: &&Reach| self.unreachable(reach, conditions).is_none();
        let plain = |reach: &&Reach| {
            let slot = self.tools.slot(reach.slot);
            slot.queries.has(QueryKind::Content)
        };
        let mut left = ranked.iter().filter(there);
        let fallback = left.clone().find(plain).or_else(|| left.next());
        for node in manifestations {
            if !ranked.iter().any(|reach| reach.target == node) {
                skipped.push(Skipped {
                    resource: self.graph.id(node),
                    tool: None,
                    reason: SkipReason::NoTool,
                });
            }
        }
        match fallback {
            Some(reach) => Ok(self.route(reach.clone(), true, skipped)),
            None => Err(NoRoute::NoTool {
                resource: self.graph.id(target),
                skipped,
            }),
        }
    }

    /// Returns every way to read these, best first: richness, then tool, then
    /// id.
    pub(super) fn ranked_reads(self, manifestations: &[Node]) -> Vec<Reach> {
        let all = manifestations.iter();
        let mut ranked: Vec<_> = all.flat_map(|one| self.inverse(*one, Want::Read)).collect();
        ranked.sort_by_cached_key(|reach| {
            let projection = reach.ability.projection.as_ref();
            let richness = projection.map_or(0, |projection| projection.read_richness);
            let (length, width, tool, slot) = self.tool_rank(reach);
            let id = self.graph.id(reach.target);
            let names = (tool.to_owned(), slot.to_owned());
            (
                Reverse(richness),
                length,
                width,
                names,
                id,
                self.graph.id(reach.bound),
            )
        });
        ranked
    }

    pub(super) fn unreachable(self, reach: &Reach, conditions: &Conditions) -> Option<SkipReason> {
        // A container that is down takes what lies in it along; so does what
        // holds the bound resource, unless something else holds it too.
        let down = |node: &Node| conditions.unavailable.get(&self.graph.id(*node));
        let above = std::iter::successors(Some(reach.bound), |node| {
            let mut parents = self.graph.parents(*node);
            parents.next().filter(|_| parents.next().is_none())
        });
        let way = reach.path.iter().rev().copied().chain(above);
        if let Some(why) = way.into_iter().find_map(|node| down(&node)) {
            return Some(SkipReason::Unavailable(why.clone()));
        }
        let tool = &self.tools.tool(reach.slot).name;
        let why = conditions.tools_down.get(tool)?;
        Some(SkipReason::ToolDown(why.clone()))
    }

    fn unfit(self, reach: &Reach, query: Query, conditions: &Conditions) -> Option<SkipReason> {
        if let Some(reason) = self.unreachable(reach, conditions) {
            return Some(reason);
        }
        let behind = conditions.behind_ms.get(&self.graph.id(reach.target));
        if let Some(behind) = behind.filter(|behind| **behind > query.tolerates_ms) {
            return Some(SkipReason::Stale {
                behind_ms: *behind,
                tolerates_ms: query.tolerates_ms,
            });
        }
        let able = self.tools.slot(reach.slot).queries.has(query.kind);
        (!able).then_some(SkipReason::WrongKind(query.kind))
    }

    pub(super) fn skipped(self, reach: &Reach, reason: SkipReason) -> Skipped {
        let tool = self.tools.tool(reach.slot).name.clone();
        let slot = self.tools.slot(reach.slot).name.clone();
        Skipped {
            resource: self.graph.id(reach.target),
            tool: Some((tool, slot)),
            reason,
        }
    }

    pub(super) fn route(self, reach: Reach, fallback: bool, skipped: Vec<Skipped>) -> Route {
        Route {
            reach,
            fallback,
            generation: self.graph.generation(),
            skipped,
        }
    }
}
