//! The stages of `cargo xtask test`, in order.

use super::ground::Ground;
use super::{Record, setup};
use crate::process::{Outcome, Step, is_on_path};
use crate::{conformance, tidy, tree};

/// What the test runner said at its end.
pub(super) struct Summary {
    /// Its own closing line.
    pub(super) line: String,
    /// How many tests passed.
    pub(super) passed: u64,
}

/// Runs every stage; the error names the one that failed.
pub(super) fn all(record: &mut Record) -> Outcome<Summary> {
    record.stage("set-up", setup::install)?;
    record.stage("format", || cargo("fmt --all --check").run())?;
    record.stage("tidy", || tidy::run(&[]))?;
    record.stage("clippy", || {
        cargo("clippy --workspace --all-targets --quiet -- -D warnings").run()
    })?;
    record.stage("build without adapters", || {
        cargo("build --quiet --package sandbar --no-default-features").run()
    })?;
    record.stage("documentation", || {
        // The library and the program share a name, so they take turns.
        for line in [
            "doc --quiet --workspace --no-deps --lib",
            "doc --quiet --package sandbar-cli --no-deps --bins",
        ] {
            cargo(line).env("RUSTDOCFLAGS", "-D warnings").run()?;
        }
        Ok(())
    })?;
    record.stage("dependencies", dependencies)?;
    record.stage("build", || cargo("build --workspace --bins --tests").run())?;
    let ground = record.stage("services", Ground::start)?;
    let environment = ground.environment();
    let summary = record.stage("tests", || tests(&environment))?;
    record.stage("doc tests", || {
        cargo("test --quiet --workspace --doc")
            .envs(&environment)
            .run()
    })?;
    record.stage("conformance", conformance::after_tests)?;
    Ok(summary)
}

fn cargo(line: &str) -> Step {
    let step = Step::new(tree::cargo())
        .args(line.split_whitespace())
        .dir(&tree::root());
    // A build server starts from nothing: incremental data would only cost disk.
    if std::env::var_os("CI").is_some() {
        step.env("CARGO_INCREMENTAL", "0")
    } else {
        step
    }
}

fn dependencies() -> Outcome {
    if is_on_path("cargo-deny") {
        cargo("deny --offline check bans licenses sources").run()
    } else {
        eprintln!(
            "cargo-deny is not installed and not run: compiling it takes longer than all tests. \
             The stage tidy has checked layers, licences, sources and twins from cargo's metadata."
        );
        Ok(())
    }
}

fn tests(environment: &[(String, String)]) -> Outcome<Summary> {
    conformance::clear_counts()?;
    let (output, success) = cargo("nextest run --workspace --no-fail-fast")
        .envs(environment)
        .watch()?;
    let summary =
        read_summary(&output).ok_or("the test runner printed no closing line: no test was run")?;
    if !success {
        return Err(format!("tests failed: {}", summary.line));
    }
    let skipped = number_before(&summary.line, " skipped").unwrap_or(0);
    if skipped > 0 {
        return Err(format!("{skipped} tests were skipped: {}", summary.line));
    }
    if summary.passed == 0 {
        return Err("no test was run".to_owned());
    }
    Ok(summary)
}

fn read_summary(output: &str) -> Option<Summary> {
    let line = output
        .lines()
        .rev()
        .find(|line| line.trim_start().starts_with("Summary ["))?;
    Some(Summary {
        line: line.to_owned(),
        passed: number_before(line, " passed").unwrap_or(0),
    })
}

/// Returns the number that stands right before `word`.
fn number_before(line: &str, word: &str) -> Option<u64> {
    let head = &line[..line.find(word)?];
    let start = head
        .rfind(|c: char| !c.is_ascii_digit())
        .map_or(0, |at| at + 1);
    head[start..].parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_closing_line_is_read() {
        let output = "    PASS [ 0.1s] a b\n────\n     Summary [   2.345s] 12 tests run: \
                      11 passed (1 slow), 1 failed, 3 skipped\n";
        let summary = read_summary(output).expect("there is one");
        assert_eq!(summary.passed, 11);
        assert_eq!(number_before(&summary.line, " skipped"), Some(3));
        assert!(read_summary("error: no tests to run\n").is_none());
    }
}
