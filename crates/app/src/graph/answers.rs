//! Each question with its answer as data: what was asked, what was found, and
//! everything that was looked at on the way.

use std::path::Path;

use sandbar_domain::graph::route::{NoRoute, Skipped};
use sandbar_domain::graph::{
    AccessProjection, AnyChange, BoundaryStep, Capabilities, Conditions, Graph, LiveSandbox, Node,
    Policy, PolicySource, Query, QueryKind, Reach, Rules, Situation, Strategy, Toolbox, Touch,
    Want, What, Writability,
};
use sandbar_domain::{Code, ResourceId};
use sandbar_ports::store::SandboxState;
use sandbar_ports::{PortError, PortResult};

use super::card::{Card, card, card_of, cards};
use super::tools::toolbox;
use crate::Sandbar;
use crate::plans::path_of;

/// Where something is sandboxed.
#[derive(Debug, Clone)]
pub struct BoundaryReport {
    /// What was asked about.
    pub resource: Card,
    /// The nearest boundary, with its strategy.
    pub boundary: Option<(Card, Strategy)>,
    /// The way walked up, the resource first.
    pub path: Vec<(Card, BoundaryStep)>,
}

/// What shares a sandbox.
#[derive(Debug, Clone)]
pub struct DomainReport {
    /// What was asked about.
    pub resource: Card,
    /// Its boundary.
    pub boundary: Option<Card>,
    /// Everything known in the domain of that boundary, by place.
    pub members: Vec<Card>,
    /// The boundaries known right inside, by place.
    pub nested: Vec<Card>,
}

/// One resource in full.
#[derive(Debug, Clone)]
pub struct ShownReport {
    /// The resource.
    pub resource: Card,
    /// What can be done with it.
    pub capabilities: Capabilities,
    /// The policy that holds, and why.
    pub policy: (Policy, PolicySource),
    /// Its boundary.
    pub boundary: Option<Card>,
    /// Whether it may be written.
    pub writability: Writability,
    /// What contains it.
    pub parents: Vec<Card>,
    /// What it is known to contain.
    pub children: Vec<Card>,
}

/// A way from a tool to a resource.
#[derive(Debug, Clone)]
pub struct Way {
    /// The tool.
    pub tool: String,
    /// The slot.
    pub slot: String,
    /// What it would be bound to.
    pub bound: Card,
    /// What it reaches.
    pub target: Card,
    /// The way between, both included.
    pub path: Vec<Card>,
    /// It can read.
    pub read: bool,
    /// It can write.
    pub write: bool,
    /// How.
    pub projection: Option<AccessProjection>,
}

/// Which tools reach something.
#[derive(Debug, Clone)]
pub struct ReachReport {
    /// What was asked about.
    pub resource: Card,
    /// Whether it may be written at all.
    pub writability: Writability,
    /// The ways, nearest bound resource first.
    pub ways: Vec<Way>,
}

/// How something is named where a tool is bound.
#[derive(Debug, Clone)]
pub struct ProjectReport {
    /// What was asked about.
    pub resource: Card,
    /// What the tool is bound to.
    pub binding: Card,
    /// The way between, both included.
    pub path: Vec<Card>,
    /// The answer; none where it cannot be reached so.
    pub projection: Option<AccessProjection>,
}

/// The way that was chosen.
#[derive(Debug, Clone)]
pub struct RouteReport {
    /// What was asked about.
    pub resource: Card,
    /// The way.
    pub way: Way,
    /// Nothing can answer as asked; this is plain content instead.
    pub fallback: bool,
    /// The number of the last change of the graph.
    pub generation: u64,
    /// What was passed over.
    pub skipped: Vec<SkippedWay>,
}

/// A way that was passed over.
#[derive(Debug, Clone)]
pub struct SkippedWay {
    /// The resource.
    pub resource: Card,
    /// Tool and slot, if one reaches it.
    pub tool: Option<(String, String)>,
    /// Why.
    pub reason: String,
}

/// What else is affected by a change.
#[derive(Debug, Clone)]
pub struct ImpactReport {
    /// What changes.
    pub resource: Card,
    /// What is affected, how, and what that follows from; in lifecycle order.
    pub effects: Vec<(Card, What, Card)>,
}

impl Sandbar {
    /// Shows one resource. Errors of this and the other questions:
    /// `resource_not_found`, `ambiguous_resource`, `path_not_found`.
    pub async fn show_resource(&self, text: &str, cwd: &Path) -> PortResult<ShownReport> {
        let (graph, node) = self.resolve(text, cwd).await?;
        Ok(ShownReport {
            resource: card(&graph, node),
            capabilities: graph.see(node).capabilities(),
            policy: graph.policy(node),
            boundary: graph.boundary(node).map(|node| card(&graph, node)),
            writability: graph.explain_writable(node, None),
            parents: cards(&graph, graph.parents(node)),
            children: cards(&graph, graph.children(node)),
        })
    }

    /// Says where a resource is sandboxed (SBX-1).
    pub async fn boundary(&self, text: &str, cwd: &Path) -> PortResult<BoundaryReport> {
        let (graph, node) = self.resolve(text, cwd).await?;
        let answer = graph.explain_boundary(node);
        let named = |id: ResourceId| card_of(&graph, id);
        Ok(BoundaryReport {
            resource: named(answer.resource),
            boundary: answer.boundary.map(|(id, strategy)| (named(id), strategy)),
            path: answer
                .path
                .into_iter()
                .map(|step| (named(step.resource), step))
                .collect(),
        })
    }

    /// Says what shares the sandbox of a resource, as far as it is known
    /// (SBX-1).
    pub async fn domain(&self, text: &str, cwd: &Path) -> PortResult<DomainReport> {
        let (graph, node) = self.resolve(text, cwd).await?;
        let boundary = graph.boundary(node);
        let of = |node: Node| cards(&graph, graph.domain(node));
        let inner = |node: Node| cards(&graph, graph.nested(node));
        Ok(DomainReport {
            resource: card(&graph, node),
            boundary: boundary.map(|node| card(&graph, node)),
            members: boundary.map_or_else(Vec::new, of),
            nested: boundary.map_or_else(Vec::new, inner),
        })
    }

    /// Lists the ways by which tools reach a resource (RCH-3).
    pub async fn reach(&self, text: &str, cwd: &Path, want: Want) -> PortResult<ReachReport> {
        let (graph, node) = self.resolve(text, cwd).await?;
        let tools = toolbox();
        let ways = situation(&graph, &tools).inverse(node, want);
        Ok(ReachReport {
            resource: card(&graph, node),
            writability: graph.explain_writable(node, None),
            ways: ways.map(|reach| way(&graph, &tools, &reach)).collect(),
        })
    }

    /// Says how a resource is named for a tool that is bound to `from`, or to
    /// the outermost of what contains it; in the sandbox of `plan`, if given
    /// (PRJ-1). Errors beside their own: `plan_not_found`, `sandbox_gone`, and
    /// `usage` for a `from` that does not contain it.
    pub async fn project(
        &self,
        text: &str,
        from: Option<&str>,
        plan: Option<&str>,
        cwd: &Path,
    ) -> PortResult<ProjectReport> {
        let from = match from {
            None => None,
            Some(from) => {
                let (graph, node) = self.resolve(from, cwd).await?;
                Some(graph.id(node))
            }
        };
        let (graph, node) = self.resolve(text, cwd).await?;
        let binding = match from {
            Some(id) => graph.node(id),
            None => graph.ancestors(node).last(),
        };
        let path = binding.and_then(|binding| graph.path(binding, node));
        let (Some(binding), Some(path)) = (binding, path) else {
            let message = format!(
                "reach {text} from {}: it does not contain it",
                from_text(from)
            );
            return Err(PortError::new(Code::Usage, message));
        };
        let sandboxes = match plan {
            Some(plan) => self.live(&graph, plan, cwd).await?,
            None => Vec::new(),
        };
        Ok(ProjectReport {
            resource: card(&graph, node),
            binding: card(&graph, binding),
            path: path.iter().map(|node| card(&graph, *node)).collect(),
            projection: graph.project(binding, node, &sandboxes, &Rules),
        })
    }

    /// Chooses how to read a resource (RTE-2). Errors beside their own:
    /// `no_route`.
    pub async fn route_read(
        &self,
        text: &str,
        cwd: &Path,
        kind: QueryKind,
    ) -> PortResult<RouteReport> {
        let (graph, node) = self.resolve(text, cwd).await?;
        let tools = toolbox();
        let query = Query {
            kind,
            tolerates_ms: 0,
        };
        let found = situation(&graph, &tools).route_read(node, query, &Conditions::default());
        route(&graph, &tools, node, found)
    }

    /// Chooses how to write a resource (RTE-3). Errors beside their own:
    /// `not_writable`, `no_route`.
    pub async fn route_write(&self, text: &str, cwd: &Path) -> PortResult<RouteReport> {
        let (graph, node) = self.resolve(text, cwd).await?;
        let tools = toolbox();
        let found = situation(&graph, &tools).route_write(node, &Conditions::default());
        route(&graph, &tools, node, found)
    }

    /// Says what else is affected when a resource changes, its mode or its
    /// content: the most that can follow (CHG-1).
    pub async fn impact(&self, text: &str, cwd: &Path, touch: Touch) -> PortResult<ImpactReport> {
        let (graph, node) = self.resolve(text, cwd).await?;
        let impact = graph.impact(&[(node, touch)], &mut AnyChange);
        let all = impact.effects.iter().chain(&impact.identities);
        let named = |id: ResourceId| card_of(&graph, id);
        Ok(ImpactReport {
            resource: card(&graph, node),
            effects: all
                .map(|effect| (named(effect.resource), effect.what, named(effect.because)))
                .collect(),
        })
    }

    /// Returns the live sandbox of a plan as the graph knows its boundary.
    async fn live(&self, graph: &Graph, plan: &str, cwd: &Path) -> PortResult<Vec<LiveSandbox>> {
        let plan = self.find_plan(plan, cwd).await?;
        let sandbox = self.made_sandbox(&plan).await?;
        if sandbox.state != SandboxState::Ready {
            let message = format!("use plan {}: its sandbox is gone", plan.plan.name);
            return Err(PortError::new(Code::SandboxGone, message));
        }
        let resource = self.resource_of(&sandbox).await?;
        let real = resource.root.path.to_string_lossy().into_owned();
        let boundary = graph.at_path(&real).map(|node| graph.id(node));
        Ok(vec![LiveSandbox {
            boundary: boundary.unwrap_or(resource.id),
            real,
            root: path_of(&sandbox).to_string_lossy().into_owned(),
            // Whoever asks here stands outside.
            in_place: false,
        }])
    }
}

fn from_text(from: Option<ResourceId>) -> String {
    from.map_or_else(String::new, |id| id.to_string())
}

fn situation<'a>(graph: &'a Graph, tools: &'a Toolbox) -> Situation<'a> {
    Situation {
        graph,
        tools,
        handlers: &Rules,
        sandboxes: &[],
        plan: None,
    }
}

fn way(graph: &Graph, tools: &Toolbox, reach: &Reach) -> Way {
    Way {
        tool: tools.tool(reach.slot).name.clone(),
        slot: tools.slot(reach.slot).name.clone(),
        bound: card(graph, reach.bound),
        target: card(graph, reach.target),
        path: reach.path.iter().map(|node| card(graph, *node)).collect(),
        read: reach.ability.read,
        write: reach.ability.write,
        projection: reach.ability.projection.clone(),
    }
}

fn route(
    graph: &Graph,
    tools: &Toolbox,
    node: Node,
    found: Result<sandbar_domain::graph::Route, NoRoute>,
) -> PortResult<RouteReport> {
    let skipped = |skipped: &Skipped| SkippedWay {
        resource: card_of(graph, skipped.resource),
        tool: skipped.tool.clone(),
        reason: skipped.reason.to_string(),
    };
    match found {
        Ok(route) => Ok(RouteReport {
            resource: card(graph, node),
            way: way(graph, tools, &route.reach),
            fallback: route.fallback,
            generation: route.generation,
            skipped: route.skipped.iter().map(skipped).collect(),
        }),
        Err(why) => {
            let subjects: Vec<String> = match &why {
                NoRoute::NotWritable(rights) => {
                    rights.forbids.iter().map(ToString::to_string).collect()
                }
                NoRoute::NoTool { skipped, .. } => {
                    skipped.iter().map(|one| one.reason.to_string()).collect()
                }
                NoRoute::NoManifestation(_) => Vec::new(),
            };
            let error = PortError::new(why.code(), format!("find a route: {why}"));
            Err(error.with_subjects(subjects))
        }
    }
}
