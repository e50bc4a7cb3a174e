//! The object store: verified on read, durable, collected without harm.
#![allow(clippy::unwrap_used, clippy::disallowed_methods, missing_docs)]

mod sandboxes;

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use sandbar_domain::tree::Tree;
use sandbar_domain::{Code, Entry, Hash, Kind};
use sandbar_fs::FsEngine;
use sandbar_ports::git::Contents as _;
use sandbar_ports::objects::{Live, Objects as _};
use sandbar_ports::workspace::Workspaces as _;
use sandboxes::{code, wait};

fn open(dir: &Path) -> FsEngine {
    FsEngine::open(dir).unwrap()
}

fn files(dir: &Path) -> Vec<PathBuf> {
    let mut found: Vec<_> = std::fs::read_dir(dir)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    found.sort();
    found
}

fn packs(data: &Path) -> Vec<PathBuf> {
    files(&data.join("objects/packs"))
}

fn damage(path: &Path, at: usize) {
    let mut bytes = std::fs::read(path).unwrap();
    bytes[at] ^= 0x40;
    std::fs::remove_file(path).unwrap();
    std::fs::write(path, bytes).unwrap();
}

fn live(objects: &[Hash]) -> Live {
    Live {
        objects: objects.iter().copied().collect(),
        ..Live::default()
    }
}

fn large(seed: u8) -> Vec<u8> {
    vec![seed; 300_000]
}

#[test]
fn what_was_put_is_there_for_every_process_and_stored_once() {
    let temp = tempfile::tempdir().unwrap();
    let engine = open(temp.path());
    let other = open(temp.path());
    let texts: Vec<Vec<u8>> = vec![
        vec![],
        b"a".to_vec(),
        vec![b'z'; 20_000],
        large(1),
        b"a".to_vec(),
        large(1),
    ];
    let hashes = wait(engine.put(texts.clone())).unwrap();
    assert_eq!(hashes[1], Hash::of(b"a"));
    assert_eq!(packs(temp.path()).len(), 1);
    assert_eq!(wait(other.put(texts.clone())).unwrap(), hashes);
    assert_eq!(packs(temp.path()).len(), 1, "nothing was new");
    for (hash, text) in hashes.iter().zip(&texts) {
        assert!(wait(engine.get(*hash)).unwrap() == *text);
        assert!(other.read(*hash).unwrap() == *text);
        assert!(open(temp.path()).read(*hash).unwrap() == *text);
    }
    let health = wait(engine.verify()).unwrap();
    assert_eq!((health.objects, health.damaged.len()), (4, 0));
    assert!(files(&temp.path().join("objects/tmp")).is_empty());
    let before = sandboxes::sentinel(temp.path());
    let read_only = FsEngine::open_read_only(temp.path()).unwrap();
    assert_eq!(read_only.read(hashes[1]).unwrap(), b"a");
    assert_eq!(
        code(wait(read_only.put(vec![b"b".to_vec()]))),
        Code::ReadOnly
    );
    assert_eq!(code(wait(read_only.reserve())), Code::ReadOnly);
    assert_eq!(
        code(wait(read_only.collect(Live::default()))),
        Code::ReadOnly
    );
    assert!(wait(read_only.verify()).unwrap().damaged.is_empty());
    assert_eq!(sandboxes::sentinel(temp.path()), before);
}

#[test]
fn damage_is_reported_by_name_and_never_returned() {
    let temp = tempfile::tempdir().unwrap();
    let engine = open(temp.path());
    let one = wait(engine.put(vec![b"first object".to_vec()])).unwrap()[0];
    let pack = packs(temp.path()).remove(0);
    damage(&pack, 20);
    let error = wait(open(temp.path()).get(one)).unwrap_err();
    assert_eq!(error.code, Code::CorruptObject);
    assert_eq!(error.subjects, [one.to_string()]);
    let health = wait(open(temp.path()).verify()).unwrap();
    assert_eq!(health.damaged, [one]);

    let big = wait(engine.put(vec![large(2)])).unwrap()[0];
    let hex = big.to_string();
    let path = temp
        .path()
        .join("objects/loose")
        .join(&hex[..2])
        .join(&hex[2..]);
    damage(&path, 100_000);
    assert_eq!(code(wait(engine.get(big))), Code::CorruptObject);
    let mut want = [one, big];
    want.sort();
    assert_eq!(wait(open(temp.path()).verify()).unwrap().damaged, want);
    std::fs::write(&path, b"short").unwrap();
    assert_eq!(code(wait(engine.get(big))), Code::CorruptObject);
    assert_eq!(
        code(wait(engine.get(Hash::of(b"never put")))),
        Code::CorruptObject
    );

    // Records that lie: found by their checksum, at every byte of the footer.
    let fresh = tempfile::tempdir().unwrap();
    let engine = open(fresh.path());
    let hash = wait(engine.put(vec![b"content".to_vec()])).unwrap()[0];
    let pack = packs(fresh.path()).remove(0);
    let sound = std::fs::read(&pack).unwrap();
    for at in 23..sound.len() {
        damage(&pack, at);
        let engine = open(fresh.path());
        assert_eq!(
            code(wait(engine.get(hash))),
            Code::CorruptObject,
            "byte {at}"
        );
        assert_eq!(
            code(wait(engine.verify())),
            Code::CorruptObject,
            "byte {at}"
        );
        // A damaged pack is evidence: no collection removes it.
        wait(engine.collect(Live::default())).unwrap();
        assert_eq!(packs(fresh.path()), std::slice::from_ref(&pack));
        std::fs::remove_file(&pack).unwrap();
        std::fs::write(&pack, &sound).unwrap();
    }
    for length in 0..sound.len() {
        std::fs::remove_file(&pack).unwrap();
        std::fs::write(&pack, &sound[..length]).unwrap();
        let engine = open(fresh.path());
        assert_eq!(
            code(wait(engine.get(hash))),
            Code::CorruptObject,
            "cut at {length}"
        );
        // Putting it again heals the store.
        if length == 30 {
            wait(engine.put(vec![b"content".to_vec()])).unwrap();
            assert_eq!(wait(engine.get(hash)).unwrap(), b"content");
            let healed = packs(fresh.path()).into_iter().find(|path| *path != pack);
            std::fs::remove_file(healed.unwrap()).unwrap();
        }
    }
}

#[test]
fn collection_keeps_what_is_reachable_and_removes_the_rest() {
    let temp = tempfile::tempdir().unwrap();
    let engine = open(temp.path());
    let put = |bytes: Vec<u8>| wait(engine.put(vec![bytes])).unwrap()[0];
    let leaf = put(b"leaf".to_vec());
    let big = put(large(3));
    let inner = Tree::new(vec![
        ("leaf".into(), Entry::new(Kind::File, leaf)),
        ("big".into(), Entry::new(Kind::File, big)),
    ])
    .unwrap();
    let inner = put(inner.encode());
    let outer = Tree::new(vec![("dir".into(), Entry::new(Kind::Directory, inner))]).unwrap();
    let outer = put(outer.encode());
    let (dead, dead_big) = (put(b"dead".to_vec()), put(large(4)));
    let plain = put(b"plain".to_vec());
    let mut roots = live(&[plain]);
    roots.trees.insert(outer);

    let young = Live {
        grace_ms: 3_600_000,
        ..roots.clone()
    };
    let nothing = wait(engine.collect(young)).unwrap();
    assert_eq!((nothing.removed, nothing.bytes), (0, 0));
    let done = wait(engine.collect(roots.clone())).unwrap();
    assert_eq!((done.removed, done.kept), (2, 5));
    assert!(done.bytes > 300_000);
    for hash in [leaf, big, inner, outer, plain] {
        wait(engine.get(hash)).unwrap();
    }
    for hash in [dead, dead_big] {
        assert_eq!(code(wait(engine.get(hash))), Code::CorruptObject);
    }
    let again = wait(engine.collect(roots)).unwrap();
    assert_eq!((again.removed, again.bytes, again.kept), (0, 0, 5));
    assert!(wait(engine.verify()).unwrap().damaged.is_empty());

    // A live tree that cannot be read stops it before the first removal.
    let missing = Live {
        trees: HashSet::from([Hash::of(b"no such tree")]),
        ..Live::default()
    };
    assert_eq!(code(wait(engine.collect(missing))), Code::CorruptObject);
    wait(engine.get(leaf)).unwrap();
    let done = wait(engine.collect(Live::default())).unwrap();
    assert_eq!((done.removed, done.kept), (5, 0));
    assert!(packs(temp.path()).is_empty());
}

#[test]
fn part_of_a_pack_can_go_and_many_packs_are_merged() {
    let temp = tempfile::tempdir().unwrap();
    let engine = open(temp.path());
    let hashes = wait(engine.put((0..100u8).map(|n| vec![n; 50]).collect())).unwrap();
    let done = wait(engine.collect(live(&hashes[..7]))).unwrap();
    assert_eq!((done.removed, done.kept), (93, 7));
    let other = open(temp.path());
    for n in 0..100u16 {
        wait(engine.put(vec![n.to_be_bytes().to_vec()])).unwrap();
        assert!(packs(temp.path()).len() <= 65);
    }
    let all: Vec<_> = (0..100u16).map(|n| Hash::of(&n.to_be_bytes())).collect();
    let done = wait(engine.collect(live(&[&all[..], &hashes[..7]].concat()))).unwrap();
    assert_eq!((done.removed, done.kept), (0, 107));
    assert!(packs(temp.path()).len() <= 65);
    // A process that knew the old packs finds what moved.
    for hash in all.iter().chain(&hashes[..7]) {
        wait(other.get(*hash)).unwrap();
    }
}

#[test]
fn a_scan_stores_again_what_a_collection_took() {
    let bench = sandboxes::Bench::new();
    bench.write("dir/a", b"one");
    bench.write("b", &large(5));
    let sandbox = bench.sandbox();
    let tree = sandbox.capture().tree;
    wait(bench.engine.collect(Live::default())).unwrap();
    assert_eq!(code(wait(bench.engine.get(tree))), Code::CorruptObject);
    // The cache still believes every file, and yet all is stored again.
    assert_eq!(sandbox.capture().tree, tree);
    let list = wait(bench.engine.list(tree)).unwrap();
    assert_eq!(list.len(), 3);
    for (_, entry) in list {
        wait(bench.engine.get(entry.hash)).unwrap();
    }
    // What was only looked at is not taken for stored.
    sandbox.write("new", b"brand new");
    let seen = sandbox
        .capture_by(
            sandbox.cache(),
            false,
            std::sync::Arc::new(sandbar_ports::rules::Everything),
        )
        .unwrap();
    let fresh = Hash::of(b"brand new");
    assert_eq!(code(wait(bench.engine.get(fresh))), Code::CorruptObject);
    assert_eq!(sandbox.capture().tree, seen.tree);
    assert_eq!(wait(bench.engine.get(fresh)).unwrap(), b"brand new");
}

fn child(test: &str, dir: &Path, extra: &[(&str, &str)]) -> std::process::Command {
    let mut command = std::process::Command::new(std::env::current_exe().unwrap());
    command
        .args(["--exact", test, "--nocapture"])
        .env("SANDBAR_TEST_CHILD", dir)
        .envs(extra.iter().copied());
    command
}

#[test]
fn processes_that_write_and_collect_at_once_do_no_harm() {
    let name = "processes_that_write_and_collect_at_once_do_no_harm";
    if let Some(dir) = std::env::var_os("SANDBAR_TEST_CHILD") {
        let seed = std::process::id();
        let engine = open(Path::new(&dir));
        for round in 0..40u32 {
            let contents: Vec<Vec<u8>> = (0..20u32)
                .map(|n| format!("{} {round} {}", if n < 10 { 0 } else { seed }, n).into_bytes())
                .chain([vec![u8::try_from(round % 8).unwrap(); 270_000]])
                .collect();
            let hashes = wait(engine.put(contents.clone())).unwrap();
            for (hash, content) in hashes.iter().zip(contents) {
                assert!(wait(engine.get(*hash)).unwrap() == content, "round {round}");
            }
        }
        return;
    }
    let temp = tempfile::tempdir().unwrap();
    let engine = open(temp.path());
    let mut writers: Vec<_> = (0..3)
        .map(|_| child(name, temp.path(), &[]).spawn().unwrap())
        .collect();
    let mut collections = 0;
    while writers
        .iter_mut()
        .any(|writer| writer.try_wait().unwrap().is_none())
    {
        // Everything is dead, but nothing is older than the grace.
        let roots = Live {
            grace_ms: 3_600_000,
            ..Live::default()
        };
        wait(engine.collect(roots)).unwrap();
        collections += 1;
    }
    for mut writer in writers {
        assert!(writer.wait().unwrap().success());
    }
    assert!(collections > 0);
    let health = wait(engine.verify()).unwrap();
    assert!(health.damaged.is_empty());
    assert_eq!(wait(engine.collect(Live::default())).unwrap().kept, 0);
    assert!(packs(temp.path()).is_empty());
}

#[test]
fn killed_anywhere_while_putting_nothing_half_is_trusted() {
    let name = "killed_anywhere_while_putting_nothing_half_is_trusted";
    let contents = || vec![b"small one".to_vec(), vec![b'y'; 9_000], large(6)];
    if let Some(dir) = std::env::var_os("SANDBAR_TEST_CHILD") {
        let engine = open(Path::new(&dir));
        wait(engine.put(contents())).unwrap();
        wait(engine.collect(live(&[Hash::of(b"small one")]))).unwrap();
        return;
    }
    let mut killed = 0;
    for point in 1u32.. {
        let temp = tempfile::tempdir().unwrap();
        let before = wait(open(temp.path()).put(vec![b"before".to_vec()])).unwrap()[0];
        let side = if point % 2 == 0 { "before" } else { "after" };
        let at = format!("{}:{side}", point.div_ceil(2));
        let status = child(name, temp.path(), &[("SANDBAR_CRASH_AT", &at)])
            .stdout(std::process::Stdio::null())
            .status()
            .unwrap();
        let engine = open(temp.path());
        if !status.success() {
            killed += 1;
        }
        let health = wait(engine.verify()).unwrap();
        assert!(health.damaged.is_empty(), "{at}");
        // Whatever can be named can be read, and putting again succeeds.
        let hashes = wait(engine.put(contents())).unwrap();
        for (hash, content) in hashes.iter().zip(contents()) {
            assert!(wait(engine.get(*hash)).unwrap() == content, "{at}");
        }
        let all = [&hashes[..], &[before]].concat();
        wait(engine.collect(live(&all))).unwrap();
        assert!(files(&temp.path().join("objects/tmp")).is_empty(), "{at}");
        assert!(wait(engine.verify()).unwrap().damaged.is_empty(), "{at}");
        if status.success() {
            break;
        }
    }
    assert!(killed >= 40, "only {killed} points");
}

#[test]
fn golden_files_never_change() {
    let temp = tempfile::tempdir().unwrap();
    let engine = open(temp.path());
    let hash = wait(engine.put(vec![b"small".to_vec()])).unwrap()[0];
    let pack = std::fs::read(&packs(temp.path())[0]).unwrap();
    assert_eq!(pack[..21], *b"sandbar.pack.v1\nsmall");
    assert_eq!(pack[21..53], *hash.as_bytes());
    assert_eq!(pack.len(), 16 + 5 + 49 + 64);
    let big = wait(engine.put(vec![large(9)])).unwrap()[0].to_string();
    let path = temp
        .path()
        .join("objects/loose")
        .join(&big[..2])
        .join(&big[2..]);
    let loose = std::fs::read(path).unwrap();
    assert_eq!(loose[..16], *b"sandbar.loose.1\0");
    assert!(loose[16..] == large(9));
}
