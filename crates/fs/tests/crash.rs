//! Killed while a sandbox is made or restored: nothing is half trusted, the
//! original is untouched, and the same call, made again, succeeds.
#![allow(clippy::unwrap_used, clippy::disallowed_methods, missing_docs)]

mod sandboxes;

use std::path::Path;
use std::sync::Arc;

use sandbar_fs::FsEngine;
use sandbar_ports::objects::{Live, Objects as _};
use sandbar_ports::rules::Everything;
use sandbar_ports::workspace::{CacheKey, Create, Restore, Workspaces as _};
use sandbar_ports::{Cancel, Silent};
use sandboxes::{Bench, sentinel, tar_digest, wait};

fn child(test: &str, dir: &Path, at: &str) -> bool {
    std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", test, "--nocapture"])
        .env("SANDBAR_TEST_CHILD", dir)
        .env("SANDBAR_CRASH_AT", at)
        .stdout(std::process::Stdio::null())
        .status()
        .unwrap()
        .success()
}

fn fill(bench: &Bench) {
    bench.write("a", b"one");
    bench.write("d/b", b"two");
    bench.write("d/e/c", &vec![3; 2 << 20]);
    std::os::unix::fs::symlink("a", bench.source().join("l")).unwrap();
}

#[test]
fn killed_anywhere_during_create() {
    if let Some(dir) = std::env::var_os("SANDBAR_TEST_CHILD") {
        let dir = Path::new(&dir);
        let engine = FsEngine::open(&dir.join("data")).unwrap();
        let place = wait(engine.reserve()).unwrap();
        let mut created = wait(engine.create(Create {
            source: wait(engine.identify(dir.join("src"))).unwrap(),
            dest: place.join("r"),
            hidden: vec![],
            rules: Arc::new(Everything),
            progress: Arc::new(Silent),
            cancel: Cancel::new(),
        }))
        .unwrap();
        wait(created.sealing.wait()).unwrap();
        return;
    }
    let mut killed = 0;
    for point in 1u32.. {
        let bench = Bench::new();
        fill(&bench);
        let before = sentinel(&bench.source());
        let done = child(
            "killed_anywhere_during_create",
            bench.temp.path(),
            &format!("{point}:before"),
        );
        killed += u32::from(!done);
        assert_eq!(sentinel(&bench.source()), before, "point {point}");
        assert!(wait(bench.engine.verify()).unwrap().damaged.is_empty());
        for place in wait(bench.engine.places()).unwrap() {
            wait(bench.engine.remove(place)).unwrap();
        }
        assert!(wait(bench.engine.places()).unwrap().is_empty());
        let sandbox = bench.sandbox();
        assert_eq!(tar_digest(&bench.source()), tar_digest(&sandbox.root()));
        wait(bench.engine.collect(Live {
            trees: [sandbox.created.tree].into(),
            ..Live::default()
        }))
        .unwrap();
        let tmp = bench.data().join("objects/tmp");
        assert!(std::fs::read_dir(tmp).unwrap().next().is_none());
        if done {
            break;
        }
    }
    assert!(killed >= 25, "only {killed} points");
}

#[test]
fn killed_anywhere_during_restore() {
    if let Some(dir) = std::env::var_os("SANDBAR_TEST_CHILD") {
        let dir = Path::new(&dir);
        let engine = FsEngine::open(&dir.join("data")).unwrap();
        let tree = std::env::var("SANDBAR_TEST_TREE").unwrap().parse().unwrap();
        let place = wait(engine.places()).unwrap().remove(0);
        wait(engine.restore(Restore {
            path: place.join("r"),
            tree,
            hidden: vec![],
            rules: Arc::new(Everything),
            cache: CacheKey::Named {
                place,
                name: "tree.cache",
            },
            pool: None,
            progress: Arc::new(Silent),
            cancel: Cancel::new(),
        }))
        .unwrap();
        return;
    }
    let mut killed = 0;
    for point in 1u32.. {
        let bench = Bench::new();
        fill(&bench);
        let sandbox = bench.sandbox();
        let tree = sandbox.created.tree;
        let want = tar_digest(&sandbox.root());
        sandboxes::shell(
            &sandbox.root(),
            "echo changed > a; rm -r d/e; echo file > d/e; chmod +x d/b; rm l; mkdir l; \
             mkdir -p n/n; touch n/n/f",
        );
        sandbox.capture();
        let done = std::process::Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "killed_anywhere_during_restore", "--nocapture"])
            .env("SANDBAR_TEST_CHILD", bench.temp.path())
            .env("SANDBAR_TEST_TREE", tree.to_string())
            .env("SANDBAR_CRASH_AT", format!("{point}:after"))
            .stdout(std::process::Stdio::null())
            .status()
            .unwrap()
            .success();
        killed += u32::from(!done);
        // Wholly old or wholly new, each file.
        let a = std::fs::read(sandbox.root().join("a")).unwrap();
        assert!(a == b"changed\n" || a == b"one", "point {point}");
        sandbox.restore(tree);
        assert_eq!(tar_digest(&sandbox.root()), want, "point {point}");
        assert_eq!(sandbox.capture().tree, tree);
        assert!(!sandbox.place.join("t").exists());
        if done {
            break;
        }
    }
    assert!(killed >= 20, "only {killed} points");
}
