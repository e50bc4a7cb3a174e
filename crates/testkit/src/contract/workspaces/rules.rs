//! Rules for tests: a name says what becomes of it, and rule files name more.

use std::sync::{Mutex, PoisonError};

use sandbar_domain::RelPath;
use sandbar_ports::rules::{CarryRules, Verdict};

/// Ignores names that start with `ign`, looks into those that start with
/// `look`, hides those that start with `hid`. Each line of a file `.rules`
/// names something to ignore at or below its directory.
#[derive(Debug, Default)]
pub(super) struct ByName {
    /// What was announced: directory, content.
    entered: Mutex<Vec<(Option<RelPath>, String)>>,
}

impl ByName {
    /// Returns the directories that announced rules, in order.
    pub(super) fn announced(&self) -> Vec<Option<RelPath>> {
        let entered = self.entered.lock().unwrap_or_else(PoisonError::into_inner);
        entered.iter().map(|(dir, _)| dir.clone()).collect()
    }
}

impl CarryRules for ByName {
    fn rule_files(&self) -> &[&str] {
        &[".rules"]
    }

    fn enter(&self, dir: Option<&RelPath>, name: &str, content: &[u8]) {
        assert_eq!(name, ".rules", "only what was asked for is announced");
        let text = String::from_utf8_lossy(content).into_owned();
        let mut entered = self.entered.lock().unwrap_or_else(PoisonError::into_inner);
        entered.push((dir.cloned(), text));
    }

    fn verdict(&self, path: &RelPath, _: bool) -> Verdict {
        let entered = self.entered.lock().unwrap_or_else(PoisonError::into_inner);
        let named = entered.iter().any(|(dir, text)| {
            dir.as_ref().is_none_or(|dir| path.is_within(dir))
                && text.lines().any(|line| line == path.name())
        });
        match path.name() {
            _ if named => Verdict::Ignore,
            name if name.starts_with("ign") => Verdict::Ignore,
            name if name.starts_with("look") => Verdict::Look,
            name if name.starts_with("hid") => Verdict::Hide,
            _ => Verdict::Carry,
        }
    }
}
