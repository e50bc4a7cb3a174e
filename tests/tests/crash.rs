//! Apply is killed before and after each of its numbered effects; what is
//! left, and what recovery makes of it, is judged by foreign tools.
//!
//! After a kill each file is wholly old or wholly new. After one `recover`
//! the tree is all old or all new, the plan says which, and nothing that was
//! displaced is lost. A second `recover` changes nothing.
#![allow(
    clippy::disallowed_methods,
    reason = "tests inspect real trees with foreign means"
)]

use std::collections::BTreeMap;
use std::path::Path;

use sandbar_tests::harness::count::Count;
use sandbar_tests::harness::scene::{Scene, scenarios};
use sandbar_tests::product::Done;
use sandbar_tests::trace;

/// How many effects the apply of this scene has from its preflight on. A change
/// here is a change of what apply does to the disk: look at it before taking
/// the new number. The scan before it varies: what is younger than the clock's
/// grain is read again.
const EFFECTS: usize = 75;

/// More than the scan ever has.
const SCAN: usize = 40;

/// Kills apply around one effect; says whether there was such an effect.
fn kill(scene: &Scene, number: usize, side: &str) -> bool {
    let point = format!("{number}:{side}");
    let done = Done::of(scene.apply().env("SANDBAR_CRASH_AT", point));
    match done.code {
        None => true,
        Some(0) => false,
        Some(_) => panic!("{}{}", done.stdout, done.stderr),
    }
}

fn names(log: &Path) -> Vec<String> {
    let text = std::fs::read_to_string(log).unwrap_or_default();
    text.lines()
        .map(|line| line.split_once(' ').expect("number and name").1.to_owned())
        .collect()
}

/// Every fourth effect, from `first`: four tests share the work.
fn quarter(first: usize) {
    let mut count = Count::new("crash", format!("apply-{first}"));
    for scenario in 0..scenarios() {
        every_fourth(&mut count, scenario, first);
    }
    // Two sides of a quarter of them.
    count.finish(EFFECTS as u64 / 2);
}

fn every_fourth(count: &mut Count, scenario: usize, first: usize) {
    // Only the first scenario is pinned.
    let most = if scenario == 0 { SCAN + EFFECTS } else { 2_000 };
    let mut scene = Scene::numbered(scenario);
    for number in (first..=most).step_by(4) {
        for side in ["before", "after"] {
            let at = format!("killed {side} effect {number}");
            let reached = kill(&scene, number, side);
            if reached {
                count.point();
            }
            count.found(&at, scene.half_way());
            let (state, bad) = scene.recovered();
            let fresh = state == "applied" || !bad.is_empty();
            count.found(&at, bad);
            if !reached {
                return;
            }
            // What is all old again is good for the next kill.
            if fresh {
                scene = Scene::numbered(scenario);
            } else if number % 16 == first {
                count.found(&at, scene.applied_again());
                scene = Scene::numbered(scenario);
            }
        }
    }
    panic!("apply has more than {most} effects");
}

// conformance: APL-9 partial: kills of apply on one file system; power loss
#[test]
fn killed_at_effects_1_5_9() {
    quarter(1);
}

// conformance: APL-9 partial: kills of apply on one file system; power loss
#[test]
fn killed_at_effects_2_6_10() {
    quarter(2);
}

// conformance: APL-9 partial: kills of apply on one file system; power loss
#[test]
fn killed_at_effects_3_7_11() {
    quarter(3);
}

// conformance: APL-9 partial: kills of apply on one file system; power loss
#[test]
fn killed_at_effects_4_8_12() {
    quarter(4);
}

// conformance: APL-9 (pinned) partial: kills of apply on one file system; power loss
#[test]
fn the_effects_are_counted_and_strace_agrees() {
    let scene = Scene::new();
    let log = scene.repo.scratch().join("effects");
    let mut apply = scene.apply();
    apply.env("SANDBAR_EFFECT_LOG", &log);
    let (done, calls) = trace::mutating(&apply, &scene.repo.scratch().join("trace"));
    drop(done.expect(0));
    let names = names(&log);
    let scan = names
        .iter()
        .take_while(|name| *name != "probe-mount")
        .count();
    assert!(scan <= SCAN, "{}", names.join(" "));
    assert_eq!(names.len() - scan, EFFECTS, "{}", names.join(" "));

    // The store's own files are written inside its commits, each one effect.
    // What is printed is no effect.
    let ours = |call: &trace::Call| {
        let inside = call.concerns(scene.world.path()) || call.concerns(scene.repo.scratch());
        let foreign = ["/sandbar.db", "/effects", "<pipe:"]
            .iter()
            .any(|word| call.arguments.contains(word));
        inside && !foreign
    };
    let mut witnessed: BTreeMap<&str, usize> = BTreeMap::new();
    for call in calls.iter().filter(|call| ours(call)) {
        *witnessed.entry(kind_of_call(call)).or_default() += 1;
    }
    // SQLite syncs its directory once, when it makes its log.
    *witnessed.entry("fsync").or_default() -= 1;
    let mut counted: BTreeMap<&str, usize> = BTreeMap::new();
    for name in &names {
        *counted.entry(kind_of_effect(name)).or_default() += 1;
    }
    counted.remove("store");
    assert_eq!(witnessed, counted);
}

/// Names the kind of a system call, in the words of [`kind_of_effect`].
fn kind_of_call(call: &trace::Call) -> &'static str {
    match call.name.as_str() {
        "rename" | "renameat" | "renameat2" => "rename",
        "unlinkat" if call.arguments.contains("AT_REMOVEDIR") => "rmdir",
        "unlink" | "unlinkat" => "unlink",
        "mkdir" | "mkdirat" => "mkdir",
        "symlink" | "symlinkat" => "symlink",
        "link" | "linkat" => "link",
        "fsync" | "fdatasync" => "fsync",
        "utimensat" => "set-times",
        "write" | "pwrite64" | "writev" | "pwritev" => "write",
        "chmod" | "fchmod" | "fchmodat" | "fchmodat2" => "chmod",
        "open" | "openat" | "openat2" | "creat" => "create-file",
        _ => "other",
    }
}

/// Names the kind of an effect.
fn kind_of_effect(name: &str) -> &'static str {
    match name {
        "rename" | "rename-exchange" | "rename-noreplace" | "probe-mount" => "rename",
        "fsync-file" | "fsync-dir" => "fsync",
        "write" | "write-at" => "write",
        "create-file" | "open-append" => "create-file",
        "store-commit" => "store",
        "rmdir" => "rmdir",
        "unlink" => "unlink",
        "mkdir" => "mkdir",
        "symlink" => "symlink",
        "link" => "link",
        "set-times" => "set-times",
        "chmod" => "chmod",
        _ => "other",
    }
}
