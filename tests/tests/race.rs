//! Many processes apply to one repository at once, half of them to the same
//! paths, while somebody else writes all along.
//!
//! Each apply that is acknowledged must have happened as a whole at one
//! moment: a checker finds one serial order of them, true to the order in
//! which they were seen to begin and end, and replays it on plain maps; the
//! result must be the tree.
#![allow(
    clippy::disallowed_methods,
    reason = "tests inspect real trees with foreign means"
)]

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use sandbar_tests::fixture;
use sandbar_tests::foreign::sh;
use sandbar_tests::harness::count::Count;
use sandbar_tests::harness::is_long;
use sandbar_tests::harness::tree::{self, Node};
use sandbar_tests::judge;
use sandbar_tests::product::{Done, World};

/// Lines of the file that everybody edits, each his own.
const LINES: usize = 400;

/// What one process did in one turn.
struct Turn {
    worker: usize,
    turn: usize,
    began: Instant,
    ended: Instant,
    /// Acknowledged, refused, or killed: then the tree must tell.
    done: Option<bool>,
}

impl Turn {
    fn token(&self) -> String {
        token(self.worker, self.turn)
    }
}

fn token(worker: usize, turn: usize) -> String {
    format!("t{worker}x{turn}")
}

/// Says whether a turn goes for the paths that others go for too.
fn contends(worker: usize, turn: usize) -> bool {
    (worker + turn).is_multiple_of(2)
}

/// The edits of one turn: a chain that only one can lengthen at a time and its
/// head, or paths of the worker's own; and in both cases one line of a file
/// that all edit, which merges.
fn script(worker: usize, turn: usize) -> String {
    let token = token(worker, turn);
    let line = line_of(worker);
    let common = format!("sed -i '{line}s/.*/{token}/' lines.txt");
    if contends(worker, turn) {
        format!(
            "{common}; last=$(tail -n 1 chain.txt | cut -d' ' -f1)
             echo \"{token} $last\" >> chain.txt; echo {token} > head.txt"
        )
    } else {
        format!(
            "{common}; echo {token} >> own/{worker}.txt; mkdir -p new/{worker}; echo {token} > new/{worker}/{turn}"
        )
    }
}

/// The lines are so far from each other that edits of two never touch.
fn line_of(worker: usize) -> usize {
    5 + worker * (LINES / 33)
}

fn lines(last: &BTreeMap<usize, String>) -> String {
    let by_line: BTreeMap<usize, &String> = last
        .iter()
        .map(|(worker, token)| (line_of(*worker), token))
        .collect();
    (1..=LINES)
        .map(|n| {
            by_line
                .get(&n)
                .map_or_else(|| format!("line {n}\n"), |t| format!("{t}\n"))
        })
        .collect()
}

/// Runs one turn: a new plan, its work, its apply.
fn turn(world: &World, root: &Path, worker: usize, turn: usize, kill: Option<usize>) -> Turn {
    let name = token(worker, turn);
    let work = script(worker, turn);
    drop(world.ok(root, &["run", "--name", &name, "--", "sh", "-euc", &work]));
    let mut apply = world.command(root, &["apply", &name, "--json"]);
    if let Some(effect) = kill {
        apply.env("SANDBAR_CRASH_AT", format!("{effect}:after"));
    }
    let began = Instant::now();
    let done = Done::of(&mut apply);
    let ended = Instant::now();
    let done = match done.code {
        Some(0) => Some(true),
        Some(3) => Some(false),
        None => None,
        Some(_) => panic!("{}: {}{}", done.line, done.stdout, done.stderr),
    };
    if done == Some(false) {
        let _ = world.sandbar(root, &["discard", &name]);
    }
    Turn {
        worker,
        turn,
        began,
        ended,
        done,
    }
}

/// Replaces a file of its own and appends to another until told to stop;
/// returns how often.
fn outside(root: &Path, stop: &AtomicBool) -> u64 {
    use std::io::Write as _;
    let draft = root.join(".git/outside-draft");
    let mut appended = std::fs::OpenOptions::new()
        .append(true)
        .open(root.join("appended.txt"))
        .expect("a file");
    let mut count = 0;
    while !stop.load(Ordering::Relaxed) {
        count += 1;
        std::fs::write(&draft, format!("{count}\n")).expect("a draft");
        std::fs::rename(&draft, root.join("outside.txt")).expect("it becomes the file");
        writeln!(appended, "{count}").expect("one more line");
        // Not waiting for anything: only leaving the others some time.
        std::thread::sleep(std::time::Duration::from_millis(2));
    }
    count
}

/// Finds a serial order of what happened and replays it; returns what differs.
fn check(turns: &[Turn], now: &tree::Tree, written: u64) -> Vec<String> {
    let mut bad = Vec::new();
    let text = |path: &str| match now.get(Path::new(path)) {
        Some(Node::File(_, bytes)) => String::from_utf8_lossy(bytes).into_owned(),
        other => format!("{path}: {other:?}"),
    };
    let by_token: BTreeMap<String, &Turn> = turns.iter().map(|t| (t.token(), t)).collect();
    // What is in the tree of turns that were killed says that they happened.
    let chain: Vec<String> = text("chain.txt")
        .lines()
        .skip(1)
        .map(|line| line.split(' ').next().unwrap_or_default().to_owned())
        .collect();
    let seen: BTreeSet<String> = chain
        .iter()
        .cloned()
        .chain((0..64).flat_map(|worker| {
            let own = text(&format!("own/{worker}.txt"));
            own.lines().map(str::to_owned).collect::<Vec<_>>()
        }))
        .collect();
    let happened = |turn: &Turn| turn.done.unwrap_or_else(|| seen.contains(&turn.token()));
    // The order: that of the chain for those in it; each worker's own turns
    // stand in their order, as early as the chain allows.
    let mut order: Vec<&Turn> = Vec::new();
    let mut placed: BTreeSet<String> = BTreeSet::new();
    for token in &chain {
        let Some(turn) = by_token.get(token) else {
            bad.push(format!("nobody wrote {token}"));
            continue;
        };
        // The worker's own turns before this one.
        for before in turns.iter().filter(|t| t.worker == turn.worker) {
            if before.turn >= turn.turn || !happened(before) || !placed.insert(before.token()) {
                continue;
            }
            if contends(before.worker, before.turn) {
                let (a, b) = (before.token(), turn.token());
                bad.push(format!("{a} must stand before {b} in the chain"));
            }
            order.push(before);
        }
        if !placed.insert(token.clone()) {
            bad.push(format!("{token} is there twice"));
        }
        order.push(turn);
    }
    for turn in turns.iter().filter(|t| happened(t)) {
        if !placed.contains(&turn.token()) {
            if contends(turn.worker, turn.turn) {
                bad.push(format!("{} was acknowledged and is lost", turn.token()));
            }
            placed.insert(turn.token());
            order.push(turn);
        }
    }
    // What ended before another began stands before it.
    for (at, turn) in order.iter().enumerate() {
        let both = contends(turn.worker, turn.turn);
        for later in &order[at + 1..] {
            if both && contends(later.worker, later.turn) && later.ended < turn.began {
                bad.push(format!(
                    "{} ended before {} began",
                    later.token(),
                    turn.token()
                ));
            }
        }
    }
    for turn in turns.iter().filter(|t| t.done == Some(false)) {
        if seen.contains(&turn.token()) {
            bad.push(format!("{} was refused and is there", turn.token()));
        }
    }
    bad.extend(replay(&order, now, written));
    bad
}

/// Replays an order on plain maps and compares.
fn replay(order: &[&Turn], now: &tree::Tree, written: u64) -> Vec<String> {
    let mut wanted: BTreeMap<PathBuf, String> = BTreeMap::new();
    let mut last: BTreeMap<usize, String> = BTreeMap::new();
    let mut chain = "root\n".to_owned();
    let (mut head, mut newest) = ("root".to_owned(), "root".to_owned());
    let mut own: BTreeMap<usize, String> = BTreeMap::new();
    for turn in order {
        let token = turn.token();
        last.insert(turn.worker, token.clone());
        if contends(turn.worker, turn.turn) {
            chain += &format!("{token} {newest}\n");
            newest.clone_from(&token);
            head.clone_from(&token);
        } else {
            *own.entry(turn.worker).or_default() += &format!("{token}\n");
            let path = format!("new/{}/{}", turn.worker, turn.turn);
            wanted.insert(path.into(), format!("{token}\n"));
        }
    }
    wanted.insert("chain.txt".into(), chain);
    wanted.insert("head.txt".into(), format!("{head}\n"));
    wanted.insert("lines.txt".into(), lines(&last));
    wanted.insert("outside.txt".into(), format!("{written}\n"));
    let appended: String = (1..=written).map(|n| format!("{n}\n")).collect();
    wanted.insert("appended.txt".into(), appended);
    let found: BTreeMap<PathBuf, String> = now
        .iter()
        .filter_map(|(path, node)| match node {
            Node::File(_, bytes) => {
                Some((path.clone(), String::from_utf8_lossy(bytes).into_owned()))
            }
            _ => None,
        })
        .collect();
    for worker in 0..64 {
        let path = PathBuf::from(format!("own/{worker}.txt"));
        if found.contains_key(&path) {
            wanted.insert(path, own.remove(&worker).unwrap_or_default());
        }
    }
    tree::difference(&wanted, &found)
        .into_iter()
        .map(|path| {
            let path = PathBuf::from(path);
            format!(
                "{} holds {:?}, and not {:?}",
                path.display(),
                found.get(&path),
                wanted.get(&path)
            )
        })
        .collect()
}

// conformance: PLN-3 (race), APL-3 (race) partial: files of one repository
#[test]
fn applies_at_once_have_a_serial_order() {
    let (workers, turns) = if is_long() { (32, 200) } else { (8, 25) };
    let (world, repo) = (World::new(), fixture::directory());
    let root = repo.root();
    std::fs::write(root.join("lines.txt"), lines(&BTreeMap::new())).expect("a file");
    sh(
        root,
        &format!(
            "rm a.txt b.txt; echo root > chain.txt; echo root > head.txt
             : > appended.txt; echo 0 > outside.txt; mkdir own new
             for n in $(seq 0 {}); do : > own/$n.txt; done
             git init -q; git add -A; git commit -qm first",
            workers - 1
        ),
    );
    let mut count = Count::new("race", "all");
    let stop = AtomicBool::new(false);
    let (all, written) = std::thread::scope(|scope| {
        let writer = scope.spawn(|| outside(root, &stop));
        let runs: Vec<_> = (0..workers)
            .map(|worker| {
                let world = &world;
                scope.spawn(move || {
                    (0..turns)
                        .map(|n| {
                            // One in twenty is killed, in the long size.
                            let killed = is_long() && (worker * 7 + n) % 20 == 3;
                            let effect = killed.then_some(20 + (worker * 31 + n * 17) % 70);
                            turn(world, root, worker, n, effect)
                        })
                        .collect::<Vec<_>>()
                })
            })
            .collect();
        let ended: Vec<_> = runs
            .into_iter()
            .map(std::thread::ScopedJoinHandle::join)
            .collect();
        stop.store(true, Ordering::Relaxed);
        let written = writer.join().expect("the writer does not panic");
        let all: Vec<Turn> = ended
            .into_iter()
            .flat_map(|turns| turns.expect("a worker does not panic"))
            .collect();
        (all, written)
    });
    drop(world.ok(root, &["recover"]));
    count.points(all.len() as u64);
    let of = |done: Option<bool>| all.iter().filter(|turn| turn.done == done).count();
    let (done, refused) = (of(Some(true)), of(Some(false)));
    count.note(format!(
        "{done} acknowledged, {refused} refused, {} killed",
        of(None)
    ));
    count.found("race", check(&all, &tree::read(root), written));
    judge::fsck(root);
    assert!(
        done * 3 > all.len(),
        "only {done} of {} applies landed",
        all.len()
    );
    assert!(refused > 0, "nobody came in another's way");
    count.finish((workers * turns) as u64);
}
