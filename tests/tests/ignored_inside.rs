//! What git ignores inside, and restores that fail: nothing is overwritten or
//! removed unsaved, the person's files are not taken for deleted ones, and a
//! plan stays usable.
#![allow(
    clippy::disallowed_methods,
    reason = "tests inspect real trees with foreign means"
)]

use std::path::Path;

use sandbar_tests::foreign::sh;
use sandbar_tests::product::World;
use sandbar_tests::{fixture, judge};

/// Lists what `diff` says the plan changes.
fn left(world: &World, root: &Path, plan: &str) -> Vec<String> {
    let diff = world.json(root, &["diff", plan]);
    let changes = diff["boundaries"][0]["changes"].as_array().expect("a list");
    let path = |change: &serde_json::Value| change["path"].as_str().expect("a path").to_owned();
    changes.iter().map(path).collect()
}

/// Runs a script in the sandbox of a plan.
fn exec(world: &World, root: &Path, plan: &str, script: &str) {
    drop(world.ok(root, &["exec", plan, "--", "sh", "-c", script]));
}

// conformance: APL-3 (update), CKP-6 (carried)
#[test]
fn an_update_brings_what_git_ignores_inside_and_no_apply_deletes_it() {
    let (world, repo) = (World::new(), fixture::small());
    let root = repo.root();
    sh(root, "printf '*.log\\n.env\\nout/\\n' > .gitignore");
    world.run(root, "i", "echo agent > agent.txt; echo inside > .env");
    sh(
        root,
        "echo mine > x.log; git add -f x.log; echo .env > .worktreeinclude; echo secret > .env
         printf '*.log\\n.env\\n' > .gitignore; mkdir out; echo kept > out/x",
    );
    let report = world
        .sandbar(root, &["update", "i", "--json"])
        .expect(3)
        .json();
    assert_eq!(report["conflicts"][0]["path"], ".env", "{report}");
    let inside = world.sandbox(root, "i");
    let env = sh(&inside, "cat .env; cat x.log out/x");
    assert!(env.contains("inside") && env.contains("secret"), "{env}");
    assert!(env.ends_with("mine\nkept\n"), "{env}");
    // The agent has git ignore again what the person no longer ignores.
    exec(
        &world,
        root,
        "i",
        "echo settled > .env; echo out/ >> .gitignore",
    );
    assert_eq!(left(&world, root, "i"), [".env", ".gitignore", "agent.txt"]);
    drop(world.ok(root, &["apply", "i"]));
    assert_eq!(
        sh(root, "cat x.log .env out/x agent.txt"),
        "mine\nsettled\nkept\nagent\n"
    );
}

// conformance: CKP-4 (ignored by now)
#[test]
fn a_rollback_over_what_git_ignores_by_now_saves_it_first() {
    let (world, repo) = (World::new(), fixture::small());
    let root = repo.root();
    sh(
        root,
        "echo '*.log' > .gitignore; git add -A; git commit -qm i",
    );
    world.run(root, "r", "echo one > x.log; git add -f x.log");
    exec(
        &world,
        root,
        "r",
        "git rm -q --cached x.log; echo two > x.log",
    );
    let inside = world.sandbox(root, "r");
    let back = world.json(root, &["rollback", "r", "--to", "2"]);
    assert_eq!(sh(&inside, "cat x.log; git ls-files x.log"), "one\nx.log\n");
    let replaced = back["replaced"].to_string();
    drop(world.ok(root, &["rollback", "r", "--to", &replaced]));
    assert_eq!(sh(&inside, "cat x.log; git ls-files x.log"), "two\n");
    judge::fsck(&inside);
}

// conformance: CKP-4 (a rollback that cannot be)
#[test]
fn a_rollback_that_fails_changes_nothing_and_can_be_done_again() {
    let (world, repo) = (World::new(), fixture::small());
    let root = repo.root();
    sh(
        root,
        "echo build/ > .gitignore; git add -A; git commit -qm i",
    );
    world.run(root, "w", "echo file > d");
    exec(
        &world,
        root,
        "w",
        "rm d; mkdir -p d/build; echo made > d/build/o; echo more > more.txt",
    );
    let inside = world.sandbox(root, "w");
    let before = judge::manifest(&inside);
    drop(
        world
            .sandbar(root, &["rollback", "w", "--to", "2"])
            .expect(3),
    );
    before.assert_same(&judge::manifest(&inside), "the sandbox");
    exec(&world, root, "w", "mv d elsewhere");
    drop(world.ok(root, &["rollback", "w", "--to", "2"]));
    assert_eq!(
        sh(&inside, "cat d; cat elsewhere/build/o; test ! -e more.txt"),
        "file\nmade\n"
    );
}

// conformance: CKP-1 (rollback on failure)
#[test]
fn a_failed_command_that_changed_nothing_takes_nothing_back() {
    let (world, repo) = (World::new(), fixture::small());
    let root = repo.root();
    world.run(root, "f", "echo one > one.txt");
    exec(&world, root, "f", "echo two > two.txt");
    let command = ["exec", "f", "--rollback-on-failure", "--", "false"];
    drop(world.sandbar(root, &command).expect(1));
    assert_eq!(left(&world, root, "f"), ["one.txt", "two.txt"]);
    let script = "echo three > three.txt; false";
    let command = [
        "exec",
        "f",
        "--rollback-on-failure",
        "--",
        "sh",
        "-c",
        script,
    ];
    drop(world.sandbar(root, &command).expect(1));
    assert_eq!(left(&world, root, "f"), ["one.txt", "two.txt"]);
}

// conformance: CKP-4 (after gc)
#[test]
fn gc_keeps_the_bases_that_checkpoints_go_back_to() {
    let (world, repo) = (World::new(), fixture::small());
    let root = repo.root();
    world.run(root, "g", "echo one > one.txt");
    sh(root, "echo first > first.txt");
    drop(world.ok(root, &["update", "g"]));
    exec(&world, root, "g", "echo two > two.txt");
    sh(root, "echo second > second.txt");
    drop(world.ok(root, &["update", "g"]));
    drop(world.ok(root, &["gc", "--now"]));
    drop(world.ok(root, &["rollback", "g", "--to", "4"]));
    assert_eq!(left(&world, root, "g"), ["one.txt", "two.txt"]);
    drop(world.ok(root, &["apply", "g"]));
    assert_eq!(
        sh(root, "cat first.txt second.txt two.txt"),
        "first\nsecond\ntwo\n"
    );
}

// conformance: STR-9 (written after the apply)
#[test]
fn what_was_written_to_a_root_that_stayed_is_saved_before_it_goes() {
    let (world, repo) = (World::new(), fixture::small());
    let root = repo.root();
    sh(root, "echo '*.log' > .gitignore");
    world.run(root, "s", "echo log > x.log; echo agent > agent.txt");
    drop(world.ok(root, &["apply", "s"]));
    let inside = world.sandbox(root, "s");
    sh(&inside, "echo later > later.txt");
    let done = world.ok(root, &["discard", "s"]);
    assert!(done.stderr.contains("x.log"), "{}", done.stderr);
    let shown = world.ok(
        root,
        &["kept", "show", "s", "later.txt", "--checkpoint", "3"],
    );
    assert_eq!(shown.stdout, "later\n");
}

// conformance: CKP-4 (names of our own)
#[test]
fn a_file_of_any_name_survives_every_restore() {
    // Names that lie beside a sandbox root.
    for name in ["t", "o", "p", "r", "tree.cache", "git.cache"] {
        let (world, repo) = (World::new(), fixture::small());
        let root = repo.root();
        sh(
            root,
            &format!("mkdir {name}; echo mine > {name}/x; git add -A; git commit -qm i"),
        );
        world.run(root, "n", "echo one > one.txt");
        exec(&world, root, "n", "echo two > two.txt; git add two.txt");
        let inside = world.sandbox(root, "n");
        drop(world.ok(root, &["rollback", "n", "--to", "2"]));
        assert_eq!(left(&world, root, "n"), ["one.txt"], "{name}: rollback");
        sh(root, "echo newer > newer.txt");
        drop(world.ok(root, &["update", "n"]));
        assert_eq!(left(&world, root, "n"), ["one.txt"], "{name}: update");
        drop(world.ok(root, &["apply", "n"]));
        drop(world.ok(root, &["undo", "n"]));
        assert_eq!(left(&world, root, "n"), ["one.txt"], "{name}: undo");
        assert_eq!(sh(&inside, &format!("cat {name}/x")), "mine\n");
    }
}
