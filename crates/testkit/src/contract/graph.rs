//! The contract of [`GraphStore`]: what goes in comes out, one generation a
//! batch, and whoever is behind is led to the same graph.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use sandbar_domain::graph::{
    Canonical, CapabilityChanges, Change, Coherence, Edge, EdgeKind, FileId, Graph, OnChange,
    Policy, Project, ProjectLink, Registry, Resource, Strategy,
};
use sandbar_domain::{Code, Disposition, ResourceId};
use sandbar_ports::graph::GraphStore;

use super::{cases, done, refused};

/// One storage, empty at first.
#[async_trait]
pub trait GraphWorld: Send + Sync {
    /// Opens it as another process would.
    async fn open(&self) -> Arc<dyn GraphStore>;
}

cases! {
    Arc<dyn GraphWorld>;
    an_empty_graph_is_of_generation_0,
    odd_rows_come_back_equal,
    a_batch_is_one_generation,
    a_batch_on_another_generation_is_refused,
    whoever_is_behind_is_led_to_the_same_graph,
    a_graph_from_the_future_is_refused,
    nul_is_refused_and_nothing_changes,
    thousands_of_rows_go_in_one_batch,
    one_of_eight_commits,
}

fn id(n: u128) -> ResourceId {
    ResourceId::from_parts(3, n)
}

fn dir(n: u128) -> Change {
    Change::Put(Resource::new(id(n), "fs-directory", &format!("d{n}")))
}

async fn an_empty_graph_is_of_generation_0(world: Arc<dyn GraphWorld>) {
    let store = world.open().await;
    let (generation, rows) = done(store.load_graph().await, "loading an empty graph");
    assert_eq!(generation, 0);
    assert!(rows.resources.is_empty() && rows.edges.is_empty() && rows.projects.is_empty());
    assert_eq!(done(store.graph_since(0).await, "asking what is new"), None);
}

fn odd() -> Vec<Change> {
    let mut full = Resource::new(id(1), "fs-directory", "名 \"n'\n")
        .at("/x\\y %s")
        .with_policy(Policy::Own(Strategy::CopyOnWrite))
        .with_property("", "")
        .with_property("a:1", "3:é\n");
    full.capabilities = CapabilityChanges {
        readable: Some(true),
        writable: Some(false),
        sandboxable: None,
        checkpointable: Some(false),
    };
    full.content = Some(String::new());
    full.file = Some(FileId {
        device: u64::MAX,
        inode: 1 << 63,
    });
    let policies = [Policy::Inherit, Policy::None];
    let own = Strategy::ALL.map(Policy::Own);
    let policies = policies.into_iter().chain(own).zip(10..);
    let with_policy = policies.map(|(policy, n)| {
        Change::Put(Resource::new(id(n), "container-volume", "").with_policy(policy))
    });
    let mut canonical = Resource::new(id(2), "file", "v");
    canonical.canonical = Some(Canonical {
        resource: id(3),
        auto: true,
    });
    let mut said = Resource::new(id(4), "file", "w");
    said.canonical = Some(Canonical {
        resource: id(3),
        auto: false,
    });
    let coherences = [
        Coherence::Transparent,
        Coherence::Cached,
        Coherence::Independent(OnChange::Sync),
        Coherence::Independent(OnChange::Diverge),
    ];
    let files = (20..24).map(|n| Change::Put(Resource::new(id(n), "fs-file", "f")));
    let manifests = coherences
        .into_iter()
        .zip(20..)
        .map(|(how, n)| Change::Link(Edge::manifests(id(2), id(n), how)));
    let link = |resource, read_only| ProjectLink {
        resource,
        read_only,
    };
    let projects = [
        ("p", true, vec![link(id(3), false), link(id(1), true)]),
        ("q \"é\"", false, vec![]),
    ];
    let projects = projects.into_iter().map(|(name, read_only, links)| {
        Change::PutProject(Project {
            name: name.to_owned(),
            read_only,
            links,
        })
    });
    [
        Change::Put(full),
        Change::Put(canonical),
        Change::Put(said),
        dir(3),
    ]
    .into_iter()
    .chain(with_policy)
    .chain(files)
    .chain(manifests)
    .chain([
        Change::Link(Edge::contains(id(1), id(3))),
        Change::Link(Edge::references(id(3), id(20))),
    ])
    .chain(projects)
    .collect()
}

async fn odd_rows_come_back_equal(world: Arc<dyn GraphWorld>) {
    // Strategies that do not fit the type are for the graph to refuse.
    let mut rows = sandbar_domain::graph::Saved::default();
    for change in odd() {
        match change {
            Change::Put(row) => rows.resources.push(row),
            Change::Link(edge) => rows.edges.push(edge),
            Change::PutProject(project) => rows.projects.push(project),
            _ => unreachable!("only additions"),
        }
    }
    let store = world.open().await;
    assert_eq!(
        done(store.commit_graph(0, odd()).await, "committing odd rows"),
        1
    );
    let (generation, mut found) = done(world.open().await.load_graph().await, "loading");
    assert_eq!(generation, 1);
    found.resources.sort_by_key(|row| row.id);
    rows.resources.sort_by_key(|row| row.id);
    super::same_list(&found.resources, &rows.resources, "resources come back");
    let key = |edge: &Edge| (edge.parent, edge.child, edge.link.kind());
    found.edges.sort_by_key(key);
    rows.edges.sort_by_key(key);
    super::same_list(&found.edges, &rows.edges, "edges come back");
    found.projects.sort_by(|a, b| a.name.cmp(&b.name));
    super::same_list(&found.projects, &rows.projects, "projects come back");
    let since = done(store.graph_since(0).await, "asking what is new");
    let (_, delta) = since.expect("everything is new");
    let since: BTreeMap<_, _> = rows.resources.iter().map(|r| (r.id, r.clone())).collect();
    assert_eq!(delta.resources, since);
}

async fn a_batch_is_one_generation(world: Arc<dyn GraphWorld>) {
    let store = world.open().await;
    let two = vec![dir(1), dir(2), Change::Link(Edge::contains(id(1), id(2)))];
    assert_eq!(done(store.commit_graph(0, two).await, "committing"), 1);
    assert_eq!(
        done(store.commit_graph(1, vec![]).await, "committing nothing"),
        1
    );
    assert_eq!(
        done(store.commit_graph(1, vec![dir(3)]).await, "committing"),
        2
    );
    let other = world.open().await;
    let (now, delta) = done(other.graph_since(1).await, "asking").expect("one is new");
    assert_eq!(now, 2);
    assert_eq!(delta.resources.keys().copied().collect::<Vec<_>>(), [id(3)]);
    assert!(delta.edges.is_empty() && delta.gone_resources.is_empty());
}

async fn a_batch_on_another_generation_is_refused(world: Arc<dyn GraphWorld>) {
    let store = world.open().await;
    done(store.commit_graph(0, vec![dir(1)]).await, "committing");
    for stale in [0, 2, u64::MAX] {
        let late = store.commit_graph(stale, vec![dir(2)]).await;
        refused(
            late,
            Code::GraphChanged,
            Disposition::Retryable,
            "a late batch",
        );
    }
    let (generation, rows) = done(store.load_graph().await, "loading");
    assert_eq!((generation, rows.resources.len()), (1, 1));
}

/// Batches in which things go, come back and say something else.
fn story() -> Vec<Vec<Change>> {
    let file = |n| Change::Put(Resource::new(id(n), "fs-file", "f"));
    let unlink = |parent, child, kind| Change::Unlink {
        parent,
        child,
        kind,
    };
    let project = |read_only, of: &[u128]| {
        let links = of.iter().map(|n| ProjectLink {
            resource: id(*n),
            read_only: false,
        });
        Change::PutProject(Project {
            name: "p".to_owned(),
            read_only,
            links: links.collect(),
        })
    };
    let contains = |a, b| Change::Link(Edge::contains(id(a), id(b)));
    let same = |how| Change::Link(Edge::manifests(id(9), id(5), how));
    vec![
        vec![dir(1), dir(2), file(5), contains(1, 2), contains(2, 5)],
        vec![
            Change::Put(Resource::new(id(9), "file", "v")),
            same(Coherence::Cached),
        ],
        vec![project(false, &[1, 5])],
        // The same edge says something else.
        vec![
            unlink(id(9), id(5), EdgeKind::Manifests),
            same(Coherence::Transparent),
        ],
        // Contained the other way round.
        vec![unlink(id(1), id(2), EdgeKind::Contains), contains(2, 1)],
        // Gone and back, with other edges.
        vec![project(true, &[1]), Change::Remove(id(5))],
        vec![file(5), contains(1, 5)],
        vec![Change::Remove(id(2)), dir(2), contains(1, 2)],
        vec![Change::RemoveProject("p".to_owned()), Change::Remove(id(1))],
        vec![dir(7), Change::Remove(id(7))],
        vec![project(false, &[2])],
    ]
}

async fn whoever_is_behind_is_led_to_the_same_graph(world: Arc<dyn GraphWorld>) {
    let store = world.open().await;
    let mut own = Graph::new(Registry::builtin());
    let mut behind = vec![own.clone()];
    for batch in story() {
        let expected = own.generation();
        let attempt = own.attempt(&batch).expect("the rules allow it");
        let generation = done(store.commit_graph(expected, batch).await, "committing");
        assert_eq!(generation, expected + 1);
        own.settle(attempt, generation);
        behind.push(own.clone());
    }
    let reader = world.open().await;
    let (generation, rows) = done(reader.load_graph().await, "loading");
    assert_eq!(generation, own.generation());
    let loaded = Graph::load(Registry::builtin(), &rows).expect("it is valid");
    assert_eq!(loaded.save(), own.save());
    for mut graph in behind {
        let from = graph.generation();
        if let Some((now, delta)) = done(reader.graph_since(from).await, "asking") {
            graph.catch_up(now, &delta).expect("it is valid");
        }
        assert_eq!(graph.save(), own.save(), "from generation {from}");
        assert_eq!(graph.generation(), own.generation());
    }
}

async fn a_graph_from_the_future_is_refused(world: Arc<dyn GraphWorld>) {
    let store = world.open().await;
    done(store.commit_graph(0, vec![dir(1)]).await, "committing");
    for ahead in [2, u64::MAX] {
        let answer = store.graph_since(ahead).await;
        refused(
            answer,
            Code::GraphChanged,
            Disposition::Permanent,
            "a generation to come",
        );
    }
}

async fn nul_is_refused_and_nothing_changes(world: Arc<dyn GraphWorld>) {
    let store = world.open().await;
    let plain = || Resource::new(id(1), "fs-file", "f");
    let mut content = plain();
    content.content = Some("a\0".to_owned());
    let project = Project {
        name: "p\0".to_owned(),
        read_only: false,
        links: Vec::new(),
    };
    let bad = [
        Change::Put(Resource::new(id(1), "fs-file", "a\0b")),
        Change::Put(plain().at("/\0")),
        Change::Put(plain().with_property("k\0", "")),
        Change::Put(plain().with_property("k", "\0")),
        Change::Put(content),
        Change::PutProject(project),
    ];
    for change in bad {
        let batch = vec![dir(5), change];
        let answer = store.commit_graph(0, batch).await;
        refused(
            answer,
            Code::Usage,
            Disposition::Permanent,
            "a NUL character",
        );
    }
    assert_eq!(done(store.load_graph().await, "loading").0, 0);
}

async fn thousands_of_rows_go_in_one_batch(world: Arc<dyn GraphWorld>) {
    const COUNT: u128 = 2_500;
    let store = world.open().await;
    let links = (2..=COUNT).map(|n| Change::Link(Edge::contains(id(n / 2), id(n))));
    let batch: Vec<_> = (1..=COUNT).map(dir).chain(links).collect();
    done(store.commit_graph(0, batch).await, "committing many rows");
    let (_, rows) = done(store.load_graph().await, "loading many rows");
    assert_eq!(rows.resources.len() as u128, COUNT);
    assert_eq!(rows.edges.len() as u128, COUNT - 1);
    let gone: Vec<_> = (2..=COUNT).rev().map(|n| Change::Remove(id(n))).collect();
    done(store.commit_graph(1, gone).await, "removing many rows");
    let (_, rows) = done(store.load_graph().await, "loading what is left");
    assert_eq!((rows.resources.len(), rows.edges.len()), (1, 0));
}

async fn one_of_eight_commits(world: Arc<dyn GraphWorld>) {
    let mut racers = Vec::new();
    for n in 0..8 {
        let store = world.open().await;
        racers.push(tokio::spawn(async move {
            store.commit_graph(0, vec![dir(n)]).await
        }));
    }
    let mut won = 0;
    for racer in racers {
        match racer.await.expect("no racer panics") {
            Ok(generation) => {
                assert_eq!(generation, 1);
                won += 1;
            }
            Err(error) => assert_eq!(error.code, Code::GraphChanged, "{error}"),
        }
    }
    assert_eq!(won, 1, "exactly one commits on one generation");
    let (generation, rows) = done(world.open().await.load_graph().await, "loading");
    assert_eq!((generation, rows.resources.len()), (1, 1));
}
