//! The resource graph through the binary: a checkout with a submodule and a
//! nested repository inside a plain directory. Each question is asked by a
//! process of its own.
#![allow(
    clippy::disallowed_methods,
    reason = "tests make and inspect real trees with foreign means"
)]

use std::path::PathBuf;

use sandbar_tests::foreign::sh;
use sandbar_tests::product::{Done, World};
use serde_json::Value;
use tempfile::TempDir;

const MAKE: &str = r#"
export GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@b
git init -q -b main lib
echo l > lib/l.c
git -C lib add .
git -C lib commit -qm lib
git init -q -b main repo
cd repo
mkdir -p src plain/inner
echo a > src/a.rs
git -c protocol.file.allow=always submodule --quiet add ../lib vendor/lib
git add src
git commit -qm first
git init -q -b main plain/inner
echo x > plain/inner/x
ln -s src/a.rs link
"#;

/// A world with that checkout, which is registered.
struct Scene {
    world: World,
    repo: PathBuf,
    _scratch: TempDir,
}

impl Scene {
    fn new() -> Self {
        let scratch = tempfile::tempdir().expect("scratch space");
        let top = scratch.path().canonicalize().expect("a resolved path");
        sh(&top, MAKE);
        let repo = top.join("repo");
        let world = World::new();
        drop(world.ok(&repo, &["resource", "add", "."]));
        Self {
            world,
            repo,
            _scratch: scratch,
        }
    }

    fn json(&self, line: &[&str]) -> Value {
        self.world.json(&self.repo, line)
    }

    fn says(&self, line: &[&str]) -> String {
        let said = self.world.ok(&self.repo, line).stdout;
        said.replace(self.repo.to_str().expect("UTF-8"), "REPO")
    }

    fn refused(&self, line: &[&str], code: &str, exit: i32) -> Value {
        let mut line = line.to_vec();
        line.push("--json");
        let done: Done = self.world.sandbar(&self.repo, &line).expect(exit);
        let error = done.json()["error"].clone();
        assert_eq!(error["code"], code, "{error}");
        error
    }

    /// The place of the boundary of a path; none without one.
    fn boundary(&self, path: &str) -> Option<String> {
        let answer = self.json(&["boundary", path]);
        let id = answer["boundary"].as_str()?.to_owned();
        let shown = self.json(&["resource", "show", &id]);
        let place = PathBuf::from(shown["resource"]["location"].as_str().expect("a place"));
        let place = place.strip_prefix(&self.repo).expect("inside");
        Some(place.to_str().expect("UTF-8").to_owned())
    }

    fn known(&self) -> usize {
        let all = self.json(&["resource", "list"]);
        all["resources"].as_array().expect("a list").len()
    }
}

// conformance: SBX-1 (adapter), DSC-1 partial: git and file systems
#[test]
fn the_nearest_boundary_is_found_through_submodule_and_nested_repository() {
    let scene = Scene::new();
    for (path, boundary) in [
        ("src/a.rs", ""),
        ("link", ""),
        (".", ""),
        ("plain", ""),
        ("plain/inner", "plain/inner"),
        ("plain/inner/x", "plain/inner"),
        ("vendor", ""),
        ("vendor/lib/l.c", "vendor/lib"),
    ] {
        assert_eq!(scene.boundary(path).as_deref(), Some(boundary), "{path}");
    }
    let answer = scene.json(&["boundary", "vendor/lib/l.c"]);
    assert_eq!(answer["strategy"], "git_worktree");
    let types: Vec<_> = answer["path"]
        .as_array()
        .expect("a way")
        .iter()
        .map(|step| step["type"].as_str().expect("a type"))
        .collect();
    assert_eq!(types, ["fs-file", "fs-directory", "git-submodule"]);
    assert_eq!(answer["path"][0]["id"], answer["resource"]);
    assert_eq!(answer["path"][2]["id"], answer["boundary"]);
}

// conformance: SBX-2 partial: what the graph says of nested boundaries
#[test]
fn a_domain_ends_at_nested_boundaries() {
    let scene = Scene::new();
    for path in ["src/a.rs", "plain/inner/x", "vendor/lib/l.c"] {
        drop(scene.json(&["boundary", path]));
    }
    assert_eq!(
        scene.says(&["domain", "src"]),
        "\
7 resources known in the sandbox of REPO (git-checkout)
  REPO (git-checkout)
  REPO (fs-directory)
  REPO/.git (git)
  REPO/plain (fs-directory)
  REPO/src (fs-directory)
  REPO/src/a.rs (fs-file)
  REPO/vendor (fs-directory)
inside it, with a sandbox of their own
  REPO/plain/inner (git-checkout)
  REPO/vendor/lib (git-submodule)
files and directories are known once they were asked about
"
    );
    let inner = scene.json(&["domain", "plain/inner/x"]);
    let places: Vec<_> = inner["members"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|card| card["name"].as_str().expect("a name").to_owned())
        .collect();
    assert_eq!(places, ["inner", ".", ".git", "x"]);
}

#[test]
fn explanations_show_the_way_walked() {
    let scene = Scene::new();
    assert_eq!(
        scene.says(&["boundary", "plain/inner/x", "--explain"]),
        "\
REPO/plain/inner (git-checkout), git_worktree
  REPO/plain/inner/x (fs-file)  not sandboxable  inherit because of its type
  REPO/plain/inner (fs-directory)  not one  inherit because of the boundary it lies in
  REPO/plain/inner (git-checkout)  boundary  own(git_worktree) because of its type
"
    );
    assert_eq!(
        scene.says(&[
            "route",
            "src/a.rs",
            "--read",
            "--query",
            "history",
            "--explain"
        ]),
        "\
git in REPO (git-checkout)  reads
  as REPO/src/a.rs
      through REPO (git-checkout)
      through REPO (fs-directory)
      through REPO/src (fs-directory)
      through REPO/src/a.rs (fs-file)
  passed over run REPO/src/a.rs (fs-file): it cannot answer for history
  passed over run REPO/src/a.rs (fs-file): it cannot answer for history
"
    );
    assert_eq!(
        scene.says(&["impact", "src/a.rs", "--explain"]),
        "  REPO/src/a.rs (fs-file)  changes
  REPO/src (fs-directory)  has another status because of REPO/src/a.rs (fs-file)
  REPO (fs-directory)  has another status because of REPO/src (fs-directory)
  REPO (git-checkout)  has another status because of REPO (fs-directory)
"
    );
    assert_eq!(
        scene.says(&["reach", "src/a.rs", "--write"]),
        "  run in REPO/src (fs-directory)  reads and writes
  run in REPO (fs-directory)  reads and writes
  run in REPO (git-checkout)  reads and writes
"
    );
}

#[test]
fn the_graph_is_drawn() {
    let scene = Scene::new();
    drop(scene.json(&["boundary", "src/a.rs"]));
    let tree = "\
REPO  git-checkout  *
├── .  fs-directory
│   ├── src  fs-directory
│   │   └── a.rs  fs-file
│   └── vendor  fs-directory
│       └── lib  git-submodule  *
│           ├── .git  git
│           └── .  fs-directory
└── .git  git
* has a sandbox of its own
";
    assert_eq!(scene.says(&["resource", "tree"]), tree);
    assert_eq!(scene.says(&["graph"]), tree);
    assert_eq!(
        scene.says(&["graph", "src", "--format", "dot"]),
        "\
digraph sandbar {
  node [shape=box];
  n0 [label=\"src\\nfs-directory\"];
  n1 [label=\"a.rs\\nfs-file\"];
  n0 -> n1;
}
"
    );
    assert_eq!(
        scene.says(&["graph", "vendor/lib", "--format", "mermaid"]),
        "\
graph TD
  n0[\".git<br/>git\"]
  n1[[\"lib<br/>git-submodule\"]]
  n2[\"root directory<br/>fs-directory\"]
  n1 --> n0
  n1 --> n2
"
    );
    let all = scene.json(&["graph", "--format", "json"]);
    assert_eq!(all["resources"].as_array().map(Vec::len), Some(9));
    assert_eq!(all["edges"].as_array().map(Vec::len), Some(8));
}

#[test]
fn names_that_mean_something_to_drawings_are_written_out() {
    let scene = Scene::new();
    std::fs::write(scene.repo.join("a\"]\\b"), "").expect("a file");
    drop(scene.json(&["boundary", "a\"]\\b"]));
    let dot = scene.says(&["graph", "--format", "dot"]);
    assert!(dot.contains(r#"[label="a\"]\\b\nfs-file"]"#), "{dot}");
    let mermaid = scene.says(&["graph", "--format", "mermaid"]);
    assert!(
        mermaid.contains(r#"["a#34;#93;#92;b<br/>fs-file"]"#),
        "{mermaid}"
    );
}

// conformance: DSC-2 partial: on the way to what is asked about
#[test]
fn what_changed_on_disk_is_seen_by_the_next_question() {
    let scene = Scene::new();
    assert_eq!(
        scene.boundary("plain/inner/x").as_deref(),
        Some("plain/inner")
    );
    std::fs::remove_dir_all(scene.repo.join("plain/inner/.git")).expect("removed");
    assert_eq!(scene.boundary("plain/inner/x").as_deref(), Some(""));
    sh(&scene.repo, "git init -q src");
    assert_eq!(scene.boundary("src/a.rs").as_deref(), Some("src"));
    sh(
        &scene.repo,
        "rm src/a.rs; mkdir src/a.rs; echo y > src/a.rs/y",
    );
    assert_eq!(scene.boundary("src/a.rs/y").as_deref(), Some("src"));
    // A `.git` that leads nowhere makes no checkout.
    sh(&scene.repo, "rm -r src/.git; mkdir src/.git");
    assert_eq!(scene.boundary("src/a.rs/y").as_deref(), Some(""));
}

// conformance: BAD-2 partial: registered roots
#[test]
fn what_is_not_known_is_refused_by_name() {
    let scene = Scene::new();
    for question in ["boundary", "domain", "reach", "project", "impact"] {
        let error = scene.refused(&[question, "nobody"], "resource_not_found", 5);
        assert!(
            error["message"]
                .as_str()
                .is_some_and(|m| m.contains("nobody"))
        );
    }
    scene.refused(&["route", "nobody", "--write"], "resource_not_found", 5);
    scene.refused(&["resource", "rm", "nobody"], "resource_not_found", 5);
    scene.refused(&["boundary", "src/none"], "path_not_found", 5);
    scene.refused(&["boundary", ".git/config"], "resource_not_found", 5);
    scene.refused(&["boundary", "0"], "ambiguous_resource", 2);
    let outside = scene.refused(&["boundary", "/etc/passwd"], "resource_not_found", 5);
    let hint = outside["hint"].as_str().expect("a hint");
    assert!(hint.contains("resource add"), "{hint}");
    scene.refused(&["resource", "add", "/"], "root_refused", 2);
    let home = scene.world.home();
    let home = home.to_str().expect("UTF-8");
    scene.refused(&["resource", "add", home], "root_refused", 2);
    drop(
        scene
            .world
            .sandbar(&scene.repo, &["route", "src"])
            .expect(2),
    );
}

#[test]
fn where_nothing_was_recorded_nothing_is_made() {
    let world = World::new();
    let here = world.path().to_owned();
    assert!(
        world
            .ok(&here, &["resource", "list"])
            .stdout
            .contains("resource add")
    );
    let done = world.sandbar(&here, &["boundary", "home"]).expect(5);
    assert!(done.stderr.contains("home"), "{}", done.stderr);
    assert!(!world.data().exists());
}

#[test]
fn a_root_registered_later_takes_earlier_ones_in() {
    let scene = Scene::new();
    let id = scene.json(&["boundary", "."])["resource"].clone();
    drop(
        scene
            .world
            .ok(&scene.repo, &["resource", "add", "plain/inner"]),
    );
    let top = scene.repo.parent().expect("a parent").to_owned();
    drop(scene.world.ok(&top, &["resource", "add", "."]));
    let answer = scene.json(&["resource", "show", "."]);
    assert_eq!(answer["resource"]["id"], id);
    assert_eq!(
        answer["resource"]["parents"].as_array().map(Vec::len),
        Some(1)
    );
    assert_eq!(scene.boundary("src/a.rs").as_deref(), Some(""));
    let lib = scene
        .world
        .json(&top, &["boundary", "lib/l.c", "--explain"]);
    assert_eq!(lib["path"][2]["type"], "git-checkout");
    let own = scene.world.json(&top, &["boundary", "."]);
    assert_eq!(own["strategy"], "copy_on_write");
}

#[test]
fn what_is_forgotten_comes_back_when_it_is_asked_about() {
    let scene = Scene::new();
    let before = scene.known();
    drop(scene.json(&["boundary", "plain/inner/x"]));
    let gone = scene.json(&["resource", "rm", "plain"]);
    assert_eq!(gone["forgotten"].as_array().map(Vec::len), Some(5));
    assert_eq!(scene.known(), before);
    assert_eq!(
        scene.boundary("plain/inner/x").as_deref(),
        Some("plain/inner")
    );
    assert!(scene.repo.join("plain/inner/x").exists());
}

// conformance: PRJ-1 partial: paths, and sandboxes of plans
#[test]
fn a_path_is_named_in_the_sandbox_of_a_plan() {
    let scene = Scene::new();
    drop(scene.world.run(&scene.repo, "p", "echo inside > src/a.rs"));
    let answer = scene.json(&["project", "src/a.rs", "--plan", "p"]);
    let path = answer["projection"]["access_path"]
        .as_str()
        .expect("a path");
    assert_eq!(std::fs::read_to_string(path).expect("a file"), "inside\n");
    let real = scene.json(&["project", "src/a.rs"]);
    let path = real["projection"]["access_path"].as_str().expect("a path");
    assert_eq!(std::fs::read_to_string(path).expect("a file"), "a\n");
    scene.refused(&["project", "src/a.rs", "--from", "vendor"], "usage", 2);
    scene.refused(&["project", "src", "--plan", "q"], "plan_not_found", 5);
}

#[test]
fn a_large_tree_is_not_registered_file_by_file() {
    let scene = Scene::new();
    for dir in 0..20 {
        let dir = scene.repo.join(format!("many/d{dir}"));
        std::fs::create_dir_all(&dir).expect("a directory");
        for file in 0..500 {
            std::fs::write(dir.join(format!("f{file}")), "").expect("a file");
        }
    }
    let before = scene.known();
    assert_eq!(scene.boundary("many/d7/f77").as_deref(), Some(""));
    assert_eq!(scene.known(), before + 3);
}

#[test]
fn eight_processes_ask_at_once() {
    let scene = Scene::new();
    let before = scene.known();
    for n in 0..8 {
        std::fs::create_dir(scene.repo.join(format!("d{n}"))).expect("a directory");
    }
    let children: Vec<_> = (0..8)
        .map(|n| {
            let line = ["boundary".to_owned(), format!("d{n}"), "--json".to_owned()];
            let mut command = scene.world.command(&scene.repo, &line);
            command.stdout(std::process::Stdio::piped());
            command.spawn().expect("it starts")
        })
        .collect();
    for child in children {
        let output = child.wait_with_output().expect("it ends");
        assert!(output.status.success());
    }
    assert_eq!(scene.known(), before + 8);
}
