//! Lands a result as commits (APL-10). Everything is worked out in memory
//! first; then objects are written; then, in a step of its own, refs and index
//! entries move. Runs no hook and no filter, signs nothing.

mod attributes;
mod moving;
mod rest;
mod series;
mod transfer;
mod trees;

pub(crate) use moving::{land, may_unland, unland};
pub(crate) use transfer::sync;

use gix::ObjectId;
use sandbar_domain::Code;
use sandbar_ports::git::{Landfall, Landing, LandingRequest};
use sandbar_ports::{PortError, PortResult};

use self::attributes::Attributes;
use self::series::Series;
use crate::hidden::object_id;
use crate::open::{Scope, failed, open, open_inside};
use crate::{reading, refs};

/// Refuses while a git command holds the index that the landing will need:
/// better said now than after files were written and taken back.
fn refuse_locked(real: &gix::Repository, request: &LandingRequest) -> PortResult<()> {
    let mut lock = real.index_path().into_os_string();
    lock.push(".lock");
    if request.to != Landfall::Commit || !reading::present(lock.as_ref()) {
        return Ok(());
    }
    let message = format!("lock {}: it is held", real.index_path().display());
    Err(PortError::new(Code::GitLocked, message))
}

/// Prepares commits: writes objects, moves no ref.
pub(crate) fn prepare(request: &LandingRequest, scope: Scope) -> PortResult<Landing> {
    check_branch(request)?;
    let real = open(&request.checkout.root, scope)?;
    refuse_locked(&real, request)?;
    let unsigned = refuse_signing(&real, request)?;
    let name = ref_name(&real, request)?;
    let inside = open_inside(&request.root, scope)?;
    let onto = onto(request)?;
    let base = request.base_head.as_deref().map(object_id).transpose()?;

    if let Some(onto) = onto.filter(|onto| !real.has_object(onto)) {
        return Err(PortError::new(
            Code::Drift,
            format!("start from commit {onto}: it is not in the repository any more"),
        ));
    }
    // Nothing is written before all of it is known to fit together.
    let scratch = real.clone().with_object_memory();
    let series = Series::read(&inside, base, onto)?;
    transfer::commits(&inside, &scratch, &series.commits)?;
    if let Some(base) = base {
        transfer::commits(&inside, &scratch, &[base])?;
    }
    let (tip, mut commits) = series.land_on(&scratch, onto, &real, request)?;
    let mut attributes = Attributes::of(&inside)?;
    let rest = rest::tree(
        &scratch,
        &inside,
        tip,
        base,
        &mut attributes,
        request,
        scope,
    )?;
    let mut notes = series.notes(&inside, base, request, &rest)?;
    let touched = series
        .paths(&inside)?
        .into_iter()
        .chain(rest.paths.iter().cloned());
    attributes.refuse_filters(touched, request.allow_filters, &mut notes)?;
    let tip_tree = match tip {
        Some(tip) => tree_of(&scratch, tip)?,
        None => ObjectId::empty_tree(scratch.object_hash()),
    };
    let mut last = tip;
    if rest.tree != tip_tree {
        let author = identity(&real, request.time);
        let commit = gix::objs::Commit {
            message: ended(&request.message).into(),
            tree: rest.tree,
            author: author.clone(),
            committer: author,
            encoding: None,
            parents: tip.into_iter().collect(),
            extra_headers: Vec::new(),
        };
        let id = scratch
            .write_object(&commit)
            .map_err(failed("make a commit"))?
            .detach();
        commits.push(id);
        last = Some(id);
    }
    notes.extend(rest.notes);
    notes.extend(unsigned);
    let Some(last) = last.filter(|last| Some(*last) != onto) else {
        notes.push("there is nothing to commit".to_owned());
        return Ok(Landing {
            notes,
            ..Landing::default()
        });
    };
    transfer::durable(&scratch, &open(&request.checkout.root, scope)?, &commits)?;
    let before = match request.to {
        Landfall::Commit => request.checkout.head.clone(),
        Landfall::Branch(_) => None,
    };
    Ok(Landing {
        refs: vec![(name, before.clone(), last.to_string())],
        commits: commits.iter().map(ToString::to_string).collect(),
        index: matches!(request.to, Landfall::Commit).then(|| (before, last.to_string())),
        notes,
    })
}

/// The commit on which the result is put: the present one, or for a branch
/// the one of the base, with which nothing can have drifted.
fn onto(request: &LandingRequest) -> PortResult<Option<ObjectId>> {
    let text = match request.to {
        Landfall::Commit => &request.checkout.head,
        Landfall::Branch(_) => &request.base_head,
    };
    text.as_deref().map(object_id).transpose()
}

fn check_branch(request: &LandingRequest) -> PortResult<()> {
    let here = &request.checkout.branch;
    if request.to == Landfall::Commit && *here != request.base_branch && !request.onto_current {
        let name = |branch: &Option<String>| branch.clone().unwrap_or_else(|| "no branch".into());
        return Err(PortError::new(
            Code::HeadMoved,
            format!(
                "commit to {}: HEAD is on {}, and was on {}",
                request.checkout.root.display(),
                name(here),
                name(&request.base_branch)
            ),
        ));
    }
    Ok(())
}

/// Refuses where signatures are asked for; says it where that is allowed.
fn refuse_signing(real: &gix::Repository, request: &LandingRequest) -> PortResult<Option<String>> {
    let signs = real
        .config_snapshot()
        .boolean("commit.gpgSign")
        .unwrap_or(false);
    if signs && !request.allow_filters {
        return Err(PortError::new(
            Code::CommitRefused,
            format!(
                "commit to {}: commit.gpgSign asks for signatures, and none is made here",
                request.checkout.root.display()
            ),
        ));
    }
    Ok(signs.then(|| "the commits made here are not signed".to_owned()))
}

/// Names the ref that moves, and checks a new branch's name.
fn ref_name(real: &gix::Repository, request: &LandingRequest) -> PortResult<String> {
    let Landfall::Branch(branch) = &request.to else {
        let head = "HEAD".to_owned();
        return Ok(request.checkout.branch.clone().unwrap_or(head));
    };
    let refused =
        |why: String| PortError::new(Code::CommitRefused, format!("make branch {branch}: {why}"));
    let name = format!("refs/heads/{branch}");
    let valid = gix::refs::FullName::try_from(name.as_str());
    if let Err(error) = valid {
        return Err(refused(crate::open::chain(&error)));
    }
    if branch.starts_with('-') || branch == "HEAD" {
        return Err(refused("the name is not allowed".to_owned()));
    }
    let beneath = format!("{name}/");
    for known in refs::all(real)?.refs {
        if known.name == name {
            return Err(refused("it exists already".to_owned()));
        }
        let above = format!("{}/", known.name);
        if known.name.starts_with(&beneath) || name.starts_with(&above) {
            return Err(refused(format!("{} is in the way", known.name)));
        }
    }
    Ok(name)
}

/// The identity that the user configured, else Sandbar's.
fn identity(real: &gix::Repository, seconds: i64) -> gix::actor::Signature {
    let config = real.config_snapshot();
    let value = |key: &str| {
        ["committer", "user"]
            .iter()
            .find_map(|section| config.string(format!("{section}.{key}").as_str()))
            .filter(|value| !value.is_empty())
    };
    match (value("name"), value("email")) {
        (Some(name), Some(email)) => gix::actor::Signature {
            name,
            email,
            time: gix::date::Time::new(seconds, 0),
        },
        _ => crate::hidden::signature(seconds),
    }
}

fn tree_of(repository: &gix::Repository, commit: ObjectId) -> PortResult<ObjectId> {
    let what = || format!("read commit {commit}");
    Ok(repository
        .find_commit(commit)
        .map_err(failed(what()))?
        .tree_id()
        .map_err(failed(what()))?
        .detach())
}

/// A message ends with a newline, as git's do.
fn ended(message: &str) -> String {
    format!("{}\n", message.trim_end())
}

/// What stands in the way, path by path.
fn drift(what: &str, paths: Vec<String>) -> PortError {
    PortError::new(Code::Drift, format!("{what}: {}", paths.join(", "))).with_subjects(paths)
}
