//! Reach in the examples of the hierarchies: forward, inverse, across
//! equivalence, what a position gives, other ways.

use sandbar_domain::graph::{
    Access, Coherence, Conditions, Graph, Handler, Handlers, OnChange, Plan, Protocol, Rules,
    Situation, Toolbox, Want,
};

use crate::boundaries::EVERYTHING;
use crate::ground::{Ground, tool, toolbox};

pub(crate) fn tools() -> Toolbox {
    toolbox(vec![
        tool(
            "write_file",
            Access::ReadWrite,
            "git-checkout git-submodule fs-directory",
        ),
        tool(
            "read_file",
            Access::ReadOnly,
            "fs-file fs-directory git-checkout",
        ),
        tool("docker_exec", Access::ReadWrite, "container-instance"),
        tool("lsp_hover", Access::ReadOnly, "lsp-workspace"),
        tool("psql", Access::ReadWrite, "postgres-database"),
    ])
}

pub(crate) fn on<'a>(graph: &'a Graph, tools: &'a Toolbox) -> Situation<'a> {
    Situation {
        graph,
        tools,
        handlers: &Rules,
        sandboxes: &[],
        plan: None,
    }
}

/// The same file in a checkout, a container and a language server.
pub(crate) fn thrice() -> Ground {
    let mut ground = Ground::new(EVERYTHING);
    let sync = Coherence::Independent(OnChange::Sync);
    let of = [
        ("lib.rs", Coherence::Transparent),
        ("page.html", sync),
        ("doc", Coherence::Cached),
    ];
    ground.same("file", "v", &of);
    ground
}

// conformance: RCH-2
#[test]
fn a_tool_on_a_checkout_reaches_what_is_in_it() {
    let ground = Ground::new(EVERYTHING);
    let tools = tools();
    let situation = on(&ground.graph, &tools);
    let slot = tools.find("write_file", "on").expect("there");
    let mut found: Vec<_> = situation
        .forward(slot, ground.node("repo"))
        .map(|reach| {
            let name = ground.name(ground.graph.id(reach.target));
            let read = if reach.ability.read { "r" } else { "-" };
            let write = if reach.ability.write { "w" } else { "-" };
            let crosses = reach.ability.projection.is_some_and(|p| p.crosses_sandbox);
            let crosses = if crosses { " crosses" } else { "" };
            format!("{name} {read}{write}{crosses}")
        })
        .collect();
    found.sort_unstable();
    assert_eq!(
        found,
        [
            "dep rw crosses",
            "dep.c rw crosses",
            "depdir rw crosses",
            "dotgit rw",
            "entry r-",
            "lib.rs rw",
            "main rw",
            "repo rw",
            "root rw",
            "src rw",
            "top r-",
            "v.c rw crosses",
            "vendor rw crosses",
        ]
    );
    let reader = tools.find("read_file", "on").expect("there");
    assert!(
        situation
            .forward(reader, ground.node("repo"))
            .all(|reach| !reach.ability.write)
    );
}

// conformance: RCH-3
#[test]
fn a_deep_file_is_reached_by_tools_on_all_its_ancestors() {
    let ground = Ground::new(EVERYTHING);
    let tools = tools();
    let situation = on(&ground.graph, &tools);
    let ways = |want| -> Vec<String> {
        situation
            .inverse(ground.node("lib.rs"), want)
            .map(|reach| {
                let path = reach.path.iter();
                let path: Vec<_> = path.map(|n| ground.name(ground.graph.id(*n))).collect();
                format!("{} {}", tools.tool(reach.slot).name, path.join("/"))
            })
            .collect()
    };
    assert_eq!(
        ways(Want::Read),
        [
            "read_file lib.rs",
            "write_file src/lib.rs",
            "read_file src/lib.rs",
            "write_file root/src/lib.rs",
            "read_file root/src/lib.rs",
            "write_file repo/root/src/lib.rs",
            "read_file repo/root/src/lib.rs",
            "write_file home/repo/root/src/lib.rs",
            "read_file home/repo/root/src/lib.rs",
        ]
    );
    assert_eq!(ways(Want::Write).len(), 4);
    // Lazy: the first needs no look at what lies above.
    let mut first = situation.inverse(ground.node("lib.rs"), Want::Read);
    assert_eq!(first.next().map(|reach| reach.path.len()), Some(1));
}

// conformance: RCH-4 partial: given manifests edges
#[test]
fn reach_across_equivalence_marks_the_manifestation() {
    let ground = thrice();
    let tools = tools();
    let situation = on(&ground.graph, &tools);
    for start in ["lib.rs", "page.html", "doc", "v"] {
        let mut found: Vec<_> = situation
            .equivalent(ground.node(start), Want::Read)
            .map(|reach| {
                let target = ground.name(ground.graph.id(reach.target));
                format!("{} {target}", tools.tool(reach.slot).name)
            })
            .collect();
        found.sort_unstable();
        found.dedup();
        let expected = [
            "docker_exec page.html",
            "lsp_hover doc",
            "read_file lib.rs",
            "read_file page.html",
            "write_file lib.rs",
        ];
        assert_eq!(found, expected, "{start}");
    }
    assert_eq!(
        ground.names(ground.graph.unidentified(ground.node("lib.rs"))),
        ["doc", "lib.rs", "page.html"],
        "to be identified before the answer is taken for complete"
    );
}

// conformance: RCH-5
#[test]
fn a_binding_gives_no_more_than_its_position() {
    let ground = Ground::new(EVERYTHING);
    let tools = tools();
    let situation = on(&ground.graph, &tools);
    let registry = ground.graph.registry();
    let writer = tools.find("write_file", "on").expect("there");
    let reader = tools.find("read_file", "on").expect("there");
    let file = situation.infer(writer, ground.node("lib.rs"));
    assert!(file.reads && file.writes && file.creates.is_empty() && !file.git_metadata);
    assert_eq!(
        ground.names(situation.write_scope(writer, ground.node("lib.rs"))),
        ["lib.rs"]
    );
    let reading = situation.infer(reader, ground.node("repo"));
    assert!(reading.reads && !reading.writes && reading.creates.is_empty());
    let checkout = situation.infer(writer, ground.node("repo"));
    let creates: Vec<_> = checkout
        .creates
        .iter()
        .map(|id| registry.get(*id).name.as_str())
        .collect();
    assert!(checkout.git_metadata);
    assert!(
        ["fs-file", "fs-directory", "git-branch"]
            .iter()
            .all(|kind| creates.contains(kind))
    );
    // The scope of writing ends where another boundary begins.
    let scope = ground.names(situation.write_scope(writer, ground.node("repo")));
    assert_eq!(scope, ["dotgit", "lib.rs", "main", "repo", "root", "src"]);
    let below = ground.names(situation.write_scope(writer, ground.node("src")));
    assert_eq!(below, ["lib.rs", "src"]);
}

/// Rules for all protocols but one.
struct Without(Protocol);

impl Handlers for Without {
    fn handler(&self, protocol: Protocol) -> Option<&dyn Handler> {
        (protocol != self.0).then(|| Rules::of(protocol))
    }
}

// conformance: RCH-6
#[test]
fn when_a_way_is_gone_the_others_are_listed_best_first() {
    let ground = thrice();
    let tools = tools();
    let situation = on(&ground.graph, &tools);
    let hover = tools.find("lsp_hover", "on").expect("there");
    let ways = |situation: Situation<'_>, want, without, conditions: &Conditions| -> Vec<String> {
        situation
            .alternatives(ground.node("v"), want, without, conditions)
            .iter()
            .map(|reach| {
                let target = ground.name(ground.graph.id(reach.target));
                format!("{} {target}", tools.tool(reach.slot).name)
            })
            .collect()
    };
    let gone = (hover, ground.node("doc"));
    let fine = Conditions::default();
    assert_eq!(
        ways(situation, Want::Read, gone, &fine),
        [
            "read_file lib.rs",
            "read_file page.html",
            "write_file lib.rs",
            "docker_exec page.html"
        ]
    );
    let writer = (
        tools.find("write_file", "on").expect("there"),
        ground.node("lib.rs"),
    );
    assert_eq!(
        ways(situation, Want::Write, writer, &fine),
        ["docker_exec page.html"]
    );
    assert_eq!(
        ways(situation, Want::Write, gone, &fine),
        ["write_file lib.rs", "docker_exec page.html"]
    );
    let mut down = Conditions::default();
    down.unavailable
        .insert(ground.id("web"), "stopped".to_owned());
    down.tools_down
        .insert("read_file".to_owned(), "no answer".to_owned());
    assert_eq!(
        ways(situation, Want::Read, gone, &down),
        ["write_file lib.rs"]
    );
    let handlers = Without(Protocol::ContainerExec);
    let unhandled = Situation {
        handlers: &handlers,
        ..situation
    };
    assert_eq!(ways(unhandled, Want::Write, writer, &fine), [] as [&str; 0]);
}

#[test]
fn read_only_links_take_writing_away_at_once() {
    let mut ground = Ground::new(EVERYTHING);
    ground.project("p", false, &[("home", false)]);
    let tools = tools();
    let plan = Plan::on("p");
    let count = |ground: &Ground| {
        let situation = Situation {
            plan: Some(&plan),
            ..on(&ground.graph, &tools)
        };
        situation
            .inverse(ground.node("lib.rs"), Want::Write)
            .count()
    };
    assert_eq!(count(&ground), 4);
    ground.project("p", false, &[("home", false), ("src", true)]);
    assert_eq!(count(&ground), 0);
}
