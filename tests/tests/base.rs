//! Clean starts: the sandbox holds a commit as git would check it out, and the
//! person's uncommitted work is left where it is.
#![allow(
    clippy::disallowed_methods,
    reason = "tests inspect real trees with foreign means"
)]

use std::collections::BTreeMap;
use std::path::Path;

use sandbar_tests::fixture::{self, Repository};
use sandbar_tests::foreign::{command, git, sh, text};
use sandbar_tests::judge;
use sandbar_tests::product::World;

/// Two commits on `main`, a tag on the first, a branch that differs in every
/// way from `main`, line ends by attribute, an executable, a symlink.
fn project() -> Repository {
    let repo = fixture::small();
    let root = repo.root();
    sh(
        root,
        r#"
        git config user.name Person; git config user.email person@example.com
        printf '%s\n' '*.win text eol=crlf' '*.id ident' '*.cut filter=cut' > .gitattributes
        printf '%s\n' '*.log' 'keep/' > .gitignore
        printf 'one\r\ntwo\r\n' > lines.win
        printf '%s\n' '$Id$' '$Id: old $' '$Id: a.c,v 1.2 x $' > stamp.id
        echo 'as stored' > whole.cut
        printf '#!/bin/sh\n' > run.sh; chmod +x run.sh
        ln -s a.txt link
        mkdir -p deep/er; echo deep > deep/er/file.txt
        git add --all; git commit -qm second; git tag -am 'the second' v2
        git checkout -qb other
        git rm -q b.txt; rm -rf deep; echo 'a file now' > deep; echo other > a.txt
        chmod +x src/c.txt; chmod -x run.sh; ln -sf src/c.txt link; rm lines.win
        printf 'x\r\n' > more.win; mkdir fresh; echo fresh > fresh/new.txt
        echo '*.tmp' > .gitignore
        git add --all; git commit -qm 'on other'
        git checkout -q main; echo third > third.txt; git add third.txt; git commit -qm third
        rm stamp.id; git checkout -q stamp.id
        "#,
    );
    repo
}

/// Everything that a person may have lying about.
const MESS: &str = r#"
    echo edited >> a.txt; echo staged > staged.txt; git add staged.txt
    echo 'edited more' > src/c.txt; git add src/c.txt; echo 'and again' >> src/c.txt
    rm b.txt; git rm -q --cached stamp.id; git mv third.txt renamed.txt
    printf 'three\r\n' >> lines.win; chmod -x run.sh; rm link; echo 'no link' > link
    echo untracked > untracked.txt; mkdir -p dir/sub void; echo u > dir/sub/u.txt
    rm -r deep; echo 'in the way' > deep
    echo ignored > noise.log; mkdir keep; echo kept > keep/me.txt; echo k > keep/not.txt
    echo '*.win -text' >> .gitattributes; echo 'untracked.txt' >> .gitignore
    git init -q nested; echo n > nested/n.txt
"#;

/// What git itself checks out of a commit, in a clone.
fn expected(repo: &Repository, rev: &str) -> BTreeMap<String, String> {
    let clone = repo.scratch().join(format!("expected-{rev}"));
    let auto = git(repo.root(), &["config", "--default=false", "core.autocrlf"]);
    text(
        command(repo.root(), "git")
            .args(["-c", &format!("core.autocrlf={auto}"), "clone", "-q", "-n"])
            .arg(repo.root())
            .arg(&clone),
    );
    git(&clone, &["config", "core.autocrlf", &auto]);
    let commit = git(repo.root(), &["rev-parse", &format!("{rev}^{{commit}}")]);
    git(&clone, &["checkout", "-q", "--detach", &commit]);
    judge::contents(&clone)
}

/// Ends the test unless the sandbox is what git would check out, and clean.
fn assert_clean(repo: &Repository, sandbox: &Path, rev: &str) {
    assert_eq!(judge::contents(sandbox), expected(repo, rev), "{rev}");
    let status = |arguments: &[&str]| git(sandbox, arguments);
    assert_eq!(status(&["status", "--porcelain"]), "", "{rev}");
    assert_eq!(status(&["stash", "list"]), "");
    let tree = |what: &str| git(sandbox, &["rev-parse", &format!("{what}^{{tree}}")]);
    assert_eq!(git(sandbox, &["write-tree"]), tree("HEAD"));
    let commit = git(repo.root(), &["rev-parse", &format!("{rev}^{{commit}}")]);
    assert_eq!(git(sandbox, &["rev-parse", "HEAD"]), commit);
    judge::fsck(sandbox);
}

// conformance: PLN-5 (--base HEAD)
#[test]
fn head_starts_clean_and_the_mess_stays_outside() {
    let (world, repo) = (World::new(), project());
    let root = repo.root();
    sh(root, MESS);
    let before = judge::manifest(root);
    drop(world.ok(root, &["plan", "new", "--name", "h", "--base", "HEAD"]));
    let sandbox = world.sandbox(root, "h");
    assert_clean(&repo, &sandbox, "HEAD");
    assert_eq!(judge::head(&sandbox), "refs/heads/main");
    let status = world.json(root, &["status", "h"]);
    assert_eq!(status["changes"]["modified"], 0, "{status}");
    assert_eq!(status["changes"]["added"], 0, "{status}");
    before.assert_same(&judge::manifest(root), "the checkout");
}

// conformance: PLN-5 (--base REV)
#[test]
fn branches_tags_and_commits_are_where_they_point() {
    let (world, repo) = (World::new(), project());
    let root = repo.root();
    sh(root, MESS);
    let first = git(root, &["rev-parse", "main~2"]);
    let second = git(root, &["rev-parse", "v2^{commit}"]);
    for (name, rev, head) in [
        ("branch", "other", "refs/heads/other"),
        ("tag", "v2", second.as_str()),
        ("before", "HEAD~2", first.as_str()),
        ("same", "main", "refs/heads/main"),
    ] {
        drop(world.ok(root, &["plan", "new", "--name", name, "--base", rev]));
        let sandbox = world.sandbox(root, name);
        assert_clean(&repo, &sandbox, rev);
        assert_eq!(judge::head(&sandbox), head, "{rev}");
    }
}

// conformance: PLN-5 (autocrlf)
#[test]
fn line_ends_are_those_of_the_persons_git() {
    let (world, repo) = (World::new(), project());
    let root = repo.root();
    sh(
        root,
        "git config core.autocrlf true; git rm -qr .; git reset -q --hard; echo x >> a.txt",
    );
    assert!(sh(root, "cat b.txt").contains("b\r\n"));
    for (name, rev) in [("h", "HEAD"), ("o", "other")] {
        drop(world.ok(root, &["plan", "new", "--name", name, "--base", rev]));
        assert_clean(&repo, &world.sandbox(root, name), rev);
    }
}

// conformance: PLN-5 (--base with --include)
#[test]
fn what_was_asked_for_comes_along() {
    let (world, repo) = (World::new(), project());
    let root = repo.root();
    sh(root, MESS);
    sh(root, "echo '*.log' > .worktreeinclude");
    // The last stands where the commit has a directory, and yields.
    let include = ["--include", "keep/me.txt", "--include", "/deep"];
    let mut words = vec!["run", "--name", "i", "--base", "HEAD"];
    words.extend(include);
    words.extend([
        "--",
        "sh",
        "-euc",
        "test -f noise.log; echo more >> keep/me.txt",
    ]);
    let done = world.ok(root, &words);
    drop(done);
    let sandbox = world.sandbox(root, "i");
    let mut wanted = expected(&repo, "HEAD");
    let found = judge::contents(&sandbox);
    let extra: Vec<&str> = found
        .keys()
        .filter(|path| !wanted.contains_key(*path))
        .map(String::as_str)
        .collect();
    assert_eq!(extra, ["keep", "keep/me.txt", "noise.log"]);
    wanted.extend(
        extra
            .iter()
            .map(|path| (path.to_string(), found[*path].clone())),
    );
    assert_eq!(found, wanted);
    assert_eq!(git(&sandbox, &["status", "--porcelain"]), "");
    // They belong to the base, so only the edit of one is a change.
    let status = world.json(root, &["status", "i"]);
    assert_eq!(status["changes"]["modified"], 1, "{status}");
    assert_eq!(status["changes"]["added"], 0, "{status}");
    assert_eq!(status["changes"]["deleted"], 0, "{status}");
}

// conformance: PLN-5, APL-3 (--base and drift)
#[test]
fn uncommitted_edits_are_drift_and_survive() {
    let (world, repo) = (World::new(), project());
    let root = repo.root();
    sh(
        root,
        "sed -i 's/^line 40$/mine/' a.txt; echo mine > b.txt; echo u > u.txt",
    );
    let script =
        "sed -i 's/^line 5$/line five/' a.txt; echo new > new.txt; git add .; git commit -qm in";
    drop(world.ok(
        root,
        &[
            "run", "--name", "d", "--base", "HEAD", "--", "sh", "-euc", script,
        ],
    ));
    drop(world.ok(root, &["apply", "d"]));
    let merged = sh(root, "cat a.txt");
    assert!(
        merged.contains("line five\n") && merged.ends_with("mine\n"),
        "{merged}"
    );
    assert_eq!(sh(root, "cat b.txt u.txt new.txt"), "mine\nu\nnew\n");
    // On both sides of one file: nothing is written.
    let run = [
        "run",
        "--name",
        "c",
        "--base",
        "HEAD",
        "--",
        "sh",
        "-euc",
        "echo x > b.txt; rm u.txt || echo absent",
    ];
    let said = world.ok(root, &run);
    assert!(said.stdout.contains("absent"), "{}", said.stdout);
    let before = judge::manifest(root);
    let done = world.sandbar(root, &["apply", "c", "--json"]).expect(3);
    assert_eq!(done.json()["conflicts"][0]["path"], "b.txt");
    before.assert_same(&judge::manifest(root), "the checkout");
}

// conformance: APL-10 (--commit and --base)
#[test]
fn commits_land_from_head_and_are_refused_from_elsewhere() {
    let (world, repo) = (World::new(), project());
    let root = repo.root();
    sh(root, "echo mine >> b.txt");
    let run = |name: &str, base: &str| {
        let words = ["run", "--name", name, "--base", base, "--", "sh", "-euc"];
        let script = "echo in > in.txt; git add in.txt; git commit -qm agent; echo left > left.txt";
        drop(world.ok(root, &[&words[..], &[script]].concat()));
    };
    run("here", "HEAD");
    drop(world.ok(root, &["apply", "here", "--commit", "-m", "rest"]));
    assert_eq!(
        git(root, &["log", "--format=%s", "-3"]),
        "rest\nagent\nthird"
    );
    assert_eq!(judge::status(root), " M b.txt\n");
    run("there", "other");
    for to in [&["--commit"][..], &["--branch", "new"]] {
        let words = [&["apply", "there", "--json"], to].concat();
        let done = world.sandbar(root, &words).expect(3).json();
        assert_eq!(done["error"]["code"], "commit_refused", "{done}");
    }
    sh(root, "git reset -q --hard HEAD~2");
    drop(world.ok(root, &["apply", "there"]));
    assert_eq!(judge::status(root), "?? in.txt\n?? left.txt\n");
    assert_eq!(judge::head(root), "refs/heads/main");
}

// conformance: PLN-5 (--base, rollback)
#[test]
fn going_back_to_the_first_checkpoint_is_clean_again() {
    let (world, repo) = (World::new(), project());
    let root = repo.root();
    sh(root, MESS);
    let script = "git rm -q a.txt; git commit -qm gone; echo x > untracked.txt; mkdir -p t; echo x > t/y.log";
    drop(world.ok(
        root,
        &[
            "run", "--name", "r", "--base", "other", "--", "sh", "-euc", script,
        ],
    ));
    drop(world.ok(root, &["rollback", "r", "--to", "1"]));
    assert_clean(&repo, &world.sandbox(root, "r"), "other");
}

// conformance: PLN-5 (--base, submodules)
#[test]
fn submodules_stay_or_are_refused_by_name() {
    let (world, repo) = (World::new(), fixture::history());
    let root = repo.root();
    let before = judge::manifest(root);
    drop(world.ok(root, &["plan", "new", "--name", "s", "--base", "HEAD"]));
    let sandbox = world.sandbox(root, "s");
    assert_eq!(git(&sandbox, &["status", "--porcelain"]), "");
    let library = |root: &Path| git(&root.join("vendor/library"), &["rev-parse", "HEAD"]);
    assert_eq!(library(&sandbox), library(root));
    let done = world.sandbar(root, &["plan", "new", "--base", "HEAD~60", "--json"]);
    let done = done.expect(4).json();
    assert_eq!(done["error"]["code"], "repository_refused", "{done}");
    assert!(done.to_string().contains("vendor/library"), "{done}");
    before.assert_same(&judge::manifest(root), "the checkout");
}

// conformance: PLN-5, BAD-1 (--base)
#[test]
fn what_names_no_commit_is_refused_and_leaves_nothing() {
    let (world, repo) = (World::new(), project());
    let root = repo.root();
    let refused = |dir: &Path, rev: &str, exit: i32, code: &str| {
        let done = world.sandbar(dir, &["plan", "new", "--base", rev, "--json"]);
        let done = done.expect(exit).json();
        assert_eq!(done["error"]["code"], code, "{rev}: {done}");
        done["error"]["message"]
            .as_str()
            .unwrap_or_default()
            .to_owned()
    };
    let said = refused(root, "no-such-thing", 2, "usage");
    assert!(said.contains("no-such-thing"), "{said}");
    refused(root, "HEAD^{tree}", 2, "usage");
    refused(root, "", 2, "usage");
    refused(root, "main..other", 2, "usage");
    let unborn = repo.scratch().join("unborn");
    git(root, &["init", "-q", unborn.to_str().expect("UTF-8")]);
    refused(&unborn, "HEAD", 2, "usage");
    let plain = repo.scratch().join("plain");
    std::fs::create_dir(&plain).expect("a new directory");
    refused(&plain, "HEAD", 5, "not_a_repository");
    assert_eq!(
        world.json(root, &["plan", "list"])["plans"],
        serde_json::json!([])
    );
}

// conformance: PLN-5 (--base, where the caller stands)
#[test]
fn a_directory_that_the_commit_has_not_is_left_for_the_one_above() {
    let (world, repo) = (World::new(), project());
    let here = repo.root().join("src/mine");
    std::fs::create_dir(&here).expect("a new directory");
    std::fs::write(here.join("x"), "x").expect("a file");
    let done = world.ok(
        &here,
        &["run", "--name", "p", "--base", "HEAD", "--", "pwd"],
    );
    assert_eq!(
        done.stdout.trim_end(),
        repo.root().join("src").display().to_string()
    );
}

// conformance: PLN-5 (--base amid a merge)
#[test]
fn what_was_in_progress_is_not_begun() {
    let (world, repo) = (World::new(), project());
    let root = repo.root();
    sh(
        root,
        "echo main > a.txt; git commit -qam clash
         ! git merge -q other 2>&1; test -e .git/MERGE_HEAD; git ls-files -u | grep -q .",
    );
    for (name, rev) in [("h", "HEAD"), ("o", "other")] {
        drop(world.ok(root, &["plan", "new", "--name", name, "--base", rev]));
        let sandbox = world.sandbox(root, name);
        assert_clean(&repo, &sandbox, rev);
        assert!(!sandbox.join(".git/MERGE_HEAD").exists());
        assert!(!sandbox.join(".git/MERGE_MSG").exists());
    }
}

// conformance: PLN-5 (--base, sparse)
#[test]
fn a_sparse_checkout_stays_sparse_or_is_refused_by_name() {
    let (world, repo) = (World::new(), project());
    let root = repo.root();
    git(root, &["sparse-checkout", "set", "src"]);
    let wanted = judge::contents(root);
    assert!(!wanted.contains_key("deep/er/file.txt"));
    sh(root, "echo edited >> src/c.txt; rm a.txt; echo u > u.txt");
    drop(world.ok(root, &["plan", "new", "--name", "s", "--base", "HEAD"]));
    let sandbox = world.sandbox(root, "s");
    assert_eq!(judge::contents(&sandbox), wanted);
    assert_eq!(git(&sandbox, &["status", "--porcelain"]), "");
    let done = world.sandbar(root, &["plan", "new", "--base", "other", "--json"]);
    let done = done.expect(4).json();
    assert_eq!(done["error"]["code"], "repository_refused", "{done}");
    assert!(done.to_string().contains("fresh/new.txt"), "{done}");
}

// conformance: PLN-5 (--base, linked worktree)
#[test]
fn a_linked_worktree_starts_clean_too() {
    let (world, repo) = (World::new(), project());
    let linked = repo.scratch().join("linked");
    let at = linked.to_str().expect("UTF-8");
    git(repo.root(), &["worktree", "add", "-q", at, "other"]);
    sh(&linked, "echo edited >> a.txt; echo u > u.tmp");
    for (name, rev, head) in [
        ("w", "other", "refs/heads/other"),
        ("m", "main", "refs/heads/main"),
    ] {
        let words = ["plan", "new", "--name", name, "--base", rev];
        drop(world.ok(&linked, &words));
        let sandbox = world.sandbox(&linked, name);
        assert_clean(&repo, &sandbox, rev);
        assert_eq!(judge::head(&sandbox), head);
    }
}

// conformance: PLN-5, STR-1 (--base, filters)
#[test]
fn filters_are_not_run_and_what_they_miss_is_named() {
    let (world, repo) = (World::new(), project());
    let root = repo.root();
    let mark = repo.scratch().join("filter-ran");
    let filter = format!("touch '{}'; cat", mark.display());
    git(root, &["config", "filter.cut.smudge", &filter]);
    git(root, &["config", "filter.cut.clean", &filter]);
    git(root, &["config", "filter.cut.required", "true"]);
    sh(root, "echo edited > whole.cut");
    let done = world.ok(root, &["plan", "new", "--name", "f", "--base", "HEAD"]);
    assert!(!mark.exists(), "{}", done.stderr);
    assert!(done.stderr.contains("whole.cut"), "{}", done.stderr);
    let sandbox = world.sandbox(root, "f");
    assert_eq!(sh(&sandbox, "cat whole.cut"), "as stored\n");
    assert!(!mark.exists());
    assert_eq!(git(&sandbox, &["status", "--porcelain"]), "");
}
