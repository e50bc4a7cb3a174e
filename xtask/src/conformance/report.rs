//! Joins rules, claims and results into the table.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use super::claims::Claim;
use super::results::TestResult;
use super::rules::Rule;

/// What the tests say of a rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Verdict {
    /// Shown.
    Pass,
    /// Shown in part; what is missing.
    Partial(String),
    /// No test claims it.
    Gap,
    /// A test that claims it failed or was not run.
    Fail(String),
}

impl Verdict {
    /// Returns the word of the table.
    pub(super) fn word(&self) -> &'static str {
        match self {
            Self::Pass => "pass",
            Self::Partial(_) => "partial",
            Self::Gap => "gap",
            Self::Fail(_) => "fail",
        }
    }

    fn why(&self) -> &str {
        match self {
            Self::Pass | Self::Gap => "",
            Self::Partial(why) | Self::Fail(why) => why,
        }
    }
}

/// One row of the table.
#[derive(Debug, Clone)]
pub(super) struct Row {
    /// The rule.
    pub(super) rule: Rule,
    /// What the tests say.
    pub(super) verdict: Verdict,
    /// `package function`, sorted.
    tests: BTreeSet<String>,
    /// Adapters, strategies or packages it was shown for.
    adapters: BTreeSet<String>,
}

impl Row {
    /// Returns the row for a terminal.
    pub(super) fn line(&self) -> String {
        let adapters: Vec<&str> = self.adapters.iter().map(String::as_str).collect();
        let mut line = format!(
            "{:<8} {:<8} {:>3} tests  {:<28} {}",
            self.rule.id,
            self.verdict.word(),
            self.tests.len(),
            adapters.join(" "),
            self.rule.text
        );
        if !self.verdict.why().is_empty() {
            let _ = write!(line, " [{}]", self.verdict.why());
        }
        line
    }
}

/// Makes one row a rule, in the order of the rules.
pub(super) fn rows(rules: &[Rule], claims: &[Claim], results: &[TestResult]) -> Vec<Row> {
    rules
        .iter()
        .map(|rule| row(rule, claims, results))
        .collect()
}

fn row(rule: &Rule, claims: &[Claim], results: &[TestResult]) -> Row {
    let (mut tests, mut adapters) = (BTreeSet::new(), BTreeSet::new());
    let (mut missing, mut failed, mut whole) = (BTreeSet::new(), BTreeSet::new(), false);
    for claim in claims.iter().filter(|claim| claim.rule == rule.id) {
        let runs: Vec<&TestResult> = results
            .iter()
            .filter(|result| {
                result.is_function(&claim.test)
                    && claim
                        .package
                        .as_ref()
                        .is_none_or(|package| *package == result.package)
            })
            .collect();
        if runs.is_empty() {
            failed.insert(format!("{} was not run", claim.test));
        }
        for run in runs {
            tests.insert(format!("{} {}", run.package, claim.test));
            let place = run.package.trim_start_matches("sandbar-").to_owned();
            adapters.insert(claim.adapter.clone().unwrap_or(place));
            if !run.passed {
                failed.insert(format!("{} failed", claim.test));
            }
        }
        match &claim.partial {
            Some(why) => drop(missing.insert(why.clone())),
            None => whole = true,
        }
    }
    let join = |set: BTreeSet<String>| set.into_iter().collect::<Vec<_>>().join("; ");
    let verdict = if !failed.is_empty() {
        Verdict::Fail(join(failed))
    } else if whole {
        Verdict::Pass
    } else if !missing.is_empty() {
        Verdict::Partial(join(missing))
    } else {
        Verdict::Gap
    };
    Row {
        rule: rule.clone(),
        verdict,
        tests,
        adapters,
    }
}

/// Writes the table as Markdown. It holds no times and no counts of runs.
pub(super) fn table(rows: &[Row]) -> String {
    let count = |word: &str| rows.iter().filter(|row| row.verdict.word() == word).count();
    let mut text = format!(
        "# Conformance\n\nWritten by `cargo xtask conformance`. One row a rule: `pass` is shown by \
         every test that claims it,\n`partial` says what is missing, `gap` has no test yet.\n\n\
         {} rules: {} pass, {} partial, {} gap, {} fail.\n",
        rows.len(),
        count("pass"),
        count("partial"),
        count("gap"),
        count("fail")
    );
    let mut group = "";
    for row in rows {
        if row.rule.group != group {
            group = &row.rule.group;
            let _ = write!(
                text,
                "\n## {group}\n\n| rule | asks for | result | shown for | tests |\n|---|---|---|---|---|\n"
            );
        }
        let tests: Vec<String> = row.tests.iter().map(|test| format!("`{test}`")).collect();
        let adapters: Vec<&str> = row.adapters.iter().map(String::as_str).collect();
        let result = match row.verdict.why() {
            "" => row.verdict.word().to_owned(),
            why => format!("{}: {why}", row.verdict.word()),
        };
        let _ = writeln!(
            text,
            "| {} | {} | {result} | {} | {} |",
            row.rule.id,
            row.rule.text,
            adapters.join(", "),
            tests.join(", ")
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(id: &str) -> Rule {
        Rule {
            id: id.to_owned(),
            text: "x".to_owned(),
            group: "G".to_owned(),
        }
    }

    fn claim(rule: &str, test: &str, partial: Option<&str>) -> Claim {
        Claim {
            rule: rule.to_owned(),
            adapter: None,
            partial: partial.map(str::to_owned),
            test: test.to_owned(),
            package: Some("sandbar-fs".to_owned()),
            path: "a.rs".to_owned(),
            line: 1,
        }
    }

    fn result(package: &str, name: &str, passed: bool) -> TestResult {
        TestResult {
            package: package.to_owned(),
            name: name.to_owned(),
            passed,
        }
    }

    #[test]
    fn a_rule_is_what_its_tests_say() {
        let claims = [
            claim("A-1", "good", None),
            claim("A-2", "bad", None),
            claim("A-3", "absent", None),
            claim("A-4", "good", Some("no mmap")),
        ];
        let results = [
            result("sandbar-fs", "m::good", true),
            result("sandbar-fs", "m::bad", false),
            result("sandbar-git", "m::absent", true),
        ];
        let rules: Vec<Rule> = (1..=5).map(|n| rule(&format!("A-{n}"))).collect();
        let words: Vec<_> = rows(&rules, &claims, &results)
            .iter()
            .map(|row| row.verdict.word())
            .collect();
        assert_eq!(words, ["pass", "fail", "fail", "partial", "gap"]);
    }
}
