//! The contract of [`Targets`](sandbar_ports::target::Targets).

mod execute;
mod kept;
mod look;
mod order;
mod races;
mod undo;

use std::path::PathBuf;
use std::sync::Arc;

use sandbar_domain::apply::PathOp;
use sandbar_domain::{Entry, Kind};
use sandbar_ports::target::{Executed, Job};
use sandbar_ports::{Cancel, Silent};

use super::files::{Subject, What, entry, executable, file, rel, symlink};
use super::{cases, done};

cases! {
    Subject;
    look::a_root_has_one_lock,
    look::what_is_there_is_observed_and_stored,
    look::nothing_is_observed_through_a_symlink,
    look::a_preflight_names_every_problem_and_writes_nothing,
    look::a_preflight_knows_what_the_job_itself_changes,
    look::a_root_that_leads_elsewhere_is_refused,
    execute::staging_leaves_the_root_alone,
    execute::every_kind_of_operation_is_done,
    execute::doing_it_again_changes_nothing,
    execute::displaced_bytes_are_kept,
    execute::a_job_that_is_over_does_not_touch_later_changes,
    execute::a_directory_turns_into_a_file_and_back,
    execute::a_cancelled_stage_leaves_the_root_alone,
    kept::what_is_kept_is_listed_read_and_copied,
    kept::nothing_is_overwritten_and_what_is_gone_is_said,
    undo::undoing_brings_everything_back,
    undo::undoing_again_changes_nothing,
    undo::what_was_changed_since_stays,
    undo::an_undo_that_got_stuck_goes_on_later,
    undo::a_swept_job_leaves_nothing,
    races::a_change_after_staging_wins,
    races::what_was_done_before_a_race_can_be_undone,
    races::a_directory_with_files_of_others_stays,
    races::the_same_change_by_others_is_no_race,
    order::calls_out_of_order_are_refused,
    order::a_second_stage_begins_anew,
}

/// Puts the displaced file or symlink in the real root and content of the new
/// one into the store.
async fn store(subject: &Subject, bytes: &[u8]) {
    done(subject.objects.put(vec![bytes.to_vec()]).await, "storing");
}

/// A job with one operation of each kind, on a root filled for it.
async fn every_kind(subject: &Subject) -> Job {
    for (path, what) in [
        ("replace", file(b"old")),
        ("replace-type", symlink("old")),
        ("mode", file(b"mode")),
        ("remove", file(b"gone")),
        ("remove-link", symlink("gone")),
        ("dir/a", file(b"a")),
        ("bystander", file(b"untouched")),
    ] {
        subject.world.put(&subject.at(path), what);
    }
    for bytes in [&b"new"[..], b"created", b"target", b"mode"] {
        store(subject, bytes).await;
    }
    let ops = vec![
        PathOp::Remove {
            path: rel("remove"),
            old: entry(Kind::File, b"gone"),
        },
        PathOp::Remove {
            path: rel("remove-link"),
            old: entry(Kind::Symlink, b"gone"),
        },
        PathOp::Remove {
            path: rel("dir/a"),
            old: entry(Kind::File, b"a"),
        },
        PathOp::RemoveDir { path: rel("dir") },
        PathOp::MakeDir { path: rel("made") },
        PathOp::MakeDir {
            path: rel("made/below"),
        },
        PathOp::Create {
            path: rel("made/below/file"),
            new: entry(Kind::Executable, b"created"),
        },
        PathOp::Create {
            path: rel("made/link"),
            new: entry(Kind::Symlink, b"target"),
        },
        replace("replace", file(b"old"), entry(Kind::File, b"new")),
        replace("replace-type", symlink("old"), entry(Kind::File, b"new")),
        PathOp::SetMode {
            path: rel("mode"),
            old: entry(Kind::File, b"mode"),
            new: entry(Kind::Executable, b"mode"),
        },
    ];
    job(subject, "every-kind", ops).await
}

/// What the root of [`every_kind`] holds afterwards.
fn after(subject: &Subject) -> Vec<(PathBuf, What)> {
    let mut all: Vec<(PathBuf, What)> = [
        ("", What::Directory),
        ("bystander", file(b"untouched")),
        ("made", What::Directory),
        ("made/below", What::Directory),
        ("made/below/file", executable(b"created")),
        ("made/link", symlink("target")),
        ("mode", executable(b"mode")),
        ("replace", file(b"new")),
        ("replace-type", file(b"new")),
    ]
    .into_iter()
    .map(|(path, what)| (subject.world.root().join(path), what))
    .collect();
    all.sort_by(|a, b| a.0.cmp(&b.0));
    all
}

fn replace(path: &str, old: What, new: Entry) -> PathOp {
    PathOp::Replace {
        path: rel(path),
        old: old.entry().expect("it can be carried"),
        new,
    }
}

/// Makes a job below the place that a preflight chooses.
async fn job(subject: &Subject, name: &str, ops: Vec<PathOp>) -> Job {
    let root = subject.root().await;
    let place = subject
        .targets
        .preflight(root.clone(), None, ops.clone())
        .await;
    Job {
        root,
        dir: done(place, "a preflight").dir.join(name),
        ops,
        sources: Default::default(),
        progress: Arc::new(Silent),
        cancel: Cancel::new(),
    }
}

async fn staged(subject: &Subject, job: &Job) {
    done(subject.targets.stage(job.clone()).await, "staging");
}

async fn executed(subject: &Subject, job: &Job) -> Executed {
    done(subject.targets.execute(job.clone()).await, "executing")
}

/// Expects that all was done.
#[track_caller]
fn whole(executed: &Executed, job: &Job) {
    let Executed {
        done,
        raced,
        failed,
        left,
        in_place: _,
    } = executed;
    assert_eq!(raced, &[], "nothing raced");
    assert_eq!(failed, &[], "nothing failed");
    assert_eq!(left, &[], "nothing is left");
    let mut done = done.clone();
    done.sort();
    let mut paths: Vec<_> = job.ops.iter().map(|op| op.path().clone()).collect();
    paths.sort();
    assert_eq!(done, paths, "every path is done");
}
