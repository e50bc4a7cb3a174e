//! Undoing and sweeping.

use super::{every_kind, executed, staged};
use crate::contract::done;
use crate::contract::files::{Subject, file, rel, symlink};

pub(super) async fn undoing_brings_everything_back(subject: Subject) {
    let job = every_kind(&subject).await;
    let before = subject.snapshot(&subject.world.root());
    staged(&subject, &job).await;
    executed(&subject, &job).await;
    let undone = done(subject.targets.undo(job.clone()).await, "undoing");
    assert_eq!((&undone.raced[..], &undone.failed[..]), (&[][..], &[][..]));
    assert_eq!(subject.snapshot(&subject.world.root()), before);
    done(subject.targets.sweep(job.clone()).await, "sweeping");
    assert_eq!(subject.world.get(&job.dir), None, "nothing is left of it");
}

pub(super) async fn undoing_again_changes_nothing(subject: Subject) {
    let job = every_kind(&subject).await;
    let before = subject.snapshot(&subject.world.root());
    staged(&subject, &job).await;
    // Undone before it was executed: nothing to do.
    done(subject.targets.undo(job.clone()).await, "undoing");
    assert_eq!(subject.snapshot(&subject.world.root()), before);
    executed(&subject, &job).await;
    for _ in 0..3 {
        done(subject.targets.undo(job.clone()).await, "undoing");
        assert_eq!(subject.snapshot(&subject.world.root()), before);
    }
    for _ in 0..2 {
        done(subject.targets.sweep(job.clone()).await, "sweeping");
        done(subject.targets.undo(job.clone()).await, "undoing");
        assert_eq!(subject.snapshot(&subject.world.root()), before);
    }
}

pub(super) async fn what_was_changed_since_stays(subject: Subject) {
    let job = every_kind(&subject).await;
    staged(&subject, &job).await;
    executed(&subject, &job).await;
    subject.write("replace", b"theirs");
    subject.write("made/below/file", b"theirs");
    subject.write("remove", b"theirs");
    subject.write("made/more", b"theirs");
    let undone = done(subject.targets.undo(job.clone()).await, "undoing");
    let mut raced = undone.raced.clone();
    raced.sort();
    let expected = ["made/below/file", "remove", "replace"].map(rel);
    assert_eq!(raced, expected, "what others changed is reported");
    let mut left = undone.left.clone();
    left.sort();
    assert_eq!(left, ["made", "made/below"].map(rel), "and where it lies");
    for path in ["replace", "made/below/file", "remove", "made/more"] {
        let there = subject.world.get(&subject.at(path));
        assert_eq!(there, Some(file(b"theirs")), "{path} stays");
    }
    let back = subject.world.get(&subject.at("dir/a"));
    assert_eq!(back, Some(file(b"a")), "the rest is taken back");
    assert_eq!(subject.world.get(&subject.at("made/link")), None);
    // The bytes that could not go back to their place are not lost.
    done(subject.targets.sweep(job.clone()).await, "sweeping");
    let kept = subject.snapshot(&job.dir);
    for bytes in [&b"old"[..], b"gone"] {
        assert!(
            kept.iter().any(|(_, what)| *what == file(bytes)),
            "displaced bytes stay with the job: {kept:?}"
        );
    }
}

pub(super) async fn an_undo_that_got_stuck_goes_on_later(subject: Subject) {
    for (n, sealed) in ["made/below", "made", ""].into_iter().enumerate() {
        let mut job = every_kind(&subject).await;
        job.dir.set_file_name(format!("stuck-{n}"));
        let before = subject.snapshot(&subject.world.root());
        staged(&subject, &job).await;
        executed(&subject, &job).await;
        let sealed = subject.at(sealed);
        subject.world.seal(&sealed, true);
        let mut stuck = None;
        for _ in 0..2 {
            let undone = done(subject.targets.undo(job.clone()).await, "undoing");
            assert_ne!(undone.failed, [], "what could not go back is reported");
            let now = (
                subject.snapshot(&subject.world.root()),
                subject.snapshot(&job.dir),
            );
            for old in [file(b"old"), symlink("old"), file(b"gone"), symlink("gone")] {
                let all = [&now.0, &now.1];
                let whole = all.into_iter().flatten().any(|(_, what)| *what == old);
                assert!(whole, "{old:?} is neither back nor kept: {now:?}");
            }
            let was = stuck.replace(now.clone()).unwrap_or(now);
            assert_eq!(Some(was), stuck, "trying in vain changes nothing");
        }
        subject.world.seal(&sealed, false);
        let undone = done(subject.targets.undo(job.clone()).await, "undoing");
        assert_eq!((&undone.raced[..], &undone.failed[..]), (&[][..], &[][..]));
        assert_eq!(undone.left, []);
        assert_eq!(subject.snapshot(&subject.world.root()), before);
        done(subject.targets.sweep(job.clone()).await, "sweeping");
        assert_eq!(subject.world.get(&job.dir), None, "nothing is left of it");
    }
}

pub(super) async fn a_swept_job_leaves_nothing(subject: Subject) {
    let job = every_kind(&subject).await;
    let before = subject.snapshot(&subject.world.root());
    done(subject.targets.sweep(job.clone()).await, "sweeping nothing");
    staged(&subject, &job).await;
    for _ in 0..2 {
        done(subject.targets.sweep(job.clone()).await, "sweeping");
        assert_eq!(subject.world.get(&job.dir), None, "nothing is left of it");
        assert_eq!(subject.snapshot(&subject.world.root()), before);
    }
}
