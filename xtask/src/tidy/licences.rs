//! Where the dependencies come from, what their licences allow, and whether
//! a big one is built twice. No registry is asked: cargo knows it all.

use serde_json::Value;

use super::Finding;

/// Licences that ask for no more than to be named.
const ALLOWED: &[&str] = &[
    "0BSD",
    "Apache-2.0",
    "Apache-2.0 WITH LLVM-exception",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "BSL-1.0",
    "CC0-1.0",
    "ISC",
    "MIT",
    "MIT-0",
    "Unicode-3.0",
    "Unicode-DFS-2016",
    "Unlicense",
    "Zlib",
];

/// Single crates under another licence, and why that is fine.
const EXCEPTIONS: &[(&str, &str)] = &[
    // File-level copyleft; used unchanged, from its published source, by gix.
    ("uluru", "MPL-2.0"),
];

/// Crates that cost minutes or megabytes when they are built in two versions.
const BIG: &[&str] = &[
    "gix",
    "sea-orm",
    "sea-query",
    "sqlx",
    "tokio",
    "rustix",
    "clap",
];

/// Crates whose second version is only worth knowing of.
const NOTED: &[&str] = &["syn", "rand", "rand_core", "hashbrown", "getrandom"];

/// Judges every package of `cargo metadata`.
pub(super) fn check(metadata: &Value) -> Vec<Finding> {
    let mut findings = Vec::new();
    for package in metadata["packages"].as_array().into_iter().flatten() {
        let name = package["name"].as_str().unwrap_or_default();
        let version = package["version"].as_str().unwrap_or_default();
        let Some(source) = package["source"].as_str() else {
            continue; // of this workspace
        };
        if !(source.starts_with("registry+") && source.ends_with("/crates.io-index")) {
            let advice = format!("{name} {version} comes from {source}: use a published version");
            findings.push(Finding::new("Cargo.lock", 0, "source", advice));
        }
        let licence = package["license"].as_str().unwrap_or_default();
        if !is_allowed(licence) && !EXCEPTIONS.contains(&(name, licence)) {
            let advice = format!(
                "{name} {version} is under {licence:?}, which the list in \
                 xtask/src/tidy/licences.rs does not allow"
            );
            findings.push(Finding::new("Cargo.lock", 0, "licence", advice));
        }
    }
    findings
}

/// Judges a licence expression: one allowed side of each `OR`, every side of
/// each `AND`. The old form with `/` means `OR`.
fn is_allowed(expression: &str) -> bool {
    let expression = expression.replace('/', " OR ");
    match split_outside_brackets(&expression, " AND ") {
        parts if parts.len() > 1 => parts.iter().all(|part| is_allowed(part)),
        _ => match split_outside_brackets(&expression, " OR ") {
            parts if parts.len() > 1 => parts.iter().any(|part| is_allowed(part)),
            _ => {
                let text = expression.trim();
                match text
                    .strip_prefix('(')
                    .and_then(|text| text.strip_suffix(')'))
                {
                    Some(inner) => is_allowed(inner),
                    None => ALLOWED.contains(&text),
                }
            }
        },
    }
}

fn split_outside_brackets<'a>(text: &'a str, word: &str) -> Vec<&'a str> {
    let mut parts = Vec::new();
    let (mut depth, mut start) = (0usize, 0usize);
    for (index, byte) in text.bytes().enumerate() {
        match byte {
            b'(' => depth += 1,
            b')' => depth = depth.saturating_sub(1),
            _ if depth == 0 && index >= start && text[index..].starts_with(word) => {
                parts.push(&text[start..index]);
                start = index + word.len();
            }
            _ => {}
        }
    }
    parts.push(&text[start..]);
    parts
}

/// Finds crates that the lock file has in two versions.
pub(super) fn check_lock(lock: &str) -> Vec<Finding> {
    let names: Vec<&str> = lock
        .lines()
        .filter_map(|line| line.strip_prefix("name = \"")?.strip_suffix('"'))
        .collect();
    let mut findings = Vec::new();
    for pair in names.windows(2).filter(|pair| pair[0] == pair[1]) {
        let name = pair[0];
        let advice = format!("{name} is there in two versions: align what asks for them");
        let finding = Finding::new("Cargo.lock", 0, "two versions", advice);
        if name.starts_with("gix-") || BIG.iter().any(|big| is_family(name, big)) {
            findings.push(finding);
        } else if NOTED.contains(&name) {
            findings.push(finding.warning());
        }
    }
    findings.dedup();
    findings
}

fn is_family(name: &str, big: &str) -> bool {
    name.strip_prefix(big)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expressions_are_read_as_they_are_meant() {
        for good in [
            "MIT",
            "MIT OR GPL-3.0",
            "MIT/Apache-2.0",
            "(MIT OR Apache-2.0) AND Unicode-3.0",
            "Apache-2.0 WITH LLVM-exception OR GPL-2.0",
        ] {
            assert!(is_allowed(good), "{good}");
        }
        for bad in ["", "GPL-3.0", "MIT AND GPL-3.0", "(MIT OR ISC) AND MPL-2.0"] {
            assert!(!is_allowed(bad), "{bad}");
        }
    }

    #[test]
    fn foreign_sources_and_twins_are_found() {
        let metadata = serde_json::json!({"packages": [
            {"name": "a", "version": "1", "source": "git+file:///a", "license": "MIT"},
            {"name": "b", "version": "1", "source": null, "license": null},
        ]});
        let rules: Vec<_> = check(&metadata).iter().map(|f| f.rule).collect();
        assert_eq!(rules, ["source"]);
        let lock = "name = \"gix-hash\"\nname = \"gix-hash\"\nname = \"syn\"\nname = \"syn\"\n\
                    name = \"tokio-util\"\nname = \"tokio-util\"\nname = \"ab\"\nname = \"ab\"\n";
        let found: Vec<_> = check_lock(lock).iter().map(|f| f.warning).collect();
        assert_eq!(found, [false, true, false]);
    }
}
