//! Routing of reads and writes, ahead and at once.

use sandbar_domain::graph::route::{Ahead, CanonicalReason, NoRoute, SkipReason, Stale};
use sandbar_domain::graph::{
    Access, Canonical, Change, Coherence, Conditions, OnChange, Plan, Query, QueryKind, QueryKinds,
    Resource, Route, Situation, Tool, Toolbox,
};

use crate::ground::{Ground, id, slot, tool, toolbox};
use crate::reaching::{on, thrice};

const DIVERGE: Coherence = Coherence::Independent(OnChange::Diverge);

fn chosen(ground: &Ground, plan: Option<&Plan>) -> (String, CanonicalReason) {
    let answer = ground.graph.canonical(ground.node("v"), plan);
    let answer = answer.expect("something manifests it");
    (ground.name(answer.resource).to_owned(), answer.reason)
}

// conformance: RTE-1
#[test]
fn the_canonical_target_follows_one_order() {
    let text = "
git-checkout repo
  fs-directory root
    fs-file in_repo
container-instance box
  container-mount m
    fs-file in_box
fs-directory dir
  fs-file in_dir
fs-mount disk
  fs-file in_disk
lsp-workspace ws
  lsp-document doc
lsp-workspace ws2
  lsp-document doc2
";
    let of = |names: &[&str]| {
        let mut ground = Ground::new(text);
        let links: Vec<_> = names.iter().map(|name| (*name, DIVERGE)).collect();
        ground.same("file", "v", &links);
        ground
    };
    use CanonicalReason::*;
    let table: &[(&[&str], &str, CanonicalReason)] = &[
        (&["doc", "in_dir", "doc2"], "in_dir", OnlyBoundary),
        (&["in_dir"], "in_dir", OnlyBoundary),
        (
            &["doc", "in_box", "in_repo", "in_dir"],
            "in_repo",
            Strongest,
        ),
        (&["in_disk", "in_dir", "in_box"], "in_box", Strongest),
        (&["in_disk", "in_dir"], "in_dir", LowestId),
        (&["doc2", "doc"], "doc", LowestId),
    ];
    for (names, expected, reason) in table {
        let found = chosen(&of(names), None);
        assert_eq!(found, ((*expected).to_owned(), *reason), "{names:?}");
    }
    // Overlay and copy_on_write tie: the primary project decides, not another.
    let mut ground = of(&["in_disk", "in_dir"]);
    ground.project("main", false, &[("disk", false)]);
    ground.project("side", false, &[("dir", false)]);
    let plan = Plan {
        others: vec!["side".to_owned()],
        ..Plan::on("main")
    };
    assert_eq!(
        chosen(&ground, Some(&plan)),
        ("in_disk".to_owned(), PrimaryProject)
    );
    // A person's word goes before all, while it manifests.
    let said = |name: &str| Canonical {
        resource: ground.id(name),
        auto: false,
    };
    let mut ground2 = of(&["in_repo", "doc"]);
    let set = ground2.edit("v", |row: &mut Resource| row.canonical = Some(said("doc")));
    ground2.apply(&[set]);
    assert_eq!(chosen(&ground2, None), ("doc".to_owned(), Override));
    let stored = ground2.graph.settled_canonical(ground2.node("v"), None);
    assert_eq!(stored, Some(said("doc")), "it is kept as it was said");
    let set = ground2.edit("v", |row| row.canonical = Some(said("in_box")));
    ground2.apply(&[set]);
    assert_eq!(chosen(&ground2, None), ("in_repo".to_owned(), OnlyBoundary));
    // What was chosen by rule is chosen anew.
    let auto = Canonical {
        resource: ground2.id("doc"),
        auto: true,
    };
    let set = ground2.edit("v", |row| row.canonical = Some(auto));
    ground2.apply(&[set]);
    let stored = ground2.graph.settled_canonical(ground2.node("v"), None);
    assert_eq!(
        stored.map(|c| (c.resource, c.auto)),
        Some((ground2.id("in_repo"), true))
    );
}

fn tools() -> Toolbox {
    let with = |name: &str, accepts: &str, kinds: &[QueryKind]| {
        let mut slot = slot("on", Access::ReadOnly, accepts);
        slot.queries = QueryKinds::of(kinds);
        Tool {
            name: name.to_owned(),
            slots: vec![slot],
        }
    };
    let write = |name: &str, accepts: &str| tool(name, Access::ReadWrite, accepts);
    toolbox(vec![
        with(
            "lsp_hover",
            "lsp-workspace",
            &[QueryKind::Semantic, QueryKind::Content],
        ),
        with("cat", "fs-file", &[QueryKind::Content]),
        with(
            "git_log",
            "git-checkout",
            &[QueryKind::History, QueryKind::Content],
        ),
        write("edit_file", "git-checkout fs-directory"),
        write("edit_dir", "fs-directory"),
        write("docker_exec", "container-instance"),
    ])
}

fn told(ground: &Ground, tools: &Toolbox, route: &Route) -> String {
    let target = ground.name(ground.graph.id(route.reach.target));
    let path = &route
        .reach
        .ability
        .projection
        .as_ref()
        .expect("projected")
        .access_path;
    let fallback = if route.fallback { " fallback" } else { "" };
    format!(
        "{} {target} {path}{fallback}",
        tools.tool(route.reach.slot).name
    )
}

const SEMANTIC: Query = Query {
    kind: QueryKind::Semantic,
    tolerates_ms: 100,
};

// conformance: RTE-2
#[test]
fn reads_take_the_richest_way_and_say_why_not_the_others() {
    let ground = thrice();
    let tools = tools();
    let situation = on(&ground.graph, &tools);
    let read = |query, conditions: &Conditions| {
        situation
            .route_read(ground.node("v"), query, conditions)
            .expect("a route")
    };
    let fine = Conditions::default();
    let route = read(SEMANTIC, &fine);
    assert_eq!(
        told(&ground, &tools, &route),
        "lsp_hover doc file:///home/repo/src/lib.rs"
    );
    assert!(route.skipped.is_empty());
    // The richest answers plain questions too.
    let content = Query {
        kind: QueryKind::Content,
        ..SEMANTIC
    };
    assert!(told(&ground, &tools, &read(content, &fine)).starts_with("lsp_hover"));
    // It cannot answer: the next that can, with the reasons.
    let history = Query {
        kind: QueryKind::History,
        ..SEMANTIC
    };
    let route = read(history, &fine);
    assert_eq!(
        told(&ground, &tools, &route),
        "git_log lib.rs /home/repo/src/lib.rs"
    );
    assert!(
        route
            .skipped
            .iter()
            .all(|s| s.reason == SkipReason::WrongKind(QueryKind::History))
    );
    assert_eq!(route.skipped[0].resource, ground.id("doc"));
    // Stale: too old for this query, not for one that tolerates more.
    let mut stale = Conditions::default();
    stale.behind_ms.insert(ground.id("doc"), 500);
    let route = read(content, &stale);
    assert_eq!(
        told(&ground, &tools, &route),
        "cat lib.rs /home/repo/src/lib.rs"
    );
    let reason = SkipReason::Stale {
        behind_ms: 500,
        tolerates_ms: 100,
    };
    assert_eq!(route.skipped[0].reason, reason);
    let patient = Query {
        tolerates_ms: 500,
        ..content
    };
    assert!(told(&ground, &tools, &read(patient, &stale)).starts_with("lsp_hover"));
    // The server is down, and the workspace in it: a plain fallback.
    let mut down = Conditions::default();
    let why = "it crashed".to_owned();
    down.unavailable.insert(ground.id("pyright"), why.clone());
    let route = read(SEMANTIC, &down);
    assert_eq!(
        told(&ground, &tools, &route),
        "cat lib.rs /home/repo/src/lib.rs fallback"
    );
    assert_eq!(route.skipped[0].reason, SkipReason::Unavailable(why));
    let wrong = SkipReason::WrongKind(QueryKind::Semantic);
    assert!(
        route.skipped[1..]
            .iter()
            .all(|skipped| skipped.reason == wrong)
    );
}

// conformance: RTE-2
#[test]
fn a_server_that_is_down_is_passed_over_with_what_lies_in_it() {
    let ground = thrice();
    let tools = tools();
    let situation = on(&ground.graph, &tools);
    let mut down = Conditions::default();
    down.unavailable
        .insert(ground.id("ws"), "it crashed".to_owned());
    let route = situation
        .route_read(ground.node("doc"), SEMANTIC, &down)
        .expect("a route");
    assert_eq!(
        told(&ground, &tools, &route),
        "cat lib.rs /home/repo/src/lib.rs fallback"
    );
    let why = SkipReason::Unavailable("it crashed".to_owned());
    assert_eq!(
        (route.skipped[0].resource, &route.skipped[0].reason),
        (ground.id("doc"), &why)
    );
    for all in ["ws", "repo", "web", "lib.rs", "page.html"] {
        down.unavailable.insert(ground.id(all), "gone".to_owned());
    }
    let none = situation.route_read(ground.node("doc"), SEMANTIC, &down);
    let Err(NoRoute::NoTool { skipped, .. }) = none else {
        panic!("{none:?}");
    };
    assert!(
        skipped.len() > 3
            && skipped
                .iter()
                .all(|s| matches!(s.reason, SkipReason::Unavailable(_)))
    );
}

// conformance: RTE-3
#[test]
fn writes_take_the_canonical_target_and_the_nearest_tool() {
    let mut ground = thrice();
    let tools = tools();
    let fine = Conditions::default();
    let write = |ground: &Ground, name: &str, plan: Option<&Plan>| {
        let situation = Situation {
            plan,
            ..on(&ground.graph, &tools)
        };
        situation.route_write(ground.node(name), &fine)
    };
    // Whichever manifestation was named; of two tools on `src` the narrower.
    for name in ["v", "lib.rs", "page.html", "doc"] {
        let route = write(&ground, name, None).expect("a route");
        assert_eq!(
            told(&ground, &tools, &route),
            "edit_dir lib.rs /home/repo/src/lib.rs"
        );
    }
    // What manifests nothing is its own target.
    let route = write(&ground, "passwd", None).expect("a route");
    assert_eq!(told(&ground, &tools, &route), "edit_dir passwd /etc/passwd");
    // Forbidden: who forbids is named.
    ground.project("p", false, &[("repo", true)]);
    let forbidden = write(&ground, "v", Some(&Plan::on("p"))).expect_err("forbidden");
    let text = forbidden.to_string();
    let by = format!("project p links {} read-only", ground.id("repo"));
    assert!(text.contains(&by), "{text}");
    let change = ground.edit("src", |row| row.capabilities.writable = Some(false));
    ground.apply(&[change]);
    let text = write(&ground, "v", Some(&Plan::on("q")))
        .expect_err("forbidden")
        .to_string();
    assert!(
        text.contains(&format!("{} is not writable", ground.id("src"))),
        "{text}"
    );
    // Writable, but no tool: said with the target.
    let without = write(&ground, "big", None).expect_err("no tool");
    assert!(matches!(without, NoRoute::NoTool { resource, .. } if resource == ground.id("big")));
    ground.same("file", "nothing", &[]);
    let nothing = write(&ground, "nothing", None);
    assert_eq!(nothing, Err(NoRoute::NoManifestation(ground.id("nothing"))));
}

// conformance: RTE-4
#[test]
fn routes_ahead_are_never_used_stale() {
    let mut ground = thrice();
    let tools = tools();
    let wanted = [
        Ahead::Write(ground.id("v")),
        Ahead::Read(ground.id("v"), SEMANTIC),
    ];
    let routes = on(&ground.graph, &tools).routes_ahead(&wanted, &Conditions::default());
    assert_eq!(routes.generation(), ground.graph.generation());
    for ahead in wanted {
        let route = routes.get(&ground.graph, ahead).expect("fresh");
        assert_eq!(
            route.as_ref().map(|route| route.generation),
            Ok(routes.generation())
        );
    }
    let other = Ahead::Write(id(4711));
    assert_eq!(routes.get(&ground.graph, other), Err(Stale::NotComputed));
    // A change that says nothing new leaves them valid; any other does not.
    let same = ground.edit("src", |_| {});
    ground.apply(&[same]);
    assert!(routes.get(&ground.graph, wanted[0]).is_ok());
    ground.add("executable late", None);
    let stale = routes.get(&ground.graph, wanted[0]);
    assert!(matches!(stale, Err(Stale::Changed { .. })));
}

// conformance: RTE-4
#[test]
fn shared_targets_are_announced_before_anything_runs() {
    let mut ground = thrice();
    let tools = tools();
    let warn = |ground: &Ground, scope: &[&str]| -> Vec<String> {
        let scope: Vec<_> = scope.iter().map(|name| ground.node(name)).collect();
        let shared = on(&ground.graph, &tools).shared_targets(&scope);
        let told = shared.iter().map(|target| {
            let through = target.through.iter().map(|(boundary, members)| {
                let boundary = boundary.map_or("none", |id| ground.name(id));
                let members: Vec<_> = members.iter().map(|id| ground.name(*id)).collect();
                format!("{boundary}: {}", members.join(" "))
            });
            let through: Vec<_> = through.collect();
            format!(
                "{} through {}",
                ground.name(target.resource),
                through.join(", ")
            )
        });
        told.collect()
    };
    let both = ["v through repo: lib.rs, web: page.html"];
    assert_eq!(warn(&ground, &["repo", "web"]), both);
    assert_eq!(warn(&ground, &["home", "docker"]), both);
    assert_eq!(warn(&ground, &["repo"]), [] as [&str; 0]);
    assert_eq!(warn(&ground, &["repo", "disk"]), [] as [&str; 0]);
    // What cannot be written cannot conflict.
    let change = ground.edit("page.html", |row| row.capabilities.writable = Some(false));
    ground.apply(&[change]);
    assert_eq!(warn(&ground, &["repo", "web"]), [] as [&str; 0]);
    let gone = Change::Remove(ground.id("v"));
    ground.apply(&[gone]);
    assert_eq!(warn(&ground, &["home", "docker"]), [] as [&str; 0]);
}
