//! What a command sees of its sandbox, and what nobody else sees.
#![allow(
    clippy::disallowed_methods,
    reason = "tests stand outside: they look at real files and processes"
)]

mod ground;

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::process::{Command, Stdio};

use ground::{Ground, as_user, assert_ok, complained, finish, said};

/// What holds for every account: literal absolute paths lead into the sandbox.
fn check_in_place(ground: &Ground, line: impl Fn(Command) -> Command) {
    let real = ground.real.display().to_string();
    let before = Ground::tree(&ground.real);
    let script = format!(
        "pwd && pwd -P && cd / && cat {real}/file && echo new > {real}/made \
         && rm {real}/file && mkdir {real}/sub/dir && id -u"
    );
    let mut command = ground.line("in-place", "sub/deep", &[]);
    command.args(["sh", "-c", &script]);
    let output = finish(&mut line(command));
    assert_ok(&output);
    let said = said(&output);
    let lines: Vec<_> = said.lines().collect();
    assert_eq!(lines[0], format!("{real}/sub/deep"), "the shell's own idea");
    assert_eq!(lines[1], format!("{real}/sub/deep"), "the kernel's");
    assert!(lines[2].starts_with("sandbox"), "{lines:?}");
    assert_eq!(
        Ground::tree(&ground.real),
        before,
        "the real tree is as it was"
    );
    assert_eq!(
        fs::read(ground.sandbox.join("made")).expect("made"),
        b"new\n"
    );
    assert!(!ground.sandbox.join("file").exists());
    assert!(ground.sandbox.join("sub/dir").is_dir());
}

fn own_uid() -> u32 {
    rustix::process::getuid().as_raw()
}

#[test]
fn the_views_are_available() {
    let ground = Ground::new();
    let output = finish(Command::new(&ground.probe).arg("report"));
    assert_eq!(said(&output), "true", "{output:?}");
}

#[test]
fn absolute_paths_lead_into_the_sandbox() {
    check_in_place(&Ground::new(), |command| command);
}

/// An account as `useradd` makes it, removed in the end.
struct Account(String);

impl Account {
    fn new() -> Self {
        let name = format!("sbx{}", std::process::id());
        assert_ok(&finish(Command::new("useradd").args(["-m", &name])));
        Self(name)
    }
}

impl Drop for Account {
    fn drop(&mut self) {
        let _ = Command::new("userdel").args(["-r", &self.0]).output();
    }
}

#[test]
fn an_ordinary_account_has_the_same_view() {
    assert_eq!(own_uid(), 0, "accounts are made by the superuser");
    let account = Account::new();
    let ground = Ground::new();
    let owner = format!("{0}:{0}", account.0);
    assert_ok(&finish(
        Command::new("chown")
            .arg("-R")
            .arg(&owner)
            .arg(ground.path()),
    ));
    let mut report = Command::new(&ground.probe);
    report.arg("report");
    let output = finish(&mut as_user(&account.0, &report));
    assert_eq!(said(&output), "true", "{output:?}");
    check_in_place(&ground, |command| as_user(&account.0, &command));

    check_sockets(&ground, |command| as_user(&account.0, &command));

    // Own uid and gid, no capability, and the real files stay the account's.
    let mut command = ground.line("in-place", "", &[]);
    command.args(["sh", "-c", "id -un; id -gn; grep CapEff /proc/self/status"]);
    let output = finish(&mut as_user(&account.0, &command));
    let expected = format!("{0}\n{0}\nCapEff:\t0000000000000000", account.0);
    assert_eq!(said(&output), expected);
    let mut command = ground.line("in-place", "", &[]);
    command.args(["sh", "-c", &format!("ls /proc/{}/root", std::process::id())]);
    assert!(!finish(&mut as_user(&account.0, &command)).status.success());
    // The view of a shell that makes a namespace of its own cannot be taken off.
    let script = format!("unshare -Urm umount {}", ground.real.display());
    let mut command = ground.line("in-place", "", &[]);
    command.args(["sh", "-c", &script]);
    assert!(!finish(&mut as_user(&account.0, &command)).status.success());
}

#[test]
fn the_superuser_keeps_its_ids_and_cannot_reach_around_the_view() {
    assert_eq!(own_uid(), 0, "run as the superuser");
    let ground = Ground::new();
    let output = ground.in_place("chown 4242:4343 file && stat -c %u:%g file");
    assert_eq!(said(&output), "4242:4343", "{output:?}");
    let real = ground.real.display();
    // A process outside, whose root shows the real tree to us …
    let outside = format!("/proc/{}/root{real}/file", std::process::id());
    assert_eq!(fs::read(&outside).expect("it is ours"), b"real");
    // … and not to the command.
    let output = ground.in_place(&format!("cat {outside}"));
    assert!(!output.status.success(), "{output:?}");
    let output = ground.in_place(&format!(
        "umount {real} || umount -l {real}; cat {real}/file"
    ));
    assert_eq!(said(&output), "sandbox", "the view cannot be taken off");
}

#[test]
fn another_mount_of_the_real_root_is_covered_too() {
    assert_eq!(own_uid(), 0, "run as the superuser");
    let ground = Ground::new();
    let alias = ground.path().join("alias");
    fs::create_dir(&alias).expect("it is ours");
    let probe = ground.line("in-place", "", &[]);
    let script = format!("cat {0}/real/file; echo x > {0}/real/made", alias.display());
    let mut line = Command::new("unshare");
    line.args([
        "-m",
        "sh",
        "-c",
        r#"mount --bind "$1" "$2" && shift 2 && exec "$@""#,
        "sh",
    ])
    .args([ground.path(), &alias])
    .arg(probe.get_program())
    .args(probe.get_args())
    .args(["sh", "-c", &script]);
    let output = finish(&mut line);
    assert_ok(&output);
    assert_eq!(said(&output), "sandbox");
    assert!(!ground.real.join("made").exists());
    assert!(ground.sandbox.join("made").exists());
}

#[test]
fn no_mount_shows_outside() {
    let ground = Ground::new();
    let ours = |text: String| {
        let path = ground.path().display().to_string();
        text.lines().filter(|line| line.contains(&path)).count()
    };
    let mounts = || ours(fs::read_to_string("/proc/self/mountinfo").expect("it exists"));
    assert_eq!(mounts(), 0);
    let mut command = ground.line("in-place", "", &[]);
    let mut child = command
        .args([
            "sh",
            "-c",
            "cat /proc/self/mountinfo; echo ready; read line",
        ])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("it starts");
    let mut inside = String::new();
    let mut reader = BufReader::new(child.stdout.take().expect("piped"));
    while !inside.ends_with("ready\n") {
        assert!(reader.read_line(&mut inside).expect("text") > 0, "{inside}");
    }
    assert_eq!(ours(inside), 1, "inside there is one");
    assert_eq!(mounts(), 0, "outside there is none while it runs");
    assert_eq!(fs::read(ground.real.join("file")).expect("real"), b"real");
    child
        .stdin
        .take()
        .expect("piped")
        .write_all(b"\n")
        .expect("it reads");
    assert!(child.wait().expect("ours").success());
    assert_eq!(mounts(), 0);
}

#[test]
fn further_binds_lie_on_top() {
    let ground = Ground::new();
    let other = ground.path().join("other");
    fs::create_dir(&other).expect("it is ours");
    fs::write(other.join("deep-file"), "other").expect("it is ours");
    // The source lies below the real root, the place below the sandbox's sub.
    let hidden = ground.real.join("hidden");
    fs::create_dir(&hidden).expect("it is ours");
    fs::write(hidden.join("h"), "from below").expect("it is ours");
    let place = ground.real.join("sub/deep");
    let elsewhere = ground.path().join("elsewhere");
    fs::create_dir(&elsewhere).expect("it is ours");
    let text = |path: &Path| path.display().to_string();
    let options = [
        "--bind",
        &text(&other),
        &text(&place),
        "--bind",
        &text(&hidden),
        &text(&elsewhere),
    ];
    let mut command = ground.line("in-place", "", &options);
    let output = finish(command.args(["sh", "-c", "cat sub/deep/deep-file ../elsewhere/h"]));
    assert_eq!(said(&output), "otherfrom below", "{output:?}");
}

#[test]
fn a_bind_that_cannot_be_made_runs_nothing() {
    let ground = Ground::new();
    let missing = ground.path().join("missing").display().to_string();
    let mut command = ground.line("in-place", "", &["--bind", &missing, "/mnt"]);
    let output = finish(command.args(["touch", "made"]));
    assert_eq!(output.status.code(), Some(125));
    assert!(
        complained(&output).contains("probe: error not_available"),
        "{output:?}"
    );
    assert!(complained(&output).contains(&missing), "{output:?}");
    assert!(!ground.sandbox.join("made").exists());
}

#[test]
fn a_sandbox_that_is_gone_is_said_so() {
    let ground = Ground::new();
    fs::remove_dir_all(&ground.sandbox).expect("it is ours");
    for output in [ground.in_place("true"), ground.plain("true")] {
        assert_eq!(output.status.code(), Some(125));
        let complaint = complained(&output);
        assert!(
            complaint.contains("probe: error sandbox_gone"),
            "{complaint}"
        );
        assert!(
            complaint.contains("box: no such file or directory"),
            "{complaint}"
        );
    }
}

#[test]
fn a_missing_sub_directory_falls_back_to_the_root() {
    let ground = Ground::new();
    for (view, root) in [("in-place", &ground.real), ("plain", &ground.sandbox)] {
        let output =
            finish(
                ground
                    .line(view, "sub/none", &[])
                    .args(["sh", "-c", "pwd -P; echo $PWD"]),
            );
        assert_ok(&output);
        assert_eq!(said(&output), format!("{0}\n{0}", root.display()));
        assert!(
            complained(&output).contains("sandbar: sub/none: "),
            "{output:?}"
        );
    }
}

#[test]
fn the_plain_view_is_the_sandbox_itself() {
    let ground = Ground::new();
    let mut command = ground.line("plain", "sub", &[]);
    let output = finish(command.args(["sh", "-c", "pwd -P; echo $PWD; cat ../file"]));
    let sub = ground.sandbox.join("sub");
    assert_eq!(said(&output), format!("{0}\n{0}\nsandbox", sub.display()));
}

#[test]
fn the_program_may_lie_in_the_real_root_and_be_replaced() {
    let mut ground = Ground::new();
    let inside = ground.real.join("target");
    fs::create_dir(&inside).expect("it is ours");
    fs::rename(&ground.probe, inside.join("probe")).expect("it is ours");
    ground.probe = inside.join("probe");
    let output = ground.in_place("ls; cat file");
    assert_eq!(said(&output), "file\nsub\nsandbox", "{output:?}");
    // The path leads to something else by the time of the start.
    let link = ground.path().join("moving");
    fs::hard_link(&ground.probe, &link).expect("it is ours");
    let script = r#"exec 9<"$0"; rm "$0"; exec /proc/self/fd/9 "$@""#;
    let line = ground.line("in-place", "", &[]);
    let mut command = Command::new("bash");
    command
        .args(["-c", script])
        .arg(&link)
        .args(line.get_args());
    let output = finish(command.args(["cat", "file"]));
    assert_eq!(said(&output), "sandbox", "{output:?}");
}

/// Sockets that the environment names cannot be reached by the command.
fn check_sockets(ground: &Ground, line: impl Fn(Command) -> Command) {
    let dir = ground.path().join("run");
    fs::create_dir(&dir).expect("it is ours");
    let sockets = [dir.join("docker.sock"), ground.path().join("named.sock")];
    let _listening = sockets
        .each_ref()
        .map(|path| UnixListener::bind(path).expect("it is ours"));
    let script = format!(
        "for s in {} {}; do test -S $s && exit 1; test -c $s || exit 2; done; echo x > {}",
        sockets[0].display(),
        sockets[1].display(),
        sockets[0].display(),
    );
    let mut command = ground.line("in-place", "", &[]);
    command.args(["sh", "-c", &script]);
    let output = finish(
        line(command)
            .env("XDG_RUNTIME_DIR", &dir)
            .env("DOCKER_HOST", format!("unix://{}", sockets[1].display())),
    );
    assert_ok(&output);
    for socket in &sockets {
        UnixStream::connect(socket).expect("outside nothing changed");
    }
}

#[test]
fn container_sockets_are_hidden() {
    check_sockets(&Ground::new(), |command| command);
}

#[test]
fn the_usual_docker_socket_is_hidden() {
    assert_eq!(own_uid(), 0, "run as the superuser");
    let ground = Ground::new();
    let dir = ground.path().join("run");
    fs::create_dir(&dir).expect("it is ours");
    let _listening = UnixListener::bind(dir.join("docker.sock")).expect("it is ours");
    let probe = ground.line("in-place", "", &[]);
    let check = "test -e /run/docker.sock && test ! -S /run/docker.sock";
    let mut line = Command::new("unshare");
    line.args(["-m", "sh", "-c"])
        .arg(r#"mount --bind "$0" /run && test -S /run/docker.sock && exec "$@""#)
        .arg(&dir)
        .arg(probe.get_program())
        .args(probe.get_args())
        .args(["sh", "-c", check]);
    assert_ok(&finish(&mut line));
}

#[test]
fn git_variables_are_gone_and_others_are_as_asked() {
    let ground = Ground::new();
    let mut command = ground.line(
        "in-place",
        "sub",
        &[
            "--set",
            "SANDBAR_PLAN=01X",
            "--set",
            "ODD=a=b c",
            "--unset",
            "GONE",
        ],
    );
    let output = finish(
        command
            .envs([
                ("GIT_DIR", "/x"),
                ("GIT_INDEX_FILE", "/y"),
                ("GIT_AUTHOR_NAME", "A"),
            ])
            .envs([("GONE", "1"), ("KEPT", "1"), ("PWD", "/wrong")])
            .arg("env"),
    );
    let said = said(&output);
    let has = |line: &str| said.lines().any(|other| other == line);
    assert!(
        !said.contains("GIT_DIR") && !said.contains("GIT_INDEX_FILE"),
        "{said}"
    );
    assert!(!said.contains("GONE"), "{said}");
    assert!(
        has("GIT_AUTHOR_NAME=A") && has("KEPT=1") && has("SANDBAR_PLAN=01X"),
        "{said}"
    );
    assert!(has("ODD=a=b c"), "{said}");
    assert!(has(&format!("PWD={}/sub", ground.real.display())), "{said}");
}

#[test]
fn a_refusal_is_explained_and_runs_nothing() {
    assert_eq!(own_uid(), 0, "run as the superuser");
    let ground = Ground::new();
    let chroot = ground.path().join("chroot");
    fs::create_dir(&chroot).expect("it is ours");
    // The kernel makes no user namespace for a process in a chroot.
    let in_chroot = |command: &Command| {
        let mut line = Command::new("unshare");
        line.args(["-m", "sh", "-c"])
            .arg(r#"mount --rbind / "$0" && exec chroot "$0" "$@""#)
            .arg(&chroot)
            .arg(command.get_program())
            .args(command.get_args());
        finish(&mut line)
    };
    let mut report = Command::new(&ground.probe);
    let output = in_chroot(report.arg("report"));
    let reason = "make the in-place view: unshare: operation not permitted";
    assert_eq!(said(&output), format!("false {reason}"), "{output:?}");
    let mut command = ground.line("in-place", "", &[]);
    let output = in_chroot(command.args(["touch", "made"]));
    assert_eq!(output.status.code(), Some(125));
    assert_eq!(
        complained(&output),
        format!("probe: error not_available {reason}\n")
    );
    let mut command = ground.line("plain", "", &[]);
    assert_ok(&in_chroot(command.args(["test", "!", "-e", "made"])));
}
