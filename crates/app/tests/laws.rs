//! Laws of the use cases over random histories, against plain maps: what the
//! person changed is never lost, an apply is all or nothing, a rollback is
//! exact. `SANDBAR_LAWS=<cases>x<steps>` makes the run longer.

mod world;

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use proptest::prelude::*;
use proptest::test_runner::TestRunner;
use sandbar::Outcome;
use sandbar::domain::plan::PlanState;
use sandbar_testkit::memory::disk::What;
use world::{Dump, Jam, REAL, World};

/// Lines of each file: enough for edits that do not touch each other.
const LINES: usize = 7;
const PATHS: [&str; 8] = ["a", "d/x", "d/y", "e/f/g", "new", "n/new", "d", "e/f"];
/// Those that are there at first.
const THERE: usize = 4;
/// What may be sealed: an apply comes to the last ones late.
const SEALS: [&str; 5] = ["a", "d", "e", "e/f", "n"];

/// What is done to a file.
#[derive(Debug, Clone, Copy)]
enum Edit {
    /// Gets one new line; made where it is missing.
    Line(usize),
    /// Gets new lines all over.
    Whole,
    /// Goes.
    Remove,
}

#[derive(Debug, Clone)]
enum Step {
    /// A command edits the sandbox.
    Exec(Vec<(usize, Edit)>),
    /// Something edits the sandbox between commands.
    Quietly(usize, Edit),
    Checkpoint,
    /// Of those there are.
    Rollback(prop::sample::Index),
    /// The person edits the real tree.
    Outside(usize, Edit),
    Apply,
    /// An apply that finds one place sealed when it writes, and perhaps
    /// another when it takes back, until they are opened.
    Jammed(usize, Option<usize>),
    Recover,
}

/// Edits that mostly keep to a part of each file, so that two sides can merge.
fn edit(part: Range<usize>) -> impl Strategy<Value = (usize, Edit)> {
    let edit = prop_oneof![
        16 => part.prop_map(Edit::Line),
        1 => (0..LINES).prop_map(Edit::Line),
        1 => Just(Edit::Whole),
        1 => Just(Edit::Remove),
    ];
    // The last two are directories to the others: rarely.
    let path = prop_oneof![9 => 0..PATHS.len() - 2, 1 => PATHS.len() - 2..PATHS.len()];
    (path, edit)
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        8 => prop::collection::vec(edit(0..3), 1..8).prop_map(Step::Exec),
        1 => edit(0..3).prop_map(|(path, edit)| Step::Quietly(path, edit)),
        2 => Just(Step::Checkpoint),
        2 => any::<prop::sample::Index>().prop_map(Step::Rollback),
        4 => edit(4..LINES).prop_map(|(path, edit)| Step::Outside(path, edit)),
        1 => Just(Step::Apply),
        4 => (2..SEALS.len(), prop::option::weighted(0.8, 0..2usize))
            .prop_map(|(execute, undo)| Step::Jammed(execute, undo)),
        1 => Just(Step::Recover),
    ]
}

/// How often each verdict came: a run that never saw one proves nothing of it.
#[derive(Debug, Default)]
struct Seen(BTreeMap<&'static str, u32>);

/// Files to write, or to remove.
type Errand = Arc<Mutex<Vec<(String, Option<String>)>>>;

struct History {
    world: World,
    /// What the next command does.
    errand: Errand,
    /// Makes lines unlike all others.
    tokens: u64,
    plans: u32,
    plan: String,
    sandbox: PathBuf,
    base: Dump,
    checkpoints: BTreeMap<u64, Dump>,
}

impl History {
    async fn new() -> Self {
        let world = World::new();
        let mut history = Self {
            world,
            errand: Errand::default(),
            tokens: 0,
            plans: 0,
            plan: String::new(),
            sandbox: PathBuf::new(),
            base: Dump::new(),
            checkpoints: BTreeMap::new(),
        };
        for path in &PATHS[..THERE] {
            let text = history.text(None, Edit::Whole);
            history.world.put(Path::new(REAL), path, text.as_deref());
        }
        history.begin().await;
        history
    }

    /// Starts the next plan on the real root as it is.
    async fn begin(&mut self) {
        self.plans += 1;
        self.plan = format!("p{}", self.plans);
        self.world.runner.install("nothing", |_| 0);
        self.base = self.world.real();
        let report = self.world.run(&self.plan, "nothing").await;
        let report = report.expect("a plan begins");
        self.sandbox = report.sandboxes[0].root.clone();
        self.checkpoints.clear();
        let now = self.inside();
        assert_eq!(now, self.base, "the copy is exact");
        self.note(&now, &now).await;
    }

    fn inside(&self) -> Dump {
        self.world.dump(&self.sandbox)
    }

    /// Returns what a file holds after an edit.
    fn text(&mut self, now: Option<&What>, edit: Edit) -> Option<String> {
        self.tokens += 1;
        let token = self.tokens;
        let fresh = || {
            (0..LINES)
                .map(|line| format!("{line} of {token}"))
                .collect()
        };
        let mut lines: Vec<String> = match now.and_then(What::content) {
            Some(bytes) => text(bytes).lines().map(str::to_owned).collect(),
            None => fresh(),
        };
        match edit {
            Edit::Remove => return None,
            Edit::Whole => lines = fresh(),
            Edit::Line(line) => lines[line] = format!("edit {token}"),
        }
        Some(lines.join("\n") + "\n")
    }

    fn edited(&mut self, dump: &Dump, path: usize, edit: Edit) -> (String, Option<String>) {
        let path = PATHS[path];
        let now = dump.get(Path::new(path));
        (path.to_owned(), self.text(now, edit))
    }

    /// Remembers what the checkpoints hold that were taken since.
    async fn note(&mut self, before: &Dump, after: &Dump) {
        let log = self.world.sandbar.log(&self.plan, Path::new(REAL)).await;
        for entry in log.expect("a log").1 {
            let of = match &*entry.checkpoint.checkpoint.step {
                "before" | "rollback" => before,
                _ => after,
            };
            let number = entry.checkpoint.sequence;
            self.checkpoints.entry(number).or_insert_with(|| of.clone());
        }
    }

    async fn take(&mut self, step: &Step, seen: &mut Seen) {
        let (real, inside) = (self.world.real(), self.inside());
        let root = Path::new(REAL);
        match step {
            Step::Exec(edits) => {
                let mut errand = Vec::new();
                for (path, edit) in edits {
                    errand.push(self.edited(&inside, *path, *edit));
                }
                *self.errand.lock().expect("whole") = errand;
                self.command();
                let report = self.world.exec(&self.plan, "edit").await;
                report.expect("it runs");
            }
            Step::Quietly(path, edit) => {
                let (path, text) = self.edited(&inside, *path, *edit);
                self.world.put(&self.sandbox, &path, text.as_deref());
                assert_eq!(self.world.real(), real, "the sandbox is apart");
                return;
            }
            Step::Checkpoint => {
                let saved = self.world.sandbar.checkpoint(&self.plan, None, root).await;
                saved.expect("it is saved");
            }
            Step::Rollback(which) => {
                let log = self.world.sandbar.log(&self.plan, root).await;
                let log = log.expect("a log").1;
                let to = which.get(&log).checkpoint.sequence;
                let text = to.to_string();
                let back = self.world.sandbar.rollback(&self.plan, &text, root);
                back.await.expect("it goes back");
                assert_eq!(self.inside(), self.checkpoints[&to], "exactly");
            }
            Step::Outside(path, edit) => {
                let (path, text) = self.edited(&real, *path, *edit);
                self.world.put(root, &path, text.as_deref());
                assert_eq!(self.inside(), inside, "the real tree is apart");
                return;
            }
            Step::Apply => return self.apply(real, inside, Jam::default(), seen).await,
            Step::Jammed(execute, undo) => {
                let jam = Jam {
                    execute: Some(SEALS[*execute].to_owned()),
                    undo: undo.map(|dir| SEALS[dir].to_owned()),
                };
                return self.apply(real, inside, jam, seen).await;
            }
            Step::Recover => {
                let report = self.world.sandbar.recover().await.expect("an answer");
                assert!(report.is_empty(), "nobody died: {report:?}");
                assert_eq!(self.inside(), inside);
            }
        }
        assert_eq!(self.world.real(), real, "only an apply writes here");
        let after = self.inside();
        self.note(&inside, &after).await;
    }

    /// Installs the command that runs the errand.
    fn command(&self) {
        let (disk, errand) = (self.world.disk.clone(), self.errand.clone());
        self.world.runner.install("edit", move |seat| {
            for (path, text) in errand.lock().expect("whole").drain(..) {
                let path = seat.path(&path);
                world::put(&disk, &seat.request().sandbox, &path, text.as_deref());
            }
            0
        });
    }

    async fn apply(&mut self, real: Dump, inside: Dump, jam: Jam, seen: &mut Seen) {
        *self.world.jam.lock().expect("whole") = jam;
        let report = self.world.apply(&self.plan).await.expect("an answer");
        *self.world.jam.lock().expect("whole") = Jam::default();
        *seen.0.entry(report.outcome.word()).or_default() += 1;
        if report.outcome == Outcome::NeedsAttention {
            assert_eq!(report.plan.plan.mark.state, PlanState::NeedsAttention);
            SEALS.iter().for_each(|dir| self.world.open(dir));
            let recovered = self.world.sandbar.recover().await.expect("an answer");
            assert_eq!(recovered.applies.len(), 1, "{recovered:?}");
            assert!(recovered.open.is_empty(), "{recovered:?}");
            let again = self.world.sandbar.recover().await.expect("an answer");
            assert!(again.is_empty(), "{again:?}");
        }
        SEALS.iter().for_each(|dir| self.world.open(dir));
        let now = self.world.real();
        assert_eq!(self.inside(), inside, "an apply leaves the sandbox alone");
        if report.outcome != Outcome::Applied {
            assert_eq!(now, real, "all old: {report:?}");
            self.note(&inside, &inside).await;
            return;
        }
        if real == self.base {
            assert_eq!(now, inside, "nobody interfered: all new");
        }
        let merged = judge(&self.base, &inside, &real, &now);
        *seen.0.entry("merged").or_default() += merged;
        self.begin().await;
    }
}

/// Checks an apply file by file; returns how many were merged.
fn judge(base: &Dump, inside: &Dump, real: &Dump, now: &Dump) -> u32 {
    let mut merged = 0;
    let all = [base, inside, real, now].map(files);
    let paths: BTreeSet<&&Path> = all.iter().flat_map(BTreeMap::keys).collect();
    for path in paths {
        let [base, inside, real, now] = all.each_ref().map(|files| files.get(*path).copied());
        let path = path.display();
        if inside == base {
            assert_eq!(
                now, real,
                "{path}: not the plan's: it stays as the person left it"
            );
        } else if real == base || real == inside {
            assert_eq!(now, inside, "{path}: the plan's alone: it is there");
        } else {
            let sides = [base, inside, real, now].map(|side| {
                let side = side.unwrap_or_else(|| panic!("{path}: nothing to merge with"));
                side.lines().collect::<Vec<_>>()
            });
            let [base, inside, real, now] = &sides;
            assert_eq!(now.len(), LINES, "{path}: {now:?}");
            for line in 0..LINES {
                let expected = if inside[line] == base[line] {
                    real
                } else {
                    inside
                };
                let both = inside[line] != base[line] && real[line] != base[line];
                assert!(!both || inside[line] == real[line], "{path}: lost an edit");
                assert_eq!(now[line], expected[line], "{path}: line {line}");
            }
            merged += 1;
        }
    }
    merged
}

fn files(dump: &Dump) -> BTreeMap<&Path, &str> {
    let files = dump.iter();
    files
        .filter_map(|(path, what)| Some((&**path, text(what.content()?))))
        .collect()
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).expect("only text is written here")
}

// conformance: PLN-4, APL-1, APL-3, CKP-4, APL-9 partial: without a crash
#[test]
fn nothing_is_lost_in_any_history() {
    let size = std::env::var("SANDBAR_LAWS").unwrap_or_else(|_| "64x20".to_owned());
    let (cases, steps) = size.split_once('x').expect("<cases>x<steps>");
    let cases: u32 = cases.parse().expect("a number of cases");
    let steps: u32 = steps.parse().expect("a number of steps");
    let config = ProptestConfig {
        cases,
        failure_persistence: None,
        ..ProptestConfig::default()
    };
    let seen = Mutex::new(Seen::default());
    let run = |history: Vec<Step>| {
        let mut seen = seen.lock().unwrap_or_else(|broken| broken.into_inner());
        sandbar_testkit::run(async {
            let mut world = History::new().await;
            for step in &history {
                world.take(step, &mut seen).await;
            }
        });
        Ok(())
    };
    TestRunner::new(config)
        .run(&prop::collection::vec(step(), steps as usize), run)
        .unwrap_or_else(|error| panic!("{error}"));
    let seen = seen
        .into_inner()
        .unwrap_or_else(|broken| broken.into_inner());
    println!("{seen:?}");
    // Each but the last comes more than 15 times in the shortest run that is
    // judged, and the last in one ten times as long.
    for (verdict, from) in [
        ("applied", 64 * 20),
        ("conflict", 64 * 20),
        ("failed", 64 * 20),
        ("needs_attention", 64 * 20),
        ("merged", 640 * 20),
    ] {
        let came = cases * steps < from || seen.0.contains_key(verdict);
        assert!(came, "{verdict} never came: {seen:?}");
    }
}
