//! Ignore rules against git's own judgement.

use std::path::Path;

use proptest::prelude::*;
use sandbar_domain::{Code, Hash, RelPath};
use sandbar_ports::git::GitState as _;
use sandbar_ports::rules::Verdict;

use crate::fixture::{GIT, Place, carried, discover, git, held, rules, run, sandbox, write};

/// What git carries: tracked and untracked, less ignored and deleted files.
fn judged(root: &Path) -> Vec<String> {
    let list = git(root, &["ls-files", "-z", "-c", "-o", "--exclude-standard"]);
    let mut found: Vec<String> = list
        .split('\0')
        .filter(|path| !path.is_empty() && std::fs::symlink_metadata(root.join(path)).is_ok())
        .map(str::to_owned)
        .collect();
    found.sort();
    found.dedup();
    found
}

fn agree(root: &Path) {
    let want = judged(root);
    let live = rules(&discover(root), &[]);
    assert_eq!(carried(root, &*live), want);
    // The saved form judges alike, alone and where the current rules agree.
    let saved = live.save();
    let again = run(GIT.sandbox_rules(root.to_owned(), Hash::of(&saved), held(&saved))).unwrap();
    assert_eq!(carried(root, &*again), want);
    assert_eq!(again.save(), saved);
}

const FILES: &[&str] = &[
    "a",
    "b.log",
    "c.txt",
    "foo",
    "foo bar",
    "trail ",
    "#hash",
    "!bang",
    "back\\slash",
    "star*",
    "q?",
    "[x]",
    "x",
    "dir/a",
    "dir/b.log",
    "dir/foo",
    "dir/sub/a",
    "dir/sub/foo",
    "dir/sub/b.log",
    "dir/sub/deep/foo",
    "build/out",
    "build/keep/a",
    "other/build/out",
    "other/foo",
    "doc/a.md",
    "doc/api/a.md",
    "doc/api/v1/a.md",
    "$dollar",
    "Upper",
    "\u{e4}\u{f6}.txt",
    ".hidden",
    "dir/.hidden",
];

#[test]
fn nasty_patterns_are_judged_as_git_judges_them() {
    let tables: &[&[(&str, &str)]] = &[
        &[(".gitignore", "*.log\n!dir/b.log\n")],
        &[(".gitignore", "/foo\n")],
        &[(".gitignore", "foo\n!/foo\n")],
        &[(".gitignore", "dir/*\n!dir/sub\ndir/sub/*\n!dir/sub/foo\n")],
        &[(".gitignore", "dir/\n!dir/a\n")],
        &[(".gitignore", "build/\n")],
        &[(".gitignore", "/build/\n!/build/keep/\n")],
        &[(".gitignore", "/build/*\n!/build/keep/\n")],
        &[(".gitignore", "**/foo\n")],
        &[(".gitignore", "dir/**/foo\n")],
        &[(".gitignore", "doc/**\n!doc/api/**\n")],
        &[(".gitignore", "doc/**/*.md\n")],
        &[(".gitignore", "**/api/**\n")],
        &[(".gitignore", "trail \n")],
        &[(".gitignore", "trail\\ \n")],
        &[(".gitignore", "\\#hash\n\\!bang\n")],
        &[(".gitignore", "# comment\n\n   \n!bang\n")],
        &[(".gitignore", "back\\\\slash\n")],
        &[(".gitignore", "star\\*\nq\\?\n\\[x\\]\n")],
        &[(".gitignore", "[a-c]*\n")],
        &[(".gitignore", "[!a-f]*\n")],
        &[(".gitignore", "foo*\r\nc.txt\r\n")],
        &[(".gitignore", "$dollar\n")],
        &[(".gitignore", "upper\n")],
        &[(".gitignore", "\u{e4}*\n")],
        &[(".gitignore", "\u{feff}a\n")],
        &[(".gitignore", "*\n!*/\n!*.md\n")],
        &[(".gitignore", "*\n!.gitignore\n")],
        &[(".gitignore", ".*\n")],
        &[
            (".gitignore", "foo"),
            ("dir/.gitignore", "!foo\n"),
            ("dir/sub/.gitignore", "/foo\n"),
        ],
        &[
            (".gitignore", "*.log\n"),
            ("dir/.gitignore", "!*.log\n"),
            ("dir/sub/.gitignore", "*\n"),
        ],
        &[(".gitignore", "dir\n"), ("dir/.gitignore", "!*\n")],
        &[
            ("doc/.gitignore", "/api/v1\n"),
            ("doc/api/.gitignore", "!v1\n"),
        ],
        &[
            (".git/info/exclude", "foo\n"),
            (".gitignore", "!/dir/foo\n"),
        ],
        &[(".git/info/exclude", "!foo\n"), (".gitignore", "foo\n")],
        &[(".gitignore", "a/\nfoo/\nx/\n")],
        &[
            (".gitignore", "dir/sub/\n/other/\n"),
            ("dir/sub/.gitignore", "!foo\n"),
        ],
        &[(".gitignore", "foo/**\n/**/deep\n")],
        &[(".gitignore", "dir/sub/**/\n")],
        &[(".gitignore", "/*\n!/dir\n/dir/*\n!/dir/sub\n")],
    ];
    for (number, table) in tables.iter().enumerate() {
        let place = Place::new();
        let root = place.path("repo");
        git(&place.path("."), &["init", "-q", "repo"]);
        for file in FILES {
            write(&root, file, file);
        }
        for (file, text) in *table {
            write(&root, file, text);
        }
        println!("table {number}: {table:?}");
        agree(&root);
        // Tracked paths are carried whatever the rules say.
        git(&root, &["add", "-f", "dir/sub/foo", "build/keep/a", "foo"]);
        agree(&root);
    }
}

#[test]
fn the_users_excludes_and_folding_count() {
    let place = Place::new();
    let root = place.repository("repo");
    for file in FILES {
        write(&root, file, file);
    }
    let excludes = place.path("excludes");
    std::fs::write(&excludes, "*.log\nUPPER\n").unwrap();
    git(
        &root,
        &["config", "core.excludesFile", excludes.to_str().unwrap()],
    );
    agree(&root);
    git(&root, &["config", "core.ignoreCase", "true"]);
    agree(&root);
}

#[test]
fn included_paths_are_carried_and_looked_for_only_where_they_can_be() {
    let place = Place::new();
    let root = place.repository("repo");
    write(&root, ".gitignore", ".env\nnode_modules/\ncache/\nlocal/\n");
    for file in [
        ".env",
        "sub/.env",
        "node_modules/p/.env",
        "node_modules/p/x",
        "cache/keep/a",
        "cache/drop/b",
        "local/x/y",
    ] {
        write(&root, file, file);
    }
    write(
        &root,
        ".worktreeinclude",
        "/.env\n/cache/keep\n!/cache/keep/none\n",
    );
    let base = rules(&discover(&root), &["/local/"]);
    let found = carried(&root, &*base);
    assert_eq!(
        found,
        [
            ".env",
            ".gitignore",
            ".worktreeinclude",
            "a.txt",
            "cache/keep/a",
            "local/x/y",
            "src/lib.rs",
        ]
    );
    let verdict = |path: &str| base.verdict(&RelPath::new(path).unwrap(), true);
    assert_eq!(verdict("node_modules"), Verdict::Ignore);
    assert_eq!(verdict("cache"), Verdict::Look);
    assert_eq!(verdict("cache/drop"), Verdict::Ignore);
    assert_eq!(verdict("local"), Verdict::Carry);
    assert_eq!(verdict(".git"), Verdict::Hide);
    assert_eq!(verdict(".sandbar"), Verdict::Hide);
    let anywhere = rules(&discover(&root), &[".env"]);
    assert!(carried(&root, &*anywhere).contains(&"node_modules/p/.env".to_owned()));
    let saved =
        run(GIT.sandbox_rules(root.clone(), Hash::of(&base.save()), held(&base.save()))).unwrap();
    assert_eq!(carried(&root, &*saved), found);
}

#[test]
fn a_path_is_ignored_only_if_base_and_sandbox_agree() {
    let place = Place::new();
    let root = place.repository("repo");
    write(&root, ".gitignore", "*.log\n");
    git(&root, &["add", "."]);
    git(&root, &["commit", "-qm", "ignore"]);
    let made = sandbox(&place, "box", &root);
    write(&made.root, ".gitignore", "*.tmp\n*.log\na.txt\n");
    write(&made.root, "x.log", "ignored by both\n");
    write(&made.root, "x.tmp", "ignored inside only\n");
    write(&made.root, "forced.log", "tracked inside\n");
    git(&made.root, &["add", "-f", "forced.log"]);
    git(&made.root, &["rm", "-q", "--cached", "a.txt"]);
    let rules = run(GIT.sandbox_rules(made.root.clone(), Hash::of(&made.saved), held(&made.saved)))
        .unwrap();
    assert_eq!(
        carried(&made.root, &*rules),
        [".gitignore", "a.txt", "forced.log", "src/lib.rs", "x.tmp"]
    );
    assert!(rules.is_tracked(&RelPath::new("forced.log").unwrap()));
    assert!(!rules.is_tracked(&RelPath::new("a.txt").unwrap()));
    let rubbish = Hash::of(b"rubbish");
    let rules = run(GIT.sandbox_rules(made.root.clone(), rubbish, held(b"rubbish"))).unwrap();
    assert!(rules.fault().is_none(), "nothing was read");
    rules.verdict(&RelPath::new("a.txt").unwrap(), false);
    assert_eq!(rules.fault().unwrap().code, Code::CorruptStore);
}

#[test]
fn repositories_inside_have_rules_of_their_own() {
    let place = Place::new();
    let library = place.repository("library");
    write(&library, "kept.log", "tracked in the library\n");
    git(&library, &["add", "-f", "."]);
    git(&library, &["commit", "-qm", "log"]);
    let root = place.repository("repo");
    git(
        &root,
        &[
            "submodule",
            "add",
            "-q",
            library.to_str().unwrap(),
            "library",
        ],
    );
    write(&root, ".gitignore", "*.log\nout/\nskipped/\n");
    write(&root, "library/.gitignore", "own\n");
    write(&root, "library/own", "ignored there\n");
    write(&root, "library/out/x", "not ignored there\n");
    git(&place.path("."), &["clone", "-q", "library", "repo/nested"]);
    git(
        &place.path("."),
        &["clone", "-q", "library", "repo/skipped"],
    );
    write(&root, "nested/.git/logs/x.log", "git data\n");
    write(&root, "x.log", "ignored\n");
    let live = rules(&discover(&root), &[]);
    let found = carried(&root, &*live);
    for path in [
        "library/.git",
        "library/kept.log",
        "library/out/x",
        "library/.gitignore",
        "nested/kept.log",
        "nested/.git/HEAD",
        "nested/.git/logs/x.log",
    ] {
        assert!(found.contains(&path.to_owned()), "{path} in {found:#?}");
    }
    for path in ["x.log", "library/own", "skipped/a.txt"] {
        assert!(!found.contains(&path.to_owned()), "{path} in {found:#?}");
    }
    let again =
        run(GIT.sandbox_rules(root.clone(), Hash::of(&live.save()), held(&live.save()))).unwrap();
    assert_eq!(carried(&root, &*again), found);
}

#[test]
fn a_sparse_checkouts_absent_ignore_files_count() {
    let place = Place::new();
    let root = place.repository("repo");
    write(&root, "many/.gitignore", "*.log\n");
    git(&root, &["add", "."]);
    git(&root, &["commit", "-qm", "ignore"]);
    git(
        &root,
        &["sparse-checkout", "set", "--no-cone", "/*", "!/many/"],
    );
    write(&root, "many/x.log", "ignored\n");
    write(&root, "many/y.txt", "untracked\n");
    assert!(!root.join("many/.gitignore").exists());
    agree(&root);
}

fn piece() -> impl Strategy<Value = &'static str> {
    prop_oneof![
        Just("a"),
        Just("b"),
        Just("*"),
        Just("**"),
        Just("?"),
        Just("[ab]"),
        Just("a*"),
        Just("*b"),
        Just("\\a"),
        Just("[!a]"),
    ]
}

fn pattern() -> impl Strategy<Value = String> {
    (
        any::<bool>(),
        any::<bool>(),
        prop::collection::vec(piece(), 1..4),
        any::<bool>(),
        prop_oneof![Just(""), Just(" "), Just("\\ ")],
    )
        .prop_map(|(negated, anchored, pieces, dir, tail)| {
            let mut text = String::new();
            text.push_str(if negated { "!" } else { "" });
            text.push_str(if anchored { "/" } else { "" });
            text.push_str(&pieces.join("/"));
            text.push_str(if dir { "/" } else { "" });
            text + tail
        })
}

fn ignore_file() -> impl Strategy<Value = String> {
    prop::collection::vec(pattern(), 0..5).prop_map(|lines| lines.join("\n"))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn random_patterns_are_judged_as_git_judges_them(
        top in ignore_file(), below in ignore_file(), exclude in ignore_file(),
        tracked in prop::collection::vec(0usize..12, 0..4),
    ) {
        const PATHS: [&str; 12] = [
            "a/a/a", "a/a/b", "a/b/a", "a/b/c", "b/a/a", "b/b", "b/c/a", "c", "ab", "b/ab", "ba/a/b", "a/a b",
        ];
        let place = Place::new();
        let root = place.path("repo");
        git(&place.path("."), &["init", "-q", "repo"]);
        for path in PATHS {
            write(&root, path, path);
        }
        for number in tracked {
            git(&root, &["add", "-f", PATHS[number]]);
        }
        write(&root, ".gitignore", top);
        write(&root, "a/.gitignore", below);
        write(&root, ".git/info/exclude", exclude);
        agree(&root);
    }
}

#[test]
fn a_damaged_git_directory_does_not_stop_a_scan() {
    let place = Place::new();
    let root = place.repository("repo");
    write(&root, ".gitignore", "*.log\n");
    let made = sandbox(&place, "box", &root);
    write(&made.root, "x.log", "ignored\n");
    let want = [".gitignore", "a.txt", "src/lib.rs"];
    let seen = || {
        let rules =
            run(GIT.sandbox_rules(made.root.clone(), Hash::of(&made.saved), held(&made.saved)))
                .unwrap();
        carried(&made.root, &*rules)
    };
    assert_eq!(seen(), want);
    write(&made.root, ".git/index", "rubbish");
    assert_eq!(seen(), want);
    std::fs::remove_dir_all(made.root.join(".git")).unwrap();
    assert_eq!(seen(), want);
}
