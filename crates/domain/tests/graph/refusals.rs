//! What is refused, with both ends named.

use sandbar_domain::Code;
use sandbar_domain::graph::{
    Change, Coherence, Edge, EdgeKind, Graph, Policy, Refusal, Registry, Resource, Strategy,
};

use crate::ground::{Ground, id, sandboxable};

fn refused(ground: &mut Ground, change: Change) -> Refusal {
    let before = ground.graph.save();
    let refusal = ground.graph.apply(&[change]).expect_err("refused");
    assert_eq!(ground.graph.save(), before);
    refusal
}

// conformance: DAG-2
#[test]
fn edges_are_refused_with_both_ends_named() {
    let mut ground = Ground::new(
        "git-checkout repo\n  fs-directory src\n    fs-directory deep\n    fs-file f\nexecutable rustc\nfile v\ncommit c",
    );
    let (repo, src, deep, f) = (
        ground.id("repo"),
        ground.id("src"),
        ground.id("deep"),
        ground.id("f"),
    );
    let (rustc, v, c) = (ground.id("rustc"), ground.id("v"), ground.id("c"));
    ground.apply(&[Change::Link(Edge::references(deep, rustc))]);
    let cached = Coherence::Cached;
    let table = [
        (
            Edge::contains(deep, src),
            "closes a cycle",
            "fs-directory deep",
            "fs-directory src",
        ),
        (
            Edge::contains(src, src),
            "closes a cycle",
            "fs-directory src",
            "fs-directory src",
        ),
        (
            Edge::references(rustc, repo),
            "closes a cycle",
            "executable rustc",
            "git-checkout repo",
        ),
        (
            Edge::references(f, f),
            "closes a cycle",
            "fs-file f",
            "fs-file f",
        ),
        (
            Edge::contains(repo, f),
            "types do not allow",
            "git-checkout repo",
            "fs-file f",
        ),
        (
            Edge::contains(f, src),
            "types do not allow",
            "fs-file f",
            "fs-directory src",
        ),
        (
            Edge::contains(src, f),
            "already",
            "fs-directory src",
            "fs-file f",
        ),
        (
            Edge::references(deep, rustc),
            "already",
            "fs-directory deep",
            "executable rustc",
        ),
        (
            Edge::contains(src, id(99)),
            "does not exist",
            "fs-directory src",
            "0001",
        ),
        (
            Edge::contains(id(99), f),
            "does not exist",
            "0001",
            "fs-file f",
        ),
        (
            Edge::manifests(src, f, cached),
            "virtual resource to a physical",
            "fs-directory src",
            "fs-file f",
        ),
        (
            Edge::manifests(v, c, cached),
            "virtual resource to a physical",
            "file v",
            "commit c",
        ),
        (
            Edge::manifests(f, v, cached),
            "virtual resource to a physical",
            "fs-file f",
            "file v",
        ),
        (
            Edge::manifests(c, f, cached),
            "types do not allow",
            "commit c",
            "fs-file f",
        ),
        (Edge::contains(v, f), "only physical", "file v", "fs-file f"),
        (
            Edge::references(src, v),
            "only physical",
            "fs-directory src",
            "file v",
        ),
    ];
    for (edge, reason, parent, child) in table {
        let refusal = refused(&mut ground, Change::Link(edge));
        let text = refusal.to_string();
        for part in [reason, parent, child] {
            assert!(text.contains(part), "{part:?} in {text:?}");
        }
        assert!(text.contains(&edge.parent.to_string()) && text.contains(&edge.child.to_string()));
        assert_eq!(refusal.code(), Code::GraphRefused);
    }
    // The same with another coherence is still a duplicate.
    ground.apply(&[Change::Link(Edge::manifests(v, f, cached))]);
    let again = Change::Link(Edge::manifests(v, f, Coherence::Transparent));
    assert!(matches!(
        refused(&mut ground, again),
        Refusal::Duplicate { .. }
    ));
    let gone = Change::Unlink {
        parent: repo,
        child: f,
        kind: EdgeKind::Contains,
    };
    assert!(matches!(refused(&mut ground, gone), Refusal::NoEdge { .. }));
}

/// Two checkouts, each with a directory that contains `f`; `f` is nearer to
/// what is between it and `b`.
fn shared() -> Ground {
    let mut ground = Ground::new(
        "git-checkout a\n  fs-directory x\n    fs-directory y\n      fs-directory f\n        fs-file g\ngit-checkout b\n  fs-directory z",
    );
    let (z, f) = (ground.id("z"), ground.id("f"));
    ground.apply(&[Change::Link(Edge::contains(z, f))]);
    ground
}

fn ambiguous(ground: &mut Ground, change: Change) {
    let refusal = refused(ground, change);
    assert_eq!(refusal.code(), Code::AmbiguousBoundary);
    let Refusal::Ambiguous {
        resource,
        first,
        second,
    } = &refusal
    else {
        panic!("{refusal}");
    };
    assert_ne!(first.id, second.id);
    let text = refusal.to_string();
    assert!(text.contains(&resource.id.to_string()), "{text}");
    assert!(text.contains(&first.id.to_string()) && text.contains(&second.id.to_string()));
}

// conformance: DAG-3
#[test]
fn two_nearest_boundaries_are_refused_on_every_route() {
    // A new edge.
    let mut ground = shared();
    let (x, f) = (ground.id("x"), ground.id("f"));
    ambiguous(&mut ground, Change::Link(Edge::contains(x, f)));
    // A removal: without c, a and b are equally near.
    let nearer = |ground: &mut Ground| {
        let c = ground.add("git-checkout c", None);
        let (x, w) = (ground.id("x"), ground.add("fs-directory w", Some(c)));
        let v = ground.add("fs-directory v own(copy_on_write)", Some(w));
        ground.apply(&[
            Change::Link(Edge::contains(v, ground.id("f"))),
            Change::Link(Edge::contains(x, ground.id("f"))),
        ]);
        v
    };
    let mut ground = shared();
    let v = nearer(&mut ground);
    let unlink = Change::Unlink {
        parent: v,
        child: ground.id("f"),
        kind: EdgeKind::Contains,
    };
    ambiguous(&mut ground, unlink);
    ambiguous(&mut ground, Change::Remove(v));
    // A policy.
    let change = ground.edit("v", |row| row.policy = None);
    ambiguous(&mut ground, change);
    // A capability.
    let change = ground.edit("v", |row| row.capabilities = sandboxable(false));
    ambiguous(&mut ground, change);
    // A new boundary, by policy: y becomes as near as z.
    let mut ground = shared();
    let change = ground.edit("z", |row| {
        row.policy = Some(Policy::Own(Strategy::CopyOnWrite))
    });
    ground.apply(&[change]);
    let change = ground.edit("y", |row| row.policy = Some(Policy::Own(Strategy::Overlay)));
    ambiguous(&mut ground, change);
    // A type: from one that inherits to one that has its own.
    let mut typed = Ground::new(
        "fs-mount m inherit\n  fs-directory y none\n    fs-directory f none\ngit-checkout b\n  fs-directory z own(overlay)",
    );
    let (z, f) = (typed.id("z"), typed.id("f"));
    typed.apply(&[Change::Link(Edge::contains(z, f))]);
    let change = typed.edit("y", |row| {
        row.type_name = "fs-mount".to_owned();
        row.policy = None;
    });
    // fs-mount may not contain fs-mount; free it first.
    let free = Change::Unlink {
        parent: typed.id("m"),
        child: typed.id("y"),
        kind: EdgeKind::Contains,
    };
    typed.apply(&[free]);
    ambiguous(&mut typed, change);
}

// conformance: DAG-3
#[test]
fn settings_and_rows_that_make_it_ambiguous_are_refused() {
    let ground = shared();
    let mut registry = Registry::builtin();
    let own = Policy::Own(Strategy::CopyOnWrite);
    registry.configure("fs-directory", own).expect("it fits");
    // Every directory on its own: f is its own boundary, so nothing is shared.
    assert!(ground.graph.reconfigured(registry.clone()).is_ok());
    // As a file f would lie between y and z.
    let mut rows = ground.graph.save();
    rows.resources.retain(|row| row.name != "g");
    let g = ground.id("g");
    rows.edges.retain(|edge| edge.child != g);
    for row in rows.resources.iter_mut().filter(|row| row.name == "f") {
        row.type_name = "fs-file".to_owned();
    }
    assert!(Graph::load(Registry::builtin(), &rows).is_ok());
    let refusal = Graph::load(registry, &rows).expect_err("ambiguous");
    assert_eq!(refusal.code(), Code::AmbiguousBoundary);
}

#[test]
fn rows_are_refused_by_name() {
    let mut ground = Ground::new("git-checkout repo\n  fs-directory src\n    fs-file f\nfile v");
    let put = |row| Change::Put(row);
    let unknown = Resource::new(id(50), "fs-what", "x");
    assert!(
        refused(&mut ground, put(unknown))
            .to_string()
            .contains("fs-what")
    );
    let strange =
        Resource::new(id(50), "fs-file", "x").with_policy(Policy::Own(Strategy::Snapshot));
    assert!(
        refused(&mut ground, put(strange))
            .to_string()
            .contains("snapshot")
    );
    let change = ground.edit("src", |row| row.type_name = "container-mount".to_owned());
    assert!(matches!(
        refused(&mut ground, change),
        Refusal::ChildType { .. }
    ));
    let change = ground.edit("src", |row| row.type_name = "directory".to_owned());
    assert!(matches!(
        refused(&mut ground, change),
        Refusal::WrongKinds { .. }
    ));
    ground.project("p", false, &[("f", false)]);
    let f = ground.id("f");
    let text = refused(&mut ground, Change::Remove(f)).to_string();
    assert!(text.contains("project p"), "{text}");
    assert_eq!(
        refused(&mut ground, Change::Remove(id(77))).code(),
        Code::ResourceNotFound
    );
    let again = Change::RemoveProject("q".to_owned());
    assert_eq!(refused(&mut ground, again).code(), Code::ResourceNotFound);
    let mut rows = ground.graph.save();
    rows.resources.push(rows.resources[0].clone());
    let twice = Graph::load(Registry::builtin(), &rows);
    assert!(matches!(twice, Err(Refusal::Twice(_))));
}
