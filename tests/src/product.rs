//! The built `sandbar` binary, and a small world of its own to run it in.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;
use tempfile::TempDir;

use crate::foreign;

/// Finds the binary that was built beside this test.
pub fn binary() -> PathBuf {
    let test = std::env::current_exe().expect("a test knows its own path");
    let profile = test
        .ancestors()
        .nth(2)
        .expect("a test lies in target/<profile>/deps");
    let binary = profile.join("sandbar");
    assert!(
        binary.is_file(),
        "{} is missing: run `cargo build --workspace --bins` first",
        binary.display()
    );
    binary
}

/// A home and a data directory that no other test sees.
pub struct World {
    root: PathBuf,
    binary: PathBuf,
    extra: Vec<(String, String)>,
    _scratch: Option<TempDir>,
}

impl Default for World {
    fn default() -> Self {
        Self::new()
    }
}

impl World {
    /// Makes an empty world in scratch space.
    pub fn new() -> Self {
        let scratch = tempfile::tempdir().expect("scratch space");
        let mut world = Self::at(scratch.path());
        world._scratch = Some(scratch);
        world
    }

    /// Makes a world in a directory that the caller keeps.
    pub fn at(root: &Path) -> Self {
        std::fs::create_dir(root.join("home")).expect("a home");
        Self {
            root: root.to_owned(),
            binary: binary(),
            extra: Vec::new(),
            _scratch: None,
        }
    }

    /// Sets a variable for everything that is run from now on.
    pub fn set(&mut self, name: &str, value: &str) {
        self.extra.push((name.to_owned(), value.to_owned()));
    }

    /// Makes a world whose binary every account can reach, wherever the build
    /// directory is.
    pub fn reachable() -> Self {
        let mut world = Self::new();
        let copy = world.path().join("sandbar");
        std::fs::copy(&world.binary, &copy).expect("a copy of the binary");
        world.binary = copy;
        world
    }

    /// Returns the directory that holds everything of this world.
    pub fn path(&self) -> &Path {
        &self.root
    }

    /// Returns the home directory.
    pub fn home(&self) -> PathBuf {
        self.path().join("home")
    }

    /// Returns the data directory, which Sandbar makes.
    pub fn data(&self) -> PathBuf {
        self.path().join("data")
    }

    /// Prepares `sandbar` in `dir` without starting it.
    pub fn command(&self, dir: &Path, arguments: &[impl AsRef<OsStr>]) -> Command {
        let mut command = foreign::command(dir, &self.binary);
        command
            .args(arguments)
            .env("HOME", self.home())
            .env("SANDBAR_DATA_DIR", self.data())
            .envs(self.extra.iter().map(|(name, value)| (name, value)))
            .env_remove("GIT_OPTIONAL_LOCKS")
            .env_remove("GIT_CONFIG_COUNT")
            .env_remove("GIT_CONFIG_KEY_0")
            .env_remove("GIT_CONFIG_VALUE_0")
            .env_remove("GIT_CONFIG_NOSYSTEM")
            .env_remove("GIT_CONFIG_GLOBAL");
        command
    }

    /// Runs `sandbar` in `dir`.
    pub fn sandbar(&self, dir: &Path, arguments: &[impl AsRef<OsStr>]) -> Done {
        Done::of(&mut self.command(dir, arguments))
    }

    /// Runs `sandbar` in `dir`; it must succeed.
    pub fn ok(&self, dir: &Path, arguments: &[impl AsRef<OsStr>]) -> Done {
        self.sandbar(dir, arguments).expect(0)
    }

    /// Runs `sandbar … --json` in `dir`; it must succeed and print one document.
    pub fn json(&self, dir: &Path, arguments: &[&str]) -> Value {
        let mut arguments = arguments.to_vec();
        let at = arguments.iter().position(|word| *word == "--");
        arguments.insert(at.unwrap_or(arguments.len()), "--json");
        self.ok(dir, &arguments).json()
    }

    /// Runs a script in the sandbox of a new plan; script and Sandbar must succeed.
    pub fn run(&self, dir: &Path, name: &str, script: &str) -> Done {
        self.ok(dir, &["run", "--name", name, "--", "sh", "-euc", script])
    }

    /// Returns the root of a plan's sandbox.
    pub fn sandbox(&self, dir: &Path, plan: &str) -> PathBuf {
        PathBuf::from(self.ok(dir, &["path", plan]).stdout.trim_end())
    }
}

/// How a run of the binary ended.
#[derive(Debug, Clone)]
pub struct Done {
    /// What was run.
    pub line: String,
    /// The exit code; none when a signal ended it.
    pub code: Option<i32>,
    /// Standard output.
    pub stdout: String,
    /// Standard error.
    pub stderr: String,
}

impl Done {
    /// Runs a prepared command to its end.
    pub fn of(command: &mut Command) -> Self {
        let output = foreign::output(command);
        Self::from_output(command, &output)
    }

    /// Describes a command that has ended.
    pub fn from_output(command: &Command, output: &Output) -> Self {
        let words: Vec<_> = std::iter::once(OsStr::new("sandbar"))
            .chain(command.get_args())
            .map(OsStr::to_string_lossy)
            .collect();
        Self {
            line: words.join(" "),
            code: output.status.code(),
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }

    /// Ends the test unless the exit code is `code`.
    #[must_use = "what was printed is evidence; drop it on purpose"]
    pub fn expect(self, code: i32) -> Self {
        assert_eq!(
            self.code,
            Some(code),
            "{}\n--- output\n{}\n--- messages\n{}",
            self.line,
            self.stdout,
            self.stderr
        );
        self
    }

    /// Reads standard output as the one document that it must be.
    pub fn json(&self) -> Value {
        match serde_json::from_str(&self.stdout) {
            Ok(value) => value,
            Err(why) => panic!(
                "{} printed no single document: {why}\n{}\n{}",
                self.line, self.stdout, self.stderr
            ),
        }
    }
}
