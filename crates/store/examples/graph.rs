//! Measures the graph's storage: `graph <address> [resources]`. Commits as many
//! resources and edges as one batch into an empty store, loads them as another
//! process would, makes a graph of them, and follows one change. Prints ms.

use std::time::Instant;

use sandbar_domain::ResourceId;
use sandbar_domain::graph::{Change, Edge, Graph, Registry, Resource};
use sandbar_ports::graph::GraphStore as _;
use sandbar_store::SqlStore;

fn main() {
    let mut args = std::env::args().skip(1);
    let url = args.next().expect("an address of a store");
    let count: u128 = args
        .next()
        .map_or(100_000, |n| n.parse().expect("a number"));
    let id = |n| ResourceId::from_parts(1, n);
    let put = |n| Change::Put(Resource::new(id(n), "fs-directory", &format!("name-{n}")));
    let link = |n| Change::Link(Edge::contains(id(n / 16), id(n)));
    let batch: Vec<_> = (1..=count).map(put).chain((16..=count).map(link)).collect();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime can be built");
    runtime.block_on(async {
        let store = SqlStore::open(&url).await.expect("the store opens");
        let start = Instant::now();
        store.commit_graph(0, batch).await.expect("it commits");
        println!("commit {count}: {} ms", start.elapsed().as_millis());
        let other = SqlStore::open(&url).await.expect("the store opens");
        let start = Instant::now();
        let (generation, rows) = other.load_graph().await.expect("it loads");
        println!("load: {} ms", start.elapsed().as_millis());
        let start = Instant::now();
        let mut graph = Graph::load(Registry::builtin(), &rows).expect("it is valid");
        println!("graph: {} ms", start.elapsed().as_millis());
        let change = vec![put(count + 1), link(count + 1)];
        let start = Instant::now();
        store
            .commit_graph(generation, change)
            .await
            .expect("it commits");
        println!("commit 1: {} ms", start.elapsed().as_millis());
        let start = Instant::now();
        let newer = other.graph_since(generation).await.expect("it answers");
        let (now, delta) = newer.expect("one is new");
        println!("ask for 1: {} µs", start.elapsed().as_micros());
        let start = Instant::now();
        graph.catch_up(now, &delta).expect("it is valid");
        println!("follow 1: {} µs", start.elapsed().as_micros());
    });
}
