//! A data directory on another file system than the repository: objects that
//! cannot be linked are borrowed, and pinned so that nothing the person does
//! with git takes them away.
#![allow(
    clippy::disallowed_methods,
    reason = "tests inspect real trees with foreign means"
)]

use std::path::{Path, PathBuf};

use sandbar_tests::account::Account;
use sandbar_tests::fixture::{self, Repository};
use sandbar_tests::foreign::{command, git, output, sh, text};
use sandbar_tests::judge;
use sandbar_tests::mount::Mount;
use sandbar_tests::product::{Done, World};

/// A world whose data directory is a file system of its own, and a repository
/// with more objects than are copied.
struct Scene {
    world: World,
    repo: Repository,
    _mount: Mount,
    account: Option<Account>,
}

/// Makes everything that only one thing holds: a branch, a stash, a staged
/// file, and a blob that nothing holds at all.
const BEFORE: &str = "
    head -c 17000000 /dev/urandom > big.bin; git add big.bin; git commit -qm big
    git checkout -qb side; echo side > side.txt; git add side.txt; git commit -qm side
    git checkout -q main; echo stashed >> b.txt; git stash -q
    git gc -q
    echo loose > loose.txt; git add loose.txt; git commit -qm loose
    echo staged > staged.txt; git add staged.txt
    echo dangling | git hash-object -w --stdin
";

/// The same a second time, in short.
const AGAIN: &str = "
    git checkout -qb side; git commit -q --allow-empty -m side; git checkout -q main
    echo x >> b.txt; git stash -q; echo again > staged.txt; git add staged.txt
";

/// Takes all of that away, as far as git can.
const AFTER: &str = "
    git branch -qD side; git stash drop -q; git rm -qf --cached staged.txt
    git reflog expire --expire=now --all; git gc -q --prune=now
";

/// Uses all of it, in the sandbox.
const USE: &str = "
    git fsck --strict --no-dangling
    git log -p side >/dev/null; git stash show -p >/dev/null
    test \"$(git show :staged.txt)\" = staged
    test \"$(git show side:side.txt)\" = side
    echo dangling > dangling.txt; git add dangling.txt
    git -c user.name=Agent -c user.email=agent@example.com commit -qm inside
    git checkout -q side; git checkout -q main
";

impl Scene {
    fn new(account: Option<Account>) -> Self {
        let world = World::reachable();
        std::fs::create_dir(world.data()).expect("a data directory");
        let mount = Mount::at(&world.data(), "size=200m,mode=755");
        let repo = fixture::small();
        let scene = Self {
            world,
            repo,
            _mount: mount,
            account,
        };
        sh(
            scene.root(),
            "git config user.name Person; git config user.email p@example.com",
        );
        sh(scene.root(), BEFORE);
        if let Some(account) = &scene.account {
            account.give(scene.world.path());
            account.give(scene.repo.scratch());
        }
        scene
    }

    fn root(&self) -> &Path {
        self.repo.root()
    }

    fn sandbar(&self, arguments: &[&str]) -> Done {
        let mut command = self.world.command(self.root(), arguments);
        match &self.account {
            Some(account) => Done::of(account.owns(&mut command)),
            None => Done::of(&mut command),
        }
    }

    fn ok(&self, arguments: &[&str]) -> Done {
        self.sandbar(arguments).expect(0)
    }

    /// Runs a script in the place of the real path.
    fn inside(&self, line: &[&str], script: &str) -> Done {
        let mut arguments = line.to_vec();
        arguments.extend(["--", "sh", "-euc", script]);
        self.ok(&arguments)
    }

    fn sandbox(&self, plan: &str) -> PathBuf {
        PathBuf::from(self.ok(&["path", plan]).stdout.trim_end())
    }

    fn pins(&self) -> PathBuf {
        self.root().join(".git/sandbar/pins")
    }

    /// Runs a script in the real tree, as the person.
    fn person(&self, script: &str) {
        let mut sh = command(self.root(), "sh");
        sh.args(["-euc", script]);
        match &self.account {
            Some(account) => drop(text(account.owns(&mut sh))),
            None => drop(text(&mut sh)),
        }
    }

    /// Ends the test if any pin is in the person's repository.
    fn assert_nothing_left(&self, at: &str) {
        let there = self.pins().exists();
        assert!(
            !there,
            "{at}: {}",
            sh(&self.root().join(".git"), "find sandbar")
        );
        let refs = git(self.root(), &["for-each-ref", "refs/sandbar"]);
        assert_eq!(refs, "", "{at}");
    }
}

fn goes_round(account: Option<Account>) {
    let scene = Scene::new(account);
    let root = scene.root();
    let side = git(root, &["rev-parse", "side"]);
    let before = judge::manifest(root);
    let done = scene.inside(
        &["run", "--name", "a", "--view", "in-place"],
        "git fsck --strict; echo a >> a.txt",
    );
    assert!(done.stderr.contains("pinned"), "{}", done.stderr);
    // The time of the git directory itself tells that something is new in it.
    let ours = |line: &String| line.contains(".git/sandbar") || line.starts_with(".git\n");
    let difference = before.difference(&judge::manifest(root));
    let others: Vec<_> = difference.iter().filter(|line| !ours(line)).collect();
    assert!(others.is_empty(), "{others:?}");
    let sandbox = scene.sandbox("a");
    let big = "find .git/objects -type f -size +1M | wc -l";
    assert_eq!(sh(&sandbox, big), "0\n", "objects were copied");

    // The person cleans up; only the pins hold on to it.
    scene.person(AFTER);
    let gone = output(command(root, "git").args(["cat-file", "-e", &side]));
    assert!(!gone.status.success(), "the person's git still has {side}");
    judge::fsck(root);
    scene.inside(&["exec", "a"], USE);
    judge::fsck(&sandbox);
    let state = judge::checkout(&sandbox);
    scene.inside(
        &["exec", "a"],
        "git gc -q --prune=now; git branch -qD side; rm -r src; git commit -qam less",
    );
    judge::fsck(&sandbox);
    let number =
        |at: usize| scene.ok(&["log", "a", "--json"]).json()["checkpoints"][at]["seq"].to_string();
    let used = number(2);
    drop(scene.ok(&["rollback", "a", "--to", &used]));
    assert_eq!(judge::checkout(&sandbox), state);
    // Made again from nothing.
    std::fs::remove_dir_all(&sandbox).expect("the root goes");
    drop(scene.ok(&["rollback", "a", "--to", &used]));
    assert_eq!(judge::checkout(&sandbox), state);
    scene.inside(
        &["exec", "a"],
        "git fsck --strict --no-dangling; git log -p side >/dev/null",
    );
    drop(scene.ok(&["checkpoint", "a", "-m", "again"]));
    assert_eq!(
        scene.ok(&["doctor", "--json"]).json()["findings"],
        serde_json::json!([])
    );

    drop(scene.ok(&["apply", "a", "--commit"]));
    judge::fsck(root);
    assert_eq!(git(root, &["log", "-1", "--format=%s", "HEAD~1"]), "inside");
    assert_eq!(git(root, &["show", "HEAD:dangling.txt"]), "dangling");
    drop(scene.ok(&["gc", "--now"]));
    scene.assert_nothing_left("after apply and gc");
    judge::fsck(root);

    // Once more, uncommitted, and dropped.
    scene.person(AGAIN);
    scene.inside(&["run", "--name", "b"], "git rm -q loose.txt");
    assert!(scene.pins().is_dir());
    scene.person(AFTER);
    drop(scene.ok(&["apply", "b", "--dry-run"]));
    scene.inside(&["run", "--name", "c"], "echo c > c.txt");
    drop(scene.ok(&["apply", "c"]));
    assert_eq!(sh(root, "cat c.txt"), "c\n");
    drop(scene.ok(&["discard", "b"]));
    drop(scene.ok(&["discard", "c"]));
    scene.assert_nothing_left("after discard");
}

// conformance: STR-1 (borrowed objects), PLN-4 (borrowed objects)
#[test]
fn pins_outlast_what_root_does_with_git() {
    goes_round(None);
}

// conformance: STR-1 (borrowed objects, account)
#[test]
fn pins_outlast_what_an_account_does_with_git() {
    goes_round(Some(Account::new()));
}

// conformance: STR-1 (borrowed objects of a linked worktree)
#[test]
fn a_linked_worktree_borrows_too() {
    let scene = Scene::new(None);
    let root = scene.root();
    let other = scene.repo.scratch().join("other");
    sh(root, "git worktree add -q ../other");
    let script = "git fsck --strict --no-dangling; git log -p side >/dev/null; rm src/c.txt";
    let line = [
        "run", "--name", "w", "--view", "in-place", "--", "sh", "-euc", script,
    ];
    drop(scene.world.ok(&other, &line));
    assert!(scene.pins().is_dir());
    scene.person(AFTER);
    let sandbox = scene.world.sandbox(&other, "w");
    judge::fsck(&sandbox);
    assert_eq!(git(&sandbox, &["show", "side:side.txt"]), "side");
    drop(scene.world.ok(&other, &["apply", "w"]));
    drop(scene.world.ok(&other, &["discard", "w"]));
    scene.assert_nothing_left("after discard");
}

// conformance: STR-1 (borrowed objects of submodules)
#[test]
fn submodules_borrow_too() {
    let scene = Scene::new(None);
    let root = scene.root();
    sh(
        root,
        "git init -q ../sub; cd ../sub; echo s > s.txt; git add s.txt; git commit -qm sub; cd ../repo
         git -c protocol.file.allow=always submodule --quiet add ../sub sub; git commit -qm 'with sub'
         cd sub; git checkout -q --detach; echo more >> s.txt; git add s.txt",
    );
    let script = "git fsck --strict --no-dangling; git -C sub fsck --strict --no-dangling
                  test \"$(git -C sub show HEAD:s.txt)\" = s; git -C sub show :s.txt | grep more";
    scene.inside(&["run", "--name", "m", "--view", "in-place"], script);
    scene.person(AFTER);
    sh(root, "cd sub; git reset -q --hard; git gc -q --prune=now");
    let sandbox = scene.sandbox("m");
    judge::fsck(&sandbox);
    judge::fsck(&sandbox.join("sub"));
    assert_eq!(sh(&sandbox, "git -C sub show :s.txt"), "s\nmore\n");
    drop(scene.ok(&["discard", "m"]));
    scene.assert_nothing_left("after discard");
}

// conformance: STR-1 (small repositories stand alone)
#[test]
fn few_objects_are_copied_and_stand_alone() {
    let world = World::new();
    std::fs::create_dir(world.data()).expect("a data directory");
    let _mount = Mount::at(&world.data(), "size=50m");
    let repo = fixture::small();
    let root = repo.root();
    world.run(root, "s", "echo s > s.txt");
    assert!(!root.join(".git/sandbar").exists());
    let sandbox = world.sandbox(root, "s");
    assert!(!sandbox.join(".git/objects/info/alternates").exists());
    let away = repo.scratch().join("away");
    std::fs::rename(root.join(".git"), &away).expect("the git directory goes");
    judge::fsck(&sandbox);
    std::fs::rename(&away, root.join(".git")).expect("and comes back");
    drop(world.ok(root, &["apply", "s"]));
}

// conformance: STR-9 (pins after a crash)
#[test]
fn a_creation_that_is_killed_leaves_pins_that_are_found() {
    let scene = Scene::new(None);
    let root = scene.root();
    let log = scene.repo.scratch().join("effects");
    let line = ["run", "--name", "k", "--", "true"];
    let mut command = scene.world.command(root, &line);
    drop(Done::of(command.env("SANDBAR_EFFECT_LOG", &log)).expect(0));
    drop(scene.ok(&["discard", "k"]));
    drop(scene.ok(&["gc", "--now"]));
    scene.assert_nothing_left("before");
    let names: Vec<String> = std::fs::read_to_string(&log)
        .expect("a log")
        .lines()
        .map(str::to_owned)
        .collect();
    let linked = |name: &String| name.ends_with(" link");
    let first = names.iter().position(linked).expect("links are made");
    let mut left = 0;
    for number in (first..names.len()).step_by(7) {
        let mut command = scene.world.command(root, &line);
        let point = format!("{number}:after");
        let done = Done::of(command.env("SANDBAR_CRASH_AT", &point));
        // How many effects there are varies a little.
        assert!(
            matches!(done.code, None | Some(0)),
            "{point}: {}",
            done.stderr
        );
        left += usize::from(scene.pins().exists());
        drop(scene.ok(&["recover"]));
        drop(scene.sandbar(&["discard", "k"]));
        drop(scene.ok(&["gc", "--now"]));
        scene.assert_nothing_left(&point);
        assert_eq!(sh(&scene.world.data().join("s"), "ls"), "", "{point}");
    }
    assert!(left > 5, "only {left} kills left pins");
    judge::fsck(root);
}

// conformance: STR-9 (pins without a sandbox)
#[test]
fn pins_that_nobody_needs_and_pins_that_are_gone_are_named() {
    let scene = Scene::new(None);
    let root = scene.root();
    scene.inside(&["run", "--name", "a"], "true");
    scene.inside(&["run", "--name", "b"], "true");
    let findings = || {
        let document = scene.sandbar(&["doctor", "--json"]).json();
        let kinds = document["findings"].as_array().expect("a list").iter();
        let mut kinds: Vec<_> = kinds
            .map(|f| f["kind"].as_str().unwrap_or("").to_owned())
            .collect();
        kinds.sort();
        kinds
    };
    assert!(findings().is_empty());
    // One place removed by hand, the pins of the other.
    let place = |plan: &str| scene.sandbox(plan).parent().expect("a place").to_owned();
    let (a, b) = (place("a"), place("b"));
    std::fs::remove_dir_all(&a).expect("a place goes");
    let of_b = format!("*{}", b.file_name().expect("a name").to_string_lossy());
    sh(&scene.pins(), &format!("rm -r ./{of_b}"));
    assert_eq!(findings(), ["pins_gone", "sandbox_gone", "stray_pins"]);
    drop(scene.ok(&["gc"]));
    assert!(!scene.pins().exists());
    drop(scene.ok(&["discard", "b"]));
    scene.assert_nothing_left("after gc");
    judge::fsck(root);
}
