//! The command line as outside programs see it: documents, exit codes, names.
#![allow(
    clippy::disallowed_methods,
    reason = "tests inspect real trees with foreign means"
)]

use sandbar_tests::foreign::sh;
use sandbar_tests::product::{Done, World};
use sandbar_tests::{fixture, judge};
use serde_json::json;

// conformance: SRF-3
#[test]
fn exit_codes_are_those_of_the_contract() {
    let (world, repo) = (World::new(), fixture::small());
    let root = repo.root();
    for (line, code) in [
        (&["run", "--name", "x", "--", "sh", "-c", "exit 7"][..], 7),
        (&["exec", "x", "--", "sh", "-c", "kill -TERM $$"], 128 + 15),
        (&["exec", "x", "--", "true"], 0),
        (&["run", "--name", "x", "--", "true"], 125),
        (&["exec", "nobody", "--", "true"], 125),
        (&["status", "nobody"], 5),
        (&["rollback", "x", "--to", "99"], 5),
        (&["frobnicate"], 2),
        (&["run"], 2),
        (&["apply", "x"], 0),
        (&["doctor"], 0),
    ] {
        drop(world.sandbar(root, line).expect(code));
    }
}

// conformance: SRF-3 (documents)
#[test]
fn documents_have_the_promised_fields() {
    let (world, repo) = (World::new(), fixture::small());
    let root = repo.root();
    let run = world.json(
        root,
        &[
            "run",
            "--name",
            "d",
            "--",
            "sh",
            "-euc",
            "echo said; echo x >> b.txt; echo n > n.txt; rm src/c.txt",
        ],
    );
    assert_eq!(run["plan"]["name"], "d");
    assert_eq!(run["plan"]["state"], "review");
    assert_eq!(run["exit_code"], 0);
    assert_eq!(run["sandboxes"][0]["resource"], json!(root));
    assert_eq!(run["sandboxes"][0]["type"], "git-checkout");
    assert_eq!(run["sandboxes"][0]["strategy"], "git_worktree");
    assert_eq!(
        run["changes"],
        json!({"added": 1, "modified": 1, "deleted": 1})
    );
    assert!(run["ignored"].is_number());

    let diff = world.json(root, &["diff", "d"]);
    let changes = &diff["boundaries"][0]["changes"];
    let sum = |content: &[u8]| judge::digest(content);
    assert_eq!(
        changes[0],
        json!({"path": "b.txt", "kind": "modified",
               "old": {"type": "file", "mode": "100644", "hash": sum(b"b\n")},
               "new": {"type": "file", "mode": "100644", "hash": sum(b"b\nx\n")}})
    );
    assert_eq!(changes[1]["old"], json!(null));
    assert_eq!(changes[2]["new"], json!(null));

    let log = world.json(root, &["log", "d"]);
    for field in ["id", "seq", "created_at", "message", "step"] {
        assert!(log["checkpoints"][0].get(field).is_some(), "{field}: {log}");
    }
    let apply = world.json(root, &["apply", "d"]);
    assert_eq!(apply["outcome"], "applied");
    assert_eq!(apply["conflicts"], json!([]));
    assert_eq!(
        apply["resources"][0]["paths"].as_array().map(Vec::len),
        Some(3)
    );
    assert!(apply["warnings"].is_array());
}

// conformance: SRF-3 (errors)
#[test]
fn errors_carry_code_message_and_hint() {
    let (world, repo) = (World::new(), fixture::small());
    let done = world
        .sandbar(repo.root(), &["status", "nobody", "--json"])
        .expect(5);
    let error = &done.json()["error"];
    assert_eq!(error["code"], "plan_not_found");
    assert!(
        error["message"]
            .as_str()
            .is_some_and(|text| text.contains("nobody"))
    );
    assert!(
        error["hint"]
            .as_str()
            .is_some_and(|text| text.contains("plan list"))
    );
}

// conformance: SRF-2 partial: the commands of later work
#[test]
fn a_plan_is_its_name_a_prefix_of_its_id_or_the_newest() {
    let (world, repo) = (World::new(), fixture::small());
    let root = repo.root();
    let first = world.json(root, &["run", "--name", "first", "--", "true"]);
    drop(world.ok(root, &["run", "--name", "second", "--", "true"]));
    let id = first["plan"]["id"].as_str().expect("an id").to_owned();
    let name = |text: &str| world.json(root, &["status", text])["plan"]["name"].clone();
    assert_eq!(name("first"), "first");
    assert_eq!(name(&id), "first");
    assert_eq!(name(&id.to_lowercase()), "first");
    assert_eq!(name("@"), "second");
    let taken = world.sandbar(root, &["run", "--name", "first", "--", "true"]);
    assert!(taken.stderr.contains("exec"), "{}", taken.stderr);
}

// conformance: CKP-1 (failed command) partial: the timer during long commands
#[test]
fn a_failed_command_keeps_its_tree_unless_asked_otherwise() {
    let (world, repo) = (World::new(), fixture::small());
    let root = repo.root();
    let fail = ["sh", "-c", "echo x >> b.txt; exit 3"];
    let line = |name: &'static str, option: &'static [&'static str]| {
        [&["run", "--name", name], option, &["--"], &fail[..]].concat()
    };
    drop(world.sandbar(root, &line("kept", &[])).expect(3));
    let changed = |plan: &str| world.json(root, &["status", plan])["changes"]["modified"].clone();
    assert_eq!(changed("kept"), 1);
    drop(
        world
            .sandbar(root, &line("back", &["--rollback-on-failure"]))
            .expect(3),
    );
    assert_eq!(changed("back"), 0);
    assert_eq!(
        world.json(root, &["status", "kept"])["plan"]["state"],
        "review"
    );
}

// conformance: PLN-6 partial: refused by name, child plans come later
#[test]
fn a_run_inside_a_sandbox_is_refused_by_name() {
    let (world, repo) = (World::new(), fixture::small());
    let root = repo.root();
    let sandbar = sandbar_tests::product::binary();
    let script = format!("{} run --json -- true || test $? = 125", sandbar.display());
    let done = world.run(root, "outer", &script);
    assert!(done.stdout.contains("inside_sandbox"), "{}", done.stdout);
}

// conformance: STR-9 partial: retention and abandoned sandboxes
#[test]
fn discard_removes_the_sandbox_and_nothing_else() {
    let (world, repo) = (World::new(), fixture::small());
    let root = repo.root();
    let before = judge::manifest(root);
    world.run(root, "drop", "echo x >> b.txt; rm -rf src");
    let sandbox = world.sandbox(root, "drop");
    assert!(sandbox.is_dir());
    drop(world.ok(root, &["discard", "drop"]));
    assert!(!sandbox.exists());
    before.assert_same(&judge::manifest(root), "the repository");
    drop(world.ok(root, &["run", "--name", "drop", "--", "true"]));
}

// conformance: STR-2 (copy_on_write) partial: the reflink backend
#[test]
fn a_plain_directory_goes_round() {
    let world = World::new();
    let scratch = tempfile::tempdir().expect("scratch");
    let root = scratch
        .path()
        .canonicalize()
        .expect("scratch exists")
        .join("dir");
    std::fs::create_dir(&root).expect("a directory");
    sh(
        &root,
        "echo a > a; mkdir -p d/e empty; echo b > d/e/b; ln -s a link; ln -s nowhere dangling; echo '*' > .gitignore; chmod +x a",
    );
    let before = judge::manifest(&root);
    let script = "test \"$(cat d/e/b)\" = b; test -d empty; test -x a
        echo aa >> a; rm -r d; mkdir new; echo n > new/n; rmdir empty; ln -sfn new link; chmod -x a";
    world.run(&root, "plain", script);
    before.assert_same(&judge::manifest(&root), "the directory");
    let result = judge::tar_digest(&world.sandbox(&root, "plain"));
    drop(world.ok(&root, &["rollback", "plain", "--to", "1"]));
    drop(world.ok(&root, &["exec", "plain", "--", "sh", "-euc", script]));
    drop(world.ok(&root, &["apply", "plain"]));
    assert_eq!(judge::tar_digest(&root), result);
}

// conformance: SRF-4 partial: progress on a terminal
#[test]
fn nothing_but_the_document_is_printed_when_piped() {
    let (world, repo) = (World::new(), fixture::small());
    let done: Done = world.ok(
        repo.root(),
        &[
            "run",
            "--json",
            "--name",
            "q",
            "--",
            "sh",
            "-c",
            "echo out; echo err >&2",
        ],
    );
    drop(done.json());
    assert!(
        done.stderr.contains("out\n") && done.stderr.contains("err\n"),
        "{}",
        done.stderr
    );
    assert!(!done.stderr.contains('\u{1b}'), "{}", done.stderr);
}
