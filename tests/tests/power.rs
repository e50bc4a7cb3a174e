//! Power fails at chosen moments of an apply and right after commands that
//! said they were done. Only what was made durable is there afterwards; one
//! recovery must make the best of it.
//!
//! Data directory and repository lie on file systems of their own, in files
//! (`harness::image`): on one and the same, each fsync of the database would
//! carry the names of all other files with it, and hide one that is missing.
#![allow(
    clippy::disallowed_methods,
    reason = "tests inspect real trees with foreign means"
)]

use sandbar_tests::harness::count::Count;
use sandbar_tests::harness::image::{Kind, isolated};
use sandbar_tests::harness::is_long;
use sandbar_tests::harness::power::Stage;

/// Points of the short size, in all.
const POINTS: usize = 30;

/// Fails at `points` moments of an apply, around what makes things durable
/// first; all moments where there are more points.
fn harness(part: &str, kind: Kind, apart: bool, points: usize) {
    let mut count = Count::new("power", part);
    let stage = Stage::new(kind, apart);
    let effects = stage.effects();
    let durable = |name: &str| name.contains("sync") || name == "store-commit";
    let mut moments: Vec<(usize, &str)> = Vec::new();
    for (index, name) in effects.iter().enumerate() {
        if is_long() || durable(name) {
            moments.extend([(index + 1, "before"), (index + 1, "after")]);
        }
    }
    let all = moments.len();
    for taken in 0..points.min(all) {
        // Evenly spread, the last one included.
        let (number, side) = moments[all - 1 - taken * all / points.min(all)];
        stage.point(&mut count, number, side, &effects[number - 1]);
    }
    stage.acknowledged(&mut count);
    stage.checkpointed(&mut count);
    count.note(format!("{kind:?}"));
    count.finish(points.min(all) as u64);
}

fn points(short: usize) -> usize {
    if is_long() { usize::MAX } else { short }
}

// conformance: APL-9 (ext4), ENV-9 (power)
#[test]
fn power_fails_data_and_repository_apart() {
    if isolated("power_fails_data_and_repository_apart") {
        return;
    }
    harness("apart", Kind::Ext4, true, points(POINTS));
}

// conformance: APL-9 (ext4)
#[test]
fn power_fails_on_one_file_system() {
    if isolated("power_fails_on_one_file_system") {
        return;
    }
    harness("together", Kind::Ext4, false, points(POINTS / 2));
}
