//! Routes followed to their end through the in-memory handlers of every
//! protocol.

use sandbar_domain::ResourceId;
use sandbar_domain::graph::{
    Access, BindingMode, Change, Coherence, Conditions, Edge, Graph, LiveSandbox, OnChange,
    Protocol, Query, QueryKind, QueryKinds, Registry, Resource, Situation, Slot, Tool, Toolbox,
};
use sandbar_testkit::memory::{MemHandlers, MemRefusal};

fn id(n: u128) -> ResourceId {
    ResourceId::from_parts(7, n)
}

/// A file in a checkout, bind-mounted into a container, open in a server, and
/// with a copy in a volume; a table; a branch.
fn world() -> Graph {
    let mut graph = Graph::new(Registry::builtin());
    let rows = [
        Resource::new(id(1), "git-checkout", "repo").at("/repo"),
        Resource::new(id(2), "fs-directory", "root").at("/repo"),
        Resource::new(id(3), "fs-file", "a.py"),
        Resource::new(id(4), "container-runtime", "docker"),
        Resource::new(id(5), "container-instance", "web").at("c1"),
        Resource::new(id(6), "container-mount", "app").at("/app"),
        Resource::new(id(7), "fs-file", "a.py"),
        Resource::new(id(8), "container-volume", "vol").at("v1"),
        Resource::new(id(9), "fs-file", "a.py"),
        Resource::new(id(10), "lsp-server", "pyright"),
        Resource::new(id(11), "lsp-workspace", "ws"),
        Resource::new(id(12), "lsp-document", "a.py").at("file:///repo/a.py"),
        Resource::new(id(13), "postgres-database", "shop").at("shop"),
        Resource::new(id(14), "db-table", "orders"),
        Resource::new(id(15), "git", "dotgit").at("/repo/.git"),
        Resource::new(id(16), "git-branch", "main"),
        Resource::new(id(20), "file", "a.py"),
    ];
    let contains = [
        (1, 2),
        (2, 3),
        (4, 5),
        (5, 6),
        (6, 7),
        (4, 8),
        (8, 9),
        (10, 11),
        (11, 12),
        (13, 14),
        (1, 15),
        (15, 16),
    ];
    let manifests = [
        (3, Coherence::Transparent),
        (7, Coherence::Transparent),
        (9, Coherence::Independent(OnChange::Sync)),
        (12, Coherence::Cached),
    ];
    let rows = rows.into_iter().map(Change::Put);
    let edges = contains
        .into_iter()
        .map(|(p, c)| Edge::contains(id(p), id(c)));
    let same = manifests
        .into_iter()
        .map(|(c, how)| Edge::manifests(id(20), id(c), how));
    let changes: Vec<_> = rows.chain(edges.chain(same).map(Change::Link)).collect();
    graph.apply(&changes).expect("the rules allow it");
    graph
}

fn tools() -> Toolbox {
    let tool = |name: &str, accepts: &str, kinds: &[QueryKind]| Tool {
        name: name.to_owned(),
        slots: vec![Slot {
            name: "on".to_owned(),
            accepts: vec![accepts.to_owned()],
            access: Access::ReadWrite,
            checkpointable: false,
            checkpoint_scope: None,
            rollback: String::new(),
            queries: QueryKinds::of(kinds),
            richness: None,
            binding: BindingMode::Parameter,
        }],
    };
    let tools = vec![
        tool("edit", "git-checkout", &[QueryKind::Content]),
        tool(
            "hover",
            "lsp-workspace",
            &[QueryKind::Semantic, QueryKind::Content],
        ),
        tool("exec", "container-instance", &[QueryKind::Content]),
        tool("psql", "postgres-database", &[QueryKind::Content]),
    ];
    Toolbox::new(&Registry::builtin(), tools).expect("valid")
}

const CONTENT: Query = Query {
    kind: QueryKind::Content,
    tolerates_ms: 0,
};

fn sandbox() -> LiveSandbox {
    LiveSandbox {
        boundary: id(1),
        real: "/repo".to_owned(),
        root: "/s/r".to_owned(),
        in_place: false,
    }
}

// conformance: PRJ-2 (in-memory), RTE-2 (in-memory), RTE-3 (in-memory)
#[test]
fn a_write_goes_to_the_sandbox_and_reads_find_it() {
    let (graph, tools, sandboxes) = (world(), tools(), [sandbox()]);
    let mut handlers = MemHandlers::new();
    handlers.put("", "/repo/a.py", b"old");
    handlers.put("", "/s/r/a.py", b"old");
    let node = graph.node(id(20)).expect("there");
    let fine = Conditions::default();
    let situation = |handlers| Situation {
        graph: &graph,
        tools: &tools,
        handlers,
        sandboxes: &sandboxes,
        plan: None,
    };
    let write = situation(&handlers)
        .route_write(node, &fine)
        .expect("a route");
    let read = situation(&handlers)
        .route_read(node, CONTENT, &fine)
        .expect("a route");
    let (write, read) = (
        write.reach.ability.projection,
        read.reach.ability.projection,
    );
    let (write, read) = (write.expect("projected"), read.expect("projected"));
    assert_eq!(
        (write.protocol, read.protocol),
        (Protocol::Filesystem, Protocol::LspTextDocument)
    );
    assert_eq!(handlers.read(&read).as_deref(), Ok(&b"old"[..]));
    handlers.write(&write, b"new").expect("written");
    assert_eq!(
        handlers.at("", "/repo/a.py"),
        Some(&b"old"[..]),
        "the real file stays"
    );
    assert_eq!(handlers.at("", "/s/r/a.py"), Some(&b"new"[..]));
    // A cached manifestation sees it after a refresh, not before.
    assert_eq!(handlers.read(&read).as_deref(), Ok(&b"old"[..]));
    handlers.refresh(&read.access_path);
    assert_eq!(handlers.read(&read).as_deref(), Ok(&b"new"[..]));
}

// conformance: RCH-6 (in-memory)
#[test]
fn a_protocol_that_is_down_leaves_the_others() {
    let (graph, tools) = (world(), tools());
    let mut handlers = MemHandlers::new();
    let fine = Conditions::default();
    let node = graph.node(id(20)).expect("there");
    let expected = [
        Some(Protocol::LspTextDocument),
        Some(Protocol::Filesystem),
        Some(Protocol::ContainerExec),
        None,
    ];
    let downs = [Protocol::Lsp, Protocol::Filesystem, Protocol::ContainerExec];
    for (at, expected) in expected.into_iter().enumerate() {
        let route = Situation {
            graph: &graph,
            tools: &tools,
            handlers: &handlers,
            sandboxes: &[],
            plan: None,
        }
        .route_read(node, CONTENT, &fine);
        let protocol = route.ok().and_then(|route| route.reach.ability.projection);
        assert_eq!(protocol.map(|p| p.protocol), expected);
        if let Some(down) = downs.get(at) {
            handlers.set_down(*down, true);
        }
    }
}

// conformance: PRJ-1 (in-memory)
#[test]
fn every_protocol_reads_back_what_it_wrote() {
    let graph = world();
    let mut handlers = MemHandlers::new();
    handlers.bind("c1", "/app", "/repo");
    let table = [
        (1, 3, Protocol::Filesystem),
        (1, 16, Protocol::GitObject),
        (15, 16, Protocol::GitObject),
        (4, 9, Protocol::DockerApi),
        (5, 7, Protocol::ContainerExec),
        (8, 9, Protocol::ContainerExec),
        (11, 12, Protocol::LspTextDocument),
        (13, 14, Protocol::Sql),
    ];
    for (from, to, protocol) in table {
        let (from, to) = (graph.node(id(from)), graph.node(id(to)));
        let (from, to) = (from.expect("there"), to.expect("there"));
        let at = graph.project(from, to, &[], &handlers).expect("projected");
        assert_eq!(at.protocol, protocol);
        let bytes = format!("by {}", protocol.word()).into_bytes();
        handlers.write(&at, &bytes).expect("written");
        assert_eq!(handlers.read(&at), Ok(bytes));
    }
    // Through the bind mount the container's file is the checkout's.
    assert_eq!(
        handlers.at("c1", "/app/a.py"),
        handlers.at("", "/repo/a.py")
    );
    let (from, to) = (
        graph.node(id(10)).expect("there"),
        graph.node(id(11)).expect("there"),
    );
    let workspace = graph.project(from, to, &[], &handlers).expect("projected");
    let refused = handlers.write(&workspace, b"no");
    assert!(matches!(
        refused,
        Err(MemRefusal::Cannot { what: "write", .. })
    ));
    handlers.silence(id(11));
    assert_eq!(graph.project(from, to, &[], &handlers), None);
}
