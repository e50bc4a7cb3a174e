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

use std::path::PathBuf;

use sandbar_tests::fixture;
use sandbar_tests::harness::count::Count;
use sandbar_tests::harness::image::{Image, Kind};
use sandbar_tests::harness::scene::{PLAN, Scene, WORK};
use sandbar_tests::harness::{is_long, tree};
use sandbar_tests::product::{Done, World};

/// Points of the short size, in all.
const POINTS: usize = 30;

/// A scene on images, and a copy of it to go back to.
struct Stage {
    scene: Scene,
    images: Vec<Image>,
    copies: Vec<PathBuf>,
    _place: tempfile::TempDir,
}

impl Stage {
    fn new(kind: Kind, apart: bool) -> Self {
        let place = tempfile::tempdir().expect("scratch space");
        let mut images = vec![Image::new(place.path(), "data", kind)];
        if apart {
            images.push(Image::new(place.path(), "real", kind));
        }
        let real = images.last().expect("one at least").root();
        let world = World::at(images[0].root());
        let scene = Scene::of(world, fixture::small_at(real), WORK);
        let copies = (0..images.len())
            .map(|n| place.path().join(format!("copy-{n}")))
            .collect();
        let stage = Self {
            scene,
            images,
            copies,
            _place: place,
        };
        for image in &stage.images {
            image.sync();
        }
        stage.keep("");
        stage
    }

    /// Copies the images as they are.
    fn keep(&self, name: &str) {
        for (image, copy) in self.images.iter().zip(&self.copies) {
            image.copy(&copy.with_extension(format!("image{name}")));
        }
    }

    /// Goes back to copies.
    fn back_to(&self, name: &str) {
        for (image, copy) in self.images.iter().zip(&self.copies) {
            image.restore(&copy.with_extension(format!("image{name}")));
        }
    }

    /// The power fails now.
    fn fail(&self) {
        self.keep("now");
        self.back_to("now");
    }

    /// Lists the effects of an apply, by name.
    fn effects(&self) -> Vec<String> {
        let log = self._place.path().join("effects");
        let done = Done::of(self.scene.apply().env("SANDBAR_EFFECT_LOG", &log));
        drop(done.expect(0));
        let text = std::fs::read_to_string(&log).expect("a log");
        text.lines()
            .map(|line| line.split_once(' ').expect("number and name").1.to_owned())
            .collect()
    }

    /// Fails at one effect, and judges.
    fn point(&self, count: &mut Count, number: usize, side: &str, name: &str) {
        self.back_to("");
        let point = format!("{number}:{side}");
        let done = Done::of(self.scene.apply().env("SANDBAR_CRASH_AT", point));
        self.fail();
        count.point();
        let at = format!("power failed {side} effect {number}, {name}");
        if done.code.is_some() {
            count.found(&at, ["the effect did not come".to_owned()]);
        }
        count.found(&at, self.scene.half_way());
        let (_, bad) = self.scene.recovered();
        count.found(&at, bad);
    }

    /// Fails as soon as an apply said that it is done.
    fn acknowledged(&self, count: &mut Count) {
        self.back_to("");
        drop(Done::of(&mut self.scene.apply()).expect(0));
        self.fail();
        count.point();
        let (state, bad) = self.scene.recovered();
        let at = "power failed after an apply that was acknowledged";
        count.found(at, bad);
        if state != "applied" {
            count.found(at, [format!("the plan is {state}")]);
        }
    }

    /// Fails as soon as a checkpoint was acknowledged; it must be restored bit
    /// for bit.
    fn checkpointed(&self, count: &mut Count) {
        self.back_to("");
        let scene = &self.scene;
        let sandbox = scene.world.sandbox(scene.root(), PLAN);
        let script = "seq 1 90000 > big; echo s > small; rm a.txt; git add -A; git commit -qm in";
        let work = ["exec", PLAN, "--", "sh", "-euc", script];
        drop(scene.world.ok(scene.root(), &work));
        self.fail();
        count.point();
        let at = "power failed after a checkpoint that was acknowledged";
        let log = scene.world.json(scene.root(), &["log", PLAN]);
        let all = log["checkpoints"].as_array().cloned().unwrap_or_default();
        let newest = all.iter().filter_map(|one| one["seq"].as_u64()).max();
        let number = newest.unwrap_or_default().to_string();
        let done = Done::of(&mut scene.sandbar(&["rollback", PLAN, "--to", &number]));
        let now = tree::read(&sandbox);
        let lines: String = (1..=90_000).map(|n| format!("{n}\n")).collect();
        let is = |path: &str, wanted: &[u8]| {
            let found = now.get(std::path::Path::new(path));
            matches!(found, Some(tree::Node::File(false, bytes)) if bytes == wanted)
        };
        let whole = is("big", lines.as_bytes()) && is("small", b"s\n");
        if done.code != Some(0) || !whole || now.contains_key(std::path::Path::new("a.txt")) {
            let said = format!("{}{} {:?}", done.stdout, done.stderr, now.keys());
            count.found(at, [said]);
        }
        let log = Done::of(&mut {
            let mut git = sandbar_tests::foreign::command(&sandbox, "git");
            git.args(["log", "-1", "--format=%s"]);
            git
        });
        if log.stdout.trim() != "in" {
            count.found(
                at,
                [format!("the commit inside: {}{}", log.stdout, log.stderr)],
            );
        }
    }
}

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
    harness("apart", Kind::Ext4, true, points(POINTS));
}

// conformance: APL-9 (ext4)
#[test]
fn power_fails_on_one_file_system() {
    harness("together", Kind::Ext4, false, points(POINTS / 2));
}
