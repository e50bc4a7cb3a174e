//! The use cases over the in-memory composition: no disk, no process, no
//! database. What they promise must not depend on any real adapter.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use sandbar::config::{Config, Layer};
use sandbar::domain::plan::PlanState;
use sandbar::domain::{Code, Kind};
use sandbar::ports::PortError;
use sandbar::ports::exec::Runner as _;
use sandbar::{
    ApplyReport, ApplyRequest, ExecRequest, GcRequest, Outcome, Parts, Resulting, RunReport,
    RunRequest, Sandbar, StepOutcome, Surroundings, UndoRequest,
};
use sandbar_testkit::memory::disk::What;
use sandbar_testkit::memory::{
    FixedClock, MemDisk, MemGit, MemGraphStore, MemObjects, MemPins, MemRunner, MemStore,
    MemTargets, MemWorkspaces, Seat, SeqIds,
};

const REAL: &str = "/home/project";

struct World {
    disk: MemDisk,
    runner: MemRunner,
    clock: FixedClock,
    parts: Parts,
    said: Arc<Mutex<Vec<String>>>,
}

impl World {
    fn new() -> Self {
        let disk = MemDisk::new();
        let objects = MemObjects::new();
        let data = Path::new("/data");
        let runner = MemRunner::new(&disk);
        let clock = FixedClock::at(1_000_000);
        let workspaces = MemWorkspaces::new(&disk, &objects, data).expect("a data directory");
        let parts = Parts {
            workspaces: Arc::new(workspaces),
            pins: Arc::new(MemPins),
            objects: Arc::new(objects.clone()),
            contents: Arc::new(objects.clone()),
            targets: Arc::new(MemTargets::new(&disk, &objects, data)),
            git: Arc::new(MemGit),
            store: Arc::new(MemStore::new()),
            graph: Arc::new(MemGraphStore::new()),
            runner: Arc::new(runner.clone()),
            clock: Arc::new(clock.clone()),
            ids: Arc::new(SeqIds::new()),
        };
        let world = Self {
            disk,
            runner,
            clock,
            parts,
            said: Arc::default(),
        };
        world.put("file", "1\n2\n3\n4\n5\n");
        world.put("sub/other", "o\n");
        world
    }

    fn put(&self, path: &str, text: &str) {
        let what = What::of(Kind::File, text.as_bytes().to_vec());
        self.disk
            .hold()
            .put(&Path::new(REAL).join(path), what)
            .expect("it is written");
    }

    fn real(&self, path: &str) -> Option<String> {
        let disk = self.disk.hold();
        let node = disk.get(&Path::new(REAL).join(path))?;
        node.what
            .content()
            .map(|bytes| String::from_utf8_lossy(bytes).into_owned())
    }

    fn program(&self, name: &str, body: impl Fn(&Seat<'_>) -> u8 + Send + Sync + 'static) {
        self.runner.install(name, body);
    }

    fn sandbar(&self, settings: &[(&str, &str)]) -> Sandbar {
        let mut config = Config::default();
        for (key, value) in settings {
            config
                .add(Layer::flag("test", key, (*value).to_owned()))
                .expect("a good setting");
        }
        let said = Arc::clone(&self.said);
        let around = Surroundings {
            say: Arc::new(move |text| said.lock().expect("whole").push(text.to_owned())),
            ..Surroundings::silent()
        };
        Sandbar::new(self.parts.clone(), config, around)
    }
}

fn here() -> PathBuf {
    REAL.into()
}

async fn run(sandbar: &Sandbar, name: &str, program: &str) -> Result<RunReport, PortError> {
    let request = RunRequest {
        name: Some(name.into()),
        cwd: here(),
        argv: vec![OsString::from(program)],
        base: None,
        bring: sandbar::Bring::default(),
        view: None,
        rollback_on_failure: false,
        stdout_to_stderr: false,
    };
    sandbar.run(request).await
}

async fn exec(sandbar: &Sandbar, name: &str, program: &str) -> Result<RunReport, PortError> {
    let request = ExecRequest {
        plan: name.into(),
        cwd: here(),
        argv: vec![OsString::from(program)],
        rollback_on_failure: false,
        stdout_to_stderr: false,
    };
    sandbar.exec(request).await
}

async fn apply(sandbar: &Sandbar, name: &str) -> Result<ApplyReport, PortError> {
    let request = ApplyRequest {
        plan: name.into(),
        cwd: here(),
        paths: Vec::new(),
        resources: Vec::new(),
        dry_run: false,
        resulting: Resulting::Uncommitted,
        onto_current: false,
        allow_filters: false,
    };
    sandbar.apply(request).await
}

fn edit_all(world: &World) {
    world.program("edit", |seat| {
        seat.write("file", b"1\n2\n3\n4\nfive\n").expect("a write");
        seat.write("made", b"m\n").expect("a write");
        seat.remove("sub/other").expect("a removal");
        0
    });
}

// conformance: SRF-1, PLN-4, APL-1, APL-2
#[test]
fn the_main_job_needs_no_real_adapter() {
    sandbar_testkit::run(async {
        let world = World::new();
        edit_all(&world);
        let sandbar = world.sandbar(&[]);
        let report = run(&sandbar, "p", "edit").await.expect("it runs");
        assert_eq!(report.exit_code, 0);
        let counts = report.changes.counts();
        assert_eq!((counts.added, counts.modified, counts.deleted), (1, 1, 1));
        assert_eq!(world.real("file").as_deref(), Some("1\n2\n3\n4\n5\n"));
        assert_eq!(world.real("made"), None);
        world.put("mine", "the user's own\n");
        world.put("file", "one\n2\n3\n4\n5\n");
        let report = apply(&sandbar, "p").await.expect("it applies");
        assert_eq!(report.outcome, Outcome::Applied);
        assert_eq!(report.plan.plan.mark.state, PlanState::Applied);
        assert_eq!(world.real("file").as_deref(), Some("one\n2\n3\n4\nfive\n"));
        assert_eq!(world.real("made").as_deref(), Some("m\n"));
        assert_eq!(world.real("sub/other"), None);
        assert_eq!(world.real("mine").as_deref(), Some("the user's own\n"));
        let error = apply(&sandbar, "p").await.expect_err("it is over");
        assert_eq!(error.code, Code::SandboxGone);
    });
}

// conformance: APL-3
#[test]
fn a_conflict_writes_nothing_and_the_plan_can_be_applied_later() {
    sandbar_testkit::run(async {
        let world = World::new();
        edit_all(&world);
        let sandbar = world.sandbar(&[]);
        run(&sandbar, "p", "edit").await.expect("it runs");
        world.put("file", "1\n2\n3\n4\nFIVE\n");
        let report = apply(&sandbar, "p").await.expect("an answer");
        assert_eq!(report.outcome, Outcome::Conflict);
        assert_eq!(report.conflicts.len(), 1);
        assert_eq!(report.conflicts[0].path, "file");
        assert_eq!(report.plan.plan.mark.state, PlanState::Review);
        assert_eq!(world.real("made"), None);
        assert_eq!(world.real("sub/other").as_deref(), Some("o\n"));
        world.put("file", "1\n2\n3\n4\n5\n");
        assert_eq!(
            apply(&sandbar, "p").await.expect("it applies").outcome,
            Outcome::Applied
        );
        assert_eq!(world.real("made").as_deref(), Some("m\n"));
    });
}

// conformance: CKP-1, CKP-4
#[test]
fn checkpoints_are_reused_and_a_rollback_can_be_rolled_back() {
    sandbar_testkit::run(async {
        let world = World::new();
        edit_all(&world);
        world.program("look", |seat| u8::from(seat.read("made").is_none()));
        let sandbar = world.sandbar(&[]);
        let first = run(&sandbar, "p", "edit").await.expect("it runs");
        assert_eq!(first.checkpoint, 2);
        let second = exec(&sandbar, "p", "look").await.expect("it runs");
        assert_eq!(
            (second.exit_code, second.checkpoint),
            (0, 2),
            "nothing changed"
        );
        let back = sandbar
            .rollback("p", "1", &here())
            .await
            .expect("it goes back");
        assert_eq!(back.to, 1);
        assert_eq!(
            exec(&sandbar, "p", "look")
                .await
                .expect("it runs")
                .exit_code,
            1
        );
        let status = sandbar.status("p", &here()).await.expect("a status");
        assert!(status.changes.is_empty());
        sandbar
            .rollback("p", "2", &here())
            .await
            .expect("it goes forth");
        assert_eq!(
            exec(&sandbar, "p", "look")
                .await
                .expect("it runs")
                .exit_code,
            0
        );
        let status = sandbar.status("p", &here()).await.expect("a status");
        assert_eq!(status.changes.changes(), first.changes.changes());
        let error = sandbar
            .rollback("p", "99", &here())
            .await
            .expect_err("there is none");
        assert_eq!(error.code, Code::CheckpointNotFound);
    });
}

// conformance: CKP-3
#[test]
fn surplus_checkpoints_go_and_both_ends_stay() {
    sandbar_testkit::run(async {
        let world = World::new();
        let count = Arc::new(Mutex::new(0));
        world.program("tick", move |seat| {
            let mut count = count.lock().expect("whole");
            *count += 1;
            seat.write("tick", count.to_string().as_bytes())
                .expect("a write");
            0
        });
        let sandbar = world.sandbar(&[("sandbox.checkpoint.max-per-plan", "3")]);
        run(&sandbar, "p", "tick").await.expect("it runs");
        for _ in 0..5 {
            exec(&sandbar, "p", "tick").await.expect("it runs");
        }
        let (_, log) = sandbar.log("p", &here()).await.expect("a log");
        let numbers: Vec<u64> = log.iter().map(|entry| entry.checkpoint.sequence).collect();
        assert_eq!(numbers, [1, 6, 7]);
    });
}

// conformance: CKP-1
#[test]
fn a_failed_step_is_rolled_back_and_a_good_one_saved() {
    sandbar_testkit::run(async {
        let world = World::new();
        world.program("nothing", |_| 0);
        let sandbar = world.sandbar(&[]);
        run(&sandbar, "p", "nothing").await.expect("it runs");
        let disk = world.disk.clone();
        let write = |ok: bool| {
            let disk = disk.clone();
            move |root: PathBuf| async move {
                let what = What::of(Kind::File, b"step".to_vec());
                disk.hold()
                    .put(&root.join("stepped"), what)
                    .expect("a write");
                if ok { Ok(7) } else { Err("broken") }
            }
        };
        let failed = sandbar
            .step("p", &here(), "try", write(false))
            .await
            .expect("an answer");
        assert!(matches!(failed, StepOutcome::RolledBack("broken")));
        assert!(
            sandbar
                .status("p", &here())
                .await
                .expect("a status")
                .changes
                .is_empty()
        );
        let done = sandbar
            .step("p", &here(), "try", write(true))
            .await
            .expect("an answer");
        assert!(matches!(done, StepOutcome::Done(7, 2)));
        assert_eq!(
            sandbar
                .status("p", &here())
                .await
                .expect("a status")
                .changes
                .counts()
                .added,
            1
        );
    });
}

// conformance: CKP-1
#[test]
fn a_failed_command_keeps_its_tree_unless_asked_otherwise() {
    sandbar_testkit::run(async {
        let world = World::new();
        world.program("fail", |seat| {
            seat.write("half", b"h").expect("a write");
            9
        });
        let sandbar = world.sandbar(&[]);
        let report = run(&sandbar, "keeps", "fail").await.expect("it runs");
        assert_eq!((report.exit_code, report.changes.counts().added), (9, 1));
        let request = RunRequest {
            name: Some("back".into()),
            cwd: here(),
            argv: vec!["fail".into()],
            base: None,
            bring: sandbar::Bring::default(),
            view: None,
            rollback_on_failure: true,
            stdout_to_stderr: false,
        };
        let report = sandbar.run(request).await.expect("it runs");
        assert!(report.rolled_back && report.changes.is_empty());
        // What was rolled back is still a checkpoint.
        let (_, log) = sandbar.log("back", &here()).await.expect("a log");
        assert_eq!(log.len(), 3);
    });
}

// conformance: PLN-1, PLN-3, APL-9 partial: plans of dead processes
#[test]
fn a_plan_has_one_driver_and_a_dead_one_is_replaced() {
    sandbar_testkit::run(async {
        let world = World::new();
        world.program("nothing", |_| 0);
        let sandbar = world.sandbar(&[]);
        run(&sandbar, "p", "nothing").await.expect("it runs");
        // Another process takes the plan up, and is still at work.
        let plan = sandbar.find_plan("p", &here()).await.expect("a plan");
        world.runner.become_process(77);
        let other = world.runner.owner();
        let mut mark = plan.plan.mark.clone();
        mark.state = PlanState::Executing;
        mark.owner = Some(other.clone());
        let store = &world.parts.store;
        store
            .move_plan(plan.plan.id, plan.plan.mark.clone(), mark, 0)
            .await
            .expect("it moves");
        world.runner.become_process(78);
        for error in [
            exec(&sandbar, "p", "nothing").await.expect_err("busy"),
            sandbar.rollback("p", "1", &here()).await.expect_err("busy"),
            apply(&sandbar, "p").await.expect_err("busy"),
            sandbar.discard("p", &here()).await.expect_err("busy"),
        ] {
            assert_eq!(error.code, Code::PlanBusy, "{error}");
            assert!(error.message.contains("77"), "{error}");
        }
        world.runner.kill(&other);
        let report = sandbar.recover().await.expect("an answer");
        assert_eq!(report.plans, ["p"]);
        assert!(sandbar.recover().await.expect("an answer").is_empty());
        exec(&sandbar, "p", "nothing").await.expect("it runs again");
    });
}

// conformance: PLN-2
#[test]
fn what_cannot_start_leaves_nothing() {
    sandbar_testkit::run(async {
        let world = World::new();
        let sandbar = world.sandbar(&[]);
        let error = run(&sandbar, "p", "missing")
            .await
            .expect_err("no such command");
        assert_eq!(error.code, Code::CommandNotFound);
        assert!(
            world
                .parts
                .workspaces
                .places()
                .await
                .expect("a list")
                .is_empty()
        );
        world.program("nothing", |_| 0);
        run(&sandbar, "p", "nothing")
            .await
            .expect("the name is free");
        let error = run(&sandbar, "p", "nothing")
            .await
            .expect_err("the name is in use");
        assert_eq!(error.code, Code::NameInUse);
        let error = run(&sandbar, "a b", "nothing")
            .await
            .expect_err("a bad name");
        assert_eq!(error.code, Code::Usage);
    });
}

// conformance: CKP-5
#[test]
fn required_and_disabled_checkpoints_exclude_each_other() {
    sandbar_testkit::run(async {
        let world = World::new();
        edit_all(&world);
        let off = ("sandbox.checkpoint.enabled", "false");
        let sandbar = world.sandbar(&[off, ("plan.require_checkpoints", "true")]);
        let error = run(&sandbar, "p", "edit").await.expect_err("refused");
        assert_eq!(error.code, Code::BadConfig);
        let sandbar = world.sandbar(&[off]);
        run(&sandbar, "p", "edit").await.expect("it runs");
        let (_, log) = sandbar.log("p", &here()).await.expect("a log");
        assert_eq!(log.len(), 1, "only the base");
        let report = sandbar
            .checkpoint("p", Some("mine".into()), &here())
            .await
            .expect("saved");
        assert!(report.fresh, "what a person asks for is always taken");
    });
}

// conformance: STR-9
#[test]
fn collection_waits_for_retention_and_keeps_what_is_live() {
    sandbar_testkit::run(async {
        let world = World::new();
        edit_all(&world);
        let sandbar = world.sandbar(&[("sandbox.retention", "1d")]);
        run(&sandbar, "over", "edit").await.expect("it runs");
        run(&sandbar, "live", "edit").await.expect("it runs");
        apply(&sandbar, "over").await.expect("it applies");
        let day = 86_400_000;
        world.clock.advance(day / 2);
        let report = sandbar.gc(GcRequest::default()).await.expect("collected");
        assert!(report.plans.is_empty() && report.places.is_empty());
        world.clock.advance(day);
        let dry = GcRequest {
            dry_run: true,
            now: false,
        };
        assert_eq!(sandbar.gc(dry).await.expect("an answer").plans, ["over"]);
        let report = sandbar.gc(GcRequest::default()).await.expect("collected");
        assert_eq!(report.plans, ["over"]);
        sandbar
            .rollback("live", "1", &here())
            .await
            .expect("its base is whole");
        sandbar
            .rollback("live", "2", &here())
            .await
            .expect("its checkpoints are whole");
        assert!(
            sandbar
                .doctor()
                .await
                .expect("an answer")
                .findings
                .is_empty()
        );
    });
}

// conformance: ENV-9 partial: what is missing is named
#[test]
fn the_doctor_names_plans_whose_objects_are_missing() {
    sandbar_testkit::run(async {
        let world = World::new();
        edit_all(&world);
        let sandbar = world.sandbar(&[]);
        run(&sandbar, "p", "edit").await.expect("it runs");
        assert!(
            sandbar
                .doctor()
                .await
                .expect("an answer")
                .findings
                .is_empty()
        );
        let nothing = sandbar::ports::objects::Live::default();
        world
            .parts
            .objects
            .collect(nothing)
            .await
            .expect("collected");
        let findings = sandbar.doctor().await.expect("an answer").findings;
        let kinds: Vec<_> = findings.iter().map(|finding| finding.kind).collect();
        assert_eq!(kinds, ["missing_object"], "{findings:?}");
        assert_eq!(findings[0].subject, "p");
    });
}

// conformance: STR-7 partial: the comparison of the plain view
#[test]
fn the_plain_view_says_loudly_when_the_real_tree_changed() {
    sandbar_testkit::run(async {
        let world = World::new();
        world.runner.allow_in_place(false);
        let disk = world.disk.clone();
        world.program("stray", move |_| {
            let what = What::of(Kind::File, b"stray".to_vec());
            disk.hold()
                .put(&Path::new(REAL).join("stray"), what)
                .expect("a write");
            0
        });
        let sandbar = world.sandbar(&[]);
        let report = run(&sandbar, "p", "stray").await.expect("it runs");
        assert!(
            report
                .warnings
                .iter()
                .any(|w| w.contains("REAL TREE CHANGED")),
            "{report:?}"
        );
        assert!(
            world
                .said
                .lock()
                .expect("whole")
                .iter()
                .any(|s| s.contains("in-place"))
        );
    });
}

async fn undo(sandbar: &Sandbar, name: &str) -> Result<ApplyReport, PortError> {
    let request = UndoRequest {
        plan: name.into(),
        cwd: here(),
        dry_run: false,
        onto_current: false,
    };
    sandbar.undo(request).await
}

// conformance: APL-11 (in memory), SRF-1 partial: undo, parts and kept bytes
#[test]
fn parts_undo_and_kept_bytes_need_no_real_adapter() {
    sandbar_testkit::run(async {
        let world = World::new();
        edit_all(&world);
        let sandbar = world.sandbar(&[]);
        run(&sandbar, "p", "edit").await.expect("it runs");
        let request = ApplyRequest {
            plan: "p".into(),
            cwd: here(),
            paths: vec!["file".into()],
            resources: Vec::new(),
            dry_run: false,
            resulting: Resulting::Uncommitted,
            onto_current: false,
            allow_filters: false,
        };
        let part = sandbar.apply(request).await.expect("a part");
        assert_eq!(part.outcome, Outcome::PartiallyApplied);
        assert_eq!(part.plan.plan.mark.state, PlanState::PartiallyApplied);
        assert_eq!(world.real("file").as_deref(), Some("1\n2\n3\n4\nfive\n"));
        assert_eq!(world.real("sub/other").as_deref(), Some("o\n"));
        let kept = sandbar.kept(Some("p"), &here()).await.expect("a list");
        assert_eq!(kept.len(), 1);
        let wanted = sandbar::KeptRequest {
            what: kept[0].id.clone(),
            path: None,
            checkpoint: None,
            cwd: here(),
        };
        let bytes = sandbar.kept_bytes(&wanted).await.expect("they are kept");
        assert_eq!(bytes, b"1\n2\n3\n4\n5\n");

        world.put("file", "one\n2\n3\n4\nfive\n");
        let rest = apply(&sandbar, "p").await.expect("the rest");
        assert_eq!(rest.outcome, Outcome::Applied);
        let undone = undo(&sandbar, "p").await.expect("it is taken back");
        assert_eq!(undone.outcome, Outcome::Undone);
        assert_eq!(undone.plan.plan.mark.state, PlanState::Review);
        assert_eq!(world.real("file").as_deref(), Some("one\n2\n3\n4\n5\n"));
        assert_eq!(world.real("sub/other").as_deref(), Some("o\n"));
        let error = undo(&sandbar, "p").await.expect_err("nothing is applied");
        assert_eq!(error.code, Code::IllegalState);
    });
}
