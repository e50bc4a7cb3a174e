//! Commands that only look, where nothing was ever recorded, and whose plans
//! they see once something was.
#![allow(
    clippy::disallowed_methods,
    reason = "tests inspect real trees with foreign means"
)]

use sandbar_tests::foreign::sh;
use sandbar_tests::product::World;
use sandbar_tests::{fixture, judge};
use serde_json::json;

// conformance: SRF-2 partial: before the first plan, SRF-3 partial: before the first plan
#[test]
fn looking_makes_no_data_directory() {
    let (world, repo) = (World::new(), fixture::small());
    let root = repo.root();
    let before = judge::manifest(root);
    let home = judge::manifest(world.path());
    assert_eq!(world.json(root, &["plan", "list"]), json!({"plans": []}));
    let doctor = world.json(root, &["doctor"]);
    assert_eq!(
        (&doctor["plans"], &doctor["sandboxes"]),
        (&json!(0), &json!(0))
    );
    assert!(doctor["views"].is_object(), "{doctor}");
    assert!(world.json(root, &["config"])["values"].is_array());
    assert_eq!(world.json(root, &["gc"])["plans"], json!([]));
    assert_eq!(world.json(root, &["recover"])["applies"], json!([]));
    for line in [
        &["plan", "list"][..],
        &["doctor"],
        &["config"],
        &["gc"],
        &["recover"],
    ] {
        drop(world.ok(root, line));
    }
    for line in [
        &["path", "x"][..],
        &["log"],
        &["log", "x"],
        &["status"],
        &["plan", "show", "x"],
        &["diff", "x"],
        &["checkpoint", "x"],
        &["rollback", "x", "--to", "1"],
        &["apply", "x"],
        &["discard", "x"],
    ] {
        let line = [line, &["--json"]].concat();
        let done = world.sandbar(root, &line).expect(5);
        assert_eq!(done.json()["error"]["code"], "plan_not_found", "{line:?}");
    }
    drop(
        world
            .sandbar(root, &["exec", "x", "--", "true"])
            .expect(125),
    );
    drop(world.sandbar(root, &["shell", "x"]).expect(125));
    assert!(!world.data().exists(), "looking leaves no trace");
    home.assert_same(&judge::manifest(world.path()), "home and data");
    before.assert_same(&judge::manifest(root), "the repository");

    // The same where the directory is there and was never used.
    std::fs::create_dir(world.data()).expect("a directory");
    assert_eq!(world.json(root, &["plan", "list"]), json!({"plans": []}));
    drop(world.sandbar(root, &["status", "x"]).expect(5));
    let inside = std::fs::read_dir(world.data()).expect("a list");
    assert_eq!(inside.count(), 0, "nothing was made in it");
}

// conformance: BAD-16 partial: a store that vanished
#[test]
fn sandboxes_without_a_store_are_a_finding() {
    let (world, repo) = (World::new(), fixture::small());
    let root = repo.root();
    world.run(root, "lost", "echo x >> b.txt");
    sh(&world.data(), "rm sandbar.db*");
    let doctor = world.json(root, &["doctor"]);
    assert_eq!(
        (&doctor["plans"], &doctor["sandboxes"]),
        (&json!(0), &json!(1))
    );
    assert_eq!(doctor["findings"][0]["kind"], "orphan", "{doctor}");
}

// conformance: RES-1 partial: relinking a moved root
#[test]
fn a_plan_stays_with_the_path_and_not_with_the_inode() {
    let world = World::new();
    let base = world.path().canonicalize().expect("scratch exists");
    let (one, two) = (base.join("one"), base.join("two"));
    std::fs::create_dir(&one).expect("a directory");
    sh(&one, "echo 1 > file");
    world.run(&one, "p", "echo 2 > file");
    let sandbox = world.sandbox(&one, "@");
    // Another path with the very inode, as a deleted directory's may come back.
    std::fs::rename(&one, &two).expect("it moves");
    let done = world.sandbar(&two, &["status", "--json"]).expect(5);
    assert_eq!(done.json()["error"]["code"], "plan_not_found");
    let done = world.sandbar(&two, &["apply", "p", "--json"]);
    assert_ne!(done.code, Some(0), "{}", done.stdout);
    assert_eq!(std::fs::read(two.join("file")).expect("a file"), b"1\n");
    // The path again, with another inode: its plans are its own.
    std::fs::create_dir(&one).expect("a directory");
    sh(&one, "echo 1 > file");
    assert_eq!(world.sandbox(&one, "@"), sandbox);
    drop(world.ok(&one, &["apply", "@"]));
    assert_eq!(std::fs::read(one.join("file")).expect("a file"), b"2\n");
    assert_eq!(std::fs::read(two.join("file")).expect("a file"), b"1\n");
}
