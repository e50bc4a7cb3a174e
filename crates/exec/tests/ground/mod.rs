//! A pair of directories and the probe to run commands on them.
#![allow(
    dead_code,
    clippy::disallowed_methods,
    reason = "tests stand outside: they look at real files and processes"
)]

use std::ffi::OsStr;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// A real directory and its sandbox, with the same names in both.
pub(crate) struct Ground {
    dir: tempfile::TempDir,
    /// The real root.
    pub(crate) real: PathBuf,
    /// The sandbox root.
    pub(crate) sandbox: PathBuf,
    /// A copy of the probe that every account can start.
    pub(crate) probe: PathBuf,
}

impl Ground {
    pub(crate) fn new() -> Self {
        // Not below a home directory: other accounts must get there.
        let dir = tempfile::Builder::new()
            .prefix("exec")
            .tempdir_in("/var/tmp")
            .expect("/var/tmp takes a directory");
        let path = dir.path().canonicalize().expect("it was just made");
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o755)).expect("it is ours");
        let (real, sandbox) = (path.join("real"), path.join("box"));
        for (root, text) in [(&real, "real"), (&sandbox, "sandbox")] {
            std::fs::create_dir_all(root.join("sub/deep")).expect("it is ours");
            std::fs::write(root.join("file"), text).expect("it is ours");
        }
        let probe = path.join("probe");
        std::fs::copy(built_probe(), &probe).expect("the example is built with the tests");
        Self {
            dir,
            real,
            sandbox,
            probe,
        }
    }

    /// The directory that holds all.
    pub(crate) fn path(&self) -> &Path {
        self.real.parent().expect("it has one")
    }

    /// The command line of the probe, up to and including `--`.
    pub(crate) fn line(&self, view: &str, subdir: &str, options: &[&str]) -> Command {
        let mut command = Command::new(&self.probe);
        command
            .args(["run", view])
            .args([&self.real, &self.sandbox])
            .arg(subdir)
            .args(options)
            .arg("--");
        command
    }

    /// Runs a shell script in the in-place view of the whole root.
    pub(crate) fn in_place(&self, script: &str) -> Output {
        finish(self.line("in-place", "", &[]).args(["sh", "-c", script]))
    }

    /// Runs a shell script in the plain view.
    pub(crate) fn plain(&self, script: &str) -> Output {
        finish(self.line("plain", "", &[]).args(["sh", "-c", script]))
    }

    /// Every path below a root with its content.
    pub(crate) fn tree(root: &Path) -> Vec<(PathBuf, Option<Vec<u8>>)> {
        let mut found = Vec::new();
        let mut open = vec![root.to_owned()];
        while let Some(dir) = open.pop() {
            for entry in std::fs::read_dir(&dir).expect("it can be read") {
                let path = entry.expect("it can be read").path();
                if path.is_dir() {
                    open.push(path.clone());
                    found.push((path, None));
                } else {
                    let bytes = std::fs::read(&path).expect("it can be read");
                    found.push((path, Some(bytes)));
                }
            }
        }
        found.sort();
        found
    }
}

/// The example is built beside the tests, one directory up.
fn built_probe() -> PathBuf {
    let test = std::env::current_exe().expect("it runs");
    let profile = test.ancestors().nth(2).expect("target/<profile>/deps/test");
    profile.join("examples/probe")
}

/// Runs a command to its end.
pub(crate) fn finish(command: &mut Command) -> Output {
    command.output().expect("it starts")
}

/// Standard output as text, without the last line end.
pub(crate) fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout)
        .trim_end()
        .to_owned()
}

/// Standard error as text.
pub(crate) fn complained(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Checks that a run went well, and shows what it said if not.
#[track_caller]
pub(crate) fn assert_ok(output: &Output) {
    assert!(output.status.success(), "{output:?}");
}

/// The same command line as another user.
pub(crate) fn as_user(name: &str, command: &Command) -> Command {
    let mut line = Command::new("setpriv");
    line.arg(format!("--reuid={name}"))
        .arg(format!("--regid={name}"))
        .arg("--clear-groups")
        .arg(command.get_program())
        .args(command.get_args().collect::<Vec<&OsStr>>());
    line
}
