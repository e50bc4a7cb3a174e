//! Writing real roots on a disk in memory, by the same moves as on a real
//! one: what comes is staged in a slot, what goes comes to lie in a slot, and
//! how far a job is shows in the slots alone.

use std::path::{Path, PathBuf};

use async_trait::async_trait;
use sandbar_domain::apply::PathOp;
use sandbar_domain::resource::Root;
use sandbar_domain::{Code, Entry, Kind, RelPath};
use sandbar_ports::git::Contents as _;
use sandbar_ports::progress::Stage;
use sandbar_ports::target::{Executed, Job, Kept, KeptFile, KeptPlace, RootLock, Takeout, Targets};
use sandbar_ports::{PortError, PortResult};

use super::disk::{Disk, MemDisk, What, fail};
use super::objects::MemObjects;

/// Changes roots on a disk.
#[derive(Debug, Clone)]
pub struct MemTargets {
    disk: MemDisk,
    objects: MemObjects,
    data: PathBuf,
}

impl MemTargets {
    /// Keeps displaced bytes below `data`.
    pub fn new(disk: &MemDisk, objects: &MemObjects, data: &Path) -> Self {
        Self {
            disk: disk.clone(),
            objects: objects.clone(),
            data: data.to_owned(),
        }
    }
}

/// A lock on a directory of the disk.
#[derive(Debug)]
struct MemLock {
    disk: MemDisk,
    inode: u64,
}

impl RootLock for MemLock {}

impl Drop for MemLock {
    fn drop(&mut self) {
        self.disk.hold().locks.remove(&self.inode);
    }
}

#[async_trait]
impl Targets for MemTargets {
    async fn lock(&self, root: Root) -> PortResult<Box<dyn RootLock>> {
        let mut disk = self.disk.hold();
        disk.check_root(&root)?;
        if !disk.locks.insert(root.inode) {
            return Err(PortError::new(
                Code::RootBusy,
                format!("lock {}: another apply holds it", root.path.display()),
            ));
        }
        Ok(Box::new(MemLock {
            disk: self.disk.clone(),
            inode: root.inode,
        }))
    }

    async fn observe(&self, root: Root, paths: Vec<RelPath>) -> PortResult<Vec<Option<Entry>>> {
        let disk = self.disk.hold();
        disk.check_root(&root)?;
        let look = |path: &RelPath| {
            let Some(node) = disk.get(&root.path.join(path)) else {
                return Ok(None);
            };
            let entry = node.what.entry().ok_or_else(|| {
                PortError::new(
                    Code::UnsupportedEntry,
                    format!("read {path}: it is a special file"),
                )
                .with_subjects([path.as_str()])
            })?;
            if let Some(bytes) = node.what.content() {
                self.objects.put_now(bytes);
            }
            Ok(Some(entry))
        };
        paths.iter().map(look).collect()
    }

    async fn preflight(
        &self,
        root: Root,
        _git_common_dir: Option<PathBuf>,
        ops: Vec<PathOp>,
    ) -> PortResult<KeptPlace> {
        let disk = self.disk.hold();
        disk.check_root(&root)?;
        let read_only = disk.read_only.iter().any(|dir| root.path.starts_with(dir));
        if read_only {
            return Err(fail(
                Code::ReadOnly,
                &root.path,
                "the file system is read-only",
            ));
        }
        let problems: Vec<(Code, String)> = ops
            .iter()
            .filter_map(|op| problem(&disk, &root.path, op, &ops))
            .collect();
        if let Some((code, first)) = problems.first() {
            let error = PortError::new(*code, format!("write {first}"));
            return Err(error.with_subjects(problems.iter().map(|(_, text)| text)));
        }
        for op in &ops {
            if let PathOp::Create { new, .. } | PathOp::Replace { new, .. } = op {
                self.objects.read(new.hash)?;
            }
        }
        Ok(KeptPlace {
            dir: self.data.join("kept"),
        })
    }

    async fn stage(&self, job: Job) -> PortResult<()> {
        let mut disk = self.disk.hold();
        disk.check_root(&job.root)?;
        let slots = Slots::of(&job);
        if disk.is_dir(&slots.old) || disk.is_dir(&slots.kept) {
            return Err(illegal("stage", &job, "the job was executed"));
        }
        disk.remove(&slots.new)?;
        disk.make_dirs(&slots.new)?;
        let total = job.ops.len() as u64;
        for (index, op) in job.ops.iter().enumerate() {
            job.cancel.check()?;
            let slot = slots.new.join(index.to_string());
            match op {
                PathOp::Create { new, .. } | PathOp::Replace { new, .. } => {
                    let bytes = self.objects.read(new.hash)?;
                    disk.add(&slot, What::of(new.kind, bytes))?;
                }
                PathOp::MakeDir { .. } | PathOp::RemoveDir { .. } => {
                    disk.add(&slot, What::Directory)?;
                }
                PathOp::SetMode { .. } | PathOp::Remove { .. } => {}
            }
            job.progress.update(Stage::Stage, index as u64 + 1, total);
        }
        Ok(())
    }

    async fn execute(&self, job: Job) -> PortResult<Executed> {
        let mut disk = self.disk.hold();
        disk.check_root(&job.root)?;
        let slots = Slots::of(&job);
        let over = disk.is_dir(&slots.kept)
            || !disk.is_dir(&job.dir) && job.ops.iter().all(|op| fits(&disk, &job, op));
        if over {
            let done = job.ops.iter().map(|op| op.path().clone()).collect();
            return Ok(Executed {
                done,
                ..Executed::default()
            });
        }
        if !disk.is_dir(&slots.new) {
            return Err(illegal("execute", &job, "it is not staged"));
        }
        disk.make_dirs(&slots.old)?;
        let mut out = Executed::default();
        let total = job.ops.len() as u64;
        for (index, op) in job.ops.iter().enumerate() {
            let ended = perform(&mut disk, &job, &slots, index, op);
            if !note(&mut out, op.path(), ended) {
                break;
            }
            job.progress.update(Stage::Apply, index as u64 + 1, total);
        }
        Ok(out)
    }

    async fn undo(&self, job: Job) -> PortResult<Executed> {
        let mut disk = self.disk.hold();
        disk.check_root(&job.root)?;
        let slots = Slots::of(&job);
        if disk.is_dir(&slots.kept) {
            return Err(illegal("undo", &job, "it was settled"));
        }
        let mut out = Executed::default();
        if !disk.is_dir(&slots.old) || !disk.is_dir(&slots.new) {
            return Ok(out);
        }
        for (index, op) in job.ops.iter().enumerate().rev() {
            let ended = take_back(&mut disk, &job, &slots, index, op);
            note(&mut out, op.path(), ended);
        }
        Ok(out)
    }

    async fn sweep(&self, job: Job) -> PortResult<()> {
        let mut disk = self.disk.hold();
        let slots = Slots::of(&job);
        clear_new(&mut disk, &job, &slots)?;
        remove_if_empty(&mut disk, &job, &slots)
    }

    async fn forget(&self, dir: PathBuf) -> PortResult<()> {
        let placed = dir.parent().is_some_and(|place| place.ends_with("kept"));
        let named = dir.file_name().and_then(|name| name.to_str());
        if !placed || named.is_none_or(|name| name.parse::<sandbar_domain::JournalId>().is_err()) {
            let message = format!("remove {}: it is no job of a kept place", dir.display());
            return Err(PortError::new(Code::PathEscapes, message));
        }
        self.disk.hold().remove(&dir).map(|_| ())
    }

    async fn settle(&self, job: Job) -> PortResult<Vec<Kept>> {
        let mut disk = self.disk.hold();
        let slots = Slots::of(&job);
        if !disk.is_dir(&job.dir) {
            return Ok(Vec::new());
        }
        if !disk.is_dir(&slots.kept) {
            if !disk.is_dir(&slots.old) {
                return Err(illegal("settle", &job, "it was never executed"));
            }
            disk.rename(&slots.old, &slots.kept)?;
        }
        clear_new(&mut disk, &job, &slots)?;
        let mut out = Vec::new();
        for (index, op) in job.ops.iter().enumerate() {
            let (PathOp::Replace { path, old, .. } | PathOp::Remove { path, old }) = op else {
                continue;
            };
            let at = slots.kept.join(index.to_string());
            if let Some(there) = entry_at(&disk, &at) {
                out.push(Kept {
                    path: path.clone(),
                    entry: *old,
                    hash: there.hash,
                    at,
                });
            }
        }
        remove_if_empty(&mut disk, &job, &slots)?;
        Ok(out)
    }

    async fn kept(&self, job: Job) -> PortResult<Vec<KeptFile>> {
        let disk = self.disk.hold();
        let slots = Slots::of(&job);
        let mut out = Vec::new();
        for (index, op) in job.ops.iter().enumerate() {
            let (PathOp::Replace { path, old, .. } | PathOp::Remove { path, old }) = op else {
                continue;
            };
            for home in [&slots.kept, &slots.old, &slots.new] {
                let at = home.join(index.to_string());
                let Some(bytes) = disk.get(&at).and_then(|node| node.what.content()) else {
                    continue;
                };
                let staged = match op {
                    PathOp::Replace { new, .. } => is(&disk, &at, *new),
                    _ => false,
                };
                if staged && *home == slots.new {
                    continue;
                }
                out.push(KeptFile {
                    index,
                    path: path.clone(),
                    entry: *old,
                    size: bytes.len() as u64,
                    at,
                });
            }
        }
        Ok(out)
    }

    async fn read_out(&self, what: Takeout) -> PortResult<Vec<u8>> {
        let disk = self.disk.hold();
        let kept = what.at.as_ref().filter(|at| is(&disk, at, what.entry));
        if let Some(bytes) = kept.and_then(|at| disk.get(at)?.what.content()) {
            return Ok(bytes.to_vec());
        }
        self.objects.read(what.entry.hash).map_err(|error| {
            let message = format!("read {}: its bytes are gone", what.entry.hash);
            PortError::new(Code::KeptGone, message).with_source(error)
        })
    }

    async fn copy_out(&self, what: Takeout, to: PathBuf) -> PortResult<()> {
        let bytes = self.read_out(what.clone()).await?;
        let mut disk = self.disk.hold();
        if disk.get(&to).is_some() {
            return Err(fail(Code::Exists, &to, "something is there already"));
        }
        if let Some(parent) = to.parent() {
            disk.make_dirs(parent)?;
        }
        disk.add(&to, What::of(what.entry.kind, bytes))
    }
}

/// The directories of a job: what is to come, what was displaced, and the
/// name of the latter once the job is over.
struct Slots {
    new: PathBuf,
    old: PathBuf,
    kept: PathBuf,
}

impl Slots {
    fn of(job: &Job) -> Self {
        Self {
            new: job.dir.join("new"),
            old: job.dir.join("old"),
            kept: job.dir.join("kept"),
        }
    }
}

/// How one operation ended.
enum Ended {
    Done,
    Raced,
    Left,
}

fn note(out: &mut Executed, path: &RelPath, ended: PortResult<Ended>) -> bool {
    match ended {
        Ok(Ended::Done) => out.done.push(path.clone()),
        Ok(Ended::Left) => out.left.push(path.clone()),
        Ok(Ended::Raced) => {
            out.raced.push(path.clone());
            return false;
        }
        Err(error) => {
            out.failed.push((path.clone(), error.to_string()));
            return false;
        }
    }
    true
}

fn entry_at(disk: &Disk, path: &Path) -> Option<Entry> {
    disk.get(path).and_then(|node| node.what.entry())
}

fn is(disk: &Disk, path: &Path, entry: Entry) -> bool {
    entry_at(disk, path) == Some(entry)
}

/// Says whether a file or symlink is there: what one operation may displace.
fn displaceable(disk: &Disk, path: &Path) -> bool {
    disk.get(path)
        .is_some_and(|node| node.what.content().is_some())
}

/// Says whether the target of an operation is as after it.
fn fits(disk: &Disk, job: &Job, op: &PathOp) -> bool {
    let at = job.root.path.join(op.path());
    match op {
        PathOp::MakeDir { .. } => disk.is_dir(&at),
        PathOp::Create { new, .. } | PathOp::Replace { new, .. } | PathOp::SetMode { new, .. } => {
            is(disk, &at, *new)
        }
        PathOp::Remove { old, .. } => !is(disk, &at, *old),
        PathOp::RemoveDir { .. } => true,
    }
}

fn perform(
    disk: &mut Disk,
    job: &Job,
    slots: &Slots,
    index: usize,
    op: &PathOp,
) -> PortResult<Ended> {
    let at = job.root.path.join(op.path());
    let staged = slots.new.join(index.to_string());
    let parent = at.parent().is_some_and(|dir| disk.is_dir(dir));
    match op {
        PathOp::MakeDir { .. } | PathOp::Create { .. } => {
            if disk.get(&staged).is_none() {
                return Ok(Ended::Done);
            }
            if matches!(op, PathOp::MakeDir { .. }) && disk.is_dir(&at) {
                return Ok(Ended::Done);
            }
            if !parent || disk.get(&at).is_some() {
                return Ok(Ended::Raced);
            }
            disk.rename(&staged, &at)?;
            Ok(Ended::Done)
        }
        PathOp::Replace { old, new, .. } => {
            if is(disk, &staged, *new) {
                if !displaceable(disk, &at) {
                    return Ok(Ended::Raced);
                }
                disk.exchange(&staged, &at)?;
            }
            if is(disk, &staged, *old) || is(disk, &staged, *new) {
                return Ok(Ended::Done);
            }
            if is(disk, &at, *new) {
                disk.exchange(&staged, &at)?;
            }
            Ok(Ended::Raced)
        }
        PathOp::SetMode { old, new, .. } => set_mode(disk, &at, *old, *new),
        PathOp::Remove { old, .. } => {
            let kept = slots.old.join(index.to_string());
            if disk.get(&kept).is_none() {
                match disk.get(&at) {
                    None => return Ok(Ended::Done),
                    Some(_) if !displaceable(disk, &at) => return Ok(Ended::Raced),
                    Some(_) => disk.rename(&at, &kept)?,
                }
            }
            if is(disk, &kept, *old) {
                return Ok(Ended::Done);
            }
            if disk.get(&at).is_none() && parent {
                disk.rename(&kept, &at)?;
            }
            Ok(Ended::Raced)
        }
        PathOp::RemoveDir { .. } => remove_empty(disk, &at),
    }
}

fn take_back(
    disk: &mut Disk,
    job: &Job,
    slots: &Slots,
    index: usize,
    op: &PathOp,
) -> PortResult<Ended> {
    let at = job.root.path.join(op.path());
    let staged = slots.new.join(index.to_string());
    let parent = at.parent().is_some_and(|dir| disk.is_dir(dir));
    match op {
        PathOp::MakeDir { .. } if disk.get(&staged).is_some() => Ok(Ended::Done),
        PathOp::MakeDir { .. } => remove_empty(disk, &at),
        PathOp::Create { new, .. } => {
            if disk.get(&staged).is_some() || disk.get(&at).is_none() {
                return Ok(Ended::Done);
            }
            if !is(disk, &at, *new) {
                return Ok(Ended::Raced);
            }
            disk.rename(&at, &staged)?;
            Ok(Ended::Done)
        }
        PathOp::Replace { new, .. } => {
            if is(disk, &staged, *new) {
                return Ok(Ended::Done);
            }
            if !is(disk, &at, *new) {
                return Ok(Ended::Raced);
            }
            disk.exchange(&staged, &at)?;
            Ok(Ended::Done)
        }
        PathOp::SetMode { old, new, .. } => set_mode(disk, &at, *new, *old),
        PathOp::Remove { .. } => {
            let kept = slots.old.join(index.to_string());
            if disk.get(&kept).is_none() {
                return Ok(Ended::Done);
            }
            if !parent || disk.get(&at).is_some() {
                return Ok(Ended::Raced);
            }
            disk.rename(&kept, &at)?;
            Ok(Ended::Done)
        }
        PathOp::RemoveDir { .. } => {
            if disk.is_dir(&at) || disk.get(&staged).is_none() {
                return Ok(Ended::Done);
            }
            if !parent || disk.get(&at).is_some() {
                return Ok(Ended::Raced);
            }
            disk.rename(&staged, &at)?;
            Ok(Ended::Done)
        }
    }
}

fn set_mode(disk: &mut Disk, at: &Path, from: Entry, to: Entry) -> PortResult<Ended> {
    match entry_at(disk, at) {
        Some(there) if there == to => Ok(Ended::Done),
        Some(there) if there == from => {
            disk.set_executable(at, to.kind == Kind::Executable)?;
            Ok(Ended::Done)
        }
        _ => Ok(Ended::Raced),
    }
}

fn remove_empty(disk: &mut Disk, at: &Path) -> PortResult<Ended> {
    if !disk.is_dir(at) {
        return Ok(Ended::Done);
    }
    if !disk.names(at).is_empty() {
        return Ok(Ended::Left);
    }
    disk.remove(at)?;
    Ok(Ended::Done)
}

/// Empties and removes `new`; what was not put there goes to the kept slots.
fn clear_new(disk: &mut Disk, job: &Job, slots: &Slots) -> PortResult<()> {
    let kept = [&slots.kept, &slots.old];
    let home = kept.into_iter().find(|dir| disk.is_dir(dir)).cloned();
    for (index, op) in job.ops.iter().enumerate() {
        let slot = slots.new.join(index.to_string());
        let staged = match op {
            PathOp::Replace { new, .. } | PathOp::Create { new, .. } => Some(*new),
            _ => None,
        };
        if let (Some(home), Some(staged)) = (&home, staged)
            && disk.get(&slot).is_some()
            && !is(disk, &slot, staged)
        {
            disk.rename(&slot, &home.join(index.to_string()))?;
        }
    }
    disk.remove(&slots.new).map(|_| ())
}

fn remove_if_empty(disk: &mut Disk, job: &Job, slots: &Slots) -> PortResult<()> {
    for dir in [&slots.old, &slots.kept, &job.dir] {
        remove_empty(disk, dir)?;
    }
    Ok(())
}

/// Says why an operation cannot be done, given what the others will do.
fn problem(disk: &Disk, root: &Path, op: &PathOp, all: &[PathOp]) -> Option<(Code, String)> {
    let path = op.path();
    let at = root.join(path);
    let drift = |why: &str| Some((Code::Drift, format!("{path}: {why}")));
    let made = |dir: &RelPath| {
        let mut ops = all.iter();
        ops.any(|op| matches!(op, PathOp::MakeDir { path } if path == dir))
    };
    let gone = |what: &RelPath| {
        let mut ops = all.iter();
        ops.any(|op| match op {
            PathOp::Remove { path, .. } | PathOp::RemoveDir { path } => path == what,
            _ => false,
        })
    };
    if let Some(dir) = path.parent()
        && !disk.is_dir(&root.join(&dir))
    {
        if made(&dir) {
            return None;
        }
        let above = root.join(&dir);
        let link = above.ancestors().any(|part| {
            let what = disk.get(part).map(|node| &node.what);
            matches!(what, Some(What::Symlink(_)))
        });
        if link {
            let why = format!("{path}: a symbolic link is in the way");
            return Some((Code::PathEscapes, why));
        }
        return drift("its directory is gone");
    }
    let there = disk.get(&at).map(|node| &node.what);
    match (op, there) {
        (PathOp::MakeDir { .. } | PathOp::Create { .. } | PathOp::RemoveDir { .. }, None) => None,
        (PathOp::MakeDir { .. }, Some(What::Directory)) => None,
        (PathOp::MakeDir { .. } | PathOp::Create { .. }, Some(_)) if gone(path) => None,
        (PathOp::MakeDir { .. } | PathOp::Create { .. }, Some(_)) => {
            drift("something is there already")
        }
        (PathOp::RemoveDir { .. }, Some(_)) => None,
        (PathOp::Replace { .. } | PathOp::SetMode { .. } | PathOp::Remove { .. }, None) => {
            drift("it is gone")
        }
        (
            PathOp::Replace { old, .. } | PathOp::SetMode { old, .. } | PathOp::Remove { old, .. },
            Some(what),
        ) => {
            let word = what.entry().map(|entry| entry.kind.word());
            (word != Some(old.kind.word())).then(|| {
                let why = format!("{path}: it became another type");
                (Code::Drift, why)
            })
        }
    }
}

fn illegal(verb: &str, job: &Job, why: &str) -> PortError {
    PortError::new(
        Code::IllegalState,
        format!("{verb} {}: {why}", job.dir.display()),
    )
}
