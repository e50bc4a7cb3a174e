//! `undo` takes an apply back, byte for byte; what the person did since is
//! kept or named.
#![allow(
    clippy::disallowed_methods,
    reason = "tests inspect real trees with foreign means"
)]

use std::path::Path;

use sandbar_tests::foreign::{git, sh};
use sandbar_tests::product::World;
use sandbar_tests::{fixture, judge};

/// Each kind of operation once.
const WORK: &str = "
    sed -i 's/^line 7$/line seven/' a.txt
    chmod +x b.txt
    rm -r src
    mkdir -p new/deep
    echo n > new/deep/n.txt
    ln -s b.txt new/link
    rm kind; ln -s a.txt kind
    ln -sf b.txt link
    rm dir.txt; mkdir dir.txt; echo inner > dir.txt/inner
    rm -r deep; echo file > deep
    echo precious >> locked
";

/// Modes and times that a copy would lose.
const SCENE: &str = "
    echo kind > kind; ln -s a.txt link; echo d > dir.txt
    mkdir -p deep/er; echo e > deep/er/e; chmod 711 deep/er; mkdir -m 750 src/sub; echo s > src/sub/s
    git add -A; git commit -qm more
    echo 'not committed' >> a.txt; echo untracked > mine.txt
    echo l > locked; chmod 604 locked; chmod 744 b.txt; chmod 640 b.txt
    setfattr -n user.note -v kept locked || true
    touch -d @1111111111 a.txt; touch -d @1222222222 src/c.txt
    find . -name .git -prune -o -type f -exec chmod u-x {} +
";

/// Everything but the times of directories, whose content came and went.
fn whole(root: &Path) -> String {
    sh(
        root,
        "find . -name .git -prune -o -type f -printf '%p f %m %U:%G %s %T@ %n\\n' -o -type l -printf '%p l %l %T@\\n' -o -type d -printf '%p d %m %U:%G\\n' | sort
         find . -name .git -prune -o -type f -print0 | sort -z | xargs -0 sha256sum
         getfattr -d -R . 2>/dev/null | sort",
    )
}

fn state(world: &World, root: &Path, plan: &str) -> String {
    let status = world.json(root, &["status", plan]);
    status["plan"]["state"]
        .as_str()
        .expect("a state")
        .to_owned()
}

// conformance: APL-11 (undo), PLN-1 (undo), STR-9 (made again)
#[test]
fn the_tree_is_as_before_to_the_byte_and_the_plan_can_be_applied_again() {
    let (world, repo) = (World::new(), fixture::small());
    let root = repo.root();
    sh(root, SCENE);
    let before = whole(root);
    let git_before = judge::manifest(&root.join(".git"));
    world.run(root, "u", WORK);
    let sandbox = world.sandbox(root, "u");
    let inside = judge::checkout(&sandbox);
    drop(world.ok(root, &["apply", "u"]));
    let after = judge::tar_digest(root);
    assert!(!sandbox.exists(), "it was cleaned up");
    for round in 0..2 {
        let rehearsed = world.ok(root, &["undo", "u", "--dry-run"]);
        assert!(rehearsed.stdout.contains("locked"), "{}", rehearsed.stdout);
        assert_eq!(judge::tar_digest(root), after, "a dry run writes nothing");
        let report = world.json(root, &["undo", "u"]);
        assert_eq!(report["outcome"], "undone");
        assert_eq!(report["plan"]["state"], "review");
        assert_eq!(whole(root), before, "round {round}");
        git_before.assert_same(&judge::manifest(&root.join(".git")), "the git directory");
        // The sandbox is there again, as it was.
        assert_eq!(judge::checkout(&world.sandbox(root, "u")), inside);
        drop(world.ok(root, &["exec", "u", "--", "true"]));
        drop(world.ok(root, &["apply", "u"]));
        assert_eq!(judge::tar_digest(root), after, "applied again");
    }
    assert_eq!(state(&world, root, "u"), "applied");
}

// conformance: APL-11 (drift)
#[test]
fn later_edits_are_merged_or_named_and_then_nothing_is_written() {
    let (world, repo) = (World::new(), fixture::small());
    let root = repo.root();
    world.run(
        root,
        "u",
        "sed -i 's/^line 3$/line three/' a.txt; echo new > n.txt; rm b.txt",
    );
    drop(world.ok(root, &["apply", "u"]));

    // In other lines, and beside: merged.
    sh(
        root,
        "sed -i 's/^line 38$/mine/' a.txt; echo mine > mine.txt; chmod 640 a.txt",
    );
    let report = world.json(root, &["undo", "u"]);
    assert_eq!(report["outcome"], "undone");
    assert_eq!(
        sh(
            root,
            "sed -n '3p;38p' a.txt; cat b.txt mine.txt; ls; stat -c %a a.txt"
        ),
        "line 3\nmine\nb\nmine\na.txt\nb.txt\nmine.txt\nsrc\n640\n"
    );

    for (name, ours, path) in [
        (
            "the same line",
            "sed -i 's/^line three$/mine/' a.txt",
            "a.txt",
        ),
        ("what was made", "echo mine >> n.txt", "n.txt"),
        ("what was removed", "echo mine > b.txt", "b.txt"),
        ("made binary", "printf 'a\\0b' > a.txt", "a.txt"),
        ("gone", "rm a.txt", "a.txt"),
    ] {
        drop(world.ok(root, &["apply", "u"]));
        let applied = repo.scratch().join("applied");
        sh(root, &format!("rm -rf {0}; cp -a . {0}", applied.display()));
        sh(root, ours);
        let before = judge::manifest(root);
        let done = world.sandbar(root, &["undo", "u", "--json"]).expect(3);
        before.assert_same(&judge::manifest(root), name);
        let document = done.json();
        assert_eq!(document["outcome"], "conflict", "{name}: {document}");
        assert_eq!(document["conflicts"][0]["path"], path, "{name}: {document}");
        assert_eq!(state(&world, root, "u"), "applied", "{name}");
        // Settled by hand, it goes.
        sh(
            root,
            &format!(
                "find . -name .git -prune -o -type f -exec rm {{}} +; cp -a {}/[!.]* .",
                applied.display()
            ),
        );
        drop(world.ok(root, &["undo", "u"]));
    }
}

// conformance: APL-11 (hard links, writers)
#[test]
fn what_came_back_is_kept_no_more_and_what_was_undone_is() {
    let (world, repo) = (World::new(), fixture::small());
    let root = repo.root();
    world.run(root, "u", "echo applied > b.txt");
    drop(world.ok(root, &["apply", "u"]));
    drop(world.ok(root, &["undo", "u"]));
    assert_eq!(
        sh(root, "stat -c %h b.txt"),
        "1\n",
        "no second name is left of it"
    );
    let list = world.json(root, &["kept", "list", "u"]);
    let kept: Vec<_> = list["kept"].as_array().expect("a list").iter().collect();
    assert_eq!(kept.len(), 1, "{list}");
    assert_eq!(
        (&kept[0]["by"], &kept[0]["path"]),
        (&"undo".into(), &"b.txt".into())
    );
    assert_eq!(
        world.ok(root, &["kept", "show", "u", "b.txt"]).stdout,
        "applied\n"
    );
}

// conformance: PLN-1 (undo refused)
#[test]
fn what_is_not_applied_cannot_be_undone() {
    let (world, repo) = (World::new(), fixture::small());
    let root = repo.root();
    world.run(root, "u", "echo x >> b.txt");
    let before = judge::manifest(root);
    let done = world.sandbar(root, &["undo", "u", "--json"]).expect(3);
    assert_eq!(done.json()["error"]["code"], "illegal_state");
    drop(world.ok(root, &["discard", "u"]));
    let done = world.sandbar(root, &["undo", "u", "--json"]).expect(3);
    assert_eq!(done.json()["error"]["code"], "illegal_state");
    before.assert_same(&judge::manifest(root), "the repository");
}

const COMMITS: &str = "
    export GIT_AUTHOR_NAME=Agent GIT_AUTHOR_EMAIL=agent@example.com
    export GIT_COMMITTER_NAME=Agent GIT_COMMITTER_EMAIL=agent@example.com
    echo one > one.txt; git add one.txt; git commit -qm 'agent: one' -- one.txt
    sed -i 's/^line 5$/line five/' a.txt
";

fn identity(root: &Path) {
    git(root, &["config", "user.name", "Person"]);
    git(root, &["config", "user.email", "person@example.com"]);
}

// conformance: APL-11 (commits), APL-10 (undo)
#[test]
fn commits_and_branches_go_back_where_nothing_came_after() {
    let (world, repo) = (World::new(), fixture::small());
    let root = repo.root();
    identity(root);
    sh(
        root,
        "echo mine >> b.txt; echo staged > s.txt; git add s.txt",
    );
    let look = || {
        (
            judge::tar_digest(root),
            judge::for_each_ref(root),
            judge::ls_files(root),
            judge::status(root),
        )
    };
    let before = look();
    world.run(root, "c", COMMITS);
    for line in [
        &["apply", "c", "--commit", "-m", "rest"][..],
        &["apply", "c", "--branch", "review/c"],
    ] {
        drop(world.ok(root, line));
        assert_ne!(look(), before);
        drop(world.ok(root, &["undo", "c"]));
        assert_eq!(look(), before, "{line:?}");
        judge::fsck(root);
    }

    // Something came after: refused by name, and nothing moves.
    drop(world.ok(root, &["apply", "c", "--commit", "-m", "rest"]));
    git(
        root,
        &["commit", "--quiet", "--allow-empty", "--message=mine"],
    );
    let there = judge::manifest(root);
    let done = world.sandbar(root, &["undo", "c", "--json"]).expect(3);
    let error = &done.json()["error"];
    assert_eq!(error["code"], "head_moved");
    assert!(
        error["message"].to_string().contains("refs/heads/main"),
        "{error}"
    );
    there.assert_same(&judge::manifest(root), "the repository");
    git(root, &["reset", "--quiet", "--soft", "HEAD~1"]);
    drop(world.ok(root, &["undo", "c"]));
    assert_eq!(look(), before);

    // A branch that is checked out does not go from under its person.
    drop(world.ok(root, &["apply", "c", "--branch", "review/c"]));
    git(
        root,
        &["worktree", "add", "--quiet", "../other", "review/c"],
    );
    let done = world.sandbar(root, &["undo", "c", "--json"]).expect(3);
    assert_eq!(done.json()["error"]["code"], "head_moved");
    git(root, &["worktree", "remove", "../other"]);
    drop(world.ok(root, &["undo", "c"]));
    assert_eq!(look(), before);
}

// conformance: APL-11 (branch)
#[test]
fn an_undo_on_another_branch_is_refused_unless_asked() {
    let (world, repo) = (World::new(), fixture::small());
    let root = repo.root();
    world.run(root, "u", "echo x >> b.txt");
    drop(world.ok(root, &["apply", "u"]));
    git(root, &["switch", "--quiet", "--create", "elsewhere"]);
    let before = judge::manifest(root);
    let done = world.sandbar(root, &["undo", "u", "--json"]).expect(3);
    assert_eq!(done.json()["error"]["code"], "head_moved");
    before.assert_same(&judge::manifest(root), "the repository");
    drop(world.ok(root, &["undo", "u", "--onto-current"]));
    assert_eq!(judge::status(root), "");
}
