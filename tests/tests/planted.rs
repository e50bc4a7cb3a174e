//! Known bugs, switched on one by one: each must be caught. A harness that
//! does not notice a bug like these proves nothing by passing.
//!
//! Each is caught by a small form of one of the harnesses, which is first
//! seen to find nothing without the bug.
#![allow(
    clippy::disallowed_methods,
    reason = "tests inspect real trees with foreign means"
)]

use std::os::unix::fs::{MetadataExt as _, symlink};

use sandbar_tests::foreign::sh;
use sandbar_tests::harness::count::Count;
use sandbar_tests::harness::image::{Kind, isolated};
use sandbar_tests::harness::power::Stage;
use sandbar_tests::harness::scene::{PLAN, Scene};
use sandbar_tests::harness::tree;
use sandbar_tests::product::Done;

/// A small form of a harness: it returns what it found.
type Harness = fn(Option<&'static str>) -> Vec<String>;

/// Each bug, and what catches it.
const BUGS: [(&str, Harness); 14] = [
    ("skip-directory-fsync", power),
    ("skip-file-fsync", power),
    ("store-not-durable", power),
    ("skip-pool-fsync", power_of_checkpoint),
    ("execute-before-the-intent", crash),
    ("leave-temporary-files", crash_of_addition),
    ("take-nothing-back", fault),
    ("forget-kept-bytes", apply),
    ("forget-a-deletion", apply),
    ("drop-executable-bit", apply),
    ("lose-the-last-pack", restore),
    ("believe-mtime", scan),
    ("skip-pre-image-check", drift),
    ("follow-leaf-symlink", swap),
];

fn scene(bug: Option<&'static str>) -> Scene {
    let mut scene = Scene::new();
    if let Some(bug) = bug {
        scene.world.set("SANDBAR_PLANTED", bug);
    }
    scene
}

/// One apply from beginning to end.
fn apply(bug: Option<&'static str>) -> Vec<String> {
    let scene = scene(bug);
    let done = Done::of(&mut scene.apply());
    let mut bad = scene.verdict(&done);
    if done.code != Some(0) {
        bad.push(format!("it failed: {}{}", done.stdout, done.stderr));
    }
    bad.extend(scene.lost());
    bad
}

/// A checkpoint that is taken and gone back to.
fn restore(bug: Option<&'static str>) -> Vec<String> {
    let scene = scene(bug);
    let script = ["exec", PLAN, "--", "sh", "-c", "seq 1 2000 > more"];
    let done = Done::of(&mut scene.sandbar(&script));
    if done.code != Some(0) {
        return vec![done.stderr];
    }
    let sandbox = scene.world.sandbox(scene.root(), PLAN);
    let wanted = tree::read(&sandbox);
    sh(&sandbox, "rm more");
    let done = Done::of(&mut scene.sandbar(&["rollback", PLAN, "--to", "3"]));
    let mut bad = tree::difference(&wanted, &tree::read(&sandbox));
    if done.code != Some(0) {
        bad.push(done.stderr);
    }
    bad
}

/// Kills after each effect, until something is found.
fn kills(bug: Option<&'static str>, range: std::ops::Range<usize>) -> Vec<String> {
    let mut at = scene(bug);
    for number in range {
        let point = format!("{number}:after");
        let _ = Done::of(at.apply().env("SANDBAR_CRASH_AT", point));
        let mut bad = at.half_way();
        let (state, more) = at.recovered();
        bad.extend(more);
        if !bad.is_empty() {
            return bad;
        }
        if state == "applied" {
            at = scene(bug);
        }
    }
    Vec::new()
}

/// Kills while the operations are executed.
fn crash(bug: Option<&'static str>) -> Vec<String> {
    kills(bug, 50..62)
}

/// Kills while objects are stored.
fn crash_of_addition(bug: Option<&'static str>) -> Vec<String> {
    kills(bug, 9..24)
}

/// Makes each exchange fail once.
fn fault(bug: Option<&'static str>) -> Vec<String> {
    let log = "SANDBAR_EFFECT_LOG";
    let one = Scene::new();
    let path = one.world.path().join("log");
    drop(Done::of(one.apply().env(log, &path)).expect(0));
    let text = std::fs::read_to_string(&path).expect("a log");
    let exchanges = text
        .lines()
        .filter_map(|line| line.strip_suffix(" rename-exchange"));
    for number in exchanges {
        let at = scene(bug);
        let fault = format!("{number}:EIO");
        let done = Done::of(at.apply().env("SANDBAR_FAULT", fault));
        let mut bad = at.verdict(&done);
        bad.extend(at.recovered().1);
        if !bad.is_empty() {
            return bad;
        }
    }
    Vec::new()
}

fn stage(bug: Option<&'static str>) -> Stage {
    let mut stage = Stage::new(Kind::Ext4, true);
    if let Some(bug) = bug {
        stage.scene.world.set("SANDBAR_PLANTED", bug);
    }
    stage
}

/// Cuts the power after an apply that was acknowledged, and around each
/// fsync, until something is found.
fn power(bug: Option<&'static str>) -> Vec<String> {
    let stage = stage(bug);
    let mut count = Count::new("planted power", bug.unwrap_or("none"));
    stage.acknowledged(&mut count);
    if count.violations().is_empty() && bug.is_some() {
        let effects = stage.effects();
        for (index, name) in effects.iter().enumerate() {
            if name.contains("rename") || name.contains("store") {
                stage.point(&mut count, index + 1, "after", name);
            }
            if !count.violations().is_empty() {
                break;
            }
        }
    }
    count.violations().to_vec()
}

/// Cuts the power after a checkpoint that was acknowledged.
fn power_of_checkpoint(bug: Option<&'static str>) -> Vec<String> {
    let stage = stage(bug);
    let mut count = Count::new("planted power", bug.unwrap_or("none"));
    stage.checkpointed(&mut count);
    count.violations().to_vec()
}

/// An edit of the same size whose time was put back.
fn scan(bug: Option<&'static str>) -> Vec<String> {
    let mut scene = scene(bug);
    let sandbox = scene.world.sandbox(scene.root(), PLAN);
    // Old enough to be believed at all.
    let old = "touch -d '2001-01-01 00:00:00' new/deep/n.txt";
    sh(&sandbox, old);
    let save = ["checkpoint", PLAN];
    drop(scene.world.ok(scene.root(), &save));
    std::thread::sleep(std::time::Duration::from_millis(20));
    drop(scene.world.ok(scene.root(), &save));
    sh(&sandbox, &format!("printf 'm\\n' > new/deep/n.txt; {old}"));
    scene.new = tree::read(&sandbox);
    let done = Done::of(&mut scene.apply());
    scene.verdict(&done)
}

/// The person edits what the plan replaces: an apply refuses, and the edit
/// stays in its place.
fn drift(bug: Option<&'static str>) -> Vec<String> {
    let scene = scene(bug);
    sh(scene.root(), "sed -i 's/^line 7$/mine/' a.txt");
    let real = tree::exact(scene.root());
    let done = Done::of(&mut scene.apply());
    let mut bad = tree::difference(&real, &tree::exact(scene.root()));
    if done.code != Some(3) {
        bad.push(format!("exit {:?}", done.code));
    }
    bad
}

/// A file whose mode is to change becomes a symlink to one outside with the
/// same content, between a kill and its recovery.
fn swap(bug: Option<&'static str>) -> Vec<String> {
    for number in 40..60 {
        let scene = scene(bug);
        let outside = scene.world.path().join("outside");
        std::fs::create_dir(&outside).expect("a directory");
        let point = format!("{number}:after");
        let _ = Done::of(scene.apply().env("SANDBAR_CRASH_AT", point));
        let (path, to) = (scene.root().join("b.txt"), outside.join("b.txt"));
        std::fs::rename(&path, &to).expect("it moves");
        symlink(&to, &path).expect("a link");
        let facts = || {
            let mode = std::fs::metadata(&to).expect("it is there").mode();
            (mode, std::fs::read(&to).expect("it can be read"))
        };
        let before = facts();
        let _ = Done::of(&mut scene.sandbar(&["recover"]));
        if facts() != before {
            return vec![format!(
                "what lies outside changed, killed after effect {number}"
            )];
        }
    }
    Vec::new()
}

/// Runs a harness; a test that ends in its middle has found something too.
fn found(harness: Harness, bug: Option<&'static str>) -> Vec<String> {
    match std::panic::catch_unwind(|| harness(bug)) {
        Ok(found) => found,
        Err(_) => vec!["it panicked".to_owned()],
    }
}

/// Every second bug, from `first`: two tests share the work.
fn bugs(first: usize) {
    let mut count = Count::new("planted", format!("{first}"));
    for (bug, harness) in BUGS.into_iter().skip(first).step_by(2) {
        let without = found(harness, None);
        count.found(&format!("without {bug}"), without);
        let with = found(harness, Some(bug));
        println!(
            "{bug}: {}",
            with.first().map_or("NOT CAUGHT", |first| first)
        );
        count.point();
        if with.is_empty() {
            count.found(bug, ["it was not caught".to_owned()]);
        }
    }
    count.finish(7);
}

// conformance: APL-9 (planted bugs) partial: bugs of files, git and store
#[test]
fn known_bugs_are_caught_1() {
    if isolated("known_bugs_are_caught_1") {
        return;
    }
    bugs(0);
}

// conformance: APL-9 (planted bugs) partial: bugs of files, git and store
#[test]
fn known_bugs_are_caught_2() {
    if isolated("known_bugs_are_caught_2") {
        return;
    }
    bugs(1);
}
