//! Many plans at once on one repository, from processes of their own, with
//! somebody else writing all along.
#![allow(
    clippy::disallowed_methods,
    reason = "tests inspect real trees with foreign means"
)]

use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread::JoinHandle;
use std::time::Duration;

use sandbar_tests::foreign::sh;
use sandbar_tests::product::{Done, World};
use sandbar_tests::{fixture, judge};

/// Replaces a file of its own again and again until it is dropped.
struct Writer {
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<u64>>,
    file: PathBuf,
}

impl Writer {
    fn start(root: &Path) -> Self {
        let (stop, stopped) = mpsc::channel::<()>();
        let file = root.join("outside.txt");
        let (path, draft) = (file.clone(), root.join(".git/outside-draft"));
        let thread = std::thread::spawn(move || {
            let mut count = 0;
            loop {
                count += 1;
                std::fs::write(&draft, format!("{count}\n")).expect("a draft");
                std::fs::rename(&draft, &path).expect("the draft becomes the file");
                match stopped.recv_timeout(Duration::from_millis(3)) {
                    Err(RecvTimeoutError::Timeout) => {}
                    _ => return count,
                }
            }
        });
        Self {
            stop: Some(stop),
            thread: Some(thread),
            file,
        }
    }

    /// Ends it, and sees that its last write is still there.
    fn end(mut self) {
        drop(self.stop.take());
        let count = self
            .thread
            .take()
            .expect("running")
            .join()
            .expect("no panic");
        let last = std::fs::read_to_string(&self.file).expect("its file");
        assert_eq!(last, format!("{count}\n"));
        assert!(count > 10, "{count}");
    }
}

/// Starts all lines at once and waits for all.
fn at_once(world: &World, root: &Path, lines: &[Vec<String>]) -> Vec<Done> {
    std::thread::scope(|scope| {
        let runs: Vec<_> = lines
            .iter()
            .map(|line| scope.spawn(move || world.sandbar(root, line)))
            .collect();
        runs.into_iter()
            .map(|run| run.join().expect("no panic"))
            .collect()
    })
}

// conformance: PLN-3, BAD-23
// conformance: SBX-6 partial: one boundary a plan
#[test]
fn ten_plans_from_ten_processes() {
    let (world, repo) = (World::new(), fixture::plain());
    let root = repo.root();
    let lines: String = (1..=200).map(|n| format!("line {n}\n")).collect();
    std::fs::write(root.join("shared.txt"), lines).expect("a shared file");
    sh(root, "git add shared.txt; git commit -qm shared");
    let writer = Writer::start(root);

    // 0–3: parts of one file; 4, 5: the same line; 6–9: files of their own.
    let script = |n: usize| match n {
        0..=3 => format!("sed -i 's/^line {}$/plan {n}/' shared.txt", 20 + n * 40),
        4 | 5 => format!("sed -i 's/^line 190$/plan {n}/' shared.txt"),
        _ => format!(
            "echo plan {n} > own-{n}.txt; echo '// plan {n}' >> src/lib.rs; git checkout -q src/lib.rs"
        ),
    };
    let runs: Vec<Vec<String>> = (0..10)
        .map(|n| {
            let name = format!("p{n}");
            ["run", "--name", &name, "--", "sh", "-euc", &script(n)]
                .map(str::to_owned)
                .to_vec()
        })
        .collect();
    for done in at_once(&world, root, &runs) {
        drop(done.expect(0));
    }
    let roots: std::collections::BTreeSet<_> = (0..10)
        .map(|n| world.sandbox(root, &format!("p{n}")))
        .collect();
    assert_eq!(roots.len(), 10);
    let applies: Vec<Vec<String>> = (0..10)
        .map(|n| ["apply".to_owned(), format!("p{n}"), "--json".to_owned()].to_vec())
        .collect();
    let mut landed = Vec::new();
    for (n, done) in at_once(&world, root, &applies).into_iter().enumerate() {
        let document = done.json();
        match done.code {
            Some(0) => landed.push(n),
            Some(3) => assert_eq!(document["conflicts"][0]["path"], "shared.txt", "{document}"),
            code => panic!("plan {n} ended with {code:?}: {document}"),
        }
    }
    writer.end();
    let both: Vec<usize> = landed
        .iter()
        .copied()
        .filter(|n| [4, 5].contains(n))
        .collect();
    assert_eq!(
        both.len(),
        1,
        "of the two on one line exactly one lands: {landed:?}"
    );
    assert_eq!(landed.len(), 9, "{landed:?}");

    let shared = std::fs::read_to_string(root.join("shared.txt")).expect("the shared file");
    assert_eq!(shared.lines().count(), 200);
    for n in landed {
        if n <= 5 {
            let count = shared
                .lines()
                .filter(|line| *line == format!("plan {n}"))
                .count();
            assert_eq!(count, 1, "plan {n}");
        } else {
            assert_eq!(sh(root, &format!("cat own-{n}.txt")), format!("plan {n}\n"));
        }
    }
    judge::fsck(root);
}

// conformance: BAD-24, PLN-3 (busy)
#[test]
fn a_second_process_on_one_plan_is_told_who_drives_it() {
    let (world, repo) = (World::new(), fixture::small());
    let root = repo.root();
    let gate = repo.scratch().join("gate");
    let ready = repo.scratch().join("ready");
    sh(repo.scratch(), "mkfifo gate ready");
    let script = format!(
        "echo > {}; cat {} > /dev/null",
        ready.display(),
        gate.display()
    );
    let first = world
        .command(root, &["run", "--name", "busy", "--", "sh", "-c", &script])
        .stdout(std::process::Stdio::null())
        .stderr(std::process::Stdio::null())
        .spawn()
        .expect("sandbar starts");
    // Blocks until the command inside has started.
    let _ = std::fs::read(&ready).expect("the command is running");
    let mut refused = Vec::new();
    for line in [
        &["exec", "busy", "--json", "--", "true"][..],
        &["rollback", "busy", "--to", "1", "--json"],
        &["apply", "busy", "--json"],
        &["discard", "busy", "--json"],
    ] {
        refused.push(world.sandbar(root, line));
    }
    std::fs::write(&gate, "").expect("the command ends");
    let mut first = first;
    assert!(first.wait().expect("sandbar ends").success());
    for done in refused {
        let code = &done.json()["error"]["code"];
        assert!(
            code == "plan_busy" || code == "illegal_state",
            "{}: {}",
            done.line,
            done.stdout
        );
        assert!(
            matches!(done.code, Some(3 | 125)),
            "{}: {:?}",
            done.line,
            done.code
        );
    }
    drop(world.ok(root, &["exec", "busy", "--", "true"]));
}
