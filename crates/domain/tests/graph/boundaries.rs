//! Boundaries, domains and checkpoints in the hierarchies of the built-in
//! types.

use sandbar_domain::graph::{
    Change, Coherence, Edge, OnChange, Plan, Policy, PolicySource, Registry, Scope, Strategy,
};

use crate::ground::Ground;

pub(crate) const EVERYTHING: &str = "
fs-directory home @/home
  git-checkout repo @/home/repo
    git dotgit @/home/repo/.git
      git-branch main
      git-tree top @4b825dc
        git-tree-entry entry
    fs-directory root @/home/repo
      fs-directory src
        fs-file lib.rs
      git-submodule dep @/home/repo/dep
        fs-directory depdir @/home/repo/dep
          fs-file dep.c
      fs-directory vendor own(copy_on_write)
        fs-file v.c
  fs-directory notes
    fs-file todo
fs-mount disk @/mnt
  fs-file big
container-runtime docker
  container-image alpine
  container-instance web @c0ffee
    container-mount app @/app
      fs-file page.html
    container-mount data @/app/data read_only=true
      fs-file d.csv
    fs-directory etc @/etc
      fs-file passwd
  container-volume vol @vol-1
    fs-directory pg
      fs-file 0001
lsp-server pyright
  lsp-workspace ws root_uri=file:///home/repo
    lsp-document doc document_uri=file:///home/repo/src/lib.rs
executable rustc @/usr/bin/rustc
postgres-database db @shop
  db-schema public
    db-table orders
";

fn boundary(ground: &Ground, name: &str) -> Option<String> {
    let found = ground.graph.boundary(ground.node(name))?;
    Some(ground.name(ground.graph.id(found)).to_owned())
}

// conformance: SBX-1, SBX-2 partial: the algebra; scans and sandboxes are shown with plans, DAG-1
#[test]
fn every_hierarchy_has_its_boundaries() {
    let ground = Ground::new(EVERYTHING);
    let table = [
        ("home", Some("home")),
        ("repo", Some("repo")),
        ("dotgit", Some("repo")),
        ("main", Some("repo")),
        ("entry", Some("repo")),
        ("root", Some("repo")),
        ("lib.rs", Some("repo")),
        ("dep", Some("dep")),
        ("dep.c", Some("dep")),
        ("vendor", Some("vendor")),
        ("v.c", Some("vendor")),
        ("notes", Some("home")),
        ("todo", Some("home")),
        ("disk", Some("disk")),
        ("big", Some("disk")),
        ("docker", None),
        ("alpine", None),
        ("web", Some("web")),
        ("app", Some("web")),
        ("page.html", Some("web")),
        ("etc", Some("web")),
        ("passwd", Some("web")),
        ("vol", Some("vol")),
        ("0001", Some("vol")),
        ("pyright", None),
        ("ws", None),
        ("doc", None),
        ("rustc", None),
        ("db", Some("db")),
        ("orders", Some("db")),
    ];
    for (name, expected) in table {
        assert_eq!(boundary(&ground, name).as_deref(), expected, "{name}");
    }
    let domain = |name| ground.names(ground.graph.domain(ground.node(name)));
    assert_eq!(
        domain("repo"),
        [
            "dotgit", "entry", "lib.rs", "main", "repo", "root", "src", "top"
        ]
    );
    assert_eq!(domain("dep"), ["dep", "dep.c", "depdir"]);
    assert_eq!(
        domain("web"),
        ["app", "d.csv", "data", "etc", "page.html", "passwd", "web"]
    );
    assert_eq!(domain("src"), [] as [&str; 0], "no boundary, no domain");
    let nested = |name| ground.names(ground.graph.nested(ground.node(name)));
    assert_eq!(nested("home"), ["repo"]);
    assert_eq!(nested("repo"), ["dep", "vendor"]);
}

#[test]
fn the_way_to_a_boundary_is_told() {
    let ground = Ground::new(EVERYTHING);
    let answer = ground.graph.explain_boundary(ground.node("lib.rs"));
    let told: Vec<_> = answer
        .path
        .iter()
        .map(|step| {
            let name = ground.name(step.resource);
            format!("{name}: {} because of {}", step.policy, step.source.words())
        })
        .collect();
    assert_eq!(
        told,
        [
            "lib.rs: inherit because of its type",
            "src: inherit because of the boundary it lies in",
            "root: inherit because of the boundary it lies in",
            "repo: own(git_worktree) because of its type",
        ]
    );
    assert_eq!(
        answer.boundary,
        Some((ground.id("repo"), Strategy::GitWorktree))
    );
    let none = ground.graph.explain_boundary(ground.node("doc"));
    assert_eq!(none.boundary, None);
    let names: Vec<_> = none
        .path
        .iter()
        .map(|step| ground.name(step.resource))
        .collect();
    assert_eq!(names, ["doc", "ws", "pyright"]);
}

// conformance: RES-2 partial: the graph's part
#[test]
fn policies_follow_one_order() {
    let policy = |registry: &Registry, text: &str, name: &str| {
        let ground = Ground::with(registry.clone(), text);
        ground.graph.policy(ground.node(name))
    };
    let plain = Registry::builtin();
    let mut set = Registry::builtin();
    set.set_strategy(Some(Policy::Own(Strategy::CopyOnWrite)))
        .expect("a strategy");
    let mut configured = set.clone();
    configured
        .configure("git-checkout", Policy::Own(Strategy::Overlay))
        .expect("it fits");
    let (own, text) = (Policy::Own, "git-checkout r\n  fs-directory d");
    let said = "git-checkout r none\n  fs-directory d";
    use PolicySource::*;
    assert_eq!(
        policy(&plain, text, "r"),
        (own(Strategy::GitWorktree), TypeDefault)
    );
    assert_eq!(
        policy(&set, text, "r"),
        (own(Strategy::CopyOnWrite), Setting)
    );
    assert_eq!(
        policy(&configured, text, "r"),
        (own(Strategy::Overlay), TypeConfiguration)
    );
    assert_eq!(policy(&configured, said, "r"), (Policy::None, Instance));
    // A directory inherits inside, whatever sandbox.strategy says, and is its
    // own where what contains it has none.
    assert_eq!(policy(&set, text, "d"), (Policy::Inherit, Inside));
    assert_eq!(
        policy(&plain, said, "d"),
        (own(Strategy::CopyOnWrite), TypeDefault)
    );
    // A strategy that the type does not support is not set.
    let file = "container-instance c\nfs-file f";
    assert_eq!(
        policy(&set, file, "c"),
        (own(Strategy::Snapshot), TypeDefault)
    );
    assert_eq!(policy(&set, file, "f"), (Policy::Inherit, TypeDefault));
    // `none` inside a boundary: the ancestor's applies.
    let inside = Ground::new("git-checkout r\n  fs-directory d none\n    fs-file f");
    assert_eq!(boundary(&inside, "d").as_deref(), Some("r"));
    assert_eq!(boundary(&inside, "f").as_deref(), Some("r"));
    let mut registry = Registry::builtin();
    assert!(
        registry
            .configure("fs-file", own(Strategy::Overlay))
            .is_err()
    );
    assert!(registry.configure("what", Policy::None).is_err());
    assert!(registry.set_strategy(Some(Policy::Inherit)).is_err());
}

// conformance: SBX-5
#[test]
fn checkpoints_go_to_the_nearest_boundary_that_takes_them() {
    let ground = Ground::new(EVERYTHING);
    let table = [
        ("lib.rs", Scope::File, Some("repo"), 0),
        ("lib.rs", Scope::Commit, Some("repo"), 0),
        ("lib.rs", Scope::Snapshot, Some("repo"), 0),
        ("lib.rs", Scope::Transaction, None, 2),
        ("dep.c", Scope::Commit, Some("dep"), 0),
        ("v.c", Scope::File, Some("vendor"), 0),
        ("v.c", Scope::Commit, Some("repo"), 1),
        ("todo", Scope::Commit, None, 1),
        ("big", Scope::File, Some("disk"), 0),
        ("page.html", Scope::File, None, 1),
        ("page.html", Scope::Snapshot, Some("web"), 0),
        ("orders", Scope::Transaction, Some("db"), 0),
        ("orders", Scope::Snapshot, Some("db"), 0),
        ("orders", Scope::File, None, 1),
        ("doc", Scope::File, None, 0),
    ];
    for (name, scope, expected, skipped) in table {
        let answer = ground.graph.checkpoint_boundary(ground.node(name), scope);
        let found = answer.boundary.map(|id| ground.name(id));
        assert_eq!(found, expected, "{name} {}", scope.word());
        assert_eq!(answer.skipped.len(), skipped, "{name} {}", scope.word());
    }
    let weak = Ground::new("git-checkout a\n  fs-directory d\n    git-checkout b -checkpointable");
    let answer = weak.graph.checkpoint_boundary(weak.node("b"), Scope::File);
    assert_eq!(answer.boundary, Some(weak.id("a")));
}

// conformance: SBX-4
#[test]
fn a_virtual_resource_has_the_boundaries_of_its_manifestations() {
    let mut ground = Ground::new(EVERYTHING);
    let diverge = Coherence::Independent(OnChange::Diverge);
    let of = [
        ("lib.rs", Coherence::Transparent),
        ("doc", Coherence::Cached),
        ("page.html", diverge),
    ];
    ground.same("file", "v", &of);
    let found = ground.graph.boundaries(ground.node("v"));
    let found: Vec<_> = found
        .into_iter()
        .map(|(one, b)| {
            let name = |node| ground.name(ground.graph.id(node));
            (name(one), b.map(name))
        })
        .collect();
    let expected = [
        ("lib.rs", Some("repo")),
        ("page.html", Some("web")),
        ("doc", None),
    ];
    assert_eq!(found, expected);
}

// conformance: RES-6 partial: the graph's part; the sandboxes are made with plans, SBX-6 partial: the graph's part
#[test]
fn a_resource_of_two_projects_is_one_boundary_of_the_plan() {
    let mut ground = Ground::new(EVERYTHING);
    ground.project("one", false, &[("repo", false), ("src", false)]);
    ground.project(
        "two",
        false,
        &[("repo", false), ("db", false), ("doc", false)],
    );
    let plan = Plan {
        others: vec!["two".to_owned()],
        ..Plan::on("one")
    };
    assert_eq!(
        ground.names(ground.graph.plan_boundaries(&plan)),
        ["db", "repo"]
    );
    assert_eq!(
        ground.names(ground.graph.linked(Some(&Plan::on("one")))),
        ["repo", "src"]
    );
}

// conformance: DAG-5
#[test]
fn rights_follow_ancestors_and_links_of_the_moment() {
    let mut ground = Ground::new(EVERYTHING);
    ground.project("mine", false, &[("home", false)]);
    ground.project("theirs", false, &[("repo", true)]);
    let writable = |ground: &Ground, name: &str, plan: Option<&str>| {
        let plan = plan.map(Plan::on);
        ground.graph.is_writable(ground.node(name), plan.as_ref())
    };
    assert!(writable(&ground, "lib.rs", Some("mine")));
    assert!(!writable(&ground, "lib.rs", Some("theirs")));
    assert!(
        !writable(&ground, "lib.rs", None),
        "without a plan all projects count"
    );
    assert!(writable(&ground, "todo", None));
    assert!(
        !writable(&ground, "entry", None),
        "an ancestor cannot be written"
    );
    assert!(
        !writable(&ground, "doc", None),
        "nor can what contains a document"
    );
    // A whole project read-only, then a directory, then neither: at once.
    ground.project("mine", true, &[("home", false)]);
    let told = ground
        .graph
        .explain_writable(ground.node("lib.rs"), Some(&Plan::on("mine")));
    let told: Vec<_> = told.forbids.iter().map(ToString::to_string).collect();
    let home = ground.id("home");
    assert_eq!(
        told,
        [format!("project mine, which links {home}, is read-only")]
    );
    ground.project("mine", false, &[("home", false)]);
    let change = ground.edit("src", |row| row.capabilities.writable = Some(false));
    ground.apply(&[change]);
    assert!(!writable(&ground, "lib.rs", Some("mine")));
    let told = ground
        .graph
        .explain_writable(ground.node("lib.rs"), Some(&Plan::on("mine")));
    assert_eq!(
        told.forbids[0].to_string(),
        format!("{} is not writable", ground.id("src"))
    );
}

#[test]
fn several_parents_are_fine_while_one_boundary_is_nearest() {
    let mut ground = Ground::new(
        "git-checkout a\n  fs-directory d\n    fs-directory e\n      fs-file f\ngit-checkout b\n  fs-directory g",
    );
    let (g, f) = (ground.id("g"), ground.id("f"));
    // b is at distance 2, a at distance 3.
    ground.apply(&[Change::Link(Edge::contains(g, f))]);
    assert_eq!(boundary(&ground, "f").as_deref(), Some("b"));
    assert_eq!(
        ground.names(ground.graph.domain(ground.node("b"))),
        ["b", "f", "g"]
    );
    assert_eq!(
        ground.names(ground.graph.domain(ground.node("a"))),
        ["a", "d", "e"]
    );
}
