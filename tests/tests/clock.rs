//! A clock that goes back: order comes from sequence numbers, so the newest
//! plan, the log, recovery and collection stay right (BAD-25).
#![allow(
    clippy::disallowed_methods,
    reason = "tests inspect real trees with foreign means"
)]

use std::path::Path;
use std::process::Command;

use sandbar_tests::fixture::{self, Repository};
use sandbar_tests::foreign::{command, text};
use sandbar_tests::judge;
use sandbar_tests::product::{Done, World};
use serde_json::Value;

/// A world whose clock the test sets.
struct Scene {
    world: World,
    repo: Repository,
    /// The library that answers questions about the time.
    library: String,
}

impl Scene {
    fn new() -> Self {
        let environment = text(command(Path::new("/"), "faketime").args(["-f", "+0d", "env"]));
        let library = environment
            .lines()
            .find_map(|line| line.strip_prefix("LD_PRELOAD="))
            .expect("faketime names its library")
            .to_owned();
        Self {
            world: World::new(),
            repo: fixture::small(),
            library,
        }
    }

    fn root(&self) -> &Path {
        self.repo.root()
    }

    /// Prepares `sandbar` at another time, such as `-10d`.
    fn command(&self, time: &str, arguments: &[&str]) -> Command {
        let mut command = self.world.command(self.root(), arguments);
        command
            .env("LD_PRELOAD", &self.library)
            .env("FAKETIME", time)
            .env("FAKETIME_DONT_FAKE_MONOTONIC", "1");
        command
    }

    fn at(&self, time: &str, arguments: &[&str]) -> Done {
        Done::of(&mut self.command(time, arguments)).expect(0)
    }

    fn json(&self, time: &str, arguments: &[&str]) -> Value {
        let mut arguments = arguments.to_vec();
        arguments.push("--json");
        self.at(time, &arguments).json()
    }
}

// conformance: BAD-25
#[test]
fn the_newest_is_what_came_last_whatever_the_clock_says() {
    let scene = Scene::new();
    let run = |time: &str, name: &str, script: &str| {
        drop(scene.at(time, &["run", "--name", name, "--", "sh", "-euc", script]));
    };
    run("+0d", "first", "echo 1 > one.txt");
    run("-10d", "second", "echo 2 > two.txt");
    let times = scene.json("+0d", &["plan", "list"]);
    let stamp = |at: usize| {
        times["plans"][at]["created_at"]
            .as_str()
            .expect("a time")
            .to_owned()
    };
    assert!(stamp(0) > stamp(1), "the clock did go back: {times}");
    for time in ["+0d", "-10d", "-20d", "+20d"] {
        assert_eq!(
            scene.json(time, &["status"])["plan"]["name"],
            "second",
            "{time}"
        );
    }
    // The log of one plan, over a clock that jumps both ways.
    for (time, text) in [("-30d", "a"), ("+5d", "b"), ("-60d", "c")] {
        let script = format!("echo {text} > two.txt");
        drop(scene.at(time, &["exec", "second", "--", "sh", "-euc", &script]));
    }
    let log = scene.json("+0d", &["log", "second"]);
    let all = log["checkpoints"].as_array().expect("a list");
    let numbers: Vec<u64> = all.iter().filter_map(|one| one["seq"].as_u64()).collect();
    assert_eq!(numbers, [1, 2, 3, 4, 5]);
    let shown = scene.at("-1d", &["log", "second"]).stdout;
    let order: Vec<&str> = shown
        .lines()
        .filter_map(|line| line.split_whitespace().next())
        .collect();
    assert_eq!(order, ["5", "4", "3", "2", "1"]);
    // The comparison is with what came last, not with what looks latest.
    assert_eq!(scene.json("+0d", &["status", "second"])["checkpoints"], 5);
    drop(scene.at("-90d", &["checkpoint", "second"]));
    assert_eq!(
        scene.json("+0d", &["status", "second"])["checkpoints"],
        5,
        "nothing had changed"
    );
    drop(scene.at("-90d", &["rollback", "second", "--to", "3"]));
    drop(scene.at("-120d", &["apply", "second"]));
    let now = std::fs::read_to_string(scene.root().join("two.txt")).expect("it landed");
    assert_eq!(now, "a\n");
    let git = sandbar_tests::foreign::git(scene.root(), &["status", "--short"]);
    assert_eq!(git, "?? two.txt");
}

// conformance: BAD-25 (recovery), APL-9 partial: a clock that goes back
#[test]
fn recovery_is_right_before_the_crash_in_time() {
    for number in (30..110).step_by(16) {
        let scene = Scene::new();
        let script = "echo new > a.txt; rm b.txt; mkdir d; echo d > d/d";
        drop(scene.at("+0d", &["run", "--name", "p", "--", "sh", "-euc", script]));
        let old = judge::contents(scene.root());
        let new = judge::contents(&scene.world.sandbox(scene.root(), "p"));
        let mut apply = scene.command("+1d", &["apply", "p"]);
        apply
            .env("SANDBAR_SANDBOX_CLEANUP", "manual")
            .env("SANDBAR_CRASH_AT", format!("{number}:after"));
        let killed = Done::of(&mut apply).code.is_none();
        drop(scene.at("-30d", &["recover"]));
        let state = scene.json("-40d", &["status", "p"])["plan"]["state"].clone();
        let now = judge::contents(scene.root());
        match state.as_str() {
            Some("applied") => assert_eq!(now, new, "at {number}, killed: {killed}"),
            Some("review") => assert_eq!(now, old, "at {number}"),
            other => panic!("at {number}: {other:?}"),
        }
        let again = scene.json("-50d", &["recover"]);
        assert!(
            !again.to_string().contains("applied"),
            "at {number}: {again}"
        );
    }
}

// conformance: BAD-25 (retention)
#[test]
fn retention_does_not_end_early() {
    let scene = Scene::new();
    drop(scene.at(
        "+0d",
        &["run", "--name", "p", "--", "sh", "-c", "echo x > x"],
    ));
    drop(scene.at("+0d", &["apply", "p"]));
    for time in ["-400d", "-1d", "+29d"] {
        drop(scene.at(time, &["gc"]));
        let log = scene.json("+0d", &["log", "p"]);
        let count = log["checkpoints"].as_array().map(Vec::len);
        assert_eq!(count, Some(2), "{time}: {log}");
    }
    drop(scene.at("+31d", &["gc"]));
    let log = scene.json("+0d", &["log", "p"]);
    assert_eq!(log["checkpoints"], serde_json::json!([]), "it does end");
}
