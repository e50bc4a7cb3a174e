//! Starts foreign programs with a clean environment; a failure ends the test
//! with the program's own words.

use std::ffi::OsStr;
use std::path::Path;
use std::process::{Command, Output, Stdio};

/// Makes a command in `dir` that inherits nothing but the search path, and
/// reads no configuration of the person who runs the tests.
pub fn command(dir: &Path, program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new(program);
    command
        .current_dir(dir)
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .env("HOME", "/nonexistent")
        .env("LC_ALL", "C.UTF-8")
        .env("TZ", "UTC")
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        // Judges look at trees of other accounts too.
        .env("GIT_CONFIG_COUNT", "1")
        .env("GIT_CONFIG_KEY_0", "safe.directory")
        .env("GIT_CONFIG_VALUE_0", "*")
        .env("GIT_AUTHOR_NAME", "A U Thor")
        .env("GIT_AUTHOR_EMAIL", "author@example.com")
        .env("GIT_COMMITTER_NAME", "C O Mitter")
        .env("GIT_COMMITTER_EMAIL", "committer@example.com")
        // A judge must never write: `git status` would refresh the index.
        .env("GIT_OPTIONAL_LOCKS", "0")
        .stdin(Stdio::null());
    command
}

/// Runs a command to its end and returns what it said, whatever its exit.
pub fn output(command: &mut Command) -> Output {
    match command.output() {
        Ok(output) => output,
        Err(why) => panic!("start {command:?}: {why}"),
    }
}

/// Runs a command that must succeed and returns its standard output.
pub fn bytes(command: &mut Command) -> Vec<u8> {
    let output = output(command);
    assert!(
        output.status.success(),
        "{command:?} ended with {}\n{}\n{}",
        output.status,
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    output.stdout
}

/// As [`bytes`], as text.
pub fn text(command: &mut Command) -> String {
    String::from_utf8_lossy(&bytes(command)).into_owned()
}

/// Runs git in `dir`; it must succeed. Returns its output without the last
/// line end.
pub fn git(dir: &Path, arguments: &[&str]) -> String {
    let text = text(command(dir, "git").args(arguments));
    text.strip_suffix('\n').map(str::to_owned).unwrap_or(text)
}

/// Runs a script with `sh -eu` in `dir`; it must succeed.
pub fn sh(dir: &Path, script: &str) -> String {
    text(command(dir, "sh").args(["-euc", script]))
}
