//! Hidden commits: their trees are those of the working tree, they need no
//! identity, and ordinary git can read them.

use std::collections::HashMap;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::sync::Arc;

use sandbar_domain::{Change, Code, Entry, Hash, Kind, PlanId, RelPath};
use sandbar_ports::git::{Contents, GitState as _, HideRequest};
use sandbar_ports::{PortError, PortResult};

use crate::fixture::{GIT, Place, discover, git, held, make_executable, run, sandbox, walk, write};

#[derive(Debug, Default)]
pub(crate) struct Known(pub(crate) HashMap<Hash, Vec<u8>>);

impl Contents for Known {
    fn read(&self, hash: Hash) -> PortResult<Vec<u8>> {
        self.0
            .get(&hash)
            .cloned()
            .ok_or_else(|| PortError::new(Code::CorruptObject, format!("read {hash}: not there")))
    }
}

/// Scans a sandbox as the file layer does: every path with its entry.
pub(crate) fn scan(root: &Path, saved: &[u8], known: &mut Known) -> HashMap<RelPath, Entry> {
    let rules = run(GIT.sandbox_rules(root.to_owned(), Hash::of(saved), held(saved))).unwrap();
    let mut found = HashMap::new();
    walk(root, &*rules, &mut |path, meta| {
        let at = root.join(path);
        let (kind, bytes) = if meta.is_dir() {
            (Kind::Directory, Vec::new())
        } else if meta.is_symlink() {
            let target = std::fs::read_link(at).unwrap();
            (Kind::Symlink, target.into_os_string().into_encoded_bytes())
        } else {
            let executable = std::os::unix::fs::MetadataExt::mode(meta) & 0o100 != 0;
            let kind = if executable {
                Kind::Executable
            } else {
                Kind::File
            };
            (kind, std::fs::read(at).unwrap())
        };
        let hash = Hash::of(&bytes);
        known.0.insert(hash, bytes);
        found.insert(path.clone(), Entry::new(kind, hash));
    });
    found
}

pub(crate) fn changes(old: &HashMap<RelPath, Entry>, new: &HashMap<RelPath, Entry>) -> Vec<Change> {
    let mut paths: Vec<_> = old.keys().chain(new.keys()).cloned().collect();
    paths.sort();
    paths.dedup();
    paths
        .into_iter()
        .filter_map(|path| {
            let (old, new) = (old.get(&path).copied(), new.get(&path).copied());
            Change::between(path, old, new)
        })
        .collect()
}

fn plan() -> PlanId {
    PlanId::from_parts(1, 2)
}

/// The tree that git makes of the working tree, in an index of its own.
fn judged_tree(root: &Path) -> String {
    let index = root.join(".git/judge-index");
    let run = |args: &[&str]| {
        let output = std::process::Command::new("git")
            .args(args)
            .current_dir(root)
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap())
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .env("GIT_INDEX_FILE", &index)
            .output()
            .unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    std::fs::copy(root.join(".git/index"), &index).unwrap();
    run(&["add", "-A", "."]);
    let tree = run(&["write-tree"]);
    std::fs::remove_file(index).unwrap();
    tree.trim().to_owned()
}

#[test]
fn hidden_commits_hold_the_working_tree() {
    let place = Place::new();
    let root = place.repository("repo");
    write(&root, ".gitignore", "*.log\n");
    write(&root, "dir/deep/file", "deep\n");
    git(&root, &["add", "."]);
    git(&root, &["commit", "-qm", "more"]);
    write(&root, "a.txt", "edited\n");
    write(&root, "new/untracked", "u\n");
    write(&root, "x.log", "ignored\n");
    let made = sandbox(&place, "box", &root);
    let inside = &made.root;
    let mut known = Known::default();
    let first = scan(inside, &made.saved, &mut known);
    let hide = |number: u64, parent: Option<String>, changes: Vec<Change>, known: Known| {
        run(GIT.hide(HideRequest {
            root: inside.clone(),
            plan: plan(),
            sequence: number,
            parent,
            changes,
            copied: None,
            contents: Arc::new(known),
            pool: Some(made.pool.clone()),
            message: format!("checkpoint {number}"),
            time: 1_700_000_000,
        }))
        .unwrap()
    };
    // Only what the index does not know needs its content.
    let mut sparse = Known::default();
    for path in ["a.txt", "new/untracked"] {
        let entry = first[&RelPath::new(path).unwrap()];
        sparse.0.insert(entry.hash, known.0[&entry.hash].clone());
    }
    let one = hide(0, None, changes(&HashMap::new(), &first), sparse);
    let tree = |commit: &str| git(inside, &["rev-parse", &format!("{commit}^{{tree}}")]);
    assert_eq!(tree(&one).trim(), judged_tree(inside));

    std::fs::remove_dir_all(inside.join("dir")).unwrap();
    write(inside, "dir", "a file now\n");
    std::fs::remove_file(inside.join("a.txt")).unwrap();
    write(inside, "a.txt/inner", "a directory now\n");
    std::fs::remove_file(inside.join("new/untracked")).unwrap();
    symlink("nowhere", inside.join("new/link")).unwrap();
    make_executable(&inside.join("src/lib.rs"));
    let second = scan(inside, &made.saved, &mut known);
    let two = hide(1, Some(one.clone()), changes(&first, &second), known);
    assert_eq!(tree(&two).trim(), judged_tree(inside));

    let refs = git(
        inside,
        &[
            "for-each-ref",
            "--format=%(refname) %(objectname)",
            "refs/sandbar",
        ],
    );
    let name = |number| format!("refs/sandbar/{}/{number}", plan());
    assert_eq!(refs, format!("{} {one}\n{} {two}\n", name(0), name(1)));
    let log = git(inside, &["log", "--format=%an <%ae> %at %s", &two]);
    let line = |number| format!("Sandbar <sandbar@localhost> 1700000000 checkpoint {number}\n");
    assert_eq!(log, line(1) + &line(0));
    git(inside, &["fsck", "--strict", "--no-dangling"]);

    git(inside, &["pack-refs", "--all"]);
    run(GIT.unhide(inside.clone(), plan(), vec![0, 7])).unwrap();
    run(GIT.unhide(inside.clone(), plan(), vec![0])).unwrap();
    let refs = git(
        inside,
        &["for-each-ref", "--format=%(refname)", "refs/sandbar"],
    );
    assert_eq!(refs, format!("{}\n", name(1)));
    assert_eq!(git(&root, &["for-each-ref", "refs/sandbar"]), "");
}

/// Takes away what a rollback to the base takes away: every object that the
/// pool does not keep; and links back what it keeps.
fn roll_back_objects(git_dir: &Path, pool: &Path) {
    let objects = git_dir.join("objects");
    std::fs::remove_dir_all(&objects).unwrap();
    std::fs::create_dir_all(objects.join("pack")).unwrap();
    for entry in std::fs::read_dir(pool).unwrap() {
        let entry = entry.unwrap();
        let name = entry.file_name().into_string().unwrap().replace('!', "/");
        std::fs::create_dir_all(objects.join(&name).parent().unwrap()).unwrap();
        std::fs::hard_link(entry.path(), objects.join(name)).unwrap();
    }
}

#[test]
fn hidden_commits_outlive_a_rollback_and_a_prune() {
    let place = Place::new();
    let root = place.repository("repo");
    write(&root, "dir/deep/file", "deep\n");
    git(&root, &["add", "."]);
    git(&root, &["commit", "-qm", "more"]);
    git(&root, &["gc", "-q"]);
    let made = sandbox(&place, "box", &root);
    let inside = &made.root;
    let mut known = Known::default();
    let mut states = vec![HashMap::new()];
    let mut commits: Vec<String> = Vec::new();
    let mut hide = |known: &mut Known, states: &mut Vec<HashMap<RelPath, Entry>>| {
        let now = scan(inside, &made.saved, known);
        let request = HideRequest {
            root: inside.clone(),
            plan: plan(),
            sequence: u64::try_from(commits.len()).unwrap(),
            parent: commits.last().cloned(),
            changes: changes(&states[states.len() - 1], &now),
            copied: None,
            contents: Arc::new(Known(known.0.clone())),
            pool: Some(made.pool.clone()),
            message: "checkpoint".to_owned(),
            time: 0,
        };
        states.push(now);
        commits.push(run(GIT.hide(request)).unwrap());
        commits.clone()
    };
    hide(&mut known, &mut states);
    // The agent commits and packs: its objects are no part of the pool.
    git(inside, &["checkout", "-qb", "side"]);
    write(inside, "dir/deep/file", "changed\n");
    write(inside, "new.txt", "new\n");
    git(inside, &["add", "."]);
    git(inside, &["commit", "-qm", "agent"]);
    git(inside, &["repack", "-qad"]);
    hide(&mut known, &mut states);
    write(inside, "loose.txt", "loose\n");
    git(inside, &["add", "."]);
    let hidden = hide(&mut known, &mut states);

    git(inside, &["checkout", "-qf", "main"]);
    git(inside, &["branch", "-qD", "side"]);
    git(inside, &["reflog", "expire", "--expire=now", "--all"]);
    roll_back_objects(&inside.join(".git"), &made.pool);
    git(inside, &["fsck", "--strict", "--no-dangling"]);
    git(inside, &["log", "--all", "--stat"]);
    let blob = git(inside, &["show", &format!("{}:dir/deep/file", hidden[1])]);
    assert_eq!(blob, "changed\n");

    // Even without its refs, the next one finds its parent.
    git(inside, &["pack-refs", "--all"]);
    for number in 0..3 {
        git(
            inside,
            &[
                "update-ref",
                "-d",
                &format!("refs/sandbar/{}/{number}", plan()),
            ],
        );
    }
    git(inside, &["gc", "-q", "--prune=now"]);
    std::fs::remove_dir_all(inside.join(".git/objects/pack")).unwrap();
    std::fs::create_dir_all(inside.join(".git/objects/pack")).unwrap();
    let hidden = hide(&mut known, &mut states);
    assert_eq!(git(inside, &["rev-list", "--count", &hidden[3]]), "4\n");
    git(inside, &["fsck", "--strict", "--no-dangling"]);
}

#[test]
fn submodules_stay_submodules_and_conversions_are_undone() {
    let place = Place::new();
    let library = place.repository("library");
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
    write(&root, "dos.txt", "one\r\ntwo\r\n");
    write(&root, ".gitattributes", "dos.txt text eol=crlf\n");
    git(&root, &["add", "."]);
    git(&root, &["commit", "-qm", "all"]);
    let made = sandbox(&place, "box", &root);
    let mut known = Known::default();
    let now = scan(&made.root, &made.saved, &mut known);
    let id = run(GIT.hide(HideRequest {
        root: made.root.clone(),
        plan: plan(),
        sequence: 0,
        parent: None,
        changes: changes(&HashMap::new(), &now),
        copied: None,
        contents: Arc::new(known),
        pool: None,
        message: "base".to_owned(),
        time: 0,
    }))
    .unwrap();
    let list = git(&made.root, &["ls-tree", "-r", &id]);
    assert!(list.contains("160000 commit"), "{list}");
    assert!(!list.contains("library/"), "{list}");
    assert_eq!(
        git(&made.root, &["cat-file", "blob", &format!("{id}:dos.txt")]),
        "one\r\ntwo\r\n"
    );
}

#[test]
fn what_stays_inside_is_listed() {
    let place = Place::new();
    let root = place.repository("repo");
    git(&root, &["branch", "known"]);
    git(&root, &["branch", "doomed"]);
    let made = sandbox(&place, "box", &root);
    let inside = &made.root;
    let read = |name: &str| std::fs::read(inside.join(".git").join(name)).unwrap();
    let began = sandbar_ports::git::Began {
        packed_refs: read("packed-refs"),
        config: read("config"),
        landed: false,
    };
    let left = |began: &sandbar_ports::git::Began| {
        run(GIT.left_inside(inside.clone(), discover(&root), began.clone())).unwrap()
    };
    assert_eq!(left(&began), Vec::<String>::new());
    // What moves outside meanwhile was not made inside.
    git(&root, &["commit", "-q", "--allow-empty", "-m", "outside"]);
    git(&root, &["branch", "-f", "known"]);
    git(&root, &["branch", "fresh"]);
    assert_eq!(left(&began), Vec::<String>::new());
    git(inside, &["checkout", "-qb", "topic"]);
    for number in 0..2 {
        write(inside, "a.txt", format!("{number}\n"));
        git(inside, &["commit", "-qam", "more"]);
    }
    git(inside, &["tag", "mark"]);
    git(inside, &["tag", "old", "main"]);
    git(inside, &["branch", "-qD", "doomed"]);
    git(inside, &["notes", "add", "-m", "note", "main"]);
    git(inside, &["config", "user.email", "secret@example.com"]);
    git(inside, &["config", "remote.fork.url", "/fork"]);
    write(inside, "a.txt", "stash\n");
    git(inside, &["stash", "-q"]);
    let main = git(inside, &["rev-parse", "main"]);
    let mut expected = vec![
        "branch topic: 2 commits".to_owned(),
        "notes commits: 1 commit".to_owned(),
        "stash: 1 entry".to_owned(),
        "tag mark: 2 commits".to_owned(),
        format!("tag old: new, at {}", main.trim()),
        "branch doomed: deleted inside, not in your repository".to_owned(),
        "config: remote.fork.url, user.email".to_owned(),
    ];
    assert_eq!(left(&began), expected);
    // The branch that lands is not left.
    let landing = sandbar_ports::git::Began {
        landed: true,
        ..began
    };
    expected.remove(0);
    assert_eq!(left(&landing), expected);
}

#[test]
fn nothing_is_written_through_a_git_directory_that_leads_elsewhere() {
    let place = Place::new();
    let root = place.repository("repo");
    let before = crate::fixture::digest(&root);
    let real = root.join(".git");
    type Lead<'a> = (&'a str, &'a dyn Fn(&Path));
    let lead: [Lead<'_>; 4] = [
        ("gitfile", &|inside| {
            std::fs::remove_dir_all(inside.join(".git")).unwrap();
            write(inside, ".git", format!("gitdir: {}\n", real.display()));
        }),
        ("symlink", &|inside| {
            std::fs::remove_dir_all(inside.join(".git")).unwrap();
            symlink(&real, inside.join(".git")).unwrap();
        }),
        ("refs", &|inside| {
            std::fs::remove_dir_all(inside.join(".git/refs")).unwrap();
            symlink(real.join("refs"), inside.join(".git/refs")).unwrap();
        }),
        ("commondir", &|inside| {
            write(inside, ".git/commondir", format!("{}\n", real.display()));
        }),
    ];
    for (name, change) in lead {
        let made = sandbox(&place, name, &root);
        change(&made.root);
        let error = run(GIT.hide(HideRequest {
            root: made.root.clone(),
            plan: plan(),
            sequence: 0,
            parent: None,
            changes: Vec::new(),
            copied: None,
            contents: Arc::new(Known::default()),
            pool: None,
            message: "base".to_owned(),
            time: 0,
        }))
        .unwrap_err();
        assert_eq!(error.code, Code::RepositoryRefused, "{name}: {error}");
        assert!(run(GIT.unhide(made.root.clone(), plan(), vec![0])).is_err());
        assert_eq!(crate::fixture::digest(&root), before, "{name}");
    }
}
