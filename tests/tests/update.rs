//! `update` brings the person's newer state into a sandbox; conflicts are
//! settled there, and the real tree is only read.
#![allow(
    clippy::disallowed_methods,
    reason = "tests inspect real trees with foreign means"
)]

use std::path::Path;

use sandbar_tests::foreign::{git, sh};
use sandbar_tests::product::World;
use sandbar_tests::{fixture, judge};

/// Lists what `diff` says the plan changes.
fn left(world: &World, root: &Path, plan: &str) -> Vec<String> {
    let diff = world.json(root, &["diff", plan]);
    let changes = diff["boundaries"][0]["changes"].as_array().expect("a list");
    let path = |change: &serde_json::Value| change["path"].as_str().expect("a path").to_owned();
    changes.iter().map(path).collect()
}

// conformance: APL-3 (update)
#[test]
fn newer_work_comes_in_and_the_plan_is_what_it_was() {
    let (world, repo) = (World::new(), fixture::small());
    let root = repo.root();
    sh(root, "echo '*.log' > .gitignore; echo early > early.txt");
    world.run(
        root,
        "u",
        "sed -i 's/^line 7$/line seven/' a.txt; echo plan > plan.txt; rm b.txt",
    );
    // The person goes on: commits, edits, adds, deletes, ignores.
    sh(
        root,
        "sed -i 's/^line 30$/mine/' a.txt; mkdir -p d/e; echo new > d/e/new.txt; chmod +x src/c.txt
         git add -A; git commit -qm mine; echo later >> src/c.txt; echo log > x.log
         echo early.txt >> .gitignore; ln -s a.txt link",
    );
    let before = judge::manifest(root);
    let report = world.json(root, &["update", "u"]);
    before.assert_same(&judge::manifest(root), "the real tree");
    assert_eq!(report["outcome"], "updated");
    assert_eq!(report["plan"]["state"], "review");
    let inside = world.sandbox(root, "u");
    assert_eq!(
        sh(
            &inside,
            "sed -n '7p;30p' a.txt; cat d/e/new.txt plan.txt src/c.txt early.txt; ls; readlink link; test -x src/c.txt"
        ),
        "line seven\nmine\nnew\nplan\nc\nlater\nearly\na.txt\nd\nearly.txt\nlink\nplan.txt\nsrc\na.txt\n"
    );
    // What the plan changes is what it changed, no more.
    assert_eq!(left(&world, root, "u"), ["a.txt", "b.txt", "plan.txt"]);
    judge::fsck(&inside);
    let again = world.json(root, &["update", "u"]);
    assert_eq!(again["paths"], serde_json::json!([]));

    drop(world.ok(root, &["apply", "u"]));
    assert_eq!(
        judge::status(root).lines().count(),
        6,
        "{}",
        judge::status(root)
    );
    assert_eq!(
        sh(root, "sed -n '7p;30p' a.txt; test ! -e b.txt"),
        "line seven\nmine\n"
    );
    drop(world.ok(root, &["undo", "u"]));
    let undone = before.difference(&judge::manifest(root));
    let times = |line: &String| line.starts_with('\n') || line.starts_with(".git");
    assert!(undone.iter().all(times), "{}", undone.join("\n"));
}

// conformance: APL-3 (update, conflicts)
#[test]
fn what_cannot_be_merged_stands_inside_until_it_is_settled() {
    let (world, repo) = (World::new(), fixture::small());
    let root = repo.root();
    sh(
        root,
        "printf 'a\\0' > bin; echo gone > gone.txt; echo kept > kept.txt; ln -s a l",
    );
    world.run(
        root,
        "u",
        "sed -i 's/^line 7$/plan/' a.txt; printf 'p\\0' > bin; rm gone.txt; echo plan >> kept.txt
         echo plan > both.txt; ln -sfn plan l; echo fine > fine.txt",
    );
    sh(
        root,
        "sed -i 's/^line 7$/mine/' a.txt; printf 'm\\0' > bin; echo mine >> gone.txt; rm kept.txt
         echo mine > both.txt; ln -sfn mine l; echo harmless > harmless.txt",
    );
    let before = judge::manifest(root);
    let done = world.sandbar(root, &["update", "u", "--json"]).expect(3);
    before.assert_same(&judge::manifest(root), "the real tree");
    let report = done.json();
    assert_eq!(report["outcome"], "conflict");
    let rows: Vec<_> = report["conflicts"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|row| {
            let text = |key: &str| row[key].as_str().unwrap_or("-").to_owned();
            format!("{} {} {}", text("path"), text("reason"), text("beside"))
        })
        .collect();
    assert_eq!(
        rows,
        [
            "a.txt overlap -",
            "bin binary bin.theirs",
            "both.txt both_added -",
            "gone.txt deleted_in_result gone.txt.theirs",
            "kept.txt deleted_here -",
            "l symlink l.theirs",
        ]
    );
    let inside = world.sandbox(root, "u");
    let text = sh(&inside, "cat a.txt both.txt");
    for line in [
        "<<<<<<< sandbar: the plan\nplan\n",
        "line 7\n=======\nmine\n>>>>>>> sandbar: your tree\n",
    ] {
        assert!(text.contains(line), "{line}: {text}");
    }
    assert_eq!(
        sh(
            &inside,
            "od -An -c bin bin.theirs | tr -d ' \\n'; cat gone.txt.theirs kept.txt harmless.txt; readlink l l.theirs"
        ),
        "p\\0m\\0gone\nmine\nkept\nplan\nharmless\nplan\nmine\n"
    );

    // Not settled: neither applied nor updated again, each path named.
    for line in [["apply", "u", "--json"], ["update", "u", "--json"]] {
        let done = world.sandbar(root, &line).expect(3);
        let error = &done.json()["error"];
        assert_eq!(error["code"], "drift", "{line:?}");
        for path in [
            "a.txt",
            "bin.theirs",
            "both.txt",
            "gone.txt.theirs",
            "l.theirs",
        ] {
            assert!(
                error["subjects"].to_string().contains(path),
                "{path}: {error}"
            );
        }
    }
    before.assert_same(&judge::manifest(root), "the real tree");
    drop(world.ok(root, &["apply", "u", "--", "fine.txt"]));
    drop(world.ok(root, &["undo", "u"]));
    drop(world.ok(
        root,
        &[
            "exec",
            "u",
            "--",
            "sh",
            "-euc",
            "sed -i '/^<<<<<<< /d;/^||||||| /,/^=======$/d;/^>>>>>>> /d' a.txt both.txt
             mv bin.theirs bin; rm gone.txt.theirs l.theirs",
        ],
    ));
    drop(world.ok(root, &["apply", "u"]));
    assert_eq!(
        sh(
            root,
            "sed -n '6,9p' a.txt; cat both.txt fine.txt kept.txt; ls; readlink l"
        ),
        "line 6\nplan\nmine\nline 8\nplan\nmine\nfine\nkept\nplan\na.txt\nb.txt\nbin\nboth.txt\nfine.txt\nharmless.txt\nkept.txt\nl\nsrc\nplan\n"
    );
    // What settling displaced of the person's is kept.
    assert_eq!(
        world.ok(root, &["kept", "show", "u", "gone.txt"]).stdout,
        "gone\nmine\n"
    );
}

// conformance: CKP-4 (base), APL-3 (update rolled back)
#[test]
fn a_rollback_over_an_update_forgets_what_it_brought() {
    let (world, repo) = (World::new(), fixture::small());
    let root = repo.root();
    world.run(root, "u", "echo plan >> b.txt");
    sh(root, "sed -i 's/^line 7$/mine/' a.txt; echo new > new.txt");
    let report = world.json(root, &["update", "u"]);
    let (before, after) = (
        report["before"].to_string(),
        report["checkpoint"].to_string(),
    );
    assert_eq!(left(&world, root, "u"), ["b.txt"]);
    drop(world.ok(root, &["rollback", "u", "--to", &before]));
    // The person's newer work is drift again, not something the plan undid.
    assert_eq!(left(&world, root, "u"), ["b.txt"]);
    drop(world.ok(root, &["rollback", "u", "--to", &after]));
    assert_eq!(left(&world, root, "u"), ["b.txt"]);
    drop(world.ok(root, &["rollback", "u", "--to", &before]));
    drop(world.ok(root, &["apply", "u"]));
    assert_eq!(
        sh(root, "sed -n 7p a.txt; cat new.txt b.txt"),
        "mine\nnew\nb\nplan\n"
    );
}

// conformance: APL-3 (update refused)
#[test]
fn an_update_that_makes_no_sense_is_refused() {
    let (world, repo) = (World::new(), fixture::small());
    let root = repo.root();
    drop(world.ok(
        root,
        &["run", "--name", "clean", "--base", "HEAD", "--", "true"],
    ));
    world.run(root, "u", "echo plan >> b.txt");
    let refused = |line: &[&str], code: &str, exit| {
        let mut words = line.to_vec();
        words.push("--json");
        let done = world.sandbar(root, &words).expect(exit);
        assert_eq!(done.json()["error"]["code"], code, "{line:?}");
    };
    refused(&["update", "clean"], "not_available", 4);
    refused(&["update", "none"], "plan_not_found", 5);
    git(root, &["switch", "--quiet", "--create", "elsewhere"]);
    refused(&["update", "u"], "head_moved", 3);
    git(root, &["switch", "--quiet", "main"]);
    drop(world.ok(root, &["apply", "u"]));
    refused(&["update", "u"], "sandbox_gone", 1);
}

// conformance: APL-3 (update of a directory)
#[test]
fn a_plain_directory_is_updated_too() {
    let world = World::new();
    let dir = world.path().join("plain");
    std::fs::create_dir(&dir).expect("a directory");
    sh(&dir, "echo a > a; mkdir d; echo b > d/b");
    world.run(&dir, "u", "echo plan > plan; rm d/b; rmdir d");
    sh(&dir, "echo mine >> a; echo c > d/c");
    drop(world.ok(&dir, &["update", "u"]));
    let inside = world.sandbox(&dir, "u");
    assert_eq!(sh(&inside, "cat a plan d/c; ls d"), "a\nmine\nplan\nc\nc\n");
    drop(world.ok(&dir, &["apply", "u"]));
    assert_eq!(sh(&dir, "cat a plan d/c; ls d"), "a\nmine\nplan\nc\nc\n");
}
