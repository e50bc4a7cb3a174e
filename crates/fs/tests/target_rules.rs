//! What writing a target promises beside crashes: carried attributes, racing
//! writers, hostile paths, refusals before the first write (APL-4, APL-5).
#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "tests make and judge trees by plain means"
)]

mod support;

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink};
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use sandbar_domain::apply::PathOp;
use sandbar_domain::{Code, Entry, Hash, Kind, RelPath};
use sandbar_ports::PortError;
use sandbar_ports::target::{Executed, Targets};
use support::{Place, shell, six_kinds, wait};

fn path(text: &str) -> RelPath {
    RelPath::new(text).unwrap()
}

fn file(bytes: &[u8]) -> Entry {
    Entry::new(Kind::File, Hash::of(bytes))
}

fn replace(place: &Place, at: &str, old: &str, new: &str) -> PathOp {
    place.objects().add(old.as_bytes());
    place.objects().add(new.as_bytes());
    PathOp::Replace {
        path: path(at),
        old: file(old.as_bytes()),
        new: file(new.as_bytes()),
    }
}

fn create(place: &Place, at: &str, new: &str) -> PathOp {
    place.objects().add(new.as_bytes());
    PathOp::Create {
        path: path(at),
        new: file(new.as_bytes()),
    }
}

fn refusal(place: &Place, ops: &[PathOp]) -> PortError {
    let before = place.digest("root");
    let refused = wait(place.targets().preflight(place.root(), None, ops.to_vec())).unwrap_err();
    assert_eq!(place.digest("root"), before);
    refused
}

/// Runs the calling test again in a mount namespace of its own, after
/// `setup` in its `$PLACE`; returns the place there, `None` out here.
fn in_namespace(test: &str, setup: &str) -> Option<Place> {
    if std::env::var_os("SANDBAR_TEST_NAMESPACE").is_some() {
        let place = Place::new();
        let line = setup.replace("$PLACE", place.temp.path().to_str().unwrap());
        shell(place.temp.path(), &line);
        return Some(place);
    }
    let out = Command::new("unshare")
        .args(["-Urm", "--"])
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", test, "--nocapture"])
        .env("SANDBAR_TEST_NAMESPACE", "1")
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&out.stdout).into_owned();
    let errors = String::from_utf8_lossy(&out.stderr).into_owned();
    assert!(out.status.success(), "{text}{errors}");
    None
}

#[test]
fn one_apply_at_a_time_holds_a_root() {
    let place = Place::new();
    let targets = place.targets();
    let lock = wait(targets.lock(place.root())).unwrap();
    let busy = wait(targets.lock(place.root())).err().unwrap();
    assert_eq!(busy.code, Code::RootBusy);
    drop(lock);
    let lock = wait(targets.lock(place.root())).unwrap();
    drop(lock);
    let mut other = place.root();
    other.inode += 1;
    let gone = wait(targets.lock(other)).err().unwrap();
    assert_eq!(gone.code, Code::SandboxGone);
}

#[test]
fn observe_sees_what_is_there_and_nothing_through_a_symlink() {
    let place = Place::new();
    shell(
        &place.path("root"),
        "echo a > f; chmod +x f; mkdir d; echo b > d/g; ln -s d l; \
         head -c 20000000 /dev/zero > big; mkfifo fifo",
    );
    let ask = ["f", "d", "d/g", "l", "l/g", "f/x", "none/x", "big"];
    let seen = wait(
        place
            .targets()
            .observe(place.root(), ask.map(path).to_vec()),
    )
    .unwrap();
    let big = vec![0; 20_000_000];
    assert_eq!(
        seen,
        [
            Some(Entry::new(Kind::Executable, Hash::of(b"a\n"))),
            Some(Entry::new(Kind::Directory, sandbar_domain::tree::empty())),
            Some(file(b"b\n")),
            Some(Entry::new(Kind::Symlink, Hash::of(b"d"))),
            None,
            None,
            None,
            Some(file(&big)),
        ]
    );
    for bytes in [&b"a\n"[..], b"d", &big] {
        let stored = place.path("objects").join(Hash::of(bytes).to_string());
        assert_eq!(fs::read(stored).unwrap(), bytes);
    }
    let fifo = wait(place.targets().observe(place.root(), vec![path("fifo")]));
    assert_eq!(fifo.unwrap_err().code, Code::UnsupportedEntry);
}

#[test]
fn mode_owner_acl_and_attributes_are_carried() {
    let place = Place::new();
    let root = place.path("root");
    fs::write(root.join("a"), "old").unwrap();
    let set = |name: &str, value: &[u8]| {
        let flags = rustix::fs::XattrFlags::empty();
        rustix::fs::setxattr(root.join("a"), name, value, flags).unwrap();
    };
    set("user.note", b"kept");
    // u::rw-, u:1234:rwx, g::r--, m::rwx, o::---
    let acl: &[u8] = &[
        2, 0, 0, 0, 1, 0, 6, 0, 255, 255, 255, 255, 2, 0, 7, 0, 210, 4, 0, 0, 4, 0, 4, 0, 255, 255,
        255, 255, 16, 0, 7, 0, 255, 255, 255, 255, 32, 0, 0, 0, 255, 255, 255, 255,
    ];
    set("system.posix_acl_access", acl);
    let is_root = rustix::process::geteuid().is_root();
    if is_root {
        chown(root.join("a"), Some(1234), Some(2345)).unwrap();
        fs::create_dir(root.join("theirs")).unwrap();
        chown(root.join("theirs"), Some(77), Some(78)).unwrap();
    } else {
        println!("owners are not tested: not root");
        fs::create_dir(root.join("theirs")).unwrap();
    }
    let before = fs::metadata(root.join("a")).unwrap();
    let ops = [
        PathOp::MakeDir {
            path: path("theirs/new"),
        },
        replace(&place, "a", "old", "new"),
        create(&place, "theirs/new/f", "f"),
    ];
    let (targets, job) = (place.targets(), || place.job(&ops));
    wait(targets.preflight(place.root(), None, ops.to_vec())).unwrap();
    wait(targets.stage(job())).unwrap();
    let done = wait(targets.execute(job())).unwrap();
    assert_eq!(done.done.len(), 3, "{done:?}");
    assert_eq!(fs::read(root.join("a")).unwrap(), b"new");
    let after = fs::metadata(root.join("a")).unwrap();
    assert_eq!(
        (after.mode(), after.uid(), after.gid()),
        (before.mode(), before.uid(), before.gid())
    );
    let get = |name: &str| {
        let mut value = vec![0; 256];
        let count = rustix::fs::getxattr(root.join("a"), name, &mut value[..]).unwrap();
        value.truncate(count);
        value
    };
    assert_eq!(get("user.note"), b"kept");
    assert_eq!(get("system.posix_acl_access"), acl);
    if is_root {
        for name in ["theirs/new", "theirs/new/f"] {
            let seen = fs::metadata(root.join(name)).unwrap();
            assert_eq!((seen.uid(), seen.gid()), (77, 78), "{name}");
        }
    }
}

#[test]
fn another_writer_before_us_keeps_what_it_wrote() {
    type Disturb = fn(&Path);
    let cases: [(&str, Disturb); 6] = [
        ("replaced", |root| {
            fs::write(root.join("replaced"), "theirs").unwrap()
        }),
        ("replaced", |root| {
            fs::remove_file(root.join("replaced")).unwrap()
        }),
        ("executable", |root| {
            fs::write(root.join("executable"), "theirs").unwrap()
        }),
        ("gone/y", |root| {
            fs::write(root.join("gone/y"), "theirs").unwrap()
        }),
        ("script", |root| {
            fs::write(root.join("script"), "theirs").unwrap()
        }),
        ("replaced", |root| {
            fs::remove_file(root.join("replaced")).unwrap();
            fs::create_dir(root.join("replaced")).unwrap();
        }),
    ];
    for (at, disturb) in cases {
        let place = Place::new();
        six_kinds(&place);
        let ops = place.ops();
        let (targets, job) = (place.targets(), || place.job(&ops));
        wait(targets.stage(job())).unwrap();
        disturb(&place.path("root"));
        let before = place.digest("root");
        let done = wait(targets.execute(job())).unwrap();
        assert_eq!(done.raced, [path(at)], "{done:?}");
        let again = wait(targets.execute(job())).unwrap();
        assert_eq!(again.raced, done.raced);
        let undone = wait(targets.undo(job())).unwrap();
        assert!(undone.failed.is_empty(), "{undone:?}");
        assert_eq!(place.digest("root"), before, "{at}");
        wait(targets.sweep(job())).unwrap();
        assert_eq!(shell(&place.path("data"), "find . -path '*job*'"), "");
    }
}

#[test]
fn an_edit_after_execute_survives_the_undo() {
    let place = Place::new();
    six_kinds(&place);
    let ops = place.ops();
    let (targets, job) = (place.targets(), || place.job(&ops));
    wait(targets.stage(job())).unwrap();
    wait(targets.execute(job())).unwrap();
    let root = place.path("root");
    fs::write(root.join("replaced"), "edited").unwrap();
    fs::write(root.join("executable"), "edited").unwrap();
    fs::write(root.join("new/theirs"), "added").unwrap();
    fs::create_dir(root.join("gone")).unwrap();
    let undone = wait(targets.undo(job())).unwrap();
    let raced: Vec<_> = undone.raced.iter().map(RelPath::as_str).collect();
    assert_eq!(raced, ["replaced", "executable"], "{undone:?}");
    assert_eq!(undone.left, [path("new")]);
    assert_eq!(fs::read(root.join("replaced")).unwrap(), b"edited");
    assert_eq!(fs::read(root.join("executable")).unwrap(), b"edited");
    assert_eq!(fs::read(root.join("new/theirs")).unwrap(), b"added");
    assert_eq!(fs::read(root.join("gone/y")).unwrap(), b"y\n");
    // What the edit covered is still to be had.
    wait(targets.sweep(job())).unwrap();
    let left = shell(&place.path("data"), "cat kept/job/left/*");
    assert!(left.contains("one\n"), "{left}");
}

/// One writer replaces a file by rename while applies replace it too: its
/// last content is in the tree or kept, every time.
#[test]
fn a_racing_writer_loses_nothing() {
    let place = Place::new();
    let root = place.path("root");
    let (targets, mut raced, mut applied) = (place.targets(), 0, 0);
    let ops = [replace(&place, "a", "old", "new")];
    for round in 0..1_000u32 {
        shell_free_reset(&place);
        fs::write(root.join("a"), "old").unwrap();
        wait(targets.stage(place.job(&ops))).unwrap();
        let theirs = format!("theirs {round}");
        fs::write(place.path("theirs"), &theirs).unwrap();
        let done = std::thread::scope(|scope| {
            scope.spawn(|| {
                for _ in 0..(round % 97) * 20 {
                    std::hint::spin_loop();
                }
                fs::rename(place.path("theirs"), root.join("a")).unwrap();
            });
            wait(targets.execute(place.job(&ops))).unwrap()
        });
        if done.raced.is_empty() {
            applied += 1;
        } else {
            raced += 1;
            wait(targets.undo(place.job(&ops))).unwrap();
        }
        let now = fs::read_to_string(root.join("a")).unwrap();
        let somewhere = now == theirs || kept_texts(&place).contains(&theirs);
        assert!(somewhere, "round {round}: {now:?}, {done:?}");
        // Ours came last: what it displaced is theirs or the old content.
        assert!(now == theirs || done.raced.is_empty(), "round {round}");
    }
    println!("raced {raced}, applied {applied}");
}

fn shell_free_reset(place: &Place) {
    for name in ["root", "data"] {
        fs::remove_dir_all(place.path(name)).unwrap();
        fs::create_dir(place.path(name)).unwrap();
    }
}

fn kept_texts(place: &Place) -> Vec<String> {
    let job = place.path("data").join("kept/job");
    let mut texts = Vec::new();
    for dir in ["new", "old", "kept", "left"] {
        for entry in fs::read_dir(job.join(dir)).into_iter().flatten() {
            texts.push(fs::read_to_string(entry.unwrap().path()).unwrap());
        }
    }
    texts
}

/// A directory of the path becomes a symlink to the outside and back, all the
/// time, at two depths: nothing outside is ever written.
// conformance: BAD-4 (swapped in meanwhile) partial: directories, on the way of an apply
#[test]
fn a_swapped_directory_leads_nowhere() {
    let place = Place::new();
    let root = place.path("root");
    fs::create_dir_all(place.path("outside/e")).unwrap();
    for name in ["outside/f", "outside/e/f"] {
        fs::write(place.path(name), "old").unwrap();
    }
    let before = place.digest("outside");
    let ops = [
        create(&place, "d/e/made", "made"),
        replace(&place, "d/e/f", "old", "new"),
    ];
    let (stop, swaps) = (AtomicBool::new(false), AtomicU64::new(0));
    let mut done = 0;
    let long = std::env::var_os("SANDBAR_TEST_LONG").is_some();
    let rounds = if long { 100_000 } else { 2_000 };
    for round in 0..rounds {
        shell_free_reset(&place);
        fs::create_dir_all(root.join("d/e")).unwrap();
        fs::write(root.join("d/e/f"), "old").unwrap();
        let (at, to) = match round % 2 {
            0 => ("d", "outside"),
            _ => ("d/e", "outside/e"),
        };
        if wait(place.targets().stage(place.job(&ops))).is_err() {
            panic!("nothing is swapped yet");
        }
        stop.store(false, Ordering::Relaxed);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let (real, aside) = (root.join(at), place.path("data/aside"));
                while !stop.load(Ordering::Relaxed) {
                    fs::rename(&real, &aside).unwrap();
                    symlink(place.path(to), &real).unwrap();
                    fs::remove_file(&real).unwrap();
                    fs::rename(&aside, &real).unwrap();
                    swaps.fetch_add(1, Ordering::Relaxed);
                }
            });
            let job = || place.job(&ops);
            let executed = wait(place.targets().execute(job()));
            let complete = |e: &Executed| e.raced.is_empty() && e.failed.is_empty();
            let undone = match &executed {
                Ok(executed) if complete(executed) => None,
                _ => Some(wait(place.targets().undo(job()))),
            };
            // First of all: the other thread is waited for even in a panic.
            stop.store(true, Ordering::Relaxed);
            executed.unwrap();
            match undone {
                None => done += 1,
                Some(undone) => drop(undone.unwrap()),
            }
        });
        if round % 100 == 99 {
            assert_eq!(place.digest("outside"), before, "round {round}");
        }
    }
    assert_eq!(place.digest("outside"), before);
    let swaps = swaps.load(Ordering::Relaxed);
    println!("harness swap: {rounds} points, 0 violations ({done} done, {swaps} swaps)");
    // Where `cargo xtask conformance` collects counts.
    let test = std::env::current_exe().unwrap();
    let dir = test.ancestors().nth(3).unwrap().join("harnesses");
    fs::create_dir_all(&dir).unwrap();
    let size = if long { "long" } else { "short" };
    let record = format!(
        r#"{{"harness":"swap","part":"targets","size":"{size}","points":{rounds},"violations":0,"notes":[]}}"#
    );
    fs::write(dir.join("swap-targets.json"), record).unwrap();
    assert!(swaps > 2_000 && done > 0);
}

#[test]
fn refusals_name_every_path_and_write_nothing() {
    let place = Place::new();
    shell(
        &place.path("root"),
        "echo a > f; mkdir d; echo b > d/g; echo c > d/stray; ln -s d l; mkdir e; mkfifo e/p",
    );
    let refused = refusal(
        &place,
        &[
            create(&place, "f", "x"),
            create(&place, "l/x", "x"),
            create(&place, "none/x", "x"),
            replace(&place, "gone", "a", "b"),
        ],
    );
    assert_eq!(refused.code, Code::Drift);
    assert_eq!(refused.subjects.len(), 4, "{:?}", refused.subjects);
    assert!(refused.subjects[1].contains("symbolic link"), "{refused:?}");
    // A directory that becomes a file must hold nothing else.
    let refused = refusal(
        &place,
        &[
            PathOp::Remove {
                path: path("d/g"),
                old: file(b"b\n"),
            },
            PathOp::RemoveDir { path: path("d") },
            create(&place, "d", "x"),
        ],
    );
    assert_eq!(refused.code, Code::Drift);
    assert!(refused.to_string().contains("stray"), "{refused}");
}

#[test]
fn the_kept_place_is_on_the_mount_of_the_root() {
    let Some(place) = in_namespace(
        "the_kept_place_is_on_the_mount_of_the_root",
        "mount -t tmpfs none $PLACE/root; mkdir -p $PLACE/root/.git; echo old > $PLACE/root/a",
    ) else {
        return;
    };
    let ops = vec![replace(&place, "a", "old\n", "new")];
    let root = place.root();
    let choose = |git: Option<std::path::PathBuf>| {
        wait(place.targets().preflight(root.clone(), git, ops.clone()))
            .unwrap()
            .dir
    };
    let git = root.path.join(".git");
    assert_eq!(choose(Some(git.clone())), git.join("sandbar/kept"));
    let inside = choose(Some(place.path("want")));
    assert_eq!(inside, root.path.join(".sandbar/kept"));
    let mut job = place.job(&ops);
    job.dir = inside.join("job");
    wait(place.targets().stage(job.clone())).unwrap();
    wait(place.targets().execute(job.clone())).unwrap();
    let kept = wait(place.targets().settle(job)).unwrap();
    assert_eq!(fs::read(&kept[0].at).unwrap(), b"old\n");
    assert_eq!(fs::read(root.path.join("a")).unwrap(), b"new");
    assert_eq!(
        fs::read(root.path.join(".sandbar/.gitignore")).unwrap(),
        b"*\n"
    );
    // On one mount the data directory is the first choice.
    let plain = Place::new();
    let ops = vec![create(&plain, "b", "b")];
    let kept = wait(plain.targets().preflight(plain.root(), None, ops)).unwrap();
    assert_eq!(kept.dir, plain.path("data").join("kept"));
}

#[test]
fn mounts_inside_are_refused_and_a_file_mounted_alone_is_written_in_place() {
    let Some(place) = in_namespace(
        "mounts_inside_are_refused_and_a_file_mounted_alone_is_written_in_place",
        "mkdir $PLACE/root/m; mount -t tmpfs none $PLACE/root/m; echo x > $PLACE/root/m/x; \
         echo a longer content > $PLACE/single; touch $PLACE/root/single; \
         chmod 640 $PLACE/single; mount --bind $PLACE/single $PLACE/root/single; \
         echo b > $PLACE/root/b",
    ) else {
        return;
    };
    let refused = refusal(&place, &[replace(&place, "m/x", "x\n", "y")]);
    assert_eq!(refused.code, Code::MountInside);
    let old = "a longer content\n";
    let ops = [
        replace(&place, "b", "b\n", "c"),
        replace(&place, "single", old, "short"),
    ];
    let (targets, job) = (place.targets(), || place.job(&ops));
    wait(targets.preflight(place.root(), None, ops.to_vec())).unwrap();
    wait(targets.stage(job())).unwrap();
    let single = place.path("single");
    for _ in 0..2 {
        let done = wait(targets.execute(job())).unwrap();
        assert_eq!(done.in_place, [path("single")], "{done:?}");
        assert_eq!(fs::read(&single).unwrap(), b"short");
    }
    // A write that was cut short is ours to take back.
    fs::write(&single, "shortger content\n").unwrap();
    let undone = wait(targets.undo(job())).unwrap();
    assert!(undone.raced.is_empty(), "{undone:?}");
    assert_eq!(fs::read(&single).unwrap(), old.as_bytes());
    wait(targets.execute(job())).unwrap();
    // Someone else's is not.
    fs::write(&single, "theirs").unwrap();
    let undone = wait(targets.undo(job())).unwrap();
    assert_eq!(undone.raced, [path("single")]);
    assert_eq!(fs::read(&single).unwrap(), b"theirs");
    wait(targets.sweep(job())).unwrap();
    let left = place.path("data").join("kept/job/left/1");
    assert_eq!(fs::read(&left).unwrap(), old.as_bytes());
    assert_eq!(fs::metadata(&left).unwrap().mode() & 0o777, 0o640);
}

#[test]
fn no_space_and_read_only_are_told_before() {
    let Some(place) = in_namespace(
        "no_space_and_read_only_are_told_before",
        "mount -t tmpfs -o size=4m,nr_inodes=20 none $PLACE/root; echo a > $PLACE/root/a",
    ) else {
        return;
    };
    let refused = refusal(&place, &[create(&place, "big", &"x".repeat(5 << 20))]);
    assert_eq!(refused.code, Code::NoSpace);
    let many: Vec<_> = (0..30)
        .map(|n| create(&place, &format!("n{n}"), "x"))
        .collect();
    assert_eq!(refusal(&place, &many).code, Code::NoSpace);
    shell(&place.path("root"), "mount -o remount,ro .");
    let refused = refusal(&place, &[create(&place, "b", "b")]);
    assert_eq!(refused.code, Code::ReadOnly);
}

/// Root may do everything, so an ordinary user asks.
#[test]
fn what_the_user_may_not_write_is_named_before() {
    const VARIABLE: &str = "SANDBAR_TEST_AS_NOBODY";
    if let Some(temp) = std::env::var_os(VARIABLE) {
        return as_nobody(Path::new(&temp));
    }
    if !rustix::process::geteuid().is_root() {
        println!("not tested: only root can make files of others");
        return;
    }
    let place = Place::new();
    shell(
        place.temp.path(),
        "chmod 755 . ; chown -R 65534:65534 root data want objects; cd root
         mkdir shut sticky; chmod 1777 sticky; echo a > shut/f; echo b > theirs; echo c > group
         echo d > sticky/f; echo e > fine; echo g > hidden; chmod 600 hidden
         chown 65534:65534 fine; chown 65534:0 group; chown 1:65534 hidden",
    );
    let out = Command::new("setpriv")
        .args(["--reuid=65534", "--regid=65534", "--clear-groups", "--"])
        .arg(std::env::current_exe().unwrap())
        .args([
            "--exact",
            "what_the_user_may_not_write_is_named_before",
            "--nocapture",
        ])
        .env(VARIABLE, place.temp.path())
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&out.stdout).into_owned();
    let errors = String::from_utf8_lossy(&out.stderr).into_owned();
    assert!(out.status.success(), "{text}{errors}");
}

fn as_nobody(temp: &Path) {
    let objects = support::Plain(temp.join("objects"));
    for text in ["a\n", "b\n", "c\n", "d\n", "e\n", "g\n", "new"] {
        objects.add(text.as_bytes());
    }
    let seen = fs::metadata(temp.join("root")).unwrap();
    let root = sandbar_domain::resource::Root {
        path: temp.join("root"),
        device: seen.dev(),
        inode: seen.ino(),
    };
    let targets =
        sandbar_fs::target::FsTargets::new(std::sync::Arc::new(objects), temp.join("data"));
    let replace = |at: &str, old: &str| PathOp::Replace {
        path: path(at),
        old: file(old.as_bytes()),
        new: file(b"new"),
    };
    let ops = vec![
        replace("shut/f", "a\n"),
        replace("theirs", "b\n"),
        replace("group", "c\n"),
        replace("sticky/f", "d\n"),
        replace("hidden", "g\n"),
        replace("fine", "e\n"),
    ];
    let refused = wait(targets.preflight(root.clone(), None, ops)).unwrap_err();
    assert_eq!(refused.code, Code::PermissionDenied);
    let named: Vec<_> = refused.subjects.iter().map(String::as_str).collect();
    for at in ["shut/f", "theirs", "group", "sticky/f", "hidden"] {
        assert!(
            named.iter().any(|text| text.contains(at)),
            "{at}: {named:?}"
        );
    }
    assert!(!named.iter().any(|text| text.contains("fine")), "{named:?}");
    wait(targets.preflight(root, None, vec![replace("fine", "e\n")])).unwrap();
}

/// Counts durable calls: at most one a file and directory touched, and a few.
#[test]
fn durability_costs_one_call_a_file_and_directory() {
    let place = Place::new();
    let (dirs, files) = (10, 20);
    for d in 0..dirs {
        for name in ["root", "want"] {
            fs::create_dir(place.path(name).join(format!("d{d}"))).unwrap();
        }
        for f in 0..files {
            let name = format!("d{d}/f{f}");
            fs::write(place.path("root").join(&name), "old").unwrap();
            fs::write(place.path("want").join(&name), name).unwrap();
        }
    }
    let ops = place.ops();
    fs::write(place.path("ops"), sandbar_domain::apply::encode_ops(&ops)).unwrap();
    let trace = |step: &str| {
        let log = place.path(step);
        let out = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "durability_probe", "--nocapture"])
            .env("SANDBAR_PROBE_STEP", step)
            .env("SANDBAR_PROBE_PLACE", place.temp.path())
            .env("SANDBAR_EFFECT_LOG", &log)
            .status()
            .unwrap();
        assert!(out.success());
        let text = fs::read_to_string(log).unwrap();
        text.lines().filter(|line| line.contains("fsync")).count()
    };
    let (stage, execute, settle) = (trace("stage"), trace("execute"), trace("settle"));
    println!(
        "fsyncs for 200 files in 10 directories: stage {stage}, execute {execute}, settle {settle}"
    );
    assert!(stage <= dirs * files + 5, "{stage}");
    assert!(execute <= dirs + 5, "{execute}");
    assert!(settle <= dirs * files + 5, "{settle}");
    assert_eq!(place.digest("root"), place.digest("want"));
}

/// The step that the count above runs in a process of its own; without one,
/// a job of no operation, which leaves nothing behind.
#[test]
fn durability_probe() {
    let (place, temp, step) = match std::env::var("SANDBAR_PROBE_STEP") {
        Ok(step) => {
            let temp = std::env::var_os("SANDBAR_PROBE_PLACE").unwrap();
            (None, std::path::PathBuf::from(temp), step)
        }
        Err(_) => {
            let place = Place::new();
            let temp = place.temp.path().to_owned();
            fs::write(temp.join("ops"), sandbar_domain::apply::encode_ops(&[])).unwrap();
            (Some(place), temp, "all".to_owned())
        }
    };
    let (targets, job) = support::reopen(&temp);
    wait(async {
        for name in ["stage", "execute", "settle"] {
            if step == "all" || step == name {
                match name {
                    "stage" => targets.stage(job.clone()).await.unwrap(),
                    "execute" => drop(targets.execute(job.clone()).await.unwrap()),
                    _ => drop(targets.settle(job.clone()).await.unwrap()),
                }
            }
        }
    });
    if let Some(place) = place {
        assert_eq!(shell(&place.path("data"), "find . -path '*job*'"), "");
        assert_eq!(
            fs::metadata(place.path("root"))
                .unwrap()
                .permissions()
                .mode()
                & 0o700,
            0o700
        );
    }
}
