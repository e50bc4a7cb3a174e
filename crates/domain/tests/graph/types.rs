//! The registry: the table of built-in types, and what is refused in a
//! definition.

use sandbar_domain::graph::types::{Definition, Kind};
use sandbar_domain::graph::{Policy, Registry, Strategy};

/// The table of the contract, column for column.
const TABLE: &str = "
git-checkout | RWSC | own(git_worktree) | git, fs-directory, git-submodule, git-checkout | file, commit, snapshot | filesystem | 1
git | RW-- | inherit | git-remote, git-branch, git-tag, git-commit, git-tree | | git-object | 1
git-remote | RW-- | inherit | | | git-object | 1
git-branch | RW-- | inherit | | | git-object | 1
git-tag | RW-- | inherit | | | git-object | 1
git-commit | R--- | inherit | | | git-object | 1
git-tree | R--- | inherit | git-tree, git-tree-entry | | git-object | 1
git-tree-entry | R--- | inherit | | | git-object | 1
git-submodule | RWSC | own(git_worktree) | git, fs-directory | file, commit, snapshot | filesystem | 1
fs-mount | RWSC | own(overlay) | fs-directory, fs-file, fs-symlink, git-checkout | file, snapshot | filesystem | 1
fs-directory | RWSC | own(copy_on_write) on its own, else inherit | fs-directory, fs-file, fs-symlink, git-checkout, git-submodule | file, snapshot | filesystem | 1
fs-file | RW-- | inherit | | | filesystem | 1
fs-symlink | RW-- | inherit | | | filesystem | 1
executable | R--- | none | | | filesystem | 1
container-runtime | RW-- | none | container-instance, container-image, container-volume | | docker-api | 0
container-image | R--- | none | | | docker-api | 0
container-instance | RWSC | own(snapshot) | container-mount, fs-directory | snapshot | container-exec | 1
container-volume | RWSC | own(snapshot) | fs-directory, fs-file, fs-symlink | snapshot | container-exec | 1
container-mount | RW-- | inherit | fs-directory, fs-file, fs-symlink | | container-exec | 1
lsp-server | R--- | none | lsp-workspace | | lsp | 0
lsp-workspace | R--- | none | lsp-document | | lsp | 10
lsp-document | RW-- | none | | | lsp-textdocument | 10
postgres-database | RWSC | own(transaction_rollback) | db-schema, db-table | transaction, snapshot | sql | 1
sqlite-database | RWSC | own(transaction_rollback) | db-schema, db-table | transaction, snapshot | sql | 1
db-schema | RW-- | inherit | db-table | | sql | 1
db-table | RW-- | inherit | db-table | | sql | 1
";

fn table(registry: &Registry) -> Vec<String> {
    let physical = registry
        .iter()
        .filter(|(_, kind)| kind.kind == Kind::Physical);
    let rows = physical.map(|(_, kind)| {
        let children = kind
            .children
            .iter()
            .map(|child| registry.get(*child).name.as_str());
        let children: Vec<_> = children.collect();
        let scopes: Vec<_> = kind.scopes.iter().map(|scope| scope.word()).collect();
        let alone = if kind.policy.inherits_inside {
            " on its own, else inherit"
        } else {
            ""
        };
        let cells = [
            kind.name.clone(),
            kind.capabilities.to_string(),
            format!("{}{alone}", kind.policy.policy),
            children.join(", "),
            scopes.join(", "),
            kind.protocol.word().to_owned(),
            kind.richness.to_string(),
        ];
        cells.join("|")
    });
    rows.collect()
}

// conformance: RES-4
#[test]
fn the_built_in_table_is_the_contract() {
    let squeeze = |line: &str| line.split('|').map(str::trim).collect::<Vec<_>>().join("|");
    let expected: Vec<_> = TABLE.trim().lines().map(squeeze).collect();
    assert_eq!(table(&Registry::builtin()), expected);
}

// conformance: RES-5
#[test]
fn every_virtual_type_is_there_and_stands_for_something() {
    let registry = Registry::builtin();
    let names: Vec<_> = registry
        .iter()
        .filter(|(_, kind)| kind.kind == Kind::Virtual)
        .map(|(_, kind)| kind.name.as_str())
        .collect();
    let expected = [
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
    assert_eq!(names, expected);
    for name in names {
        let id = registry.find(name);
        assert!(
            registry.iter().any(|(_, kind)| kind.equivalence == id),
            "{name}"
        );
    }
}

fn definition() -> Definition {
    let words = |text: &str| text.split_whitespace().map(str::to_owned).collect();
    Definition {
        name: "redis-database".to_owned(),
        kind: "physical".to_owned(),
        policy: "own(snapshot)".to_owned(),
        strategies: Vec::new(),
        capabilities: words("readable writable sandboxable checkpointable"),
        children: words("redis-key fs-file"),
        scopes: words("snapshot"),
        protocol: "sql".to_owned(),
        richness: 1,
        equivalence: None,
    }
}

fn child() -> Definition {
    Definition {
        name: "redis-key".to_owned(),
        policy: "inherit".to_owned(),
        capabilities: vec!["readable".to_owned()],
        children: Vec::new(),
        scopes: Vec::new(),
        equivalence: Some("file".to_owned()),
        ..definition()
    }
}

// conformance: RES-3
#[test]
fn users_types_are_taken_in_together() {
    let mut registry = Registry::builtin();
    registry.define(&[definition(), child()]).expect("valid");
    let (parent, key) = (registry.find("redis-database"), registry.find("redis-key"));
    let (parent, key) = (parent.expect("there"), key.expect("there"));
    assert!(registry.may_contain(parent, key));
    assert_eq!(registry.get(key).equivalence, registry.find("file"));
    assert_eq!(
        registry.get(parent).policy.policy,
        Policy::Own(Strategy::Snapshot)
    );
}

// conformance: RES-3
#[test]
fn a_bad_definition_is_refused_with_field_and_reason() {
    type Edit = fn(&mut Definition);
    let table: &[(&str, &str, Edit)] = &[
        ("name", "it is empty", |d| d.name.clear()),
        ("name", "longer than 64", |d| d.name = "n".repeat(65)),
        ("name", "lower-case", |d| d.name = "Redis".to_owned()),
        ("name", "lower-case", |d| d.name = "a--b".to_owned()),
        ("name", "exists", |d| d.name = "fs-file".to_owned()),
        ("name", "exists", |d| d.name = "redis-key".to_owned()),
        ("kind", "only built-in", |d| d.kind = "virtual".to_owned()),
        ("kind", "no kind \"real\"", |d| d.kind = "real".to_owned()),
        ("policy", "none of inherit", |d| {
            d.policy = "mine".to_owned()
        }),
        ("policy", "none of inherit", |d| {
            d.policy = "own(magic)".to_owned()
        }),
        ("policy", "needs the capability", |d| {
            d.capabilities.retain(|c| c != "sandboxable");
        }),
        ("strategies", "no strategy \"magic\"", |d| {
            d.strategies.push("magic".to_owned())
        }),
        ("strategies", "needs the capability", |d| {
            d.policy = "none".to_owned();
            d.strategies.push("overlay".to_owned());
            d.capabilities.retain(|c| c != "sandboxable");
        }),
        ("capabilities", "no capability \"fast\"", |d| {
            d.capabilities.push("fast".to_owned())
        }),
        ("children", "no type \"what\"", |d| {
            d.children.push("what".to_owned())
        }),
        ("children", "file is virtual", |d| {
            d.children.push("file".to_owned())
        }),
        ("children", "twice", |d| {
            d.children.push("fs-file".to_owned())
        }),
        ("scopes", "no scope \"all\"", |d| {
            d.scopes.push("all".to_owned())
        }),
        ("scopes", "go together", |d| d.scopes.clear()),
        ("scopes", "go together", |d| {
            d.capabilities.retain(|c| c != "checkpointable")
        }),
        ("protocol", "no protocol \"http\"", |d| {
            d.protocol = "http".to_owned()
        }),
        ("richness", "kept for semantic", |d| d.richness = 5),
        ("richness", "not within", |d| d.richness = 256),
        ("richness", "not within", |d| d.richness = -1),
        ("equivalence", "no type \"x\"", |d| {
            d.equivalence = Some("x".to_owned())
        }),
        ("equivalence", "not virtual", |d| {
            d.equivalence = Some("fs-file".to_owned())
        }),
    ];
    for (field, reason, edit) in table {
        let mut bad = definition();
        edit(&mut bad);
        let mut registry = Registry::builtin();
        let refused = registry.define(&[child(), bad]).expect_err(reason);
        assert_eq!(refused.field, *field, "{refused}");
        assert!(refused.reason.contains(reason), "{refused}");
        assert_eq!(registry, Registry::builtin(), "nothing was added");
    }
}
