//! Work that exists nowhere else: kept, or named as it goes, never lost on
//! the way (STR-9, CKP-4).
#![allow(
    clippy::disallowed_methods,
    reason = "tests write and inspect real trees with foreign means"
)]

use std::path::{Path, PathBuf};

use sandbar_tests::foreign::sh;
use sandbar_tests::product::{Done, World};
use sandbar_tests::{fixture, judge};

// conformance: STR-9 (what only the sandbox holds), CKP-6
#[test]
fn an_apply_keeps_a_root_that_holds_more_than_the_result() {
    let (world, repo) = (World::new(), fixture::small());
    let root = repo.root();
    let script = "echo '*.local' > .gitignore; echo secret > notes.local; echo x > plain";
    world.run(root, "p", script);
    // Carried, since the base did not ignore it.
    drop(world.ok(root, &["apply", "p"]));
    assert_eq!(
        std::fs::read_to_string(root.join("notes.local")).expect("a file"),
        "secret\n"
    );
    // Ignored under both: no part of the result, and nowhere else.
    world.run(root, "q", "echo more > other.local; echo y > plain");
    let status = world.json(root, &["status", "q"]);
    assert_eq!(
        status["ignored"], 2,
        "counted aloud, in the base and made inside: {status}"
    );
    let sandbox = world.sandbox(root, "q");
    let done = world.ok(root, &["apply", "q"]);
    assert!(done.stderr.contains("other.local"), "{}", done.stderr);
    assert!(!root.join("other.local").exists());
    assert_eq!(
        std::fs::read_to_string(sandbox.join("other.local")).expect("kept"),
        "more\n"
    );
    drop(world.ok(root, &["gc"]));
    assert!(
        sandbox.join("other.local").exists(),
        "collection waits for retention"
    );
    drop(world.ok(root, &["discard", "q"]));
    assert!(!sandbox.exists());
    // Rollback leaves what is ignored alone.
    world.run(root, "r", "echo mine > third.local; echo z > plain");
    drop(world.ok(root, &["rollback", "r", "--to", "1"]));
    let third = world.sandbox(root, "r").join("third.local");
    assert_eq!(
        std::fs::read_to_string(third).expect("left alone"),
        "mine\n"
    );
    let done = world.ok(root, &["discard", "r"]);
    assert!(
        done.stderr.contains("third.local"),
        "named as it goes: {}",
        done.stderr
    );
}

// conformance: CKP-4 (a replaced root)
#[test]
fn a_rollback_saves_a_root_that_somebody_replaced() {
    let (world, repo) = (World::new(), fixture::small());
    let root = repo.root();
    world.run(root, "p", "echo one > one");
    let sandbox = world.sandbox(root, "p");
    let text = sandbox.display();
    sh(
        root,
        &format!("cp -a {text} {text}2; rm -rf {text}; mv {text}2 {text}; echo gold > {text}/gold"),
    );
    drop(world.ok(root, &["rollback", "p", "--to", "1"]));
    assert!(!sandbox.join("gold").exists());
    let log = world.json(root, &["log", "p"]);
    let held = log["checkpoints"]
        .as_array()
        .expect("a list")
        .iter()
        .find(|c| c["step"] == "rollback");
    let number = held.expect("what was replaced is a checkpoint")["seq"].to_string();
    drop(world.ok(root, &["rollback", "p", "--to", &number]));
    assert_eq!(
        std::fs::read_to_string(sandbox.join("gold")).expect("back"),
        "gold\n"
    );
}

// conformance: BAD-26
#[test]
fn a_plan_whose_root_was_removed_can_be_made_again_or_discarded() {
    let (world, repo) = (World::new(), fixture::small());
    let root = repo.root();
    for plan in ["again", "drop"] {
        world.run(root, plan, "echo one > one");
        let sandbox = world.sandbox(root, plan);
        sh(root, &format!("rm -rf {}", sandbox.display()));
        let done = world.sandbar(root, &["status", plan, "--json"]).expect(1);
        assert_eq!(done.json()["error"]["code"], "sandbox_gone");
    }
    drop(world.ok(root, &["rollback", "again", "--to", "2"]));
    assert!(world.sandbox(root, "again").join("one").exists());
    judge::fsck(&world.sandbox(root, "again"));
    drop(world.ok(root, &["discard", "drop"]));
}

// conformance: STR-9 (collection beside running plans), ENV-9 partial: collection beside other processes
#[test]
fn collection_beside_new_plans_takes_nothing_of_theirs() {
    let (world, repo) = (World::new(), fixture::small());
    let root = repo.root();
    std::thread::scope(|scope| {
        let collector = scope.spawn(|| {
            for round in 0..12 {
                let name = format!("gone{round}");
                world.run(root, &name, "head -c 200000 /dev/urandom > noise");
                drop(world.ok(root, &["discard", &name]));
                drop(world.ok(root, &["gc", "--now"]));
            }
        });
        for round in 0..12 {
            world.run(
                root,
                &format!("live{round}"),
                &format!("echo {round} > made"),
            );
        }
        collector.join().expect("the collector ends well");
    });
    drop(world.ok(root, &["gc", "--now"]));
    for round in 0..12 {
        let plan = format!("live{round}");
        drop(world.ok(root, &["rollback", &plan, "--to", "1"]));
        drop(world.ok(root, &["rollback", &plan, "--to", "2"]));
        let made = world.sandbox(root, &plan).join("made");
        assert_eq!(
            std::fs::read_to_string(made).expect("restored"),
            format!("{round}\n")
        );
    }
    drop(world.ok(root, &["doctor"]));
}

struct Cut {
    world: World,
    repo: fixture::Repository,
    base: judge::CheckoutState,
}

impl Cut {
    fn new() -> Self {
        let (world, repo) = (World::new(), fixture::small());
        let root = repo.root();
        world.run(root, "p", "true");
        let base = judge::checkout(&world.sandbox(root, "p"));
        let script = "for n in 1 2 3; do echo $n > made$n; done; rm a.txt; git add -A; \
                      git -c user.name=n -c user.email=e commit -qm cut; git checkout -qb side";
        drop(world.ok(root, &["exec", "p", "--", "sh", "-euc", script]));
        Self { world, repo, base }
    }

    fn root(&self) -> &Path {
        self.repo.root()
    }

    fn sandbox(&self) -> PathBuf {
        self.world.sandbox(self.root(), "p")
    }
}

// conformance: CKP-4 (killed), APL-9 partial: kills of rollback
#[test]
fn a_rollback_that_is_killed_is_gone_on_with() {
    let mut landed = [0, 0];
    for number in (20..140).step_by(6) {
        let cut = Cut::new();
        let base = cut.base.clone();
        let before = judge::checkout(&cut.sandbox());
        let mut command = cut
            .world
            .command(cut.root(), &["rollback", "p", "--to", "1"]);
        command.env("SANDBAR_CRASH_AT", format!("{number}:before"));
        let done = Done::of(&mut command);
        if done.code == Some(0) {
            continue;
        }
        drop(cut.world.ok(cut.root(), &["recover"]));
        let after = judge::checkout(&cut.sandbox());
        let at = format!("killed before effect {number}");
        assert!(
            after == base || after == before,
            "{at}: neither old nor new:\n{after:#?}\nold {before:#?}\nnew {base:#?}"
        );
        landed[usize::from(after == base)] += 1;
        judge::fsck(&cut.sandbox());
        let again = cut.world.ok(cut.root(), &["recover"]);
        assert!(
            again.stdout.contains("nothing to recover"),
            "{at}: {}",
            again.stdout
        );
        drop(cut.world.ok(cut.root(), &["rollback", "p", "--to", "1"]));
        assert_eq!(judge::checkout(&cut.sandbox()), base, "{at}");
    }
    assert!(
        landed[0] > 0 && landed[1] > 0,
        "both sides of the mark were cut: {landed:?}"
    );
}
