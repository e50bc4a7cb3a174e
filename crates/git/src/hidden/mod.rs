//! Hidden commits of checkpoints on `refs/sandbar/<plan>/<number>` of a
//! private git directory. They hold the bytes of the working tree as they
//! are: no filter, no end-of-line conversion, no identity needed.

mod left;
mod sink;
mod trees;

pub(crate) use left::left_inside;
pub(crate) use trees::{Gitlinks, entry_kind, is_git};

use std::path::Path;

use gix::refs::transaction::{Change, LogChange, PreviousValue, RefEdit, RefLog};
use gix::refs::{FullName, Target};
use sandbar_domain::{Code, PlanId};
use sandbar_ports::effect::effect;
use sandbar_ports::git::HideRequest;
use sandbar_ports::{PortError, PortResult};

use self::sink::Sink;
use crate::open::{Scope, failed, open_inside};
use crate::refs::HIDDEN;

/// Who writes hidden commits.
const NAME: &str = "Sandbar";
const EMAIL: &str = "sandbar@localhost";

/// Writes the commit and its ref; returns the commit's id.
pub(crate) fn hide(request: &HideRequest, scope: Scope) -> PortResult<String> {
    let mut repository = open_inside(&request.root, scope)?;
    let parent = request.parent.as_deref().map(object_id).transpose()?;
    if let (Some(parent), Some(pool)) = (parent, &request.pool)
        && !repository.has_object(parent)
    {
        // Someone inside deleted hidden refs and pruned, or began anew.
        sink::link_back(pool, repository.objects.store_ref().path())?;
        repository = open_inside(&request.root, scope)?;
    }
    let mut sink = Sink::new(&repository, request.pool.as_deref(), parent.is_none());
    let tree = match parent {
        Some(parent) => trees::changed(&mut sink, parent, request)?,
        None => trees::whole(&mut sink, request)?,
    };
    let seconds = request.time;
    let author = signature(seconds);
    let commit = gix::objs::Commit {
        message: request.message.as_str().into(),
        tree,
        author: author.clone(),
        committer: author.clone(),
        encoding: None,
        parents: parent.into_iter().collect(),
        extra_headers: Vec::new(),
    };
    let id = sink.write(&commit)?;
    sink.finish()?;
    let edit = RefEdit {
        change: Change::Update {
            log: LogChange {
                mode: RefLog::AndReference,
                force_create_reflog: false,
                message: Default::default(),
            },
            expected: PreviousValue::Any,
            new: Target::Object(id),
        },
        name: ref_name(request.plan, request.sequence)?,
        deref: false,
    };
    let path = repository
        .common_dir()
        .join(edit.name.as_bstr().to_string());
    edit_refs(&repository, vec![edit])?;
    // A name without its content would be a broken ref after a power failure;
    // that the name itself is lost does no harm.
    crate::landing::sync(&path)?;
    Ok(id.to_string())
}

/// Deletes the refs of pruned checkpoints; those that are gone already are
/// none the worse.
pub(crate) fn unhide(root: &Path, plan: PlanId, numbers: &[u64], scope: Scope) -> PortResult<()> {
    let repository = open_inside(root, scope)?;
    let mut edits = Vec::new();
    for number in numbers {
        let name = ref_name(plan, *number)?;
        let known = repository
            .try_find_reference(name.as_ref())
            .map_err(failed(format!("find {}", name.as_bstr())))?;
        if known.is_some() {
            edits.push(RefEdit {
                change: Change::Delete {
                    expected: PreviousValue::Any,
                    log: RefLog::AndReference,
                },
                name,
                deref: false,
            });
        }
    }
    if edits.is_empty() {
        return Ok(());
    }
    edit_refs(&repository, edits)
}

/// Applies edits of refs in one transaction.
pub(crate) fn edit_refs(repository: &gix::Repository, edits: Vec<RefEdit>) -> PortResult<()> {
    let author = signature(0);
    let mut time = gix::date::parse::TimeBuf::default();
    effect("git-ref", || {
        let edited = repository.edit_references_as(edits, Some(author.to_ref(&mut time)));
        edited.map(drop).map_err(|error| {
            PortError::new(
                contention(&error),
                format!("move git refs: {}", crate::open::chain(&error)),
            )
        })
    })
}

/// Tells a lock that is held from other failures.
pub(crate) fn contention(error: &gix::Error) -> Code {
    if error.is_retryable() {
        Code::GitLocked
    } else {
        Code::Io
    }
}

/// Sandbar's own signature.
pub(crate) fn signature(seconds: i64) -> gix::actor::Signature {
    gix::actor::Signature {
        name: NAME.into(),
        email: EMAIL.into(),
        time: gix::date::Time::new(seconds, 0),
    }
}

/// Reads an object id from text.
pub(crate) fn object_id(text: &str) -> PortResult<gix::ObjectId> {
    gix::ObjectId::from_hex(text.as_bytes()).map_err(|error| {
        PortError::new(Code::Internal, format!("read object id {text:?}: {error}"))
    })
}

fn ref_name(plan: PlanId, number: u64) -> PortResult<FullName> {
    let name = format!("{HIDDEN}{plan}/{number}");
    FullName::try_from(name.as_str()).map_err(failed(format!("name the ref {name}")))
}
