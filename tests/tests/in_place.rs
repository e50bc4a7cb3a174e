//! The in-place view: literal absolute paths lead into the sandbox, for root
//! and for an ordinary account. Not having the view here is a failure.
#![allow(
    clippy::disallowed_methods,
    reason = "tests inspect real trees with foreign means"
)]

use sandbar_tests::account::Account;
use sandbar_tests::product::{Done, World};
use sandbar_tests::{fixture, judge};

/// Writes by the literal real path, far away from it, and uses git there.
fn script(root: &std::path::Path) -> String {
    let root = root.display();
    format!(
        "test \"$(pwd)\" = {root}
         cd /
         echo absolute >> {root}/a.txt
         echo new > {root}/src/new.txt
         rm {root}/b.txt
         cd {root}/src
         test \"$(git rev-parse --show-toplevel)\" = {root}
         git -c user.name=Agent -c user.email=agent@example.com commit -qam inside
         test -z \"$(git status --porcelain --untracked-files=no)\""
    )
}

fn check(world: &World, root: &std::path::Path, account: Option<&Account>) {
    let before = judge::manifest(root);
    let run = |arguments: &[&str]| {
        let mut command = world.command(root, arguments);
        match account {
            Some(account) => Done::of(account.owns(&mut command)),
            None => Done::of(&mut command),
        }
    };
    let script = script(root);
    let done = run(&[
        "run", "--json", "--name", "abs", "--view", "in-place", "--", "sh", "-euc", &script,
    ]);
    let document = done.expect(0).json();
    before.assert_same(&judge::manifest(root), "the repository");
    assert_eq!(document["sandboxes"][0]["view"], "in-place");
    assert_eq!(
        document["changes"],
        serde_json::json!({"added": 1, "modified": 1, "deleted": 1})
    );
    drop(run(&["apply", "abs"]).expect(0));
    assert_eq!(judge::status(root), " M a.txt\n D b.txt\n?? src/new.txt\n");
    judge::fsck(root);
}

// conformance: STR-7 (root) partial: --confine and the docker socket
#[test]
fn root_writes_by_absolute_path_into_the_sandbox() {
    let (world, repo) = (World::new(), fixture::small());
    check(&world, repo.root(), None);
}

// conformance: STR-7 (account) partial: --confine and the docker socket
#[test]
fn an_account_writes_by_absolute_path_into_the_sandbox() {
    let account = Account::new();
    let (world, repo) = (World::reachable(), fixture::small());
    account.give(world.path());
    account.give(repo.scratch());
    check(&world, repo.root(), Some(&account));
}

// conformance: STR-7 (plain)
#[test]
fn the_plain_view_runs_in_the_sandbox_and_tells_when_the_real_tree_changed() {
    let (world, repo) = (World::new(), fixture::small());
    let root = repo.root();
    let done = world.ok(
        root,
        &["run", "--name", "p", "--view", "plain", "--", "pwd"],
    );
    let sandbox = world.sandbox(root, "p");
    assert!(
        done.stdout.starts_with(&format!("{}\n", sandbox.display())),
        "{}",
        done.stdout
    );
    assert_ne!(sandbox, root);
    let escape = format!("echo x >> {}/b.txt", root.display());
    let done = world.ok(
        root,
        &[
            "run", "--name", "q", "--view", "plain", "--", "sh", "-c", &escape,
        ],
    );
    let name = root.display().to_string();
    assert!(
        done.stderr.contains("CHANGED") && done.stderr.contains(&name),
        "{}",
        done.stderr
    );
}
