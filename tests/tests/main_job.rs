//! The main job on a repository with everything that real ones have: a script
//! does its worst in a plan, and the person's repository is judged by foreign
//! tools before apply, after rollback and after apply.
#![allow(
    clippy::disallowed_methods,
    reason = "tests inspect real trees with foreign means"
)]

use std::path::{Path, PathBuf};

use sandbar_tests::foreign::{command, git, sh, text};
use sandbar_tests::product::World;
use sandbar_tests::{fixture, judge};
use serde_json::Value;

/// What an agent does to files: each kind of change once.
const FILES: &str = "
    echo '// agent' >> src/kind.rs
    echo '// agent' >> src/lib.rs
    mkdir -p agent/deep
    echo new > agent/deep/new.rs
    rm src/wrapper.rs
    git mv tests/test_boxed.rs tests/boxed.rs
    chmod +x notes/empty.md
    chmod -x tools/check.sh
    ln -s ../README.md agent/link
    ln -sfn LICENSE-MIT readme-link
    rm dangling
    echo 'a file now' > dangling
";

/// What that comes to, path by path.
const CHANGES: &[(&str, &str)] = &[
    ("agent", "added"),
    ("agent/deep", "added"),
    ("agent/deep/new.rs", "added"),
    ("agent/link", "added"),
    ("dangling", "type"),
    ("notes/empty.md", "mode"),
    ("readme-link", "modified"),
    ("src/kind.rs", "modified"),
    ("src/lib.rs", "modified"),
    ("src/wrapper.rs", "deleted"),
    ("tests/boxed.rs", "added"),
    ("tests/test_boxed.rs", "deleted"),
    ("tools/check.sh", "mode"),
];

/// What an agent does with git: everything that could reach the repository.
const GIT: &str = "
    git config user.name Agent; git config user.email agent@example.com
    echo topic > topic.md; git switch -q -c agent-topic; git add topic.md
    git commit -qm 'topic' -- topic.md
    git rebase -q --autostash main~2 agent-topic
    git switch -q main
    git add agent; git commit -qm 'agent work' -- agent
    echo '// stashed by the agent' >> src/fmt.rs; git stash push -q -m agent -- src/fmt.rs
    git branch -D feature/deep/name; git tag agent-tag; git tag -d lightweight
    git update-ref -d refs/remotes/origin/main
    git reflog expire --expire=now --all; git gc -q --prune=now
";

fn words(changes: &Value) -> Vec<(String, String)> {
    let text = |value: &Value| value.as_str().expect("a word").to_owned();
    changes["boundaries"][0]["changes"]
        .as_array()
        .expect("a list of changes")
        .iter()
        .map(|change| (text(&change["path"]), text(&change["kind"])))
        .collect()
}

fn expected() -> Vec<(String, String)> {
    let own = |(path, kind): &(&str, &str)| ((*path).to_owned(), (*kind).to_owned());
    CHANGES.iter().map(own).collect()
}

/// Digests the part of the real tree that a plan is about: the ignored files
/// of the fixture that no rule carries are left out.
fn carried(root: &Path) -> String {
    let copy = tempfile::tempdir().expect("scratch");
    let to = copy.path().join("c");
    text(command(root, "cp").args(["-a", "."]).arg(&to));
    sh(&to, "rm -rf target node_modules");
    judge::tar_digest(&to)
}

// conformance: PLN-4, C015-1
// conformance: STR-1 (git_worktree) partial: the linked form
#[test]
fn nothing_done_inside_reaches_the_repository() {
    let (world, repo) = (World::new(), fixture::history());
    let root = repo.root();
    let before = judge::manifest(root);
    world.run(root, "worst", &format!("{FILES}{GIT}"));
    before.assert_same(&judge::manifest(root), "the repository");
    for command in [
        &["status", "worst"][..],
        &["diff", "worst"],
        &["log", "worst"],
        &["doctor"],
    ] {
        drop(world.ok(root, command));
    }
    before.assert_same(&judge::manifest(root), "the repository, after looking");
    judge::fsck(root);
}

// conformance: PLN-5 (git_worktree)
#[test]
fn the_sandbox_starts_as_the_exact_working_state() {
    let (world, repo) = (World::new(), fixture::history());
    let root = repo.root();
    drop(world.ok(root, &["run", "--name", "still", "--", "true"]));
    let sandbox = world.sandbox(root, "still");
    assert_eq!(judge::tar_digest(&sandbox), carried(root));
    assert_eq!(judge::ls_files(&sandbox), judge::ls_files(root));
    assert_eq!(judge::for_each_ref(&sandbox), judge::for_each_ref(root));
    assert_eq!(judge::status(&sandbox), judge::status(root));
    assert_eq!(
        git(&sandbox, &["stash", "list"]),
        git(root, &["stash", "list"])
    );
    assert_eq!(sh(&sandbox, "cat .env"), "secret\n");
    judge::fsck(&sandbox);
    let status = world.json(root, &["status", "still"]);
    assert_eq!(
        status["changes"],
        serde_json::json!({"added": 0, "modified": 0, "deleted": 0})
    );
}

// conformance: CKP-6
#[test]
fn the_diff_is_exactly_what_changed_and_git_takes_the_patch() {
    let (world, repo) = (World::new(), fixture::history());
    let root = repo.root();
    let copy = repo.scratch().join("copy");
    text(command(root, "cp").args(["-a", "."]).arg(&copy));
    world.run(root, "edit", FILES);
    assert_eq!(words(&world.json(root, &["diff", "edit"])), expected());

    let patch = world.ok(root, &["diff", "edit", "--patch"]).stdout;
    judge::git_apply_check(root, patch.as_bytes()).expect("git takes the patch");
    judge::git_apply(&copy, patch.as_bytes(), &[]).expect("git applies the patch");
    let sandbox = world.sandbox(root, "edit");
    assert_eq!(carried(&copy), judge::tar_digest(&sandbox));
}

// conformance: CKP-4, C015-3
// conformance: CKP-1 partial: the timer during long commands
// conformance: CKP-2 partial: one sandbox a plan
#[test]
fn each_checkpoint_comes_back_exactly() {
    let (world, repo) = (World::new(), fixture::history());
    let root = repo.root();
    let before = judge::manifest(root);
    drop(world.ok(root, &["run", "--name", "steps", "--", "true"]));
    let sandbox = world.sandbox(root, "steps");
    let newest = || -> u64 {
        let log = world.json(root, &["log", "steps"]);
        let all = log["checkpoints"].as_array().expect("a list").clone();
        all.iter()
            .filter_map(|one| one["seq"].as_u64())
            .max()
            .expect("one at least")
    };
    let mut states = vec![(newest(), judge::checkout(&sandbox))];
    let steps = [
        FILES,
        GIT,
        "git checkout -q --orphan fresh; git rm -rqf --cached .; rm -rf src; git add -A .; git commit -qm fresh",
        "rm -rf agent notes; mkdir agent; ln -s agent notes; echo x > agent/y",
    ];
    for step in steps {
        drop(world.ok(root, &["exec", "steps", "--", "sh", "-euc", step]));
        states.push((newest(), judge::checkout(&sandbox)));
    }
    // Backwards, then forwards, then one over and over.
    let order: Vec<usize> = (0..states.len())
        .rev()
        .chain(0..states.len())
        .chain([2, 2, 0, 4])
        .collect();
    for index in order {
        let (number, state) = &states[index];
        drop(world.ok(root, &["rollback", "steps", "--to", &number.to_string()]));
        assert_eq!(judge::checkout(&sandbox), *state, "checkpoint {number}");
    }
    before.assert_same(&judge::manifest(root), "the repository");
}

// conformance: APL-1, APL-10 (uncommitted)
// conformance: APL-5 partial: one boundary
#[test]
fn apply_lands_the_result_beside_the_persons_own_work() {
    let (world, repo) = (World::new(), fixture::history());
    let root = repo.root();
    world.run(root, "land", &format!("{FILES}{GIT}"));
    let sandbox = world.sandbox(root, "land");
    let result = judge::tar_digest(&sandbox);
    let untouched = GitDir::of(root);
    drop(world.ok(root, &["apply", "land"]));
    assert_eq!(carried(root), result);
    untouched.assert_same(root);
    judge::fsck(root);

    let state = world.json(root, &["plan", "show", "land"]);
    assert!(state.to_string().contains("\"applied\""), "{state}");
}

// conformance: APL-3 (git_worktree)
#[test]
fn edits_made_meanwhile_in_other_files_survive() {
    let (world, repo) = (World::new(), fixture::history());
    let root = repo.root();
    world.run(root, "land", FILES);
    sh(
        root,
        "echo '// mine' >> src/macros.rs; echo mine > mine.md; echo more >> draft.md
         rm notes/raw.bin; chmod +x README.md; git add mine.md",
    );
    let index = judge::ls_files(root);
    drop(world.ok(root, &["apply", "land"]));
    assert_eq!(judge::ls_files(root), index);
    assert_eq!(
        sh(
            root,
            "tail -1 src/macros.rs; cat mine.md; tail -1 draft.md; test ! -e notes/raw.bin
             test -x README.md; tail -1 src/lib.rs; cat dangling; readlink agent/link"
        ),
        "// mine\nmine\nmore\n// agent\na file now\n../README.md\n"
    );
}

/// The git directory of the person, which a plain apply must not touch.
struct GitDir(judge::Manifest, PathBuf);

impl GitDir {
    fn of(root: &Path) -> Self {
        let dir = root.join(".git");
        Self(judge::manifest(&dir), dir)
    }

    fn assert_same(&self, root: &Path) {
        assert_eq!(self.1, root.join(".git"));
        // Times of object files may be freshened; below `.git` itself the
        // judge cannot tell, so contents decide.
        let differ: Vec<String> = self
            .0
            .difference(&judge::manifest(&self.1))
            .into_iter()
            .filter(|line| !line.starts_with("objects/"))
            .collect();
        assert!(
            differ.is_empty(),
            "the git directory changed:\n{}",
            differ.join("\n")
        );
    }
}

// conformance: PLN-4 (this project)
#[test]
fn this_project_itself_goes_round() {
    let (world, repo) = (World::new(), fixture::this_project());
    let root = repo.root();
    let before = judge::manifest(root);
    world.run(
        root,
        "self",
        "git config user.name Agent; git config user.email agent@example.com
         echo '// agent' >> crates/domain/src/lib.rs; git mv deny.toml denied.toml
         git commit -qm 'rename'; rm -rf docs; mkdir -p new/dir; echo x > new/dir/file",
    );
    before.assert_same(&judge::manifest(root), "the repository");
    let sandbox = world.sandbox(root, "self");
    let result = judge::tar_digest(&sandbox);
    drop(world.ok(root, &["apply", "self"]));
    assert_eq!(judge::tar_digest(root), result);
}
