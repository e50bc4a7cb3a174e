//! Starts other programs, says which, and turns failures into sentences.
#![allow(
    clippy::disallowed_methods,
    reason = "xtask is no product: starting cargo, git and servers is its work"
)]

use std::ffi::OsStr;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};

/// What a step of xtask returns: the error is a sentence for a person.
pub(crate) type Outcome<T = ()> = Result<T, String>;

/// A program to run.
pub(crate) struct Step {
    command: Command,
    text: String,
}

impl Step {
    /// Names the program.
    pub(crate) fn new(program: impl AsRef<OsStr>) -> Self {
        let program = program.as_ref();
        Self {
            command: Command::new(program),
            text: program.to_string_lossy().into_owned(),
        }
    }

    /// Starts from a line of words without quotes: program, then arguments.
    pub(crate) fn words(line: &str) -> Self {
        let mut words = line.split_whitespace();
        let step = Self::new(words.next().expect("a line names a program"));
        step.args(words)
    }

    /// Adds one argument.
    pub(crate) fn arg(mut self, argument: impl AsRef<OsStr>) -> Self {
        let argument = argument.as_ref();
        self.text.push(' ');
        self.text.push_str(&argument.to_string_lossy());
        self.command.arg(argument);
        self
    }

    /// Adds arguments.
    pub(crate) fn args(mut self, arguments: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Self {
        for argument in arguments {
            self = self.arg(argument);
        }
        self
    }

    /// Sets one variable.
    pub(crate) fn env(mut self, name: &str, value: impl AsRef<OsStr>) -> Self {
        self.command.env(name, value);
        self
    }

    /// Sets variables.
    pub(crate) fn envs(mut self, pairs: &[(String, String)]) -> Self {
        for (name, value) in pairs {
            self.command.env(name, value);
        }
        self
    }

    /// Sets the directory to run in.
    pub(crate) fn dir(mut self, dir: &Path) -> Self {
        self.command.current_dir(dir);
        self
    }

    /// Returns the underlying command.
    pub(crate) fn into_command(self) -> Command {
        self.command
    }

    /// Runs it with the terminal passed through; a non-zero exit is an error.
    pub(crate) fn run(mut self) -> Outcome {
        eprintln!("$ {}", self.text);
        let status = self
            .command
            .stdin(Stdio::null())
            .status()
            .map_err(|why| format!("start {}: {why}", self.text))?;
        if status.success() {
            Ok(())
        } else {
            Err(format!("`{}` ended with {status}", self.text))
        }
    }

    /// Runs it without a word and returns its standard output.
    pub(crate) fn read(mut self) -> Outcome<String> {
        let output = self
            .command
            .stdin(Stdio::null())
            .output()
            .map_err(|why| format!("start {}: {why}", self.text))?;
        if output.status.success() {
            Ok(String::from_utf8_lossy(&output.stdout).into_owned())
        } else {
            Err(format!(
                "`{}` ended with {}: {}",
                self.text,
                output.status,
                String::from_utf8_lossy(&output.stderr).trim()
            ))
        }
    }

    /// Says whether it runs and exits with 0; its output is dropped.
    pub(crate) fn succeeds(mut self) -> bool {
        self.command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status()
            .is_ok_and(|status| status.success())
    }

    /// Runs it, passing its standard error through line by line while keeping
    /// it, and returns what was kept with whether the exit was 0.
    pub(crate) fn watch(mut self) -> Outcome<(String, bool)> {
        eprintln!("$ {}", self.text);
        let mut child = self
            .command
            .stdin(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|why| format!("start {}: {why}", self.text))?;
        let pipe = child.stderr.take().expect("standard error is piped");
        let mut kept = String::new();
        for line in BufReader::new(pipe).split(b'\n') {
            let line = line.map_err(|why| format!("read from {}: {why}", self.text))?;
            let line = String::from_utf8_lossy(&line);
            let _ = writeln!(std::io::stderr(), "{line}");
            kept.push_str(&line);
            kept.push('\n');
        }
        let status = child
            .wait()
            .map_err(|why| format!("wait for {}: {why}", self.text))?;
        Ok((kept, status.success()))
    }
}

/// Says whether a program of that name is on the path.
pub(crate) fn is_on_path(program: &str) -> bool {
    std::env::var_os("PATH")
        .is_some_and(|path| std::env::split_paths(&path).any(|dir| dir.join(program).is_file()))
}

/// Says whether this process is root.
pub(crate) fn is_root() -> bool {
    Step::words("id -u").read().is_ok_and(|id| id.trim() == "0")
}
