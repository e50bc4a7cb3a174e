//! The closed list of error codes, with the exit code and hint of each.
//!
//! Outside programs rely on the texts of [`Code::text`] (SRF-3): a code may
//! be added, never renamed.

/// What the caller may conclude from a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Disposition {
    /// The state asked for does not allow it; nothing was changed.
    Conflict,
    /// Nothing was changed, and the same call may succeed later.
    Retryable,
    /// Nothing was changed, and the same call will fail again.
    Permanent,
    /// It may or may not have happened: ask before trying again.
    Indeterminate,
}

macro_rules! codes {
    ($($(#[$doc:meta])* $name:ident = $text:literal, $exit:literal, $disposition:ident, $hint:literal;)*) => {
        /// Why something failed: the closed list of SRF-3.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum Code { $($(#[$doc])* $name,)* }

        impl Code {
            /// Every code, in the order of the documentation.
            pub const ALL: &'static [Self] = &[$(Self::$name,)*];

            /// Returns the stable word of the output contract.
            pub const fn text(self) -> &'static str {
                match self { $(Self::$name => $text,)* }
            }

            /// Returns the exit code: 1 failed, 2 usage, 3 conflict, 4 not
            /// available here, 5 not found.
            pub const fn exit(self) -> u8 {
                match self { $(Self::$name => $exit,)* }
            }

            /// Returns the usual disposition; a port error may be more precise.
            pub const fn disposition(self) -> Disposition {
                match self { $(Self::$name => Disposition::$disposition,)* }
            }

            /// Returns what a person can do next; empty where the message says it.
            pub const fn hint(self) -> &'static str {
                match self { $(Self::$name => $hint,)* }
            }
        }
    };
}

codes! {
    /// Words of the command line or configuration that make no sense.
    Usage = "usage", 2, Permanent, "see `sandbar help`";
    /// A configuration file that cannot be read or has an unknown key.
    BadConfig = "bad_config", 2, Permanent, "`sandbar config` shows each value and where it comes from";
    /// No plan of that name or id.
    PlanNotFound = "plan_not_found", 5, Permanent, "`sandbar plan list` shows the plans";
    /// An id prefix that fits several plans.
    AmbiguousPlan = "ambiguous_plan", 2, Permanent, "give more characters of the id, or the name";
    /// A plan name that is taken.
    NameInUse = "name_in_use", 3, Conflict, "go on inside it with `sandbar exec NAME -- CMD`, or choose another name";
    /// No checkpoint of that number or id.
    CheckpointNotFound = "checkpoint_not_found", 5, Permanent, "`sandbar log PLAN` shows the checkpoints";
    /// Not a git repository, where one is needed.
    NotARepository = "not_a_repository", 5, Permanent, "run it inside a git checkout";
    /// A path that does not exist.
    PathNotFound = "path_not_found", 5, Permanent, "check the path";
    /// Displaced bytes whose retention has ended.
    KeptGone = "kept_gone", 5, Permanent, "retention ended, or `sandbar gc --now` took them; `sandbar kept list` shows what is kept";
    /// Something is where a new file was to go.
    Exists = "exists", 3, Conflict, "choose another place with `--to`";
    /// A path that leads out of its root, or is not a relative path at all.
    PathEscapes = "path_escapes", 2, Permanent, "paths are relative to the root and stay inside it";
    /// `/`, the home directory, or a root that holds the data directory.
    RootRefused = "root_refused", 2, Permanent, "choose a project directory";
    /// A repository format or state that cannot be sandboxed.
    RepositoryRefused = "repository_refused", 4, Permanent, "";
    /// A FIFO, socket, device or a name that is not UTF-8.
    UnsupportedEntry = "unsupported_entry", 4, Permanent, "remove it, or have git ignore it";
    /// A file that cannot be read or a directory that cannot be entered.
    PermissionDenied = "permission_denied", 1, Permanent, "check owner and mode of the path";
    /// A file that changed each time it was read.
    UnstableFile = "unstable_file", 1, Retryable, "stop what is writing it, then try again";
    /// A mount inside a root.
    MountInside = "mount_inside", 4, Permanent, "unmount it, or register the directories apart";
    /// A target that cannot be written.
    ReadOnly = "read_only", 1, Permanent, "make the target writable";
    /// No space, no inodes, or over quota.
    NoSpace = "no_space", 1, Retryable, "free some space, then try again; `sandbar gc` collects what is not needed";
    /// An input or output error, or a failed fsync.
    Io = "io", 1, Permanent, "mend what the message names, then try again; what was displaced is kept: docs/when-an-apply-failed.md";
    /// A stored object whose bytes do not match its name.
    CorruptObject = "corrupt_object", 1, Permanent, "`sandbar doctor` lists what is damaged";
    /// A database that cannot be read.
    CorruptStore = "corrupt_store", 1, Permanent, "`sandbar doctor` says what can be done";
    /// Data written by a newer version.
    NewerFormat = "newer_format", 4, Permanent, "use the newer version of Sandbar";
    /// A data directory on a network file system.
    NetworkFileSystem = "network_file_system", 4, Permanent, "set SANDBAR_DATA_DIR to a local directory";
    /// A state change that the plan's state does not allow (PLN-1).
    IllegalState = "illegal_state", 3, Conflict, "`sandbar status PLAN` shows the state";
    /// Another process drives the plan.
    PlanBusy = "plan_busy", 3, Retryable, "wait for it, or end it";
    /// Another apply holds the root.
    RootBusy = "root_busy", 3, Retryable, "wait for the other apply";
    /// The real resource changed in a way that cannot be merged.
    Drift = "drift", 3, Conflict, "nothing was written; settle the paths named, then apply again";
    /// Paths that differ in case only, where names have no case.
    CaseCollision = "case_collision", 3, Conflict, "rename one of them in the sandbox, then apply again";
    /// A git lock file is held.
    GitLocked = "git_locked", 3, Retryable, "wait for the git command that holds it, or remove a stale lock";
    /// HEAD is on another branch than at base.
    HeadMoved = "head_moved", 3, Conflict, "switch back, or use `--onto-current`";
    /// Commits under filters or required signing.
    CommitRefused = "commit_refused", 3, Conflict, "apply without `--commit`/`--branch`, or allow it explicitly";
    /// A kind of work that is not possible on this machine.
    NotAvailable = "not_available", 4, Permanent, "";
    /// A capability that a strategy lacks.
    MissingCapability = "missing_capability", 4, Permanent, "";
    /// `run` inside a sandbox.
    InsideSandbox = "inside_sandbox", 4, Permanent, "leave the sandbox first; plans inside plans are not available yet";
    /// The program to run does not exist or cannot be executed.
    CommandNotFound = "command_not_found", 5, Permanent, "check the command and PATH";
    /// The sandbox root was removed or replaced by hand.
    SandboxGone = "sandbox_gone", 1, Permanent, "`sandbar rollback PLAN --to N` makes it again from a checkpoint";
    /// The person interrupted it; nothing was changed.
    Interrupted = "interrupted", 1, Retryable, "";
    /// An apply that could neither be completed nor undone.
    NeedsAttention = "needs_attention", 1, Indeterminate, "`sandbar recover` tries again, `sandbar doctor` says what is open; see docs/when-an-apply-failed.md";
    /// The store could not be reached or is held too long.
    StoreUnavailable = "store_unavailable", 1, Retryable, "check the store, then try again";
    /// No resource or project of that name, id or path.
    ResourceNotFound = "resource_not_found", 5, Permanent, "";
    /// A name or path that fits several resources.
    AmbiguousResource = "ambiguous_resource", 2, Permanent, "name one of them by its id";
    /// A change of the resource graph that its rules do not allow.
    GraphRefused = "graph_refused", 3, Conflict, "";
    /// The resource graph was changed by somebody else meanwhile.
    GraphChanged = "graph_changed", 3, Retryable, "try again";
    /// A change that would give a resource two nearest boundaries.
    AmbiguousBoundary = "ambiguous_boundary", 3, Conflict, "give one of the two places a sandbox policy of its own";
    /// A resource, or what contains or links it, that may not be written.
    NotWritable = "not_writable", 3, Conflict, "";
    /// A tool slot that fits no resource, or several.
    BindingRefused = "binding_refused", 3, Conflict, "";
    /// No tool reaches a resource as asked.
    NoRoute = "no_route", 4, Permanent, "";
    /// A fault in Sandbar itself.
    Internal = "internal", 1, Permanent, "please report it";
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_unique_and_exits_are_of_the_contract() {
        let mut texts: Vec<_> = Code::ALL.iter().map(|code| code.text()).collect();
        texts.sort_unstable();
        texts.dedup();
        assert_eq!(texts.len(), Code::ALL.len());
        for code in Code::ALL {
            assert!((1..=5).contains(&code.exit()), "{code:?}");
        }
    }
}
