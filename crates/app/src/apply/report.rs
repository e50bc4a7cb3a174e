//! What an apply is asked, and what it answers.

use std::path::PathBuf;

use sandbar_domain::RelPath;
use sandbar_domain::apply::PathOp;
use sandbar_domain::resource::Resource;
use sandbar_ports::store::PlanRecord;

/// What `apply` is asked to do.
#[derive(Debug, Clone)]
pub struct ApplyRequest {
    /// The plan.
    pub plan: String,
    /// The caller's directory.
    pub cwd: PathBuf,
    /// Only these paths, with all below them: relative to `cwd`, or absolute.
    /// None: everything.
    pub paths: Vec<PathBuf>,
    /// Only these resources, by id or path. None: all.
    pub resources: Vec<String>,
    /// Decide and print, write nothing.
    pub dry_run: bool,
    /// How the result lands in a checkout.
    pub resulting: Resulting,
    /// Allow HEAD to be on another branch than at base.
    pub onto_current: bool,
    /// Allow commits of paths under filters and in repositories that sign.
    pub allow_filters: bool,
}

/// What `undo` is asked to do (APL-11).
#[derive(Debug, Clone)]
pub struct UndoRequest {
    /// The plan.
    pub plan: String,
    /// The caller's directory.
    pub cwd: PathBuf,
    /// Decide and print, write nothing.
    pub dry_run: bool,
    /// Allow HEAD to be on another branch than at the apply.
    pub onto_current: bool,
}

/// How a result lands in a checkout (APL-10).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Resulting {
    /// As uncommitted changes.
    Uncommitted,
    /// As commits on the current branch; the message of the last one.
    Commit(Option<String>),
    /// As commits on a new branch; the working tree is left alone.
    Branch(String, Option<String>),
}

/// How an apply ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// All new.
    Applied,
    /// What was asked for is new; the rest stays in the plan.
    PartiallyApplied,
    /// What was applied is taken back.
    Undone,
    /// Nothing was written: conflicts.
    Conflict,
    /// Nothing is left written: a failure was undone.
    Failed,
    /// Neither completed nor undone.
    NeedsAttention,
    /// Nothing was written, as asked.
    DryRun,
}

impl Outcome {
    /// Says whether what was asked for was done.
    pub fn is_done(self) -> bool {
        matches!(self, Self::Applied | Self::PartiallyApplied | Self::Undone)
    }

    /// Returns the word of the output contract.
    pub fn word(self) -> &'static str {
        match self {
            Self::Applied => "applied",
            Self::PartiallyApplied => "partially_applied",
            Self::Undone => "undone",
            Self::Conflict => "conflict",
            Self::Failed => "failed",
            Self::NeedsAttention => "needs_attention",
            Self::DryRun => "dry_run",
        }
    }
}

/// A path that stood in the way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Conflict {
    /// Where.
    pub path: String,
    /// Why: a word of the output contract, or a sentence.
    pub reason: String,
    /// Where displaced bytes are kept, if any were.
    pub kept: Option<PathBuf>,
}

/// What an apply did.
#[derive(Debug, Clone)]
pub struct ApplyReport {
    /// The plan, at rest again.
    pub plan: PlanRecord,
    /// The boundary.
    pub resource: Resource,
    /// How it ended.
    pub outcome: Outcome,
    /// The operations, done or (in a dry run) to be done.
    pub ops: Vec<PathOp>,
    /// Paths where the real tree held the result already.
    pub already: Vec<RelPath>,
    /// Changed paths that were not asked for and stay in the plan.
    pub rest: Vec<RelPath>,
    /// What stood in the way.
    pub conflicts: Vec<Conflict>,
    /// What a person should hear.
    pub warnings: Vec<String>,
    /// Where displaced bytes are kept, if any were.
    pub kept: Option<PathBuf>,
    /// Commits that were made, oldest first.
    pub commits: Vec<String>,
}
