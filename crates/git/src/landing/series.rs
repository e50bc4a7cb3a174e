//! The commits that were made inside a sandbox, and how they come to stand on
//! the user's present HEAD: as they are where that is possible, else one by
//! one as a cherry-pick does it.

use std::collections::HashSet;

use gix::ObjectId;
use gix::bstr::BString;
use gix::objs::tree::EntryKind;
use sandbar_domain::Code;
use sandbar_ports::git::LandingRequest;
use sandbar_ports::{PortError, PortResult};

use super::rest::Rest;
use super::{drift, identity, tree_of, trees};
use crate::open::failed;

/// What was committed inside.
#[derive(Debug, Default)]
pub(super) struct Series {
    /// Oldest first.
    pub(super) commits: Vec<ObjectId>,
    /// HEAD inside.
    head: Option<ObjectId>,
    /// Whether the commit that it lands on is an ancestor of HEAD inside.
    rooted: bool,
}

impl Series {
    /// Lists what is reachable from HEAD inside, and neither from the base
    /// nor from what it lands on.
    pub(super) fn read(
        inside: &gix::Repository,
        base: Option<ObjectId>,
        onto: Option<ObjectId>,
    ) -> PortResult<Self> {
        let what = "walk the commits of the sandbox";
        let mut head = inside.head().map_err(failed(what))?;
        let Some(tip) = head.try_peel_to_id().map_err(failed(what))? else {
            return Ok(Self {
                rooted: onto.is_none(),
                ..Self::default()
            });
        };
        let tip = tip.detach();
        let known: Vec<ObjectId> = [base, onto]
            .into_iter()
            .flatten()
            .filter(|id| inside.has_object(id))
            .collect();
        let mut commits = Vec::new();
        let walk = inside
            .rev_walk([tip])
            .with_hidden(known)
            .all()
            .map_err(failed(what))?;
        for commit in walk {
            commits.push(commit.map_err(failed(what))?.id);
        }
        let commits = topological(inside, tip, commits)?;
        let rooted = match onto {
            None => true,
            Some(onto) if onto == tip => true,
            Some(onto) => {
                inside.has_object(onto)
                    && inside
                        .merge_base(tip, onto)
                        .is_ok_and(|base| base.is_some_and(|base| base.detach() == onto))
            }
        };
        Ok(Self {
            commits,
            head: Some(tip),
            rooted,
        })
    }

    /// Returns the tip after landing, and the commits that are new to it.
    pub(super) fn land_on(
        &self,
        scratch: &gix::Repository,
        onto: Option<ObjectId>,
        real: &gix::Repository,
        request: &LandingRequest,
    ) -> PortResult<(Option<ObjectId>, Vec<ObjectId>)> {
        if self.commits.is_empty() {
            return Ok((onto, Vec::new()));
        }
        if self.rooted {
            return Ok((self.head, self.commits.clone()));
        }
        let mut tip = onto;
        let mut landed = Vec::new();
        for commit in &self.commits {
            if let Some(id) = pick(scratch, *commit, tip, real, request)? {
                landed.push(id);
                tip = Some(id);
            }
        }
        Ok((tip, landed))
    }

    /// Lists the paths that the series changes. Refuses names that no tree of
    /// an honest git has: they would lead out of a checkout.
    pub(super) fn paths(&self, inside: &gix::Repository) -> PortResult<Vec<BString>> {
        let mut paths = HashSet::new();
        for commit in &self.commits {
            let parent = parents(inside, *commit)?.first().copied();
            let old = parent.map(|parent| tree_of(inside, parent)).transpose()?;
            for step in trees::diff(inside, old, Some(tree_of(inside, *commit)?))? {
                paths.insert(step.path);
            }
        }
        let mut paths: Vec<_> = paths.into_iter().collect();
        paths.sort();
        let bad: Vec<String> = paths
            .iter()
            .filter(|path| path.split(|byte| *byte == b'/').any(is_refused))
            .map(ToString::to_string)
            .collect();
        if !bad.is_empty() {
            return Err(PortError::new(
                Code::CommitRefused,
                format!(
                    "take over commits with impossible names: {}",
                    bad.join(", ")
                ),
            )
            .with_subjects(bad));
        }
        Ok(paths)
    }

    /// Says where the series may hold work that the user had not committed.
    pub(super) fn notes(
        &self,
        inside: &gix::Repository,
        base: Option<ObjectId>,
        request: &LandingRequest,
        rest: &Rest,
    ) -> PortResult<Vec<String>> {
        let (Some(head), false) = (self.head, self.commits.is_empty()) else {
            return Ok(Vec::new());
        };
        let old = base.map(|base| tree_of(inside, base)).transpose()?;
        let changed: HashSet<&str> = request
            .changes
            .iter()
            .map(|change| change.path.as_str())
            .collect();
        let steps = trees::diff(inside, old, Some(tree_of(inside, head)?))?;
        let mut notes: Vec<String> = steps
            .iter()
            .filter_map(|step| {
                let (kind, id) = step.theirs?;
                (kind == EntryKind::Commit).then(|| {
                    format!(
                        "submodule {} moves to {id}: that commit is not brought",
                        step.path
                    )
                })
            })
            .collect();
        let mut swept: Vec<String> = steps
            .into_iter()
            .filter(|step| {
                step.theirs
                    .is_none_or(|(kind, _)| kind != EntryKind::Commit)
            })
            .map(|step| step.path.to_string())
            .filter(|path| !changed.contains(&**path) || rest.dirty.contains(path))
            .collect();
        swept.truncate(20);
        if !swept.is_empty() {
            notes.push(format!(
                "the commits made inside hold changes that you had not committed: {}",
                swept.join(", ")
            ));
        }
        Ok(notes)
    }
}

fn is_refused(name: &[u8]) -> bool {
    matches!(name, b"" | b"." | b"..") || name.eq_ignore_ascii_case(b".git")
}

fn parents(repository: &gix::Repository, commit: ObjectId) -> PortResult<Vec<ObjectId>> {
    let commit = repository
        .find_commit(commit)
        .map_err(failed(format!("read commit {commit}")))?;
    Ok(commit.parent_ids().map(gix::Id::detach).collect())
}

/// Orders commits so that parents come before children, whatever their dates.
fn topological(
    repository: &gix::Repository,
    tip: ObjectId,
    commits: Vec<ObjectId>,
) -> PortResult<Vec<ObjectId>> {
    let wanted: HashSet<ObjectId> = commits.into_iter().collect();
    let mut done = HashSet::new();
    let mut order = Vec::new();
    let mut open = vec![(tip, false)];
    while let Some((commit, ready)) = open.pop() {
        if !wanted.contains(&commit) || (!ready && done.contains(&commit)) {
            continue;
        }
        if ready {
            if done.insert(commit) {
                order.push(commit);
            }
            continue;
        }
        open.push((commit, true));
        for parent in parents(repository, commit)?.into_iter().rev() {
            open.push((parent, false));
        }
    }
    Ok(order)
}

/// Puts one commit on another parent; `None` if nothing of it is new there.
fn pick(
    scratch: &gix::Repository,
    commit: ObjectId,
    onto: Option<ObjectId>,
    real: &gix::Repository,
    request: &LandingRequest,
) -> PortResult<Option<ObjectId>> {
    let what = || format!("read commit {commit}");
    let parents = parents(scratch, commit)?;
    if parents.len() > 1 {
        return Err(PortError::new(
            Code::Drift,
            format!("commit {commit}: it is a merge, and HEAD has moved since the plan began"),
        )
        .with_hint("land it with `--branch NAME`, or without `--commit`"));
    }
    let old = parents
        .first()
        .map(|parent| tree_of(scratch, *parent))
        .transpose()?;
    let steps = trees::diff(scratch, old, Some(tree_of(scratch, commit)?))?;
    let ours = match onto {
        Some(onto) => tree_of(scratch, onto)?,
        None => ObjectId::empty_tree(scratch.object_hash()),
    };
    let tree = trees::carry_over(scratch, ours, &steps)?
        .map_err(|paths| drift(&format!("put commit {commit} on the present HEAD"), paths))?;
    if tree == ours {
        return Ok(None);
    }
    let object = scratch.find_commit(commit).map_err(failed(what()))?;
    let mut picked = object
        .decode()
        .map_err(failed(what()))?
        .into_owned()
        .map_err(failed(what()))?;
    picked.tree = tree;
    picked.parents = onto.into_iter().collect();
    picked.committer = identity(real, request.time);
    // A signature is one of the commit as it was.
    picked
        .extra_headers
        .retain(|(name, _)| !name.starts_with(b"gpgsig"));
    scratch
        .write_object(&picked)
        .map(|id| Some(id.detach()))
        .map_err(failed("make a commit"))
}
