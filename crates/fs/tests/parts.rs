//! Assembled directories, pools, retirement, and what the rules leave out.
#![allow(clippy::unwrap_used, clippy::disallowed_methods, missing_docs)]

mod sandboxes;

use std::os::unix::fs::MetadataExt as _;
use std::sync::Arc;

use sandbar_domain::{Code, RelPath};
use sandbar_ports::objects::Objects as _;
use sandbar_ports::rules::{CarryRules, Everything, Verdict};
use sandbar_ports::workspace::{Assemble, CacheKey, Part, Restore, Workspaces as _};
use sandbar_ports::{Cancel, Silent};
use sandboxes::{Bench, code, sentinel, shell, wait};

fn rel(text: &str) -> RelPath {
    RelPath::new(text).unwrap()
}

#[test]
fn parts_come_together_and_a_pool_links_them_back() {
    let bench = Bench::new();
    let git = bench.source();
    bench.write("objects/ab/cdef", b"object one");
    bench.write("objects/pack/p.pack", b"pack");
    bench.write("objects/pack/tmp_pack_x", b"half");
    bench.write("objects/info/alternates", b"no");
    bench.write("refs/heads/main", b"abc\n");
    bench.write("refs/stash", b"def\n");
    bench.write("description", b"d");
    bench.write("index.lock", b"");
    shell(
        &git,
        "chmod 444 objects/ab/cdef; touch -d @1000 refs/heads/main; ln -s main refs/heads/sym",
    );
    let before = sentinel(&git);
    let place = wait(bench.engine.reserve()).unwrap();
    let dest = place.join("g");
    let pool = place.join("o");
    wait(bench.engine.assemble(Assemble {
        dest: dest.clone(),
        pool: Some(pool.clone()),
        parts: vec![
            Part::Directory(rel("a/b")),
            Part::Write(rel("config"), b"[core]\n".to_vec()),
            Part::Copy {
                from: git.join("description"),
                to: rel("info/description"),
            },
            Part::Copy {
                from: git.join("missing"),
                to: rel("missing"),
            },
            Part::CopyTree {
                from: git.join("refs"),
                to: rel("refs"),
                except: vec!["stash".into()],
            },
            Part::CopyTree {
                from: git.join("none"),
                to: rel("none"),
                except: vec![],
            },
            Part::Link {
                from: git.join("objects"),
                to: rel("objects"),
                except: vec!["info/alternates".into()],
            },
        ],
        cancel: Cancel::new(),
    }))
    .unwrap();
    let listing = shell(&dest, "find . -type f -o -type l | sort");
    assert_eq!(
        listing,
        "./config\n./info/description\n./objects/ab/cdef\n./objects/pack/p.pack\n\
         ./refs/heads/main\n./refs/heads/sym\n"
    );
    assert!(dest.join("a/b").is_dir());
    assert_eq!(shell(&pool, "ls"), "ab!cdef\npack!p.pack\n");
    let ino = |path: std::path::PathBuf| std::fs::symlink_metadata(path).unwrap().ino();
    let original = ino(git.join("objects/ab/cdef"));
    assert_eq!(ino(dest.join("objects/ab/cdef")), original);
    assert_eq!(ino(pool.join("ab!cdef")), original);
    assert_ne!(
        ino(dest.join("refs/heads/main")),
        ino(git.join("refs/heads/main"))
    );
    let meta = std::fs::metadata(dest.join("refs/heads/main")).unwrap();
    assert_eq!(meta.mtime(), 1000);
    assert_eq!(
        sentinel(&git).replace(" 3 ", " 1 "),
        before.replace(" 3 ", " 1 ")
    );

    // What the agent's gc removed comes back by link.
    std::fs::remove_dir_all(dest.join("objects")).unwrap();
    let tree = wait(bench.engine.list(sandbar_domain::tree::empty()));
    assert!(tree.unwrap().is_empty());
    struct Hidden;
    impl CarryRules for Hidden {
        fn rule_files(&self) -> &[&str] {
            &[]
        }
        fn enter(&self, _: Option<&RelPath>, _: &str, _: &[u8]) {}
        fn verdict(&self, _: &RelPath, _: bool) -> Verdict {
            Verdict::Hide
        }
    }
    let restore = |pool: std::path::PathBuf| {
        wait(bench.engine.restore(Restore {
            path: dest.clone(),
            tree: sandbar_domain::tree::empty(),
            hidden: vec![],
            rules: Arc::new(Hidden),
            cache: CacheKey::None,
            pool: Some((pool, rel("objects"))),
            progress: Arc::new(Silent),
            cancel: Cancel::new(),
        }))
    };
    restore(pool.clone()).unwrap();
    restore(place.join("no-pool")).unwrap();
    assert_eq!(ino(dest.join("objects/ab/cdef")), original);
    assert_eq!(
        std::fs::read(dest.join("objects/pack/p.pack")).unwrap(),
        b"pack"
    );

    wait(bench.engine.retire(place.clone())).unwrap();
    wait(bench.engine.retire(place.clone())).unwrap();
    assert_eq!(
        shell(&place, "find . | sort"),
        ".\n./o\n./o/ab!cdef\n./o/pack!p.pack\n"
    );
    wait(bench.engine.remove(place.clone())).unwrap();
    assert!(git.join("objects/ab/cdef").exists());
}

#[test]
fn a_failed_assembly_leaves_nothing() {
    let bench = Bench::new();
    let place = wait(bench.engine.reserve()).unwrap();
    let dest = place.join("g");
    let error = wait(bench.engine.assemble(Assemble {
        dest: dest.clone(),
        pool: None,
        parts: vec![
            Part::Write(rel("file"), b"x".to_vec()),
            Part::Write(rel("file/below"), b"x".to_vec()),
        ],
        cancel: Cancel::new(),
    }));
    error.unwrap_err();
    assert!(!dest.exists());
    let cancel = Cancel::new();
    cancel.cancel();
    let error = wait(bench.engine.assemble(Assemble {
        dest: dest.clone(),
        parts: vec![Part::Directory(rel("a"))],
        cancel,
        pool: None,
    }));
    assert_eq!(code(error), Code::Interrupted);
    assert!(!dest.exists());
}

/// Ignores `*.o` and `out`, but looks into `out` for `keep`.
struct Building;

impl CarryRules for Building {
    fn rule_files(&self) -> &[&str] {
        &[]
    }

    fn enter(&self, _: Option<&RelPath>, _: &str, _: &[u8]) {}

    fn verdict(&self, path: &RelPath, _: bool) -> Verdict {
        match (path.names().next(), path.name()) {
            (Some("out"), "keep") => Verdict::Carry,
            (Some("out"), _) if !path.name().ends_with(".o") => Verdict::Look,
            _ if path.name().ends_with(".o") => Verdict::Ignore,
            _ => Verdict::Carry,
        }
    }
}

#[test]
fn ignored_paths_are_counted_left_behind_and_left_alone() {
    let bench = Bench::new();
    bench.write("src/a.c", b"c");
    bench.write("src/a.o", b"o");
    bench.write("out/deep/x.o", b"o");
    bench.write("out/deep/y.o", b"o");
    bench.write("out/kept/keep", b"k");
    bench.write("out/kept/z.o", b"o");
    let place = wait(bench.engine.reserve()).unwrap();
    let created = bench.create_with(&place, Arc::new(Building), &[]).unwrap();
    assert_eq!(
        shell(&place.join("r"), "find . | sort"),
        ".\n./out\n./out/kept\n./out/kept/keep\n./src\n./src/a.c\n"
    );
    assert_eq!(
        created.tally.ignored_paths,
        ["out/deep", "out/kept/z.o", "src/a.o"]
    );
    let times = |name: &str| {
        let of = |root: std::path::PathBuf| std::fs::metadata(root.join(name)).unwrap();
        (
            of(bench.source()).mtime_nsec(),
            of(place.join("r")).mtime_nsec(),
        )
    };
    for name in [".", "out", "out/kept", "src"] {
        let (original, copy) = times(name);
        assert_eq!(original, copy, "{name}");
    }
    let sandbox = sandboxes::Sandbox {
        bench: &bench,
        place,
        created,
    };
    let rules = || Arc::new(Building);
    shell(
        &sandbox.root(),
        "rm -r out; mkdir new; touch new/n.c new/n.o src/b.o; rm src/a.c",
    );
    sandbox.capture_by(sandbox.cache(), true, rules()).unwrap();
    let restored = sandbox.restore_by(sandbox.created.tree, rules()).unwrap();
    assert_eq!(restored.kept_directories, [rel("new")]);
    assert_eq!(
        shell(&sandbox.root(), "find . -type f | sort"),
        "./new/n.o\n./out/kept/keep\n./src/a.c\n./src/b.o\n"
    );
    // A file must come back where ignored files lie now: refused, untouched.
    shell(&sandbox.root(), "rm -r new src; touch src");
    let base = sandbox.capture_by(sandbox.cache(), true, rules()).unwrap();
    shell(&sandbox.root(), "rm src; mkdir src; touch src/b.o src/c");
    let error = sandbox.restore_by(base.tree, rules()).unwrap_err();
    assert_eq!(
        (error.code, &*error.subjects),
        (Code::IllegalState, &["src".to_owned()][..])
    );
    assert_eq!(shell(&sandbox.root(), "ls src"), "b.o\nc\n");
}

/// Paths named in a `.rules` file of the root are ignored.
#[derive(Default)]
struct FromFile(std::sync::RwLock<Vec<String>>);

impl CarryRules for FromFile {
    fn rule_files(&self) -> &[&str] {
        &[".rules"]
    }

    fn enter(&self, dir: Option<&RelPath>, name: &str, content: &[u8]) {
        assert_eq!((dir, name), (None, ".rules"));
        let lines = std::str::from_utf8(content).unwrap().lines();
        *self.0.write().unwrap() = lines.map(str::to_owned).collect();
    }

    fn verdict(&self, path: &RelPath, _: bool) -> Verdict {
        if self.0.read().unwrap().iter().any(|p| p == path.as_str()) {
            Verdict::Ignore
        } else {
            Verdict::Carry
        }
    }
}

#[test]
fn rules_that_come_back_decide_what_stays() {
    let bench = Bench::new();
    bench.write(".rules", b"cache\n");
    bench.write("a", b"a");
    bench.write("cache/x", b"x");
    let place = wait(bench.engine.reserve()).unwrap();
    let created = bench
        .create_with(&place, Arc::new(FromFile::default()), &[])
        .unwrap();
    assert_eq!((created.tally.files, created.tally.ignored), (2, 1));
    let sandbox = sandboxes::Sandbox {
        bench: &bench,
        place,
        created,
    };
    shell(
        &sandbox.root(),
        "printf 'cache\\nextra\\n' > .rules; mkdir cache; touch cache/y extra",
    );
    let rules = Arc::new(FromFile::default());
    let seen = sandbox
        .capture_by(sandbox.cache(), true, rules.clone())
        .unwrap();
    assert_eq!(seen.tally.ignored, 2);
    sandbox.restore_by(sandbox.created.tree, rules).unwrap();
    assert_eq!(
        shell(&sandbox.root(), "find . -type f | sort"),
        "./.rules\n./a\n./cache/y\n"
    );
}

#[test]
fn a_damaged_cache_is_no_cache() {
    let bench = Bench::new();
    bench.write("d/a", b"one");
    bench.write("b", b"two");
    let sandbox = bench.sandbox();
    let cache = sandbox.place.join("tree.cache");
    let sound = std::fs::read(&cache).unwrap();
    std::fs::write(sandbox.root().join("b"), "2wo").unwrap();
    let want = sandbox
        .capture_by(CacheKey::None, true, Arc::new(Everything))
        .unwrap();
    for at in 0..sound.len() {
        let mut bytes = sound.clone();
        bytes[at] ^= 0x11;
        std::fs::write(&cache, &bytes).unwrap();
        assert_eq!(sandbox.capture().tree, want.tree, "byte {at}");
    }
    for length in 0..sound.len() {
        std::fs::write(&cache, &sound[..length]).unwrap();
        assert_eq!(sandbox.capture().tree, want.tree, "cut at {length}");
    }
    std::fs::remove_file(&cache).unwrap();
    std::os::unix::fs::symlink("/dev/zero", &cache).unwrap();
    assert_eq!(sandbox.capture().tree, want.tree);
}

/// Carries everything but `*.o`, for good; counts how often it is asked.
#[derive(Default)]
struct Counting {
    asked: std::sync::atomic::AtomicU32,
    name: &'static str,
}

impl CarryRules for Counting {
    fn rule_files(&self) -> &[&str] {
        &[]
    }

    fn enter(&self, _: Option<&RelPath>, _: &str, _: &[u8]) {}

    fn verdict(&self, path: &RelPath, _: bool) -> Verdict {
        self.asked
            .fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        match path.name().ends_with(".o") {
            true => Verdict::Ignore,
            false => Verdict::Carry,
        }
    }

    fn identity(&self) -> Option<sandbar_domain::Hash> {
        Some(sandbar_domain::Hash::of(self.name.as_bytes()))
    }

    fn lasting(&self, path: &RelPath, _: bool) -> bool {
        !path.name().ends_with(".o")
    }
}

#[test]
fn rules_are_asked_for_what_is_new_only() {
    let bench = Bench::new();
    bench.write("src/a.c", b"c");
    bench.write("src/b.c", b"b");
    bench.write("top", b"t");
    let place = wait(bench.engine.reserve()).unwrap();
    let rules = |name| {
        Arc::new(Counting {
            name,
            ..Counting::default()
        })
    };
    let created = bench.create_with(&place, rules("one"), &[]).unwrap();
    let sandbox = sandboxes::Sandbox {
        bench: &bench,
        place,
        created,
    };
    // (what is done, rules, how many paths they are asked for)
    let steps = [
        ("true", "one", 0),
        ("true", "one", 0),
        ("echo more >> src/b.c", "one", 0),
        ("echo n > src/n.c; echo o > src/n.o", "one", 2),
        // What is ignored is asked for each time, what is carried no more.
        ("true", "one", 1),
        ("rm src/a.c; mkdir sub; mv top sub/top", "one", 3),
        // Under other rules nothing is remembered: four paths and two
        // directories.
        ("true", "two", 6),
        ("true", "two", 1),
    ];
    for (step, name, asked) in steps {
        shell(&sandbox.root(), step);
        let rules = rules(name);
        let found = sandbox.capture_by(sandbox.cache(), true, rules.clone());
        let found = found.unwrap();
        let times = rules.asked.load(std::sync::atomic::Ordering::Relaxed);
        assert_eq!(times, asked, "{step} under {name}");
        let fresh = sandbox.capture_by(CacheKey::None, false, Arc::new(Counting::default()));
        let fresh = fresh.unwrap();
        assert_eq!(found.tree, fresh.tree, "{step}: the cache changes nothing");
        assert_eq!(found.tally.files, fresh.tally.files, "{step}");
        assert_eq!(found.tally.bytes, fresh.tally.bytes, "{step}");
    }
}
