//! What a sandbox has beside the working state: ignored files as any other,
//! and remotes that can be pushed to, each only when asked for.
#![allow(
    clippy::disallowed_methods,
    reason = "tests inspect real trees with foreign means"
)]

use sandbar_tests::fixture;
use sandbar_tests::foreign::{git, sh};
use sandbar_tests::product::World;

// conformance: CKP-6 (track-ignored)
#[test]
fn ignored_files_are_tracked_when_asked_for() {
    let (world, repo) = (World::new(), fixture::small());
    let root = repo.root();
    sh(
        root,
        "printf 'out/\\n*.log\\n' > .gitignore; mkdir out; echo 1 > out/a; echo old > x.log",
    );
    git(root, &["add", ".gitignore"]);
    git(root, &["commit", "-qm", "ignore"]);
    let before = git(root, &["status", "--porcelain"]);
    let edit = "echo 2 > out/a; echo n > out/new; rm x.log; echo t > t.log";
    // Without the flag they are not there, and what is made of them stays inside.
    world.run(
        root,
        "plain",
        "test ! -e out && test ! -e x.log && mkdir out && echo 2 > out/a",
    );
    let plain = world.json(root, &["diff", "plain"]);
    assert_eq!(plain["boundaries"][0]["changes"], serde_json::json!([]));
    let argv = [
        "run",
        "--name",
        "all",
        "--track-ignored",
        "--",
        "sh",
        "-ec",
        edit,
    ];
    drop(world.ok(root, &argv));
    let diff = world.json(root, &["diff", "all"]);
    let paths: Vec<_> = diff["boundaries"][0]["changes"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|change| (change["path"].as_str(), change["kind"].as_str()))
        .collect();
    assert_eq!(
        paths,
        [
            (Some("out/a"), Some("modified")),
            (Some("out/new"), Some("added")),
            (Some("t.log"), Some("added")),
            (Some("x.log"), Some("deleted")),
        ]
    );
    // Rules that change inside do not change that.
    drop(world.ok(
        root,
        &[
            "exec",
            "all",
            "--",
            "sh",
            "-c",
            "echo '*' > .gitignore; echo u > u",
        ],
    ));
    drop(world.ok(root, &["rollback", "all", "--to", "2"]));
    let sandbox = world.sandbox(root, "all");
    assert_eq!(
        sh(&sandbox, "cat out/a out/new t.log; ls x.log u 2>&1 | wc -l"),
        "2\nn\nt\n2\n"
    );
    // The commit holds what git would add; the files land all the same.
    drop(world.ok(root, &["apply", "all", "--commit", "-m", "all"]));
    assert_eq!(
        sh(root, "cat out/a out/new t.log; test ! -e x.log"),
        "2\nn\nt\n"
    );
    assert_eq!(git(root, &["status", "--porcelain"]), before);
    assert_eq!(git(root, &["ls-files", "out", "t.log"]), "");
}

// conformance: PLN-4 (push)
#[test]
fn a_push_goes_nowhere_unless_allowed() {
    let (world, repo) = (World::new(), fixture::small());
    let root = repo.root();
    let bare = tempfile::tempdir().expect("a directory");
    let url = bare.path().to_str().expect("a name in UTF-8");
    git(bare.path(), &["init", "-q", "--bare", "."]);
    git(root, &["remote", "add", "origin", url]);
    let script =
        "git checkout -qb topic; echo p > p; git add p; git commit -qm p; git push -q origin topic";
    let refused = world.sandbar(root, &["run", "--name", "kept", "--", "sh", "-ec", script]);
    assert_ne!(refused.code, Some(0), "{}", refused.stderr);
    assert_eq!(git(bare.path(), &["for-each-ref"]), "");
    let argv = [
        "run",
        "--name",
        "sent",
        "--allow-push",
        "--",
        "sh",
        "-ec",
        script,
    ];
    drop(world.ok(root, &argv));
    assert!(git(bare.path(), &["for-each-ref"]).contains("refs/heads/topic"));
    // The repository itself has heard nothing of it.
    assert!(!git(root, &["for-each-ref"]).contains("topic"));
}
