//! Every step of a job killed before and after each of its effects, then made
//! again or taken back (APL-9). Judged by `find` and `sha256sum`.
#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "tests start probes and judge by plain means"
)]

mod support;

use std::path::PathBuf;
use std::process::Command;

use sandbar_domain::apply::{PathOp, encode_ops};
use sandbar_ports::target::Targets;
use support::{Place, shell, six_kinds, wait};

/// Names the step and the place, in a process that is to be killed.
const STEP: &str = "SANDBAR_PROBE_STEP";
const PLACE: &str = "SANDBAR_PROBE_PLACE";

/// All steps of one job in one process; with [`STEP`] set, the one step that a
/// harness below kills.
#[test]
fn one_job_from_stage_to_settle() {
    if let Ok(step) = std::env::var(STEP) {
        return one_step(&step, &PathBuf::from(std::env::var_os(PLACE).unwrap()));
    }
    let s = setting();
    let (targets, job) = (s.place.targets(), || s.place.job(&s.ops));
    wait(targets.stage(job())).unwrap();
    assert_eq!(s.place.digest("root"), s.old);
    for _ in 0..2 {
        s.execute();
        s.undo();
    }
    s.sweep();
    wait(targets.stage(job())).unwrap();
    s.execute();
    s.settle();
    assert_eq!(s.place.digest("root"), s.new);
    assert!(wait(targets.undo(job())).is_err(), "a settled job is over");
    assert!(wait(targets.stage(job())).is_err(), "a job is staged once");
}

fn one_step(step: &str, place: &std::path::Path) {
    let (targets, job) = support::reopen(place);
    wait(async {
        match step {
            "stage" => targets.stage(job).await.unwrap(),
            "execute" => drop(targets.execute(job).await.unwrap()),
            "undo" => drop(targets.undo(job).await.unwrap()),
            "settle" => drop(targets.settle(job).await.unwrap()),
            "sweep" => targets.sweep(job).await.unwrap(),
            other => panic!("no step {other}"),
        }
    });
}

/// Runs one step in a process; returns whether it was killed.
fn run(place: &Place, step: &str, crash_at: Option<(u64, &str)>) -> bool {
    use std::os::unix::process::ExitStatusExt as _;
    let mut command = Command::new(std::env::current_exe().unwrap());
    command
        .args(["--exact", "one_job_from_stage_to_settle", "--nocapture"])
        .env(STEP, step)
        .env(PLACE, place.temp.path());
    if let Some((number, side)) = crash_at {
        command.env("SANDBAR_CRASH_AT", format!("{number}:{side}"));
    }
    let out = command.output().unwrap();
    match out.status.signal() {
        Some(9) => true,
        _ => {
            let errors = String::from_utf8_lossy(&out.stderr).into_owned();
            assert!(out.status.success(), "{step}: {errors}");
            false
        }
    }
}

struct Setting {
    place: Place,
    ops: Vec<PathOp>,
    old: String,
    new: String,
    /// Digests of the bytes that the job displaces, sorted.
    displaced: String,
}

fn setting() -> Setting {
    let place = Place::new();
    six_kinds(&place);
    shell(place.temp.path(), "cp -a root base");
    let ops = place.ops();
    std::fs::write(place.path("ops"), encode_ops(&ops)).unwrap();
    let kinds: std::collections::HashSet<_> = ops.iter().map(std::mem::discriminant).collect();
    assert_eq!(kinds.len(), 6, "all kinds of operation");
    let (old, new) = (place.digest("root"), place.digest("want"));
    assert_ne!(old, new);
    let displaced = shell(
        &place.path("base"),
        "cat replaced gone/deep/x gone/y becomes-dir becomes-file/in/z becomes-link >/dev/null; \
         for f in replaced gone/deep/x gone/y becomes-dir becomes-file/in/z becomes-link; \
         do sha256sum < $f; done | LC_ALL=C sort",
    );
    Setting {
        place,
        ops,
        old,
        new,
        displaced,
    }
}

impl Setting {
    fn execute(&self) {
        let done = wait(self.place.targets().execute(self.place.job(&self.ops))).unwrap();
        assert_eq!(done.done.len(), self.ops.len(), "{done:?}");
        assert_eq!(self.place.digest("root"), self.new);
    }

    fn undo(&self) {
        let undone = wait(self.place.targets().undo(self.place.job(&self.ops))).unwrap();
        assert!(undone.raced.is_empty(), "{undone:?}");
        assert!(undone.failed.is_empty(), "{undone:?}");
        assert!(undone.left.is_empty(), "{undone:?}");
        assert_eq!(self.place.digest("root"), self.old);
    }

    fn sweep(&self) {
        wait(self.place.targets().sweep(self.place.job(&self.ops))).unwrap();
        assert_eq!(shell(&self.place.path("data"), "find . -path '*job*'"), "");
    }

    fn settle(&self) {
        let kept = wait(self.place.targets().settle(self.place.job(&self.ops))).unwrap();
        for kept in &kept {
            assert_eq!(kept.hash, kept.entry.hash, "{kept:?}");
        }
        let job = self.place.path("data").join("kept/job");
        let files = shell(
            &job,
            "find . -type f | while read f; do sha256sum < $f; done | LC_ALL=C sort",
        );
        assert_eq!(files, self.displaced);
        let names = shell(&job, "find . -mindepth 1 -maxdepth 1");
        assert_eq!(names, "./kept\n");
        // One symlink was displaced beside the files.
        assert_eq!(kept.len(), files.lines().count() + 1);
    }

    /// Kills `step` at each effect in turn, in the state that `before` makes,
    /// and calls `after`. Returns the number of effects.
    fn every_point(&self, step: &str, before: &dyn Fn(), after: &dyn Fn()) -> u64 {
        for number in 1.. {
            for side in ["before", "after"] {
                self.place.reset("base");
                before();
                if !run(&self.place, step, Some((number, side))) {
                    return number - 1;
                }
                after();
            }
        }
        unreachable!("a step has an end")
    }
}

#[test]
fn execute_killed_anywhere_goes_forward_or_back() {
    let s = setting();
    let stage = || assert!(!run(&s.place, "stage", None));
    let forward = s.every_point("execute", &stage, &|| {
        s.execute();
        s.execute();
        s.settle();
        s.settle();
        s.execute();
    });
    let back = s.every_point("execute", &stage, &|| {
        s.undo();
        s.undo();
        s.sweep();
        s.sweep();
    });
    assert_eq!(forward, back);
    println!("execute: {forward} effects, {} kills", 4 * forward);
    assert_eq!(forward, 34, "a new effect is a new point to think about");
}

#[test]
fn undo_killed_anywhere_is_completed() {
    let s = setting();
    let executed = || {
        run(&s.place, "stage", None);
        run(&s.place, "execute", None);
    };
    let effects = s.every_point("undo", &executed, &|| {
        s.undo();
        s.sweep();
        s.undo();
    });
    println!("undo: {effects} effects, {} kills", 2 * effects);
    assert_eq!(effects, 32);
}

#[test]
fn stage_killed_anywhere_leaves_the_root_alone_and_is_swept() {
    let s = setting();
    let effects = s.every_point("stage", &|| {}, &|| {
        assert_eq!(s.place.digest("root"), s.old);
        s.undo();
        s.sweep();
        // A job that was swept can be staged again.
        assert!(!run(&s.place, "stage", None));
        s.execute();
    });
    println!("stage: {effects} effects, {} kills", 2 * effects);
    assert_eq!(effects, 51);
}

#[test]
fn settle_and_sweep_killed_anywhere_are_completed() {
    let s = setting();
    let executed = || {
        run(&s.place, "stage", None);
        run(&s.place, "execute", None);
    };
    let settle = s.every_point("settle", &executed, &|| {
        // Recovery rolls a decided job forward first.
        s.execute();
        s.settle();
    });
    let undone = || {
        executed();
        run(&s.place, "undo", None);
    };
    let sweep = s.every_point("sweep", &undone, &|| {
        s.undo();
        s.sweep();
    });
    println!("settle: {settle} effects; sweep: {sweep} effects");
    assert_eq!((settle, sweep), (18, 19));
}
