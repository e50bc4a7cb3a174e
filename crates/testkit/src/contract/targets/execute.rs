//! Staging and executing.

use sandbar_domain::apply::PathOp;
use sandbar_domain::{Code, Disposition, Hash, Kind};

use super::{after, every_kind, executed, job, replace, staged, store, whole};
use crate::contract::files::{Subject, What, entry, file, rel};
use crate::contract::{done, refused};

pub(super) async fn staging_leaves_the_root_alone(subject: Subject) {
    let job = every_kind(&subject).await;
    let root = subject.world.root();
    let before = subject.snapshot(&root);
    let stamps = || {
        let all = subject.snapshot(&root);
        let stamp = |(path, _): (_, _)| subject.world.stamp(std::path::PathBuf::as_path(&path));
        all.into_iter().map(stamp).collect::<Vec<_>>()
    };
    let old = stamps();
    staged(&subject, &job).await;
    assert_eq!(subject.snapshot(&root), before);
    assert_eq!(stamps(), old, "no inode, no time has changed");
}

pub(super) async fn every_kind_of_operation_is_done(subject: Subject) {
    let job = every_kind(&subject).await;
    staged(&subject, &job).await;
    whole(&executed(&subject, &job).await, &job);
    assert_eq!(subject.snapshot(&subject.world.root()), after(&subject));
}

pub(super) async fn doing_it_again_changes_nothing(subject: Subject) {
    let job = every_kind(&subject).await;
    staged(&subject, &job).await;
    for _ in 0..3 {
        whole(&executed(&subject, &job).await, &job);
        assert_eq!(subject.snapshot(&subject.world.root()), after(&subject));
    }
    let kept = done(subject.targets.settle(job.clone()).await, "settling");
    let again = done(subject.targets.settle(job).await, "settling again");
    assert_eq!(again, kept, "settling again returns the same");
    assert_eq!(subject.snapshot(&subject.world.root()), after(&subject));
}

pub(super) async fn displaced_bytes_are_kept(subject: Subject) {
    let job = every_kind(&subject).await;
    staged(&subject, &job).await;
    executed(&subject, &job).await;
    let mut kept = done(subject.targets.settle(job.clone()).await, "settling");
    kept.sort_by(|a, b| a.path.cmp(&b.path));
    let expected = [
        ("dir/a", entry(Kind::File, b"a")),
        ("remove", entry(Kind::File, b"gone")),
        ("remove-link", entry(Kind::Symlink, b"gone")),
        ("replace", entry(Kind::File, b"old")),
        ("replace-type", entry(Kind::Symlink, b"old")),
    ];
    let found: Vec<_> = kept.iter().map(|k| (k.path.as_str(), k.entry)).collect();
    assert_eq!(found, expected, "each displaced file and symlink is kept");
    for kept in &kept {
        assert_eq!(kept.hash, kept.entry.hash, "{}", kept.path);
        assert!(!kept.at.starts_with(subject.world.root()));
        let there = subject.world.get(&kept.at).expect("it is where it says");
        assert_eq!(there.entry(), Some(kept.entry), "{}", kept.path);
    }
    // Nothing but the kept bytes is left of the job, and how modes were.
    let mode = |what: &What| matches!(what, What::Symlink(text) if text.starts_with(b"mode "));
    let files = subject.snapshot(&job.dir);
    let files = files
        .iter()
        .filter(|(_, what)| what.content().is_some() && !mode(what));
    assert_eq!(files.count(), kept.len());
    // A job that displaced nothing leaves nothing.
    let made = PathOp::MakeDir { path: rel("fresh") };
    let job = super::job(&subject, "second", vec![made]).await;
    staged(&subject, &job).await;
    executed(&subject, &job).await;
    let kept = done(subject.targets.settle(job.clone()).await, "settling");
    assert_eq!(kept, []);
    assert_eq!(subject.world.get(&job.dir), None);
}

pub(super) async fn a_job_that_is_over_does_not_touch_later_changes(subject: Subject) {
    let job = every_kind(&subject).await;
    staged(&subject, &job).await;
    executed(&subject, &job).await;
    done(subject.targets.settle(job.clone()).await, "settling");
    subject.write("replace", b"edited since");
    subject.write("remove", b"made since");
    subject.world.remove(&subject.at("made"));
    let edited = subject.snapshot(&subject.world.root());
    whole(&executed(&subject, &job).await, &job);
    done(subject.targets.settle(job.clone()).await, "settling again");
    assert_eq!(subject.snapshot(&subject.world.root()), edited);
    refused(
        subject.targets.undo(job).await,
        Code::IllegalState,
        Disposition::Conflict,
        "undoing a settled job",
    );
    assert_eq!(subject.snapshot(&subject.world.root()), edited);
}

pub(super) async fn a_directory_turns_into_a_file_and_back(subject: Subject) {
    subject.write("x/deep/file", b"f");
    store(&subject, b"new").await;
    store(&subject, b"f").await;
    let root = subject.world.root();
    let before = subject.snapshot(&root);
    let into_file = vec![
        PathOp::Remove {
            path: rel("x/deep/file"),
            old: entry(Kind::File, b"f"),
        },
        PathOp::RemoveDir {
            path: rel("x/deep"),
        },
        PathOp::RemoveDir { path: rel("x") },
        PathOp::Create {
            path: rel("x"),
            new: entry(Kind::File, b"new"),
        },
    ];
    let first = job(&subject, "first", into_file).await;
    staged(&subject, &first).await;
    whole(&executed(&subject, &first).await, &first);
    assert_eq!(subject.world.get(&subject.at("x")), Some(file(b"new")));
    whole(&executed(&subject, &first).await, &first);
    done(subject.targets.settle(first).await, "settling");
    let into_directory = vec![
        PathOp::Remove {
            path: rel("x"),
            old: entry(Kind::File, b"new"),
        },
        PathOp::MakeDir { path: rel("x") },
        PathOp::MakeDir {
            path: rel("x/deep"),
        },
        PathOp::Create {
            path: rel("x/deep/file"),
            new: entry(Kind::File, b"f"),
        },
    ];
    let second = job(&subject, "second", into_directory).await;
    staged(&subject, &second).await;
    for _ in 0..2 {
        whole(&executed(&subject, &second).await, &second);
        assert_eq!(subject.snapshot(&root), before);
    }
    let taken = done(subject.targets.undo(second.clone()).await, "undoing");
    assert_eq!((taken.raced.len(), taken.failed.len()), (0, 0), "{taken:?}");
    assert_eq!(subject.world.get(&subject.at("x")), Some(file(b"new")));
}

pub(super) async fn a_cancelled_stage_leaves_the_root_alone(subject: Subject) {
    subject.write("file", b"old");
    store(&subject, b"new").await;
    let ops = vec![replace("file", file(b"old"), entry(Kind::File, b"new"))];
    let job = job(&subject, "job", ops).await;
    let before = subject.snapshot(&subject.world.root());
    job.cancel.cancel();
    refused(
        subject.targets.stage(job.clone()).await,
        Code::Interrupted,
        Disposition::Retryable,
        "a cancelled stage",
    );
    assert_eq!(subject.snapshot(&subject.world.root()), before);
    done(subject.targets.sweep(job.clone()).await, "sweeping");
    assert_eq!(subject.world.get(&job.dir), None, "nothing is left of it");
    // After staging the flag is looked at no more.
    let mut job = job;
    job.cancel = sandbar_ports::Cancel::new();
    staged(&subject, &job).await;
    job.cancel.cancel();
    whole(&executed(&subject, &job).await, &job);
    assert_eq!(subject.world.get(&subject.at("file")), Some(file(b"new")));
    let stored = subject.objects.get(Hash::of(b"new")).await;
    done(stored, "the object stays in the store");
}
