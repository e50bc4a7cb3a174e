//! Kept bytes: whatever an apply, an undo or a rollback displaced can be
//! found, printed, and copied to a new place (STR-9). Nothing here changes what
//! is kept, and nothing is ever overwritten.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use sandbar_domain::journal::JournalKind;
use sandbar_domain::{Code, Entry, Hash, Kind, RelPath};
use sandbar_ports::store::{CheckpointRecord, JournalQuery, PlanRecord};
use sandbar_ports::target::{Job, Takeout};
use sandbar_ports::{Cancel, PortError, PortResult, Silent};

use crate::Sandbar;
use crate::apply::{Payload, below_root};

/// What displaced something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Displacer {
    /// An apply, in the real root.
    Apply,
    /// An undo, in the real root.
    Undo,
    /// A rollback, in the sandbox: a checkpoint holds it.
    Rollback,
}

impl Displacer {
    /// Returns the word of the output contract.
    pub fn word(self) -> &'static str {
        match self {
            Self::Apply => "apply",
            Self::Undo => "undo",
            Self::Rollback => "rollback",
        }
    }
}

/// Displaced bytes of one path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeptItem {
    /// How it is named: the number of the operation's entry and its place in
    /// it, or the number of a checkpoint and the path.
    pub id: String,
    /// The name of the plan.
    pub plan: String,
    /// What displaced it.
    pub by: Displacer,
    /// Where it was.
    pub path: RelPath,
    /// What it was.
    pub entry: Entry,
    /// Its length, where it is kept as a file.
    pub size: Option<u64>,
    /// Where it lies; none for what a checkpoint holds.
    pub at: Option<PathBuf>,
    /// When it may be collected, in milliseconds since 1970; none while the
    /// plan lives.
    pub until_ms: Option<i64>,
}

/// Which kept bytes are meant.
#[derive(Debug, Clone)]
pub struct KeptRequest {
    /// The id of one, or the name of a plan.
    pub what: String,
    /// Where it was, below the root; as a person types it.
    pub path: Option<PathBuf>,
    /// From a checkpoint of the plan, by number or id, instead.
    pub checkpoint: Option<String>,
    /// The caller's directory.
    pub cwd: PathBuf,
}

/// One that was copied out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Restored {
    /// What.
    pub item: KeptItem,
    /// Where to.
    pub to: PathBuf,
}

impl Sandbar {
    /// Lists what is kept of one plan, or of all, in the order in which it was
    /// displaced.
    pub async fn kept(&self, plan: Option<&str>, cwd: &Path) -> PortResult<Vec<KeptItem>> {
        let plans = match plan {
            Some(plan) => vec![self.find_plan(plan, cwd).await?],
            None => self.parts.store.plans().await?,
        };
        let mut items = Vec::new();
        for plan in &plans {
            items.extend(self.kept_of(plan).await?);
            items.extend(self.rolled_back(plan).await?);
        }
        Ok(items)
    }

    /// Returns the bytes that are meant. Of several at one path the newest.
    /// Errors: `path_not_found`, `kept_gone`.
    pub async fn kept_bytes(&self, request: &KeptRequest) -> PortResult<Vec<u8>> {
        let mut items = self.chosen(request).await?;
        let newest = items.pop().expect("what is not found is an error");
        if !items.is_empty() {
            let ids: Vec<&str> = items.iter().map(|item| item.id.as_str()).collect();
            (self.around.say)(&format!(
                "the newest of several, {}; the others are {}",
                newest.id,
                ids.join(", ")
            ));
        }
        self.parts.targets.read_out(taken(&newest)).await
    }

    /// Copies what is meant to a new place: `to`, else a name in the caller's
    /// directory that says what it is. Without a path, everything that is kept
    /// of a plan, into a new directory. Errors: `exists`, and nothing more is
    /// copied then; `path_not_found`, `kept_gone`.
    pub async fn restore_kept(
        &self,
        request: &KeptRequest,
        to: Option<&Path>,
    ) -> PortResult<Vec<Restored>> {
        let mut items = self.chosen(request).await?;
        let all = request.path.is_none() && !is_id(&request.what);
        let place = |name: String| request.cwd.join(to.unwrap_or(Path::new(&name)));
        let mut done = Vec::new();
        if !all {
            let item = items.pop().expect("what is not found is an error");
            let name = format!("{}.kept-{}", item.path.name(), plain(&item.id));
            let to = place(name);
            self.parts
                .targets
                .copy_out(taken(&item), to.clone())
                .await?;
            return Ok(vec![Restored { item, to }]);
        }
        let dir = place(format!("{}.kept", request.what.replace('@', "newest")));
        let mut taken_paths = BTreeSet::new();
        // The first at each path is what was there before the plan.
        for item in items {
            let to = match taken_paths.insert(item.path.clone()) {
                true => dir.join(&item.path),
                false => dir.join(format!("{}.kept-{}", item.path, plain(&item.id))),
            };
            self.parts
                .targets
                .copy_out(taken(&item), to.clone())
                .await?;
            done.push(Restored { item, to });
        }
        Ok(done)
    }

    /// Finds what a request means; never nothing.
    async fn chosen(&self, request: &KeptRequest) -> PortResult<Vec<KeptItem>> {
        let what = &request.what;
        if request.path.is_none() && is_id(what) {
            let all = self.kept(None, &request.cwd).await?;
            let found: Vec<_> = all.into_iter().filter(|item| item.id == *what).collect();
            if found.is_empty() {
                let message = format!("find {what}: nothing of that id is kept");
                return Err(PortError::new(Code::PathNotFound, message)
                    .with_hint("`sandbar kept list` shows what is kept"));
            }
            return Ok(found);
        }
        let plan = self.find_plan(what, &request.cwd).await?;
        if let Some(checkpoint) = &request.checkpoint {
            return self.of_checkpoint(&plan, checkpoint, request).await;
        }
        let mut items = self.kept_of(&plan).await?;
        let name = &plan.plan.name;
        if let Some(path) = &request.path {
            let rel = self.meant(&plan, path, &request.cwd).await?;
            items.retain(|item| item.path == rel);
            if items.is_empty() {
                let message =
                    format!("find what is kept of {rel}: plan {name} displaced nothing there");
                return Err(PortError::new(Code::PathNotFound, message)
                    .with_subjects([rel.as_str()])
                    .with_hint(format!("`sandbar kept list {name}` shows what is kept")));
            }
        }
        if items.is_empty() {
            let message = format!("find what is kept of plan {name}: there is nothing");
            return Err(
                PortError::new(Code::PathNotFound, message).with_hint(format!(
                    "what a rollback replaced is a checkpoint: `sandbar log {name}`"
                )),
            );
        }
        Ok(items)
    }

    /// Reads a path as a person types it, or as the lists print it.
    async fn meant(&self, plan: &PlanRecord, path: &Path, cwd: &Path) -> PortResult<RelPath> {
        let sandbox = self.made_sandbox(plan).await?;
        let resource = self.resource_of(&sandbox).await?;
        let listed = path.to_str().map(RelPath::new).and_then(Result::ok);
        if !cwd.starts_with(&resource.root.path)
            && let Some(listed) = listed
        {
            return Ok(listed);
        }
        below_root(path, cwd, &resource, &sandbox)?.ok_or_else(|| {
            PortError::new(
                Code::PathNotFound,
                "find what is kept: name a file, not the root",
            )
        })
    }

    async fn of_checkpoint(
        &self,
        plan: &PlanRecord,
        text: &str,
        request: &KeptRequest,
    ) -> PortResult<Vec<KeptItem>> {
        let name = &plan.plan.name;
        let Some(path) = &request.path else {
            let message = format!("take a file from checkpoint {text}: name its path");
            return Err(PortError::new(Code::Usage, message).with_hint(format!(
                "`sandbar rollback {name} --to {text}` goes back to all of it"
            )));
        };
        let rel = self.meant(plan, path, &request.cwd).await?;
        let record = self.checkpoint_named(plan, text).await?;
        let tree = self.tree_of(&record).await?;
        let found = self.parts.objects.lookup(tree, vec![rel.clone()]).await?;
        let entry = found.into_iter().next().flatten();
        match entry.filter(|entry| entry.kind != Kind::Directory) {
            Some(entry) => Ok(vec![self.in_checkpoint(plan, &record, rel, entry)]),
            None => {
                let message = format!(
                    "find {rel} in checkpoint {}: there is no such file",
                    record.sequence
                );
                Err(PortError::new(Code::PathNotFound, message).with_subjects([rel.as_str()]))
            }
        }
    }

    async fn tree_of(&self, record: &CheckpointRecord) -> PortResult<Hash> {
        let part = record.checkpoint.parts.first().ok_or_else(|| {
            PortError::new(
                Code::CheckpointNotFound,
                "read a checkpoint: it holds nothing",
            )
        })?;
        Ok(self.snapshot(part.snapshot).await?.tree)
    }

    fn in_checkpoint(
        &self,
        plan: &PlanRecord,
        record: &CheckpointRecord,
        path: RelPath,
        entry: Entry,
    ) -> KeptItem {
        KeptItem {
            id: format!("c{}:{path}", record.sequence),
            plan: plan.plan.name.clone(),
            by: Displacer::Rollback,
            path,
            entry,
            size: None,
            at: None,
            until_ms: self.kept_until(plan),
        }
    }

    /// Lists the displaced files of a plan's journal.
    async fn kept_of(&self, plan: &PlanRecord) -> PortResult<Vec<KeptItem>> {
        let query = JournalQuery::OfPlan(plan.plan.id);
        let mut items = Vec::new();
        for entry in self.parts.store.journal(query).await? {
            // Collected with the plan's checkpoints: then its files are too.
            let Ok(ops) = self.operations(&entry).await else {
                continue;
            };
            let payload = Payload::decode(entry.version, &entry.payload)?;
            let job = Job {
                root: payload.root(),
                dir: payload.job,
                ops,
                sources: Default::default(),
                progress: std::sync::Arc::new(Silent),
                cancel: Cancel::new(),
            };
            let by = match entry.kind {
                JournalKind::Apply => Displacer::Apply,
                JournalKind::Undo => Displacer::Undo,
            };
            for kept in self.parts.targets.kept(job).await? {
                items.push(KeptItem {
                    id: format!("{}.{}", entry.sequence, kept.index),
                    plan: plan.plan.name.clone(),
                    by,
                    path: kept.path,
                    entry: kept.entry,
                    size: Some(kept.size),
                    at: Some(kept.at),
                    until_ms: self.kept_until(plan),
                });
            }
        }
        Ok(items)
    }

    /// Lists what rollbacks replaced in the sandbox: the checkpoint before
    /// each has it.
    async fn rolled_back(&self, plan: &PlanRecord) -> PortResult<Vec<KeptItem>> {
        let mut items = Vec::new();
        let all = self.parts.store.checkpoints(plan.plan.id).await?;
        for pair in all.windows(2) {
            let [replaced, returned] = pair else { continue };
            if returned.checkpoint.step != "returned" {
                continue;
            }
            let (old, new) = (self.tree_of(replaced).await?, self.tree_of(returned).await?);
            for change in self.parts.objects.diff(old, new).await? {
                let Some(entry) = change.old.filter(|old| old.kind != Kind::Directory) else {
                    continue;
                };
                items.push(self.in_checkpoint(plan, replaced, change.path, entry));
            }
        }
        Ok(items)
    }

    /// Says when `gc` may take what is kept of a plan.
    fn kept_until(&self, plan: &PlanRecord) -> Option<i64> {
        let over = plan.plan.mark.state.is_terminal();
        over.then(|| plan.changed_ms.saturating_add(self.config.retention_ms()))
    }
}

fn taken(item: &KeptItem) -> Takeout {
    Takeout {
        entry: item.entry,
        at: item.at.clone(),
    }
}

/// Says whether a text is an id of the lists: `12.0`. No plan that a person
/// names looks like it by chance; one that does is meant with a path.
fn is_id(text: &str) -> bool {
    let number = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    text.split_once('.')
        .is_some_and(|(entry, slot)| number(entry) && number(slot))
}

/// Returns an id as it can stand in a file name.
fn plain(id: &str) -> &str {
    id.split_once(':').map_or(id, |(checkpoint, _)| checkpoint)
}
