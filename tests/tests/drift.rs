//! The person works on while a plan does: what both changed is merged where
//! that is clean, else apply stops before it has written anything.
#![allow(
    clippy::disallowed_methods,
    reason = "tests inspect real trees with foreign means"
)]

use sandbar_tests::foreign::{git, sh};
use sandbar_tests::product::World;
use sandbar_tests::{fixture, judge};

// conformance: APL-3 (merge)
#[test]
fn both_sides_of_one_file_merge_when_they_do_not_touch() {
    let (world, repo) = (World::new(), fixture::small());
    let root = repo.root();
    world.run(
        root,
        "m",
        "sed -i 's/^line 3$/line three/' a.txt; echo c2 > src/c.txt",
    );
    sh(root, "sed -i 's/^line 38$/line thirty-eight/' a.txt");
    drop(world.ok(root, &["apply", "m"]));
    assert_eq!(
        sh(
            root,
            "sed -n '3p;38p' a.txt; cat src/c.txt; grep -c . a.txt"
        ),
        "line three\nline thirty-eight\nc2\n40\n"
    );
}

// conformance: APL-3 (conflict)
#[test]
fn conflicts_stop_apply_before_anything_is_written() {
    for (name, theirs, ours, path) in [
        (
            "same line",
            "sed -i 's/^line 20$/theirs/' a.txt",
            "sed -i 's/^line 20$/ours/' a.txt",
            "a.txt",
        ),
        (
            "touching lines",
            "sed -i 's/^line 20$/theirs/' a.txt",
            "sed -i 's/^line 21$/ours/' a.txt",
            "a.txt",
        ),
        (
            "deleted by the person",
            "echo x >> b.txt",
            "rm b.txt",
            "b.txt",
        ),
        (
            "deleted by the plan",
            "rm b.txt",
            "echo x >> b.txt",
            "b.txt",
        ),
        (
            "both made it",
            "echo theirs > n.txt",
            "echo ours > n.txt",
            "n.txt",
        ),
        (
            "binary",
            "printf 'a\\0b' > b.txt",
            "printf 'a\\0c' > b.txt",
            "b.txt",
        ),
        (
            "file against directory",
            "rm b.txt; mkdir b.txt; echo x > b.txt/x",
            "echo ours > b.txt",
            "b.txt",
        ),
        (
            "link against file",
            "ln -sf a.txt b.txt",
            "echo ours > b.txt",
            "b.txt",
        ),
        (
            "directory gone",
            "echo x >> src/c.txt",
            "rm -r src",
            "src/c.txt",
        ),
    ] {
        let (world, repo) = (World::new(), fixture::small());
        let root = repo.root();
        // One harmless change beside it, which must not land either.
        world.run(
            root,
            "c",
            &format!("{theirs}; echo harmless > harmless.txt"),
        );
        sh(root, ours);
        let before = judge::manifest(root);
        let done = world.sandbar(root, &["apply", "c", "--json"]).expect(3);
        before.assert_same(&judge::manifest(root), name);
        let document = done.json();
        assert_eq!(document["outcome"], "conflict", "{name}: {document}");
        assert_eq!(document["conflicts"][0]["path"], path, "{name}: {document}");

        // The plan is not lost: it can be looked at and rolled back.
        assert_eq!(
            world.json(root, &["status", "c"])["plan"]["state"],
            "review",
            "{name}"
        );
        drop(world.ok(root, &["rollback", "c", "--to", "1"]));
    }
}

// conformance: APL-3 (same result)
#[test]
fn the_same_change_on_both_sides_is_no_conflict() {
    let (world, repo) = (World::new(), fixture::small());
    let root = repo.root();
    world.run(
        root,
        "same",
        "echo x >> b.txt; rm src/c.txt; echo n > n.txt",
    );
    sh(root, "echo x >> b.txt; rm src/c.txt; echo n > n.txt");
    let before = judge::tar_digest(root);
    drop(world.ok(root, &["apply", "same"]));
    assert_eq!(judge::tar_digest(root), before);
}

// conformance: APL-3 (branch)
#[test]
fn another_branch_than_at_base_is_refused_unless_asked() {
    let (world, repo) = (World::new(), fixture::small());
    let root = repo.root();
    world.run(root, "b", "echo x >> b.txt");
    git(root, &["switch", "--quiet", "--create", "elsewhere"]);
    let before = judge::manifest(root);
    let done = world.sandbar(root, &["apply", "b", "--json"]).expect(3);
    assert_eq!(done.json()["error"]["code"], "head_moved");
    before.assert_same(&judge::manifest(root), "the repository");
    drop(world.ok(root, &["apply", "b", "--onto-current"]));
    assert_eq!(judge::status(root), " M b.txt\n");
}

// conformance: APL-8 partial: --dry-run of one boundary
#[test]
fn a_dry_run_writes_nothing_and_names_each_path() {
    let (world, repo) = (World::new(), fixture::small());
    let root = repo.root();
    world.run(
        root,
        "d",
        "echo x >> b.txt; rm src/c.txt; mkdir d; echo y > d/e",
    );
    let before = judge::manifest(root);
    let done = world.ok(root, &["apply", "d", "--dry-run"]);
    before.assert_same(&judge::manifest(root), "the repository");
    for path in ["b.txt", "src/c.txt", "d/e"] {
        assert!(done.stdout.contains(path), "{path}: {}", done.stdout);
    }
}
