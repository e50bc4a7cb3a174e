//! A scene on file systems of its own, whose power can be cut.

use std::path::{Path, PathBuf};

use super::count::Count;
use super::image::{Image, Kind};
use super::scene::{PLAN, Scene, WORK};
use super::tree;
use crate::fixture;
use crate::product::{Done, World};

/// A scene on images, and a copy of it to go back to.
pub struct Stage {
    /// What is on them.
    pub scene: Scene,
    images: Vec<Image>,
    copies: Vec<PathBuf>,
    _place: tempfile::TempDir,
}

impl Stage {
    /// Makes a scene; with `apart` data directory and repository are on two file
    /// systems.
    pub fn new(kind: Kind, apart: bool) -> Self {
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
    pub fn effects(&self) -> Vec<String> {
        let log = self._place.path().join("effects");
        let done = Done::of(self.scene.apply().env("SANDBAR_EFFECT_LOG", &log));
        drop(done.expect(0));
        let text = std::fs::read_to_string(&log).expect("a log");
        text.lines()
            .map(|line| line.split_once(' ').expect("number and name").1.to_owned())
            .collect()
    }

    /// Fails at one effect, and judges.
    pub fn point(&self, count: &mut Count, number: usize, side: &str, name: &str) {
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
    pub fn acknowledged(&self, count: &mut Count) {
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
    pub fn checkpointed(&self, count: &mut Count) {
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
            let found = now.get(Path::new(path));
            matches!(found, Some(tree::Node::File(false, bytes)) if bytes == wanted)
        };
        let whole = is("big", lines.as_bytes()) && is("small", b"s\n");
        if done.code != Some(0) || !whole || now.contains_key(Path::new("a.txt")) {
            let said = format!("{}{} {:?}", done.stdout, done.stderr, now.keys());
            count.found(at, [said]);
        }
        let log = Done::of(&mut {
            let mut git = crate::foreign::command(&sandbox, "git");
            git.args(["log", "-1", "--format=%s"]);
            git
        });
        let fsck = Done::of(&mut {
            let mut git = crate::foreign::command(&sandbox, "git");
            git.args(["fsck", "--full", "--no-dangling", "--no-progress"]);
            git
        });
        if fsck.code != Some(0) {
            count.found(at, [format!("git fsck: {}{}", fsck.stdout, fsck.stderr)]);
        }
        if log.stdout.trim() != "in" {
            count.found(
                at,
                [format!("the commit inside: {}{}", log.stdout, log.stderr)],
            );
        }
    }
}
