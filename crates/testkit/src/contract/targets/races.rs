//! Others who write between staging and executing.

use sandbar_domain::Kind;
use sandbar_domain::apply::PathOp;

use super::{every_kind, executed, job, replace, staged, store};
use crate::contract::done;
use crate::contract::files::{Subject, What, entry, executable, file, rel, symlink};

pub(super) async fn a_change_after_staging_wins(subject: Subject) {
    for bytes in [&b"new"[..], b"x"] {
        store(&subject, bytes).await;
    }
    let new = || entry(Kind::File, b"new");
    let x = || entry(Kind::File, b"x");
    let replace = || replace("path", file(b"x"), new());
    let remove = || PathOp::Remove {
        path: rel("path"),
        old: x(),
    };
    let mode = || PathOp::SetMode {
        path: rel("path"),
        old: x(),
        new: entry(Kind::Executable, b"x"),
    };
    let create = || PathOp::Create {
        path: rel("path"),
        new: new(),
    };
    let make_dir = || PathOp::MakeDir { path: rel("path") };
    let theirs = || file(b"theirs");
    // Operation, what was there at staging, what others put there since.
    let rows: Vec<(&str, PathOp, Option<What>, Option<What>)> = vec![
        (
            "replace, other bytes",
            replace(),
            Some(file(b"x")),
            Some(theirs()),
        ),
        (
            "replace, executable",
            replace(),
            Some(file(b"x")),
            Some(executable(b"x")),
        ),
        (
            "replace, symlink",
            replace(),
            Some(file(b"x")),
            Some(symlink("x")),
        ),
        ("replace, gone", replace(), Some(file(b"x")), None),
        (
            "replace, directory",
            replace(),
            Some(file(b"x")),
            Some(What::Directory),
        ),
        (
            "remove, other bytes",
            remove(),
            Some(file(b"x")),
            Some(theirs()),
        ),
        (
            "remove, symlink",
            remove(),
            Some(file(b"x")),
            Some(symlink("x")),
        ),
        (
            "remove, directory",
            remove(),
            Some(file(b"x")),
            Some(What::Directory),
        ),
        (
            "mode, other bytes",
            mode(),
            Some(file(b"x")),
            Some(theirs()),
        ),
        ("mode, gone", mode(), Some(file(b"x")), None),
        (
            "mode, symlink",
            mode(),
            Some(file(b"x")),
            Some(symlink("x")),
        ),
        ("create, file", create(), None, Some(theirs())),
        ("create, symlink", create(), None, Some(symlink("x"))),
        ("create, directory", create(), None, Some(What::Directory)),
        ("make directory, file", make_dir(), None, Some(theirs())),
        (
            "make directory, symlink",
            make_dir(),
            None,
            Some(symlink(".")),
        ),
    ];
    let path = subject.at("path");
    for (n, (what, op, before, since)) in rows.into_iter().enumerate() {
        subject.world.remove(&path);
        if let Some(before) = before {
            subject.world.put(&path, before);
        }
        let job = job(&subject, &format!("race-{n}"), vec![op]).await;
        staged(&subject, &job).await;
        subject.world.remove(&path);
        if let Some(since) = &since {
            subject.world.put(&path, since.clone());
        }
        for round in 0..2 {
            let ended = executed(&subject, &job).await;
            assert_eq!(ended.raced, [rel("path")], "{what}: reported, {round}");
            assert_eq!(ended.done, [], "{what}: not done");
            assert_eq!(subject.world.get(&path), since, "{what}: theirs stays");
        }
        let undone = done(subject.targets.undo(job.clone()).await, "undoing");
        assert_eq!(undone.failed, [], "{what}");
        assert_eq!(subject.world.get(&path), since, "{what}: theirs stays");
        done(subject.targets.sweep(job.clone()).await, "sweeping");
    }
}

pub(super) async fn what_was_done_before_a_race_can_be_undone(subject: Subject) {
    let job = every_kind(&subject).await;
    staged(&subject, &job).await;
    subject.write("replace", b"theirs");
    let before = subject.snapshot(&subject.world.root());
    let ended = executed(&subject, &job).await;
    assert_eq!(ended.raced, [rel("replace")]);
    assert!(
        !ended.done.contains(&rel("mode")),
        "nothing is done after a race"
    );
    assert!(ended.done.contains(&rel("made/below/file")));
    let undone = done(subject.targets.undo(job.clone()).await, "undoing");
    assert_eq!(undone.failed, []);
    assert_eq!(subject.snapshot(&subject.world.root()), before);
    done(subject.targets.sweep(job.clone()).await, "sweeping");
    assert_eq!(subject.world.get(&job.dir), None, "nothing is left of it");
}

pub(super) async fn a_directory_with_files_of_others_stays(subject: Subject) {
    let job = every_kind(&subject).await;
    staged(&subject, &job).await;
    subject.write("dir/theirs", b"theirs");
    for _ in 0..2 {
        let ended = executed(&subject, &job).await;
        assert_eq!(ended.left, [rel("dir")], "the directory is reported");
        assert_eq!((ended.raced, ended.failed), (vec![], vec![]));
        assert_eq!(ended.done.len(), job.ops.len() - 1, "the rest is done");
    }
    let names = subject.world.names(&subject.at("dir"));
    assert_eq!(names, ["theirs"]);
    let undone = done(subject.targets.undo(job.clone()).await, "undoing");
    assert_eq!((undone.raced, undone.failed), (vec![], vec![]));
    let names = subject.world.names(&subject.at("dir"));
    assert_eq!(names, ["a", "theirs"]);
}

pub(super) async fn the_same_change_by_others_is_no_race(subject: Subject) {
    let job = every_kind(&subject).await;
    staged(&subject, &job).await;
    subject.write("replace", b"new");
    subject.world.remove(&subject.at("remove"));
    subject.world.put(&subject.at("mode"), executable(b"mode"));
    subject.world.put(&subject.at("made"), What::Directory);
    super::whole(&executed(&subject, &job).await, &job);
    let root = subject.snapshot(&subject.world.root());
    assert_eq!(root, super::after(&subject), "both meant the same");
}
