//! How much waiting for the disk an apply or a rollback costs, as strace
//! counts it.
#![allow(
    clippy::disallowed_methods,
    reason = "tests inspect real trees with foreign means"
)]

use std::path::Path;

use sandbar_tests::product::World;
use sandbar_tests::{fixture, foreign, trace};

/// What may come on top of files and directories: the store's transactions.
const SLACK: usize = 12;
/// Directories of the job itself: its place, it, what is staged, what is kept.
const JOB: usize = 4;
/// Two packs, of the scan and of what the decision read, each with the
/// directory of packs.
const PACK: usize = 4;

/// Counts the calls that wait for the disk in a run that must succeed.
fn waits(world: &World, root: &Path, line: &[&str], log: &Path) -> usize {
    let mut command = world.command(root, line);
    command.env("SANDBAR_SANDBOX_CLEANUP", "manual");
    let (done, calls) = trace::mutating(&command, log);
    drop(done.expect(0));
    let waiting = ["fsync", "fdatasync", "syncfs"];
    let found: Vec<_> = calls
        .iter()
        .filter(|call| waiting.contains(&&*call.name))
        .collect();
    assert!(!found.is_empty(), "strace saw nothing");
    found.len()
}

/// Makes a repository of `number` files in `dirs` directories, and a plan that
/// changes each file.
fn scene(world: &World, root: &Path, number: usize, dirs: usize) {
    foreign::sh(
        root,
        &format!(
            "for d in $(seq {dirs}); do mkdir d$d; done
             for n in $(seq {number}); do echo old $n > d$((n % {dirs} + 1))/$n; done
             git add -A; git commit -qm many"
        ),
    );
    let edit = "for f in d*/*; do echo new $f > $f; done";
    world.run(root, "p", edit);
}

// conformance: APL-5 (fsyncs)
#[test]
fn an_apply_waits_once_for_each_file_and_directory_and_little_more() {
    let mut counts = Vec::new();
    for (number, dirs) in [(10, 3), (60, 3)] {
        let (world, repo) = (World::new(), fixture::small());
        let root = repo.root();
        scene(&world, root, number, dirs);
        // The first apply of all makes the place for kept bytes.
        drop(world.run(root, "first", "echo x >> b.txt"));
        drop(world.ok(root, &["apply", "first"]));
        let allowed = number + dirs + JOB + PACK + SLACK;
        let log = repo.scratch().join("log");
        let applied = waits(&world, root, &["apply", "p"], &log);
        assert!(
            applied <= allowed,
            "apply of {number} files in {dirs} directories: {applied}"
        );
        let undone = waits(&world, root, &["undo", "p"], &log);
        assert!(
            undone <= allowed + JOB,
            "undo of {number} files in {dirs} directories: {undone}"
        );
        let back = waits(&world, root, &["rollback", "p", "--to", "1"], &log);
        assert!(back <= allowed, "rollback of {number} files: {back}");
        println!(
            "{number} files in {dirs} directories: apply {applied}, undo {undone}, rollback {back}"
        );
        counts.push((applied, undone, back));
    }
    // What was displaced costs nothing by itself.
    let [few, many] = counts[..] else {
        panic!("two scenes")
    };
    assert!(many.0 - few.0 <= 60 - 10, "{few:?} {many:?}");
}
