//! Words that must not be committed: the place where the project is worked
//! on is nobody's business, and names a reader cannot follow.

use super::Finding;
use crate::tree::Source;

/// The words, in pieces so that this file does not find itself.
const DENIED: &[&str] = &[
    concat!("..", "/shared"),
    concat!("/wo", "rk/"),
    concat!("SPEC", ".md"),
    concat!("TRAPS", ".md"),
    concat!("FACTS", ".md"),
    concat!("RELIABILITY", ".md"),
    concat!("index", ".crates.io"),
    concat!("static", ".crates.io"),
    concat!("registry", ".npmjs.org"),
    concat!("files", ".pythonhosted.org"),
    concat!("deb", ".debian.org"),
    concat!("BEGIN OPENSSH ", "PRIVATE KEY"),
    concat!("BEGIN RSA ", "PRIVATE KEY"),
];

/// Names of modules that say nothing.
const EMPTY_NAMES: &[&str] = &[
    "util", "utils", "helper", "helpers", "common", "misc", "manager", "managers",
];

/// Judges the text and the name of each file.
pub(super) fn check(sources: &[Source]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for source in sources {
        for (index, line) in source.text.lines().enumerate() {
            for word in DENIED.iter().filter(|word| line.contains(**word)) {
                let advice = format!("take {word:?} out: the project speaks of itself alone");
                findings.push(Finding::new(&source.path, index + 1, "word", advice));
            }
        }
        let mut parts = source.path.split('/');
        if parts.any(|part| EMPTY_NAMES.contains(&part.trim_end_matches(".rs"))) {
            let advice = "name it after the one thing it does";
            findings.push(Finding::new(&source.path, 0, "empty name", advice));
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_word_and_name_is_found() {
        for word in DENIED {
            let source = Source {
                path: "docs/a.md".to_owned(),
                text: format!("first\nsee {word} there\n"),
            };
            let findings = check(&[source]);
            assert_eq!(findings.len(), 1, "{word}");
            assert_eq!(findings[0].at, ("docs/a.md".to_owned(), 2));
        }
        for path in ["crates/fs/src/utils.rs", "crates/fs/src/common/mod.rs"] {
            let source = Source {
                path: path.to_owned(),
                text: String::new(),
            };
            assert_eq!(check(&[source]).len(), 1, "{path}");
        }
    }
}
