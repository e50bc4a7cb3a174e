//! Creating a sandbox.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt as _;
use std::sync::Arc;

use sandbar_domain::{Code, Disposition, Hash, Kind};
use sandbar_ports::rules::CarryRules;

use super::rules::ByName;
use super::{captured, everything, request, sandbox};
use crate::contract::files::{Subject, What, file, rel};
use crate::contract::{done, refused};

async fn nothing_is_left(subject: &Subject, rules: Arc<dyn CarryRules>, code: Code, why: &str) {
    let place = done(subject.workspaces.reserve().await, "reserving");
    let request = request(subject, &place, rules).await;
    let dest = request.dest.clone();
    let created = subject.workspaces.create(request).await;
    refused(created, code, Disposition::Permanent, why);
    assert_eq!(subject.world.get(&dest), None, "{why}: no root is left");
}

pub(super) async fn a_copy_is_exact_and_the_original_untouched(subject: Subject) {
    subject.fill();
    let real = subject.world.root();
    let content = subject.content(&real);
    let stamps = |root: &std::path::Path| {
        let paths = content.iter().map(|(path, _)| root.join(path));
        paths
            .map(|path| subject.world.stamp(&path))
            .collect::<Vec<_>>()
    };
    let before = stamps(&real);
    let sandbox = sandbox(&subject, everything()).await;
    assert_eq!(
        subject.content(sandbox.path()),
        content,
        "the copy is exact"
    );
    assert_eq!(subject.content(&real), content, "the original is untouched");
    assert_eq!(stamps(&real), before, "not even its times change");
    let expected = subject.expected_tree(&real);
    assert_eq!(sandbox.created.tree, expected, "the tree is the content's");
    let own = subject
        .workspaces
        .identify_own(sandbox.path().to_owned())
        .await;
    assert_eq!(done(own, "the new root"), sandbox.created.root);
    // Times are those of the original, so that build tools see no change.
    for (path, what) in &content {
        if !matches!(what, What::Directory) {
            let time = |root: &std::path::Path| subject.world.stamp(&root.join(path));
            let (original, copy) = (time(&real), time(sandbox.path()));
            let (original, copy) = (original.expect("there"), copy.expect("there"));
            assert_ne!(original.0, copy.0, "{}: another inode", path.display());
            assert_eq!(original.1, copy.1, "{}: the same time", path.display());
        }
    }
    let leaves = || content.iter().filter(|(_, what)| *what != What::Directory);
    let tally = &sandbox.created.tally;
    assert_eq!(tally.files, leaves().count() as u64);
    let directories = content.len() - leaves().count() - 1;
    assert_eq!(tally.directories, directories as u64, "without the root");
    let bytes = leaves().map(|(_, what)| match what {
        What::File { bytes, .. } => bytes.len() as u64,
        _ => 0,
    });
    assert_eq!(tally.bytes, bytes.sum::<u64>(), "bytes of files");
    assert_eq!((tally.ignored, tally.unsupported.len()), (0, 0));
    let files = &sandbox.created.files;
    assert_eq!(files.len(), leaves().count(), "each file and symlink once");
    assert!(files.windows(2).all(|pair| pair[0].path < pair[1].path));
    for copied in files.iter() {
        let what = subject.world.get(&real.join(&copied.path));
        let what = what.expect("it was copied");
        let bytes = what.content().expect("a file or symlink");
        assert_eq!(copied.hash, Hash::of(bytes), "{}", copied.path);
        let stored = done(subject.objects.get(copied.hash).await, "its content");
        assert_eq!(stored, bytes, "{} is in the store", copied.path);
        for (stat, root) in [(copied.source, &*real), (copied.copy, sandbox.path())] {
            let seen = subject.world.stamp(&root.join(&copied.path));
            assert_eq!(seen, Some((stat.ino, stat.mtime_ns)), "{}", copied.path);
            assert_eq!(stat.size, bytes.len() as u64, "{}", copied.path);
        }
    }
    let list = done(subject.objects.list(expected).await, "the tree is stored");
    assert_eq!(list.len(), content.len() - 1);
    assert_eq!(captured(&subject, &sandbox).await.tree, expected);
}

pub(super) async fn hidden_names_are_no_part_of_it(subject: Subject) {
    subject.write("kept", b"k");
    let expected = subject.expected_tree(&subject.world.root());
    subject.write(".git/config", b"x");
    subject.write("sub/.git/config", b"belongs to sub");
    let place = done(subject.workspaces.reserve().await, "reserving");
    let mut request = request(&subject, &place, everything()).await;
    request.hidden = vec![".git".to_owned(), "sub".to_owned()];
    let created = super::create(&subject, request).await;
    assert_eq!(created.tree, expected);
    assert_eq!(subject.world.names(&created.root.path), ["kept"]);
    assert_eq!(created.tally.ignored, 0, "hidden is not ignored");
    // Only at the top.
    let place = done(subject.workspaces.reserve().await, "reserving");
    let mut request = super::request(&subject, &place, everything()).await;
    request.hidden = vec![".git".to_owned()];
    let created = super::create(&subject, request).await;
    let deep = created.root.path.join("sub/.git/config");
    assert_eq!(subject.world.get(&deep), Some(file(b"belongs to sub")));
}

pub(super) async fn what_cannot_be_carried_is_refused_and_leaves_nothing(subject: Subject) {
    subject.fill();
    subject
        .world
        .put(&subject.at("dir/ign-pipe"), What::Special);
    let code = Code::UnsupportedEntry;
    nothing_is_left(&subject, everything(), code, "a special file").await;
    // Where it is ignored it is in nobody's way.
    let sandbox = sandbox(&subject, Arc::new(ByName::default())).await;
    assert_eq!(sandbox.created.tally.ignored, 1);
    assert_eq!(sandbox.created.tally.unsupported, []);
}

pub(super) async fn a_name_that_is_not_utf8_is_refused(subject: Subject) {
    subject.fill();
    let name = OsString::from_vec(b"caf\xe9".to_vec());
    subject
        .world
        .put(&subject.world.root().join(name), file(b"x"));
    let code = Code::UnsupportedEntry;
    nothing_is_left(&subject, everything(), code, "a name that is not UTF-8").await;
}

pub(super) async fn a_cancelled_copy_leaves_nothing(subject: Subject) {
    subject.fill();
    let place = done(subject.workspaces.reserve().await, "reserving");
    let request = request(&subject, &place, everything()).await;
    request.cancel.cancel();
    let dest = request.dest.clone();
    refused(
        subject.workspaces.create(request).await,
        Code::Interrupted,
        Disposition::Retryable,
        "a cancelled copy",
    );
    assert_eq!(subject.world.get(&dest), None, "no root is left");
}

pub(super) async fn a_root_that_was_replaced_is_refused(subject: Subject) {
    subject.fill();
    let place = done(subject.workspaces.reserve().await, "reserving");
    let request = request(&subject, &place, everything()).await;
    let dest = request.dest.clone();
    // Moved aside first: its inode number must not be given out again.
    let aside = subject.world.base().join("aside");
    subject
        .world
        .put(&aside.join("other"), file(b"another directory"));
    let mut moved = request.clone();
    moved.source.path = aside;
    refused(
        subject.workspaces.create(moved).await,
        Code::SandboxGone,
        Disposition::Permanent,
        "a root whose path leads to another directory",
    );
    subject.world.remove(&subject.world.root());
    refused(
        subject.workspaces.create(request).await,
        Code::PathNotFound,
        Disposition::Permanent,
        "a root that is gone",
    );
    assert_eq!(subject.world.get(&dest), None, "no root is left");
}

pub(super) async fn ignored_paths_are_counted_and_left(subject: Subject) {
    for path in [
        "kept",
        "ignored/one",
        "ignored/two",
        "ign-file",
        "hidden/x",
        "look/kept",
        "look/ign",
        "look-empty/ign",
        "dir/look-deep/look-deeper/kept",
        "look-file",
    ] {
        subject.write(path, path.as_bytes());
    }
    let sandbox = sandbox(&subject, Arc::new(ByName::default())).await;
    let tally = &sandbox.created.tally;
    let list = done(subject.objects.list(sandbox.created.tree).await, "listing");
    let paths: Vec<&str> = list.iter().map(|(path, _)| path.as_str()).collect();
    let expected = [
        "dir",
        "dir/look-deep",
        "dir/look-deep/look-deeper",
        "dir/look-deep/look-deeper/kept",
        "kept",
        "look",
        "look/kept",
    ];
    // A file that is to be looked into holds nothing: it is ignored, unless an
    // adapter could say otherwise, which none can.
    assert_eq!(paths, expected);
    let files: Vec<_> = sandbox.created.files.iter().map(|f| &f.path).collect();
    assert_eq!(files.len(), 3);
    let mut ignored = tally.ignored_paths.clone();
    ignored.sort();
    let expected = ["ign-file", "ignored", "look-empty", "look-file", "look/ign"];
    assert_eq!(ignored, expected, "an ignored directory counts once");
    assert_eq!(tally.ignored, 5);
    for gone in ["ignored", "hidden", "look-empty", "ign-file", "look/ign"] {
        let at = sandbox.path().join(gone);
        assert_eq!(subject.world.get(&at), None, "{gone} is not copied");
    }
}

pub(super) async fn rules_are_announced_parents_first(subject: Subject) {
    subject.write(".rules", b"everywhere\n");
    subject.write("a/.rules", b"here\n");
    for path in ["everywhere", "here", "a/here", "a/b/everywhere", "a/b/here"] {
        subject.write(path, b"x");
    }
    let rules = Arc::new(ByName::default());
    let sandbox = sandbox(&subject, rules.clone()).await;
    assert_eq!(rules.announced(), [None, Some(rel("a"))]);
    let list = done(subject.objects.list(sandbox.created.tree).await, "listing");
    let files = list.iter().filter(|(_, entry)| entry.kind == Kind::File);
    let paths: Vec<&str> = files.map(|(path, _)| path.as_str()).collect();
    assert_eq!(paths, [".rules", "a/.rules", "here"]);
    let empty = subject.world.names(&sandbox.path().join("a/b"));
    assert_eq!(
        empty,
        [] as [&str; 0],
        "a carried directory stays when empty"
    );
}
