//! What the harnesses counted: each leaves one file of JSON a part below the
//! build directory.
#![allow(
    clippy::disallowed_methods,
    reason = "xtask is no product: it reads what the tests left"
)]

use std::collections::BTreeMap;
use std::path::PathBuf;

use crate::process::Outcome;
use crate::tree;

/// The counts of one harness in one size, all parts together.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Counts {
    /// Points that were tried.
    pub(super) points: u64,
    /// Violations that were found.
    pub(super) violations: u64,
}

/// By harness and size.
pub(super) type Harnesses = BTreeMap<(String, String), Counts>;

fn directory() -> Outcome<PathBuf> {
    Ok(tree::target()?.join("harnesses"))
}

/// Forgets the counts of runs before this one.
pub(crate) fn clear() -> Outcome {
    let dir = directory()?;
    match std::fs::remove_dir_all(&dir) {
        Err(why) if why.kind() != std::io::ErrorKind::NotFound => {
            Err(format!("clear {}: {why}", dir.display()))
        }
        _ => Ok(()),
    }
}

/// Reads what the harnesses of this run counted.
pub(super) fn read() -> Outcome<Harnesses> {
    let dir = directory()?;
    let Ok(entries) = std::fs::read_dir(&dir) else {
        return Ok(Harnesses::new());
    };
    let mut texts = Vec::new();
    for entry in entries {
        let path = entry
            .map_err(|why| format!("list {}: {why}", dir.display()))?
            .path();
        let text = std::fs::read_to_string(&path)
            .map_err(|why| format!("read {}: {why}", path.display()))?;
        texts.push(text);
    }
    sum(texts.iter().map(String::as_str))
}

fn sum<'a>(texts: impl Iterator<Item = &'a str>) -> Outcome<Harnesses> {
    let mut all = Harnesses::new();
    for text in texts {
        let bad = || format!("no counts of a harness: {text}");
        let value: serde_json::Value = serde_json::from_str(text).map_err(|_| bad())?;
        let word = |name: &str| value[name].as_str().map(str::to_owned).ok_or_else(bad);
        let number = |name: &str| value[name].as_u64().ok_or_else(bad);
        let counts = all.entry((word("harness")?, word("size")?)).or_default();
        counts.points += number("points")?;
        counts.violations += number("violations")?;
    }
    Ok(all)
}

/// Writes one line a harness for a terminal.
pub(super) fn lines(harnesses: &Harnesses) -> Vec<String> {
    harnesses
        .iter()
        .map(|((name, size), counts)| {
            format!(
                "harness {name} ({size}): {} points, {} violations",
                counts.points, counts.violations
            )
        })
        .collect()
}

/// Writes the table; it holds no counts of points, which may vary.
pub(super) fn table(harnesses: &Harnesses) -> String {
    if harnesses.is_empty() {
        return String::new();
    }
    let rows: String = harnesses
        .iter()
        .map(|((name, size), counts)| format!("| {name} | {size} | {} |\n", counts.violations))
        .collect();
    format!("\n## Harnesses\n\n| harness | size | violations |\n|---|---|---|\n{rows}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_summed() {
        let part = |part: &str, violations: u64| {
            format!(
                r#"{{"harness":"a","part":"{part}","size":"short","points":3,"violations":{violations},"notes":[]}}"#
            )
        };
        let texts = [part("x", 0), part("y", 1)];
        let all = sum(texts.iter().map(String::as_str)).expect("well formed");
        assert_eq!(lines(&all), ["harness a (short): 6 points, 1 violations"]);
        assert!(table(&all).ends_with("| a | short | 1 |\n"));
        assert!(sum(["{}"].into_iter()).is_err());
        assert_eq!(table(&Harnesses::new()), "");
    }
}
