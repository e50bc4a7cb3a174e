//! The rules of the contract, as a data file lists them.

use crate::process::Outcome;
use crate::tree;

/// Where the list is.
pub(super) const FILE: &str = "docs/conformance/rules.txt";

/// One rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Rule {
    /// Its number, such as `STR-1`.
    pub(super) id: String,
    /// What it asks for, in short.
    pub(super) text: String,
    /// The heading it stands under.
    pub(super) group: String,
}

impl Rule {
    /// Says whether `word` is its number or the letters before the dash.
    pub(super) fn is_meant_by(&self, word: &str) -> bool {
        is_meant_by(&self.id, word)
    }
}

pub(super) fn is_meant_by(id: &str, word: &str) -> bool {
    id == word || id.rsplit_once('-').is_some_and(|(area, _)| area == word)
}

/// Reads the list.
pub(super) fn read() -> Outcome<Vec<Rule>> {
    parse(&tree::read(FILE)?)
}

fn parse(text: &str) -> Outcome<Vec<Rule>> {
    let mut rules: Vec<Rule> = Vec::new();
    let mut group = String::new();
    for (index, line) in text.lines().enumerate() {
        if let Some(heading) = line.strip_prefix("# ") {
            heading.clone_into(&mut group);
            continue;
        }
        if line.trim().is_empty() {
            continue;
        }
        let (id, text) = line
            .split_once(" | ")
            .ok_or_else(|| format!("{FILE}:{}: expected `ID | text`", index + 1))?;
        if rules.iter().any(|rule| rule.id == id) {
            return Err(format!("{FILE}:{}: {id} is there twice", index + 1));
        }
        rules.push(Rule {
            id: id.to_owned(),
            text: text.to_owned(),
            group: group.clone(),
        });
    }
    Ok(rules)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_is_whole() {
        let rules = read().expect("the list can be read");
        for (area, last) in [
            ("RES", 6),
            ("DAG", 5),
            ("SBX", 6),
            ("RCH", 6),
            ("PRJ", 3),
            ("RTE", 4),
            ("IDN", 3),
            ("COH", 3),
            ("PLN", 6),
            ("STR", 9),
            ("CKP", 6),
            ("APL", 11),
            ("CHG", 2),
            ("DSC", 4),
            ("ENV", 9),
            ("CFG", 2),
            ("SRF", 5),
            ("BAD", 26),
            ("C015", 5),
            ("C036", 4),
            ("C037", 5),
            ("C038", 5),
        ] {
            let ids: Vec<&str> = rules
                .iter()
                .filter(|rule| rule.is_meant_by(area))
                .map(|rule| rule.id.as_str())
                .collect();
            let expected: Vec<String> = (1..=last).map(|n| format!("{area}-{n}")).collect();
            assert_eq!(ids, expected);
        }
        assert!(rules.iter().all(|rule| !rule.text.is_empty()));
        assert!(parse("A-1 | x\nA-1 | y\n").is_err());
        assert!(parse("A-1 x\n").is_err());
    }
}
