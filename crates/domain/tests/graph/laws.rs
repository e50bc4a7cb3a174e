//! Laws over random histories. `SANDBAR_GRAPH_CASES` makes the runs longer.
//!
//! conformance claims name what each law shows; command line and storage are
//! shown elsewhere.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use proptest::prelude::*;
use sandbar_domain::ResourceId;
use sandbar_domain::graph::{
    Access, AnyChange, Bind, CapabilityChanges, Change, Coherence, Delta, Direction, Edge,
    EdgeKind, Graph, Identity, Link, Node, OnChange, Operation, Plan, Policy, Project, ProjectLink,
    Registry, Resource, Rules, Saved, Situation, Strategy, Toolbox, Touch, Want, What,
};

use crate::ground::{tool, toolbox};
use crate::model::{Model, Why};

const IDS: u8 = 12;
const TYPES: [&str; 14] = [
    "fs-directory",
    "fs-directory",
    "fs-directory",
    "git-checkout",
    "git-checkout",
    "git-submodule",
    "fs-mount",
    "fs-file",
    "container-instance",
    "container-mount",
    "executable",
    "file",
    "directory",
    "no-such-type",
];

fn config(cases: u32) -> ProptestConfig {
    let asked = std::env::var("SANDBAR_GRAPH_CASES").ok();
    ProptestConfig {
        cases: asked.map_or(cases, |text| text.parse().expect("a number of cases")),
        failure_persistence: None,
        ..ProptestConfig::default()
    }
}

/// Ids whose order is not that of their numbers.
fn id(n: u8) -> ResourceId {
    ResourceId::from_parts(u64::from(n.wrapping_mul(37) % 16), u128::from(n))
}

fn any_id() -> impl Strategy_<Value = ResourceId> {
    (0..IDS).prop_map(id)
}

use proptest::strategy::Strategy as Strategy_;

fn flag() -> impl Strategy_<Value = Option<bool>> {
    prop_oneof![8 => Just(None), 1 => Just(Some(true)), 1 => Just(Some(false))]
}

fn policy() -> impl Strategy_<Value = Option<Policy>> {
    prop_oneof![
        6 => Just(None),
        2 => Just(Some(Policy::Own(Strategy::CopyOnWrite))),
        1 => Just(Some(Policy::Own(Strategy::Overlay))),
        1 => Just(Some(Policy::Own(Strategy::GitWorktree))),
        1 => Just(Some(Policy::Inherit)),
        1 => Just(Some(Policy::None)),
    ]
}

prop_compose! {
    fn row()(
        id in any_id(),
        kind in prop::sample::select(&TYPES[..]),
        name in 0..3u8,
        policy in policy(),
        writable in flag(),
        sandboxable in flag(),
        located in any::<bool>(),
        content in prop::option::of(0..2u8),
    ) -> Resource {
        Resource {
            policy,
            capabilities: CapabilityChanges { writable, sandboxable, ..CapabilityChanges::default() },
            location: located.then(|| format!("/{id}")),
            content: content.map(|n| n.to_string()),
            ..Resource::new(id, kind, &format!("n{name}"))
        }
    }
}

fn coherence() -> impl Strategy_<Value = Coherence> {
    prop::sample::select(vec![
        Coherence::Transparent,
        Coherence::Cached,
        Coherence::Independent(OnChange::Sync),
        Coherence::Independent(OnChange::Diverge),
    ])
}

fn link() -> impl Strategy_<Value = Link> {
    prop_oneof![
        6 => Just(Link::Contains),
        2 => Just(Link::References),
        3 => coherence().prop_map(Link::Manifests),
    ]
}

prop_compose! {
    fn edge()(parent in any_id(), child in any_id(), link in link()) -> Edge {
        Edge { parent, child, link }
    }
}

prop_compose! {
    fn project()(
        name in 0..3u8,
        read_only in prop::bool::weighted(0.2),
        links in prop::collection::vec((any_id(), prop::bool::weighted(0.3)), 0..3),
    ) -> Project {
        let links = links.into_iter();
        Project {
            name: format!("p{name}"),
            read_only,
            links: links.map(|(resource, read_only)| ProjectLink { resource, read_only }).collect(),
        }
    }
}

/// A step of a history, drawn before the state it meets is known.
#[derive(Debug, Clone)]
enum Draw {
    /// Exactly this, sensible or not.
    Exactly(Change),
    /// Other settings for what is there; its type stays.
    Adjust(Resource),
    /// One of the edges that the types allow, there already or not.
    Link(EdgeKind, u16, Coherence),
    /// One of the edges that are there.
    Unlink(u16),
    /// One of the resources that are there.
    Remove(u16),
}

impl Draw {
    fn meet(&self, model: &Model) -> Change {
        match self {
            Self::Exactly(change) => change.clone(),
            Self::Adjust(row) => Change::Put(match model.resources.get(&row.id) {
                Some(old) => Resource {
                    type_name: old.type_name.clone(),
                    ..row.clone()
                },
                None => row.clone(),
            }),
            Self::Link(kind, n, coherence) => {
                let allowed = model.allowed(*kind);
                let at = usize::from(*n) % allowed.len().max(1);
                let (parent, child) = allowed.get(at).copied().unwrap_or((id(0), id(1)));
                let link = match kind {
                    EdgeKind::Contains => Link::Contains,
                    EdgeKind::References => Link::References,
                    EdgeKind::Manifests => Link::Manifests(*coherence),
                };
                Change::Link(Edge {
                    parent,
                    child,
                    link,
                })
            }
            Self::Unlink(n) => {
                let at = usize::from(*n) % model.edges.len().max(1);
                let key = model.edges.keys().nth(at).copied();
                let (parent, child, kind) = key.unwrap_or((id(0), id(1), EdgeKind::Contains));
                Change::Unlink {
                    parent,
                    child,
                    kind,
                }
            }
            Self::Remove(n) => {
                let at = usize::from(*n) % model.resources.len().max(1);
                Change::Remove(model.resources.keys().nth(at).copied().unwrap_or(id(0)))
            }
        }
    }
}

fn draw() -> impl Strategy_<Value = Draw> {
    let linking =
        |kind| (any::<u16>(), coherence()).prop_map(move |(n, how)| Draw::Link(kind, n, how));
    prop_oneof![
        16 => linking(EdgeKind::Contains),
        3 => linking(EdgeKind::References),
        6 => linking(EdgeKind::Manifests),
        3 => any::<u16>().prop_map(Draw::Unlink),
        4 => row().prop_map(Draw::Adjust),
        1 => any::<u16>().prop_map(Draw::Remove),
        1 => row().prop_map(|row| Draw::Exactly(Change::Put(row))),
        1 => any_id().prop_map(|id| Draw::Exactly(Change::Remove(id))),
        2 => edge().prop_map(|edge| Draw::Exactly(Change::Link(edge))),
        1 => edge().prop_map(|e| Draw::Exactly(Change::Unlink {
            parent: e.parent, child: e.child, kind: e.link.kind(),
        })),
        1 => project().prop_map(|project| Draw::Exactly(Change::PutProject(project))),
        1 => (0..3u8).prop_map(|n| Draw::Exactly(Change::RemoveProject(format!("p{n}")))),
    ]
}

/// A history: every resource first, so that edges find their ends.
fn history(steps: usize) -> impl Strategy_<Value = Vec<Draw>> {
    let first = (0..IDS).map(|n| {
        row().prop_map(move |row| Draw::Exactly(Change::Put(Resource { id: id(n), ..row })))
    });
    let first: Vec<_> = first.collect();
    (first, prop::collection::vec(draw(), steps / 2..steps)).prop_map(|(mut first, more)| {
        first.extend(more);
        first
    })
}

fn registry(configured: &[(&str, Policy)], setting: Option<Policy>) -> Registry {
    let mut registry = Registry::builtin();
    for (kind, policy) in configured {
        registry.configure(kind, *policy).expect("it fits");
    }
    registry.set_strategy(setting).expect("it fits");
    registry
}

fn settings() -> impl Strategy_<Value = (Vec<(&'static str, Policy)>, Option<Policy>)> {
    let configured = prop::sample::select(vec![
        vec![],
        vec![],
        vec![("fs-directory", Policy::Own(Strategy::Overlay))],
        vec![("git-checkout", Policy::None)],
        vec![("fs-mount", Policy::Inherit)],
    ]);
    let setting = prop::sample::select(vec![
        None,
        None,
        Some(Policy::Own(Strategy::CopyOnWrite)),
        Some(Policy::Own(Strategy::GitWorktree)),
        Some(Policy::None),
    ]);
    (configured, setting)
}

/// A graph and its reference after a history.
fn grown(history: &[Draw]) -> (Graph, Model) {
    let mut graph = Graph::new(Registry::builtin());
    let mut model = Model::new(Registry::builtin());
    for draw in history {
        let change = draw.meet(&model);
        let done = graph.apply(std::slice::from_ref(&change));
        if done.is_ok() {
            model.trust(&change);
        }
    }
    (graph, model)
}

fn ids(graph: &Graph, nodes: impl IntoIterator<Item = Node>) -> BTreeSet<ResourceId> {
    nodes.into_iter().map(|node| graph.id(node)).collect()
}

fn plans() -> [Option<Plan>; 3] {
    let both = Plan {
        others: vec!["p2".to_owned()],
        ..Plan::on("p1")
    };
    [None, Some(Plan::on("p0")), Some(both)]
}

/// Holds every answer about one state against its definition.
fn agree(graph: &Graph, model: &Model) {
    assert_eq!(graph.save(), model.save());
    assert_eq!(graph.len(), model.resources.len());
    for id in model.resources.keys() {
        let node = graph.node(*id).expect("it is there");
        assert_eq!(graph.id(node), *id);
        let boundary = graph.boundary(node).map(|b| graph.id(b));
        assert_eq!(boundary, model.boundary(*id), "boundary of {id}");
        assert_eq!(graph.is_boundary(node), model.is_boundary(*id));
        assert_eq!(graph.policy(node).0, model.policy(*id), "policy of {id}");
        let explained = graph.explain_boundary(node);
        assert_eq!(explained.boundary.map(|(b, _)| b), boundary);
        assert_eq!(explained.boundary.map(|(_, s)| s), model.strategy(*id));
        let above = model.contains_ancestors(*id);
        match boundary {
            // The way walked is a shortest way, step by step.
            Some(boundary) => {
                assert_eq!(explained.path.len(), above[&boundary] + 1);
                for pair in explained.path.windows(2) {
                    let up = model.parents(pair[0].resource, &[EdgeKind::Contains]);
                    assert!(up.contains(&pair[1].resource));
                    assert!(!pair[0].is_boundary());
                }
                assert!(explained.path.last().is_some_and(|step| step.is_boundary()));
            }
            None => assert_eq!(explained.path.len(), above.len()),
        }
        assert_eq!(
            ids(graph, graph.ancestors(node)),
            above.keys().copied().collect()
        );
        let below: Vec<_> = graph.descendants(node).collect();
        assert_eq!(ids(graph, below.iter().copied()), model.descendants(*id));
        assert_eq!(below.len(), model.descendants(*id).len(), "each once");
        for plan in plans() {
            let plan = plan.as_ref();
            let expected = model.is_writable(*id, plan);
            assert_eq!(graph.is_writable(node, plan), expected, "rights on {id}");
            assert_eq!(graph.explain_writable(node, plan).is_writable(), expected);
        }
        let manifestations = graph.manifestations(node).into_iter().map(|(one, _)| one);
        assert_eq!(ids(graph, manifestations), model.manifestations(*id));
    }
    // Domains partition what has a boundary (SBX-2).
    let mut owned = BTreeMap::new();
    for boundary in graph.all_boundaries() {
        let members: Vec<_> = graph.domain(boundary).map(|node| graph.id(node)).collect();
        for member in members {
            assert_eq!(
                owned.insert(member, graph.id(boundary)),
                None,
                "{member} twice"
            );
        }
    }
    for id in model.resources.keys() {
        assert_eq!(owned.get(id).copied(), model.boundary(*id));
    }
}

proptest! {
    #![proptest_config(config(160))]

    // conformance: DAG-1, DAG-2, DAG-3, DAG-5, SBX-1, SBX-2 partial: the algebra; scans and sandboxes are shown with plans, RES-2 partial: the graph's part
    #[test]
    fn every_history_keeps_the_rules(
        (configured, setting) in settings(),
        history in history(60),
    ) {
        let mut graph = Graph::new(registry(&configured, setting));
        let mut model = Model::new(Registry::builtin());
        model.configured = configured.iter().map(|(k, p)| ((*k).to_owned(), *p)).collect();
        model.setting = setting;
        for draw in &history {
            let change = draw.meet(&model);
            let before = graph.generation();
            let rows = model.save();
            let done = graph.apply(std::slice::from_ref(&change));
            let expected = model.apply(&change);
            prop_assert_eq!(
                done.as_ref().map(drop).map_err(Why::of),
                expected,
                "{:?}: {:?}", change, done
            );
            if done.is_err() {
                prop_assert_eq!(graph.generation(), before);
            } else {
                prop_assert_eq!(graph.generation() > before, model.save() != rows);
            }
        }
        agree(&graph, &model);
    }
}

proptest! {
    #![proptest_config(config(64))]

    #[test]
    fn loading_what_was_saved_gives_the_same(history in history(60), seed in any::<u64>()) {
        let (graph, model) = grown(&history);
        let saved = graph.save();
        let loaded = Graph::load(Registry::builtin(), &shuffled(&saved, seed)).expect("it is valid");
        prop_assert_eq!(loaded.save(), saved);
        agree(&loaded, &model);
        let mut replayed = Graph::new(Registry::builtin());
        let changes = graph.as_changes();
        match replayed.apply(&changes) {
            Ok(_) => agree(&replayed, &model),
            // Edge by edge a state in between can be ambiguous; never the end.
            Err(refusal) => prop_assert_eq!(Why::of(&refusal), Why::Ambiguous),
        }
        let again = graph.reconfigured(Registry::builtin()).expect("the same types");
        prop_assert_eq!(again.generation(), graph.generation() + 1);
        agree(&again, &model);
    }

    #[test]
    fn loading_refuses_what_single_changes_refuse(
        rows in prop::collection::vec(row(), 4..10),
        edges in prop::collection::vec(edge(), 0..12),
    ) {
        let resources: BTreeMap<_, _> = rows.into_iter().map(|row| (row.id, row)).collect();
        let edges: BTreeMap<_, _> = edges
            .into_iter()
            .map(|edge| ((edge.parent, edge.child, edge.link.kind()), edge))
            .collect();
        let saved = Saved {
            resources: resources.into_values().collect(),
            edges: edges.into_values().collect(),
            projects: Vec::new(),
        };
        // The reference judges the end alone: valid in some order or not.
        let mut model = Model::new(Registry::builtin());
        let whole = model.force(&saved);
        let loaded = Graph::load(Registry::builtin(), &saved);
        prop_assert_eq!(loaded.is_ok(), whole.is_ok(), "{:?} {:?}", loaded.err(), whole);
    }

    // conformance: DAG-2, DAG-3
    #[test]
    fn a_batch_is_whole_or_not_at_all(
        history in history(50),
        batch in prop::collection::vec(draw(), 1..12),
    ) {
        let (mut graph, mut model) = grown(&history);
        let generation = graph.generation();
        let before = model.clone();
        let (mut changes, mut expected) = (Vec::new(), Ok(()));
        for draw in &batch {
            changes.push(draw.meet(&model));
            expected = expected.and_then(|()| model.apply(&changes[changes.len() - 1]));
        }
        let done = graph.apply(&changes);
        prop_assert_eq!(done.as_ref().map(drop).map_err(Why::of), expected);
        if done.is_err() {
            prop_assert_eq!(graph.generation(), generation);
            agree(&graph, &before);
        } else {
            agree(&graph, &model);
        }
    }

    #[test]
    fn a_process_that_is_behind_catches_up(
        history in history(50),
        more in prop::collection::vec(draw(), 1..30),
        cut in 0..30usize,
    ) {
        let (mut graph, mut model) = grown(&history);
        let mut behind = graph.clone();
        let mut allowed = Vec::new();
        for draw in &more {
            let change = draw.meet(&model);
            // First as an attempt, which can still be taken back.
            let before = model.clone();
            if let Ok(attempt) = graph.attempt(std::slice::from_ref(&change)) {
                graph.take_back(attempt);
                agree(&graph, &before);
                graph.apply(std::slice::from_ref(&change)).expect("as before");
                model.trust(&change);
                allowed.push(change);
            }
        }
        // In one step or two, the rows lead to the same graph.
        let (first, second) = allowed.split_at(cut.min(allowed.len()));
        for part in [first, second] {
            let generation = behind.generation() + 7;
            behind.catch_up(generation, &Delta::of(part)).expect("a valid state");
            prop_assert_eq!(behind.generation(), generation);
        }
        agree(&behind, &model);
        // Told twice, it changes nothing.
        behind.catch_up(999, &Delta::of(second)).expect("still valid");
        agree(&behind, &model);
    }

    #[test]
    fn rows_that_break_the_rules_are_not_followed(
        history in history(50),
        rows in prop::collection::vec(row(), 0..4),
        edges in prop::collection::vec(edge(), 0..6),
    ) {
        let (mut graph, model) = grown(&history);
        let changes: Vec<_> = rows.into_iter().map(Change::Put)
            .chain(edges.into_iter().map(Change::Link)).collect();
        let delta = Delta::of(&changes);
        let mut next = model.clone();
        for row in delta.resources.values() { next.resources.insert(row.id, row.clone()); }
        for (key, edge) in &delta.edges { next.edges.insert(*key, *edge); }
        let valid = Graph::load(Registry::builtin(), &next.save()).is_ok();
        let done = graph.catch_up(99, &delta);
        prop_assert_eq!(done.is_ok(), valid, "{:?}", done);
        agree(&graph, if valid { &next } else { &model });
    }

    #[test]
    fn removing_a_tree_leaves_what_others_contain(history in history(60), top in any_id()) {
        let (mut graph, mut model) = grown(&history);
        let linked: Vec<_> = model.projects.keys().cloned().collect();
        for name in linked {
            graph.apply(&[Change::RemoveProject(name.clone())]).expect("it is there");
            model.projects.remove(&name);
        }
        // What goes: the top, and again and again whatever only gone ones contain.
        let mut gone = BTreeSet::from([top]);
        loop {
            let more: Vec<_> = model.resources.keys().copied().filter(|one| {
                let up = model.parents(*one, &[EdgeKind::Contains]);
                !gone.contains(one) && !up.is_empty() && up.is_subset(&gone)
            }).collect();
            if more.is_empty() { break; }
            gone.extend(more);
        }
        let there = graph.node(top).is_some();
        match graph.apply(&graph.removal(top)) {
            Ok(_) => {
                let left: BTreeSet<_> = model.resources.keys().copied().filter(|one| !gone.contains(one)).collect();
                prop_assert_eq!(ids(&graph, graph.nodes()), left);
            }
            Err(refusal) if there => prop_assert_eq!(Why::of(&refusal), Why::Ambiguous),
            Err(refusal) => prop_assert_eq!(Why::of(&refusal), Why::NoResource),
        }
    }

    // conformance: DAG-4
    #[test]
    fn orders_are_valid_and_the_same_whatever_came_first(
        history in history(60),
        asked in prop::collection::btree_set(any_id(), 0..10),
        seed in any::<u64>(),
    ) {
        let (graph, model) = grown(&history);
        let other = Graph::load(Registry::builtin(), &shuffled(&graph.save(), seed)).expect("valid");
        let part = |graph: &Graph| asked.iter().filter_map(|id| graph.node(*id)).collect::<Vec<_>>();
        let kinds = [EdgeKind::Contains, EdgeKind::References];
        let before = |a: ResourceId, b: ResourceId| a != b && model.ancestors(b, &kinds).contains_key(&a);
        for operation in Operation::ALL {
            let passes = graph.order(operation, &part(&graph));
            prop_assert_eq!(&passes, &other.order(operation, &part(&other)));
            for pass in passes {
                let flat = pass.flat();
                let there: BTreeSet<_> = asked.iter().copied().filter(|one| graph.node(*one).is_some()).collect();
                prop_assert_eq!(flat.iter().copied().collect::<BTreeSet<_>>(), there.clone());
                prop_assert_eq!(flat.len(), there.len());
                let first = |a, b| match pass.direction {
                    Direction::ParentsFirst => before(a, b),
                    Direction::ChildrenFirst => before(b, a),
                };
                for component in &pass.components {
                    // The lowest id that may come next always comes next.
                    let mut left: BTreeSet<_> = component.iter().copied().collect();
                    for next in component {
                        let free = left.iter().copied().find(|one| !left.iter().any(|up| first(*up, *one)));
                        prop_assert_eq!(free, Some(*next));
                        left.remove(next);
                    }
                    // Connected: nobody in it could go with another component.
                    let mut met = BTreeSet::from([component[0]]);
                    let mut grew = true;
                    while grew {
                        let near: Vec<_> = component.iter().copied().filter(|one| {
                            met.iter().any(|m| before(*m, *one) || before(*one, *m))
                        }).collect();
                        let count = met.len();
                        met.extend(near);
                        grew = met.len() > count;
                    }
                    prop_assert_eq!(met.len(), component.len());
                }
                for (at, a) in pass.components.iter().enumerate() {
                    for b in &pass.components[at + 1..] {
                        prop_assert!(a.iter().min() < b.iter().min());
                        prop_assert!(!a.iter().any(|x| b.iter().any(|y| before(*x, *y) || before(*y, *x))));
                    }
                }
            }
        }
    }

    // conformance: RCH-2, RCH-3, RCH-4, RCH-5
    #[test]
    fn inverse_reach_inverts_forward_reach(history in history(60), number in 0..3usize) {
        let (graph, model) = grown(&history);
        let tools = tools();
        let plan = plans()[number].clone();
        let situation = Situation {
            graph: &graph,
            tools: &tools,
            handlers: &Rules,
            sandboxes: &[],
            plan: plan.as_ref(),
        };
        let mut forward: BTreeMap<_, _> = BTreeMap::new();
        for (at, tool) in (0..).zip(tools.tools()) {
            let bind = Bind { tool: at, slot: 0 };
            let slot = &tool.slots[0];
            for bound in graph.nodes().filter(|n| slot.accepts.iter().any(|t| t == graph.see(*n).type_name())) {
                let mut reached = BTreeSet::new();
                for reach in situation.forward(bind, bound) {
                    let target = graph.id(reach.target);
                    reached.insert(target);
                    // Possible means: slot, rights and protocol, all three.
                    let projection = reach.ability.projection.as_ref();
                    prop_assert_eq!(
                        reach.ability.write,
                        slot.access.writes() && model.is_writable(target, plan.as_ref())
                            && projection.is_some_and(|p| p.writable)
                    );
                    let way = model.contains_ancestors(target)[&graph.id(bound)];
                    prop_assert_eq!(reach.path.len(), way + 1, "the shortest way");
                    forward.insert((bind, graph.id(bound), target), reach);
                }
                prop_assert_eq!(reached, model.descendants(graph.id(bound)));
                // What it may write is what it reaches of its own domain.
                let scope: BTreeSet<_> = ids(&graph, situation.write_scope(bind, bound));
                let home = model.boundary(graph.id(bound));
                let expected: BTreeSet<_> = forward.iter()
                    .filter(|((b, from, target), reach)| {
                        (*b, *from) == (bind, graph.id(bound)) && reach.ability.write
                            && home.is_some() && model.boundary(*target) == home
                    })
                    .map(|((_, _, target), _)| *target)
                    .collect();
                prop_assert_eq!(scope, expected);
            }
        }
        for target in graph.nodes() {
            let id = graph.id(target);
            for want in [Want::Anything, Want::Read, Want::Write] {
                let inverse: Vec<_> = situation.inverse(target, want).collect();
                let expected: BTreeMap<_, _> = forward.iter()
                    .filter(|((_, _, to), reach)| *to == id && reach.ability.allows(want))
                    .map(|((bind, bound, _), reach)| ((*bind, *bound), reach.clone()))
                    .collect();
                let found: BTreeMap<_, _> = inverse.iter()
                    .map(|reach| ((reach.slot, graph.id(reach.bound)), reach.clone()))
                    .collect();
                prop_assert_eq!(found.len(), inverse.len(), "each once");
                prop_assert_eq!(found, expected);
                // Across equivalence: those of each that has the same identity.
                let all: HashSet<_> = situation.equivalent(target, want)
                    .map(|reach| (reach.slot, reach.bound, reach.target)).collect();
                let each: HashSet<_> = graph.same_as(target).into_iter()
                    .flat_map(|one| situation.inverse(one, want))
                    .map(|reach| (reach.slot, reach.bound, reach.target)).collect();
                prop_assert_eq!(all, each);
            }
        }
    }

    // conformance: RTE-1
    #[test]
    fn the_canonical_target_follows_one_order_whatever_came_first(
        history in history(70),
        seed in any::<u64>(),
        number in 0..3usize,
    ) {
        let (graph, model) = grown(&history);
        let other = Graph::load(Registry::builtin(), &shuffled(&graph.save(), seed)).expect("valid");
        let plan = plans()[number].clone();
        for (id, _) in model.resources.iter() {
            let manifestations = model.manifestations(*id);
            let (Some(here), Some(there)) = (graph.node(*id), other.node(*id)) else { continue };
            let answer = graph.canonical(here, plan.as_ref());
            prop_assert_eq!(&answer, &other.canonical(there, plan.as_ref()));
            // The rules as a chain of filters.
            let mut left: Vec<_> = manifestations.iter().copied().collect();
            let bounded: Vec<_> = left.iter().copied().filter(|one| model.boundary(*one).is_some()).collect();
            if bounded.len() == 1 { left = bounded; }
            let rank = |one: &ResourceId| model.strategy(*one).map_or(0, |s| match s {
                Strategy::GitWorktree => 4,
                Strategy::Snapshot => 3,
                Strategy::Overlay | Strategy::CopyOnWrite => 2,
                Strategy::TransactionRollback => 1,
            });
            let best = left.iter().map(rank).max();
            left.retain(|one| Some(rank(one)) == best);
            let primary = |one: &ResourceId| plan.as_ref().is_some_and(|plan| {
                let project = model.projects.get(&plan.primary);
                let above = model.contains_ancestors(*one);
                project.is_some_and(|p| p.links.iter().any(|l| above.contains_key(&l.resource)))
            });
            if left.iter().any(primary) { left.retain(primary); }
            prop_assert_eq!(answer.map(|answer| answer.resource), left.iter().min().copied());
        }
    }

    // conformance: CHG-1, CHG-2
    #[test]
    fn propagation_ends_and_tells_each_once(
        history in history(70),
        touched in prop::collection::vec((any_id(), any::<bool>()), 1..4),
        outcomes in prop::collection::vec(0..3u8, usize::from(IDS)),
    ) {
        let (graph, model) = grown(&history);
        let touched: Vec<_> = touched.into_iter()
            .filter_map(|(id, mode)| Some((graph.node(id)?, if mode { Touch::Mode } else { Touch::Content })))
            .collect();
        let start: BTreeSet<_> = touched.iter().map(|(node, _)| graph.id(*node))
            .flat_map(|id| {
                let of_virtual = model.manifestations(id);
                if model.is_virtual(id) { of_virtual } else { BTreeSet::from([id]) }
            })
            .collect();
        // With everything taken for changed: all that can follow, by closure.
        let most = graph.impact(&touched, &mut AnyChange);
        let follows = closure(&graph, &model, &start);
        let reached: BTreeSet<_> = most.effects.iter()
            .filter(|effect| matches!(effect.what, What::Changed | What::Status | What::Check))
            .map(|effect| effect.resource)
            .collect();
        prop_assert!(follows.is_subset(&reached), "{:?} {:?}", follows, most);
        // Each identity answers as drawn; asked at most once.
        let order: Vec<_> = model.resources.keys().copied().collect();
        let mut asked = Vec::new();
        let mut judge = |id: ResourceId| {
            asked.push(id);
            let at = order.iter().position(|one| *one == id).unwrap_or(0);
            [Identity::Unchanged, Identity::Changed, Identity::Unknown][usize::from(outcomes[at % outcomes.len()])]
        };
        let impact = graph.impact(&touched, &mut judge);
        let once: BTreeSet<_> = asked.iter().copied().collect();
        prop_assert_eq!(once.len(), asked.len(), "an identity was asked for twice");
        let told: Vec<_> = impact.effects.iter().chain(&impact.identities).map(|e| e.resource).collect();
        let distinct: BTreeSet<_> = told.iter().copied().collect();
        prop_assert_eq!(distinct.len(), told.len(), "told twice: {:?}", impact);
        // Where nothing is shared across places, children come before parents.
        let shared = model.edges.values().any(|e| e.link == Link::Manifests(Coherence::Transparent));
        let place: BTreeMap<_, _> = impact.effects.iter().enumerate()
            .filter(|(_, e)| matches!(e.what, What::Changed | What::Status))
            .map(|(at, e)| (e.resource, at)).collect();
        if !shared {
            prop_assert!(impact.again.is_empty());
            for (child, at) in &place {
                for up in model.contains_ancestors(*child).keys().filter(|up| *up != child) {
                    prop_assert!(place.get(up).is_none_or(|above| above > at));
                }
            }
        }
        // It stopped where an identity stayed: whoever is told of a status has
        // a child that passed the change on.
        for effect in impact.effects.iter().filter(|e| e.what == What::Status) {
            let at = order.iter().position(|one| *one == effect.because).unwrap_or(0);
            let has_identity = graph.node(effect.because)
                .is_some_and(|node| graph.see(node).kind().equivalence.is_some());
            let stayed = outcomes[at % outcomes.len()] == 0;
            prop_assert!(!(has_identity && stayed), "{:?}", effect);
        }
    }
}

/// What follows from changes when every identity changes: ancestors, and over
/// shared storage again.
fn closure(graph: &Graph, model: &Model, start: &BTreeSet<ResourceId>) -> BTreeSet<ResourceId> {
    let mut all = start.clone();
    loop {
        let mut more = BTreeSet::new();
        for one in &all {
            more.extend(model.contains_ancestors(*one).into_keys());
            for (v, c, _) in model
                .edges
                .keys()
                .filter(|(_, c, k)| c == one && *k == EdgeKind::Manifests)
            {
                let how = |id: &ResourceId| model.edges[&(*v, *id, EdgeKind::Manifests)].link;
                let transparent = Link::Manifests(Coherence::Transparent);
                if how(c) == transparent {
                    let others = model.manifestations(*v).into_iter();
                    more.extend(others.filter(|other| how(other) == transparent));
                }
            }
        }
        more.retain(|one| graph.node(*one).is_some());
        if more.is_subset(&all) {
            return all;
        }
        all.extend(more);
    }
}

/// The same rows in another order.
fn shuffled(saved: &Saved, seed: u64) -> Saved {
    let key = |n: u64| n.wrapping_add(seed).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 7;
    fn by<T: Clone>(rows: &[T], key: impl Fn(u64) -> u64) -> Vec<T> {
        let mut rows: Vec<_> = (0u64..).map(&key).zip(rows.iter().cloned()).collect();
        rows.sort_by_key(|(key, _)| *key);
        rows.into_iter().map(|(_, row)| row).collect()
    }
    Saved {
        resources: by(&saved.resources, key),
        edges: by(&saved.edges, key),
        projects: by(&saved.projects, key),
    }
}

fn tools() -> Toolbox {
    toolbox(vec![
        tool(
            "edit",
            Access::ReadWrite,
            "git-checkout fs-directory fs-mount",
        ),
        tool("look", Access::ReadOnly, "fs-file fs-directory executable"),
        tool(
            "put",
            Access::WriteOnly,
            "container-instance container-mount fs-file",
        ),
    ])
}
