//! Unusual file systems: one whose names have no case and that knows neither
//! exchange nor links, one that only looks local, a file mounted alone.
#![allow(
    clippy::disallowed_methods,
    reason = "tests inspect real trees with foreign means"
)]

use std::path::{Path, PathBuf};

use sandbar_tests::foreign::{command, git, sh, text};
use sandbar_tests::mount::Mount;
use sandbar_tests::product::World;
use sandbar_tests::{fixture, judge};

/// A volume as on a memory card: exFAT, through FUSE.
fn card(scratch: &Path) -> (PathBuf, Mount) {
    let (image, dir) = (scratch.join("card.img"), scratch.join("card"));
    std::fs::create_dir(&dir).expect("a directory");
    text(
        command(scratch, "truncate")
            .args(["--size=32M"])
            .arg(&image),
    );
    text(command(scratch, "mkfs.exfat").arg(&image));
    let options = "loop,fmask=0133,dmask=022";
    let image = image.to_str().expect("scratch is UTF-8");
    let mount = Mount::line(&["-t", "exfat-fuse", "-o", options, image], &dir);
    (dir, mount)
}

// conformance: BAD-5, APL-5 (a file system without exchange) partial: one boundary
#[test]
fn names_that_differ_in_case_only_are_refused_where_case_does_not_count() {
    let (world, scratch) = (World::new(), tempfile::tempdir().expect("scratch"));
    let base = scratch.path().canonicalize().expect("scratch exists");
    let (root, _mount) = card(&base);
    sh(
        &root,
        "echo one > One.txt; mkdir Dir; echo d > Dir/d.txt; echo go > gone.txt",
    );
    // The ground is as the test wants it.
    assert_eq!(sh(&root, "cat oNE.TXT"), "one\n");
    let change =
        "echo a > Readme; echo b > README; mkdir New; echo n > New/n; mkdir new; echo m > new/m
                  echo changed > One.txt; rm gone.txt; echo e > Dir/e.txt";
    world.run(&root, "c", change);
    let before = judge::contents(&root);
    let done = world.sandbar(&root, &["apply", "c", "--json"]).expect(3);
    let error = &done.json()["error"];
    assert_eq!(error["code"], "case_collision", "{}", done.stdout);
    for name in ["README", "Readme", "New", "new"] {
        assert!(done.stdout.contains(name), "{name}: {}", done.stdout);
    }
    assert_eq!(judge::contents(&root), before);
    assert_eq!(
        world.json(&root, &["status", "c"])["plan"]["state"],
        "review"
    );

    // Settled inside it goes through, and says where a write could be lost.
    let settle = [
        "exec",
        "c",
        "--",
        "sh",
        "-euc",
        "rm README; mv new/m New/; rmdir new",
    ];
    drop(world.ok(&root, &settle));
    let wanted = judge::contents(&world.sandbox(&root, "c"));
    let done = world.ok(&root, &["apply", "c", "--json"]).json();
    assert_eq!(done["outcome"], "applied", "{done}");
    assert!(done["warnings"].to_string().contains("in place"), "{done}");
    let mut now = judge::contents(&root);
    now.retain(|path, _| !path.contains(".sandbar"));
    assert_eq!(now, wanted);
    // What was displaced is on the card, whole.
    assert_eq!(
        sh(&root, "grep -rhx 'one\\|go' .sandbar/kept | sort"),
        "go\none\n"
    );
}

// conformance: BAD-5 (where case counts)
#[test]
fn where_case_counts_both_names_land() {
    let (world, repo) = (World::new(), fixture::small());
    let root = repo.root();
    world.run(root, "c", "echo a > Readme; echo b > README");
    drop(world.ok(root, &["apply", "c"]));
    assert_eq!(sh(root, "cat README Readme"), "b\na\n");
}

// conformance: BAD-15
#[test]
fn a_data_directory_that_is_not_local_is_refused() {
    let (world, repo) = (World::new(), fixture::small());
    let root = repo.root();
    let (card, _mount) = card(repo.scratch());
    let before = judge::manifest(root);
    for data in [card.clone(), card.join("deep/er")] {
        for (line, code) in [
            (
                &["run", "--json", "--name", "n", "--", "touch", "made"][..],
                125,
            ),
            (&["plan", "new", "--json"], 4),
        ] {
            let mut command = world.command(root, line);
            command.env("SANDBAR_DATA_DIR", &data);
            let done = sandbar_tests::product::Done::of(&mut command).expect(code);
            let error = &done.json()["error"];
            assert_eq!(error["code"], "network_file_system", "{}", done.stdout);
            let hint = error["hint"].as_str().unwrap_or_default();
            assert!(hint.contains("SANDBAR_DATA_DIR"), "{hint}");
        }
        assert_eq!(sh(&card, "ls -A"), "", "nothing is made there");
    }
    before.assert_same(&judge::manifest(root), "the repository");
}

// conformance: APL-5 (a file mounted alone) partial: one boundary
#[test]
fn a_file_mounted_alone_is_written_where_it_stands_and_that_is_said() {
    let (world, repo) = (World::new(), fixture::small());
    let root = repo.root();
    world.run(root, "m", "echo new > b.txt; echo c >> src/c.txt");
    let outside = repo.scratch().join("outside.txt");
    std::fs::write(&outside, "b\n").expect("a file");
    let outside_text = outside.to_str().expect("UTF-8");
    let mount = Mount::line(&["--bind", outside_text], &root.join("b.txt"));
    let inode = sh(repo.scratch(), "stat -c %i outside.txt");
    let done = world.ok(root, &["apply", "m", "--json"]).json();
    assert_eq!(done["outcome"], "applied", "{done}");
    let warned = done["warnings"].to_string();
    assert!(
        warned.contains("b.txt in place") && warned.contains("could be lost"),
        "{done}"
    );
    assert_eq!(sh(repo.scratch(), "cat outside.txt"), "new\n");
    assert_eq!(
        sh(repo.scratch(), "stat -c %i outside.txt"),
        inode,
        "the same file"
    );
    drop(mount);
    assert_eq!(sh(root, "cat b.txt src/c.txt"), "b\nc\nc\n");
    let kept = done["resources"][0]["kept"]
        .as_str()
        .expect("kept")
        .to_owned();
    assert!(sh(Path::new(&kept), "cat kept/*").contains("b\n"));
}

// conformance: APL-5 (what a file has beside its content) partial: one boundary
#[test]
fn mode_owner_and_attributes_of_a_replaced_file_are_carried() {
    let (world, repo) = (World::new(), fixture::small());
    let root = repo.root();
    sh(
        root,
        "chmod 640 a.txt; chown 1234:2345 a.txt; setfattr -n user.note -v kept a.txt
         setfacl -m u:4321:rw b.txt; chmod u+s src/c.txt",
    );
    let all = "stat -c '%a %u %g %n' a.txt b.txt; getfacl -pc b.txt; getfattr -n user.note a.txt";
    let before = sh(root, all);
    world.run(root, "p", "for f in a.txt b.txt; do echo x >> $f; done");
    drop(world.ok(root, &["apply", "p"]));
    assert_eq!(sh(root, "tail -qn1 a.txt b.txt"), "x\nx\n");
    assert_eq!(sh(root, all), before);
    assert_eq!(git(root, &["status", "--short"]), " M a.txt\n M b.txt");
}

// conformance: APL-11 (rollback) partial: undo
#[test]
fn a_rollback_changes_nothing_outside_its_sandbox() {
    let (world, repo) = (World::new(), fixture::small());
    let root = repo.root();
    sh(
        repo.scratch(),
        "mkdir outside; echo s > outside/s; ln -s ../outside repo/out",
    );
    world.run(
        root,
        "one",
        "echo 1 > one.txt; rm b.txt; rm out; git commit -qam one",
    );
    world.run(root, "two", "echo 2 > two.txt; git checkout -qb two");
    // The person works on meanwhile: none of it is the rollback's to touch.
    sh(
        root,
        "echo mine > mine.txt; echo more >> a.txt; git add a.txt; git branch own",
    );
    let other = world.sandbox(root, "two");
    let before = [root, &repo.scratch().join("outside"), &other, &world.home()]
        .map(|dir| (dir.to_owned(), judge::manifest(dir)));
    for to in ["1", "2", "1"] {
        drop(world.ok(root, &["rollback", "one", "--to", to]));
        for (dir, manifest) in &before {
            let what = format!("{} after a rollback to {to}", dir.display());
            manifest.assert_same(&judge::manifest(dir), &what);
        }
    }
    assert_eq!(sh(&world.sandbox(root, "one"), "cat b.txt"), "b\n");
}
