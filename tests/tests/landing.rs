//! A checkout's result as commits or as a branch, without the person's own
//! uncommitted work in it.
#![allow(
    clippy::disallowed_methods,
    reason = "tests inspect real trees with foreign means"
)]

use std::path::Path;

use sandbar_tests::foreign::{git, sh};
use sandbar_tests::product::World;
use sandbar_tests::{fixture, judge};

/// Two commits by the agent and something it left uncommitted.
const WORK: &str = "
    export GIT_AUTHOR_NAME=Agent GIT_AUTHOR_EMAIL=agent@example.com
    export GIT_COMMITTER_NAME=Agent GIT_COMMITTER_EMAIL=agent@example.com
    echo one > one.txt; git add -N one.txt; git commit -qm 'agent: one' -- one.txt
    sed -i 's/^line 5$/line five/' a.txt; git commit -qm 'agent: two' -- a.txt
    echo left > left.txt
";

fn identity(root: &Path) {
    git(root, &["config", "user.name", "Person"]);
    git(root, &["config", "user.email", "person@example.com"]);
}

// conformance: APL-10 (--commit)
#[test]
fn commits_keep_the_agents_series_and_leave_the_persons_work_alone() {
    let (world, repo) = (World::new(), fixture::small());
    let root = repo.root();
    identity(root);
    sh(
        root,
        "echo mine >> b.txt; echo staged > staged.txt; git add staged.txt",
    );
    world.run(root, "c", WORK);
    drop(world.ok(root, &["apply", "c", "--commit", "-m", "the rest"]));
    assert_eq!(
        git(root, &["log", "--format=%s", "--first-parent"]),
        "the rest\nagent: two\nagent: one\nfirst"
    );
    assert_eq!(
        git(root, &["show", "--format=", "--name-only", "HEAD"]),
        "left.txt"
    );
    // The person's own work is still uncommitted, the staged file still staged.
    assert_eq!(judge::status(root), " M b.txt\nA  staged.txt\n");
    assert!(git(root, &["show", "HEAD:a.txt"]).contains("line five\n"));
    assert_eq!(git(root, &["show", "HEAD:b.txt"]), "b");
    assert!(sh(root, "cat a.txt").contains("line five\n"));
    assert_eq!(sh(root, "cat b.txt"), "b\nmine\n");
    judge::fsck(root);
}

// conformance: APL-10 (--branch)
#[test]
fn a_branch_leaves_head_index_and_tree_alone() {
    let (world, repo) = (World::new(), fixture::small());
    let root = repo.root();
    identity(root);
    sh(root, "echo mine >> b.txt");
    world.run(root, "b", WORK);
    let before = judge::tar_digest(root);
    let (index, status) = (judge::ls_files(root), judge::status(root));
    drop(world.ok(
        root,
        &["apply", "b", "--branch", "review/b", "-m", "the rest"],
    ));
    assert_eq!(judge::tar_digest(root), before);
    assert_eq!(
        (judge::ls_files(root), judge::status(root)),
        (index, status)
    );
    assert_eq!(judge::head(root), "refs/heads/main");
    assert_eq!(
        git(root, &["log", "--format=%s", "--first-parent", "review/b"]),
        "the rest\nagent: two\nagent: one\nfirst"
    );
    assert!(!git(root, &["show", "review/b:b.txt"]).contains("mine"));
    judge::fsck(root);
}

// conformance: BAD-12, APL-10 (index.lock)
#[test]
fn a_held_index_lock_is_named_and_nothing_is_written() {
    let (world, repo) = (World::new(), fixture::small());
    let root = repo.root();
    identity(root);
    world.run(root, "l", WORK);
    sh(root, "touch .git/index.lock");
    let refs = judge::for_each_ref(root);
    let before = judge::manifest(root);
    let done = world
        .sandbar(root, &["apply", "l", "--commit", "--json"])
        .expect(3);
    assert_eq!(done.json()["error"]["code"], "git_locked");
    // Objects that no ref names may stay behind, as with git itself.
    let changed = before.difference(&judge::manifest(root));
    let harmless = |line: &String| line.starts_with(".git\n") || line.starts_with(".git/objects");
    assert!(changed.iter().all(harmless), "{}", changed.join("\n"));
    assert_eq!(refs, judge::for_each_ref(root));
    sh(root, "rm .git/index.lock");
    drop(world.ok(root, &["apply", "l", "--commit"]));
    judge::fsck(root);
}

// conformance: APL-10 (filters)
#[test]
fn paths_under_a_filter_refuse_commits_by_name() {
    let (world, repo) = (World::new(), fixture::small());
    let root = repo.root();
    identity(root);
    sh(
        root,
        "echo 'left.txt filter=lfs' > .gitattributes; git add .gitattributes; git commit -qm attributes",
    );
    world.run(root, "f", WORK);
    let before = judge::manifest(root);
    let done = world
        .sandbar(root, &["apply", "f", "--commit", "--json"])
        .expect(3);
    let document = done.json();
    assert_eq!(document["error"]["code"], "commit_refused");
    assert!(document.to_string().contains("left.txt"), "{document}");
    before.assert_same(&judge::manifest(root), "the repository");
}

// conformance: APL-10 (hooks)
#[test]
fn hooks_of_the_repository_are_never_run() {
    let (world, repo) = (World::new(), fixture::small());
    let root = repo.root();
    identity(root);
    let mark = repo.scratch().join("hook-ran");
    for hook in [
        "pre-commit",
        "post-commit",
        "commit-msg",
        "post-checkout",
        "reference-transaction",
        "post-index-change",
    ] {
        let path = root.join(".git/hooks").join(hook);
        std::fs::write(
            &path,
            format!("#!/bin/sh\necho {hook} >> {}\n", mark.display()),
        )
        .expect("a hook");
        sh(root, &format!("chmod +x .git/hooks/{hook}"));
    }
    world.run(root, "h", WORK);
    drop(world.ok(root, &["checkpoint", "h", "-m", "now"]));
    drop(world.ok(root, &["rollback", "h", "--to", "1"]));
    drop(world.ok(
        root,
        &["exec", "h", "--", "sh", "-euc", "echo again > again.txt"],
    ));
    drop(world.ok(root, &["apply", "h", "--commit"]));
    assert!(
        !mark.exists(),
        "{}",
        std::fs::read_to_string(&mark).unwrap_or_default()
    );
}
