//! What is found, what is refused, what is said.

use sandbar_domain::Code;
use sandbar_ports::git::GitState as _;

use crate::fixture::{GIT, Place, discover, git, run, try_git, write};

fn refusal(path: &std::path::Path) -> String {
    let error = run(GIT.discover(path.to_owned())).unwrap_err();
    assert_eq!(error.code, Code::RepositoryRefused, "{error}");
    error.message
}

#[test]
fn the_nearest_checkout_is_found_from_below() {
    let place = Place::new();
    let root = place.repository("repo");
    let checkout = discover(&root.join("src"));
    assert_eq!(checkout.root, root);
    assert_eq!(checkout.git_dir, root.join(".git"));
    assert_eq!(checkout.common_dir, root.join(".git"));
    assert_eq!(checkout.branch.as_deref(), Some("refs/heads/main"));
    assert_eq!(
        checkout.head.unwrap(),
        git(&root, &["rev-parse", "HEAD"]).trim()
    );
    assert_eq!(checkout.notes, Vec::<String>::new());
    assert!(run(GIT.discover(place.path("."))).unwrap().is_none());
}

#[test]
fn unborn_detached_and_linked_heads_are_told() {
    let place = Place::new();
    let unborn = place.path("unborn");
    git(&place.path("."), &["init", "-q", "-b", "start", "unborn"]);
    let checkout = discover(&unborn);
    assert_eq!(checkout.branch.as_deref(), Some("refs/heads/start"));
    assert_eq!(checkout.head, None);

    let root = place.repository("repo");
    git(&root, &["checkout", "-q", "--detach"]);
    let checkout = discover(&root);
    assert_eq!(checkout.branch, None);
    assert!(checkout.head.is_some());

    git(
        &root,
        &["worktree", "add", "-q", "../linked", "-b", "topic"],
    );
    let checkout = discover(&place.path("linked"));
    assert_eq!(checkout.root, place.path("linked"));
    assert_eq!(checkout.git_dir, root.join(".git/worktrees/linked"));
    assert_eq!(checkout.common_dir, root.join(".git"));
    assert_eq!(checkout.branch.as_deref(), Some("refs/heads/topic"));
}

#[test]
fn what_cannot_be_sandboxed_is_refused_by_name() {
    let place = Place::new();
    let here = place.path(".");
    git(&here, &["init", "-q", "--bare", "bare.git"]);
    assert!(refusal(&place.path("bare.git")).contains("bare"));
    git(&here, &["init", "-q", "--object-format=sha256", "long"]);
    assert!(refusal(&place.path("long")).contains("sha256"));
    let (made, ..) = try_git(&here, &["init", "-q", "--ref-format=reftable", "table"]);
    assert!(made, "this git knows reftable");
    assert!(refusal(&place.path("table")).contains("reftable"));
    let root = place.repository("repo");
    assert!(refusal(&root.join(".git/refs")).contains("inside a git directory"));
    git(&root, &["config", "core.worktree", "/tmp"]);
    assert!(refusal(&root).contains("core.worktree"));
}

#[test]
fn notes_tell_what_is_special() {
    let place = Place::new();
    let root = place.repository("repo");
    write(
        &root,
        ".gitattributes",
        "*.bin filter=lfs diff=lfs\n# *.x filter=no\n",
    );
    git(&root, &["config", "core.sparseCheckout", "true"]);
    git(&root, &["checkout", "-qb", "other"]);
    write(&root, "a.txt", "other\n");
    git(&root, &["commit", "-qam", "other"]);
    git(&root, &["checkout", "-q", "main"]);
    write(&root, "a.txt", "main\n");
    git(&root, &["commit", "-qam", "main"]);
    let (merged, ..) = try_git(&root, &["merge", "other"]);
    assert!(!merged);
    let notes = discover(&root).notes;
    assert_eq!(
        notes,
        [
            "a merge is in progress, and goes on inside the sandbox",
            "the checkout is sparse, and so is the sandbox",
            "the filter lfs is not configured: its files are carried as they are",
        ]
    );
    git(
        &place.path("."),
        &[
            "clone",
            "-q",
            "--depth=1",
            &format!("file://{}", root.display()),
            "shallow",
        ],
    );
    assert_eq!(
        discover(&place.path("shallow")).notes[0],
        "the clone is shallow: older history is not there"
    );
}

#[test]
fn variables_of_git_in_the_environment_are_not_looked_at() {
    let output = std::process::Command::new(std::env::current_exe().unwrap())
        .args([
            "--exact",
            "private::every_kind_of_head_is_copied",
            "landing::a_branch_is_made_beside_head",
        ])
        .env("GIT_DIR", "/nonexistent")
        .env("GIT_WORK_TREE", "/nonexistent")
        .env("GIT_INDEX_FILE", "/nonexistent")
        .env("GIT_OBJECT_DIRECTORY", "/nonexistent")
        .env("GIT_CONFIG_COUNT", "1")
        .env("GIT_CONFIG_KEY_0", "core.bare")
        .env("GIT_CONFIG_VALUE_0", "true")
        .output()
        .unwrap();
    let told = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(
        output.status.success() && told.contains("2 passed"),
        "{told}"
    );
}

#[test]
fn a_repository_of_another_user_can_be_read_by_root() {
    let place = Place::new();
    let root = place.repository("repo");
    write(&root, ".gitignore", "*.log\n");
    let excludes = place.path("excludes");
    std::fs::write(&excludes, "*.tmp\n").unwrap();
    git(
        &root,
        &["config", "core.excludesFile", excludes.to_str().unwrap()],
    );
    write(&root, "x.tmp", "ignored\n");
    let before = git(&root, &["status", "--porcelain=v2", "--branch"]);
    if rustix::process::geteuid().is_root() {
        let changed = std::process::Command::new("chown")
            .args(["-R", "12345:12345"])
            .arg(&root)
            .status()
            .map(|status| status.success())
            .unwrap();
        assert!(changed);
        assert!(!try_git(&root, &["status"]).0, "git itself refuses");
    }
    let made = crate::fixture::sandbox(&place, "box", &root);
    assert_eq!(
        git(&made.root, &["status", "--porcelain=v2", "--branch"]),
        before
    );
    assert!(!made.root.join("x.tmp").exists());
}
