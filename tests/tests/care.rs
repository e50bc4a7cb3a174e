//! What is kept, what goes, and when: pruning, collection, clean-up policy.
#![allow(
    clippy::disallowed_methods,
    reason = "tests inspect real trees with foreign means"
)]

use sandbar_tests::product::{Done, World};
use sandbar_tests::{fixture, judge};

fn numbers(world: &World, root: &std::path::Path, plan: &str) -> Vec<u64> {
    let log = world.json(root, &["log", plan]);
    let all = log["checkpoints"].as_array().expect("a list");
    let mut numbers: Vec<u64> = all.iter().filter_map(|one| one["seq"].as_u64()).collect();
    numbers.sort_unstable();
    numbers
}

// conformance: CKP-3, C015-3
#[test]
fn old_checkpoints_go_and_both_ends_stay_usable() {
    let (world, repo) = (World::new(), fixture::small());
    let root = repo.root();
    let run = |line: &[&str]| {
        let mut command = world.command(root, line);
        command.env("SANDBAR_SANDBOX_CHECKPOINT_MAX_PER_PLAN", "3");
        Done::of(&mut command).expect(0)
    };
    drop(run(&["run", "--name", "p", "--", "true"]));
    let base = judge::checkout(&world.sandbox(root, "p"));
    for step in 1..=6 {
        let script = format!("echo {step} > step.txt");
        drop(run(&["exec", "p", "--", "sh", "-c", &script]));
    }
    let newest = judge::checkout(&world.sandbox(root, "p"));
    let left = numbers(&world, root, "p");
    assert_eq!((left.len(), left[0]), (3, 1), "{left:?}");
    drop(world.ok(root, &["gc"]));
    let last = *left.last().expect("three");
    for (number, state) in [(1, base), (last, newest)] {
        drop(run(&["rollback", "p", "--to", &number.to_string()]));
        assert_eq!(
            judge::checkout(&world.sandbox(root, "p")),
            state,
            "{number}"
        );
    }
}

// conformance: STR-9 (collection) partial: retention by age
#[test]
fn collection_never_touches_what_a_living_plan_needs() {
    let (world, repo) = (World::new(), fixture::small());
    let root = repo.root();
    world.run(
        root,
        "live",
        "head -c 300000 /dev/urandom > big; echo x >> a.txt",
    );
    world.run(root, "gone", "head -c 900000 /dev/urandom > bigger");
    drop(world.ok(root, &["discard", "gone"]));
    let state = judge::checkout(&world.sandbox(root, "live"));
    drop(world.ok(root, &["gc", "--now"]));
    drop(world.ok(
        root,
        &["exec", "live", "--", "sh", "-c", "rm -rf big a.txt src"],
    ));
    drop(world.ok(root, &["rollback", "live", "--to", "2"]));
    assert_eq!(judge::checkout(&world.sandbox(root, "live")), state);
    drop(world.ok(root, &["apply", "live"]));
    assert_eq!(judge::status(root), " M a.txt\n?? big\n");
}

// conformance: STR-9 (collection) partial: retention by age
#[test]
fn a_collection_that_waits_comes_after_one_that_did_not() {
    let (world, repo) = (World::new(), fixture::small());
    let root = repo.root();
    // Each begins with a tree of its own, which nothing else needs.
    world.run(root, "over", "echo x >> a.txt");
    drop(world.ok(root, &["apply", "over"]));
    world.run(root, "dropped", "echo y >> a.txt");
    drop(world.ok(root, &["discard", "dropped"]));
    std::fs::write(root.join("mine.txt"), "mine").expect("a file");
    world.run(root, "live", "echo z >> a.txt");
    let state = judge::checkout(&world.sandbox(root, "live"));
    drop(world.ok(root, &["gc", "--now"]));
    // Both are younger than retention, and what they were made of is gone.
    drop(world.ok(root, &["gc"]));
    drop(world.ok(root, &["gc", "--now"]));
    drop(world.ok(root, &["exec", "live", "--", "rm", "a.txt"]));
    drop(world.ok(root, &["rollback", "live", "--to", "2"]));
    assert_eq!(judge::checkout(&world.sandbox(root, "live")), state);
}

// conformance: C015-5, STR-9 (cleanup) partial: retention by age
#[test]
fn sandboxes_go_when_the_policy_says_so() {
    for (policy, after_apply, after_discard) in [
        ("on_terminal", false, false),
        ("on_apply", false, true),
        ("manual", true, true),
    ] {
        let (world, repo) = (World::new(), fixture::small());
        let root = repo.root();
        for plan in ["applied", "discarded"] {
            world.run(root, plan, &format!("echo x > {plan}.txt"));
        }
        let sandboxes = ["applied", "discarded"].map(|plan| world.sandbox(root, plan));
        for line in [["apply", "applied"], ["discard", "discarded"]] {
            let mut command = world.command(root, &line);
            drop(Done::of(command.env("SANDBAR_SANDBOX_CLEANUP", policy)).expect(0));
        }
        let there = sandboxes.map(|root| root.exists());
        assert_eq!(there, [after_apply, after_discard], "{policy}");
    }
}

// conformance: C015-4
#[test]
fn a_sandbox_that_cannot_be_made_leaves_nothing() {
    let (world, repo) = (World::new(), fixture::small());
    let root = repo.root();
    drop(world.ok(root, &["doctor"]));
    sandbar_tests::foreign::sh(root, "mkfifo src/pipe");
    drop(
        world
            .sandbar(root, &["run", "--name", "n", "--", "true"])
            .expect(125),
    );
    let left = sandbar_tests::foreign::sh(&world.data(), "find s -mindepth 1 | head");
    assert_eq!(left, "", "what was half made is still there");
    sandbar_tests::foreign::sh(root, "rm src/pipe");
    drop(world.ok(root, &["run", "--name", "n", "--", "true"]));
}

/// A power failure, or a command inside, can leave the commit before empty.
// conformance: CKP-4 (damaged)
#[test]
fn a_damaged_hidden_commit_does_not_keep_a_rollback_away() {
    let (world, repo) = (World::new(), fixture::small());
    let root = repo.root();
    world.run(root, "p", "echo two > two.txt");
    let sandbox = world.sandbox(root, "p");
    let wanted = judge::checkout(&sandbox);
    drop(world.ok(
        root,
        &["exec", "p", "--", "sh", "-c", "echo three > three.txt"],
    ));
    let hidden = "git for-each-ref --sort=-refname --format='%(objectname)' refs/sandbar | head -1";
    let script = format!(
        "id=$({hidden}); f=.git/objects/$(echo $id | cut -c1-2)/$(echo $id | cut -c3-)
         chmod u+w $f; : > $f; echo four > four.txt"
    );
    sandbar_tests::foreign::sh(&sandbox, &script);
    drop(world.ok(root, &["rollback", "p", "--to", "2"]));
    assert_eq!(judge::tar_digest(&sandbox), wanted.tree);
    assert_eq!(judge::ls_files(&sandbox), wanted.index);
    drop(world.ok(
        root,
        &["exec", "p", "--", "sh", "-c", "echo five > five.txt"],
    ));
}
