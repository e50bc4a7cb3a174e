//! A part of a result: which changes were asked for, and what the base of the
//! sandbox becomes when only they were applied (APL-8).

use std::collections::HashMap;
use std::path::{Component, Path, PathBuf};

use sandbar_domain::resource::Resource;
use sandbar_domain::snapshot::Snapshot;
use sandbar_domain::tree::build;
use sandbar_domain::{Change, Code, Entry, Kind, RelPath};
use sandbar_ports::store::SandboxRecord;
use sandbar_ports::{PortError, PortResult};

use super::payload::Rebase;
use super::report::ApplyRequest;
use crate::Sandbar;

/// The changes that were asked for, and the others.
#[derive(Debug)]
pub(super) struct Part {
    pub(super) changes: Vec<Change>,
    pub(super) rest: Vec<Change>,
}

impl Part {
    /// Names what stays in the plan.
    pub(super) fn paths_of_rest(&self) -> Vec<RelPath> {
        self.rest.iter().map(|change| change.path.clone()).collect()
    }
}

impl Sandbar {
    /// Divides the changes of a plan. Errors: `path_not_found` for a path that
    /// no change is at or below, `path_escapes` for one outside the root.
    pub(super) fn part_of(
        &self,
        request: &ApplyRequest,
        sandbox: &SandboxRecord,
        resource: &Resource,
        changes: Vec<Change>,
    ) -> PortResult<Part> {
        for asked in &request.resources {
            refuse_other(asked, &request.cwd, resource)?;
        }
        let rest = Vec::new();
        if request.paths.is_empty() {
            return Ok(Part { changes, rest });
        }
        let mut asked = Vec::new();
        for path in &request.paths {
            let Some(rel) = below_root(path, &request.cwd, resource, sandbox)? else {
                return Ok(Part { changes, rest });
            };
            let below = |change: &Change| change.path.is_within(&rel);
            if !changes.iter().any(below) {
                let message = format!("apply {rel}: the plan changed nothing there");
                let hint = "`sandbar diff PLAN --stat` lists what it changed";
                return Err(PortError::new(Code::PathNotFound, message)
                    .with_subjects([rel.as_str()])
                    .with_hint(hint));
            }
            asked.push(rel);
        }
        Ok(divide(changes, &asked))
    }

    /// Makes the base that a sandbox has once `changes` are applied: what it
    /// was, with these paths as in the result, since both sides have that now.
    pub(crate) async fn base_after(
        &self,
        sandbox: &SandboxRecord,
        changes: &[Change],
    ) -> PortResult<Rebase> {
        let old = self.base_of(sandbox).await?;
        let mut paths = self.listed(old.tree).await?;
        for change in changes {
            match change.new {
                Some(entry) => drop(paths.insert(change.path.clone(), entry)),
                None => drop(paths.remove(&change.path)),
            }
        }
        let built = build(paths).map_err(|error| {
            PortError::new(Code::Internal, format!("make the new base: {error}"))
        })?;
        self.parts.objects.put(built.objects).await?;
        let from = old.id();
        let new = Snapshot {
            tree: built.root,
            ..old
        };
        let to = self.store_snapshot(&new).await?;
        Ok(Rebase::new(from, to))
    }
}

/// Takes what is at or below the asked paths, and the directories that must
/// come for them to have a place.
fn divide(changes: Vec<Change>, asked: &[RelPath]) -> Part {
    let places: HashMap<RelPath, bool> = changes
        .iter()
        .filter(|change| is_directory(change.new))
        .map(|change| {
            let needed = changes.iter().any(|other| {
                other.new.is_some()
                    && other.path.is_within(&change.path)
                    && asked.iter().any(|asked| other.path.is_within(asked))
            });
            (change.path.clone(), needed)
        })
        .collect();
    let (changes, rest) = changes.into_iter().partition(|change| {
        asked.iter().any(|asked| change.path.is_within(asked))
            || places.get(&change.path).copied().unwrap_or(false)
    });
    Part { changes, rest }
}

fn is_directory(entry: Option<Entry>) -> bool {
    entry.is_some_and(|entry| entry.kind == Kind::Directory)
}

/// Refuses a resource that is not the plan's.
fn refuse_other(asked: &str, cwd: &Path, resource: &Resource) -> PortResult<()> {
    let root = &resource.root.path;
    let path = flatten(&cwd.join(asked));
    if path == *root || asked.eq_ignore_ascii_case(&resource.id.to_string()) {
        return Ok(());
    }
    let message = format!(
        "apply to {asked}: the plan has one resource, {}",
        root.display()
    );
    Err(PortError::new(Code::PathNotFound, message)
        .with_hint("name it by its path or id, or leave `--resource` out"))
}

/// Reads a path as a person types it: relative to where they stand, in the
/// real tree or in the sandbox. `None` is the root itself.
pub(crate) fn below_root(
    path: &Path,
    cwd: &Path,
    resource: &Resource,
    sandbox: &SandboxRecord,
) -> PortResult<Option<RelPath>> {
    let flat = flatten(&cwd.join(path));
    let roots = [&resource.root.path, &sandbox.place.join("r")];
    let rest = roots.iter().find_map(|root| flat.strip_prefix(root).ok());
    let shown = path.display();
    let Some(rest) = rest else {
        let root = resource.root.path.display();
        let message = format!("use {shown}: it is not in {root}");
        return Err(PortError::new(Code::PathEscapes, message)
            .with_hint("paths are relative to the current directory, as in git"));
    };
    let Some(text) = rest.to_str() else {
        let message = format!("use {shown}: it is not UTF-8");
        return Err(PortError::new(Code::PathEscapes, message));
    };
    if text.is_empty() {
        return Ok(None);
    }
    RelPath::new(text)
        .map(Some)
        .map_err(|error| PortError::new(Code::PathEscapes, format!("use {shown}: {error}")))
}

/// Resolves `.` and `..` by name alone: the path may exist on one side only.
fn flatten(path: &Path) -> PathBuf {
    let mut out = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => drop(out.pop()),
            other => out.push(other),
        }
    }
    out
}
