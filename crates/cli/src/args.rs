//! What can be typed (SRF-2).

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Parser, Subcommand, ValueEnum};
use sandbar::config::ViewChoice;

/// Gives every plan of a coding agent its own exact, reversible copy of what
/// it works on, and brings the reviewed result back without losing anything.
#[derive(Debug, Parser)]
#[command(
    name = "sandbar",
    version,
    arg_required_else_help = true,
    max_term_width = 100
)]
#[command(after_help = "\
Examples:
  sandbar run --name fix -- my-agent 'fix the failing test'
  sandbar diff fix
  sandbar apply fix

A PLAN is its name, the beginning of its id, or @ for the newest one on this directory.
Exit codes: 0 done, 1 failed, 2 usage, 3 conflict (nothing written), 4 not available here,
5 not found; run, exec and shell pass on the command's own code, and 125 if Sandbar failed.")]
pub(crate) struct Args {
    /// Print one JSON document on standard output
    #[arg(long, global = true)]
    pub(crate) json: bool,
    /// Do not show diff and log in a pager
    #[arg(long, global = true)]
    pub(crate) no_pager: bool,
    /// What to do
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run a command in a new sandbox of this checkout or directory
    #[command(after_help = "\
Examples:
  sandbar run -- make test
  sandbar run --name fix --include .env --include node_modules -- my-agent
  sandbar run --base HEAD -- my-agent 'review the last commit'
  sandbar run --rollback-on-failure -- ./migrate.sh

The command sees its sandbox at the real path, so absolute paths lead into it; with
--view plain it runs in the sandbox's own directory instead. Nothing reaches the real
directory before `sandbar apply`. Not contained: network, other directories, credentials.")]
    Run(RunArgs),
    /// Run a further command in the sandbox of a plan
    #[command(after_help = "Example:\n  sandbar exec fix -- cargo test")]
    Exec(ExecArgs),
    /// Open a shell in the sandbox of a plan
    #[command(after_help = "Example:\n  sandbar shell fix")]
    Shell {
        /// Name, id prefix, or @
        plan: String,
    },
    /// Print where the sandbox of a plan is
    #[command(after_help = "Example:\n  cd \"$(sandbar path fix)\"")]
    Path {
        /// Name, id prefix, or @
        plan: String,
    },
    /// Make, list or show plans
    #[command(subcommand)]
    Plan(PlanCommand),
    /// Show what a plan changed, in short
    #[command(after_help = "Example:\n  sandbar status fix --json")]
    Status {
        /// Name, id prefix, or @
        #[arg(default_value = "@")]
        plan: String,
    },
    /// Show what a plan changed: a patch that `git apply` takes
    #[command(after_help = "\
Examples:
  sandbar diff fix
  sandbar diff fix --stat
  sandbar diff fix --patch | git apply --check

On a terminal diff and log go through a pager: $SANDBAR_PAGER, else $PAGER, else less.")]
    Diff {
        /// Name, id prefix, or @
        #[arg(default_value = "@")]
        plan: String,
        /// Count lines instead
        #[arg(long, conflicts_with = "patch")]
        stat: bool,
        /// Print the patch (the default)
        #[arg(long)]
        patch: bool,
    },
    /// List the checkpoints of a plan
    #[command(after_help = "Example:\n  sandbar log fix")]
    Log {
        /// Name, id prefix, or @
        #[arg(default_value = "@")]
        plan: String,
    },
    /// Save the state of a plan
    #[command(after_help = "Example:\n  sandbar checkpoint fix -m 'tests pass'")]
    Checkpoint {
        /// Name, id prefix, or @
        plan: String,
        /// What to call it
        #[arg(short, long)]
        message: Option<String>,
    },
    /// Put the sandbox of a plan back to a checkpoint, exactly
    #[command(after_help = "Example:\n  sandbar rollback fix --to 2")]
    Rollback {
        /// Name, id prefix, or @
        plan: String,
        /// Number or id of the checkpoint
        #[arg(long, value_name = "CKPT")]
        to: String,
    },
    /// Bring your newer state into the sandbox of a plan
    #[command(after_help = "\
Example:
  sandbar update fix

What changed in the real directory since the plan began is brought into its sandbox, and
counts as the base from then on. What both sides changed is merged where it is text and
does not overlap. Else it stands inside, to be settled there before `apply`: text with
markers, anything else as FILE.theirs beside the plan's own. A checkpoint is taken before
and after; `sandbar rollback` goes back. Branches, index and HEAD inside stay.")]
    Update {
        /// Name, id prefix, or @
        plan: String,
    },
    /// Bring the result of a plan to the real directory
    #[command(after_help = "\
Examples:
  sandbar apply fix --dry-run
  sandbar apply fix
  sandbar apply fix --commit -m 'Fix the parser'
  sandbar apply fix --branch review/fix
  sandbar apply fix -- src docs/guide.md     # a part; the rest stays in the plan

Your own uncommitted changes are never overwritten: what both sides changed is merged
if it is text and does not overlap, else nothing is written and the exit code is 3.
`sandbar undo` takes an apply back; `sandbar kept` finds what it replaced.")]
    Apply(ApplyArgs),
    /// Take back what was applied; your own later edits stay
    #[command(after_help = "\
Examples:
  sandbar undo fix --dry-run
  sandbar undo fix

Everything that was applied since the last undo goes: files, modes, deletions come back
as they were, and a branch that `--commit` or `--branch` moved goes back if it still is
where it was put. What you changed since is merged if it is text and does not overlap,
else nothing is written, each path is named, and the exit code is 3. The plan is in review
again: go on inside it, or apply it again.")]
    Undo {
        /// Name, id prefix, or @
        plan: String,
        /// Print what would be done, write nothing
        #[arg(long)]
        dry_run: bool,
        /// Undo although HEAD is on another branch now
        #[arg(long)]
        onto_current: bool,
    },
    /// Find, print and copy out what applies, undos and rollbacks displaced
    #[command(subcommand)]
    Kept(KeptCommand),
    /// Register checkouts and directories, and look at what is known of them
    #[command(subcommand)]
    Resource(ResourceCommand),
    /// Print what is known and what contains what
    #[command(after_help = "\
Examples:
  sandbar graph
  sandbar graph src --format dot | dot -Tsvg > graph.svg
  sandbar graph --format mermaid

Boundaries, which have a sandbox of their own, are marked. Files and directories are
known once they were asked about.")]
    Graph {
        /// Only this and what it contains: an id, the beginning of one, or a path
        #[arg(value_name = "R")]
        resource: Option<String>,
        /// How
        #[arg(long, value_enum, default_value = "tree")]
        format: GraphFormat,
    },
    /// Say where a resource is sandboxed
    #[command(after_help = "\
Examples:
  sandbar boundary src/main.rs
  sandbar boundary vendor/lib/a.c --explain

R is an id, the beginning of one, or a path inside a registered root.")]
    Boundary(Asked),
    /// List what is known to share the sandbox of a resource
    #[command(after_help = "Example:\n  sandbar domain src --explain")]
    Domain(Asked),
    /// List the tools that reach a resource, nearest first
    #[command(after_help = "\
Examples:
  sandbar reach src/main.rs
  sandbar reach src --write --explain")]
    Reach {
        #[command(flatten)]
        asked: Asked,
        /// Only those that can write it
        #[arg(long)]
        write: bool,
    },
    /// Say how a resource is named from where a tool is bound, or in a sandbox
    #[command(after_help = "\
Examples:
  sandbar project src/main.rs
  sandbar project src/main.rs --plan fix     # where it lies in the sandbox of that plan")]
    Project {
        #[command(flatten)]
        asked: Asked,
        /// What the tool is bound to (the outermost that contains R if absent)
        #[arg(long, value_name = "R")]
        from: Option<String>,
        /// In the sandbox of this plan: name, id prefix, or @
        #[arg(long)]
        plan: Option<String>,
    },
    /// Choose the tool to read or write a resource with
    #[command(after_help = "\
Examples:
  sandbar route src/main.rs --write
  sandbar route src/main.rs --read --query history --explain")]
    Route {
        #[command(flatten)]
        asked: Asked,
        /// To read it
        #[arg(long, required_unless_present = "write", conflicts_with = "write")]
        read: bool,
        /// To write it
        #[arg(long)]
        write: bool,
        /// What the read asks for
        #[arg(long, value_enum, default_value = "content", conflicts_with = "write")]
        query: Query,
    },
    /// Say what else is affected when a resource changes
    #[command(after_help = "\
Examples:
  sandbar impact src/main.rs
  sandbar impact src --mode --explain")]
    Impact {
        #[command(flatten)]
        asked: Asked,
        /// Its mode changes, not its content
        #[arg(long)]
        mode: bool,
    },
    /// Drop a plan; its checkpoints stay for a while
    #[command(after_help = "Example:\n  sandbar discard fix")]
    Discard {
        /// Name, id prefix, or @
        plan: String,
    },
    /// Check everything Sandbar keeps, and what works on this machine
    Doctor,
    /// Remove what retention has ended and what nothing needs
    #[command(after_help = "Example:\n  sandbar gc --dry-run")]
    Gc {
        /// Say what would go, remove nothing
        #[arg(long)]
        dry_run: bool,
        /// Do not wait for retention: ended plans lose their checkpoints and kept bytes
        #[arg(long)]
        now: bool,
    },
    /// Complete or undo what a killed process left
    #[command(after_help = "\
Example:
  sandbar recover

An apply, undo or rollback that was cut short is completed if it had been decided, else
taken back; each file is wholly old or wholly new meanwhile. A second call changes nothing.
Every mutating command does the same first. What each state means, and where displaced
bytes are: docs/when-an-apply-failed.md")]
    Recover,
    /// Show every setting, its value, and where it comes from
    Config,
    /// Print a completion script for a shell
    #[command(
        after_help = "Example:\n  sandbar completions bash > ~/.local/share/bash-completion/completions/sandbar"
    )]
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
}

/// Arguments of `run`.
#[derive(Debug, clap::Args)]
pub(crate) struct RunArgs {
    /// Name of the plan (made from the command if absent)
    #[arg(long)]
    pub(crate) name: Option<String>,
    /// Start clean from a commit: HEAD, a branch, a tag, any revision (instead of
    /// your exact working state, uncommitted and untracked files included)
    #[arg(long, value_name = "HEAD|REV")]
    pub(crate) base: Option<String>,
    #[command(flatten)]
    pub(crate) bring: BringArgs,
    /// How the command sees its sandbox
    #[arg(long, value_enum)]
    pub(crate) view: Option<ViewArg>,
    /// Put the sandbox back if the command fails
    #[arg(long)]
    pub(crate) rollback_on_failure: bool,
    /// The command and its arguments
    #[arg(last = true, required = true, value_name = "CMD")]
    pub(crate) command: Vec<OsString>,
}

/// What comes along besides the working state.
#[derive(Debug, clap::Args)]
pub(crate) struct BringArgs {
    /// Bring ignored files that match along (gitignore syntax; can be repeated)
    #[arg(long, value_name = "GLOB")]
    pub(crate) include: Vec<String>,
    /// Treat ignored files as any other: copied, checkpointed and applied
    #[arg(long)]
    pub(crate) track_ignored: bool,
    /// Leave `git push` working inside; what it sends cannot be taken back
    #[arg(long)]
    pub(crate) allow_push: bool,
}

impl From<BringArgs> for sandbar::Bring {
    fn from(args: BringArgs) -> Self {
        let BringArgs {
            include,
            track_ignored,
            allow_push,
        } = args;
        Self {
            includes: include,
            track_ignored,
            allow_push,
        }
    }
}

/// Arguments of `exec`.
#[derive(Debug, clap::Args)]
pub(crate) struct ExecArgs {
    /// Name, id prefix, or @
    pub(crate) plan: String,
    /// Put the sandbox back if the command fails
    #[arg(long)]
    pub(crate) rollback_on_failure: bool,
    /// The command and its arguments
    #[arg(last = true, required = true, value_name = "CMD")]
    pub(crate) command: Vec<OsString>,
}

/// Arguments of `apply`.
#[derive(Debug, clap::Args)]
pub(crate) struct ApplyArgs {
    /// Name, id prefix, or @
    pub(crate) plan: String,
    /// Print what would be done, write nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Land as commits on the current branch, the agent's own kept
    #[arg(long, conflicts_with = "branch")]
    pub(crate) commit: bool,
    /// Land as commits on a new branch; the working tree is left alone
    #[arg(long, value_name = "NAME")]
    pub(crate) branch: Option<String>,
    /// Message of the commit for what the agent did not commit
    #[arg(short, long)]
    pub(crate) message: Option<String>,
    /// Apply although HEAD is on another branch now
    #[arg(long)]
    pub(crate) onto_current: bool,
    /// Commit paths under filters, and where signing is required, unsigned
    #[arg(long)]
    pub(crate) allow_filters: bool,
    /// Apply to this resource only, by path or id (can be repeated)
    #[arg(long, value_name = "R")]
    pub(crate) resource: Vec<String>,
    /// Apply these paths only, a directory with all below it; the rest stays in the plan
    #[arg(last = true, value_name = "PATH")]
    pub(crate) paths: Vec<PathBuf>,
}

/// Kept bytes.
#[derive(Debug, Subcommand)]
pub(crate) enum KeptCommand {
    /// List what is kept, oldest first
    #[command(after_help = "\
Examples:
  sandbar kept list
  sandbar kept list fix --json

Kept bytes stay as long as their plan lives and 30 days (sandbox.retention) after it was
applied or discarded; then `sandbar gc` may take them, or at once with `gc --now`.")]
    List {
        /// Name, id prefix, or @ (all plans if absent)
        plan: Option<String>,
    },
    /// Print what is kept of one file, exactly
    #[command(after_help = "\
Examples:
  sandbar kept show 12.0
  sandbar kept show fix src/a.rs
  sandbar kept show fix src/a.rs --checkpoint 3 > a-as-in-checkpoint-3.rs")]
    Show {
        /// An id of `kept list`, or a plan
        #[arg(value_name = "ID|PLAN")]
        what: String,
        /// With a plan: where the file was
        path: Option<PathBuf>,
        /// Take it from a checkpoint of the plan instead
        #[arg(long, value_name = "CKPT", requires = "path")]
        checkpoint: Option<String>,
    },
    /// Copy what is kept to a new place; nothing is ever overwritten
    #[command(after_help = "\
Examples:
  sandbar kept restore 12.0                      # to ./NAME.kept-12.0
  sandbar kept restore fix src/a.rs --to /tmp/a.rs
  sandbar kept restore fix --to fix-before       # everything, into a new directory

To take a whole apply back use `sandbar undo`.")]
    Restore {
        /// An id of `kept list`, or a plan
        #[arg(value_name = "ID|PLAN")]
        what: String,
        /// With a plan: where the file was (everything if absent)
        path: Option<PathBuf>,
        /// Take it from a checkpoint of the plan instead
        #[arg(long, value_name = "CKPT", requires = "path")]
        checkpoint: Option<String>,
        /// Where to; must not exist
        #[arg(long, value_name = "FILE")]
        to: Option<PathBuf>,
    },
}

/// Plans.
#[derive(Debug, Subcommand)]
pub(crate) enum PlanCommand {
    /// Make a plan with its sandbox, and run nothing yet
    #[command(after_help = "Example:\n  sandbar plan new --name fix --base main")]
    New {
        /// Name of the plan
        #[arg(long)]
        name: Option<String>,
        /// Start clean from a commit: HEAD, a branch, a tag, any revision (instead of
        /// your exact working state, uncommitted and untracked files included)
        #[arg(long, value_name = "HEAD|REV")]
        base: Option<String>,
        #[command(flatten)]
        bring: BringArgs,
    },
    /// List every plan
    List,
    /// Show one plan
    Show {
        /// Name, id prefix, or @
        plan: String,
    },
}

/// Resources.
#[derive(Debug, Subcommand)]
pub(crate) enum ResourceCommand {
    /// Register the checkout that encloses a path, else the directory itself
    #[command(after_help = "\
Examples:
  sandbar resource add .
  sandbar resource add ~/notes

A checkout comes with its repository, its root directory and its submodules. Everything
else is known once it is asked about, so a large tree takes no longer than a small one.")]
    Add {
        /// Where
        path: PathBuf,
    },
    /// List everything that is known
    List,
    /// Show one resource
    #[command(after_help = "Example:\n  sandbar resource show src")]
    Show(Asked),
    /// Forget a resource and what it alone contains; nothing on disk is touched
    #[command(after_help = "Example:\n  sandbar resource rm ~/notes")]
    Rm {
        /// An id, the beginning of one, or a path
        #[arg(value_name = "R")]
        resource: String,
    },
    /// Print what contains what
    #[command(after_help = "Example:\n  sandbar resource tree src")]
    Tree {
        /// Only this and what it contains: an id, the beginning of one, or a path
        #[arg(value_name = "R")]
        resource: Option<String>,
    },
}

/// A question about one resource.
#[derive(Debug, clap::Args)]
pub(crate) struct Asked {
    /// An id, the beginning of one, or a path inside a registered root
    #[arg(value_name = "R")]
    pub(crate) resource: String,
    /// Show what was looked at: the way walked, what forbids, what was passed over
    #[arg(long)]
    pub(crate) explain: bool,
}

/// How the graph is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum GraphFormat {
    /// As a tree
    Tree,
    /// For Graphviz
    Dot,
    /// For Mermaid
    Mermaid,
    /// As one JSON document
    Json,
}

/// What a read asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Query {
    /// Plain content
    Content,
    /// Types, references, diagnostics
    Semantic,
    /// Earlier states
    History,
}

/// How a command sees its sandbox.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum ViewArg {
    /// In place where that works, else plain
    Auto,
    /// At the real path, or fail
    InPlace,
    /// At the sandbox's own path
    Plain,
}

impl From<ViewArg> for ViewChoice {
    fn from(view: ViewArg) -> Self {
        match view {
            ViewArg::Auto => Self::Auto,
            ViewArg::InPlace => Self::InPlace,
            ViewArg::Plain => Self::Plain,
        }
    }
}

impl Command {
    /// Says whether Sandbar's own failures end with 125 (SRF-3).
    pub(crate) fn passes_exit_code(&self) -> bool {
        matches!(self, Self::Run(_) | Self::Exec(_) | Self::Shell { .. })
    }
}

/// Returns the caller's directory, as the shell wrote it where that is right.
pub(crate) fn cwd() -> std::io::Result<PathBuf> {
    std::env::current_dir()
}
