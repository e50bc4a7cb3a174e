//! What must be remembered: plans, sandboxes, checkpoints, journal.
//!
//! Every mutating call is one durable transaction. Order comes from sequence
//! numbers that the store gives out, never from clocks or ids. Whatever is
//! saved comes back equal: paths byte by byte, whole numbers in full range.
//!
//! Errors of every call beside its own: `store_unavailable` (retryable when
//! held too long or unreachable; indeterminate when the connection broke after
//! the commit was sent), `corrupt_store`, `read_only`, `no_space`, `io`;
//! `plan_not_found` when a record names a plan that is not there; `usage` for
//! a text with a NUL character; `internal` for an id that is taken or a
//! resource or sandbox that is not there. After an error that is not
//! indeterminate nothing has changed.

use std::path::PathBuf;

use async_trait::async_trait;
use sandbar_domain::journal::{JournalKind, Phase};
use sandbar_domain::plan::PlanState;
use sandbar_domain::resource::{Resource, Root, Strategy};
use sandbar_domain::{CheckpointId, Hash, JournalId, PlanId, RelPath, ResourceId, SandboxId};

use crate::error::PortResult;
use crate::exec::{Owner, View};

/// Remembers plans and what belongs to them.
#[async_trait]
pub trait Store: Send + Sync {
    /// Returns the resource of this type at this path, registering it with
    /// `new.id` if there is none. A resource found keeps its id and gets the
    /// new root, which was made anew where device or inode differ. A root that
    /// was moved is a new resource: file systems give inodes out again, so
    /// they do not prove that two paths are one place.
    async fn register(&self, new: Resource) -> PortResult<Resource>;

    /// Returns one resource.
    async fn resource(&self, id: ResourceId) -> PortResult<Option<Resource>>;

    /// Adds a plan; returns it with its sequence number. Errors: `name_in_use`
    /// when a plan that is not discarded has that name.
    async fn add_plan(&self, plan: NewPlan) -> PortResult<PlanRecord>;

    /// Returns every plan, oldest first.
    async fn plans(&self) -> PortResult<Vec<PlanRecord>>;

    /// Returns one plan.
    async fn plan(&self, id: PlanId) -> PortResult<Option<PlanRecord>>;

    /// Finds plans by exact name (one that is not discarded, else the newest
    /// discarded one), else by id prefix (case ignored, oldest first); several
    /// only for an ambiguous prefix. An empty text is no prefix.
    async fn find_plans(&self, text: String) -> PortResult<Vec<PlanRecord>>;

    /// Returns the newest plan, by sequence, on a resource, discarded or not:
    /// what `@` means must not change because the plan it meant was dropped.
    async fn newest_plan(&self, resource: ResourceId) -> PortResult<Option<PlanRecord>>;

    /// Moves a plan from one state to another and sets its owner, if state
    /// and owner are still the expected ones. Errors: `plan_busy` (with the
    /// owner named) when they are not; `name_in_use` when it leaves the
    /// discarded state and its name was taken since. Whether the move makes
    /// sense is for the domain to say.
    async fn move_plan(
        &self,
        id: PlanId,
        from: PlanMark,
        to: PlanMark,
        now_ms: i64,
    ) -> PortResult<PlanRecord>;

    /// Forgets a plan that never came to be, with its sandboxes: one without
    /// checkpoints and journal entries. A plan that is not there is fine.
    /// Errors: `illegal_state` for a plan with a past.
    async fn forget_plan(&self, id: PlanId) -> PortResult<()>;

    /// Adds a sandbox. Errors: `illegal_state` when the plan has one for that
    /// resource (SBX-6).
    async fn add_sandbox(&self, sandbox: SandboxRecord) -> PortResult<()>;

    /// Replaces the record of a sandbox; its place in the order stays.
    async fn update_sandbox(&self, sandbox: SandboxRecord) -> PortResult<()>;

    /// Returns the sandboxes of a plan, oldest first.
    async fn sandboxes(&self, plan: PlanId) -> PortResult<Vec<SandboxRecord>>;

    /// Adds a checkpoint; the store gives it the plan's next number, from 1.
    async fn add_checkpoint(&self, checkpoint: NewCheckpoint) -> PortResult<CheckpointRecord>;

    /// Returns the checkpoints of a plan, oldest first.
    async fn checkpoints(&self, plan: PlanId) -> PortResult<Vec<CheckpointRecord>>;

    /// Forgets checkpoints of a plan by number; missing ones are no error.
    async fn drop_checkpoints(&self, plan: PlanId, sequence: Vec<u64>) -> PortResult<()>;

    /// Opens a journal entry; the sequence number in it is ignored.
    async fn open_journal(&self, entry: JournalRecord) -> PortResult<JournalRecord>;

    /// Moves an entry from one phase to the next and replaces its operations,
    /// payload and owner, together with the plan's state where `plan` is
    /// given: one transaction. Errors: `illegal_state` when there is no such
    /// entry, it is not in phase `from`, or `to` may not follow; as
    /// [`Store::move_plan`] for the plan.
    async fn advance_journal(&self, step: JournalStep) -> PortResult<JournalRecord>;

    /// Returns journal entries, oldest first: the open ones, or all of a plan.
    async fn journal(&self, of: JournalQuery) -> PortResult<Vec<JournalRecord>>;

    /// Checks the store itself; returns what is wrong with it.
    async fn check(&self) -> PortResult<Vec<String>>;
}

/// State and owner of a plan, for compare-and-swap.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlanMark {
    /// The state.
    pub state: PlanState,
    /// The process that drives it; none at rest.
    pub owner: Option<Owner>,
}

/// A plan to add.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewPlan {
    /// Its id.
    pub id: PlanId,
    /// Its name, unique among plans that are not discarded.
    pub name: String,
    /// The resource it is on.
    pub resource: ResourceId,
    /// State and owner.
    pub mark: PlanMark,
    /// Settings that go with it, opaque to the store (JSON).
    pub settings: String,
    /// Milliseconds since 1970.
    pub created_ms: i64,
}

/// A plan as remembered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlanRecord {
    /// Its place in the order of plans.
    pub sequence: u64,
    /// What was added.
    pub plan: NewPlan,
    /// Milliseconds since 1970 of the last change of state.
    pub changed_ms: i64,
}

/// A sandbox as remembered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SandboxRecord {
    /// Its id.
    pub id: SandboxId,
    /// The plan it belongs to.
    pub plan: PlanId,
    /// The boundary it is a copy of.
    pub resource: ResourceId,
    /// How.
    pub strategy: Strategy,
    /// How far its life is.
    pub state: SandboxState,
    /// The directory that holds everything of it.
    pub place: PathBuf,
    /// Its root, once made.
    pub root: Option<Root>,
    /// The view that its commands have.
    pub view: View,
    /// The base snapshot's id (an object).
    pub base: Option<Hash>,
    /// HEAD at base: branch and commit.
    pub base_branch: Option<String>,
    /// The commit of HEAD at base.
    pub base_head: Option<String>,
    /// The object with the saved ignore rules.
    pub rules: Option<Hash>,
    /// Ignored paths at base.
    pub ignored: u64,
    /// Binds of the in-place view.
    pub binds: Vec<(PathBuf, PathBuf)>,
    /// Conflicts that an update left inside to be settled: each path, and the
    /// file that shows it, which is the same where it has markers.
    pub unsettled: Vec<(RelPath, RelPath)>,
}

/// How far the life of a sandbox is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SandboxState {
    /// Being made; a dead owner's is abandoned.
    Creating,
    /// Usable.
    Ready,
    /// Being put back to its newest checkpoint; after a crash that goes on.
    Restoring,
    /// Its root was cleaned up; its checkpoints stay.
    Cleaned,
}

impl SandboxState {
    /// Returns the stored word.
    pub fn word(self) -> &'static str {
        match self {
            Self::Creating => "creating",
            Self::Ready => "ready",
            Self::Restoring => "restoring",
            Self::Cleaned => "cleaned",
        }
    }

    /// Reads the word back.
    pub fn from_word(word: &str) -> Option<Self> {
        [Self::Creating, Self::Ready, Self::Restoring, Self::Cleaned]
            .into_iter()
            .find(|s| s.word() == word)
    }
}

/// A checkpoint to add: one consistent cut over a plan's sandboxes (CKP-2).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewCheckpoint {
    /// Its id.
    pub id: CheckpointId,
    /// The plan.
    pub plan: PlanId,
    /// For each sandbox: the snapshot object and the hidden commit.
    pub parts: Vec<CheckpointPart>,
    /// What a person called it.
    pub message: Option<String>,
    /// What it was taken for: `base`, `before`, `after`, `manual`, `rollback`.
    pub step: String,
    /// Milliseconds since 1970.
    pub created_ms: i64,
}

/// One sandbox in a checkpoint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CheckpointPart {
    /// The sandbox.
    pub sandbox: SandboxId,
    /// The snapshot object.
    pub snapshot: Hash,
    /// The hidden commit, for a checkout.
    pub commit: Option<String>,
}

/// A checkpoint as remembered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CheckpointRecord {
    /// Its number in the plan, from 1, never reused.
    pub sequence: u64,
    /// What was added.
    pub checkpoint: NewCheckpoint,
}

/// A journal entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JournalRecord {
    /// Its id.
    pub id: JournalId,
    /// Its place in the order; the store sets it.
    pub sequence: u64,
    /// The version of the payload's form.
    pub version: u32,
    /// What it does.
    pub kind: JournalKind,
    /// How far it is.
    pub phase: Phase,
    /// The plan.
    pub plan: PlanId,
    /// The process at work on it.
    pub owner: Option<Owner>,
    /// The object with the list of operations, once decided.
    pub ops: Option<Hash>,
    /// What else is needed to go on, opaque to the store (JSON).
    pub payload: String,
}

/// One step of a journal entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JournalStep {
    /// The entry.
    pub id: JournalId,
    /// The phase it is in.
    pub from: Phase,
    /// The phase it goes to; may be the same, to replace the payload.
    pub to: Phase,
    /// The object with the list of operations.
    pub ops: Option<Hash>,
    /// The new payload.
    pub payload: String,
    /// The new owner.
    pub owner: Option<Owner>,
    /// The plan's move that goes with it: from, to, milliseconds since 1970.
    pub plan: Option<(PlanMark, PlanMark, i64)>,
}

/// Which journal entries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JournalQuery {
    /// Those that are not over.
    Open,
    /// All of one plan.
    OfPlan(PlanId),
}
