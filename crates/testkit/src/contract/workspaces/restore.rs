//! Restoring a sandbox.

use std::sync::Arc;

use sandbar_domain::{Code, Disposition, Hash};

use super::rules::ByName;
use super::{back_to, captured, everything, sandbox};
use crate::contract::files::{Subject, What, executable, file, rel, symlink};
use crate::contract::{done, refused};

pub(super) async fn a_tree_comes_back_exactly(subject: Subject) {
    subject.fill();
    let sandbox = sandbox(&subject, everything()).await;
    let base = subject.content(sandbox.path());
    let put = |rel: &str, what| subject.world.put(&sandbox.path().join(rel), what);
    put("a.txt", file(b"changed"));
    put("new/deep/file", file(b"new"));
    put("dir/run.sh", file(b"#!/bin/sh\n"));
    put("link", symlink("dir"));
    put("dir/sub", file(b"was a directory"));
    subject.world.remove(&sandbox.path().join("hollow"));
    subject.world.remove(&sandbox.path().join("large.bin"));
    let later = captured(&subject, &sandbox).await.tree;
    let changed = subject.content(sandbox.path());
    for (tree, content) in [
        (sandbox.created.tree, &base),
        (later, &changed),
        (sandbox.created.tree, &base),
        (sandbox.created.tree, &base),
    ] {
        let restored = subject
            .workspaces
            .restore(back_to(&sandbox, tree, everything()))
            .await;
        let restored = done(restored, "a restore");
        assert_eq!(&subject.content(sandbox.path()), content);
        assert_eq!(restored.root, sandbox.created.root, "the same root");
        assert_eq!(restored.kept_directories, []);
        assert_eq!(captured(&subject, &sandbox).await.tree, tree);
    }
}

/// Makes one type of node.
type Make = fn() -> Option<What>;

pub(super) async fn every_type_turns_into_every_other(subject: Subject) {
    let kinds: [(&str, Make); 6] = [
        ("nothing", || None),
        ("file", || Some(file(b"f"))),
        ("other", || Some(file(b"other"))),
        ("executable", || Some(executable(b"f"))),
        ("symlink", || Some(symlink("f"))),
        ("directory", || Some(What::Directory)),
    ];
    for (from, one) in kinds {
        for (to, _) in kinds {
            let path = subject.at(&format!("{from}-{to}"));
            if let Some(what) = one() {
                subject.world.put(&path, what.clone());
                if what == What::Directory {
                    subject.world.put(&path.join("a/b"), file(b"below"));
                }
            }
        }
    }
    let sandbox = sandbox(&subject, everything()).await;
    let before = subject.content(sandbox.path());
    for (from, _) in kinds {
        for (to, two) in kinds {
            let path = sandbox.path().join(format!("{from}-{to}"));
            match two() {
                None => subject.world.remove(&path),
                Some(What::Directory) => subject.world.put(&path.join("c/d"), file(b"d")),
                Some(what) => subject.world.put(&path, what),
            }
        }
    }
    let after = subject.content(sandbox.path());
    let later = captured(&subject, &sandbox).await.tree;
    for (tree, content) in [(sandbox.created.tree, &before), (later, &after)] {
        let restore = back_to(&sandbox, tree, everything());
        done(subject.workspaces.restore(restore).await, "a restore");
        assert_eq!(&subject.content(sandbox.path()), content);
    }
}

pub(super) async fn what_does_not_change_is_not_touched(subject: Subject) {
    subject.fill();
    let sandbox = sandbox(&subject, everything()).await;
    let stay = ["empty", "dir/run.sh", "link", "large.bin"].map(|p| sandbox.path().join(p));
    let stamps = || stay.clone().map(|path| subject.world.stamp(&path));
    let before = stamps();
    let changed = sandbox.path().join("a.txt");
    let old = subject.world.stamp(&changed);
    subject.world.put(&changed, file(b"changed"));
    let restore = || back_to(&sandbox, sandbox.created.tree, everything());
    let restored = done(subject.workspaces.restore(restore()).await, "a restore");
    assert_eq!(
        stamps(),
        before,
        "what does not change keeps inode and time"
    );
    assert_ne!(
        subject.world.stamp(&changed),
        old,
        "what changes gets the current time"
    );
    assert_eq!((restored.written, restored.removed), (1, 0));
    let restored = done(subject.workspaces.restore(restore()).await, "a restore");
    assert_eq!((restored.written, restored.removed), (0, 0));
}

pub(super) async fn a_missing_root_is_made(subject: Subject) {
    subject.fill();
    let sandbox = sandbox(&subject, everything()).await;
    let content = subject.content(sandbox.path());
    subject.world.remove(sandbox.path());
    let restore = || back_to(&sandbox, sandbox.created.tree, everything());
    let restored = done(subject.workspaces.restore(restore()).await, "a restore");
    assert_eq!(subject.content(sandbox.path()), content);
    let own = subject
        .workspaces
        .identify_own(sandbox.path().to_owned())
        .await;
    assert_eq!(restored.root, done(own, "the new root"));
    subject
        .world
        .put(sandbox.path(), file(b"a file in its place"));
    refused(
        subject.workspaces.restore(restore()).await,
        Code::SandboxGone,
        Disposition::Permanent,
        "a restore where a file is",
    );
    let there = subject.world.get(sandbox.path());
    assert_eq!(there, Some(file(b"a file in its place")));
}

pub(super) async fn ignored_files_stay_where_they_are(subject: Subject) {
    subject.write("dir/file", b"f");
    subject.write("other", b"o");
    let rules = || Arc::new(ByName::default());
    let sandbox = sandbox(&subject, rules()).await;
    let at = |rel: &str| sandbox.path().join(rel);
    let put = |rel: &str, bytes: &[u8]| subject.world.put(&at(rel), file(bytes));
    put("ign", b"1");
    put("dir/ign", b"2");
    put("new/file", b"n");
    put("new/ign", b"3");
    put("hid", b"4");
    put("other", b"changed");
    let restore = || back_to(&sandbox, sandbox.created.tree, rules());
    for round in 0..2 {
        let restored = done(subject.workspaces.restore(restore()).await, "a restore");
        for (path, bytes) in [
            ("ign", b"1"),
            ("dir/ign", b"2"),
            ("new/ign", b"3"),
            ("hid", b"4"),
            ("other", b"o"),
        ] {
            assert_eq!(subject.world.get(&at(path)), Some(file(bytes)), "{path}");
        }
        assert_eq!(subject.world.get(&at("new/file")), None);
        assert_eq!(restored.kept_directories, [rel("new")], "round {round}");
    }
    // Where a file must go, ignored ones are in the way: nothing is done.
    subject.world.remove(&at("other"));
    put("other/ign", b"5");
    put("dir/file", b"changed");
    refused(
        subject.workspaces.restore(restore()).await,
        Code::IllegalState,
        Disposition::Conflict,
        "a restore over ignored files",
    );
    assert_eq!(subject.world.get(&at("other/ign")), Some(file(b"5")));
}

pub(super) async fn a_missing_object_stops_it_before_the_first_change(subject: Subject) {
    subject.fill();
    let sandbox = sandbox(&subject, everything()).await;
    subject
        .world
        .put(&sandbox.path().join("a.txt"), file(b"changed"));
    let before = subject.snapshot(sandbox.path());
    // A tree of which one file was never stored.
    let lost = sandbar_domain::Entry::new(sandbar_domain::Kind::File, Hash::of(b"never"));
    let tree = sandbar_domain::tree::Tree::new(vec![("a.txt".into(), lost)]);
    let bytes = tree.expect("a valid name").encode();
    let tree = done(subject.objects.put(vec![bytes]).await, "storing a tree")[0];
    for tree in [tree, Hash::of(b"no tree")] {
        let restore = back_to(&sandbox, tree, everything());
        refused(
            subject.workspaces.restore(restore).await,
            Code::CorruptObject,
            Disposition::Permanent,
            "a tree that is not wholly there",
        );
        assert_eq!(subject.snapshot(sandbox.path()), before, "nothing changed");
    }
}

pub(super) async fn a_cancelled_restore_changes_nothing(subject: Subject) {
    subject.fill();
    let sandbox = sandbox(&subject, everything()).await;
    subject
        .world
        .put(&sandbox.path().join("a.txt"), file(b"changed"));
    let before = subject.snapshot(sandbox.path());
    let restore = back_to(&sandbox, sandbox.created.tree, everything());
    restore.cancel.cancel();
    refused(
        subject.workspaces.restore(restore).await,
        Code::Interrupted,
        Disposition::Retryable,
        "a cancelled restore",
    );
    assert_eq!(subject.snapshot(sandbox.path()), before);
}
