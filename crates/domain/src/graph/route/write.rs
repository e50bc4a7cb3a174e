//! Routing of writes, and the other ways to the same thing (RTE-3, RCH-6).

use std::collections::HashSet;

use super::super::arena::Node;
use super::super::reach::{Reach, Situation, Want};
use super::super::tool::Bind;
use super::{Conditions, NoRoute, Route, SkipReason, Skipped};

impl Situation<'_> {
    /// Chooses how to write something: the canonical target, and of the tools
    /// that can write it the one with the shortest way, the fewest types
    /// taken, the first name (RTE-3). A physical resource that manifests
    /// nothing is its own target. Errors: what forbids it by name, or that no
    /// tool can.
    pub fn route_write(self, target: Node, conditions: &Conditions) -> Result<Route, NoRoute> {
        let graph = self.graph;
        let virtual_one = if graph.is_virtual(target.0) {
            Some(target)
        } else {
            graph.virtual_parents(target).first().copied()
        };
        let canonical = match virtual_one {
            None => target,
            Some(virtual_one) => graph
                .canonical(virtual_one, self.plan)
                .and_then(|answer| graph.node(answer.resource))
                .ok_or_else(|| NoRoute::NoManifestation(graph.id(virtual_one)))?,
        };
        let rights = graph.explain_writable(canonical, self.plan);
        if !rights.is_writable() {
            return Err(NoRoute::NotWritable(rights));
        }
        let mut ranked: Vec<Reach> = self.inverse(canonical, Want::Write).collect();
        ranked.sort_by_key(|reach| (self.tool_rank(reach), graph.id(reach.bound)));
        let mut skipped = Vec::new();
        for reach in ranked {
            match self.unreachable(&reach, conditions) {
                None => return Ok(self.route(reach, false, skipped)),
                Some(reason) => skipped.push(self.skipped(&reach, reason)),
            }
        }
        if skipped.is_empty() {
            skipped.push(Skipped {
                resource: graph.id(canonical),
                tool: None,
                reason: SkipReason::NoTool,
            });
        }
        Err(NoRoute::NoTool {
            resource: graph.id(canonical),
            skipped,
        })
    }

    /// Returns the ways to the same thing beside one that is not available:
    /// (tool, manifestation) pairs, best first. For reads as reads are ranked,
    /// for writes by strategy of the manifestation, then tool (RCH-6).
    pub fn alternatives(
        self,
        target: Node,
        want: Want,
        without: (Bind, Node),
        conditions: &Conditions,
    ) -> Vec<Reach> {
        let manifestations = self.graph.same_as(target);
        let mut ranked = match want {
            Want::Read | Want::Anything => self.ranked_reads(&manifestations),
            Want::Write => {
                let all = manifestations.iter();
                let all = all.flat_map(|one| self.inverse(*one, Want::Write));
                let mut ranked: Vec<_> = all.collect();
                ranked.sort_by_cached_key(|reach| {
                    let (length, width, tool, slot) = self.tool_rank(reach);
                    let rank = self.graph.write_rank(reach.target, self.plan);
                    let names = (tool.to_owned(), slot.to_owned());
                    (rank, length, width, names, self.graph.id(reach.bound))
                });
                ranked
            }
        };
        // Several bound resources may give one pair: the best stands for it.
        let mut seen = HashSet::new();
        ranked.retain(|reach| {
            let pair = (reach.slot, reach.target);
            pair != without && self.unreachable(reach, conditions).is_none() && seen.insert(pair)
        });
        ranked
    }
}
