//! The fixtures themselves: they hold what they promise, and the judges agree
//! with each other about them.
#![allow(
    clippy::disallowed_methods,
    reason = "tests inspect real trees with foreign means"
)]

use sandbar_tests::foreign::{git, sh};
use sandbar_tests::{fixture, judge};

#[test]
fn the_history_has_everything_it_promises() {
    let repository = fixture::history();
    let root = repository.root();
    judge::fsck(root);
    let commits: u32 = git(root, &["rev-list", "--count", "main"])
        .parse()
        .expect("a number");
    assert!(commits >= 200, "{commits} commits");
    assert!(!git(root, &["rev-list", "--merges", "main"]).is_empty());
    assert_eq!(git(root, &["cat-file", "-t", "1.0.30"]), "tag");
    assert_eq!(git(root, &["stash", "list"]).lines().count(), 1);
    let counts = git(root, &["count-objects", "-v"]);
    let number = |name: &str| -> u64 {
        let line = counts.lines().find_map(|line| line.strip_prefix(name));
        line.expect("counted").trim().parse().expect("a number")
    };
    assert!(
        number("count:") > 100 && number("in-pack:") > 500,
        "{counts}"
    );
    assert_eq!(
        judge::status(root),
        "MM src/chain.rs\n M src/lib.rs\nA  src/staged.rs\n?? draft.md\n?? nested/\n"
    );
    assert!(git(root, &["submodule", "status"]).contains("vendor/library (heads/main)"));
    assert!(git(root, &["ls-files", "-s", "tools/check.sh"]).starts_with("100755"));
    assert_eq!(
        sh(root, "readlink dangling; cat .env"),
        "nowhere/at/all\nsecret\n"
    );
    let eol = git(root, &["ls-files", "--eol", "notes/windows.txt"]);
    assert!(eol.starts_with("i/lf    w/crlf"), "{eol}");
}

#[test]
fn two_copies_are_the_same_checkout() {
    let (one, two) = (fixture::history(), fixture::history());
    assert_eq!(judge::checkout(one.root()), judge::checkout(two.root()));
    let before = judge::manifest(one.root());
    assert!(before.len() > 400, "{} entries", before.len());
    let _ = judge::status(one.root());
    before.assert_same(&judge::manifest(one.root()), "the repository");
}
