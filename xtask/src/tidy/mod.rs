//! Layering and house rules: the authority that fails the build.
//!
//! Each check takes what it judges as plain data and returns findings, so
//! that a test can show it a bad tree. It changes nothing.

mod layers;
mod licences;
mod sources;
mod words;

use crate::process::Outcome;
use crate::tree;

/// One thing to mend.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Finding {
    /// The file, and the line where there is one (0: the whole file).
    pub(crate) at: (String, usize),
    /// The rule, in a word.
    pub(crate) rule: &'static str,
    /// What to do.
    pub(crate) advice: String,
    /// Whether it only warns.
    pub(crate) warning: bool,
}

impl Finding {
    pub(crate) fn new(
        path: &str,
        line: usize,
        rule: &'static str,
        advice: impl Into<String>,
    ) -> Self {
        Self {
            at: (path.to_owned(), line),
            rule,
            advice: advice.into(),
            warning: false,
        }
    }

    fn warning(mut self) -> Self {
        self.warning = true;
        self
    }
}

impl std::fmt::Display for Finding {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (path, line) = &self.at;
        let word = if self.warning { "warning " } else { "" };
        match line {
            0 => write!(f, "{path}: {word}{}: {}", self.rule, self.advice),
            line => write!(f, "{path}:{line}: {word}{}: {}", self.rule, self.advice),
        }
    }
}

/// Everything tidy has to say about the tree as it stands.
pub(crate) fn findings() -> Outcome<Vec<Finding>> {
    let sources = tree::sources()?;
    let mut findings = layers::check(&tree::metadata(&["--no-deps"])?);
    findings.extend(licences::check(&tree::metadata(&[
        "--filter-platform",
        "x86_64-unknown-linux-gnu",
    ])?));
    findings.extend(licences::check_lock(&tree::read("Cargo.lock")?));
    findings.extend(sources::check(&sources));
    findings.extend(words::check(&sources));
    findings.extend(crate::conformance::check(&sources)?);
    findings.sort();
    Ok(findings)
}

/// Runs `cargo xtask tidy`.
pub(crate) fn run(arguments: &[String]) -> Outcome {
    if let Some(argument) = arguments.first() {
        return Err(format!("tidy takes no argument, not {argument}"));
    }
    let findings = findings()?;
    for finding in &findings {
        println!("{finding}");
    }
    println!("{}", sources::sizes(&tree::sources()?));
    match findings.iter().filter(|finding| !finding.warning).count() {
        0 => Ok(()),
        count => Err(format!("{count} to mend")),
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_workspace_is_tidy() {
        let findings: Vec<String> = super::findings()
            .expect("the tree can be read")
            .into_iter()
            .filter(|finding| !finding.warning)
            .map(|finding| finding.to_string())
            .collect();
        assert!(findings.is_empty(), "{}", findings.join("\n"));
    }
}
