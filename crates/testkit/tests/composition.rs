//! The in-memory parts together: a small plan by hand, from sandbox to apply.

use std::ffi::OsString;
use std::sync::Arc;

use sandbar_domain::apply::PathOp;
use sandbar_domain::{Code, Kind, RelPath};
use sandbar_ports::clock::{Clock as _, Names};
use sandbar_ports::exec::{Owner, Run, Runner as _, View};
use sandbar_ports::git::GitState as _;
use sandbar_ports::objects::Objects as _;
use sandbar_ports::rules::Everything;
use sandbar_ports::target::{Job, Targets as _};
use sandbar_ports::workspace::{CacheKey, Capture, Create, Workspaces as _};
use sandbar_ports::{Cancel, Silent};
use sandbar_testkit::memory::disk::What;
use sandbar_testkit::memory::{
    FixedClock, MemDisk, MemGit, MemObjects, MemRunner, MemTargets, MemWorkspaces, SeqIds,
};

fn run_request(program: &str, real: &str, sandbox: &std::path::Path, view: View) -> Run {
    Run {
        argv: vec![OsString::from(program)],
        real: real.into(),
        sandbox: sandbox.to_owned(),
        subdir: "sub".into(),
        view,
        binds: Vec::new(),
        set: Vec::new(),
        unset: Vec::new(),
        stdout_to_stderr: false,
    }
}

#[test]
fn a_command_in_a_sandbox_changes_the_sandbox_and_an_apply_the_rest() {
    sandbar_testkit::run(async {
        let disk = MemDisk::new();
        let put = |path: &str, text: &str| {
            let what = What::of(Kind::File, text.as_bytes().to_vec());
            disk.hold().put(path.as_ref(), what).expect("it is written");
        };
        put("/home/project/file", "old");
        put("/home/project/sub/other", "o");
        let objects = MemObjects::new();
        let data = std::path::Path::new("/data");
        let workspaces = MemWorkspaces::new(&disk, &objects, data).expect("a data directory");
        let targets = MemTargets::new(&disk, &objects, data);
        let runner = MemRunner::new(&disk);
        let real = "/home/project";
        assert_eq!(MemGit.discover(real.into()).await.expect("no error"), None);
        let root = workspaces.identify(real.into()).await.expect("a root");
        let place = workspaces.reserve().await.expect("a place");
        let create = Create {
            source: root.clone(),
            dest: place.join("r"),
            hidden: Vec::new(),
            rules: Arc::new(Everything),
            progress: Arc::new(Silent),
            cancel: Cancel::new(),
        };
        let created = workspaces.create(create).await.expect("a sandbox");
        runner.install("edit", |seat| {
            // By an absolute habit and from the working directory.
            seat.write("/home/project/file", b"new").expect("a write");
            seat.write("made", b"m").expect("a write");
            u8::from(seat.read("other").as_deref() != Some(b"o"))
        });
        let sandbox = created.root.path.clone();
        let missing = run_request("missing", real, &sandbox, View::Plain);
        let error = runner.run(missing).await.expect_err("no such command");
        assert_eq!(error.code, Code::CommandNotFound);
        let edit = run_request("edit", real, &sandbox, View::InPlace);
        let end = runner.run(edit.clone()).await.expect("it runs");
        assert_eq!(end.code, 0);
        let read = |path: &str| match disk.hold().get(path.as_ref()).map(|n| n.what.clone()) {
            Some(What::File { bytes, .. }) => String::from_utf8(bytes).ok(),
            _ => None,
        };
        assert_eq!(read("/home/project/file").as_deref(), Some("old"));
        let capture = Capture {
            root: created.root.clone(),
            hidden: Vec::new(),
            rules: Arc::new(Everything),
            cache: CacheKey::None,
            install: true,
            progress: Arc::new(Silent),
            cancel: Cancel::new(),
        };
        let captured = workspaces.capture(capture).await.expect("a scan");
        let diff = objects.diff(created.tree, captured.tree).await;
        let ops: Vec<PathOp> = diff
            .expect("a difference")
            .into_iter()
            .map(|change| match (change.old, change.new) {
                (None, Some(new)) => PathOp::Create {
                    path: change.path,
                    new,
                },
                (Some(old), Some(new)) => PathOp::Replace {
                    path: change.path,
                    old,
                    new,
                },
                other => panic!("an unexpected change: {other:?}"),
            })
            .collect();
        let paths: Vec<&RelPath> = ops.iter().map(PathOp::path).collect();
        assert_eq!(paths, [&rel("file"), &rel("sub/made")]);
        let kept = targets.preflight(root.clone(), None, ops.clone()).await;
        let job = Job {
            root,
            dir: kept.expect("a place").dir.join("job"),
            ops,
            sources: Default::default(),
            progress: Arc::new(Silent),
            cancel: Cancel::new(),
        };
        targets.stage(job.clone()).await.expect("staged");
        targets.execute(job.clone()).await.expect("executed");
        targets.settle(job).await.expect("settled");
        assert_eq!(read("/home/project/file").as_deref(), Some("new"));
        assert_eq!(read("/home/project/sub/made").as_deref(), Some("m"));
        // In the plain view the same absolute path is the real one.
        put("/home/project/file", "again");
        let plain = run_request("edit", real, &sandbox, View::Plain);
        runner.run(plain).await.expect("it runs");
        assert_eq!(read("/home/project/file").as_deref(), Some("new"));
        runner.allow_in_place(false);
        assert!(!runner.probe().await.in_place);
        let error = runner.run(edit).await.expect_err("it is forbidden");
        assert_eq!(error.code, Code::NotAvailable);
    });
}

fn rel(text: &str) -> RelPath {
    RelPath::new(text).expect("a valid path")
}

#[test]
fn owners_die_when_told_and_never_elsewhere() {
    let runner = MemRunner::new(&MemDisk::new());
    let first = runner.owner();
    assert!(runner.is_alive(&first));
    runner.become_process(2);
    assert_ne!(runner.owner(), first);
    runner.kill(&first);
    assert!(!runner.is_alive(&first));
    assert!(runner.is_alive(&runner.owner()));
    let rebooted = Owner {
        boot: "another".to_owned(),
        ..runner.owner()
    };
    assert!(!runner.is_alive(&rebooted), "another boot of this host");
    let elsewhere = Owner {
        host: "elsewhere".to_owned(),
        ..rebooted
    };
    assert!(runner.is_alive(&elsewhere), "another host counts as alive");
}

#[test]
fn time_stands_still_and_ids_are_in_a_row() {
    let clock = FixedClock::at(5);
    let ids = SeqIds::new();
    let names = Names(&clock, &ids);
    let first = names.plan();
    clock.advance(-10);
    assert_eq!(clock.now_ms(), -5);
    clock.set(5);
    let second = names.plan();
    assert!(first < second, "the same time, the next number");
}

#[test]
fn rotten_objects_are_found() {
    sandbar_testkit::run(async {
        let objects = MemObjects::new();
        let hashes = objects.put(vec![b"good".to_vec(), b"bad".to_vec()]).await;
        let hashes = hashes.expect("stored");
        assert!(objects.damage(hashes[1]));
        let error = objects.get(hashes[1]).await.expect_err("it is damaged");
        assert_eq!(error.code, Code::CorruptObject);
        let health = objects.verify().await.expect("it can be verified");
        assert_eq!(health.damaged, [hashes[1]]);
        objects.get(hashes[0]).await.expect("the other is sound");
        objects.put_now(b"bad");
        objects
            .get(hashes[1])
            .await
            .expect("storing it again heals");
    });
}

#[test]
fn a_read_only_disk_refuses_before_the_first_write() {
    sandbar_testkit::run(async {
        let disk = MemDisk::new();
        let what = What::of(Kind::File, b"x".to_vec());
        disk.hold().put("/p/x".as_ref(), what).expect("written");
        let objects = MemObjects::new();
        let targets = MemTargets::new(&disk, &objects, "/data".as_ref());
        let root = disk.hold().root("/p".as_ref()).expect("a root");
        disk.hold().set_read_only("/p".as_ref(), true);
        let error = targets.preflight(root.clone(), None, Vec::new()).await;
        assert_eq!(error.expect_err("read-only").code, Code::ReadOnly);
        disk.hold().set_read_only("/p".as_ref(), false);
        let place = targets.preflight(root, None, Vec::new()).await;
        place.expect("writable again");
    });
}
