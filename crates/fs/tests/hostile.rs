//! What no source should hold, but some do: each is refused by name with
//! nothing left behind, or carried exactly; nothing outside is read or hurt.
#![allow(clippy::unwrap_used, clippy::disallowed_methods, missing_docs)]

mod sandboxes;

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use sandbar_domain::{Code, RelPath};
use sandbar_fs::sys;
use sandbar_ports::objects::Objects as _;
use sandbar_ports::rules::{CarryRules, Everything, Verdict};
use sandbar_ports::workspace::{CacheKey, Workspaces as _};
use sandboxes::{Bench, code, sentinel, shell, tar_digest, wait};

/// Runs `body` as an ordinary account: a thread's credentials are its own,
/// and the threads it starts inherit them.
fn unprivileged(body: impl FnOnce() + Send) {
    std::thread::scope(|scope| {
        let thread = scope.spawn(move || {
            if rustix::process::geteuid().is_root() {
                let uid = rustix::fs::Uid::from_raw(65_534);
                let gid = rustix::fs::Gid::from_raw(65_534);
                rustix::thread::set_thread_res_gid(gid, gid, gid).unwrap();
                rustix::thread::set_thread_res_uid(uid, uid, uid).unwrap();
            }
            body();
        });
        thread.join().unwrap();
    });
}

#[test]
fn unsupported_entries_are_refused_at_creation_and_named_by_capture() {
    for (name, make) in [
        ("pipe", "mkfifo dir/pipe"),
        (
            "sock",
            "python3 -c 'import socket; socket.socket(socket.AF_UNIX).bind(\"dir/sock\")'",
        ),
        ("bad\u{fffd}name", "touch \"dir/bad$(printf '\\377')name\""),
    ] {
        let bench = Bench::new();
        bench.write("dir/fine", b"x");
        bench.write("other", b"y");
        shell(&bench.source(), make);
        let before = sentinel(&bench.source());
        let place = wait(bench.engine.reserve()).unwrap();
        let error = bench.create_in(&place).unwrap_err();
        assert_eq!(error.code, Code::UnsupportedEntry, "{name}");
        assert_eq!(error.subjects, [format!("dir/{name}")]);
        assert!(
            std::fs::read_dir(&place).unwrap().next().is_none(),
            "{name}"
        );
        assert_eq!(sentinel(&bench.source()), before);

        shell(&bench.source(), "rm -rf dir; mkdir dir; echo x > dir/fine");
        let sandbox = bench.sandbox();
        let base = sandbox.capture();
        shell(&sandbox.root(), make);
        let captured = sandbox.capture();
        assert_eq!(captured.tree, base.tree, "{name}");
        let found: Vec<_> = captured
            .tally
            .unsupported
            .iter()
            .map(|(p, _)| p.clone())
            .collect();
        assert_eq!(found, [format!("dir/{name}")]);
        wait(bench.engine.remove(sandbox.place.clone())).unwrap();
        assert!(!sandbox.place.exists());
    }
}

struct Ignoring(&'static str);

impl CarryRules for Ignoring {
    fn rule_files(&self) -> &[&str] {
        &[]
    }

    fn enter(&self, _: Option<&RelPath>, _: &str, _: &[u8]) {}

    fn verdict(&self, path: &RelPath, _: bool) -> Verdict {
        if path.as_str().starts_with(self.0) {
            Verdict::Ignore
        } else {
            Verdict::Carry
        }
    }
}

#[test]
fn what_is_ignored_may_be_anything() {
    let bench = Bench::new();
    bench.write("keep", b"x");
    shell(
        &bench.source(),
        "mkdir out; mkfifo out/pipe; mkfifo out.pipe; touch out$'\\377'",
    );
    let place = wait(bench.engine.reserve()).unwrap();
    let created = bench
        .create_with(&place, Arc::new(Ignoring("out")), &[])
        .unwrap();
    assert_eq!((created.tally.files, created.tally.ignored), (1, 3));
    assert_eq!(
        created.tally.ignored_paths,
        ["out", "out.pipe", "out\u{fffd}"]
    );
    assert_eq!(created.files.len(), 1);
}

#[test]
fn names_of_255_bytes_and_paths_of_4095_are_carried() {
    let bench = Bench::new();
    bench.write(&"n".repeat(255), b"long");
    let mut deep = String::new();
    let mut dir = sys::open_dir(&bench.source()).unwrap();
    for _ in 0..2046 {
        sys::make_dir(&dir, "d", 0o755).unwrap();
        dir = dir.child("d").unwrap();
        deep.push_str("d/");
    }
    let fd = sys::create_new(&dir, "bot", 0o644).unwrap();
    sys::write_all(&fd, b"bottom").unwrap();
    deep.push_str("bot");
    assert_eq!(deep.len(), 4095);
    let sandbox = bench.sandbox();
    let captured = sandbox
        .capture_by(CacheKey::None, true, Arc::new(Everything))
        .unwrap();
    assert_eq!(captured.tree, sandbox.created.tree);
    assert_eq!(captured.tally.directories, 2046);
    let found = wait(
        bench
            .engine
            .lookup(captured.tree, vec![RelPath::new(&deep).unwrap()]),
    );
    let entry = found.unwrap()[0].unwrap();
    assert_eq!(wait(bench.engine.get(entry.hash)).unwrap(), b"bottom");
    shell(&sandbox.root(), "rm -rf d");
    sandbox.restore(captured.tree);
    assert_eq!(sandbox.capture().tree, captured.tree);

    // One level more than a path can have.
    sys::make_dir(&dir, "dd", 0o755).unwrap();
    let inner = dir.child("dd").unwrap();
    drop(sys::create_new(&inner, "toolong", 0o644).unwrap());
    let place = wait(bench.engine.reserve()).unwrap();
    assert_eq!(code(bench.create_in(&place)), Code::UnsupportedEntry);
    assert!(std::fs::read_dir(&place).unwrap().next().is_none());
    wait(bench.engine.remove(sandbox.place.clone())).unwrap();
    assert!(!sandbox.place.exists());
}

#[test]
fn a_sandbox_of_any_shape_can_be_removed_and_nothing_else() {
    let bench = Bench::new();
    bench.write("f", b"x");
    let outside = bench.temp.path().join("outside");
    std::fs::create_dir(&outside).unwrap();
    std::fs::write(outside.join("precious"), "p").unwrap();
    let before = sentinel(&outside);
    let sandbox = bench.sandbox();
    symlink(&outside, sandbox.root().join("out")).unwrap();
    shell(
        &sandbox.root(),
        "mkdir -p a/b/c; touch a/b/c/f; chmod 0 a/b/c a/b a",
    );
    // Deeper than a path can say.
    let mut dir = sys::open_dir(&sandbox.root()).unwrap();
    for _ in 0..3000 {
        sys::make_dir(&dir, "deep", 0o755).unwrap();
        dir = dir.child("deep").unwrap();
    }
    drop(sys::create_new(&dir, "f", 0o600).unwrap());
    wait(bench.engine.remove(sandbox.place.clone())).unwrap();
    wait(bench.engine.remove(sandbox.place.clone())).unwrap();
    assert!(!sandbox.place.exists());
    assert_eq!(sentinel(&outside), before);
    for wrong in [
        outside.clone(),
        bench.data(),
        bench.data().join("s"),
        bench.data().join("s/.."),
    ] {
        assert_eq!(code(wait(bench.engine.remove(wrong))), Code::RootRefused);
    }
    // A link that has the shape of a place goes itself; what it leads to stays.
    let link = bench.data().join("s/aaaaaaaa");
    symlink(&outside, &link).unwrap();
    wait(bench.engine.remove(link.clone())).unwrap();
    assert!(std::fs::symlink_metadata(&link).is_err());
    assert_eq!(sentinel(&outside), before);
}

#[test]
fn an_ordinary_account_is_told_what_it_cannot_read() {
    let temp = tempfile::tempdir().unwrap();
    let path = temp.path().to_owned();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o777)).unwrap();
    unprivileged(move || {
        for secret in ["secret", "shut/inside"] {
            let bench = Bench::in_dir(&path.join(secret.replace('/', "-")));
            bench.write(secret, b"x");
            bench.write("ok", b"y");
            let closed = secret.split('/').next().unwrap();
            let closed = bench.source().join(closed);
            std::fs::set_permissions(&closed, std::fs::Permissions::from_mode(0o0)).unwrap();
            let place = wait(bench.engine.reserve()).unwrap();
            let error = bench.create_in(&place).unwrap_err();
            assert_eq!(error.code, Code::PermissionDenied);
            let name = secret.split('/').next().unwrap();
            assert!(error.message.contains(name), "{error}");
            assert!(std::fs::read_dir(&place).unwrap().next().is_none());
            std::fs::set_permissions(&closed, std::fs::Permissions::from_mode(0o755)).unwrap();
        }
        // What is read-only to its owner is copied, restored and removed.
        let bench = Bench::in_dir(&path.join("read-only"));
        bench.write("d/e/f", b"x");
        bench.write("d/g", b"y");
        shell(&bench.source(), "chmod 400 d/e/f; chmod 500 d/e d");
        let sandbox = bench.sandbox();
        assert_eq!(tar_digest(&bench.source()), tar_digest(&sandbox.root()));
        shell(
            &sandbox.root(),
            "chmod 700 d d/e; echo n > d/e/f2; rm -f d/e/f; chmod 500 d d/e",
        );
        sandbox.restore(sandbox.created.tree);
        assert_eq!(tar_digest(&bench.source()), tar_digest(&sandbox.root()));
        wait(bench.engine.remove(sandbox.place.clone())).unwrap();
        assert!(!sandbox.place.exists());
        shell(&bench.source(), "chmod -R u+rwx .");
    });
}

/// Swaps a path for a symlink in the moment the walk judges it.
struct Swapping {
    victim: &'static str,
    root: PathBuf,
    target: PathBuf,
}

impl CarryRules for Swapping {
    fn rule_files(&self) -> &[&str] {
        &[]
    }

    fn enter(&self, _: Option<&RelPath>, _: &str, _: &[u8]) {}

    fn verdict(&self, path: &RelPath, _: bool) -> Verdict {
        let at = self.root.join(path);
        if path.as_str() == self.victim && !at.is_symlink() {
            std::fs::rename(&at, self.root.join("zz-aside")).unwrap();
            symlink(&self.target, &at).unwrap();
        }
        Verdict::Carry
    }
}

#[test]
fn a_symlink_swapped_in_is_never_followed() {
    for (victim, target) in [("dir", ""), ("dir/inner", ""), ("file", "precious")] {
        let bench = Bench::new();
        bench.write("dir/inner/f", b"x");
        bench.write("file", b"y");
        let outside = bench.temp.path().join("outside");
        std::fs::create_dir(&outside).unwrap();
        std::fs::write(outside.join("precious"), "PRECIOUS").unwrap();
        let before = sentinel(&outside);
        let rules = Arc::new(Swapping {
            victim,
            root: bench.source(),
            target: outside.join(target),
        });
        let place = wait(bench.engine.reserve()).unwrap();
        let created = bench.create_with(&place, rules, &[]).unwrap();
        let secret = sandbar_domain::Hash::of(b"PRECIOUS");
        assert_eq!(
            code(wait(bench.engine.get(secret))),
            Code::CorruptObject,
            "{victim}"
        );
        assert!(
            created
                .files
                .iter()
                .all(|file| !file.path.as_str().ends_with("precious"))
        );
        assert_eq!(sentinel(&outside), before);
        let target_of_copy = std::fs::symlink_metadata(place.join("r").join(victim));
        assert!(
            target_of_copy.map_or(true, |meta| meta.is_symlink()),
            "{victim}"
        );
    }
}

#[test]
fn a_file_that_never_holds_still_is_refused_by_name() {
    use std::os::unix::fs::FileExt as _;
    use std::sync::atomic::{AtomicBool, Ordering};
    let bench = Bench::new();
    bench.write("busy.log", &vec![0; 48 << 20]);
    let file = std::fs::OpenOptions::new()
        .write(true)
        .open(bench.source().join("busy.log"))
        .unwrap();
    let stop = AtomicBool::new(false);
    let place = wait(bench.engine.reserve()).unwrap();
    let error = std::thread::scope(|scope| {
        scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                file.write_at(b"x", 5).unwrap();
            }
        });
        let error = bench.create_in(&place);
        stop.store(true, Ordering::Relaxed);
        error.unwrap_err()
    });
    assert_eq!(error.code, Code::UnstableFile);
    assert_eq!(error.subjects, ["busy.log"]);
    assert!(std::fs::read_dir(&place).unwrap().next().is_none());
}

#[test]
fn a_mount_inside_is_refused_by_path() {
    let name = "a_mount_inside_is_refused_by_path";
    if std::env::var_os("SANDBAR_TEST_NAMESPACE").is_none() {
        let flags = if rustix::process::geteuid().is_root() {
            "-m"
        } else {
            "-Urm"
        };
        let status = std::process::Command::new("unshare")
            .arg(flags)
            .arg(std::env::current_exe().unwrap())
            .args(["--exact", name, "--nocapture"])
            .env("SANDBAR_TEST_NAMESPACE", "1")
            .status()
            .unwrap();
        assert!(status.success());
        return;
    }
    // A tmpfs, the same file system bound again, and a single file.
    for mount in [
        "mount -t tmpfs none d/m",
        "mount --bind d/other d/m",
        "mount --bind d/file d/file2",
    ] {
        let bench = Bench::new();
        bench.write("d/m/f", b"x");
        bench.write("d/other/g", b"x");
        bench.write("d/file", b"x");
        bench.write("d/file2", b"x");
        let sandbox = bench.sandbox();
        shell(&bench.source(), mount);
        let place = wait(bench.engine.reserve()).unwrap();
        let error = bench.create_in(&place).unwrap_err();
        assert_eq!(error.code, Code::MountInside, "{mount}: {error}");
        let point = mount.rsplit(' ').next().unwrap();
        assert_eq!(error.subjects, [point]);
        assert!(std::fs::read_dir(&place).unwrap().next().is_none());
        let rules = if point == "d/m" { "d/m" } else { "d/file2" };
        bench
            .create_with(&place, Arc::new(Ignoring(rules)), &[])
            .unwrap();

        // In a sandbox: refused by a scan, and by its removal.
        shell(&sandbox.root(), mount);
        let captured = sandbox.capture_by(sandbox.cache(), false, Arc::new(Everything));
        assert_eq!(code(captured), Code::MountInside);
        let before = sentinel(&sandbox.root().join("d/other"));
        assert_eq!(
            code(wait(bench.engine.remove(sandbox.place.clone()))),
            Code::MountInside
        );
        if point == "d/m" && mount.contains("bind") {
            assert_eq!(shell(&sandbox.root(), "ls d/m"), "g\n");
        }
        shell(&sandbox.root(), &format!("umount {point}"));
        drop(before);
        wait(bench.engine.remove(sandbox.place.clone())).unwrap();
        shell(&bench.source(), &format!("umount {point}"));
    }
}

#[test]
fn roots_are_refused_where_they_would_hold_the_data() {
    let bench = Bench::new();
    bench.write("f", b"x");
    let of = |path: PathBuf| wait(bench.engine.identify(path));
    assert_eq!(code(of("/".into())), Code::RootRefused);
    assert_eq!(code(of(bench.temp.path().into())), Code::RootRefused);
    assert_eq!(code(of(bench.data())), Code::RootRefused);
    assert_eq!(code(of(bench.data().join("s"))), Code::RootRefused);
    assert_eq!(code(of(bench.source().join("none"))), Code::PathNotFound);
    assert_eq!(code(of(bench.source().join("f"))), Code::PathNotFound);
    let link = bench.temp.path().join("link");
    symlink(bench.source(), &link).unwrap();
    assert_eq!(
        of(link).unwrap(),
        sandboxes::root_of(&bench.source().canonicalize().unwrap())
    );
    let own = |path: PathBuf| wait(bench.engine.identify_own(path));
    let sandbox = bench.sandbox();
    assert_eq!(own(sandbox.root()).unwrap(), sandbox.created.root);
    assert_eq!(code(own(bench.source())), Code::SandboxGone);
    assert_eq!(code(own(sandbox.root().join("none"))), Code::SandboxGone);
    assert_eq!(code(own(bench.data().join("objects"))), Code::SandboxGone);
}

#[test]
fn a_sandbox_that_was_replaced_is_not_scanned() {
    let bench = Bench::new();
    bench.write("f", b"x");
    let sandbox = bench.sandbox();
    let capture = |root| {
        wait(bench.engine.capture(sandbar_ports::workspace::Capture {
            root,
            hidden: vec![],
            rules: Arc::new(Everything),
            cache: CacheKey::None,
            install: false,
            progress: Arc::new(sandbar_ports::Silent),
            cancel: sandbar_ports::Cancel::new(),
        }))
    };
    let root = sandbox.created.root.clone();
    capture(root.clone()).unwrap();
    std::fs::rename(&root.path, sandbox.place.join("moved")).unwrap();
    assert_eq!(code(capture(root.clone())), Code::SandboxGone);
    std::fs::create_dir(&root.path).unwrap();
    assert_eq!(code(capture(root.clone())), Code::SandboxGone);
    std::fs::remove_dir(&root.path).unwrap();
    symlink("moved", &root.path).unwrap();
    assert_eq!(code(capture(root)), Code::SandboxGone);
}

#[test]
fn cancelling_leaves_nothing() {
    let bench = Bench::new();
    bench.write("f", b"x");
    let place = wait(bench.engine.reserve()).unwrap();
    let cancel = sandbar_ports::Cancel::new();
    cancel.cancel();
    let source = wait(bench.engine.identify(bench.source())).unwrap();
    let error = wait(bench.engine.create(sandbar_ports::workspace::Create {
        source,
        dest: place.join("r"),
        hidden: vec![],
        rules: Arc::new(Everything),
        progress: Arc::new(sandbar_ports::Silent),
        cancel,
    }));
    assert_eq!(code(error), Code::Interrupted);
    assert!(std::fs::read_dir(&place).unwrap().next().is_none());
    assert!(names(&bench.data().join("objects/tmp")).is_empty());
    assert!(names(&bench.data().join("objects/packs")).is_empty());
}

fn names(dir: &Path) -> Vec<std::ffi::OsString> {
    std::fs::read_dir(dir)
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect()
}

#[test]
fn hidden_names_are_no_part_of_it() {
    let bench = Bench::new();
    bench.write(".git/config", b"x");
    bench.write("sub/.git/config", b"x");
    bench.write("f", b"x");
    let place = wait(bench.engine.reserve()).unwrap();
    let created = bench
        .create_with(&place, Arc::new(Everything), &[".git"])
        .unwrap();
    let paths: Vec<_> = created
        .files
        .iter()
        .map(|f| f.path.as_str().to_owned())
        .collect();
    assert_eq!(paths, ["f", "sub/.git/config"]);
    assert!(!place.join("r/.git").exists());
    assert!(OsStr::from_bytes(b"r") == names(&place).iter().min().unwrap());
}
