//! What comes in between: a commit of the person's own while commits land, and
//! a data directory that can only be read.
#![allow(
    clippy::disallowed_methods,
    reason = "tests inspect real trees with foreign means"
)]

use sandbar_tests::foreign::{git, sh};
use sandbar_tests::mount::Mount;
use sandbar_tests::product::{Done, World};
use sandbar_tests::{fixture, judge};

// conformance: APL-10 (a commit in between), APL-3 (a commit in between)
#[test]
fn a_commit_between_the_check_and_the_move_is_never_lost() {
    for effect in ["git-index-lock", "git-ref"] {
        let (mut met, mut number) = (false, None);
        // How many effects come before varies a little: looked up, then met.
        while !met {
            let (world, repo) = (World::new(), fixture::small());
            let root = repo.root();
            let commit = "git -c user.name=A -c user.email=a@example.com commit";
            world.run(
                root,
                "p",
                &format!("echo b >> b.txt; {commit} -qam inside; echo n > new.txt"),
            );
            sh(root, "echo own >> a.txt");
            let old = judge::contents(root);
            let log = repo.scratch().join("effects");
            let mut apply = world.command(root, &["apply", "p", "--commit"]);
            apply.env("SANDBAR_EFFECT_LOG", &log);
            if let Some(number) = number {
                apply.env("SANDBAR_CRASH_AT", format!("{number}:before"));
            }
            let done = Done::of(&mut apply);
            let effects = std::fs::read_to_string(&log).expect("a log");
            let first = effects.lines().position(|line| line.ends_with(effect));
            let first = first.map(|at| at + 1);
            met = done.code.is_none() && first == number && first == Some(effects.lines().count());
            if !met {
                number = first.or(number.map(|number| number + 1));
                continue;
            }
            // The process is dead right before it moves anything.
            sh(
                root,
                "rm -f .git/index.lock; git add a.txt; git commit -qm 'the person was quicker'",
            );
            let own = git(root, &["rev-parse", "HEAD"]);
            drop(world.ok(root, &["recover"]));
            assert_eq!(git(root, &["rev-parse", "HEAD"]), own, "{effect}");
            assert_eq!(judge::contents(root), old, "{effect}: all is taken back");
            assert_eq!(judge::status(root), "", "{effect}");
            judge::fsck(root);
            let state = world.json(root, &["status", "p"])["plan"]["state"].clone();
            assert_eq!(state, "review", "{effect}");
            // Now that it is seen, both go together.
            drop(world.ok(root, &["apply", "p", "--commit"]));
            let log = git(root, &["log", "--format=%s", "-4"]);
            assert!(
                log.contains("inside") && log.contains("the person was quicker"),
                "{log}"
            );
            assert_eq!(
                sh(root, "tail -n1 a.txt; cat b.txt new.txt"),
                "own\nb\nb\nn\n"
            );
            judge::fsck(root);
        }
    }
}

// conformance: BAD-10 (the data directory) partial: containers and servers
#[test]
fn a_data_directory_that_can_only_be_read_can_still_be_looked_at() {
    let (world, repo) = (World::new(), fixture::small());
    let root = repo.root();
    world.run(root, "p", "echo more >> b.txt; echo n > new.txt");
    let data = world.data();
    let text = data.to_str().expect("UTF-8").to_owned();
    let patch = world.ok(root, &["diff", "p"]).stdout;
    let log = world.ok(root, &["log", "p"]).stdout;
    let bound = Mount::line(&["--bind", &text], &data);
    sh(
        repo.scratch(),
        &format!("mount -o remount,bind,ro '{text}'"),
    );
    let before = (judge::manifest(root), judge::manifest(&data));
    assert_eq!(world.ok(root, &["diff", "p"]).stdout, patch);
    assert_eq!(world.ok(root, &["log", "p"]).stdout, log);
    assert!(world.ok(root, &["plan", "list"]).stdout.contains("review"));
    assert_eq!(world.json(root, &["status", "p"])["changes"]["added"], 1);
    assert!(world.ok(root, &["path", "p"]).stdout.starts_with(&text));
    for (line, code) in [
        (&["apply", "p", "--json"][..], 1),
        (&["rollback", "p", "--to", "1", "--json"], 1),
        (&["checkpoint", "p", "--json"], 1),
        (&["discard", "p", "--json"], 1),
        (&["run", "--json", "--name", "q", "--", "true"], 125),
    ] {
        let done = world.sandbar(root, line).expect(code);
        let error = &done.json()["error"];
        assert_eq!(error["code"], "read_only", "{line:?}: {}", done.stdout);
    }
    before
        .0
        .assert_same(&judge::manifest(root), "the repository");
    before
        .1
        .assert_same(&judge::manifest(&data), "the data directory");
    drop(bound);
    drop(world.ok(root, &["apply", "p"]));
    assert_eq!(sh(root, "cat new.txt"), "n\n");
}
