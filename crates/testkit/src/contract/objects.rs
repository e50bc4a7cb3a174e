//! The contract of [`Objects`](sandbar_ports::objects::Objects).

use sandbar_domain::tree::{self, Tree};
use sandbar_domain::{Change, Code, Disposition, Entry, Hash, Kind};
use sandbar_ports::objects::Live;

use super::files::{Subject, entry, rel};
use super::{cases, done, refused, same_list};

cases! {
    Subject;
    objects_come_back_in_order,
    a_missing_object_is_corrupt,
    what_is_missing_is_named_in_order,
    the_same_content_is_stored_once,
    a_list_is_sorted_by_bytes,
    a_lookup_enters_only_directories,
    a_difference_is_exact,
    a_difference_is_empty_only_for_equal_trees,
    a_collection_keeps_what_is_live,
    a_collection_keeps_what_is_young,
    a_collection_without_its_trees_removes_nothing,
}

async fn put(subject: &Subject, bytes: &[u8]) -> Hash {
    let hashes = subject.objects.put(vec![bytes.to_vec()]).await;
    done(hashes, "storing an object")[0]
}

async fn what_is_missing_is_named_in_order(subject: Subject) {
    let there = put(&subject, b"there").await;
    let large = put(&subject, &vec![7; 300_000]).await;
    let (a, b) = (Hash::of(b"never stored"), Hash::of(b"nor this"));
    let missing = subject.objects.missing(vec![b, there, a, large]).await;
    assert_eq!(done(missing, "asking what is missing"), [b, a]);
}

/// Stores a tree of files given by path, kind and content.
async fn tree_of(subject: &Subject, files: &[(&str, Kind, &str)]) -> Hash {
    Box::pin(subtree(subject, files, "")).await
}

async fn subtree(subject: &Subject, files: &[(&str, Kind, &str)], dir: &str) -> Hash {
    let mut entries: Vec<(Box<str>, Entry)> = Vec::new();
    for (path, kind, text) in files {
        let Some(rest) = path.strip_prefix(dir) else {
            continue;
        };
        let name = rest.split('/').next().expect("a path has a name");
        if entries.iter().any(|(have, _)| &**have == name) {
            continue;
        }
        let entry = if name.len() < rest.len() {
            let below = format!("{dir}{name}/");
            let hash = Box::pin(subtree(subject, files, &below)).await;
            Entry::new(Kind::Directory, hash)
        } else if *kind == Kind::Directory {
            Entry::new(
                Kind::Directory,
                put(subject, &Tree::default().encode()).await,
            )
        } else {
            Entry::new(*kind, put(subject, text.as_bytes()).await)
        };
        entries.push((name.into(), entry));
    }
    let tree = Tree::new(entries).expect("valid names");
    put(subject, &tree.encode()).await
}

async fn objects_come_back_in_order(subject: Subject) {
    let mut contents: Vec<Vec<u8>> = (0..50u8).map(|n| vec![n; usize::from(n)]).collect();
    contents.push(vec![1; 256 * 1024]);
    contents.push((0..3_000_000u32).map(|n| (n % 251) as u8).collect());
    contents.push(Vec::new());
    contents.push(b"twice".to_vec());
    contents.push(b"twice".to_vec());
    let hashes = done(subject.objects.put(contents.clone()).await, "storing");
    let expected: Vec<Hash> = contents.iter().map(|bytes| Hash::of(bytes)).collect();
    assert_eq!(hashes, expected, "hashes are in the order of the contents");
    for (hash, bytes) in hashes.iter().zip(&contents) {
        let found = done(subject.objects.get(*hash).await, "reading");
        assert!(found == *bytes, "the bytes of {hash} must come back");
        let read = done(subject.contents.read(*hash), "reading at once");
        assert!(read == *bytes, "both ways of reading agree on {hash}");
    }
    let none = done(subject.objects.put(Vec::new()).await, "storing nothing");
    assert_eq!(none, []);
}

async fn a_missing_object_is_corrupt(subject: Subject) {
    let hash = Hash::of(b"never stored");
    let (code, how) = (Code::CorruptObject, Disposition::Permanent);
    refused(
        subject.objects.get(hash).await,
        code,
        how,
        "a missing object",
    );
    refused(subject.contents.read(hash), code, how, "a missing object");
    refused(
        subject.objects.list(hash).await,
        code,
        how,
        "a missing tree",
    );
    let file = put(&subject, b"not a tree").await;
    refused(
        subject.objects.list(file).await,
        code,
        how,
        "an object that is no tree, read as one",
    );
}

async fn the_same_content_is_stored_once(subject: Subject) {
    let health = || async { done(subject.objects.verify().await, "verifying") };
    let before = health().await;
    assert_eq!(before.damaged, []);
    put(&subject, b"content").await;
    let once = health().await;
    assert_eq!(once.objects, before.objects + 1);
    put(&subject, b"content").await;
    let twice = health().await;
    assert_eq!(twice.objects, once.objects, "not stored again");
    assert_eq!(twice.damaged, []);
}

async fn a_list_is_sorted_by_bytes(subject: Subject) {
    let files = [
        ("b", Kind::Executable, "b"),
        ("a/z", Kind::File, "z"),
        ("a/y/x", Kind::Symlink, "x"),
        ("a-b", Kind::File, ""),
        ("a0", Kind::Directory, ""),
        ("B", Kind::File, "B"),
        ("é", Kind::File, "e"),
    ];
    let tree = tree_of(&subject, &files).await;
    let list = done(subject.objects.list(tree).await, "listing");
    let paths: Vec<&str> = list.iter().map(|(path, _)| path.as_str()).collect();
    let expected = ["B", "a", "a-b", "a/y", "a/y/x", "a/z", "a0", "b", "é"];
    assert_eq!(paths, expected);
    assert_eq!(list[4].1, entry(Kind::Symlink, b"x"));
    assert_eq!(list[7].1, entry(Kind::Executable, b"b"));
    let again = tree::build(list.clone()).map(|built| built.root);
    assert_eq!(again, Ok(tree), "a list says everything of its tree");
    assert_eq!(list[6].1, Entry::new(Kind::Directory, tree::empty()));
    let empty = subject.objects.list(tree::empty()).await;
    assert_eq!(done(empty, "listing the empty tree"), []);
}

async fn a_lookup_enters_only_directories(subject: Subject) {
    let files = [
        ("dir/file", Kind::File, "f"),
        ("dir/sub/x", Kind::File, "x"),
        ("link", Kind::Symlink, "dir"),
    ];
    let tree = tree_of(&subject, &files).await;
    let below = tree_of(&subject, &[("x", Kind::File, "x")]).await;
    let asked = [
        "dir/sub",
        "nothing",
        "dir/file",
        "dir/file/below",
        "link/file",
        "dir/sub/x",
        "dir/file",
        "link",
    ];
    let found = subject
        .objects
        .lookup(tree, asked.iter().map(|path| rel(path)).collect())
        .await;
    let f = entry(Kind::File, b"f");
    assert_eq!(
        done(found, "a lookup"),
        [
            Some(Entry::new(Kind::Directory, below)),
            None,
            Some(f),
            None,
            None,
            Some(entry(Kind::File, b"x")),
            Some(f),
            Some(entry(Kind::Symlink, b"dir")),
        ]
    );
    let empty = subject.objects.lookup(tree::empty(), vec![rel("a")]).await;
    assert_eq!(done(empty, "a lookup in the empty tree"), [None]);
}

async fn a_difference_is_exact(subject: Subject) {
    let old = [
        ("same/deep/file", Kind::File, "s"),
        ("changed", Kind::File, "1"),
        ("mode", Kind::File, "m"),
        ("gone/a", Kind::File, "a"),
        ("gone/b/c", Kind::Symlink, "c"),
        ("file-to-dir", Kind::File, "f"),
        ("dir-to-file/x", Kind::File, "x"),
        ("emptied/x", Kind::File, "x"),
    ];
    let new = [
        ("same/deep/file", Kind::File, "s"),
        ("changed", Kind::File, "2"),
        ("mode", Kind::Executable, "m"),
        ("file-to-dir/y", Kind::File, "y"),
        ("dir-to-file", Kind::Symlink, "x"),
        ("emptied", Kind::Directory, ""),
        ("new/hollow", Kind::Directory, ""),
    ];
    let (old, new) = (tree_of(&subject, &old).await, tree_of(&subject, &new).await);
    let file = |text: &str| Some(entry(Kind::File, text.as_bytes()));
    let dir = || Some(Entry::new(Kind::Directory, tree::empty()));
    let link = |text: &str| Some(entry(Kind::Symlink, text.as_bytes()));
    let rows: Vec<(&str, Option<Entry>, Option<Entry>)> = vec![
        ("changed", file("1"), file("2")),
        ("dir-to-file", dir(), link("x")),
        ("dir-to-file/x", file("x"), None),
        ("emptied/x", file("x"), None),
        ("file-to-dir", file("f"), dir()),
        ("file-to-dir/y", None, file("y")),
        ("gone", dir(), None),
        ("gone/a", file("a"), None),
        ("gone/b", dir(), None),
        ("gone/b/c", link("c"), None),
        ("mode", file("m"), Some(entry(Kind::Executable, b"m"))),
        ("new", None, dir()),
        ("new/hollow", None, dir()),
    ];
    let forward = done(subject.objects.diff(old, new).await, "a difference");
    let change = |(path, old, new): &(&str, Option<Entry>, Option<Entry>)| Change {
        path: rel(path),
        old: *old,
        new: *new,
    };
    let expected: Vec<Change> = rows.iter().map(change).collect();
    same_list(&forward, &expected, "what differs");
    let swap = |change: Change| Change {
        path: change.path,
        old: change.new,
        new: change.old,
    };
    let back = done(subject.objects.diff(new, old).await, "a difference");
    let expected: Vec<Change> = expected.into_iter().map(swap).collect();
    same_list(&back, &expected, "what differs the other way");
}

async fn a_difference_is_empty_only_for_equal_trees(subject: Subject) {
    let tree = tree_of(&subject, &[("a", Kind::File, "a")]).await;
    let same = subject.objects.diff(tree, tree).await;
    assert_eq!(done(same, "a difference"), []);
    let from_nothing = subject.objects.diff(tree::empty(), tree).await;
    let expected = [Change {
        path: rel("a"),
        old: None,
        new: Some(entry(Kind::File, b"a")),
    }];
    assert_eq!(done(from_nothing, "a difference from nothing"), expected);
    let both = subject.objects.diff(tree::empty(), tree::empty()).await;
    assert_eq!(done(both, "nothing against nothing"), []);
}

async fn a_collection_keeps_what_is_live(subject: Subject) {
    let files = [
        ("dir/kept", Kind::File, "kept"),
        ("dir/link", Kind::Symlink, "link"),
    ];
    let kept = tree_of(&subject, &files).await;
    let other = [("lost", Kind::File, "lost"), ("same", Kind::File, "kept")];
    let lost = tree_of(&subject, &other).await;
    let alone = put(&subject, b"alone").await;
    let forgotten = put(&subject, &vec![3; 400 * 1024]).await;
    let live = Live {
        trees: [kept].into(),
        objects: [alone].into(),
        grace_ms: 0,
    };
    let first = done(subject.objects.collect(live.clone()).await, "collecting");
    assert!(first.removed >= 3, "three objects at least: {first:?}");
    assert!(first.bytes > 0);
    let list = done(subject.objects.list(kept).await, "listing what is live");
    for (_, entry) in list {
        done(
            subject.objects.get(entry.hash).await,
            "reading what is live",
        );
    }
    done(subject.objects.get(alone).await, "reading a live object");
    let (code, how) = (Code::CorruptObject, Disposition::Permanent);
    for hash in [lost, Hash::of(b"lost"), forgotten] {
        refused(
            subject.objects.get(hash).await,
            code,
            how,
            "what was removed",
        );
    }
    let second = done(subject.objects.collect(live).await, "collecting again");
    assert_eq!(
        (second.removed, second.bytes),
        (0, 0),
        "nothing is left to do"
    );
    assert_eq!(second.kept, first.kept);
    let again = put(&subject, b"lost").await;
    let bytes = done(subject.objects.get(again).await, "what was stored again");
    assert_eq!(bytes, b"lost");
    let health = done(subject.objects.verify().await, "verifying");
    assert_eq!(health.damaged, []);
    assert_eq!(health.objects, first.kept + 1);
}

async fn a_collection_keeps_what_is_young(subject: Subject) {
    let hash = put(&subject, b"young").await;
    let live = Live {
        grace_ms: 3_600_000,
        ..Live::default()
    };
    let done_first = done(subject.objects.collect(live).await, "collecting");
    assert_eq!(done_first.removed, 0, "what is young stays");
    done(subject.objects.get(hash).await, "reading what is young");
}

async fn a_collection_without_its_trees_removes_nothing(subject: Subject) {
    let hash = put(&subject, b"may be part of the missing tree").await;
    let live = Live {
        trees: [Hash::of(b"a tree that is missing")].into(),
        ..Live::default()
    };
    refused(
        subject.objects.collect(live).await,
        Code::CorruptObject,
        Disposition::Permanent,
        "collecting with a live tree that cannot be read",
    );
    let bytes = subject.objects.get(hash).await;
    done(bytes, "reading after a refused collection");
}
