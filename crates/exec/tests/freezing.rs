//! Process trees that are held still and let go.
#![allow(
    clippy::disallowed_methods,
    reason = "tests stand outside: they look at real files and processes"
)]

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};

fn start(script: &str) -> (Child, Vec<String>) {
    let mut child = Command::new("sh")
        .args(["-c", script])
        .stdout(Stdio::piped())
        .spawn()
        .expect("it starts");
    let mut words = String::new();
    let mut reader = BufReader::new(child.stdout.take().expect("piped"));
    reader.read_line(&mut words).expect("text");
    let words = words.split_whitespace().map(str::to_owned).collect();
    (child, words)
}

fn state(pid: &str) -> char {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).expect("it lives");
    let rest = stat.rsplit_once(") ").expect("a stat line").1;
    rest.chars().next().expect("a state")
}

fn end(mut child: Child, pids: &[String]) {
    for pid in pids {
        let pid = Pid::from_raw(pid.parse().expect("a pid")).expect("a pid");
        let _ = kill_process(pid, Signal::KILL);
    }
    child.kill().expect("ours");
    child.wait().expect("ours");
}

#[test]
fn descendants_are_held_and_the_root_is_not() {
    let (child, pids) = start(
        "sleep 1000 & a=$!; sh -c 'sleep 1000 & echo $! > /dev/fd/3; wait' 3>&1 >/dev/null | \
         { read c; echo $a $c; wait; }",
    );
    assert_eq!(pids.len(), 2, "{pids:?}");
    let frozen = sandbar_exec::freeze(child.id()).expect("they can be held");
    // Both sleeps and the shells between; how many of those there are at one
    // moment is the shell's affair.
    assert!(frozen.count() >= 3, "{frozen:?}");
    assert_eq!(pids.iter().map(|pid| state(pid)).collect::<String>(), "TT");
    assert_ne!(state(&child.id().to_string()), 'T');
    frozen.thaw();
    assert!(pids.iter().all(|pid| state(pid) != 'T'));
    end(child, &pids);
}

#[test]
fn the_one_who_asks_and_its_ancestors_are_spared() {
    let (child, pids) = start("sleep 1000 & echo $!; wait");
    // From the point of view of our own parent we are a descendant.
    let frozen = sandbar_exec::freeze(std::os::unix::process::parent_id());
    let own = state("self");
    let frozen = frozen.expect("they can be held");
    assert!(own == 'R' || own == 'S');
    assert_eq!(state(&pids[0]), 'T');
    drop(frozen);
    assert_ne!(state(&pids[0]), 'T');
    end(child, &pids);
}

#[test]
fn what_was_stopped_before_stays_so() {
    let (child, pids) = start("sleep 1000 & a=$!; sleep 1000 & kill -STOP $a; echo $a $!; wait");
    while state(&pids[0]) != 'T' {
        std::thread::yield_now();
    }
    let frozen = sandbar_exec::freeze(child.id()).expect("they can be held");
    assert_eq!(frozen.count(), 1);
    frozen.thaw();
    assert_eq!((state(&pids[0]), state(&pids[1]) == 'T'), ('T', false));
    end(child, &pids);
}

/// Runs three loops that append to a file all the time, and holds them again
/// and again.
fn hold_writers(step: &str, rounds: u32) {
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("beats");
    let script = format!(
        "exec 9>>{}; for i in 1 2 3; do (while :; do {step} >&9; done) & p=\"$p $!\"; done; \
         echo $p; wait",
        file.display()
    );
    let (child, loops) = start(&script);
    assert_eq!(loops.len(), 3);
    let length = || {
        fs::metadata(&file)
            .map(|data| data.len())
            .unwrap_or_default()
    };
    for _ in 0..rounds {
        let before = length();
        while length() == before {
            std::thread::yield_now();
        }
        let frozen = sandbar_exec::freeze(child.id()).expect("they can be held");
        let held = length();
        // A look at the whole process table takes longer than a beat.
        for _ in 0..10 {
            for entry in fs::read_dir("/proc").expect("it exists").flatten() {
                let _ = fs::read(entry.path().join("stat"));
            }
        }
        assert_eq!(length(), held, "somebody wrote while held");
        frozen.thaw();
    }
    end(child, &loops);
}

#[test]
fn a_tree_that_forks_all_the_time_is_held_too() {
    hold_writers("(echo x)", 20);
}

#[test]
fn a_tree_that_starts_programs_all_the_time_is_held_too() {
    hold_writers("/bin/echo x", 60);
}
