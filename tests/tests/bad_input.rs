//! What must be refused: by name, with the right code, and with nothing
//! changed: not the repository, not a directory beside it, not the store.
#![allow(
    clippy::disallowed_methods,
    reason = "tests inspect real trees with foreign means"
)]

use std::path::{Path, PathBuf};

use sandbar_tests::account::Account;
use sandbar_tests::fixture::Repository;
use sandbar_tests::foreign::{command, git, sh, text};
use sandbar_tests::mount::Mount;
use sandbar_tests::product::{Done, World};
use sandbar_tests::{fixture, judge};

/// A repository, a sentinel beside it, and a plan that was made before.
struct Scene {
    world: World,
    repo: Repository,
    sentinel: PathBuf,
}

impl Scene {
    fn new() -> Self {
        let (world, repo) = (World::new(), fixture::small());
        let sentinel = repo.scratch().join("outside");
        sh(
            repo.scratch(),
            "mkdir -p outside/src; echo precious > outside/src/c.txt; echo p > outside/b.txt",
        );
        let scene = Self {
            world,
            repo,
            sentinel,
        };
        drop(
            scene
                .world
                .ok(scene.root(), &["run", "--name", "before", "--", "true"]),
        );
        scene
    }

    fn root(&self) -> &Path {
        self.repo.root()
    }

    fn plans(&self) -> String {
        self.world.json(self.root(), &["plan", "list"]).to_string()
    }

    /// Runs a line that must be refused with `code`, and sees that nothing
    /// else came of it. Returns the document.
    fn refused(&self, dir: &Path, line: &[&str], code: &str, exit: i32) -> serde_json::Value {
        let before = (
            judge::manifest(self.root()),
            judge::manifest(&self.sentinel),
            self.plans(),
        );
        let mut words = line.to_vec();
        let at = words
            .iter()
            .position(|word| *word == "--")
            .unwrap_or(words.len());
        words.insert(at, "--json");
        let done = self.world.sandbar(dir, &words);
        let document = done.json();
        assert_eq!(document["error"]["code"], code, "{}: {document}", done.line);
        assert_eq!(done.code, Some(exit), "{}: {document}", done.line);
        before
            .0
            .assert_same(&judge::manifest(self.root()), "the repository");
        before
            .1
            .assert_same(&judge::manifest(&self.sentinel), "the sentinel");
        assert_eq!(self.plans(), before.2, "{}", done.line);
        document
    }

    /// As [`Scene::refused`], for a `run` in the repository.
    fn run_refused(&self, code: &str) -> serde_json::Value {
        self.refused(
            self.root(),
            &["run", "--name", "new", "--", "true"],
            code,
            125,
        )
    }
}

// conformance: BAD-2 partial: registered roots
#[test]
fn the_file_system_root_and_the_home_are_no_resources() {
    let scene = Scene::new();
    let home = scene.world.home();
    for dir in [Path::new("/"), &home] {
        scene.refused(
            dir,
            &["run", "--name", "new", "--", "true"],
            "root_refused",
            125,
        );
    }
}

// conformance: BAD-1
#[test]
fn commits_need_a_repository() {
    let scene = Scene::new();
    let world = &scene.world;
    let dir = scene.repo.scratch().join("plain");
    std::fs::create_dir(&dir).expect("a directory");
    world.run(&dir, "files", "echo x > f");
    let commit = ["apply", "files", "--commit"];
    let document = scene.refused(&dir, &commit, "missing_capability", 4);
    assert!(document.to_string().contains("copy_on_write"), "{document}");
    assert!(!dir.join("f").exists());
    // No longer a checkout, though the plan began in one.
    scene.world.run(scene.root(), "repo", "echo x > f");
    sh(scene.root(), "mv .git ../away");
    scene.refused(scene.root(), &["apply", "repo"], "not_a_repository", 5);
    sh(scene.root(), "mv ../away .git");
    drop(scene.world.ok(scene.root(), &["apply", "repo", "--commit"]));
}

// conformance: BAD-6, ENV-3 partial: sessions
#[test]
fn special_files_are_refused_by_name() {
    for (make, name) in [
        ("mkfifo src/pipe", "src/pipe"),
        ("mknod src/device c 1 3", "src/device"),
        (
            "perl -MIO::Socket::UNIX -e 'IO::Socket::UNIX->new(Local=>\"src/socket\",Listen=>1) or die'",
            "src/socket",
        ),
    ] {
        let scene = Scene::new();
        sh(scene.root(), make);
        let document = scene.run_refused("unsupported_entry");
        assert!(document.to_string().contains(name), "{document}");
    }
}

// conformance: BAD-6 (made inside)
#[test]
fn special_files_made_inside_are_named_and_never_applied() {
    let scene = Scene::new();
    let root = scene.root();
    let done = scene
        .world
        .run(root, "fifo", "mkfifo src/pipe; echo x > src/new.txt");
    assert!(done.stderr.contains("src/pipe"), "{}", done.stderr);
    let document = scene.refused(root, &["apply", "fifo"], "unsupported_entry", 4);
    assert!(document.to_string().contains("src/pipe"), "{document}");
}

// conformance: BAD-7
#[test]
fn names_that_are_not_text_are_refused() {
    let scene = Scene::new();
    sh(scene.root(), "printf x > \"$(printf 'src/bad\\377name')\"");
    scene.run_refused("unsupported_entry");
}

// conformance: BAD-8
#[test]
fn paths_that_are_too_long_are_refused() {
    let (world, repo) = (World::new(), fixture::small());
    let deep =
        "my $n = 'd' x 250; for (1..20) { mkdir $n or die; chdir $n or die } open F, '>f' or die";
    text(command(repo.root(), "perl").args(["-e", deep]));
    let line = ["run", "--json", "--name", "n", "--", "true"];
    let done = world.sandbar(repo.root(), &line).expect(125);
    assert_eq!(
        done.json()["error"]["code"],
        "unsupported_entry",
        "{}",
        done.stdout
    );
}

// conformance: BAD-9
#[test]
fn an_unreadable_file_is_named() {
    let account = Account::new();
    let (world, repo) = (World::reachable(), fixture::small());
    account.give(world.path());
    account.give(repo.scratch());
    sh(repo.root(), "chmod 000 src/c.txt");
    let before = judge::manifest(repo.root());
    let line = ["run", "--json", "--name", "n", "--", "true"];
    let mut run = world.command(repo.root(), &line);
    let done = Done::of(account.owns(&mut run)).expect(125);
    let document = done.json();
    assert_eq!(document["error"]["code"], "permission_denied", "{document}");
    assert!(document.to_string().contains("src/c.txt"), "{document}");
    before.assert_same(&judge::manifest(repo.root()), "the repository");
}

// conformance: BAD-10, APL-4 partial: containers and servers
#[test]
fn a_target_that_cannot_be_written_is_found_before_the_first_write() {
    let account = Account::new();
    let (world, repo) = (World::reachable(), fixture::small());
    account.give(world.path());
    account.give(repo.scratch());
    let root = repo.root();
    let run = |line: &[&str]| Done::of(account.owns(&mut world.command(root, line)));
    drop(
        run(&[
            "run",
            "--name",
            "n",
            "--",
            "sh",
            "-euc",
            "echo x >> a.txt; echo y > src/new.txt",
        ])
        .expect(0),
    );
    sh(root, "chmod a-w src");
    let before = judge::manifest(root);
    let done = run(&["apply", "n", "--json"]).expect(1);
    let code = &done.json()["error"]["code"];
    assert!(
        code == "permission_denied" || code == "read_only",
        "{}",
        done.stdout
    );
    assert!(done.stdout.contains("src"), "{}", done.stdout);
    before.assert_same(&judge::manifest(root), "the repository");
    sh(root, "chmod u+w src");
    drop(run(&["apply", "n"]).expect(0));
    assert_eq!(sh(root, "cat src/new.txt"), "y\n");
}

// conformance: BAD-13
#[test]
fn a_mount_inside_a_root_is_refused() {
    let scene = Scene::new();
    let dir = scene.root().join("src/mounted");
    std::fs::create_dir(&dir).expect("a directory");
    let mount = Mount::at(&dir, "size=1m");
    let document = scene.run_refused("mount_inside");
    assert!(document.to_string().contains("src/mounted"), "{document}");
    drop(mount);
}

// conformance: BAD-11
#[test]
fn a_full_disk_is_found_before_the_first_write() {
    let world = World::new();
    let scratch = tempfile::tempdir().expect("scratch");
    let disk = scratch.path().canonicalize().expect("scratch exists");
    let mount = Mount::at(&disk, "size=4m");
    let root = disk.join("repo");
    std::fs::create_dir(&root).expect("a directory");
    git(&root, &["init", "--quiet", "--initial-branch=main"]);
    sh(&root, "echo a > a.txt; git add a.txt; git commit -qm first");
    world.run(
        &root,
        "big",
        "head -c 3000000 /dev/urandom > big.bin; echo b >> a.txt",
    );
    sh(&root, "head -c 2500000 /dev/zero > ../filler");
    let before = judge::manifest(&root);
    let done = world.sandbar(&root, &["apply", "big", "--json"]).expect(1);
    assert_eq!(done.json()["error"]["code"], "no_space", "{}", done.stdout);
    before.assert_same(&judge::manifest(&root), "the repository");
    sh(&root, "rm ../filler");
    drop(world.ok(&root, &["apply", "big"]));
    assert_eq!(
        sh(&root, "stat -c %s big.bin; cat a.txt"),
        "3000000\na\nb\n"
    );
    drop(mount);
}

// conformance: BAD-14
#[test]
fn a_root_that_holds_the_data_directory_is_refused() {
    let scene = Scene::new();
    let inside = scene.root().join("data");
    let before = judge::manifest(scene.root());
    let line = ["run", "--json", "--name", "n", "--", "true"];
    let done = Done::of(
        scene
            .world
            .command(scene.root(), &line)
            .env("SANDBAR_DATA_DIR", &inside),
    )
    .expect(125);
    assert_eq!(
        done.json()["error"]["code"],
        "root_refused",
        "{}",
        done.stdout
    );
    sh(scene.root(), "rm -rf data");
    let changed = before.difference(&judge::manifest(scene.root()));
    let own = |line: &String| line.starts_with('\n');
    assert!(changed.iter().all(own), "{}", changed.join("\n"));
}

// conformance: BAD-17
#[test]
fn data_of_a_newer_version_is_left_alone() {
    let scene = Scene::new();
    let format = scene.world.data().join("format");
    let old = std::fs::read_to_string(&format).expect("the format file");
    std::fs::write(&format, old.replace(|c: char| c.is_ascii_digit(), "9")).expect("a newer one");
    let data = judge::manifest(&scene.world.data());
    for line in [
        &["status", "before", "--json"][..],
        &["run", "--json", "--", "true"],
    ] {
        let done = scene.world.sandbar(scene.root(), line);
        assert_eq!(
            done.json()["error"]["code"],
            "newer_format",
            "{}",
            done.stdout
        );
        assert!(matches!(done.code, Some(4 | 125)), "{:?}", done.code);
    }
    data.assert_same(&judge::manifest(&scene.world.data()), "the data directory");
    std::fs::write(&format, old).expect("the old one");
    drop(scene.world.ok(scene.root(), &["status", "before"]));
}

// conformance: BAD-16 (configuration), CFG-1 partial: user and project files
#[test]
fn unknown_keys_are_refused_with_the_nearest_one() {
    let scene = Scene::new();
    std::fs::write(
        scene.root().join("sandbar.toml"),
        "[sandbox]\ncleanupp = \"manual\"\n",
    )
    .expect("a file");
    let line = ["run", "--json", "--name", "n", "--", "true"];
    let done = scene.world.sandbar(scene.root(), &line);
    let document = done.json();
    assert_eq!(document["error"]["code"], "bad_config", "{document}");
    assert!(document.to_string().contains("cleanup"), "{document}");
}

// conformance: BAD-16 (store)
#[test]
fn a_damaged_store_is_named_and_left_alone() {
    let scene = Scene::new();
    let data = scene.world.data();
    let list = sh(
        &data,
        "find . -maxdepth 2 -name '*.db' -o -maxdepth 2 -name '*.sqlite*' | head -1",
    );
    let database = data.join(list.trim().trim_start_matches("./"));
    sh(
        &data,
        &format!(
            "rm -f {0}-wal {0}-shm; head -c 20000 /dev/urandom > {0}",
            database.display()
        ),
    );
    let before = judge::digest(&std::fs::read(&database).expect("the store"));
    let done = scene
        .world
        .sandbar(scene.root(), &["status", "before", "--json"])
        .expect(1);
    assert_eq!(
        done.json()["error"]["code"],
        "corrupt_store",
        "{}",
        done.stdout
    );
    assert_eq!(
        judge::digest(&std::fs::read(&database).expect("the store")),
        before
    );
}

// conformance: BAD-16 (objects), ENV-9 partial: collection
#[test]
fn a_damaged_object_is_never_taken_for_good() {
    let scene = Scene::new();
    let root = scene.root();
    scene.world.run(
        root,
        "o",
        "head -c 400000 /dev/urandom > big.bin; echo x >> a.txt",
    );
    let data = scene.world.data();
    // One bit of every stored object file.
    let flip = "my @f = split /\\0/, `find objects -type f -size +0 -print0`; die unless @f;
        for (@f) { chmod 0600, $_; open F, '+<:raw', $_ or die; my $s = -s $_; seek F, int($s/2), 0;
        read F, my $b, 1; seek F, int($s/2), 0; print F chr(ord($b) ^ 1); close F }";
    text(command(&data, "perl").args(["-e", flip]));
    sh(&scene.world.sandbox(root, "o"), "rm big.bin a.txt");
    let before = judge::manifest(root);
    let done = scene
        .world
        .sandbar(root, &["rollback", "o", "--to", "2", "--json"])
        .expect(1);
    assert_eq!(
        done.json()["error"]["code"],
        "corrupt_object",
        "{}",
        done.stdout
    );
    before.assert_same(&judge::manifest(root), "the repository");
}

// conformance: BAD-26
#[test]
fn a_sandbox_removed_by_hand_is_named_and_comes_back() {
    let scene = Scene::new();
    let root = scene.root();
    scene.world.run(root, "gone", "echo x >> a.txt");
    let sandbox = scene.world.sandbox(root, "gone");
    let state = judge::checkout(&sandbox);
    std::fs::remove_dir_all(&sandbox).expect("somebody removes it");
    for line in [&["diff", "gone"][..], &["apply", "gone"]] {
        scene.refused(root, line, "sandbox_gone", 1);
    }
    drop(scene.world.ok(root, &["rollback", "gone", "--to", "2"]));
    assert_eq!(judge::checkout(&scene.world.sandbox(root, "gone")), state);
    drop(scene.world.ok(root, &["apply", "gone"]));
}

// conformance: BAD-4
#[test]
fn a_directory_swapped_for_a_symlink_leads_nowhere() {
    for (work, swap) in [
        (
            "echo agent > src/c.txt",
            "rm -r src; ln -s ../outside/src src",
        ),
        (
            "echo agent > src/new.txt",
            "rm -r src; ln -s ../outside/src src",
        ),
        ("echo agent > b.txt", "ln -sf ../outside/b.txt b.txt"),
        ("chmod +x b.txt", "ln -sf ../outside/b.txt b.txt"),
        ("mkdir n; echo agent > n/b.txt", "ln -s ../outside n"),
    ] {
        let scene = Scene::new();
        scene.world.run(scene.root(), "s", work);
        sh(scene.root(), swap);
        let before = (
            judge::manifest(scene.root()),
            judge::manifest(&scene.sentinel),
        );
        let done = scene.world.sandbar(scene.root(), &["apply", "s", "--json"]);
        assert_eq!(done.code, Some(3), "{work}, {swap}: {}", done.stdout);
        assert_eq!(
            done.json()["outcome"],
            "conflict",
            "{work}: {}",
            done.stdout
        );
        before.0.assert_same(&judge::manifest(scene.root()), work);
        before
            .1
            .assert_same(&judge::manifest(&scene.sentinel), work);
    }
}

// conformance: BAD-4 (made inside)
#[test]
fn a_symlink_made_inside_lands_as_a_symlink() {
    let scene = Scene::new();
    let before = judge::manifest(&scene.sentinel);
    scene.world.run(
        scene.root(),
        "s",
        "rm -r src; ln -s ../outside/src src; ln -sf /etc/passwd b.txt",
    );
    drop(scene.world.ok(scene.root(), &["apply", "s"]));
    assert_eq!(
        sh(scene.root(), "readlink src b.txt"),
        "../outside/src\n/etc/passwd\n"
    );
    before.assert_same(&judge::manifest(&scene.sentinel), "the sentinel");
}
