//! What applies, undos and rollbacks displaced can be found, printed and
//! copied out; nothing is ever overwritten.
#![allow(
    clippy::disallowed_methods,
    reason = "tests inspect real trees with foreign means"
)]

use std::path::Path;

use sandbar_tests::foreign::sh;
use sandbar_tests::product::{Done, World};
use sandbar_tests::{fixture, judge};

/// Displaces something of each kind.
const WORK: &str = "
    sed -i 's/^line 7$/line seven/' a.txt
    rm b.txt
    rm src/c.txt; ln -s ../a.txt src/c.txt
    printf 'new\\0bytes' > bin
    echo fresh > fresh.txt
";

fn rows(world: &World, root: &Path, plan: &str) -> Vec<(String, String, String)> {
    let list = world.json(root, &["kept", "list", plan]);
    let text = |row: &serde_json::Value, key: &str| row[key].as_str().unwrap_or("").to_owned();
    let mut rows: Vec<_> = list["kept"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|row| (text(row, "path"), text(row, "by"), text(row, "id")))
        .collect();
    rows.sort();
    rows
}

// conformance: STR-9 (kept)
#[test]
fn every_displaced_byte_is_found_printed_and_copied_out() {
    let (world, repo) = (World::new(), fixture::small());
    let root = repo.root();
    sh(
        root,
        "printf 'old\\0bytes' > bin; chmod 750 bin; touch -d @1000000000 b.txt
         sed -i 's/^line 30$/my own edit/' a.txt",
    );
    world.run(root, "k", WORK);
    sh(root, "sed -i 's/^line 35$/later edit/' a.txt");
    let old = repo.scratch().join("old");
    sh(root, &format!("cp -a . {}", old.display()));
    drop(world.ok(root, &["apply", "k"]));

    // What was merged is among it: the person's own file as it was.
    let rows = rows(&world, root, "k");
    let names: Vec<_> = rows
        .iter()
        .map(|(path, by, _)| (path.as_str(), by.as_str()))
        .collect();
    assert_eq!(
        names,
        [
            ("a.txt", "apply"),
            ("b.txt", "apply"),
            ("bin", "apply"),
            ("src/c.txt", "apply")
        ]
    );
    let human = world.ok(root, &["kept", "list"]);
    for (path, _, id) in &rows {
        assert!(
            human.stdout.contains(path) && human.stdout.contains(id),
            "{}",
            human.stdout
        );
        let by_id = shown(&world, root, &["kept", "show", id]);
        let by_path = shown(&world, root, &["kept", "show", "k", path]);
        let before = std::fs::read(old.join(path)).expect("it was there");
        assert_eq!(judge::digest(&by_id), judge::digest(&before), "{path}");
        assert_eq!(by_id, by_path);
        drop(world.ok(root, &["kept", "restore", id, "--to", "../out/one"]));
        sh(
            root,
            &format!("cmp ../out/one {}/{path}; rm ../out/one", old.display()),
        );
    }
    // Paths are read where the person stands.
    let inside = root.join("src");
    assert_eq!(
        shown(&world, &inside, &["kept", "show", "k", "c.txt"]),
        b"c\n"
    );
    assert_eq!(
        shown(&world, &inside, &["kept", "show", "k", "../b.txt"]),
        b"b\n"
    );

    // Everything at once; modes and times come along.
    drop(world.ok(root, &["kept", "restore", "k", "--to", "../all"]));
    let all = root.join("../all");
    assert_eq!(
        sh(
            &all,
            "find . -type f -printf '%P %m %T@\\n' | sort | cut -d. -f1,2 | tail -3"
        ),
        sh(
            &old,
            "find b.txt bin src/c.txt -type f -printf '%p %m %T@\\n' | sort | cut -d. -f1,2"
        )
    );
    assert_eq!(sh(&all, "find . -type f | wc -l"), "4\n");
}

fn shown(world: &World, dir: &Path, line: &[&str]) -> Vec<u8> {
    sandbar_tests::foreign::bytes(&mut world.command(dir, line))
}

// conformance: STR-9 (kept, refusals)
#[test]
fn nothing_is_overwritten_and_what_is_not_there_is_said() {
    let (world, repo) = (World::new(), fixture::small());
    let root = repo.root();
    world.run(root, "k", WORK);
    drop(world.ok(root, &["apply", "k"]));
    let id = rows(&world, root, "k")[0].2.clone();
    drop(world.ok(root, &["kept", "restore", &id]));
    let name = format!("a.txt.kept-{id}");
    assert!(sh(root, &format!("cat {name}")).contains("line 7\n"));
    sh(
        root,
        &format!("echo mine > taken; mkdir dir; ln -s nowhere link; rm {name}"),
    );
    let before = judge::manifest(root);
    for to in ["taken", "dir", "link", "a.txt"] {
        let done = world
            .sandbar(root, &["kept", "restore", &id, "--to", to, "--json"])
            .expect(3);
        assert_eq!(done.json()["error"]["code"], "exists", "{to}");
    }
    for (line, code, exit) in [
        (&["kept", "show", "99.0", "--json"][..], "path_not_found", 5),
        (
            &["kept", "show", "k", "fresh.txt", "--json"],
            "path_not_found",
            5,
        ),
        (
            &["kept", "show", "k", "../../etc/passwd", "--json"],
            "path_escapes",
            2,
        ),
        (
            &["kept", "show", "none", "a.txt", "--json"],
            "plan_not_found",
            5,
        ),
        (&["kept", "list", "none", "--json"], "plan_not_found", 5),
        (
            &["kept", "show", "k", "a.txt", "--checkpoint", "9", "--json"],
            "checkpoint_not_found",
            5,
        ),
    ] {
        let done = world.sandbar(root, line).expect(exit);
        let error = &done.json()["error"];
        assert_eq!(error["code"], code, "{line:?}");
        assert_ne!(error["hint"], "", "{line:?}");
    }
    before.assert_same(&judge::manifest(root), "the repository");
}

// conformance: STR-9 (kept, rollback)
#[test]
fn what_a_rollback_replaced_is_listed_and_can_be_printed() {
    let (world, repo) = (World::new(), fixture::small());
    let root = repo.root();
    world.run(root, "r", "echo precious > p.txt; echo x >> b.txt");
    drop(world.ok(root, &["rollback", "r", "--to", "1"]));
    let list = world.json(root, &["kept", "list", "r"]);
    let row = |path: &str| {
        let all = list["kept"].as_array().expect("a list").iter();
        all.clone()
            .find(|row| row["path"] == path)
            .unwrap_or_else(|| panic!("{path}: {list}"))
            .clone()
    };
    for (path, text) in [("p.txt", "precious\n"), ("b.txt", "b\nx\n")] {
        let row = row(path);
        assert_eq!(row["by"], "rollback");
        let id = row["id"].as_str().expect("an id");
        let number = id
            .trim_start_matches('c')
            .split(':')
            .next()
            .expect("a number");
        let line = ["kept", "show", "r", path, "--checkpoint", number];
        assert_eq!(world.ok(root, &line).stdout, text);
        let to = format!("../{path}.back");
        let line = [
            "kept",
            "restore",
            "r",
            path,
            "--checkpoint",
            number,
            "--to",
            &to,
        ];
        drop(world.ok(root, &line));
        assert_eq!(sh(root, &format!("cat {to}")), text);
    }
}

// conformance: STR-9 (retention)
#[test]
fn collection_takes_kept_bytes_only_when_their_time_has_come() {
    let (world, repo) = (World::new(), fixture::small());
    let root = repo.root();
    world.run(root, "k", WORK);
    drop(world.ok(root, &["apply", "k"]));
    world.run(root, "part", "echo p >> a.txt; echo q > q.txt");
    drop(world.ok(root, &["apply", "part", "--", "a.txt"]));
    let list = world.json(root, &["kept", "list", "k"]);
    let until = list["kept"][0]["until"].as_str().expect("it ends");
    let days = sh(
        root,
        &format!("echo $(( ($(date -d {until} +%s) - $(date +%s) + 3600) / 86400 ))"),
    );
    assert_eq!(days, "30\n");
    drop(world.ok(root, &["gc"]));
    assert_eq!(rows(&world, root, "k").len(), 3, "retention has not ended");
    assert_eq!(
        world.ok(root, &["kept", "show", "k", "b.txt"]).stdout,
        "b\n"
    );

    drop(world.ok(root, &["gc", "--now"]));
    assert_eq!(rows(&world, root, "k").len(), 0);
    // A plan that lives keeps all of its own.
    let part = world.json(root, &["kept", "list", "part"]);
    assert_eq!(part["kept"].as_array().expect("a list").len(), 1);
    assert_eq!(part["kept"][0]["until"], serde_json::Value::Null);
    let done = world.sandbar(root, &["undo", "k", "--json"]).expect(5);
    assert_eq!(done.json()["error"]["code"], "kept_gone");
}

// conformance: STR-9 (no data)
#[test]
fn looking_for_kept_bytes_leaves_no_traces() {
    let (world, repo) = (World::new(), fixture::small());
    let done = world.ok(repo.root(), &["kept", "list"]);
    assert!(
        done.stdout.starts_with("nothing is kept"),
        "{}",
        done.stdout
    );
    assert!(!world.data().exists());
    let _: Done = world
        .sandbar(repo.root(), &["kept", "show", "1.0"])
        .expect(5);
    assert!(!world.data().exists());
}
