//! The program as it is, killed by `strace` at the n-th system call of a kind,
//! for every n that one apply reaches: nothing of the product takes part in
//! choosing the point, and the database's own calls are points too.
//!
//! strace counts in each thread by itself, so that a number may stand for the
//! same call of several threads; the first to reach it is killed.
#![allow(
    clippy::disallowed_methods,
    reason = "tests inspect real trees with foreign means"
)]

use std::process::Command;

use sandbar_tests::harness::count::Count;
use sandbar_tests::harness::scene::{Scene, scenarios};
use sandbar_tests::product::Done;

/// No kind of call is made more often by one thread.
const ENOUGH: usize = 4_000;

/// Prepares a command to be killed on entering the n-th of some calls.
fn killed_at(command: &Command, calls: &str, number: usize) -> Command {
    let mut traced = Command::new("strace");
    traced
        .args(["-f", "-qq", "-o", "/dev/null"])
        .args(["-e", "signal=none", "-e", &format!("trace={calls}")])
        .arg("-e")
        .arg(format!("inject={calls}:signal=KILL:when={number}"))
        .arg("--")
        .arg(command.get_program())
        .args(command.get_args())
        .env_clear();
    for (name, value) in command.get_envs() {
        if let Some(value) = value {
            traced.env(name, value);
        }
    }
    if let Some(dir) = command.get_current_dir() {
        traced.current_dir(dir);
    }
    traced
}

/// Kills at every n; returns how many there were.
fn every(count: &mut Count, scenario: usize, calls: &str) -> usize {
    let mut scene = Scene::numbered(scenario);
    for number in 1..ENOUGH {
        let done = Done::of(&mut killed_at(&scene.apply(), calls, number));
        let at = format!("killed at {calls} {number}");
        match done.code {
            None => count.point(),
            Some(0) => {
                count.found("not killed", scene.verdict(&done));
                return number - 1;
            }
            Some(_) => panic!("{at}: {}{}", done.stdout, done.stderr),
        }
        count.found(&at, scene.half_way());
        let (state, bad) = scene.recovered();
        let fresh = state == "applied" || !bad.is_empty();
        count.found(&at, bad);
        // What is all old again is good for the next kill.
        if fresh {
            scene = Scene::numbered(scenario);
        } else if number % 20 == 0 {
            count.found(&at, scene.applied_again());
            scene = Scene::numbered(scenario);
        }
    }
    panic!("{calls}: more than {ENOUGH} calls");
}

fn harness(part: &str, kinds: &[&str], least: u64) {
    let mut count = Count::new("syscall kill", part);
    for scenario in 0..scenarios() {
        for calls in kinds {
            let reached = every(&mut count, scenario, calls);
            let none = scenario == 0 && reached == 0;
            assert!(!none, "no call of {calls}: nothing was killed");
            count.note(format!("{calls} 1–{reached}"));
        }
    }
    count.finish(least);
}

// conformance: APL-9 (strace) partial: kills of apply on one file system; power loss
#[test]
fn killed_at_every_write() {
    harness("write", &["write", "pwrite64"], 50);
}

// conformance: APL-9 (strace) partial: kills of apply on one file system; power loss
#[test]
fn killed_at_every_name_and_sync() {
    harness(
        "names",
        &[
            "?rename,?renameat,renameat2",
            "unlinkat,?unlink,?rmdir",
            "mkdirat,?mkdir",
            "symlinkat,?symlink",
            "fsync,fdatasync",
            "fchmod,?fchmodat",
        ],
        40,
    );
}
