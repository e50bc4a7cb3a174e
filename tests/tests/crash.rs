//! Apply is killed before and after each of its numbered effects; what is
//! left, and what recovery makes of it, is judged by foreign tools.
//!
//! After a kill each file is wholly old or wholly new. After one `recover`
//! the tree is all old or all new, the plan says which, and nothing that was
//! displaced is lost. A second `recover` changes nothing.
#![allow(
    clippy::disallowed_methods,
    reason = "tests inspect real trees with foreign means"
)]

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

use sandbar_tests::fixture::{self, Repository};
use sandbar_tests::foreign::sh;
use sandbar_tests::product::{Done, World};
use sandbar_tests::{judge, trace};

/// How many effects the apply of this scene has from its preflight on. A change
/// here is a change of what apply does to the disk: look at it before taking
/// the new number. The scan before it varies: what is younger than the clock's
/// grain is read again.
const EFFECTS: usize = 80;

/// More than the scan ever has.
const SCAN: usize = 40;

/// Each kind of operation once.
const WORK: &str = "
    sed -i 's/^line 7$/line seven/' a.txt
    chmod +x b.txt
    rm -r src
    mkdir -p new/deep
    echo n > new/deep/n.txt
    ln -s b.txt new/link
    rm kind; ln -s a.txt kind
    ln -sf b.txt link
    rm dir.txt; mkdir dir.txt; echo inner > dir.txt/inner
";

type Contents = BTreeMap<String, String>;

/// A plan that is ready to be applied, and what must come of it.
struct Scene {
    world: World,
    repo: Repository,
    old: Contents,
    new: Contents,
    git: judge::Manifest,
}

impl Scene {
    fn new() -> Self {
        let (world, repo) = (World::new(), fixture::small());
        let root = repo.root();
        sh(
            root,
            "echo kind > kind; ln -s a.txt link; echo d > dir.txt; git add -A; git commit -qm more
             echo 'not committed' >> a.txt; echo untracked > mine.txt",
        );
        world.run(root, "k", WORK);
        let old = judge::contents(root);
        let new = judge::contents(&world.sandbox(root, "k"));
        let git = judge::manifest(&root.join(".git"));
        Self {
            world,
            repo,
            old,
            new,
            git,
        }
    }

    fn root(&self) -> &Path {
        self.repo.root()
    }

    fn state(&self) -> String {
        let status = self.world.json(self.root(), &["status", "k"]);
        status["plan"]["state"]
            .as_str()
            .expect("a state")
            .to_owned()
    }

    /// Prepares an apply that leaves the sandbox: cleaning up is many effects,
    /// in no order, on nothing that anybody needs.
    fn apply(&self) -> Command {
        let mut command = self.world.command(self.root(), &["apply", "k"]);
        command.env("SANDBAR_SANDBOX_CLEANUP", "manual");
        command
    }

    /// Kills apply around one effect; says whether there was such an effect.
    fn kill(&self, number: usize, side: &str) -> bool {
        let point = format!("{number}:{side}");
        let done = Done::of(self.apply().env("SANDBAR_CRASH_AT", point));
        match done.code {
            None => true,
            Some(0) => false,
            Some(_) => panic!("{}{}", done.stdout, done.stderr),
        }
    }

    /// Judges the tree right after a kill.
    fn assert_whole(&self, at: &str) {
        for (path, now) in judge::contents(self.root()) {
            let sides = [self.old.get(&path), self.new.get(&path)];
            assert!(
                sides.contains(&Some(&now)),
                "{at}: {path} is neither old nor new: {now}"
            );
        }
    }

    /// Recovers, and judges the end.
    fn recover(&self, at: &str) {
        drop(self.world.ok(self.root(), &["recover"]));
        let now = judge::contents(self.root());
        let state = self.state();
        match state.as_str() {
            "applied" => assert_eq!(now, self.new, "{at}"),
            "review" => assert_eq!(now, self.old, "{at}"),
            other => panic!("{at}: the plan is {other}"),
        }
        let git = self
            .git
            .difference(&judge::manifest(&self.root().join(".git")));
        assert!(
            git.is_empty(),
            "{at}: the git directory changed:\n{}",
            git.join("\n")
        );
        if state == "applied" {
            self.assert_displaced_kept(at);
        }
        let again = judge::manifest(self.root());
        drop(self.world.ok(self.root(), &["recover"]));
        again.assert_same(&judge::manifest(self.root()), at);
        assert_eq!(self.state(), state, "{at}");
        if state == "review" {
            drop(self.world.ok(self.root(), &["apply", "k"]));
            assert_eq!(
                judge::contents(self.root()),
                self.new,
                "{at}: applied again"
            );
        }
    }

    /// Every file that went has its bytes in the keep-aside directory.
    fn assert_displaced_kept(&self, at: &str) {
        let kept = sh(&self.world.data(), "find . -type f -exec sha256sum {} +");
        let kept: BTreeSet<&str> = kept
            .lines()
            .filter_map(|line| line.split(' ').next())
            .collect();
        for (path, old) in &self.old {
            let gone = self.new.get(path).is_none_or(|new| hash(new) != hash(old));
            if let Some(hash) = hash(old).filter(|_| gone) {
                assert!(
                    kept.contains(hash),
                    "{at}: the old bytes of {path} are lost"
                );
            }
        }
    }
}

fn hash(word: &str) -> Option<&str> {
    word.strip_prefix("file ")
        .or_else(|| word.strip_prefix("executable "))
}

fn names(log: &Path) -> Vec<String> {
    let text = std::fs::read_to_string(log).unwrap_or_default();
    text.lines()
        .map(|line| line.split_once(' ').expect("number and name").1.to_owned())
        .collect()
}

/// Every fourth effect, from `first`: four tests share the work.
fn quarter(first: usize) {
    let (mut bad, mut killed) = (Vec::new(), 0);
    for number in (first..=SCAN + EFFECTS).step_by(4) {
        for side in ["before", "after"] {
            let at = format!("killed {side} effect {number}");
            // A thread of its own, so that every bad point is named, not only
            // the first.
            let point = std::thread::Builder::new().name(at.clone()).spawn({
                let at = at.clone();
                move || {
                    let scene = Scene::new();
                    let reached = scene.kill(number, side);
                    scene.assert_whole(&at);
                    scene.recover(&at);
                    reached
                }
            });
            match point.expect("a thread").join() {
                Ok(reached) => killed += usize::from(reached),
                Err(_) => bad.push(at),
            }
        }
    }
    assert!(bad.is_empty(), "{}", bad.join("\n"));
    // Two sides of a quarter of them.
    assert!(killed >= EFFECTS / 2, "only {killed} kills");
}

// conformance: APL-9 partial: kills of apply on one file system; power loss
#[test]
fn killed_at_effects_1_5_9() {
    quarter(1);
}

// conformance: APL-9 partial: kills of apply on one file system; power loss
#[test]
fn killed_at_effects_2_6_10() {
    quarter(2);
}

// conformance: APL-9 partial: kills of apply on one file system; power loss
#[test]
fn killed_at_effects_3_7_11() {
    quarter(3);
}

// conformance: APL-9 partial: kills of apply on one file system; power loss
#[test]
fn killed_at_effects_4_8_12() {
    quarter(4);
}

// conformance: APL-9 (pinned) partial: kills of apply on one file system; power loss
#[test]
fn the_effects_are_counted_and_strace_agrees() {
    let scene = Scene::new();
    let log = scene.repo.scratch().join("effects");
    let mut apply = scene.apply();
    apply.env("SANDBAR_EFFECT_LOG", &log);
    let (done, calls) = trace::mutating(&apply, &scene.repo.scratch().join("trace"));
    drop(done.expect(0));
    let names = names(&log);
    let scan = names
        .iter()
        .take_while(|name| *name != "probe-mount")
        .count();
    assert!(scan <= SCAN, "{}", names.join(" "));
    assert_eq!(names.len() - scan, EFFECTS, "{}", names.join(" "));

    // The store's own files are written inside its commits, each one effect.
    // What is printed is no effect.
    let ours = |call: &trace::Call| {
        let inside = call.concerns(scene.world.path()) || call.concerns(scene.repo.scratch());
        let foreign = ["/sandbar.db", "/effects", "<pipe:"]
            .iter()
            .any(|word| call.arguments.contains(word));
        inside && !foreign
    };
    let mut witnessed: BTreeMap<&str, usize> = BTreeMap::new();
    for call in calls.iter().filter(|call| ours(call)) {
        *witnessed.entry(kind_of_call(call)).or_default() += 1;
    }
    // SQLite syncs its directory once, when it makes its log.
    *witnessed.entry("fsync").or_default() -= 1;
    let mut counted: BTreeMap<&str, usize> = BTreeMap::new();
    for name in &names {
        *counted.entry(kind_of_effect(name)).or_default() += 1;
    }
    counted.remove("store");
    assert_eq!(witnessed, counted);
}

/// Names the kind of a system call, in the words of [`kind_of_effect`].
fn kind_of_call(call: &trace::Call) -> &'static str {
    match call.name.as_str() {
        "rename" | "renameat" | "renameat2" => "rename",
        "unlinkat" if call.arguments.contains("AT_REMOVEDIR") => "rmdir",
        "unlink" | "unlinkat" => "unlink",
        "mkdir" | "mkdirat" => "mkdir",
        "symlink" | "symlinkat" => "symlink",
        "link" | "linkat" => "link",
        "fsync" | "fdatasync" => "fsync",
        "utimensat" => "set-times",
        "write" | "pwrite64" | "writev" | "pwritev" => "write",
        "chmod" | "fchmod" | "fchmodat" | "fchmodat2" => "chmod",
        "open" | "openat" | "openat2" | "creat" => "create-file",
        _ => "other",
    }
}

/// Names the kind of an effect.
fn kind_of_effect(name: &str) -> &'static str {
    match name {
        "rename" | "rename-exchange" | "rename-noreplace" | "probe-mount" => "rename",
        "fsync-file" | "fsync-dir" => "fsync",
        "write" | "write-at" => "write",
        "create-file" | "open-append" => "create-file",
        "store-commit" => "store",
        "rmdir" => "rmdir",
        "unlink" => "unlink",
        "mkdir" => "mkdir",
        "symlink" => "symlink",
        "link" => "link",
        "set-times" => "set-times",
        "chmod" => "chmod",
        _ => "other",
    }
}
