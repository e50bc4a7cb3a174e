//! Scanning a sandbox.

use std::sync::Arc;

use sandbar_domain::{Code, Disposition, Hash};

use super::rules::ByName;
use super::{captured, everything, sandbox, scan};
use crate::contract::files::{Subject, What, executable, file, symlink};
use crate::contract::{done, refused};

/// A change made by other hands.
type Step<'a> = Box<dyn Fn() + Send + Sync + 'a>;

pub(super) async fn a_scan_sees_every_change(subject: Subject) {
    subject.fill();
    let sandbox = sandbox(&subject, everything()).await;
    let world = &subject.world;
    let at = |rel: &str| sandbox.path().join(rel);
    let first = captured(&subject, &sandbox).await;
    assert_eq!(first.tree, sandbox.created.tree, "nothing has changed yet");
    assert_eq!(first.tally, sandbox.created.tally);
    let mut seen = vec![first.tree];
    let steps: Vec<(&str, Step<'_>)> = vec![
        (
            "a write",
            Box::new(|| world.put(&at("a.txt"), file(b"changed\n"))),
        ),
        (
            "a new file",
            Box::new(|| world.put(&at("new/deep/x"), file(b"x"))),
        ),
        ("a deletion", Box::new(|| world.remove(&at("dir/sub")))),
        (
            "an executable bit",
            Box::new(|| world.put(&at("empty"), executable(b""))),
        ),
        (
            "a symlink",
            Box::new(|| world.put(&at("link"), symlink("elsewhere"))),
        ),
        (
            "a file for a symlink",
            Box::new(|| world.put(&at("dir/dangling"), file(b"d"))),
        ),
        (
            "an empty directory",
            Box::new(|| world.put(&at("hollow2"), What::Directory)),
        ),
        (
            "a directory for a file",
            Box::new(|| world.put(&at("large.bin/in"), file(b"i"))),
        ),
        (
            "a file for a directory",
            Box::new(|| world.put(&at("hollow"), file(b"h"))),
        ),
    ];
    for (what, change) in steps {
        change();
        let now = captured(&subject, &sandbox).await;
        assert_eq!(now.tree, subject.expected_tree(sandbox.path()), "{what}");
        assert!(!seen.contains(&now.tree), "{what} must be seen");
        seen.push(now.tree);
        let list = done(subject.objects.list(now.tree).await, "listing");
        for (path, entry) in list {
            let stored = subject.objects.get(entry.hash).await;
            let stored = done(stored, &format!("the content of {path} after {what}"));
            assert_eq!(Hash::of(&stored), entry.hash);
        }
    }
    assert_eq!(
        subject.expected_tree(&subject.world.root()),
        sandbox.created.tree,
        "the real root is untouched"
    );
}

pub(super) async fn a_scan_without_installing_has_the_same_hash(subject: Subject) {
    subject.fill();
    let sandbox = sandbox(&subject, everything()).await;
    subject
        .world
        .put(&sandbox.path().join("new"), file(b"only looked at"));
    let health = done(subject.objects.verify().await, "verifying");
    let mut request = scan(&sandbox.created.root, everything());
    request.install = false;
    let looked = done(subject.workspaces.capture(request).await, "a look");
    assert_eq!(looked.tree, subject.expected_tree(sandbox.path()));
    let after = done(subject.objects.verify().await, "verifying");
    assert_eq!(after.objects, health.objects, "a look stores nothing");
    assert_eq!(captured(&subject, &sandbox).await.tree, looked.tree);
    let stored = subject.objects.get(Hash::of(b"only looked at")).await;
    done(stored, "what a look saw, after a scan that installs");
}

/// The kind of change that a cache can miss: equal size, at once.
pub(super) async fn a_change_of_equal_size_is_seen(subject: Subject) {
    subject.write("file", b"0000");
    let sandbox = sandbox(&subject, everything()).await;
    let path = sandbox.path().join("file");
    for n in 1..40u32 {
        let bytes = format!("{n:04}").into_bytes();
        subject.world.put(&path, file(&bytes));
        let now = captured(&subject, &sandbox).await;
        let expected = subject.expected_tree(sandbox.path());
        assert_eq!(now.tree, expected, "write number {n} must be seen");
    }
}

pub(super) async fn what_cannot_be_carried_is_named(subject: Subject) {
    subject.write("kept", b"k");
    let sandbox = sandbox(&subject, everything()).await;
    let before = captured(&subject, &sandbox).await.tree;
    subject
        .world
        .put(&sandbox.path().join("pipe"), What::Special);
    let now = captured(&subject, &sandbox).await;
    assert_eq!(now.tree, before, "it is left out of the tree");
    let names: Vec<&str> = now.tally.unsupported.iter().map(|(n, _)| &**n).collect();
    assert_eq!(names, ["pipe"], "and named");
}

pub(super) async fn a_missing_or_replaced_root_is_gone(subject: Subject) {
    subject.fill();
    let sandbox = sandbox(&subject, everything()).await;
    let mut elsewhere = sandbox.created.root.clone();
    elsewhere.path = subject.world.root();
    let how = Disposition::Permanent;
    let scan_of = |root| subject.workspaces.capture(scan(root, everything()));
    refused(
        scan_of(&elsewhere).await,
        Code::SandboxGone,
        how,
        "a root whose path leads elsewhere",
    );
    subject.world.remove(sandbox.path());
    refused(
        scan_of(&sandbox.created.root).await,
        Code::SandboxGone,
        how,
        "a root that was removed by hand",
    );
    subject.world.put(sandbox.path(), file(b"a file"));
    refused(
        scan_of(&sandbox.created.root).await,
        Code::SandboxGone,
        how,
        "a root that became a file",
    );
}

pub(super) async fn a_directory_looked_into_for_nothing_is_ignored(subject: Subject) {
    subject.write("kept", b"k");
    let sandbox = sandbox(&subject, Arc::new(ByName::default())).await;
    let root = &sandbox.created.root;
    subject
        .world
        .put(&root.path.join("look/look/ign"), file(b"i"));
    let rules = Arc::new(ByName::default());
    let scanned = subject.workspaces.capture(scan(root, rules)).await;
    let scanned = done(scanned, "a scan");
    assert_eq!(scanned.tree, sandbox.created.tree);
    assert_eq!(scanned.tally.ignored_paths, ["look"], "counted once");
    subject
        .world
        .put(&root.path.join("look/look/kept"), file(b"k"));
    let rules = Arc::new(ByName::default());
    let scanned = subject.workspaces.capture(scan(root, rules)).await;
    let scanned = done(scanned, "a scan");
    assert_eq!(scanned.tally.ignored_paths, ["look/look/ign"]);
    let list = done(subject.objects.list(scanned.tree).await, "listing");
    assert_eq!(list.len(), 4, "kept, look, look/look, look/look/kept");
}
