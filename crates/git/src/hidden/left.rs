//! What was made with git inside a sandbox and is not in the user's
//! repository: said before it is left behind (APL-10).

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::Path;

use gix::bstr::ByteSlice as _;
use sandbar_ports::PortResult;
use sandbar_ports::git::{Began, Checkout};

use crate::open::{Scope, failed, open, open_inside};
use crate::reading;
use crate::refs::{self, Ref, Target};

/// How many settings are named.
const NAMED: usize = 12;

/// Describes branches, tags, notes, stashes and configuration that were made,
/// moved or deleted inside and are not so in the repository.
pub(crate) fn left_inside(
    root: &Path,
    checkout: &Checkout,
    began: &Began,
    scope: Scope,
) -> PortResult<Vec<String>> {
    let inside = open_inside(root, scope)?;
    let real = open(&checkout.root, scope)?;
    let there: HashMap<String, Target> = refs::all(&real)?
        .refs
        .into_iter()
        .map(|reference| (reference.name, reference.target))
        .collect();
    let before = packed(&began.packed_refs);
    let on = inside
        .head_name()
        .map_err(failed("read HEAD of the sandbox"))?
        .filter(|_| began.landed);
    let mut told = Vec::new();
    let mut known = HashSet::new();
    for Ref { name, target, .. } in refs::all(&inside)?.refs {
        known.insert(name.clone());
        let Target::Object(id) = target else { continue };
        let Some(kind) = kind_of(&name) else { continue };
        // As it was when the plan began, or as it is outside: not made here.
        let landed = on.as_ref().is_some_and(|on| on.as_bstr() == name.as_str());
        if landed || there.get(&name) == Some(&Target::Object(id)) || before.get(&name) == Some(&id)
        {
            continue;
        }
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
    let mut gone: Vec<&String> = before
        .keys()
        .filter(|name| !known.contains(*name) && there.contains_key(*name))
        .collect();
    gone.sort_unstable();
    told.extend(
        gone.into_iter()
            .filter_map(|name| kind_of(name))
            .map(|kind| format!("{kind}: deleted inside, not in your repository")),
    );
    told.extend(changed_settings(root, &began.config)?);
    Ok(told)
}

/// Names a ref for people; none for one that people do not make.
fn kind_of(name: &str) -> Option<String> {
    let named = |prefix: &str, word: &str| {
        name.strip_prefix(prefix)
            .map(|short| format!("{word} {short}"))
    };
    if name == "refs/stash" {
        return Some("stash".to_owned());
    }
    named("refs/heads/", "branch")
        .or_else(|| named("refs/tags/", "tag"))
        .or_else(|| named("refs/notes/", "notes"))
}

/// Reads the lines of a `packed-refs` file.
fn packed(bytes: &[u8]) -> HashMap<String, gix::ObjectId> {
    let text = String::from_utf8_lossy(bytes);
    text.lines()
        .filter_map(|line| {
            let (id, name) = line.split_once(' ')?;
            let id = gix::ObjectId::from_hex(id.as_bytes()).ok()?;
            Some((name.to_owned(), id))
        })
        .collect()
}

/// Names the settings that differ from those at the beginning; never their
/// values, which may be secrets.
fn changed_settings(root: &Path, before: &[u8]) -> PortResult<Option<String>> {
    let now = reading::file(&root.join(".git/config"))?.unwrap_or_default();
    if before.is_empty() || now == before {
        return Ok(None);
    }
    let (before, now) = (settings(before)?, settings(&now)?);
    let mut names: Vec<&str> = before
        .keys()
        .chain(now.keys())
        .filter(|name| before.get(*name) != now.get(*name))
        .map(String::as_str)
        .collect();
    names.sort_unstable();
    names.dedup();
    if names.is_empty() {
        return Ok(None);
    }
    let more = match names.len().saturating_sub(NAMED) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    names.truncate(NAMED);
    Ok(Some(format!("config: {}{more}", names.join(", "))))
}

fn settings(bytes: &[u8]) -> PortResult<BTreeMap<String, Vec<Vec<u8>>>> {
    let file = gix::config::File::from_bytes_no_includes(
        bytes,
        gix::config::file::Metadata::from(gix::config::Source::Local),
        gix::config::file::init::Options::default(),
    )
    .map_err(failed("read the configuration of the sandbox"))?;
    let mut all: BTreeMap<String, Vec<Vec<u8>>> = BTreeMap::new();
    for section in file.sections() {
        let name = section.header().name().to_str_lossy().to_lowercase();
        let middle = match section.header().subsection_name() {
            Some(subsection) => format!(".{}", subsection.to_str_lossy()),
            None => String::new(),
        };
        let mut met = HashSet::new();
        for key in section.value_names() {
            let lower = key.to_lowercase();
            if met.insert(lower.clone()) {
                let values = section.values(&key);
                all.entry(format!("{name}{middle}.{lower}"))
                    .or_default()
                    .extend(values.iter().map(|value| value.to_vec()));
            }
        }
    }
    Ok(all)
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
