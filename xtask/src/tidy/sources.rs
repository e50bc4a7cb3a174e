//! House rules of the Rust files themselves.

use super::Finding;
use crate::tree::Source;

/// The most lines of a file, its tests aside.
const MOST_LINES: usize = 1_000;

/// Judges every Rust file.
pub(super) fn check(sources: &[Source]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for source in sources.iter().filter(|source| source.path.ends_with(".rs")) {
        check_file(source, &mut findings);
    }
    findings
}

/// What a file is, as far as the rules differ.
#[derive(Clone, Copy)]
struct Place<'a> {
    /// The directory below `crates`, for a product crate.
    product: Option<&'a str>,
    /// Tests only: not built into anything.
    tests: bool,
}

fn place(path: &str) -> Place<'_> {
    let mut parts = path.split('/');
    let product = match (parts.next(), parts.next(), parts.next()) {
        (Some("crates"), Some(name), Some("src" | "build.rs")) if name != "testkit" => Some(name),
        _ => None,
    };
    let tests = product.is_none()
        || path.ends_with("/tests.rs")
        || path.split('/').any(|part| part == "tests");
    Place { product, tests }
}

fn check_file(source: &Source, findings: &mut Vec<Finding>) {
    let path = source.path.as_str();
    let place = place(path);
    let mut add = |line: usize, rule: &'static str, advice: String| {
        findings.push(Finding::new(path, line, rule, advice));
    };
    let first = source
        .text
        .lines()
        .find(|line| !line.trim().is_empty() && !line.starts_with("#!"));
    if !first.is_some_and(|line| line.starts_with("//!")) {
        let advice = "begin with `//!`: what it is for and what it must never do";
        add(1, "module comment", advice.to_owned());
    }
    let lines: Vec<(usize, &str)> = without_tests(&source.text);
    if lines.len() > MOST_LINES {
        let advice = format!("split it: {} lines without tests", lines.len());
        add(0, "size", advice);
    }
    let Some(product) = place.product.filter(|_| !place.tests) else {
        for (number, line) in &lines {
            if code(line).contains(concat!("#[", "ignore")) {
                add(*number, "ignored test", "run it or remove it".to_owned());
            }
        }
        return;
    };
    for (number, line) in lines {
        let code = code(line);
        for (word, advice) in BANNED {
            if code.contains(word) && !EXEMPT.contains(&(path, word)) {
                add(number, "banned", format!("`{word}`: {advice}"));
            }
        }
        let home = matches!(product, "fs" | "exec")
            && path
                .split('/')
                .any(|part| part == "sys" || part == "sys.rs");
        if has_word(code, "unsafe") && !home {
            let advice = "only the `sys` modules of fs and exec may have it";
            add(number, "unsafe", advice.to_owned());
        }
        if product == "app" && !path.starts_with("crates/app/src/compose") && names_adapter(code) {
            let advice = "name adapters in crates/app/src/compose only; take the port here";
            add(number, "composition", advice.to_owned());
        }
    }
}

/// What product code never says. In pieces so that this file is clean.
const BANNED: &[(&str, &str)] = &[
    (
        concat!(".unw", "rap()"),
        "return an error, or `expect` with why it holds",
    ),
    (concat!("to", "do!("), "finish it or leave it out"),
    (concat!("unimple", "mented!("), "finish it or leave it out"),
    (concat!("#[", "ignore"), "run the test or remove it"),
    (
        concat!("thread::", "sleep"),
        "wait for the event itself, or take the clock port",
    ),
];

/// Files that may say one of these, and why.
const EXEMPT: &[(&str, &str)] = &[
    // No event tells that somebody else's child has stopped; bounded by a deadline.
    ("crates/exec/src/freeze.rs", BANNED[4].0),
    // A file lock cannot be awaited with a time limit; bounded by a deadline.
    ("crates/fs/src/objects/collect.rs", BANNED[4].0),
];

/// Returns a line without its comment, roughly: a `//` in a string ends it
/// too, which can only hide, never invent.
fn code(line: &str) -> &str {
    line.find("//").map_or(line, |at| &line[..at])
}

fn has_word(code: &str, word: &str) -> bool {
    code.split(|c: char| !(c.is_alphanumeric() || c == '_'))
        .any(|part| part == word)
}

fn names_adapter(code: &str) -> bool {
    [
        "sandbar_fs",
        "sandbar_git",
        "sandbar_exec",
        "sandbar_store",
        "sandbar_docker",
        "sandbar_lsp",
        "sandbar_sql",
    ]
    .iter()
    .any(|name| has_word(code, name))
}

/// Numbers the lines and leaves out the items marked `#[cfg(test)]`, which
/// rustfmt ends with a `}` as far left as they begin.
pub(super) fn without_tests(text: &str) -> Vec<(usize, &str)> {
    let mut kept = Vec::new();
    let mut lines = text.lines().enumerate().peekable();
    while let Some((index, line)) = lines.next() {
        let indent = line.len() - line.trim_start().len();
        if line.trim() != "#[cfg(test)]" {
            kept.push((index + 1, line));
            continue;
        }
        let close = format!("{}}}", " ".repeat(indent));
        for (_, inner) in lines.by_ref() {
            let attribute = inner.trim_start().starts_with("#[");
            let single = inner.ends_with(';') && inner.len() - inner.trim_start().len() == indent;
            if !attribute && (single || inner == close || inner.ends_with("{}")) {
                break;
            }
        }
    }
    kept
}

/// Says how long the files are.
pub(super) fn sizes(sources: &[Source]) -> String {
    let mut lengths: Vec<(usize, &str)> = sources
        .iter()
        .filter(|source| source.path.ends_with(".rs"))
        .map(|source| (without_tests(&source.text).len(), source.path.as_str()))
        .collect();
    lengths.sort_unstable();
    let median = lengths
        .get(lengths.len() / 2)
        .map_or(0, |(length, _)| *length);
    let longest = lengths.last().map_or(String::new(), |(length, path)| {
        format!("; the longest, {path}, has {length}")
    });
    format!(
        "{} Rust files, median {median} lines without tests{longest}",
        lengths.len()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules(path: &str, text: &str) -> Vec<&'static str> {
        let source = Source {
            path: path.to_owned(),
            text: text.to_owned(),
        };
        check(&[source])
            .iter()
            .map(|finding| finding.rule)
            .collect()
    }

    #[test]
    fn bad_product_code_is_found() {
        let banned: String = BANNED
            .iter()
            .map(|(word, _)| format!("    {word}\n"))
            .collect();
        let text = format!("//! x\nfn f() {{\n{banned}}}\n");
        assert_eq!(rules("crates/fs/src/a.rs", &text).len(), BANNED.len());
        assert_eq!(
            rules("crates/fs/src/a.rs", "fn f() {}\n"),
            ["module comment"]
        );
        let danger = "//! x\nfn f() { unsafe { g() } }\n";
        assert_eq!(rules("crates/app/src/sys.rs", danger), ["unsafe"]);
        assert_eq!(
            rules("crates/fs/src/sys/rename.rs", danger),
            [] as [&str; 0]
        );
        let adapter = "//! x\nuse sandbar_fs::Fs;\n";
        assert_eq!(rules("crates/app/src/apply.rs", adapter), ["composition"]);
        assert_eq!(
            rules("crates/app/src/compose/real.rs", adapter),
            [] as [&str; 0]
        );
        let long = format!("//! x\n{}", "// y\n".repeat(MOST_LINES));
        assert_eq!(rules("crates/fs/src/a.rs", &long), ["size"]);
    }

    #[test]
    fn tests_and_comments_are_left_alone() {
        let unwrap = BANNED[0].0;
        let text = format!(
            "//! x\n// {unwrap}\n#[cfg(test)]\nmod tests {{\n    fn f() {{ g(){unwrap} }}\n}}\n"
        );
        assert_eq!(rules("crates/fs/src/a.rs", &text), [] as [&str; 0]);
        let after = format!("{text}fn h() {{ g(){unwrap} }}\n");
        assert_eq!(rules("crates/fs/src/a.rs", &after), ["banned"]);
        let test = format!("//! x\nfn f() {{ g(){unwrap} }}\n");
        assert_eq!(rules("tests/tests/run.rs", &test), [] as [&str; 0]);
        let ignored = format!("//! x\n{}]\nfn f() {{}}\n", BANNED[3].0);
        assert_eq!(rules("tests/tests/run.rs", &ignored), ["ignored test"]);
    }

    #[test]
    fn declared_test_modules_end_at_their_semicolon() {
        let text = "//! x\n#[cfg(test)]\nmod tests;\nfn f() {}\n";
        let kept: Vec<usize> = without_tests(text).iter().map(|(line, _)| *line).collect();
        assert_eq!(kept, [1, 4]);
    }
}
