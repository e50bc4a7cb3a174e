//! Landing results as commits (APL-10): what is committed, what is left to the
//! user, what is refused; forth, back and again.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use proptest::prelude::*;
use sandbar_domain::{Change, Code, Entry, Kind, RelPath};
use sandbar_ports::git::{GitState as _, Landfall, Landing, LandingRequest};
use sandbar_ports::{PortError, PortResult};

use crate::fixture::{GIT, Place, Sandbox, discover, git, run, sandbox, sandbox_with, write};
use crate::hidden::{Known, changes, scan};

const LINES: &str = "1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n11\n12\n13\n14\n15\n";

/// A plan: a sandbox and the state it began with.
struct Plan {
    root: PathBuf,
    made: Sandbox,
    base: HashMap<RelPath, Entry>,
    base_head: Option<String>,
    base_branch: Option<String>,
    known: Known,
}

impl Plan {
    fn new(place: &Place, root: &Path) -> Self {
        Self::with(root, sandbox(place, "box", root))
    }

    fn with(root: &Path, made: Sandbox) -> Self {
        let mut known = Known::default();
        let base = scan(&made.root, &made.saved, &mut known);
        let checkout = discover(root);
        Self {
            root: root.to_owned(),
            made,
            base,
            base_head: checkout.head,
            base_branch: checkout.branch,
            known,
        }
    }

    fn inside(&self) -> &Path {
        &self.made.root
    }

    fn changes(&mut self) -> Vec<Change> {
        let now = scan(&self.made.root, &self.made.saved, &mut self.known);
        changes(&self.base, &now)
    }

    fn prepare_as(&mut self, change: impl FnOnce(&mut LandingRequest)) -> PortResult<Landing> {
        let changes = self.changes();
        let mut request = LandingRequest {
            checkout: discover(&self.root),
            root: self.made.root.clone(),
            base_head: self.base_head.clone(),
            base_branch: self.base_branch.clone(),
            to: Landfall::Commit,
            onto_current: false,
            allow_filters: false,
            message: "the rest".to_owned(),
            changes,
            contents: Arc::new(Known(self.known.0.clone())),
            time: 1_700_000_000,
        };
        change(&mut request);
        run(GIT.prepare_landing(request))
    }

    fn prepare(&mut self) -> Landing {
        self.prepare_as(|_| ()).unwrap()
    }

    fn refused(&mut self) -> PortError {
        self.prepare_as(|_| ()).unwrap_err()
    }

    /// Writes the changes to the real tree, as an apply does where the user
    /// has changed nothing of the same file.
    fn write(&mut self) {
        for change in self.changes() {
            let at = self.root.join(&change.path);
            match change.new {
                Some(new) if new.kind == Kind::Directory => std::fs::create_dir_all(at).unwrap(),
                Some(new) => write(&self.root, change.path.as_str(), &self.known.0[&new.hash]),
                None => {
                    let _ = std::fs::remove_file(at);
                }
            }
        }
    }

    fn land(&self, landing: &Landing) -> PortResult<()> {
        run(GIT.land(discover(&self.root), landing.clone()))
    }
}

fn start(place: &Place) -> PathBuf {
    let root = place.repository("repo");
    write(&root, "lines.txt", LINES);
    write(&root, "other.txt", "other\n");
    write(&root, "gone.txt", "gone\n");
    git(&root, &["add", "."]);
    git(&root, &["commit", "-qm", "second"]);
    root
}

fn status(root: &Path) -> String {
    git(root, &["status", "--porcelain", "-uall"])
}

fn subjects(root: &Path) -> String {
    git(root, &["log", "--format=%s"])
}

#[test]
fn uncommitted_changes_become_one_commit_without_the_users_own() {
    let place = Place::new();
    let root = start(&place);
    write(
        &root,
        "lines.txt",
        LINES.replace("2\n", "2 user\n").replace("12 user", "12"),
    );
    write(&root, "other.txt", "the user's\n");
    write(&root, "notes.txt", "the user's\n");
    write(&root, "staged.txt", "staged\n");
    git(&root, &["add", "staged.txt"]);
    let mut plan = Plan::new(&place, &root);
    let inside = plan.inside().to_owned();
    let text = std::fs::read_to_string(inside.join("lines.txt")).unwrap();
    write(&inside, "lines.txt", text.replace("8\n", "8 agent\n"));
    write(&inside, "src/new.rs", "new\n");
    std::fs::remove_file(inside.join("gone.txt")).unwrap();
    let before = git(&root, &["rev-parse", "HEAD"]);
    let landing = plan.prepare();
    assert_eq!(
        git(&root, &["rev-parse", "HEAD"]),
        before,
        "no ref moved yet"
    );
    assert_eq!(landing.commits.len(), 1);
    plan.write();
    plan.land(&landing).unwrap();
    assert_eq!(subjects(&root), "the rest\nsecond\nfirst\n");
    let shown = git(
        &root,
        &["show", "--format=%an <%ae>", "--name-status", "HEAD"],
    );
    assert_eq!(
        shown,
        "Sandbar <sandbar@localhost>\n\nD\tgone.txt\nM\tlines.txt\nA\tsrc/new.rs\n"
    );
    let committed = git(&root, &["show", "HEAD:lines.txt"]);
    assert_eq!(committed, LINES.replace("8\n", "8 agent\n"));
    assert_eq!(
        status(&root),
        " M lines.txt\n M other.txt\nA  staged.txt\n?? notes.txt\n"
    );
    let diff = git(&root, &["diff", "lines.txt"]);
    assert!(
        diff.contains("+2 user") && !diff.contains("agent\n+"),
        "{diff}"
    );
    git(&root, &["fsck", "--strict", "--no-dangling"]);
    let log = git(&root, &["reflog", "-1", "--format=%gs"]);
    assert_eq!(log, "sandbar apply: the rest\n");
    assert_eq!(git(&root, &["reflog", "-1", "main", "--format=%gs"]), log);
}

#[test]
fn the_series_is_kept_and_the_rest_comes_on_top() {
    let place = Place::new();
    let root = start(&place);
    git(&root, &["config", "user.name", "User"]);
    git(&root, &["config", "user.email", "user@example.com"]);
    let mut plan = Plan::new(&place, &root);
    let inside = plan.inside().to_owned();
    write(&inside, "one.txt", "one\n");
    git(&inside, &["add", "."]);
    git(&inside, &["commit", "-qm", "agent one"]);
    git(&inside, &["checkout", "-qb", "side", "HEAD~1"]);
    write(&inside, "two.txt", "two\n");
    git(&inside, &["add", "."]);
    git(&inside, &["commit", "-qm", "agent two"]);
    git(&inside, &["checkout", "-q", "main"]);
    git(
        &inside,
        &["merge", "-q", "--no-ff", "-m", "agent merge", "side"],
    );
    let head = git(&inside, &["rev-parse", "HEAD"]);
    write(&inside, "one.txt", "one, and more\n");
    let landing = plan.prepare();
    assert_eq!(landing.notes, Vec::<String>::new());
    assert_eq!(landing.commits.len(), 4);
    plan.write();
    plan.land(&landing).unwrap();
    assert_eq!(
        git(&root, &["rev-parse", "HEAD~1"]),
        head,
        "the same commits"
    );
    assert_eq!(
        git(&root, &["log", "-1", "--format=%an %cn %s"]),
        "User User the rest\n"
    );
    assert_eq!(status(&root), "");
    git(&root, &["fsck", "--strict", "--no-dangling"]);

    // Back, and back again.
    for _ in 0..2 {
        run(GIT.unland(discover(&root), landing.clone())).unwrap();
        assert_eq!(subjects(&root), "second\nfirst\n");
        assert_eq!(status(&root), "?? one.txt\n?? two.txt\n");
    }
    // And forth twice, as after a crash.
    for _ in 0..2 {
        plan.land(&landing).unwrap();
        assert_eq!(status(&root), "");
    }
}

#[test]
fn a_landing_goes_on_where_a_crash_stopped_it() {
    let place = Place::new();
    let root = start(&place);
    let mut plan = Plan::new(&place, &root);
    let inside = plan.inside().to_owned();
    write(&inside, "other.txt", "agent\n");
    let landing = plan.prepare();
    plan.write();
    git(
        &root,
        &["update-ref", "refs/heads/main", &landing.commits[0]],
    );
    assert_eq!(status(&root), "MM other.txt\n");
    plan.land(&landing).unwrap();
    assert_eq!(status(&root), "");
    git(&root, &["commit", "-q", "--allow-empty", "-m", "later"]);
    let error = run(GIT.unland(discover(&root), landing.clone())).unwrap_err();
    assert_eq!(error.code, Code::HeadMoved, "{error}");
    assert_eq!(plan.land(&landing).unwrap_err().code, Code::HeadMoved);
}

#[test]
fn a_held_lock_is_told_and_nothing_moves() {
    let place = Place::new();
    let root = start(&place);
    let mut plan = Plan::new(&place, &root);
    write(plan.inside(), "other.txt", "agent\n");
    let landing = plan.prepare();
    let before = git(&root, &["rev-parse", "HEAD"]);
    write(&root, ".git/index.lock", "");
    let error = plan.land(&landing).unwrap_err();
    assert_eq!(error.code, Code::GitLocked, "{error}");
    std::fs::remove_file(root.join(".git/index.lock")).unwrap();
    write(&root, ".git/refs/heads/main.lock", "");
    let error = plan.land(&landing).unwrap_err();
    assert_eq!(error.code, Code::GitLocked, "{error}");
    std::fs::remove_file(root.join(".git/refs/heads/main.lock")).unwrap();
    assert_eq!(git(&root, &["rev-parse", "HEAD"]), before);
    assert!(!root.join(".git/index.lock").exists());
    plan.land(&landing).unwrap();
}

#[test]
fn the_series_follows_a_head_that_moved_on() {
    let place = Place::new();
    let root = start(&place);
    let mut plan = Plan::new(&place, &root);
    let inside = plan.inside().to_owned();
    write(&inside, "lines.txt", LINES.replace("8\n", "8 agent\n"));
    git(&inside, &["commit", "-qam", "agent one"]);
    write(&inside, "new.txt", "new\n");
    git(&inside, &["add", "."]);
    git(&inside, &["commit", "-qm", "agent two"]);
    write(&inside, "new.txt", "new, and more\n");
    write(&root, "lines.txt", LINES.replace("2\n", "2 user\n"));
    git(&root, &["commit", "-qam", "user"]);
    let landing = plan.prepare();
    assert_eq!(landing.commits.len(), 3);
    write(
        &root,
        "lines.txt",
        LINES.replace("2\n", "2 user\n").replace("8\n", "8 agent\n"),
    );
    write(&root, "new.txt", "new, and more\n");
    plan.land(&landing).unwrap();
    assert_eq!(
        subjects(&root),
        "the rest\nagent two\nagent one\nuser\nsecond\nfirst\n"
    );
    assert_eq!(
        git(&root, &["log", "-1", "--format=%an", "HEAD~1"]),
        "A U Thor\n"
    );
    let now = std::fs::read_to_string(root.join("lines.txt")).unwrap();
    assert_eq!(git(&root, &["show", "HEAD:lines.txt"]), now);
    assert_eq!(status(&root), "");
    git(&root, &["fsck", "--strict", "--no-dangling"]);
}

#[test]
fn what_does_not_fit_is_drift_by_path() {
    let place = Place::new();
    let root = start(&place);
    let mut plan = Plan::new(&place, &root);
    let inside = plan.inside().to_owned();
    write(&inside, "lines.txt", LINES.replace("8\n", "8 agent\n"));
    git(&inside, &["commit", "-qam", "agent"]);
    write(&root, "lines.txt", LINES.replace("8\n", "8 user\n"));
    git(&root, &["commit", "-qam", "user"]);
    let before = (
        git(&root, &["count-objects", "-v"]),
        git(&root, &["for-each-ref"]),
    );
    let error = plan.refused();
    assert_eq!(
        (error.code, &error.subjects[..]),
        (Code::Drift, &["lines.txt".to_owned()][..])
    );
    let after = (
        git(&root, &["count-objects", "-v"]),
        git(&root, &["for-each-ref"]),
    );
    assert_eq!(after, before, "nothing was written");

    let place = Place::new();
    let root = start(&place);
    write(&root, "lines.txt", LINES.replace("8\n", "8 user\n"));
    write(&root, "untracked.txt", "the user's\n");
    let mut plan = Plan::new(&place, &root);
    let inside = plan.inside().to_owned();
    write(
        &inside,
        "lines.txt",
        LINES.replace("8\n", "8 user and agent\n"),
    );
    write(&inside, "untracked.txt", "the agent's\n");
    let error = plan.refused();
    assert_eq!(error.code, Code::Drift);
    assert_eq!(error.subjects, ["lines.txt", "untracked.txt"]);
}

#[test]
fn commits_that_hold_the_users_work_say_so() {
    let place = Place::new();
    let root = start(&place);
    write(&root, "other.txt", "the user's\n");
    write(&root, "lines.txt", LINES.replace("2\n", "2 user\n"));
    let mut plan = Plan::new(&place, &root);
    let inside = plan.inside().to_owned();
    let text = std::fs::read_to_string(inside.join("lines.txt")).unwrap();
    write(&inside, "lines.txt", text.replace("8\n", "8 agent\n"));
    git(&inside, &["commit", "-qam", "agent, all"]);
    write(&inside, "lines.txt", text.replace("8\n", "8 agent again\n"));
    let landing = plan.prepare();
    assert_eq!(
        landing.notes,
        ["the commits made inside hold changes that you had not committed: lines.txt, other.txt"]
    );
    plan.write();
    plan.land(&landing).unwrap();
    assert_eq!(status(&root), "");
    assert_eq!(subjects(&root), "the rest\nagent, all\nsecond\nfirst\n");
}

#[test]
fn a_branch_is_made_beside_head() {
    let place = Place::new();
    let root = start(&place);
    write(&root, "other.txt", "the user's\n");
    let mut plan = Plan::new(&place, &root);
    let inside = plan.inside().to_owned();
    write(&inside, "new.txt", "new\n");
    git(&inside, &["add", "new.txt"]);
    git(&inside, &["commit", "-qm", "agent"]);
    write(&inside, "new.txt", "newer\n");
    git(&root, &["commit", "-q", "--allow-empty", "-m", "user"]);
    git(&root, &["checkout", "-qb", "elsewhere"]);
    let before = (status(&root), git(&root, &["ls-files", "-s"]));
    let name = |name: &str| Landfall::Branch(name.to_owned());
    let landing = plan
        .prepare_as(|request| request.to = name("plan/topic"))
        .unwrap();
    plan.land(&landing).unwrap();
    plan.land(&landing).unwrap();
    let log = git(&root, &["log", "--format=%s", "plan/topic"]);
    assert_eq!(log, "the rest\nagent\nsecond\nfirst\n");
    assert_eq!((status(&root), git(&root, &["ls-files", "-s"])), before);
    assert_eq!(
        git(&root, &["symbolic-ref", "HEAD"]),
        "refs/heads/elsewhere\n"
    );
    for bad in ["plan/topic", "plan", "plan/topic/deeper", "a..b", "-x", ""] {
        let error = plan
            .prepare_as(|request| request.to = name(bad))
            .unwrap_err();
        assert_eq!(error.code, Code::CommitRefused, "{bad}: {error}");
    }
    run(GIT.unland(discover(&root), landing)).unwrap();
    assert_eq!(git(&root, &["for-each-ref", "refs/heads/plan"]), "");
}

#[test]
fn unborn_and_detached_heads_take_commits() {
    let place = Place::new();
    let root = place.path("unborn");
    git(&place.path("."), &["init", "-q", "-b", "start", "unborn"]);
    let mut plan = Plan::new(&place, &root);
    write(plan.inside(), "first.txt", "first\n");
    let landing = plan.prepare();
    plan.write();
    plan.land(&landing).unwrap();
    plan.land(&landing).unwrap();
    assert_eq!(subjects(&root), "the rest\n");
    assert_eq!(status(&root), "");
    run(GIT.unland(discover(&root), landing)).unwrap();
    assert_eq!(status(&root), "?? first.txt\n");
    assert_eq!(git(&root, &["symbolic-ref", "HEAD"]), "refs/heads/start\n");

    let root = start(&place);
    git(&root, &["checkout", "-q", "--detach"]);
    let mut plan = Plan::with(&root, sandbox(&place, "box2", &root));
    let inside = plan.inside().to_owned();
    write(&inside, "other.txt", "agent\n");
    git(&inside, &["commit", "-qam", "agent"]);
    let landing = plan.prepare();
    plan.write();
    plan.land(&landing).unwrap();
    assert_eq!(subjects(&root), "agent\nsecond\nfirst\n");
    assert_eq!(status(&root), "");
    assert_eq!(
        git(&root, &["rev-parse", "main"]),
        git(&root, &["rev-parse", "HEAD~1"])
    );
    assert_eq!(
        git(&root, &["reflog", "-1", "--format=%gs"]),
        "sandbar apply: agent\n"
    );
}

#[test]
fn another_branch_signing_and_filters_are_refused() {
    let place = Place::new();
    let root = start(&place);
    write(&root, ".gitattributes", "*.bin filter=lfs\n");
    git(&root, &["add", "."]);
    git(&root, &["commit", "-qm", "attributes"]);
    let mut plan = Plan::new(&place, &root);
    let inside = plan.inside().to_owned();
    write(&inside, "data.bin", "data\n");
    write(&inside, "other.txt", "agent\n");
    let error = plan.refused();
    assert_eq!(error.code, Code::CommitRefused);
    assert_eq!(error.subjects, ["data.bin"]);
    let landing = plan
        .prepare_as(|request| request.allow_filters = true)
        .unwrap();
    assert_eq!(
        landing.notes,
        ["committed as they are, without their filter: data.bin"]
    );
    std::fs::remove_file(inside.join("data.bin")).unwrap();
    git(&root, &["config", "commit.gpgSign", "true"]);
    let error = plan.refused();
    assert!(
        error.code == Code::CommitRefused && error.message.contains("gpgSign"),
        "{error}"
    );
    git(&root, &["config", "--unset", "commit.gpgSign"]);
    git(&root, &["checkout", "-qb", "elsewhere"]);
    assert_eq!(plan.refused().code, Code::HeadMoved);
    let landing = plan
        .prepare_as(|request| request.onto_current = true)
        .unwrap();
    assert_eq!(landing.refs[0].0, "refs/heads/elsewhere");
}

#[test]
fn line_endings_and_ignored_files_are_treated_as_git_does() {
    let place = Place::new();
    let root = start(&place);
    git(&root, &["config", "core.autocrlf", "true"]);
    write(&root, ".gitignore", ".env\n");
    write(&root, "dos.txt", "1\r\n2\r\n3\r\n");
    git(&root, &["add", "."]);
    git(&root, &["commit", "-qm", "dos"]);
    write(&root, ".env", "secret\n");
    let mut plan = Plan::with(&root, sandbox_with(&place, "box", &root, false, &[".env"]));
    let inside = plan.inside().to_owned();
    write(&inside, "dos.txt", "1\r\n2\r\n3\r\n4\r\n");
    write(&inside, ".env", "changed\n");
    let landing = plan.prepare();
    assert_eq!(landing.notes, ["ignored files are not committed: .env"]);
    plan.write();
    plan.land(&landing).unwrap();
    assert_eq!(git(&root, &["show", "HEAD:dos.txt"]), "1\n2\n3\n4\n");
    assert_eq!(status(&root), "");
    assert_eq!(
        git(&root, &["show", "--format=", "--name-only", "HEAD"]),
        "dos.txt\n"
    );
}

#[test]
fn files_and_directories_change_places() {
    let place = Place::new();
    let root = start(&place);
    let mut plan = Plan::new(&place, &root);
    let inside = plan.inside().to_owned();
    std::fs::remove_file(inside.join("other.txt")).unwrap();
    write(&inside, "other.txt/inner", "inner\n");
    std::fs::remove_dir_all(inside.join("src")).unwrap();
    write(&inside, "src", "a file\n");
    let landing = plan.prepare();
    std::fs::remove_file(root.join("other.txt")).unwrap();
    std::fs::remove_dir_all(root.join("src")).unwrap();
    plan.write();
    plan.land(&landing).unwrap();
    assert_eq!(status(&root), "");
    git(&root, &["fsck", "--strict", "--no-dangling"]);

    // A file of the user's in the way is not swept out of the tree.
    let place = Place::new();
    let root = start(&place);
    let mut plan = Plan::new(&place, &root);
    let inside = plan.inside().to_owned();
    std::fs::remove_dir_all(inside.join("src")).unwrap();
    write(&inside, "src", "a file\n");
    write(&root, "src/user.rs", "the user's\n");
    git(&root, &["add", "."]);
    git(&root, &["commit", "-qm", "user"]);
    assert_eq!(plan.refused().subjects, ["src"]);
}

#[test]
fn nothing_to_commit_moves_nothing() {
    let place = Place::new();
    let root = start(&place);
    let mut plan = Plan::new(&place, &root);
    let landing = plan.prepare();
    assert_eq!(landing.refs, []);
    assert_eq!(landing.index, None);
    assert_eq!(landing.notes, ["there is nothing to commit"]);
    plan.land(&landing).unwrap();
    assert_eq!(subjects(&root), "second\nfirst\n");
}

#[test]
fn filtered_files_are_replaced_as_a_whole_where_that_is_allowed() {
    let place = Place::new();
    let root = start(&place);
    write(&root, "data.bin", "the pointer\n");
    git(&root, &["add", "."]);
    git(&root, &["commit", "-qm", "data"]);
    write(&root, ".gitattributes", "*.bin filter=swap\n");
    git(&root, &["add", "."]);
    git(&root, &["commit", "-qm", "attributes"]);
    git(&root, &["config", "filter.swap.clean", "false"]);
    git(&root, &["config", "filter.swap.required", "true"]);
    write(&root, "data.bin", "the smudged content\n");
    let mut plan = Plan::new(&place, &root);
    write(plan.inside(), "data.bin", "new content\n");
    let landing = plan
        .prepare_as(|request| request.allow_filters = true)
        .unwrap();
    plan.land(&landing).unwrap();
    assert_eq!(git(&root, &["show", "HEAD:data.bin"]), "new content\n");
}

#[test]
fn a_head_that_moved_between_preparing_and_landing_stays() {
    let place = Place::new();
    let root = start(&place);
    let mut plan = Plan::new(&place, &root);
    write(plan.inside(), "other.txt", "agent\n");
    let landing = plan.prepare();
    git(&root, &["checkout", "-q", "-b", "elsewhere"]);
    git(&root, &["commit", "-q", "--allow-empty", "-m", "user"]);
    let before = (
        git(&root, &["for-each-ref"]),
        git(&root, &["ls-files", "-s"]),
    );
    assert_eq!(plan.land(&landing).unwrap_err().code, Code::HeadMoved);
    assert_eq!(
        (
            git(&root, &["for-each-ref"]),
            git(&root, &["ls-files", "-s"])
        ),
        before
    );
    assert!(!root.join(".git/index.lock").exists());
}

#[test]
fn a_submodule_that_moves_is_told() {
    let place = Place::new();
    let library = place.repository("library");
    let root = start(&place);
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
    git(&root, &["commit", "-qm", "library"]);
    let mut plan = Plan::new(&place, &root);
    let inside = plan.inside().to_owned();
    write(&inside, "library/a.txt", "agent\n");
    git(&inside.join("library"), &["commit", "-qam", "inside"]);
    let moved = git(&inside.join("library"), &["rev-parse", "HEAD"]);
    git(&inside, &["commit", "-qam", "bump"]);
    let landing = plan.prepare();
    let note = format!(
        "submodule library moves to {}: that commit is not brought",
        moved.trim()
    );
    assert_eq!(landing.notes, [note]);
    assert_eq!(landing.commits.len(), 1);
    plan.land(&landing).unwrap();
    assert_eq!(subjects(&root), "bump\nlibrary\nsecond\nfirst\n");
}

#[test]
fn hostile_trees_are_refused() {
    let place = Place::new();
    let root = start(&place);
    let mut plan = Plan::new(&place, &root);
    let inside = plan.inside().to_owned();
    let blob = git(&inside, &["hash-object", "-w", "other.txt"]);
    let inner = format!("100755 blob {}\tpost-checkout\n", blob.trim());
    let make = |text: &str| {
        use std::io::Write as _;
        let mut child = std::process::Command::new("git")
            .args(["mktree"])
            .current_dir(&inside)
            .stdin(std::process::Stdio::piped())
            .stdout(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        child
            .stdin
            .take()
            .unwrap()
            .write_all(text.as_bytes())
            .unwrap();
        let output = child.wait_with_output().unwrap();
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    };
    let hooks = make(&inner);
    let top = make(&format!("040000 tree {hooks}\t.GIT\n"));
    let commit = git(
        &inside,
        &["commit-tree", "-p", "HEAD", "-m", "hostile", &top],
    );
    git(&inside, &["update-ref", "HEAD", commit.trim()]);
    let error = plan.refused();
    assert_eq!(error.code, Code::CommitRefused, "{error}");
    assert_eq!(error.subjects, [".GIT/post-checkout"]);
}

#[test]
fn linked_worktrees_packed_refs_and_odd_indexes_take_commits() {
    let place = Place::new();
    let root = start(&place);
    git(
        &root,
        &["worktree", "add", "-q", "../linked", "-b", "topic"],
    );
    git(&root, &["pack-refs", "--all"]);
    let linked = place.path("linked");
    write(&linked, "staged.txt", "staged\n");
    git(&linked, &["add", "staged.txt"]);
    let main = (judged_refs(&root, "main"), status(&root));
    for (number, prepare) in [
        &["status"][..],
        &["update-index", "--split-index"],
        &["update-index", "--index-version", "4"],
        &["update-index", "--untracked-cache"],
    ]
    .into_iter()
    .enumerate()
    {
        git(&linked, prepare);
        let made = sandbox(&place, &format!("box{number}"), &linked);
        let mut plan = Plan::with(&linked, made);
        write(plan.inside(), "other.txt", format!("agent {number}\n"));
        write(plan.inside(), &format!("dir/new{number}.txt"), "new\n");
        let landing = plan.prepare();
        plan.write();
        plan.land(&landing).unwrap();
        assert_eq!(status(&linked), "A  staged.txt\n", "{prepare:?}");
        run(GIT.unland(discover(&linked), landing.clone())).unwrap();
        plan.land(&landing).unwrap();
        assert_eq!(status(&linked), "A  staged.txt\n", "{prepare:?}");
        git(&linked, &["fsck", "--strict", "--no-dangling"]);
    }
    assert_eq!((judged_refs(&root, "main"), status(&root)), main);
    assert_eq!(subjects(&linked).lines().count(), 6);
}

fn judged_refs(root: &Path, name: &str) -> String {
    git(root, &["rev-parse", name])
}

/// What the agent does to one path, and what of it is committed.
#[derive(Debug, Clone)]
struct Deed {
    path: usize,
    kind: u8,
    committed: bool,
}

const PATHS: [&str; 8] = [
    "a.txt",
    "src/lib.rs",
    "lines.txt",
    "other.txt",
    "gone.txt",
    "n/x",
    "n/y",
    "z",
];

fn deeds() -> impl Strategy<Value = Vec<Deed>> {
    let deed = (0..PATHS.len(), 0u8..4, any::<bool>()).prop_map(|(path, kind, committed)| Deed {
        path,
        kind,
        committed,
    });
    prop::collection::vec(deed, 1..8)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, failure_persistence: None, ..ProptestConfig::default() })]

    /// Where the user's uncommitted paths and the agent's are apart, the tree
    /// that lands is the old HEAD's with the agent's paths, and the user's
    /// are as they were.
    #[test]
    fn what_lands_is_head_and_the_agents_paths(
        agent in deeds(), user in prop::collection::vec((0..PATHS.len(), any::<bool>()), 0..4),
        moved in any::<bool>(),
    ) {
        let place = Place::new();
        let root = start(&place);
        let touched: std::collections::BTreeSet<usize> = agent.iter().map(|deed| deed.path).collect();
        for (path, staged) in user.iter().filter(|(path, _)| !touched.contains(path)) {
            write(&root, PATHS[*path], "the user's\n");
            if *staged {
                git(&root, &["add", PATHS[*path]]);
            }
        }
        let own = status(&root);
        let mut plan = Plan::new(&place, &root);
        let inside = plan.inside().to_owned();
        for (number, deed) in agent.iter().enumerate() {
            let path = PATHS[deed.path];
            match deed.kind {
                0 => {
                    let _ = std::fs::remove_file(inside.join(path));
                }
                kind => write(&inside, path, format!("agent {kind}\n")),
            }
            if deed.committed {
                git(&inside, &["reset", "-q"]);
                let known = std::fs::symlink_metadata(inside.join(path)).is_ok()
                    || !git(&inside, &["ls-files", path]).is_empty();
                if known {
                    git(&inside, &["add", "-A", "--", path]);
                    git(&inside, &["commit", "-q", "--allow-empty", "-m", &format!("agent {number}")]);
                }
            }
        }
        let base = plan.base_head.clone().unwrap();
        if moved {
            git(&root, &["commit", "-q", "--allow-empty", "--only", "-m", "user"]);
        }
        // The oracle: the old HEAD, each of the agent's paths as it is now.
        let index = place.path("oracle");
        let oracle = |args: &[&str]| {
            let output = std::process::Command::new("git")
                .args(args)
                .current_dir(&inside)
                .env_clear()
                .env("PATH", std::env::var_os("PATH").unwrap())
                .env("GIT_INDEX_FILE", &index)
                .env("GIT_CONFIG_GLOBAL", "/dev/null")
                .output()
                .unwrap();
            assert!(output.status.success(), "{args:?} {output:?}");
            String::from_utf8(output.stdout).unwrap().trim().to_owned()
        };
        oracle(&["read-tree", &base]);
        for path in &touched {
            oracle(&["update-index", "--add", "--remove", "--", PATHS[*path]]);
        }
        let want = oracle(&["write-tree"]);
        let landing = plan.prepare();
        plan.write();
        plan.land(&landing).unwrap();
        let have = git(&root, &["rev-parse", "HEAD^{tree}"]);
        prop_assert_eq!(have.trim(), want);
        prop_assert_eq!(status(&root), own);
        git(&root, &["fsck", "--strict", "--no-dangling"]);
        run(GIT.unland(discover(&root), landing)).unwrap();
    }
}
