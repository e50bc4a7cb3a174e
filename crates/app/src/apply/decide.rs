//! Gathering the facts of a decision, and having it made.

use std::collections::HashMap;

use sandbar_domain::apply::{
    Decision, Facts, Observed, Present, Warning, paths_to_observe, plan_ops, triage,
};
use sandbar_domain::merge::merge3;
use sandbar_domain::resource::{ResourceType, Root};
use sandbar_domain::{Change, Hash, RelPath};
use sandbar_ports::PortResult;
use sandbar_ports::effect::planted;

use super::report::Conflict;
use crate::Sandbar;

impl Sandbar {
    /// Lists what a plan changed, less the git metadata of repositories that
    /// were nested in the base: their files come back, their commits do not.
    /// Returns the changes and the directories of those repositories.
    pub(crate) async fn changes_to_apply(
        &self,
        base: Hash,
        result: Hash,
    ) -> PortResult<(Vec<Change>, Vec<String>)> {
        let mut changes = self.parts.objects.diff(base, result).await?;
        if planted("forget-a-deletion") {
            changes.retain(|change| change.new.is_some());
        }
        self.without_nested_git(base, changes).await
    }

    /// Leaves out what lies in the git directories of nested repositories that
    /// were in the base; names the repositories where something does.
    pub(crate) async fn without_nested_git(
        &self,
        base: Hash,
        changes: Vec<Change>,
    ) -> PortResult<(Vec<Change>, Vec<String>)> {
        let mut nested: Vec<RelPath> = changes.iter().filter_map(|c| nested_git(&c.path)).collect();
        nested.sort_unstable();
        nested.dedup();
        if nested.is_empty() {
            return Ok((changes, Vec::new()));
        }
        let found = self.parts.objects.lookup(base, nested.clone()).await?;
        let old: Vec<RelPath> = nested
            .into_iter()
            .zip(found)
            .filter(|(_, e)| e.is_some())
            .map(|(p, _)| p)
            .collect();
        let (kept, left): (Vec<_>, Vec<_>) = changes
            .into_iter()
            .partition(|change| !old.iter().any(|git| change.path.is_within(git)));
        let names = old
            .iter()
            .filter(|git| left.iter().any(|change| change.path.is_within(git)))
            .filter_map(|git| git.parent())
            .map(|dir| dir.to_string())
            .collect();
        Ok((kept, names))
    }

    /// Compares changes with the real tree, merges what can be merged, and
    /// returns the decision (APL-2, APL-3). Writes nothing to the root.
    pub(crate) async fn decide(
        &self,
        root: &Root,
        kind: ResourceType,
        changes: &[Change],
    ) -> PortResult<Decision> {
        let paths = paths_to_observe(changes);
        let mut found = self
            .parts
            .targets
            .observe(root.clone(), paths.clone())
            .await?;
        if planted("skip-pre-image-check") {
            for (path, found) in paths.iter().zip(&mut found) {
                if let Some(change) = changes.iter().find(|change| change.path == *path) {
                    *found = change.old;
                }
            }
        }
        let there = paths.into_iter().zip(found).collect();
        self.judge(kind, changes, &there).await
    }

    /// Compares changes with what is there, and merges what can be merged.
    pub(super) async fn judge(
        &self,
        kind: ResourceType,
        changes: &[Change],
        there: &Present,
    ) -> PortResult<Decision> {
        let (paths, found) = there
            .iter()
            .map(|(path, entry)| (path.clone(), *entry))
            .unzip();
        let observed = Observed::new(paths, found);
        let facts = Facts {
            checkout: kind == ResourceType::GitCheckout,
            case_insensitive: false,
        };
        let triage = triage(changes, &observed, facts);
        let mut merged: HashMap<RelPath, Result<Hash, _>> = HashMap::new();
        for request in &triage.merges {
            let base = self.parts.objects.get(request.base).await?;
            let real = self.parts.objects.get(request.real).await?;
            let result = self.parts.objects.get(request.result).await?;
            let outcome = match merge3(&base, &real, &result) {
                Ok(bytes) => {
                    let stored = self.parts.objects.put(vec![bytes]).await?;
                    Ok(*stored.first().expect("one object in, one hash out"))
                }
                Err(conflict) => Err(conflict),
            };
            merged.insert(request.path.clone(), outcome);
        }
        Ok(plan_ops(triage, &merged))
    }
}

/// Returns `<dir>/.git` for a path in a nested repository's git directory.
fn nested_git(path: &RelPath) -> Option<RelPath> {
    let text = path.as_str();
    let end = match text.find("/.git/") {
        Some(start) => start + "/.git".len(),
        None if text.ends_with("/.git") => text.len(),
        None => return None,
    };
    RelPath::new(&text[..end]).ok()
}

/// Describes a conflict of the domain.
pub(crate) fn describe(conflict: &sandbar_domain::apply::Conflict) -> Conflict {
    Conflict {
        path: conflict.path.to_string(),
        reason: conflict.reason.word().to_owned(),
        kept: None,
    }
}

/// Says a warning of the domain in a sentence.
pub(crate) fn warn(warning: &Warning) -> String {
    let path = warning.path();
    match warning {
        Warning::Merged(_) => format!("merged your changes and the plan's: {path}"),
        Warning::Combined(_) => {
            format!("combined content and executable bit of both sides: {path}")
        }
        Warning::ParentMade(_) => {
            format!("made the directory again, which you had removed: {path}")
        }
    }
}
