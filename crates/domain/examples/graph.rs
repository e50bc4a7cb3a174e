//! Measures the resource graph: `graph [nodes…]`, by default 10,000, 100,000
//! and 1,000,000 resources, depth 6, side by side with the same walk over
//! petgraph. Prints nanoseconds a question, over random resources, and bytes a
//! node.

use std::collections::HashMap;
use std::hint::black_box;
use std::time::Instant;

use petgraph::Direction::Incoming;
use petgraph::graph::{DiGraph, NodeIndex};
use sandbar_domain::ResourceId;
use sandbar_domain::graph::{
    Access, AnyChange, BindingMode, Change, Edge, Graph, Loader, Node, QueryKind, QueryKinds,
    Registry, Resource, Rules, Situation, Slot, Tool, Toolbox, Touch, Want,
};

/// Checkout, root directory, three levels of directories, files: depth 6.
const CHILDREN: usize = 12;

/// A cheap generator: the same numbers each run.
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, limit: usize) -> usize {
        (self.next() % limit as u64) as usize
    }
}

struct World {
    rows: Vec<Resource>,
    edges: Vec<Edge>,
    deep: Vec<ResourceId>,
}

/// Checkouts side by side, each with five levels beneath, the last of files.
fn world(nodes: usize) -> World {
    let mut numbers = Numbers(0x5eed_5eed_5eed_5eed);
    let mut world = World {
        rows: Vec::with_capacity(nodes),
        edges: Vec::with_capacity(nodes),
        deep: Vec::new(),
    };
    while world.rows.len() < nodes {
        let mut level = vec![add(&mut world, &mut numbers, "git-checkout", None)];
        for depth in 1..6 {
            let kind = if depth == 5 {
                "fs-file"
            } else {
                "fs-directory"
            };
            let width = if depth == 1 { 1 } else { CHILDREN };
            let mut next = Vec::new();
            for parent in level {
                for _ in 0..width {
                    if world.rows.len() == nodes {
                        break;
                    }
                    next.push(add(&mut world, &mut numbers, kind, Some(parent)));
                }
            }
            level = next;
        }
        world.deep.extend(level);
    }
    world
}

fn add(
    world: &mut World,
    numbers: &mut Numbers,
    kind: &str,
    parent: Option<ResourceId>,
) -> ResourceId {
    let count = world.rows.len() as u64;
    let random = u128::from(numbers.next()) << 16 | u128::from(count);
    let id = ResourceId::from_parts(1_700_000_000_000 + count / 100, random);
    let name = format!("name-{}", count % 5_000);
    world.rows.push(match parent {
        None => Resource::new(id, kind, &name).at(&format!("/srv/{name}")),
        Some(_) => Resource::new(id, kind, &name),
    });
    world
        .edges
        .extend(parent.map(|parent| Edge::contains(parent, id)));
    id
}

/// Nanoseconds a call; the best of seven rounds.
fn time<T: Copy>(items: &[T], mut call: impl FnMut(T)) -> f64 {
    let round = |call: &mut dyn FnMut(T)| {
        let start = Instant::now();
        for item in items {
            call(*item);
        }
        start.elapsed().as_nanos() as f64 / items.len() as f64
    };
    (0..7).map(|_| round(&mut call)).fold(f64::MAX, f64::min)
}

/// The same question to petgraph: walk up to the first boundary.
fn walk(graph: &DiGraph<bool, ()>, mut at: NodeIndex) -> Option<NodeIndex> {
    loop {
        if graph[at] {
            return Some(at);
        }
        at = graph.neighbors_directed(at, Incoming).next()?;
    }
}

fn node_of(graph: &Graph, id: ResourceId) -> Node {
    graph.node(id).expect("its row was loaded")
}

fn measure(nodes: usize) {
    let World { rows, edges, deep } = world(nodes);
    let start = Instant::now();
    let mut loader = Loader::new(Registry::builtin(), rows.len());
    for row in &rows {
        loader.resource(row).expect("each row has an id of its own");
    }
    edges.iter().for_each(|edge| loader.edge(*edge));
    let mut graph = loader.finish(1).expect("the edges make a forest");
    let loaded = start.elapsed();

    let mut other = DiGraph::<bool, ()>::with_capacity(nodes, nodes);
    let mut places: HashMap<ResourceId, NodeIndex> = HashMap::new();
    for row in &rows {
        places.insert(row.id, other.add_node(row.type_name == "git-checkout"));
    }
    for edge in &edges {
        other.add_edge(places[&edge.parent], places[&edge.child], ());
    }

    let mut numbers = Numbers(0xabcd_ef01_2345_6789);
    let picked: Vec<ResourceId> = (0..200_000)
        .map(|_| deep[numbers.below(deep.len())])
        .collect();
    let asked: Vec<Node> = picked.iter().map(|id| node_of(&graph, *id)).collect();
    let theirs: Vec<NodeIndex> = picked.iter().map(|id| places[id]).collect();
    for (node, there) in asked.iter().zip(&theirs) {
        let boundary = graph.boundary(*node).map(|node| places[&graph.id(node)]);
        assert!(boundary.is_some(), "each resource lies in a checkout");
        assert_eq!(boundary, walk(&other, *there));
    }

    let boundary = time(&asked, |node| {
        black_box(graph.boundary(black_box(node)));
    });
    let petgraph = time(&theirs, |node| {
        black_box(walk(&other, black_box(node)));
    });
    let by_id = time(&picked, |id| {
        let node = node_of(&graph, black_box(id));
        black_box(graph.boundary(node));
    });
    let rights = time(&asked, |node| {
        black_box(graph.is_writable(black_box(node), None));
    });
    let tools = toolbox();
    let situation = Situation {
        graph: &graph,
        tools: &tools,
        handlers: &Rules,
        sandboxes: &[],
        plan: None,
    };
    let first = time(&asked[..20_000], |node| {
        black_box(situation.inverse(black_box(node), Want::Anything).next());
    });
    let write = time(&asked[..20_000], |node| {
        black_box(situation.inverse(black_box(node), Want::Write).next());
    });
    let impact = time(&asked[..20_000], |node| {
        black_box(graph.impact(&[(node, Touch::Content)], &mut AnyChange));
    });
    let (bytes, names) = graph.memory();
    println!(
        "{nodes:>9} nodes  loaded {:>7.1} ms  {:>5.1} bytes a node and {:>4.1} of names",
        loaded.as_secs_f64() * 1e3,
        bytes as f64 / nodes as f64,
        names as f64 / nodes as f64,
    );
    println!(
        "  nearest boundary {boundary:.1} ns, petgraph {petgraph:.1} ns ({:.0} times), by id {by_id:.1} ns",
        petgraph / boundary
    );
    println!(
        "  writable {rights:.1} ns  inverse reach, first {first:.0} ns, first that can write {write:.0} ns"
    );
    println!("  impact of one file {impact:.0} ns");

    let parents: Vec<ResourceId> = (0..2_000)
        .map(|_| edges[numbers.below(edges.len() / 2)].parent)
        .filter(|id| graph.see(node_of(&graph, *id)).type_name() == "fs-directory")
        .collect();
    let mut count = 0u128;
    let added = time(&parents, |parent| {
        count += 1;
        let id = ResourceId::from_parts(9, count);
        let row = Resource::new(id, "fs-file", "new");
        graph
            .apply(&[Change::Put(row), Change::Link(Edge::contains(parent, id))])
            .expect("a directory may contain a file");
    });
    println!("  one file added {added:.0} ns");
}

fn toolbox() -> Toolbox {
    let tool = |name: &str, access, accepts: &[&str]| Tool {
        name: name.to_owned(),
        slots: vec![Slot {
            name: "on".to_owned(),
            accepts: accepts.iter().map(|one| (*one).to_owned()).collect(),
            access,
            checkpointable: false,
            checkpoint_scope: None,
            rollback: String::new(),
            queries: QueryKinds::of(&[QueryKind::Content]),
            richness: None,
            binding: BindingMode::Parameter,
        }],
    };
    let tools = vec![
        tool("edit", Access::ReadWrite, &["git-checkout"]),
        tool("list", Access::ReadOnly, &["fs-directory", "fs-mount"]),
        tool("ask", Access::ReadOnly, &["lsp-workspace"]),
    ];
    Toolbox::new(&Registry::builtin(), tools).expect("the tools accept built-in types")
}

fn main() {
    let asked: Vec<usize> = std::env::args()
        .skip(1)
        .map(|text| text.parse().expect("a number of resources"))
        .collect();
    let sizes = if asked.is_empty() {
        vec![10_000, 100_000, 1_000_000]
    } else {
        asked
    };
    sizes.into_iter().for_each(measure);
}
