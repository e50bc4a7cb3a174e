//! Exit codes, signals, streams, and what a command leaves behind.
#![allow(
    clippy::disallowed_methods,
    reason = "tests stand outside: they look at real files and processes"
)]

mod ground;

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::process::CommandExt as _;
use std::process::{Child, ChildStdout, Command, Stdio};

use ground::{Ground, assert_ok, complained, finish, said};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{
    Pid, PidfdFlags, Signal, kill_process, kill_process_group, pidfd_open, test_kill_process,
};

/// Starts a script in a process group of its own, and waits for its "ready".
fn start(ground: &Ground, view: &str, script: &str) -> (Child, BufReader<ChildStdout>) {
    let mut child = ground
        .line(view, "", &[])
        .args(["sh", "-c", script])
        .process_group(0)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("it starts");
    let mut reader = BufReader::new(child.stdout.take().expect("piped"));
    assert_eq!(line(&mut reader), "ready");
    (child, reader)
}

fn line(reader: &mut BufReader<ChildStdout>) -> String {
    let mut line = String::new();
    reader.read_line(&mut line).expect("text");
    line.trim_end().to_owned()
}

fn pid(child: &Child) -> Pid {
    Pid::from_child(child)
}

/// Waits for the end of a process that is not our child; fails after a while.
#[track_caller]
fn assert_ends(raw: &str) {
    let pid = Pid::from_raw(raw.parse().expect("a pid")).expect("a pid");
    let Ok(process) = pidfd_open(pid, PidfdFlags::empty()) else {
        return;
    };
    let limit = Timespec {
        tv_sec: 20,
        tv_nsec: 0,
    };
    let mut fds = [PollFd::new(&process, PollFlags::IN)];
    assert_eq!(poll(&mut fds, Some(&limit)), Ok(1), "{pid} goes on");
}

/// A script that tells of signals and waits; it leaves nothing behind.
const LISTENER: &str = r#"
    trap 'echo int; kill -KILL $!; exit 3' INT
    trap 'echo term; kill -KILL $!; exit 7' TERM
    trap 'echo hup; kill -KILL $!; exit 9' HUP
    sleep 1000 & echo ready; wait $!"#;

#[test]
fn exit_codes_pass_through() {
    let ground = Ground::new();
    for (script, code) in [
        ("exit 0", 0),
        ("exit 42", 42),
        ("exit 255", 255),
        ("kill -9 $$", 137),
        ("kill -TERM $$", 143),
    ] {
        for output in [ground.in_place(script), ground.plain(script)] {
            assert_eq!(output.status.code(), Some(code), "{script}: {output:?}");
            assert_eq!(complained(&output), "", "{script}");
        }
    }
}

#[test]
fn a_command_that_cannot_be_run_is_told_from_one_that_failed() {
    let ground = Ground::new();
    fs::write(ground.sandbox.join("script"), "#!/none/such\n").expect("it is ours");
    let mode = |mode| std::os::unix::fs::PermissionsExt::from_mode(mode);
    fs::set_permissions(ground.sandbox.join("script"), mode(0o755)).expect("it is ours");
    for (command, why) in [
        (
            "no-such-program",
            "run no-such-program: no such file or directory",
        ),
        ("./none", "run ./none: no such file or directory"),
        ("./file", "run ./file: permission denied"),
        ("./sub", "run ./sub: permission denied"),
        ("./script", "run ./script: its interpreter does not exist"),
        ("", "run : no such file or directory"),
    ] {
        for view in ["in-place", "plain"] {
            let output = finish(ground.line(view, "", &[]).arg(command));
            assert_eq!(output.status.code(), Some(125));
            let expected = format!("probe: error command_not_found {why}\n");
            assert_eq!(complained(&output), expected);
        }
    }
    // Without `#!` it is a shell's, as everywhere.
    fs::write(ground.sandbox.join("script"), "echo \"$0 $1\"; exit 5\n").expect("it is ours");
    let output = finish(ground.line("plain", "", &[]).args(["./script", "a b"]));
    assert_eq!(
        (said(&output).as_str(), output.status.code()),
        ("./script a b", Some(5))
    );
}

#[test]
fn the_path_of_the_command_counts() {
    let ground = Ground::new();
    let tool = ground.sandbox.join("sub/tool");
    fs::write(&tool, "#!/bin/sh\necho found\n").expect("it is ours");
    fs::set_permissions(&tool, std::os::unix::fs::PermissionsExt::from_mode(0o755))
        .expect("it is ours");
    let path = format!("PATH=/usr/bin:/bin:{}/sub", ground.real.display());
    let output = finish(ground.line("in-place", "", &["--set", &path]).arg("tool"));
    assert_eq!(said(&output), "found", "{output:?}");
}

#[test]
fn streams_pass_through() {
    let ground = Ground::new();
    let bytes: Vec<u8> = (0..=255).cycle().take(300_000).collect();
    for view in ["in-place", "plain"] {
        let mut child = ground
            .line(view, "", &[])
            .arg("cat")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("it starts");
        let mut input = child.stdin.take().expect("piped");
        let output = std::thread::scope(|scope| {
            scope.spawn(|| {
                input.write_all(&bytes).expect("it reads");
                drop(input);
            });
            child.wait_with_output().expect("ours")
        });
        assert!(output.status.success() && output.stdout == bytes);
        let mut command = ground.line(view, "", &["--stdout-to-stderr"]);
        let output = finish(command.args(["sh", "-c", "echo out; echo err >&2"]));
        assert_eq!(
            (said(&output).as_str(), complained(&output).as_str()),
            ("", "out\nerr\n")
        );
    }
}

#[test]
fn a_command_starts_as_if_it_were_started_directly() {
    let ground = Ground::new();
    let script =
        "grep -E 'Sig(Blk|Ign|Cgt)' /proc/self/status; ls /proc/self/fd; umask; ps -o pgid= $$";
    // One shell that ignores HUP, like nohup, one that does not.
    for prefix in ["", "trap '' HUP; "] {
        let outer = |line: &str| {
            let shell = format!("{prefix}umask 027; exec 7</dev/null; exec {line} \"$@\"");
            finish(
                Command::new("sh")
                    .args(["-c", &shell, "sh", "sh", "-c", script])
                    .process_group(0),
            )
        };
        let groupless = |text: String| {
            let (rest, group) = text.rsplit_once('\n').expect("lines");
            assert!(group.trim().parse::<u32>().is_ok(), "{text}");
            rest.to_owned()
        };
        let direct = groupless(said(&outer("")));
        for view in ["in-place", "plain"] {
            let line = format!(
                "{} run {view} {} {} '' --",
                ground.probe.display(),
                ground.real.display(),
                ground.sandbox.display()
            );
            let output = outer(&line);
            assert_ok(&output);
            assert_eq!(groupless(said(&output)), direct, "{view}");
        }
    }
}

#[test]
fn term_and_hup_are_forwarded() {
    let ground = Ground::new();
    for view in ["in-place", "plain"] {
        for (signal, word, code) in [(Signal::TERM, "term", 7), (Signal::HUP, "hup", 9)] {
            let (mut child, mut reader) = start(&ground, view, LISTENER);
            kill_process(pid(&child), signal).expect("ours");
            assert_eq!(line(&mut reader), word);
            assert_eq!(child.wait().expect("ours").code(), Some(code));
        }
    }
}

#[test]
fn commands_at_once_in_one_process_do_not_mix() {
    let ground = Ground::new();
    let script = "trap 'kill -KILL $!; echo term $$; exit 7' TERM; setsid sleep 999 & sleep 1000 & echo ready; wait $!";
    let mut child = ground
        .line("in-place", "", &[])
        .args(["sh", "-c", script])
        .env("PROBE_TIMES", "8")
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it starts");
    let mut reader = BufReader::new(child.stdout.take().expect("piped"));
    for _ in 0..8 {
        assert_eq!(line(&mut reader), "ready");
    }
    kill_process(pid(&child), Signal::TERM).expect("ours");
    let words: std::collections::BTreeSet<_> = (0..8).map(|_| line(&mut reader)).collect();
    assert_eq!(words.len(), 8, "each has it once: {words:?}");
    let output = child.wait_with_output().expect("ours");
    assert_eq!(output.status.code(), Some(7));
    let complaint = complained(&output);
    assert_eq!(complaint.matches("probe: left ").count(), 8, "{complaint}");
    assert_eq!(complaint.matches("probe: code 7").count(), 8, "{complaint}");
}

#[test]
fn interrupts_are_the_commands_own_business() {
    let ground = Ground::new();
    let (mut child, mut reader) = start(&ground, "in-place", LISTENER);
    // To the caller alone: neither it nor the command minds.
    for signal in [Signal::INT, Signal::QUIT] {
        kill_process(pid(&child), signal).expect("ours");
    }
    kill_process(pid(&child), Signal::TERM).expect("ours");
    assert_eq!(line(&mut reader), "term", "INT was not passed on");
    assert_eq!(child.wait().expect("ours").code(), Some(7));
    // To the group, as a terminal does it.
    let (mut child, mut reader) = start(&ground, "in-place", LISTENER);
    kill_process_group(pid(&child), Signal::INT).expect("ours");
    assert_eq!(line(&mut reader), "int");
    assert_eq!(child.wait().expect("ours").code(), Some(3));
    // A command without a handler dies of it, and the caller reports that.
    let (mut child, _reader) = start(&ground, "plain", "echo ready; exec sleep 1000");
    kill_process_group(pid(&child), Signal::INT).expect("ours");
    assert_eq!(child.wait().expect("ours").code(), Some(130));
}

#[test]
fn what_is_left_behind_is_named_and_stopped() {
    let ground = Ground::new();
    for view in ["in-place", "plain"] {
        // A daemon of its own session, with a child of its own, and one that
        // is stopped; both hold no stream.
        let script = "setsid sh -c 'sleep 1000 & echo $$ > daemon; echo ready > pipe; wait' \
                      </dev/null >/dev/null 2>&1 & \
                      sleep 1001 & kill -STOP $!; read word < pipe; echo $!; exit 6";
        assert_ok(&finish(
            Command::new("mkfifo").arg(ground.sandbox.join("pipe")),
        ));
        let output = finish(ground.line(view, "", &[]).args(["sh", "-c", script]));
        fs::remove_file(ground.sandbox.join("pipe")).expect("it is ours");
        assert_eq!(output.status.code(), Some(6), "{output:?}");
        let daemon = fs::read_to_string(ground.sandbox.join("daemon")).expect("it ran");
        let complaint = complained(&output);
        assert!(
            complaint.contains(&format!("probe: left {} sh\n", daemon.trim())),
            "{complaint}"
        );
        // Its name depends on when it was stopped.
        assert!(
            complaint.contains(&format!("probe: left {} s", said(&output))),
            "{complaint}"
        );
        assert_eq!(complaint.lines().count(), 3, "{complaint}");
        for line in complaint.lines() {
            let raw = line
                .split(' ')
                .nth(2)
                .expect("a pid")
                .parse()
                .expect("a pid");
            let gone = test_kill_process(Pid::from_raw(raw).expect("a pid"));
            assert_eq!(gone, Err(rustix::io::Errno::SRCH), "{line}");
        }
    }
}

#[test]
fn what_ignores_term_is_killed() {
    let ground = Ground::new();
    assert_ok(&finish(
        Command::new("mkfifo").arg(ground.sandbox.join("pipe")),
    ));
    let script = "setsid sh -c 'trap \"\" TERM; echo ready > pipe; while :; do sleep 1000; done' & \
                  read word < pipe; echo $!";
    let output = ground.in_place(script);
    assert_ok(&output);
    assert!(complained(&output).contains(&format!("probe: left {} sh\n", said(&output))));
    assert_ends(&said(&output));
}

#[test]
fn stragglers_that_end_by_themselves_are_not_named() {
    let ground = Ground::new();
    let output = ground.in_place("(read line; exit 0) < /dev/null & exit 0");
    assert_eq!(
        (complained(&output).as_str(), output.status.code()),
        ("", Some(0))
    );
}

#[test]
fn a_caller_that_is_killed_leaves_no_writer() {
    let ground = Ground::new();
    for view in ["in-place", "plain"] {
        let script = "trap '' HUP; setsid sleep 1000 & echo ready; echo $$; echo $!; read line";
        let (mut child, mut reader) = start(&ground, view, script);
        let (command, daemon) = (line(&mut reader), line(&mut reader));
        let _keeps_reading = child.stdin.take();
        kill_process(pid(&child), Signal::KILL).expect("ours");
        child.wait().expect("ours");
        assert_ends(&command);
        assert_ends(&daemon);
    }
}

#[test]
fn the_hidden_start_takes_no_orders_by_hand() {
    let ground = Ground::new();
    for arguments in [
        &["__enter"][..],
        &["__enter", "0"],
        &["__enter", "9"],
        &["__enter", "x"],
    ] {
        let output = finish(Command::new(&ground.probe).args(arguments));
        assert_eq!(output.status.code(), Some(125), "{arguments:?}");
        assert!(
            complained(&output).contains("takes no orders"),
            "{output:?}"
        );
    }
}
