//! Locks, looks and checks: nothing here writes.

use sandbar_domain::apply::PathOp;
use sandbar_domain::{Code, Disposition, Entry, Hash, Kind, RelPath, tree};

use super::{job, replace, staged, store};
use crate::contract::files::{Subject, What, entry, executable, file, rel, symlink};
use crate::contract::{done, refused};

pub(super) async fn a_root_has_one_lock(subject: Subject) {
    let root = subject.root().await;
    let held = done(subject.targets.lock(root.clone()).await, "a lock");
    let second = subject.targets.lock(root.clone()).await.map(|_| ());
    refused(
        second,
        Code::RootBusy,
        Disposition::Retryable,
        "a second lock",
    );
    let other = subject.world.base().join("other");
    subject.world.put(&other, What::Directory);
    let other = done(subject.workspaces.identify(other).await, "another root");
    done(
        subject.targets.lock(other).await.map(|_| ()),
        "a lock on another root",
    );
    drop(held);
    done(
        subject.targets.lock(root).await.map(|_| ()),
        "a lock after the first was dropped",
    );
    assert_eq!(
        subject.world.names(&subject.world.root()),
        [] as [&str; 0],
        "a lock is no file"
    );
}

pub(super) async fn what_is_there_is_observed_and_stored(subject: Subject) {
    let large = vec![9; 400 * 1024];
    for (path, what) in [
        ("file", file(b"f")),
        ("run", executable(b"r")),
        ("link", symlink("nowhere")),
        ("dir/inside", file(b"i")),
        ("large", file(&large)),
    ] {
        subject.world.put(&subject.at(path), what);
    }
    let before = subject.snapshot(&subject.world.root());
    let paths = [
        "dir",
        "missing",
        "file",
        "file/below",
        "run",
        "dir/inside",
        "link",
        "large",
        "dir/missing/deep",
        "file",
    ];
    let paths: Vec<RelPath> = paths.into_iter().map(rel).collect();
    let root = subject.root().await;
    let found = subject.targets.observe(root.clone(), paths).await;
    assert_eq!(
        done(found, "observing"),
        [
            Some(Entry::new(Kind::Directory, tree::empty())),
            None,
            Some(entry(Kind::File, b"f")),
            None,
            Some(entry(Kind::Executable, b"r")),
            Some(entry(Kind::File, b"i")),
            Some(entry(Kind::Symlink, b"nowhere")),
            Some(entry(Kind::File, &large)),
            None,
            Some(entry(Kind::File, b"f")),
        ]
    );
    for bytes in [&b"f"[..], b"r", b"i", b"nowhere", &large] {
        let stored = subject.objects.get(Hash::of(bytes)).await;
        assert!(done(stored, "content that was observed") == bytes);
    }
    assert_eq!(subject.snapshot(&subject.world.root()), before);
    subject.world.put(&subject.at("pipe"), What::Special);
    refused(
        subject.targets.observe(root, vec![rel("pipe")]).await,
        Code::UnsupportedEntry,
        Disposition::Permanent,
        "observing a special file",
    );
}

pub(super) async fn nothing_is_observed_through_a_symlink(subject: Subject) {
    let outside = subject.world.base().join("outside");
    subject.world.put(&outside.join("secret"), file(b"secret"));
    subject.write("real/file", b"f");
    let target = outside.to_str().expect("UTF-8");
    subject.world.put(&subject.at("out"), symlink(target));
    subject.world.put(&subject.at("in"), symlink("real"));
    let paths = ["out/secret", "in/file"].into_iter().map(rel).collect();
    let found = subject.targets.observe(subject.root().await, paths).await;
    assert_eq!(done(found, "observing"), [None, None]);
    let stored = subject.objects.get(Hash::of(b"secret")).await;
    assert!(stored.is_err(), "what lies outside is never read");
}

pub(super) async fn a_preflight_names_every_problem_and_writes_nothing(subject: Subject) {
    for path in ["there", "type", "mode"] {
        subject.write(path, b"x");
    }
    subject.world.put(&subject.at("link"), symlink("there"));
    store(&subject, b"new").await;
    let new = entry(Kind::File, b"new");
    let old = entry(Kind::File, b"x");
    let ops = vec![
        PathOp::Create {
            path: rel("there"),
            new,
        },
        PathOp::Create {
            path: rel("no/such/dir"),
            new,
        },
        PathOp::Create {
            path: rel("link/below"),
            new,
        },
        replace("missing-replace", file(b"x"), new),
        replace("type", symlink("x"), new),
        PathOp::Remove {
            path: rel("missing-remove"),
            old,
        },
        PathOp::MakeDir { path: rel("mode") },
    ];
    let before = subject.snapshot(&subject.world.base());
    let root = subject.root().await;
    let result = subject.targets.preflight(root, None, ops.clone()).await;
    let error = result.expect_err("these operations cannot be done");
    assert_eq!(error.code, Code::Drift, "{error}");
    for op in &ops {
        let path = op.path().as_str();
        let named = error.subjects.iter().any(|text| text.contains(path));
        assert!(named, "{path} must be named: {:?}", error.subjects);
    }
    assert_eq!(error.subjects.len(), ops.len(), "{:?}", error.subjects);
    let after = subject.snapshot(&subject.world.base());
    assert_eq!(after, before, "a preflight writes nothing");
}

pub(super) async fn a_preflight_knows_what_the_job_itself_changes(subject: Subject) {
    subject.write("file", b"f");
    subject.write("dir/x", b"x");
    store(&subject, b"new").await;
    let new = entry(Kind::File, b"new");
    let ops = vec![
        PathOp::Remove {
            path: rel("file"),
            old: entry(Kind::File, b"f"),
        },
        PathOp::Remove {
            path: rel("dir/x"),
            old: entry(Kind::File, b"x"),
        },
        PathOp::RemoveDir { path: rel("dir") },
        PathOp::MakeDir { path: rel("file") },
        PathOp::MakeDir { path: rel("a") },
        PathOp::MakeDir { path: rel("a/b") },
        PathOp::Create {
            path: rel("a/b/c"),
            new,
        },
        PathOp::Create {
            path: rel("dir"),
            new,
        },
        PathOp::Create {
            path: rel("file/below"),
            new,
        },
    ];
    let place = subject
        .targets
        .preflight(subject.root().await, None, ops)
        .await;
    let place = done(place, "a preflight of a job that makes its own way");
    assert!(place.dir.is_absolute());
}

pub(super) async fn a_root_that_leads_elsewhere_is_refused(subject: Subject) {
    subject.write("file", b"old");
    store(&subject, b"new").await;
    let new = entry(Kind::File, b"new");
    let job = job(&subject, "job", vec![replace("file", file(b"old"), new)]).await;
    staged(&subject, &job).await;
    // The directory is moved away, and another takes its path.
    let root = subject.world.root();
    let other = subject.world.base().join("other");
    subject.world.put(&other.join("file"), file(b"old"));
    let mut wrong = job.clone();
    wrong.root.path = other.clone();
    let (code, how) = (Code::SandboxGone, Disposition::Permanent);
    refused(
        subject.targets.execute(wrong.clone()).await,
        code,
        how,
        "executing on another directory",
    );
    refused(
        subject.targets.undo(wrong.clone()).await,
        code,
        how,
        "undoing on another directory",
    );
    let observed = subject
        .targets
        .observe(wrong.root.clone(), vec![rel("file")]);
    refused(observed.await, code, how, "observing another directory");
    let locked = subject.targets.lock(wrong.root).await.map(|_| ());
    refused(locked, code, how, "locking another directory");
    for dir in [root, other] {
        let there = subject.world.get(&dir.join("file"));
        assert_eq!(there, Some(file(b"old")), "nothing was written");
    }
}
