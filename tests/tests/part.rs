//! A part of a plan is applied; the rest stays in the plan.
#![allow(
    clippy::disallowed_methods,
    reason = "tests inspect real trees with foreign means"
)]

use std::path::Path;

use sandbar_tests::foreign::sh;
use sandbar_tests::product::World;
use sandbar_tests::{fixture, judge};

const WORK: &str = "
    sed -i 's/^line 7$/line seven/' a.txt
    echo x >> b.txt
    rm src/c.txt; echo d > src/d.txt
    mkdir -p new/deep; echo 1 > new/one; echo 2 > new/deep/two
";

fn state(world: &World, root: &Path, plan: &str) -> String {
    let status = world.json(root, &["status", plan]);
    status["plan"]["state"]
        .as_str()
        .expect("a state")
        .to_owned()
}

/// Lists what `diff` says is left.
fn left(world: &World, root: &Path, plan: &str) -> Vec<String> {
    let diff = world.json(root, &["diff", plan]);
    let changes = diff["boundaries"][0]["changes"].as_array().expect("a list");
    let path = |change: &serde_json::Value| change["path"].as_str().expect("a path").to_owned();
    changes.iter().map(path).collect()
}

// conformance: APL-8 (-- PATH), PLN-1 (partially_applied)
#[test]
fn parts_land_one_after_the_other_and_diff_shows_what_is_left() {
    let (world, repo) = (World::new(), fixture::small());
    let root = repo.root();
    world.run(root, "p", WORK);
    let want = judge::tar_digest(&world.sandbox(root, "p"));
    let before = judge::tar_digest(root);

    // As a person types them: relative to where they stand, with what must be
    // made above.
    let src = root.join("src");
    let report = world.json(&src, &["apply", "p", "--", "c.txt", "../new/deep"]);
    assert_eq!(report["outcome"], "partially_applied");
    assert_eq!(report["plan"]["state"], "partially_applied");
    let rest: Vec<_> = report["resources"][0]["rest"]
        .as_array()
        .expect("a list")
        .iter()
        .collect();
    assert_eq!(rest, ["a.txt", "b.txt", "new/one", "src/d.txt"]);
    assert_eq!(judge::status(root), " D src/c.txt\n?? new/deep/two\n");
    assert_eq!(
        left(&world, root, "p"),
        ["a.txt", "b.txt", "new/one", "src/d.txt"]
    );

    let done = world.ok(root, &["apply", "p", "--dry-run", "--", "new"]);
    assert!(
        done.stdout.contains("new/one") && !done.stdout.contains("a.txt"),
        "{}",
        done.stdout
    );
    drop(world.ok(root, &["apply", "p", "--", "new", "b.txt"]));
    assert_eq!(left(&world, root, "p"), ["a.txt", "src/d.txt"]);

    // The person goes on in what was applied, and in what was not.
    sh(root, "echo mine >> b.txt; sed -i 's/^line 30$/mine/' a.txt");
    drop(world.ok(root, &["apply", "p"]));
    assert_eq!(state(&world, root, "p"), "applied");
    assert_eq!(
        sh(root, "tail -1 b.txt; sed -n '7p;30p' a.txt"),
        "mine\nline seven\nmine\n"
    );
    sh(root, "sed -i '$d' b.txt; sed -i 's/^mine$/line 30/' a.txt");
    assert_eq!(judge::tar_digest(root), want);

    // One undo takes all of them back.
    drop(world.ok(root, &["undo", "p"]));
    assert_eq!(judge::tar_digest(root), before);
    assert_eq!(
        left(&world, root, "p"),
        [
            "a.txt",
            "b.txt",
            "new",
            "new/deep",
            "new/deep/two",
            "new/one",
            "src/c.txt",
            "src/d.txt"
        ]
    );
    drop(world.ok(root, &["apply", "p"]));
    assert_eq!(judge::tar_digest(root), want);
}

// conformance: APL-8 (undo of parts), APL-11 (parts)
#[test]
fn edits_between_two_parts_outlive_the_undo_of_both() {
    let (world, repo) = (World::new(), fixture::small());
    let root = repo.root();
    world.run(root, "p", WORK);
    drop(world.ok(root, &["apply", "p", "--", "a.txt"]));
    sh(root, "sed -i 's/^line 30$/mine/' a.txt");
    drop(world.ok(root, &["apply", "p", "--", "src"]));
    drop(world.ok(root, &["undo", "p"]));
    assert_eq!(judge::status(root), " M a.txt\n");
    assert_eq!(sh(root, "sed -n '7p;30p' a.txt"), "line 7\nmine\n");
    assert_eq!(state(&world, root, "p"), "review");
}

// conformance: APL-8 (conflict in a part)
#[test]
fn a_conflict_elsewhere_does_not_stop_a_part_and_a_refusal_keeps_it() {
    let (world, repo) = (World::new(), fixture::small());
    let root = repo.root();
    world.run(root, "p", WORK);
    sh(root, "echo mine > b.txt");
    drop(world.ok(root, &["apply", "p", "--", "a.txt"]));
    let done = world.sandbar(root, &["apply", "p", "--json"]).expect(3);
    assert_eq!(done.json()["conflicts"][0]["path"], "b.txt");
    assert_eq!(
        state(&world, root, "p"),
        "partially_applied",
        "a part of it still is"
    );
    let done = world
        .sandbar(root, &["apply", "p", "--commit", "--json"])
        .expect(3);
    assert_eq!(done.json()["error"]["code"], "commit_refused");
    sh(root, "echo b > b.txt");
    drop(world.ok(root, &["apply", "p"]));
    assert_eq!(state(&world, root, "p"), "applied");
}

// conformance: APL-8 (bad paths), BAD-2 (apply)
#[test]
fn paths_and_resources_that_mean_nothing_are_refused() {
    let (world, repo) = (World::new(), fixture::small());
    let root = repo.root();
    world.run(root, "p", WORK);
    let before = judge::manifest(root);
    for (line, code, exit) in [
        (&["--", "nothing.txt"][..], "path_not_found", 5),
        (&["--", "a.txt", "nothing.txt"], "path_not_found", 5),
        (&["--", "../repo2/a.txt"], "path_escapes", 2),
        (&["--", "/etc/passwd"], "path_escapes", 2),
        (&["--commit", "--", "a.txt"], "commit_refused", 3),
        (&["--branch", "x", "--", "a.txt"], "commit_refused", 3),
        (&["--resource", "/tmp"], "path_not_found", 5),
        (&["--resource", "none"], "path_not_found", 5),
    ] {
        let mut words = vec!["apply", "p", "--json"];
        words.extend(line);
        let done = world.sandbar(root, &words).expect(exit);
        let error = &done.json()["error"];
        assert_eq!(error["code"], code, "{line:?}");
        assert_ne!(error["hint"], "", "{line:?}");
        assert_eq!(state(&world, root, "p"), "review", "{line:?}");
    }
    before.assert_same(&judge::manifest(root), "the repository");

    let here = root.display().to_string();
    drop(world.ok(root, &["apply", "p", "--resource", &here, "--", "b.txt"]));
    assert_eq!(judge::status(root), " M b.txt\n");
    // Everything, from the sandbox's own directory.
    let sandbox = world.sandbox(root, "p");
    drop(world.ok(&sandbox, &["apply", "p", "--resource", &here, "--", "."]));
    assert_eq!(state(&world, root, "p"), "applied");
}
