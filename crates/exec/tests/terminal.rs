//! Job control in a terminal: a shell, its keys, and a command through the
//! runner, as a person has them.
#![allow(
    clippy::disallowed_methods,
    reason = "tests stand outside: they start a shell on a terminal of their own"
)]

mod ground;

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::os::fd::{AsFd as _, OwnedFd};
use std::process::{Child, Command};

use ground::Ground;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{Mode, OFlags, open};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};

/// A shell with job control on a terminal.
struct Terminal {
    keys: File,
    shell: Child,
    screen: String,
}

impl Terminal {
    fn new(ground: &Ground) -> Self {
        // For the pause of a script that may not start a program.
        ground::assert_ok(&ground::finish(
            Command::new("mkfifo").arg(ground.sandbox.join("pipe")),
        ));
        let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC)
            .expect("there are terminals");
        grantpt(&master).expect("it is ours");
        unlockpt(&master).expect("it is ours");
        let name = ptsname(&master, Vec::new()).expect("it has a name");
        let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
        let slave = || -> OwnedFd { open(&name, flags, Mode::empty()).expect("it is ours") };
        let shell = Command::new("setsid")
            .args(["--ctty", "--wait", "bash", "--norc", "--noprofile", "-i"])
            .envs([("PS1", "prompt> "), ("TERM", "dumb"), ("LC_ALL", "C")])
            .env("PROBE", &ground.probe)
            .env(
                "ARGS",
                format!("{} {}", ground.real.display(), ground.sandbox.display()),
            )
            .stdin(slave())
            .stdout(slave())
            .stderr(slave())
            .spawn()
            .expect("a shell starts");
        let mut terminal = Self {
            keys: File::from(master),
            shell,
            screen: String::new(),
        };
        terminal.until("prompt> ");
        terminal.keys("run() { $PROBE run in-place $ARGS '' -- \"$@\"; }; echo de''fined\n");
        terminal.until("defined");
        terminal.until("prompt> ");
        terminal
    }

    fn keys(&mut self, keys: &str) {
        self.keys.write_all(keys.as_bytes()).expect("it reads");
    }

    /// Reads until `text` has appeared, and forgets what came before.
    #[track_caller]
    fn until(&mut self, text: &str) {
        let limit = Timespec {
            tv_sec: 20,
            tv_nsec: 0,
        };
        let mut buffer = [0; 4096];
        loop {
            if let Some(at) = self.screen.find(text) {
                self.screen.drain(..at + text.len());
                return;
            }
            let mut fds = [PollFd::from_borrowed_fd(self.keys.as_fd(), PollFlags::IN)];
            let ready = poll(&mut fds, Some(&limit)).expect("it waits");
            assert_eq!(ready, 1, "no {text:?} on the screen: {:?}", self.screen);
            let count = self.keys.read(&mut buffer).expect("the shell lives");
            self.screen
                .push_str(&String::from_utf8_lossy(&buffer[..count]));
        }
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = self
            .keys
            .write_all(b"\x03\nkill -9 %1 2>/dev/null; exit; exit\n");
        let _ = self.shell.kill();
        let _ = self.shell.wait();
    }
}

/// Writes all the time and starts nothing: a shell that is stopped between
/// `vfork` and `exec` of a child hangs, with or without a runner.
const TICK: &str =
    "bash -c 'trap \"exit 3\" INT; while :; do echo ti\"\"ck; read -t 0.05 -u 9; done 9<>pipe'";

#[test]
fn stop_continue_and_interrupt_work_as_for_any_command() {
    let ground = Ground::new();
    let mut terminal = Terminal::new(&ground);
    terminal.keys(&format!("run {TICK}\n"));
    terminal.until("tick");
    terminal.keys("\x1a");
    terminal.until("Stopped");
    terminal.until("prompt> ");
    terminal.keys("fg\n");
    terminal.until("tick");
    terminal.until("tick");
    terminal.keys("\x1a");
    terminal.until("Stopped");
    terminal.until("prompt> ");
    terminal.keys("fg\n");
    terminal.until("tick");
    terminal.keys("\x03");
    terminal.until("prompt> ");
    terminal.keys("echo code=$?\n");
    terminal.until("code=3");
}

#[test]
fn a_command_that_stops_itself_gives_the_prompt_back() {
    let ground = Ground::new();
    let mut terminal = Terminal::new(&ground);
    terminal.keys("run sh -c 'kill -TSTP $$; echo go\"\"ing on; exit 4'\n");
    terminal.until("Stopped");
    terminal.until("prompt> ");
    terminal.keys("fg\n");
    terminal.until("going on");
    terminal.until("prompt> ");
    terminal.keys("echo code=$?\n");
    terminal.until("code=4");
}

#[test]
fn a_freeze_from_outside_is_no_stop() {
    let ground = Ground::new();
    let mut terminal = Terminal::new(&ground);
    // Frozen and let go by somebody else, well after the caller would follow.
    terminal
        .keys("run sh -c '(sleep 0.5; kill -CONT $$) & kill -STOP $$; wait; echo th\"\"awed'\n");
    terminal.until("thawed");
    terminal.until("prompt> ");
    terminal.keys("jobs; echo jobs''=$?\n");
    terminal.until("jobs=0");
    assert!(!terminal.screen.contains("Stopped"));
}

#[test]
fn an_inner_shell_has_its_own_jobs_and_gives_the_terminal_back_when_killed() {
    let ground = Ground::new();
    let mut terminal = Terminal::new(&ground);
    terminal.keys("PS1='inner> ' run bash --norc --noprofile -i\n");
    terminal.until("inner> ");
    terminal.keys(&format!("{TICK}\n"));
    terminal.until("tick");
    terminal.keys("\x1a");
    terminal.until("Stopped");
    terminal.until("inner> ");
    terminal.keys("kill -9 $$\n");
    terminal.until("probe: left");
    terminal.until("prompt> ");
    terminal.keys("echo code=$?; cat\n");
    terminal.until("code=137");
    terminal.until("\r\n");
    terminal.keys("typed\n");
    terminal.until("typed\r\ntyped\r\n");
    terminal.keys("\x04");
    terminal.until("prompt> ");
}

#[test]
fn a_background_command_that_reads_the_terminal_is_stopped_with_its_caller() {
    let ground = Ground::new();
    let mut terminal = Terminal::new(&ground);
    terminal.keys("run cat &\n");
    terminal.until("prompt> ");
    terminal.keys("while ! jobs | grep -q Stopped; do sleep 0.05; done; echo st''opped\n");
    terminal.until("stopped");
    terminal.until("prompt> ");
    terminal.keys("fg\n");
    terminal.until("run cat");
    terminal.keys("line for cat\n");
    terminal.until("line for cat\r\nline for cat");
    terminal.keys("\x04");
    terminal.until("prompt> ");
    terminal.keys("echo code=$?\n");
    terminal.until("code=0");
}
