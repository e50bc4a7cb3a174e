//! Finds the rules that tests claim: a line `// conformance: STR-1 (adapter),
//! APL-3` right above a test function, or `// conformance: PLN-4 partial: why`.

use super::rules;
use crate::tidy::Finding;
use crate::tree::Source;

// In pieces, so that this file claims nothing.
const MARK: &str = concat!("conformance", ": ");

/// One rule claimed by one test.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Claim {
    /// The number of the rule.
    pub(super) rule: String,
    /// Which adapter or strategy it is shown for, where the claim says so.
    pub(super) adapter: Option<String>,
    /// What is still missing, where the claim is partial.
    pub(super) partial: Option<String>,
    /// The test function.
    pub(super) test: String,
    /// The package it is in; none for a suite that several packages run.
    pub(super) package: Option<String>,
    /// Where the claim stands.
    pub(super) path: String,
    /// Its line.
    pub(super) line: usize,
}

impl Claim {
    /// Says whether `word` names its rule or the rule's area.
    pub(super) fn is_meant_by(&self, word: &str) -> bool {
        rules::is_meant_by(&self.rule, word)
    }

    /// Returns the test runner's expression that selects the test.
    pub(super) fn filter(&self) -> String {
        let test = format!("test(/(^|::){}$/)", self.test);
        match &self.package {
            Some(package) => format!("(package(={package}) & {test})"),
            None => test,
        }
    }
}

/// Reads the claims of all Rust files, and what is wrong with them.
pub(super) fn scan(sources: &[Source]) -> (Vec<Claim>, Vec<Finding>) {
    let (mut claims, mut findings) = (Vec::new(), Vec::new());
    for source in sources.iter().filter(|source| source.path.ends_with(".rs")) {
        scan_file(source, &mut claims, &mut findings);
    }
    (claims, findings)
}

fn scan_file(source: &Source, claims: &mut Vec<Claim>, findings: &mut Vec<Finding>) {
    let mut waiting: Vec<(usize, &str)> = Vec::new();
    for (index, line) in source.text.lines().enumerate() {
        let text = line.trim();
        let comment = text
            .strip_prefix("//")
            .map(|rest| rest.trim_start_matches('/').trim_start());
        if let Some(list) = comment.and_then(|comment| comment.strip_prefix(MARK)) {
            waiting.push((index + 1, list));
            continue;
        }
        let between =
            comment.is_some() || text.is_empty() || text.starts_with("#[") || text == ")]";
        if waiting.is_empty() || between {
            continue;
        }
        let test = function(text);
        for (line, list) in waiting.drain(..) {
            let Some(test) = test else {
                let advice = "put the claim right above a test function";
                findings.push(Finding::new(&source.path, line, "claim", advice));
                continue;
            };
            match parse(list) {
                Ok(parsed) => {
                    claims.extend(parsed.into_iter().map(|(rule, adapter, partial)| Claim {
                        rule,
                        adapter,
                        partial,
                        test: test.to_owned(),
                        package: package(&source.path),
                        path: source.path.clone(),
                        line,
                    }))
                }
                Err(advice) => findings.push(Finding::new(&source.path, line, "claim", advice)),
            }
        }
    }
}

/// Returns the name of the function that a line begins.
fn function(line: &str) -> Option<&str> {
    let mut words = line.split_whitespace();
    words.by_ref().find(|word| *word == "fn")?;
    let name = words.next()?;
    name.split(['(', '<'])
        .next()
        .filter(|name| !name.is_empty())
}

type Parsed = (String, Option<String>, Option<String>);

fn parse(list: &str) -> Result<Vec<Parsed>, String> {
    let (list, why) = match list.split_once(" partial: ") {
        Some((list, why)) => (list, Some(why.trim().to_owned())),
        None => (list, None),
    };
    split(list)
        .map(|one| parse_one(one).map(|(rule, adapter)| (rule, adapter, why.clone())))
        .collect()
}

/// Splits at commas outside brackets.
fn split(list: &str) -> impl Iterator<Item = &str> {
    let mut depth = 0usize;
    list.split(move |c: char| {
        match c {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        c == ',' && depth == 0
    })
}

fn parse_one(text: &str) -> Result<(String, Option<String>), String> {
    let text = text.trim();
    let (rule, adapter) = match text.split_once(" (") {
        Some((rule, rest)) => {
            let adapter = rest
                .strip_suffix(')')
                .ok_or("close the bracket of the adapter")?;
            (rule, Some(adapter.to_owned()))
        }
        None => (text, None),
    };
    if rule.is_empty() || rule.contains(' ') {
        return Err(format!(
            "{text:?} is no rule; write `STR-1 (adapter), APL-3`"
        ));
    }
    Ok((rule.to_owned(), adapter))
}

/// Returns the package that builds a file. The suites of the testkit are
/// expanded in other packages.
fn package(path: &str) -> Option<String> {
    let mut parts = path.split('/');
    match (parts.next(), parts.next()) {
        (Some("crates"), Some("testkit")) => None,
        (Some("crates"), Some("app")) => Some("sandbar".to_owned()),
        (Some("crates"), Some(name)) => Some(format!("sandbar-{name}")),
        (Some("tests"), _) => Some("sandbar-tests".to_owned()),
        (Some(top), _) => Some(top.to_owned()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(path: &str, text: &str) -> (Vec<Claim>, Vec<Finding>) {
        scan(&[Source {
            path: path.to_owned(),
            text: text.replace("CLAIM", MARK),
        }])
    }

    #[test]
    fn claims_belong_to_the_next_function() {
        let text = "    // CLAIMSTR-1 (git_worktree, linked), APL-3\n    /// CLAIMPLN-4 partial: no mmap\n    \
                    #[tokio::test]\n    async fn lands_clean() {\n";
        let (claims, findings) = of("crates/app/src/apply.rs", text);
        assert_eq!(findings, []);
        let found: Vec<_> = claims
            .iter()
            .map(|c| (c.rule.as_str(), c.adapter.as_deref(), c.partial.as_deref()))
            .collect();
        assert_eq!(
            found,
            [
                ("STR-1", Some("git_worktree, linked"), None),
                ("APL-3", None, None),
                ("PLN-4", None, Some("no mmap"))
            ]
        );
        assert_eq!(
            claims[0].filter(),
            "(package(=sandbar) & test(/(^|::)lands_clean$/))"
        );
    }

    #[test]
    fn misplaced_and_malformed_claims_are_found() {
        let (claims, findings) = of("tests/tests/a.rs", "// CLAIMSTR-1\nstruct X;\n");
        assert_eq!((claims.len(), findings.len()), (0, 1));
        let (claims, findings) = of("tests/tests/a.rs", "// CLAIMSTR-1 and 2\nfn x() {}\n");
        assert_eq!((claims.len(), findings.len()), (0, 1));
    }

    #[test]
    fn suites_are_looked_for_everywhere() {
        let (claims, _) = of(
            "crates/testkit/src/store.rs",
            "// CLAIMPLN-1\nfn moves() {}\n",
        );
        assert_eq!(claims[0].filter(), "test(/(^|::)moves$/)");
    }
}
