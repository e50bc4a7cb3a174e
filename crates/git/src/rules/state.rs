//! What belongs to the state of a private git directory: all of it, less the
//! objects that the pool keeps, hidden refs, locks and temporary files.

use std::collections::HashSet;
use std::path::Path;

use sandbar_domain::RelPath;
use sandbar_ports::PortResult;
use sandbar_ports::rules::{CarryRules, Verdict};

use crate::reading;

/// Rules for a scan of `<root>/.git` itself.
#[derive(Debug)]
pub(crate) struct StateRules {
    /// Paths below `objects/`, with `!` for `/`.
    pooled: HashSet<String>,
}

impl StateRules {
    /// Lists the pool; a missing one is empty.
    pub(crate) fn load(pool: &Path) -> PortResult<Self> {
        Ok(Self {
            pooled: reading::names(pool)?.into_iter().collect(),
        })
    }
}

/// Objects that were being written when their writer died.
fn is_temporary(name: &str) -> bool {
    name.starts_with("tmp_") || name.starts_with(".tmp")
}

impl CarryRules for StateRules {
    fn rule_files(&self) -> &[&str] {
        &[]
    }

    fn enter(&self, _: Option<&RelPath>, _: &str, _: &[u8]) {}

    fn verdict(&self, path: &RelPath, is_dir: bool) -> Verdict {
        let text = path.as_str();
        let within = |dir: &str| {
            text.strip_prefix(dir)
                .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        if within("refs/sandbar") || within("logs/refs/sandbar") {
            return Verdict::Hide;
        }
        if is_dir {
            return Verdict::Carry;
        }
        let name = path.name();
        let in_objects = text.starts_with("objects/") || text.contains("/objects/");
        if name.ends_with(".lock") || in_objects && is_temporary(name) {
            return Verdict::Hide;
        }
        if let Some(object) = text.strip_prefix("objects/")
            && self.pooled.contains(&object.replace('/', "!"))
        {
            return Verdict::Hide;
        }
        Verdict::Carry
    }
}
