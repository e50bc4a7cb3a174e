//! An undo is killed before and after each of its effects. One recovery ends
//! it: the tree is all new and the plan applied, or all old and the plan in
//! review with its sandbox; a second recovery changes nothing; and it can be
//! undone, and applied, again.
#![allow(
    clippy::disallowed_methods,
    reason = "tests inspect real trees with foreign means"
)]

use sandbar_tests::harness::scene::{PLAN, Scene};
use sandbar_tests::harness::tree;
use sandbar_tests::product::Done;

/// No undo here has more effects.
const ENOUGH: usize = 400;
/// So many points are tried on one scene.
const TURNS: usize = 12;

/// Every fourth effect, from `first`: four tests share the work.
fn quarter(first: usize) {
    let mut bad = Vec::new();
    let mut points = 0;
    let mut scene = None;
    'all: for number in (first..ENOUGH).step_by(4) {
        for side in ["before", "after"] {
            if points % TURNS == 0 {
                scene = None;
            }
            let scene = scene.get_or_insert_with(Scene::new);
            let at = format!("killed {side} effect {number}");
            match point(scene, number, side) {
                Ok(true) => points += 1,
                Ok(false) => break 'all,
                Err(why) => bad.push(format!("{at}: {why}")),
            }
        }
    }
    assert!(bad.is_empty(), "{}", bad.join("\n"));
    assert!(points >= 30, "only {points} kills");
    println!("{points} kills of undo from effect {first}");
}

/// One kill on an applied plan; says whether there was such an effect.
fn point(scene: &Scene, number: usize, side: &str) -> Result<bool, String> {
    let run = |line: &[&str]| Done::of(&mut scene.sandbar(line));
    let ok = |line: &[&str]| match run(line) {
        done if done.code == Some(0) => Ok(done),
        done => Err(format!("{}: {}{}", done.line, done.stdout, done.stderr)),
    };
    let is = |wanted: &tree::Tree, what: &str| {
        let differ = tree::difference(wanted, &tree::read(scene.root()));
        match differ.is_empty() {
            true => Ok(()),
            false => Err(format!("{what}: {differ:?}")),
        }
    };
    if scene.state()? != "applied" {
        ok(&["apply", PLAN])?;
        is(&scene.new, "applied")?;
    }
    let mut undo = scene.sandbar(&["undo", PLAN]);
    undo.env("SANDBAR_CRASH_AT", format!("{number}:{side}"));
    let done = Done::of(&mut undo);
    match done.code {
        None => {}
        Some(0) => return is(&scene.old, "undone").map(|()| false),
        Some(_) => return Err(format!("{}{}", done.stdout, done.stderr)),
    }
    let whole = scene.half_way();
    if !whole.is_empty() {
        return Err(format!("half-way: {whole:?}"));
    }
    ok(&["recover"])?;
    let state = scene.state()?;
    match &*state {
        "applied" => is(&scene.new, "applied after recovery")?,
        "review" => {
            is(&scene.old, "in review after recovery")?;
            ok(&["exec", PLAN, "--", "true"])?;
        }
        other => return Err(format!("after recovery the plan is {other}")),
    }
    let before = tree::exact(scene.root());
    ok(&["recover"])?;
    if tree::exact(scene.root()) != before || scene.state()? != state {
        return Err("a second recovery changed something".into());
    }
    if state == "applied" {
        ok(&["undo", PLAN])?;
        is(&scene.old, "undone at last")?;
    }
    Ok(true)
}

// conformance: APL-9 (undo) partial: kills of undo on one file system, APL-11 (killed)
#[test]
fn killed_at_effects_1_5_9() {
    quarter(1);
}

// conformance: APL-9 (undo) partial: kills of undo on one file system
#[test]
fn killed_at_effects_2_6_10() {
    quarter(2);
}

// conformance: APL-9 (undo) partial: kills of undo on one file system
#[test]
fn killed_at_effects_3_7_11() {
    quarter(3);
}

// conformance: APL-9 (undo) partial: kills of undo on one file system
#[test]
fn killed_at_effects_4_8_12() {
    quarter(4);
}
