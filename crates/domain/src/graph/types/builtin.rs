//! The built-in types, as a table (RES-4, RES-5), and the shipped database
//! types, which go the way of users' definitions.

use super::Definition;

/// One row: name, capabilities, policy, children, scopes, protocol, richness,
/// equivalence type, strategies beside that of the policy.
pub(super) struct Row {
    pub(super) name: &'static str,
    pub(super) capabilities: &'static str,
    pub(super) policy: &'static str,
    pub(super) children: &'static str,
    pub(super) scopes: &'static str,
    pub(super) protocol: &'static str,
    pub(super) richness: u8,
    pub(super) equivalence: &'static str,
    pub(super) strategies: &'static str,
}

#[allow(clippy::too_many_arguments, reason = "columns of a table")]
const fn row(
    name: &'static str,
    capabilities: &'static str,
    policy: &'static str,
    children: &'static str,
    scopes: &'static str,
    protocol: &'static str,
    richness: u8,
    equivalence: &'static str,
    strategies: &'static str,
) -> Row {
    Row {
        name,
        capabilities,
        policy,
        children,
        scopes,
        protocol,
        richness,
        equivalence,
        strategies,
    }
}

/// The policy of plain directories: their own when alone, else inherited.
pub(super) const ALONE: &str = "alone(copy_on_write)";

#[rustfmt::skip]
pub(super) const PHYSICAL: &[Row] = &[
    row("git-checkout", "RWSC", "own(git_worktree)", "git fs-directory git-submodule git-checkout", "file commit snapshot", "filesystem", 1, "", "copy_on_write overlay"),
    row("git", "RW--", "inherit", "git-remote git-branch git-tag git-commit git-tree", "", "git-object", 1, "", ""),
    row("git-remote", "RW--", "inherit", "", "", "git-object", 1, "remote", ""),
    row("git-branch", "RW--", "inherit", "", "", "git-object", 1, "branch", ""),
    row("git-tag", "RW--", "inherit", "", "", "git-object", 1, "tag", ""),
    row("git-commit", "R---", "inherit", "", "", "git-object", 1, "commit", ""),
    row("git-tree", "R---", "inherit", "git-tree git-tree-entry", "", "git-object", 1, "tree", ""),
    row("git-tree-entry", "R---", "inherit", "", "", "git-object", 1, "file", ""),
    row("git-submodule", "RWSC", "own(git_worktree)", "git fs-directory", "file commit snapshot", "filesystem", 1, "submodule", "copy_on_write overlay"),
    row("fs-mount", "RWSC", "own(overlay)", "fs-directory fs-file fs-symlink git-checkout", "file snapshot", "filesystem", 1, "directory", "copy_on_write"),
    row("fs-directory", "RWSC", ALONE, "fs-directory fs-file fs-symlink git-checkout git-submodule", "file snapshot", "filesystem", 1, "directory", "overlay"),
    row("fs-file", "RW--", "inherit", "", "", "filesystem", 1, "file", ""),
    row("fs-symlink", "RW--", "inherit", "", "", "filesystem", 1, "symlink", ""),
    row("executable", "R---", "none", "", "", "filesystem", 1, "", ""),
    row("container-runtime", "RW--", "none", "container-instance container-image container-volume", "", "docker-api", 0, "", ""),
    row("container-image", "R---", "none", "", "", "docker-api", 0, "", ""),
    row("container-instance", "RWSC", "own(snapshot)", "container-mount fs-directory", "snapshot", "container-exec", 1, "", ""),
    row("container-volume", "RWSC", "own(snapshot)", "fs-directory fs-file fs-symlink", "snapshot", "container-exec", 1, "directory", ""),
    row("container-mount", "RW--", "inherit", "fs-directory fs-file fs-symlink", "", "container-exec", 1, "directory", ""),
    row("lsp-server", "R---", "none", "lsp-workspace", "", "lsp", 0, "", ""),
    row("lsp-workspace", "R---", "none", "lsp-document", "", "lsp", 10, "", ""),
    row("lsp-document", "RW--", "none", "", "", "lsp-textdocument", 10, "file", ""),
];

/// The virtual types. What they may manifest follows from the equivalence
/// types above.
pub(super) const VIRTUAL: [&str; 9] = [
    "file",
    "directory",
    "commit",
    "branch",
    "tag",
    "remote",
    "submodule",
    "tree",
    "symlink",
];

/// Returns the definitions of the shipped database types.
pub(super) fn shipped() -> Vec<Definition> {
    let words = |text: &str| text.split_whitespace().map(str::to_owned).collect();
    let database = |name: &str| Definition {
        name: name.to_owned(),
        kind: "physical".to_owned(),
        policy: "own(transaction_rollback)".to_owned(),
        strategies: words("snapshot"),
        capabilities: words("readable writable sandboxable checkpointable"),
        children: words("db-schema db-table"),
        scopes: words("transaction snapshot"),
        protocol: "sql".to_owned(),
        richness: 1,
        equivalence: None,
    };
    let part = |name: &str, children: &str| Definition {
        name: name.to_owned(),
        kind: "physical".to_owned(),
        policy: "inherit".to_owned(),
        strategies: Vec::new(),
        capabilities: words("readable writable"),
        children: words(children),
        scopes: Vec::new(),
        protocol: "sql".to_owned(),
        richness: 1,
        equivalence: None,
    };
    vec![
        database("postgres-database"),
        database("sqlite-database"),
        part("db-schema", "db-table"),
        part("db-table", "db-table"),
    ]
}
