//! Reads what the test runner recorded: the subset of JUnit that it writes.
#![allow(
    clippy::disallowed_methods,
    reason = "xtask is no product: it reads the test runner's record"
)]

use std::path::Path;

use crate::process::Outcome;

/// One test that was run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TestResult {
    /// The package, without the name of the test binary.
    pub(super) package: String,
    /// The full name.
    pub(super) name: String,
    /// Whether it passed.
    pub(super) passed: bool,
}

impl TestResult {
    /// Says whether the last part of the name is `function`.
    pub(super) fn is_function(&self, function: &str) -> bool {
        self.name.rsplit("::").next() == Some(function)
    }
}

/// Reads the record.
pub(super) fn read(path: &Path) -> Outcome<Vec<TestResult>> {
    let text =
        std::fs::read_to_string(path).map_err(|why| format!("read {}: {why}", path.display()))?;
    Ok(parse(&text))
}

fn parse(text: &str) -> Vec<TestResult> {
    text.split("<testcase ")
        .skip(1)
        .filter_map(|case| {
            let head = &case[..case.find('>')?];
            let empty = head.ends_with('/');
            let body = match case.find("</testcase>") {
                Some(end) if !empty => &case[..end],
                _ => head,
            };
            let class = attribute(head, "classname")?;
            let package = class.split("::").next().unwrap_or(&class).to_owned();
            let failed = body.contains("<failure") || body.contains("<error");
            Some(TestResult {
                package,
                name: attribute(head, "name")?,
                passed: !failed,
            })
        })
        .collect()
}

fn attribute(head: &str, name: &str) -> Option<String> {
    let head = format!(" {head}");
    let start = head.find(&format!(" {name}=\""))? + name.len() + 3;
    let value = &head[start..];
    let value = &value[..value.find('"')?];
    Some(
        value
            .replace("&lt;", "<")
            .replace("&gt;", ">")
            .replace("&quot;", "\"")
            .replace("&amp;", "&"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passes_and_failures_are_told_apart() {
        let text = r#"<testsuites><testsuite name="a">
            <testcase name="x::one" classname="sandbar-fs" time="0.1"/>
            <testcase name="two" classname="sandbar-tests::run" time="0.1">
              <failure type="test failure">a &gt; b</failure>
            </testcase>
            <testcase name="three" classname="sandbar" time="0.1">
              <system-out>failure</system-out>
            </testcase>
        </testsuite></testsuites>"#;
        let results = parse(text);
        let found: Vec<_> = results
            .iter()
            .map(|r| (r.package.as_str(), r.name.as_str(), r.passed))
            .collect();
        assert_eq!(
            found,
            [
                ("sandbar-fs", "x::one", true),
                ("sandbar-tests", "two", false),
                ("sandbar", "three", true)
            ]
        );
        assert!(results[0].is_function("one") && !results[0].is_function("x"));
    }
}
