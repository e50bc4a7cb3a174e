//! Checkpoint, rollback, discard and recovery itself are killed before and
//! after each of their effects; and an apply that was killed is killed again
//! while it is recovered.
//!
//! Whatever dies where: the real tree stays as it is, one recovery ends it,
//! and every checkpoint that was acknowledged comes back bit for bit.
#![allow(
    clippy::disallowed_methods,
    reason = "tests inspect real trees with foreign means"
)]

use std::path::{Path, PathBuf};

use sandbar_tests::foreign::sh;
use sandbar_tests::harness::count::Count;
use sandbar_tests::harness::is_long;
use sandbar_tests::harness::scene::{PLAN, Scene};
use sandbar_tests::harness::tree::{self, Tree};
use sandbar_tests::judge;
use sandbar_tests::product::Done;

/// No command here has more effects.
const ENOUGH: usize = 500;

/// How an apply must be killed to have written half of its paths.
const HALF: &str = "rename-exchange";

/// Runs a command that is killed around an effect; says whether it was.
fn kill(scene: &Scene, arguments: &[&str], number: usize, side: &str) -> bool {
    let mut command = scene.sandbar(arguments);
    command
        .env("SANDBAR_CRASH_AT", format!("{number}:{side}"))
        .env("SANDBAR_SANDBOX_CLEANUP", "manual");
    if arguments[0] == "discard" {
        command.env_remove("SANDBAR_SANDBOX_CLEANUP");
    }
    let done = Done::of(&mut command);
    match done.code {
        None => true,
        Some(0) => false,
        Some(_) => panic!("{}: {}{}", done.line, done.stdout, done.stderr),
    }
}

/// Kills at every point of a command, and calls `judge` after each.
fn every_point(
    count: &mut Count,
    what: &str,
    mut one: impl FnMut(&mut Count, usize, &str) -> bool,
) -> usize {
    for number in 1..ENOUGH {
        for side in ["before", "after"] {
            if !one(count, number, side) {
                count.note(format!("{what}: {} effects", number - 1));
                return number - 1;
            }
            count.point();
        }
    }
    panic!("{what}: more than {ENOUGH} effects");
}

/// The checkpoints of before are asked for after each so many effects.
const SOME: usize = 6;

/// So many points are tried on one scene: pruning must not begin.
const TURNS: usize = 8;

/// A scene whose sandbox has moved on since its last checkpoint.
struct Moved {
    scene: Scene,
    sandbox: PathBuf,
    /// The sandbox at checkpoints 1 and 2, and as it is now.
    states: [Tree; 3],
    real: std::collections::BTreeMap<PathBuf, String>,
    /// The git state at checkpoint 2.
    git: judge::CheckoutState,
    turns: usize,
}

impl Moved {
    fn new() -> Self {
        let scene = Scene::new();
        let sandbox = scene.world.sandbox(scene.root(), PLAN);
        let git = judge::checkout(&sandbox);
        sh(
            &sandbox,
            "echo later >> a.txt; rm b.txt; echo fresh > fresh; git add -A
             git commit -qm inside; git branch -q extra; echo loose > loose",
        );
        let states = [scene.old.clone(), scene.new.clone(), tree::read(&sandbox)];
        let real = tree::exact(scene.root());
        Self {
            scene,
            sandbox,
            states,
            real,
            git,
            turns: 0,
        }
    }

    /// Goes on from where the last point began, with one more change that is
    /// in no checkpoint; on a new scene now and then.
    fn again(&mut self) {
        self.turns += 1;
        if self.turns == TURNS {
            *self = Self::new();
            return;
        }
        sh(
            &self.sandbox,
            "echo more >> loose; echo more >> new/deep/n.txt",
        );
        self.states[2] = tree::read(&self.sandbox);
    }

    /// Goes to a checkpoint, which must hold `state`.
    fn goes_to(&self, to: u64, state: &Tree) -> Vec<String> {
        let number = to.to_string();
        let done = Done::of(&mut self.scene.sandbar(&["rollback", PLAN, "--to", &number]));
        let differ = tree::difference(state, &tree::read(&self.sandbox));
        if done.code == Some(0) && differ.is_empty() {
            return Vec::new();
        }
        let said = format!(
            "rollback to {to}: {}{} {differ:?}",
            done.stdout, done.stderr
        );
        vec![said]
    }

    /// Goes to checkpoint 2, git state included, and to 1.
    fn both_come_back(&self) -> Vec<String> {
        let mut bad = self.goes_to(2, &self.states[1]);
        if bad.is_empty() && judge::checkout(&self.sandbox) != self.git {
            bad.push("rollback to 2: the git state differs".to_owned());
        }
        bad.extend(self.goes_to(1, &self.states[0]));
        bad
    }

    /// Returns the newest checkpoint.
    fn newest(&self) -> u64 {
        let log = self.scene.world.json(self.scene.root(), &["log", PLAN]);
        let all = log["checkpoints"].as_array().cloned().unwrap_or_default();
        let newest = all.iter().filter_map(|one| one["seq"].as_u64()).max();
        newest.expect("a checkpoint")
    }

    /// Recovers and judges what holds after every kill.
    fn recovered(&self, states: &[&str]) -> Vec<String> {
        let bad = ended(&self.scene, states);
        let real = tree::exact(self.scene.root());
        let changed = tree::difference(&self.real, &real).into_iter();
        bad.into_iter()
            .chain(changed.map(|path| format!("the real tree changed: {path}")))
            .collect()
    }
}

/// Recovers twice: the plan is in one of some states then, and nothing is
/// left over.
fn ended(scene: &Scene, states: &[&str]) -> Vec<String> {
    let mut bad = Vec::new();
    let done = Done::of(&mut scene.sandbar(&["recover"]));
    if done.code != Some(0) {
        bad.push(format!("recover: {}{}", done.stdout, done.stderr));
    }
    match scene.state() {
        Ok(state) if states.contains(&&*state) => {}
        other => bad.push(format!("after recovery the plan is {other:?}")),
    }
    let again = Done::of(&mut scene.sandbar(&["recover"]));
    if again.code != Some(0) || !again.stdout.contains("nothing") {
        bad.push(format!(
            "a second recovery: {}{}",
            again.stdout, again.stderr
        ));
    }
    bad.extend(scene.left_over());
    bad
}

// conformance: CKP-2 (crash) partial: files and git
// conformance: ENV-9 (crash) partial: kills of a checkpoint
#[test]
fn checkpoint_killed_anywhere() {
    let mut count = Count::new("crash", "checkpoint");
    let mut moved = Moved::new();
    let effects = every_point(&mut count, "checkpoint", |count, number, side| {
        let line = ["checkpoint", PLAN, "-m", "mine"];
        let killed = kill(&moved.scene, &line, number, side);
        let at = format!("checkpoint killed {side} effect {number}");
        let mut bad = moved.recovered(&["review"]);
        // What was being saved is still there, and is saved by going back.
        let now = tree::read(&moved.sandbox);
        bad.extend(tree::difference(&moved.states[2], &now));
        drop(Done::of(&mut moved.scene.sandbar(&["checkpoint", PLAN])).expect(0));
        let saved = moved.newest();
        if number % SOME == 0 {
            bad.extend(moved.both_come_back());
            bad.extend(moved.goes_to(saved, &moved.states[2]));
        }
        if bad.is_empty() {
            moved.again();
        } else {
            moved = Moved::new();
        }
        count.found(&at, bad);
        killed
    });
    count.finish(effects as u64 * 2);
}

// conformance: CKP-4 (crash) partial: files and git
#[test]
fn rollback_killed_anywhere() {
    let mut count = Count::new("crash", "rollback");
    let mut moved = Moved::new();
    let effects = every_point(&mut count, "rollback", |count, number, side| {
        let before = moved.newest();
        let line = ["rollback", PLAN, "--to", "1"];
        let killed = kill(&moved.scene, &line, number, side);
        let at = format!("rollback killed {side} effect {number}");
        let mut bad = moved.recovered(&["review"]);
        let now = tree::read(&moved.sandbox);
        if now != moved.states[0] && now != moved.states[2] {
            let differ = tree::difference(&moved.states[0], &now);
            bad.push(format!("neither gone back nor as before: {differ:?}"));
        }
        // What was replaced must be in a checkpoint if anything was.
        if now == moved.states[2] {
            drop(Done::of(&mut moved.scene.sandbar(&["checkpoint", PLAN])).expect(0));
        }
        if number % SOME == 0 {
            bad.extend(moved.both_come_back());
        }
        bad.extend(moved.goes_to(before + 1, &moved.states[2]));
        if bad.is_empty() {
            moved.again();
        } else {
            moved = Moved::new();
        }
        count.found(&at, bad);
        killed
    });
    count.finish(effects as u64 * 2);
}

/// Of a plain directory, whose sandbox is few files; of a checkout too in the
/// long size.
// conformance: STR-9 (crash) partial: discard of one sandbox
#[test]
fn discard_killed_anywhere() {
    let mut count = Count::new("crash", "discard");
    let effects = every_point(&mut count, "discard", |count, number, side| {
        let scene = if is_long() {
            Scene::new()
        } else {
            Scene::plain()
        };
        let sandbox = scene.world.sandbox(scene.root(), PLAN);
        sh(&sandbox, "echo later >> a.txt");
        let real = tree::exact(scene.root());
        let states = [tree::read(&sandbox)];
        let killed = kill(&scene, &["discard", PLAN], number, side);
        let at = format!("discard killed {side} effect {number}");
        let mut bad = ended(&scene, &["review", "discarded"]);
        bad.extend(tree::difference(&real, &tree::exact(scene.root())));
        if scene.state().as_deref() == Ok("review") {
            bad.extend(tree::difference(&states[0], &tree::read(&sandbox)));
            let done = Done::of(&mut scene.sandbar(&["discard", PLAN]));
            if done.code != Some(0) {
                bad.push(format!("again: {}{}", done.stdout, done.stderr));
            }
        } else {
            // What clean-up did not come to, collection does.
            drop(Done::of(&mut scene.sandbar(&["gc"])).expect(0));
        }
        if sandbox.exists() {
            bad.push("the sandbox is still there".to_owned());
        }
        count.found(&at, bad);
        killed
    });
    count.finish(effects as u64 * 2);
}

/// Lists the effects of an apply that runs to its end.
fn apply_effects(scene: &Scene) -> Vec<String> {
    let log = scene.world.path().join("effects");
    drop(Done::of(scene.apply().env("SANDBAR_EFFECT_LOG", &log)).expect(0));
    names(&log)
}

fn names(log: &Path) -> Vec<String> {
    let text = std::fs::read_to_string(log).unwrap_or_default();
    text.lines()
        .map(|line| line.split_once(' ').expect("number and name").1.to_owned())
        .collect()
}

// conformance: APL-9 (recover) partial: kills of recovery on one file system
#[test]
fn recovery_killed_anywhere() {
    let mut count = Count::new("crash", "recover");
    let effects = apply_effects(&Scene::new());
    let half = 1 + effects
        .iter()
        .position(|name| name == HALF)
        .expect("apply exchanges");
    let least = every_point(&mut count, "recover", |count, number, side| {
        let scene = Scene::new();
        assert!(kill(&scene, &["apply", PLAN], half, "after"));
        let killed = kill(&scene, &["recover"], number, side);
        let at = format!("recover killed {side} effect {number}");
        let mut bad = scene.half_way();
        let (state, more) = scene.recovered();
        bad.extend(more);
        // Decided, so it goes forward.
        if state != "applied" {
            bad.push(format!("the plan is {state}"));
        }
        count.found(&at, bad);
        killed
    });
    count.finish(least as u64 * 2);
}

/// Two hundred pairs of kills, evenly spread; all of them in the long size.
fn double(part: usize, parts: usize) {
    let mut count = Count::new("crash", format!("double-{part}"));
    let applies = apply_effects(&Scene::new()).len();
    let wanted = if is_long() { usize::MAX } else { 200 / parts };
    // A step that shares no factor with the numbers spreads the pairs.
    let mut seed = 7919 * (part + 1);
    let mut scene = Scene::new();
    let mut tried = 0;
    let mut number = part;
    while tried < wanted {
        number += parts;
        if is_long() && number > applies * ENOUGH {
            break;
        }
        seed = (seed * 1_103_515_245 + 12_345) % 2_147_483_648;
        let (first, second) = if is_long() {
            (1 + number / ENOUGH, 1 + number % ENOUGH)
        } else {
            (1 + seed / 97 % applies, 1 + seed / 9_973 % 60)
        };
        let sides = ["before", "after"];
        let (a, b) = (sides[seed / 5 % 2], sides[seed / 11 % 2]);
        if !kill(&scene, &["apply", PLAN], first, a) {
            scene = Scene::new();
            continue;
        }
        let killed = kill(&scene, &["recover"], second, b);
        let at = format!("apply killed {a} effect {first}, recover {b} effect {second}");
        count.found(&at, scene.half_way());
        let (state, bad) = scene.recovered();
        let fresh = state == "applied" || !bad.is_empty();
        count.found(&at, bad);
        if killed {
            tried += 1;
            count.point();
        }
        if fresh {
            scene = Scene::new();
        }
    }
    count.finish(200 / parts as u64);
}

// conformance: APL-9 (twice) partial: kills of apply and recovery on one file system
#[test]
fn killed_twice_1() {
    double(0, 2);
}

// conformance: APL-9 (twice) partial: kills of apply and recovery on one file system
#[test]
fn killed_twice_2() {
    double(1, 2);
}
