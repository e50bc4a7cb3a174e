//! Slots and what they are bound to.

use sandbar_domain::graph::{
    Access, BindRefusal, BindingMode, Change, Plan, Scope, Slot, Tool, Toolbox,
};

use crate::boundaries::EVERYTHING;
use crate::ground::{Ground, id, slot, toolbox};

fn one(slot: Slot) -> Toolbox {
    toolbox(vec![Tool {
        name: "tool".to_owned(),
        slots: vec![slot],
    }])
}

// conformance: RCH-1
#[test]
fn slots_bind_by_context_by_name_and_by_parameter() {
    let mut ground = Ground::new(EVERYTHING);
    ground.project(
        "p",
        false,
        &[("repo", false), ("src", false), ("db", false)],
    );
    let plan = Plan::on("p");
    let mut given = slot("what", Access::ReadOnly, "fs-file fs-directory");
    given.binding = BindingMode::Parameter;
    let mut named = slot("where", Access::ReadOnly, "executable");
    named.binding = BindingMode::Static("rustc".to_owned());
    let mut context = slot("repo", Access::ReadWrite, "git-checkout git-submodule");
    context.binding = BindingMode::Contextual;
    let tools = toolbox(vec![Tool {
        name: "build".to_owned(),
        slots: vec![given, named, context],
    }]);
    let bound = tools
        .bind(
            &ground.graph,
            &plan,
            "build",
            &[("what", ground.id("lib.rs"))],
        )
        .expect("all three");
    let names: Vec<_> = bound
        .iter()
        .map(|binding| ground.name(ground.graph.id(binding.resource)))
        .collect();
    assert_eq!(names, ["lib.rs", "rustc", "repo"]);
}

// conformance: RCH-1
#[test]
fn what_does_not_bind_says_why() {
    let mut ground = Ground::new(EVERYTHING);
    ground.add("git-checkout other @/other", None);
    ground.add("executable rustc#2", None);
    ground.project(
        "p",
        false,
        &[("repo", false), ("other", false), ("disk", false)],
    );
    let plan = Plan::on("p");
    let mut context = slot("on", Access::ReadOnly, "git-checkout");
    context.binding = BindingMode::Contextual;
    let bind = |ground: &Ground, slot: Slot, given: &[_]| {
        one(slot)
            .bind(&ground.graph, &plan, "tool", given)
            .expect_err("refused")
    };
    let several = bind(&ground, context.clone(), &[]);
    let both = [ground.id("repo"), ground.id("other")];
    assert!(matches!(&several, BindRefusal::Several { candidates, .. } if *candidates == both));
    assert!(
        both.iter()
            .all(|id| several.to_string().contains(&id.to_string()))
    );
    context.accepts = vec!["postgres-database".to_owned()];
    assert!(matches!(
        bind(&ground, context, &[]),
        BindRefusal::NoMatch { .. }
    ));
    let mut named = slot("on", Access::ReadOnly, "executable");
    named.binding = BindingMode::Static("rustc".to_owned());
    assert!(matches!(
        bind(&ground, named.clone(), &[]),
        BindRefusal::Several { .. }
    ));
    named.binding = BindingMode::Static("gone".to_owned());
    assert!(matches!(
        bind(&ground, named, &[]),
        BindRefusal::NoMatch { .. }
    ));
    let given = slot("on", Access::ReadOnly, "fs-file");
    assert!(matches!(
        bind(&ground, given.clone(), &[]),
        BindRefusal::NoMatch { .. }
    ));
    let wrong = bind(&ground, given.clone(), &[("on", ground.id("repo"))]);
    assert!(matches!(wrong, BindRefusal::WrongType { .. }));
    let gone = bind(&ground, given.clone(), &[("on", id(999))]);
    assert!(matches!(gone, BindRefusal::NoResource { .. }));
    let extra = bind(&ground, given, &[("of", ground.id("lib.rs"))]);
    assert!(matches!(extra, BindRefusal::NoParameter { .. }));
}

// conformance: SBX-5, CKP-5 partial: the graph's part
#[test]
fn a_scope_that_nothing_takes_is_refused_at_binding() {
    let ground = Ground::new(EVERYTHING);
    let plan = Plan::on("p");
    let mut edit = slot("on", Access::ReadWrite, "fs-file db-table");
    (edit.checkpointable, edit.checkpoint_scope) = (true, Some(Scope::Commit));
    let tools = one(edit);
    let bind = |name| tools.bind(&ground.graph, &plan, "tool", &[("on", ground.id(name))]);
    assert!(bind("lib.rs").is_ok());
    assert!(bind("v.c").is_ok(), "the checkout around takes it");
    let BindRefusal::Scope { skipped, .. } = bind("orders").expect_err("refused") else {
        panic!("another reason");
    };
    assert_eq!(skipped.len(), 1);
    assert!(matches!(bind("passwd"), Err(BindRefusal::Scope { .. })));
    // A plan that requires checkpoints takes no writer without.
    let strict = Plan {
        require_checkpoints: true,
        ..plan.clone()
    };
    let given = [("on", ground.id("lib.rs"))];
    for (access, fine) in [(Access::ReadOnly, true), (Access::WriteOnly, false)] {
        let tools = one(slot("on", access, "fs-file"));
        assert_eq!(
            tools.bind(&ground.graph, &strict, "tool", &given).is_ok(),
            fine
        );
        assert!(tools.bind(&ground.graph, &plan, "tool", &given).is_ok());
    }
}

#[test]
fn bad_tools_are_not_taken_in() {
    let registry = sandbar_domain::graph::Registry::builtin();
    let of = |slots: Vec<Slot>| {
        let tool = Tool {
            name: "t".to_owned(),
            slots,
        };
        Toolbox::new(&registry, vec![tool]).expect_err("refused")
    };
    let good = slot("a", Access::ReadOnly, "fs-file");
    assert!(matches!(
        of(vec![good.clone(), good.clone()]),
        BindRefusal::Twice(_)
    ));
    let strange = slot("a", Access::ReadOnly, "what");
    assert!(matches!(of(vec![strange]), BindRefusal::UnknownType { .. }));
    let mut half = good;
    half.checkpointable = true;
    assert!(matches!(
        of(vec![half]),
        BindRefusal::ScopeWithoutCheckpoint(_)
    ));
}

#[test]
fn reach_is_of_the_moment_not_of_the_binding() {
    let mut ground = Ground::new(EVERYTHING);
    let plan = Plan::on("p");
    let tools = one(slot("on", Access::ReadWrite, "fs-directory"));
    let given = [("on", ground.id("src"))];
    let bound = tools
        .bind(&ground.graph, &plan, "tool", &given)
        .expect("bound")[0];
    let count = |ground: &Ground| ground.graph.descendants(bound.resource).count();
    assert_eq!(count(&ground), 2);
    let src = ground.id("src");
    ground.add("fs-file new.rs", Some(src));
    assert_eq!(count(&ground), 3);
    let gone = Change::Remove(ground.id("lib.rs"));
    ground.apply(&[gone]);
    assert_eq!(count(&ground), 2);
}
