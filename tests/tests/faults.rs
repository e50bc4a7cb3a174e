//! Each numbered effect of an apply fails once, goes on failing, or is the
//! last that works; the kernel's answer is each of seven.
//!
//! The apply ends by itself, says what is true, and one recovery without the
//! fault makes the tree all old or all new. A call that was interrupted once
//! is no failure at all.
#![allow(
    clippy::disallowed_methods,
    reason = "tests inspect real trees with foreign means"
)]

use sandbar_tests::harness::count::Count;
use sandbar_tests::harness::scene::{Scene, scenarios};
use sandbar_tests::product::Done;

/// What each effect of an apply of this scene answers at the latest: more
/// effects than it ever has.
const ENOUGH: usize = 1_000;

/// An apply has at least this many effects.
const LEAST: usize = 80;

/// Makes every effect fail in turn; returns how many there were.
fn every_effect(count: &mut Count, scenario: usize, fault: &str, reach: &str) -> usize {
    let mut scene = Scene::numbered(scenario);
    for number in 1..ENOUGH {
        let log = scene.world.path().join("effects");
        let _ = std::fs::remove_file(&log);
        let mut apply = scene.apply();
        apply
            .env("SANDBAR_FAULT", format!("{number}:{fault}{reach}"))
            .env("SANDBAR_EFFECT_LOG", &log);
        let done = Done::of(&mut apply);
        let effects = std::fs::read_to_string(&log).unwrap_or_default();
        let Some(name) = effects.lines().nth(number - 1) else {
            // It came to its end before.
            count.found("no fault", scene.verdict(&done));
            return number - 1;
        };
        count.point();
        let at = format!("{fault}{reach} at effect {name}");
        count.found(&at, scene.verdict(&done));
        // A database makes interrupted calls again itself: this is no answer
        // that it gives.
        let interrupted = fault == "EINTR" && reach.is_empty() && !name.ends_with("store-commit");
        if interrupted && done.code != Some(0) {
            let interrupted = format!("one interrupted call failed it: {}", done.stderr);
            count.found(&at, [interrupted]);
        }
        // The kernel may have dropped the pages: nothing more is to be built on
        // them, and nobody told that all is well.
        if name.contains("sync") && fault != "EINTR" && done.code == Some(0) {
            count.found(&at, ["a failed fsync was passed over".to_owned()]);
        }
        let (state, bad) = scene.recovered();
        let fresh = state == "applied" || !bad.is_empty();
        count.found(&at, bad);
        if !fresh && number % 20 == 0 {
            count.found(&at, scene.applied_again());
        }
        // What is all old again is good for the next fault.
        if fresh || number % 20 == 0 {
            scene = Scene::numbered(scenario);
        }
    }
    panic!("{fault}{reach}: more than {ENOUGH} effects");
}

fn harness(part: &str, faults: &[(&str, &str)]) {
    let mut count = Count::new("faults", part);
    for scenario in 0..scenarios() {
        for (fault, reach) in faults {
            let effects = every_effect(&mut count, scenario, fault, reach);
            let few = scenario == 0 && effects < LEAST;
            assert!(!few, "{fault}{reach}: only {effects} effects");
        }
    }
    count.note(format!("{} faults at every effect of apply", faults.len()));
    count.finish((LEAST * faults.len()) as u64);
}

// conformance: APL-9 partial: faults of apply on one file system; power loss
#[test]
fn input_and_output_errors() {
    harness(
        "eio",
        &[
            ("EIO", ""),
            ("EIO", ":persistent"),
            ("EIO", ":gone"),
            ("EIO", ":late"),
        ],
    );
}

// conformance: APL-9 partial: faults of apply on one file system; power loss
// conformance: BAD-11 partial: injected, in apply
#[test]
fn no_space() {
    harness(
        "enospc",
        &[
            ("ENOSPC", ""),
            ("ENOSPC", ":persistent"),
            ("ENOSPC", ":gone"),
        ],
    );
}

// conformance: APL-9 (no permission) partial: faults of apply on one file system; power loss
#[test]
fn no_permission() {
    harness("eacces", &[("EACCES", ""), ("EACCES", ":persistent")]);
}

// conformance: APL-9 (read only) partial: faults of apply on one file system; power loss
#[test]
fn read_only() {
    harness("erofs", &[("EROFS", ""), ("EROFS", ":persistent")]);
}

// conformance: APL-9 (no descriptors) partial: faults of apply on one file system; power loss
#[test]
fn no_descriptors() {
    harness("emfile", &[("EMFILE", ""), ("EMFILE", ":persistent")]);
}

// conformance: APL-9 (another file system) partial: faults of apply on one file system; power loss
#[test]
fn another_file_system() {
    harness("exdev", &[("EXDEV", ""), ("EXDEV", ":persistent")]);
}

// conformance: APL-9 (interrupted) partial: faults of apply on one file system; power loss
#[test]
fn interrupted() {
    harness("eintr", &[("EINTR", ""), ("EINTR", ":persistent")]);
}
