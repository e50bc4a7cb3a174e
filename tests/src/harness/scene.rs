//! A plan that is ready to be applied, and the judges of what an apply, broken
//! anywhere, leaves: each file wholly old or wholly new, verdicts that are
//! true, one recovery that ends it, displaced bytes kept, nothing left over.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

use super::tree::{self, Node, Tree};
use crate::fixture::{self, Repository};
use crate::foreign::sh;
use crate::product::{Done, World};

/// Each kind of operation once.
pub const WORK: &str = "
    sed -i 's/^line 7$/line seven/' a.txt
    chmod +x b.txt
    rm -r src
    mkdir -p new/deep
    echo n > new/deep/n.txt
    ln -s b.txt new/link
    rm kind; ln -s a.txt kind
    ln -sf b.txt link
    rm dir.txt; mkdir dir.txt; echo inner > dir.txt/inner
";

/// What other plans did, for the long size.
const OTHER_WORKS: [&str; 7] = [
    "echo one > a.txt",
    "rm -r src a.txt b.txt kind link dir.txt mine.txt",
    "for n in $(seq 1 40); do mkdir -p d$n; echo $n > d$n/f; done",
    "chmod +x a.txt b.txt src/c.txt; rm link; mkdir link; echo in > link/in",
    "rm -r src; echo file > src; mv a.txt renamed.txt; ln -s src sources",
    "head -c 700000 /dev/urandom > large; cp large copy; seq 1 5000 > a.txt",
    "mkdir -p 1/2/3/4/5/6; echo deep > 1/2/3/4/5/6/f; rm b.txt; mkdir b.txt; echo i > b.txt/i",
];

/// Returns how many scenarios the size asks for.
pub fn scenarios() -> usize {
    if super::is_long() {
        1 + OTHER_WORKS.len()
    } else {
        1
    }
}

/// The name of the plan.
pub const PLAN: &str = "k";

/// A world, a repository and one plan.
pub struct Scene {
    /// Home and data.
    pub world: World,
    /// The real tree.
    pub repo: Repository,
    /// The real tree before the apply.
    pub old: Tree,
    /// The real tree after it.
    pub new: Tree,
    git: BTreeMap<PathBuf, String>,
    /// What is beside the objects in the data directory before anything.
    around: BTreeSet<PathBuf>,
}

impl Scene {
    /// Makes a scene with one plan that did [`WORK`].
    pub fn new() -> Self {
        Self::of(World::new(), fixture::small(), WORK)
    }

    /// Makes the scene of one of the [`scenarios`], from 0.
    pub fn numbered(number: usize) -> Self {
        let work = match number.checked_sub(1) {
            None => WORK,
            Some(other) => OTHER_WORKS[other],
        };
        Self::of(World::new(), fixture::small(), work)
    }

    /// Makes a scene in given places with a plan that did `work`.
    pub fn of(world: World, repo: Repository, work: &str) -> Self {
        let root = repo.root();
        sh(
            root,
            "echo kind > kind; ln -s a.txt link; echo d > dir.txt; git add -A; git commit -qm more
             echo 'not committed' >> a.txt; echo untracked > mine.txt",
        );
        world.run(root, PLAN, work);
        let old = tree::read(root);
        let new = tree::read(&world.sandbox(root, PLAN));
        let git = tree::exact(&root.join(".git"));
        let around = around(&world.data());
        Self {
            world,
            repo,
            old,
            new,
            git,
            around,
        }
    }

    /// Makes a scene of a plain directory with few files.
    pub fn plain() -> Self {
        let (world, repo) = (World::new(), fixture::directory());
        let work = "echo more >> a.txt; echo n > n.txt; rm b.txt";
        world.run(repo.root(), PLAN, work);
        let old = tree::read(repo.root());
        let new = tree::read(&world.sandbox(repo.root(), PLAN));
        let around = around(&world.data());
        Self {
            world,
            repo,
            old,
            new,
            git: BTreeMap::new(),
            around,
        }
    }

    /// Returns the real root.
    pub fn root(&self) -> &Path {
        self.repo.root()
    }

    /// Prepares `sandbar` in the real root.
    pub fn sandbar(&self, arguments: &[&str]) -> Command {
        self.world.command(self.root(), arguments)
    }

    /// Prepares an apply that leaves the sandbox: cleaning up is many effects,
    /// in no order, on nothing that anybody needs.
    pub fn apply(&self) -> Command {
        let mut command = self.sandbar(&["apply", PLAN, "--json"]);
        command.env("SANDBAR_SANDBOX_CLEANUP", "manual");
        command
    }

    /// Returns the plan's state, or what went wrong with asking.
    pub fn state(&self) -> Result<String, String> {
        let done = Done::of(&mut self.sandbar(&["status", PLAN, "--json"]));
        if done.code != Some(0) {
            return Err(format!("status failed: {}{}", done.stdout, done.stderr));
        }
        let document = done.json();
        let state = document["plan"]["state"].as_str();
        Ok(state.unwrap_or("no state").to_owned())
    }

    /// Judges the tree at any moment: each path is as before or as after.
    pub fn half_way(&self) -> Vec<String> {
        tree::read(self.root())
            .iter()
            .filter(|(path, now)| ![self.old.get(*path), self.new.get(*path)].contains(&Some(now)))
            .map(|(path, now)| format!("{} is neither old nor new: {now:?}", path.display()))
            .collect()
    }

    /// Judges what an apply that ended by itself said: `applied` is all new,
    /// any other verdict that is final is all old.
    pub fn verdict(&self, done: &Done) -> Vec<String> {
        let now = tree::read(self.root());
        let state = match self.state() {
            Ok(state) => state,
            Err(why) => return vec![why],
        };
        let mut bad = self.half_way();
        let (wanted, differ) = match &*state {
            "applied" => ("new", tree::difference(&self.new, &now)),
            "review" | "failed" => ("old", tree::difference(&self.old, &now)),
            // Not final: recovery says.
            "applying" | "needs_attention" | "executing" => ("", Vec::new()),
            other => return vec![format!("the plan is {other}")],
        };
        if !differ.is_empty() {
            bad.push(format!("{state}, but not all {wanted}: {differ:?}"));
        }
        if done.code == Some(0) && state != "applied" {
            bad.push(format!("exit 0, but the plan is {state}"));
        }
        // 2 says that a path leads to another file system.
        if done.code.is_some_and(|code| !(0..=4).contains(&code)) {
            bad.push(format!("exit {:?}: {}", done.code, done.stderr));
        }
        if done.stderr.contains("panicked") {
            bad.push(format!("a panic: {}", done.stderr));
        }
        bad
    }

    /// Recovers once, and judges the end: all old or all new, as the plan
    /// says; a second recovery changes nothing.
    pub fn recovered(&self) -> (String, Vec<String>) {
        let mut bad = Vec::new();
        let recover = || Done::of(&mut self.sandbar(&["recover"]));
        let done = recover();
        if done.code != Some(0) {
            bad.push(format!("recover: {}{}", done.stdout, done.stderr));
        }
        let state = match self.state() {
            Ok(state) => state,
            Err(why) => return (String::new(), vec![why]),
        };
        let now = tree::read(self.root());
        let differ = match &*state {
            "applied" => tree::difference(&self.new, &now),
            "review" | "failed" => tree::difference(&self.old, &now),
            other => vec![format!("after recovery the plan is {other}")],
        };
        if !differ.is_empty() {
            bad.push(format!("{state}: {differ:?}"));
        }
        let git = tree::exact(&self.root().join(".git"));
        for path in tree::difference(&self.git, &git) {
            // Where the data directory is on another mount, the displaced bytes
            // of an apply are kept here; else at most the empty place stays.
            let place = ["sandbar", "sandbar/kept"].contains(&&*path);
            let kept = state == "applied" && path.starts_with("sandbar/kept/");
            if !(place || kept) {
                bad.push(format!(".git/{path} changed"));
            }
        }
        if state == "applied" {
            bad.extend(self.lost());
        }
        bad.extend(self.left_over());
        let before = tree::exact(self.root());
        let again = recover();
        if again.code != Some(0) || tree::exact(self.root()) != before {
            bad.push(format!(
                "a second recovery: {}{}",
                again.stdout, again.stderr
            ));
        }
        (state, bad)
    }

    /// Applies what was not, and judges that all is new then.
    pub fn applied_again(&self) -> Vec<String> {
        let done = Done::of(&mut self.apply());
        let now = tree::read(self.root());
        let differ = tree::difference(&self.new, &now);
        if done.code == Some(0) && differ.is_empty() {
            return self.lost();
        }
        vec![format!(
            "applied again: {}{} {differ:?}",
            done.stdout, done.stderr
        )]
    }

    /// Names displaced files whose bytes are in no keep-aside directory, and
    /// are not given back when asked for either: after a power loss the kept
    /// file of somebody who never synced may be torn, and the store has it.
    pub fn lost(&self) -> Vec<String> {
        let mut kept: BTreeSet<Vec<u8>> = BTreeSet::new();
        let places = [
            self.world.data().join("kept"),
            self.root().join(".git/sandbar/kept"),
            self.root().join(".sandbar/kept"),
        ];
        for place in places {
            for node in tree::read(&place).into_values() {
                if let Node::File(_, bytes) = node {
                    kept.insert(bytes);
                }
            }
        }
        let bytes = |node: Option<&Node>| match node {
            Some(Node::File(_, bytes)) => Some(bytes.clone()),
            _ => None,
        };
        self.old
            .iter()
            .filter_map(|(path, node)| {
                let old = bytes(Some(node))?;
                let stays = bytes(self.new.get(path)).is_some_and(|new| new == old);
                let shown = || {
                    let line = ["kept", "show", PLAN, &*path.to_string_lossy()];
                    crate::foreign::output(&mut self.sandbar(&line)).stdout == old
                };
                let lost = !stays && !kept.contains(&old) && !shown();
                lost.then(|| format!("the old bytes of {} are lost", path.display()))
            })
            .collect()
    }

    /// Names what is left over beside plan, checkpoints and kept bytes.
    pub fn left_over(&self) -> Vec<String> {
        around(&self.world.data())
            .difference(&self.around)
            .filter(|path| !is_kept(path))
            .map(|path| format!("left over in the data directory: {}", path.display()))
            .collect()
    }
}

impl Default for Scene {
    fn default() -> Self {
        Self::new()
    }
}

/// Lists the data directory, less sealed packs, objects, and the inside of
/// sandboxes.
fn around(data: &Path) -> BTreeSet<PathBuf> {
    let mut found = BTreeSet::new();
    tree::visit(data, &mut |path, _| {
        let text = path.to_string_lossy();
        let inside = text.starts_with("objects/packs/")
            || text.starts_with("objects/loose/")
            || text.starts_with("sandbar.db")
            // `s/<name>/<part>`: caches are written as they need be.
            || (text.starts_with("s/") && text.matches('/').count() >= 2);
        if !inside {
            found.insert(path.to_owned());
        }
        !(inside && text.starts_with("s/"))
    });
    found
}

/// Says whether a path is the directory of a finished job or kept in one.
fn is_kept(path: &Path) -> bool {
    let words: Vec<_> = path.iter().map(|word| word.to_string_lossy()).collect();
    match &words[..] {
        [top] => top == "kept",
        // A job's own directory must have kept bytes below, which are seen.
        [top, _] => top == "kept",
        [top, _, part, ..] => top == "kept" && part == "kept",
        [] => true,
    }
}
