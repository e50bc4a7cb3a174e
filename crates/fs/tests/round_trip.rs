//! Create, capture, restore: the same tree comes back, judged by tar.
#![allow(clippy::unwrap_used, clippy::disallowed_methods, missing_docs)]

mod sandboxes;

use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};

use sandbar_domain::Kind;
use sandbar_ports::objects::Objects as _;
use sandboxes::{Bench, access_times, sentinel, tar_digest, wait};

fn chmod(path: &std::path::Path, mode: u32) {
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
}

/// A tree with one of everything that is carried.
fn fill(bench: &Bench) {
    bench.write("a.txt", b"hello\n");
    bench.write("empty", b"");
    bench.write("dir/sub/deep.rs", b"fn main() {}\n");
    bench.write("dir/run.sh", b"#!/bin/sh\n");
    bench.write("same", b"hello\n");
    bench.write("large.bin", &vec![7; 300 * 1024]);
    let mut huge = vec![1; 3 << 20];
    huge[1_234_567] = 9;
    bench.write("huge.bin", &huge);
    let root = bench.source();
    chmod(&root.join("dir/run.sh"), 0o750);
    chmod(&root.join("same"), 0o444);
    std::fs::create_dir(root.join("hollow")).unwrap();
    symlink("a.txt", root.join("link")).unwrap();
    symlink("/nowhere/at/all", root.join("dir/dangling")).unwrap();
    std::fs::create_dir(root.join("closed")).unwrap();
    bench.write("closed/inside", b"x");
    chmod(&root.join("closed"), 0o555);
}

#[test]
fn a_copy_is_exact_and_the_original_untouched() {
    let bench = Bench::on_disk();
    fill(&bench);
    let read = access_times(&bench.source());
    let sandbox = bench.sandbox();
    assert_eq!(access_times(&bench.source()), read);
    let before = sentinel(&bench.source());
    bench.sandbox();
    assert_eq!(sentinel(&bench.source()), before);
    assert_eq!(tar_digest(&bench.source()), tar_digest(&sandbox.root()));
    for path in [
        ".",
        "a.txt",
        "same",
        "dir",
        "dir/run.sh",
        "closed",
        "link",
        "dir/dangling",
    ] {
        let of = |root: std::path::PathBuf| {
            let meta = std::fs::symlink_metadata(root.join(path)).unwrap();
            (
                meta.mode(),
                meta.mtime(),
                meta.mtime_nsec(),
                meta.uid(),
                meta.gid(),
            )
        };
        assert_eq!(of(bench.source()), of(sandbox.root()), "{path}");
    }
    let captured = sandbox.capture();
    assert_eq!(captured.tree, sandbox.created.tree);
    assert_eq!(captured.tally, sandbox.created.tally);
    assert_eq!((captured.tally.files, captured.tally.directories), (10, 4));
    for file in sandbox.created.files.iter() {
        let bytes = wait(bench.engine.get(file.hash)).unwrap();
        let path = sandbox.root().join(&file.path);
        let meta = std::fs::symlink_metadata(&path).unwrap();
        assert_eq!((file.copy.ino, file.copy.size), (meta.ino(), meta.size()));
        assert_eq!(
            file.copy.ctime_ns % 1_000_000_000,
            i128::from(meta.ctime_nsec())
        );
        if meta.is_file() {
            assert!(bytes == std::fs::read(&path).unwrap(), "{path:?}");
        }
    }
    let list = wait(bench.engine.list(captured.tree)).unwrap();
    assert_eq!(list.len(), 14);
    let health = wait(bench.engine.verify()).unwrap();
    assert!(health.damaged.is_empty());
}

#[test]
fn every_kind_of_change_is_seen_and_taken_back() {
    let bench = Bench::on_disk();
    fill(&bench);
    let sandbox = bench.sandbox();
    let root = sandbox.root();
    let base = sandbox.capture().tree;
    let digest = tar_digest(&root);
    std::fs::write(root.join("a.txt"), "HELLO\n").unwrap();
    std::fs::remove_file(root.join("empty")).unwrap();
    chmod(&root.join("dir/run.sh"), 0o640);
    std::fs::write(root.join("huge.bin"), "small now").unwrap();
    std::fs::remove_dir(root.join("hollow")).unwrap();
    std::fs::write(root.join("hollow"), "a file").unwrap();
    std::fs::remove_file(root.join("link")).unwrap();
    std::fs::create_dir(root.join("link")).unwrap();
    std::fs::write(root.join("link/new"), "n").unwrap();
    std::fs::remove_dir_all(root.join("dir/sub")).unwrap();
    symlink("b", root.join("dir/sub")).unwrap();
    sandbox.write("new/er/est", b"1");
    std::fs::remove_dir_all(root.join("closed")).unwrap();
    let changed = sandbox.capture().tree;
    let changed_digest = tar_digest(&root);
    assert_eq!(
        bench.diff(base, changed),
        [
            "modified a.txt",
            "deleted closed",
            "deleted closed/inside",
            "mode dir/run.sh",
            "type dir/sub",
            "deleted dir/sub/deep.rs",
            "deleted empty",
            "type hollow",
            "modified huge.bin",
            "type link",
            "added link/new",
            "added new",
            "added new/er",
            "added new/er/est",
        ]
    );
    let restored = sandbox.restore(base);
    assert!(restored.kept_directories.is_empty());
    assert_eq!(tar_digest(&root), digest);
    assert_eq!(sandbox.capture().tree, base);
    assert_eq!(bench.diff(base, base), [""; 0]);
    let again = sandbox.restore(base);
    assert_eq!((again.written, again.removed), (0, 0));
    sandbox.restore(changed);
    assert_eq!(tar_digest(&root), changed_digest);
    std::fs::remove_dir_all(&root).unwrap();
    sandbox.restore(base);
    assert_eq!(tar_digest(&root), digest);
    assert!(!sandbox.place.join("t").exists());
}

#[test]
fn what_did_not_change_is_not_touched_by_a_restore() {
    let bench = Bench::on_disk();
    fill(&bench);
    let sandbox = bench.sandbox();
    let root = sandbox.root();
    let state = |name: &str| {
        let meta = std::fs::symlink_metadata(root.join(name)).unwrap();
        (
            meta.ino(),
            meta.mtime(),
            meta.mtime_nsec(),
            meta.ctime_nsec(),
            meta.mode(),
        )
    };
    let (kept, before) = (state("same"), state("a.txt"));
    std::fs::write(root.join("a.txt"), "changed").unwrap();
    chmod(&root.join("a.txt"), 0o600);
    let restored = sandbox.restore(sandbox.created.tree);
    assert_eq!((restored.written, restored.removed), (1, 0));
    assert_eq!(state("same"), kept);
    let after = state("a.txt");
    assert!(after.1 > before.1 - 1 && (after.1, after.2) != (before.1, before.2));
    assert_eq!(after.4 & 0o777, 0o600, "other mode bits stay");
}

#[test]
fn lookup_and_list_agree() {
    let bench = Bench::on_disk();
    fill(&bench);
    let sandbox = bench.sandbox();
    let tree = sandbox.created.tree;
    let list = wait(bench.engine.list(tree)).unwrap();
    let paths: Vec<_> = list.iter().map(|(path, _)| path.clone()).collect();
    let found = wait(bench.engine.lookup(tree, paths)).unwrap();
    let want: Vec<_> = list.iter().map(|(_, entry)| Some(*entry)).collect();
    assert_eq!(found, want);
    let missing =
        ["nope", "a.txt/below", "dir/nope"].map(|text| sandbar_domain::RelPath::new(text).unwrap());
    let found = wait(bench.engine.lookup(tree, missing.to_vec())).unwrap();
    assert_eq!(found, [None, None, None]);
    let kinds = |kind| list.iter().filter(|(_, e)| e.kind == kind).count();
    assert_eq!(
        [Kind::Directory, Kind::Executable, Kind::Symlink, Kind::File].map(kinds),
        [4, 1, 2, 7]
    );
}
