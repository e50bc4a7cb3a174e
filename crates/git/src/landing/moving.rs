//! Moves refs and index entries of a prepared landing, forth and back. Each
//! step looks first whether it was made already, so that a second call after
//! a crash goes on where the first one stopped.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use gix::ObjectId;
use gix::bstr::ByteSlice as _;
use gix::lock::acquire::Fail;
use gix::objs::tree::EntryKind;
use gix::refs::transaction::{Change, LogChange, PreviousValue, RefEdit, RefLog};
use gix::refs::{FullName, Target};
use sandbar_domain::Code;
use sandbar_ports::effect::effect;
use sandbar_ports::git::{Checkout, Landing};
use sandbar_ports::{PortError, PortResult};

use super::transfer::sync;
use super::trees::{Step, diff};
use super::{identity, tree_of};
use crate::hidden::{contention, object_id};
use crate::index::{Index, mode};
use crate::open::{Scope, chain, failed, open};

/// How long a lock that someone holds is waited for.
const PATIENCE: Duration = Duration::from_secs(1);

/// Moves the refs to the new commits, then the index entries.
pub(crate) fn land(checkout: &Checkout, landing: &Landing, scope: Scope) -> PortResult<()> {
    let moves: Vec<Move> = landing
        .refs
        .iter()
        .map(|(name, before, after)| Move::new(name, before.as_deref(), Some(after)))
        .collect::<PortResult<_>>()?;
    let index = match &landing.index {
        Some((before, after)) => {
            let before = before.as_deref().map(object_id).transpose()?;
            Some((before, Some(object_id(after)?)))
        }
        None => None,
    };
    carry_out(checkout, &moves, index, scope)
}

/// Moves everything back.
pub(crate) fn unland(checkout: &Checkout, landing: &Landing, scope: Scope) -> PortResult<()> {
    let moves: Vec<Move> = landing
        .refs
        .iter()
        .rev()
        .map(|(name, before, after)| Move::new(name, Some(after), before.as_deref()))
        .collect::<PortResult<_>>()?;
    let index = match &landing.index {
        Some((before, after)) => {
            let before = before.as_deref().map(object_id).transpose()?;
            Some((Some(object_id(after)?), before))
        }
        None => None,
    };
    // Entries go back first and refs last: once the refs are back all is, and
    // a landing that never began needs no lock to be taken back.
    let repository = open(&checkout.root, scope)?;
    let mut ours = Vec::new();
    for one in moves {
        let at = present(&repository, &one)?;
        if at != one.to && holds(&repository, at, one.from)? {
            ours.push(one);
        }
    }
    if ours.is_empty() {
        return Ok(());
    }
    if let Some((from, to)) = index {
        let lock = lock(&repository)?;
        expect_head(&repository, from, to)?;
        move_entries(&repository, from, to, lock)?;
    }
    for one in &ours {
        move_ref(&repository, one)?;
    }
    Ok(())
}

/// Refuses where taking a landing back would lose what came after it.
pub(crate) fn may_unland(checkout: &Checkout, landing: &Landing, scope: Scope) -> PortResult<()> {
    let repository = open(&checkout.root, scope)?;
    for (name, before, after) in &landing.refs {
        let one = Move::new(name, Some(after), before.as_deref())?;
        let at = present(&repository, &one)?;
        if at == one.to {
            continue;
        }
        if at != one.from {
            let shown = at.map_or_else(|| "gone".to_owned(), |id| format!("at {id}"));
            let message = format!("take {name} back: it was put at {after} and is {shown} now");
            return Err(PortError::new(Code::HeadMoved, message)
                .with_subjects([name])
                .with_hint(
                    "what came after would be lost: move it back yourself, then undo again",
                ));
        }
        if one.to.is_none() && is_checked_out(&repository, &one)? {
            let message = format!("take {name} back: it is checked out");
            return Err(PortError::new(Code::HeadMoved, message)
                .with_subjects([name])
                .with_hint("switch to another branch, then undo again"));
        }
    }
    if let Some((_, after)) = &landing.index {
        let mut held = repository.index_path().into_os_string();
        held.push(".lock");
        if crate::reading::present(held.as_ref()) {
            let message = format!("lock {}: it is held", repository.index_path().display());
            return Err(PortError::new(Code::GitLocked, message));
        }
        let landed = object_id(after)?;
        let before = landing
            .index
            .as_ref()
            .and_then(|(before, _)| before.clone());
        let before = before.as_deref().map(object_id).transpose()?;
        expect_head(&repository, Some(landed), before)?;
    }
    Ok(())
}

/// Says whether HEAD of this or another working tree is on a ref.
fn is_checked_out(repository: &gix::Repository, one: &Move) -> PortResult<bool> {
    let head = repository.head_name().map_err(failed("read HEAD"))?;
    if head.is_some_and(|head| head == one.name) {
        return Ok(true);
    }
    let on = format!("ref: {}", one.name.as_bstr());
    let trees = repository.common_dir().join("worktrees");
    let names = match crate::reading::present(&trees) {
        true => crate::reading::names(&trees)?,
        false => Vec::new(),
    };
    let mut heads = vec![repository.common_dir().join("HEAD")];
    heads.extend(names.iter().map(|name| trees.join(name).join("HEAD")));
    for path in heads {
        let text = crate::reading::file(&path)?.unwrap_or_default();
        if text.trim_ascii_end() == on.as_bytes() {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Says whether a ref that is at `present` has what was landed: a commit of
/// somebody else's that does not build on it leaves nothing to take back.
fn holds(
    repository: &gix::Repository,
    present: Option<ObjectId>,
    landed: Option<ObjectId>,
) -> PortResult<bool> {
    let (Some(present), Some(landed)) = (present, landed) else {
        return Ok(false);
    };
    if present == landed {
        return Ok(true);
    }
    let walk = repository
        .rev_walk([present])
        .all()
        .map_err(failed("walk the commits of a ref"))?;
    for commit in walk {
        if commit.map_err(failed("walk the commits of a ref"))?.id == landed {
            return Ok(true);
        }
    }
    Ok(false)
}

/// One ref: from one value to another.
struct Move {
    name: FullName,
    from: Option<ObjectId>,
    to: Option<ObjectId>,
}

impl Move {
    fn new(name: &str, from: Option<&str>, to: Option<&str>) -> PortResult<Self> {
        Ok(Self {
            name: FullName::try_from(name).map_err(failed(format!("name the ref {name}")))?,
            from: from.map(object_id).transpose()?,
            to: to.map(object_id).transpose()?,
        })
    }
}

fn carry_out(
    checkout: &Checkout,
    moves: &[Move],
    index: Option<(Option<ObjectId>, Option<ObjectId>)>,
    scope: Scope,
) -> PortResult<()> {
    let repository = open(&checkout.root, scope)?;
    // The lock first: a git command at work now would write the old entries.
    let lock = match index {
        Some(_) => Some(lock(&repository)?),
        None => None,
    };
    if let Some((from, to)) = index {
        expect_head(&repository, from, to)?;
    }
    for one in moves {
        move_ref(&repository, one)?;
    }
    if let (Some((old, new)), Some(lock)) = (index, lock) {
        move_entries(&repository, old, new, lock)?;
    }
    Ok(())
}

/// Refuses where HEAD is at neither end of the landing: somebody moved it.
fn expect_head(
    repository: &gix::Repository,
    from: Option<ObjectId>,
    to: Option<ObjectId>,
) -> PortResult<()> {
    let head = head_id(repository)?;
    if head == from || head == to {
        Ok(())
    } else {
        Err(moved("HEAD"))
    }
}

fn head_id(repository: &gix::Repository) -> PortResult<Option<ObjectId>> {
    let head = repository.head().map_err(failed("read HEAD"))?;
    Ok(head.id().map(gix::Id::detach))
}

/// Returns what a ref is at now.
fn present(repository: &gix::Repository, one: &Move) -> PortResult<Option<ObjectId>> {
    let name = one.name.as_bstr().to_string();
    let known = repository
        .try_find_reference(one.name.as_ref())
        .map_err(failed(format!("find {name}")))?;
    match &known {
        Some(reference) if reference.name().as_bstr() == "HEAD" => head_id(repository),
        Some(reference) => Ok(reference.try_id().map(gix::Id::detach)),
        None => Ok(None),
    }
}

fn move_ref(repository: &gix::Repository, one: &Move) -> PortResult<()> {
    let name = one.name.as_bstr().to_string();
    let present = present(repository, one)?;
    if present == one.to {
        return Ok(());
    }
    if present != one.from {
        return Err(moved(&name));
    }
    let expected = match one.from {
        Some(id) => PreviousValue::MustExistAndMatch(Target::Object(id)),
        None => PreviousValue::MustNotExist,
    };
    // Through HEAD where it is on the branch, so that HEAD's log tells it too.
    let on_it = repository
        .head_name()
        .map_err(failed("read HEAD"))?
        .is_some_and(|head| head == one.name);
    let (change, edited) = match one.to {
        Some(id) => {
            let log = LogChange {
                mode: RefLog::AndReference,
                force_create_reflog: false,
                message: message(repository, one).into(),
            };
            let change = Change::Update {
                log,
                expected,
                new: Target::Object(id),
            };
            let head = FullName::try_from("HEAD").expect("HEAD is a valid name");
            (change, if on_it { head } else { one.name.clone() })
        }
        None => {
            let change = Change::Delete {
                expected,
                log: RefLog::AndReference,
            };
            (change, one.name.clone())
        }
    };
    let edit = RefEdit {
        deref: edited.as_bstr() == "HEAD" && on_it,
        change,
        name: edited,
    };
    let tip = one.to.or(one.from);
    let author = identity(repository, tip.map_or(0, |tip| time_of(repository, tip)));
    let mut time = gix::date::parse::TimeBuf::default();
    effect("git-ref", || {
        let edited = repository.edit_references_as([edit], Some(author.to_ref(&mut time)));
        edited.map_err(|error| {
            PortError::new(
                contention(&error),
                format!("move {name}: {}", chain(&error)),
            )
        })
    })?;
    let base = if name == "HEAD" {
        repository.git_dir()
    } else {
        repository.common_dir()
    };
    let path = base.join(&name);
    if one.to.is_some() {
        sync(&path)?;
    }
    match path.parent() {
        Some(parent) if crate::reading::present(parent) => sync(parent),
        _ => Ok(()),
    }
}

fn moved(name: &str) -> PortError {
    PortError::new(
        Code::HeadMoved,
        format!("move {name}: it was moved by someone else meanwhile"),
    )
    .with_hint("look at the branch, then apply again")
}

fn message(repository: &gix::Repository, one: &Move) -> String {
    let subject = one.to.and_then(|id| {
        let commit = repository.find_commit(id).ok()?;
        let message = commit.message().ok()?;
        Some(message.summary().to_str_lossy().into_owned())
    });
    match (one.from, subject) {
        (None, Some(subject)) => format!("sandbar apply (initial): {subject}"),
        (_, Some(subject)) => format!("sandbar apply: {subject}"),
        (_, None) => "sandbar apply".to_owned(),
    }
}

fn time_of(repository: &gix::Repository, commit: ObjectId) -> i64 {
    repository
        .find_commit(commit)
        .ok()
        .and_then(|commit| commit.time().ok())
        .map_or(0, |time| time.seconds)
}

fn lock(repository: &gix::Repository) -> PortResult<gix::lock::File> {
    let path = repository.index_path();
    effect("git-index-lock", || {
        let locked = gix::lock::File::acquire_to_update_resource(
            &path,
            Fail::AfterDurationWithBackoff(PATIENCE),
            None,
            0,
        );
        locked.map_err(|error| {
            PortError::new(
                contention(&error),
                format!("lock {}: {}", path.display(), chain(&error)),
            )
        })
    })
}

/// Entries that are as in `old` become as in `new`; all others stay.
fn move_entries(
    repository: &gix::Repository,
    old: Option<ObjectId>,
    new: Option<ObjectId>,
    mut lock: gix::lock::File,
) -> PortResult<()> {
    let tree = |commit: Option<ObjectId>| commit.map(|id| tree_of(repository, id)).transpose();
    let steps = diff(repository, tree(old)?, tree(new)?)?;
    let mut index = Index::load(repository)?;
    if !step_entries(&mut index, &steps) {
        return effect("git-index-lock", || {
            drop(lock);
            Ok(())
        });
    }
    let bytes = index.to_bytes()?;
    let path = repository.index_path();
    let shown = path.display().to_string();
    effect("git-index", || {
        lock.with_mut(|file| {
            use std::io::Write as _;
            if let Ok(stat) = rustix::fs::stat(&path) {
                rustix::fs::fchmod(
                    &*file,
                    rustix::fs::Mode::from_raw_mode(stat.st_mode & 0o777),
                )?;
            }
            file.write_all(&bytes)?;
            file.sync_all()
        })
    })
    .map_err(failed(format!("write {shown}")))?;
    effect("git-index", || {
        lock.commit()
            .map_err(|error| PortError::new(Code::Io, format!("replace {shown}: {}", error.error)))
    })?;
    sync(path.parent().unwrap_or(repository.git_dir()))
}

/// Returns whether anything changed.
fn step_entries(index: &mut Index, steps: &[Step]) -> bool {
    let wanted: HashMap<&[u8], &Step> = steps
        .iter()
        .map(|step| (step.path.as_slice(), step))
        .collect();
    let mut replaced = Vec::new();
    let mut removed = HashSet::new();
    let mut known: HashSet<Vec<u8>> = HashSet::new();
    for (position, entry) in index.entries().enumerate() {
        let Some(step) = wanted.get(entry.path) else {
            known.insert(entry.path.to_vec());
            continue;
        };
        let have = Some((kind(entry.mode()), entry.id()));
        let is_old = entry.stage() == 0 && !entry.intent_to_add() && have == step.base;
        match step.theirs {
            Some(new) if is_old => replaced.push((position, new)),
            None if is_old => {
                removed.insert(entry.path.to_vec());
                continue;
            }
            _ => {}
        }
        known.insert(entry.path.to_vec());
    }
    let mut leading: HashSet<Vec<u8>> = HashSet::new();
    for path in &known {
        leading.extend(above(path).map(<[u8]>::to_vec));
    }
    // Nothing goes where the user has staged something of another kind.
    let added: Vec<_> = steps
        .iter()
        .filter_map(|step| match (step.base, step.theirs) {
            (None, Some((kind, id))) => Some((step.path.as_slice(), u32::from(kind as u16), id)),
            _ => None,
        })
        .filter(|(path, ..)| {
            let covered = above(path).any(|dir| known.contains(dir));
            !covered && !known.contains(*path) && !leading.contains(*path)
        })
        .collect();
    for (position, (kind, id)) in &replaced {
        index.replace(*position, u32::from(*kind as u16), *id);
    }
    index.remove(|entry| removed.contains(entry.path));
    let changed = !(replaced.is_empty() && removed.is_empty() && added.is_empty());
    index.insert(added.into_iter());
    changed
}

/// Iterates over the directories that lead to a path.
fn above(path: &[u8]) -> impl Iterator<Item = &[u8]> {
    path.find_iter(b"/").map(|slash| &path[..slash])
}

fn kind(word: u32) -> EntryKind {
    match word {
        mode::EXECUTABLE => EntryKind::BlobExecutable,
        mode::SYMLINK => EntryKind::Link,
        mode::GITLINK => EntryKind::Commit,
        _ => EntryKind::Blob,
    }
}
