//! What was made with git inside a sandbox and is not in the user's
//! repository: said before it is left behind (APL-10).

use std::collections::HashMap;
use std::path::Path;

use sandbar_ports::PortResult;
use sandbar_ports::git::Checkout;

use crate::open::{Scope, failed, open, open_inside};
use crate::refs::{self, Ref, Target};

/// Describes branches, tags and stashes that are not in the repository.
pub(crate) fn left_inside(
    root: &Path,
    checkout: &Checkout,
    scope: Scope,
) -> PortResult<Vec<String>> {
    let inside = open_inside(root, scope)?;
    let real = open(&checkout.root, scope)?;
    let there: HashMap<String, Target> = refs::all(&real)?
        .refs
        .into_iter()
        .map(|reference| (reference.name, reference.target))
        .collect();
    let mut told = Vec::new();
    for Ref { name, target, .. } in refs::all(&inside)?.refs {
        let Target::Object(id) = target else { continue };
        if there.get(&name) == Some(&Target::Object(id)) {
            continue;
        }
        let kind = match &*name {
            "refs/stash" => "stash".to_owned(),
            name => match (
                name.strip_prefix("refs/heads/"),
                name.strip_prefix("refs/tags/"),
            ) {
                (Some(branch), _) => format!("branch {branch}"),
                (_, Some(tag)) => format!("tag {tag}"),
                _ => continue,
            },
        };
        if name == "refs/stash" {
            let entries = stash_entries(&inside, &real)?;
            told.extend(count(&kind, entries, "entry", "entries"));
            continue;
        }
        let commits = new_commits(&inside, &real, id)?;
        match count(&kind, commits, "commit", "commits") {
            Some(line) => told.push(line),
            None if there.contains_key(&name) => told.push(format!("{kind}: moved to {id}")),
            None => told.push(format!("{kind}: new, at {id}")),
        }
    }
    Ok(told)
}

fn count(kind: &str, number: usize, one: &str, many: &str) -> Option<String> {
    match number {
        0 => None,
        1 => Some(format!("{kind}: 1 {one}")),
        number => Some(format!("{kind}: {number} {many}")),
    }
}

/// Counts the commits that the real repository does not have.
fn new_commits(
    inside: &gix::Repository,
    real: &gix::Repository,
    tip: gix::ObjectId,
) -> PortResult<usize> {
    let what = "walk the commits of the sandbox";
    let Ok(tip) = inside
        .find_object(tip)
        .map_err(failed(what))?
        .peel_to_commit()
    else {
        return Ok(0);
    };
    if real.has_object(tip.id) {
        return Ok(0);
    }
    let walk = inside
        .rev_walk([tip.id])
        .selected(|id| !real.has_object(id))
        .map_err(failed(what))?;
    Ok(walk.filter(Result::is_ok).count())
}

/// Counts the entries of the stash whose commits are new.
fn stash_entries(inside: &gix::Repository, real: &gix::Repository) -> PortResult<usize> {
    let what = "read the stash of the sandbox";
    let Some(stash) = inside
        .try_find_reference("refs/stash")
        .map_err(failed(what))?
    else {
        return Ok(0);
    };
    let mut log = stash.log_iter();
    let Some(lines) = log.all().map_err(failed(what))? else {
        return Ok(usize::from(!real.has_object(stash.id())));
    };
    Ok(lines
        .filter_map(Result::ok)
        .filter(|line| !real.has_object(line.new_oid()))
        .count())
}
