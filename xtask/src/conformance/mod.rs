//! One row a rule of the contract: which tests show it, and whether they do.
//!
//! Tests claim rules where they stand; there is no register to forget. The
//! table is stable, so that it changes only when something is shown or lost.

mod claims;
mod harnesses;
mod report;
mod results;
mod rules;

use std::path::PathBuf;

pub(crate) use harnesses::clear as clear_counts;

use crate::process::{Outcome, Step};
use crate::test::Ground;
use crate::tidy::Finding;
use crate::tree::{self, Source};

const TABLE: &str = "docs/conformance.md";

/// Finds claims that are malformed or of rules that do not exist.
pub(crate) fn check(sources: &[Source]) -> Outcome<Vec<Finding>> {
    let rules = rules::read()?;
    let (claims, mut findings) = claims::scan(sources);
    for claim in &claims {
        if !rules.iter().any(|rule| rule.id == claim.rule) {
            let advice = format!("no rule is called {}; see {}", claim.rule, rules::FILE);
            findings.push(Finding::new(&claim.path, claim.line, "claim", advice));
        }
    }
    Ok(findings)
}

/// Judges the results that the run just before left, and writes the table.
pub(crate) fn after_tests() -> Outcome {
    let results = results::read(&record("default"))?;
    let rows = judge(&results)?;
    finish(&rows, &[])
}

/// Runs `cargo xtask conformance`.
pub(crate) fn run(arguments: &[String]) -> Outcome {
    let mut wanted: Vec<String> = Vec::new();
    let mut long = false;
    let mut words = arguments.iter();
    while let Some(word) = words.next() {
        match word.as_str() {
            "--long" => long = true,
            "--rules" => {
                let list = words
                    .next()
                    .ok_or("--rules needs a list such as STR,APL-9")?;
                wanted.extend(list.split(',').map(str::to_owned));
            }
            other => return Err(format!("unknown argument {other}")),
        }
    }
    let rules = rules::read()?;
    for word in &wanted {
        if !rules.iter().any(|rule| rule.is_meant_by(word)) {
            return Err(format!("no rule is meant by {word}"));
        }
    }
    let (claims, _) = claims::scan(&tree::sources()?);
    let filter: Vec<String> = claims
        .iter()
        .filter(|claim| wanted.is_empty() || wanted.iter().any(|word| claim.is_meant_by(word)))
        .map(claims::Claim::filter)
        .collect();
    let results = if filter.is_empty() {
        Vec::new()
    } else {
        let ground = Ground::prepare()?;
        let cargo = || Step::new(tree::cargo()).dir(&tree::root());
        cargo()
            .args(["build", "--workspace", "--bins", "--tests"])
            .run()?;
        // Long runs have no deadline of their own.
        let profile = if long { "long" } else { "conformance" };
        let mut step = cargo()
            .args(["nextest", "run", "--workspace", "--no-fail-fast"])
            .args(["--profile", profile, "-E"])
            .arg(filter.join(" | "))
            .envs(&ground.environment());
        if long {
            step = step.env("SANDBAR_TEST_LONG", "1");
        }
        harnesses::clear()?;
        // A failing test becomes a row that says so.
        let (_, _) = step.watch()?;
        results::read(&record(profile))?
    };
    let rows = judge(&results)?;
    finish(&rows, &wanted)
}

/// Where the test runner leaves its record: always below the workspace's own
/// `target`, wherever cargo builds.
fn record(profile: &str) -> PathBuf {
    tree::root()
        .join("target/nextest")
        .join(profile)
        .join("junit.xml")
}

fn judge(results: &[results::TestResult]) -> Outcome<Vec<report::Row>> {
    let (claims, _) = claims::scan(&tree::sources()?);
    Ok(report::rows(&rules::read()?, &claims, results))
}

/// Prints the rows asked for; writes the table when all were.
fn finish(rows: &[report::Row], wanted: &[String]) -> Outcome {
    let shown: Vec<&report::Row> = rows
        .iter()
        .filter(|row| wanted.is_empty() || wanted.iter().any(|word| row.rule.is_meant_by(word)))
        .collect();
    for row in &shown {
        println!("{}", row.line());
    }
    let count = |word: &str| {
        shown
            .iter()
            .filter(|row| row.verdict.word() == word)
            .count()
    };
    println!(
        "{} rules: {} pass, {} partial, {} gap, {} fail",
        shown.len(),
        count("pass"),
        count("partial"),
        count("gap"),
        count("fail")
    );
    let counts = harnesses::read()?;
    for line in harnesses::lines(&counts) {
        println!("{line}");
    }
    let table = report::table(rows) + &harnesses::table(&counts);
    if wanted.is_empty() && tree::write(TABLE, &table)? {
        eprintln!("{TABLE} was out of date and has been written: commit it");
    }
    let failed = if wanted.is_empty() {
        count("fail")
    } else {
        shown.len() - count("pass")
    };
    match failed {
        0 => Ok(()),
        count => Err(format!("{count} rules do not hold")),
    }
}
