//! The contract of every strategy (STR-8): what it says it can, it does; what
//! it cannot, it refuses by name. Seen from the use cases, so that one suite
//! judges every composition: real ones and the one in memory.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use async_trait::async_trait;
use sandbar_domain::resource::{Ability, Strategy};
use sandbar_domain::{Change, ChangeKind, Code, Disposition, Kind};
use sandbar_ports::PortResult;

use super::files::{What, World, executable, file, symlink};
use super::{cases, done, refused};

/// One composition with one real root, and one plan at a time on it.
#[async_trait]
pub trait Ground: Send + Sync {
    /// The strategy that is judged.
    fn strategy(&self) -> Strategy;
    /// The hands that change trees past the use cases.
    fn world(&self) -> Arc<dyn World>;
    /// What the strategy says of itself; reads only.
    async fn abilities(&self) -> Vec<(Ability, bool)>;
    /// Makes the plan with its sandbox.
    async fn create(&self) -> PortResult<()>;
    /// Returns the root of the sandbox.
    async fn path(&self) -> PortResult<PathBuf>;
    /// Saves; returns the number.
    async fn checkpoint(&self) -> PortResult<u64>;
    /// Goes back.
    async fn rollback(&self, to: u64) -> PortResult<()>;
    /// Returns what the plan changed, base to now.
    async fn changes(&self) -> PortResult<Vec<Change>>;
    /// Brings the result back; says whether it was written, or conflicted.
    async fn apply(&self, dry_run: bool) -> PortResult<bool>;
    /// Brings the result back as commits.
    async fn apply_commits(&self) -> PortResult<bool>;
    /// Takes back what was brought; says whether it was, or conflicted.
    async fn undo(&self) -> PortResult<bool>;
    /// Drops the plan.
    async fn discard(&self) -> PortResult<()>;
    /// Numbers of the checkpoints.
    async fn log(&self) -> PortResult<Vec<u64>>;
}

cases! {
    Arc<dyn Ground>;
    looking_at_abilities_changes_nothing,
    a_sandbox_is_an_exact_copy,
    the_change_set_is_exact,
    checkpoints_come_back_exactly,
    nothing_arrives_before_apply_and_then_all,
    a_conflict_stages_and_writes_nothing,
    an_undo_takes_it_back_exactly,
    clean_up_removes_the_root_and_nothing_else,
    a_dropped_plan_is_gone_once,
    what_a_strategy_lacks_is_refused_by_name,
}

type Content = BTreeMap<PathBuf, What>;

/// Reads a tree, git's and Sandbar's own directories at its top left out.
fn content(world: &dyn World, root: &Path) -> Content {
    let mut all = Content::new();
    let mut open = vec![root.to_owned()];
    while let Some(dir) = open.pop() {
        for name in world.names(&dir) {
            if dir == root && (name == ".git" || name == ".sandbar") {
                continue;
            }
            let path = dir.join(name);
            let what = world.get(&path).expect("it was listed");
            if what == What::Directory {
                open.push(path.clone());
            }
            let rel = path.strip_prefix(root).expect("beneath").to_owned();
            all.insert(rel, what);
        }
    }
    all
}

/// Fills the real root with what every strategy carries.
fn fill(ground: &dyn Ground) -> Content {
    let (world, root) = (ground.world(), ground.world().root());
    world.put(&root.join("a.txt"), file(b"one\ntwo\nthree\nfour\nfive\n"));
    world.put(&root.join("gone.txt"), file(b"gone\n"));
    world.put(&root.join("dir/run.sh"), executable(b"#!/bin/sh\n"));
    world.put(&root.join("dir/sub/deep"), file(b"deep\n"));
    world.put(&root.join("link"), symlink("a.txt"));
    world.put(&root.join("kind"), file(b"a file\n"));
    content(&*world, &root)
}

/// One change of each kind, in a sandbox.
fn change(world: &dyn World, root: &Path) {
    world.put(&root.join("a.txt"), file(b"ONE\ntwo\nthree\nfour\nfive\n"));
    world.remove(&root.join("gone.txt"));
    world.put(&root.join("dir/run.sh"), file(b"#!/bin/sh\n"));
    world.put(&root.join("new/made"), file(b"made\n"));
    world.put(&root.join("link"), symlink("kind"));
    world.put(&root.join("kind"), symlink("a.txt"));
}

async fn sandbox(ground: &dyn Ground) -> PathBuf {
    done(ground.create().await, "making a sandbox");
    done(ground.path().await, "asking for its path")
}

async fn looking_at_abilities_changes_nothing(ground: Arc<dyn Ground>) {
    let real = fill(&*ground);
    let world = ground.world();
    let before = content(&*world, &world.base());
    let said = ground.abilities().await;
    let listed: Vec<Ability> = said.iter().map(|(ability, _)| *ability).collect();
    assert_eq!(listed, Ability::ALL, "each ability is listed once");
    for (ability, can) in said {
        assert_eq!(can, ground.strategy().can(ability), "{}", ability.word());
    }
    assert_eq!(content(&*world, &world.base()), before);
    assert_eq!(content(&*world, &world.root()), real);
}

async fn a_sandbox_is_an_exact_copy(ground: Arc<dyn Ground>) {
    let real = fill(&*ground);
    let world = ground.world();
    let root = sandbox(&*ground).await;
    assert_ne!(root, world.root());
    assert_eq!(content(&*world, &root), real, "the copy");
    assert_eq!(content(&*world, &world.root()), real, "the original");
    assert_eq!(done(ground.path().await, "asking again"), root);
    assert_eq!(done(ground.changes().await, "asking for changes"), []);
    assert_eq!(done(ground.log().await, "the log"), [1], "the base");
}

async fn the_change_set_is_exact(ground: Arc<dyn Ground>) {
    fill(&*ground);
    let world = ground.world();
    let root = sandbox(&*ground).await;
    change(&*world, &root);
    let changes = done(ground.changes().await, "asking for changes");
    let told: Vec<(&str, ChangeKind)> = changes
        .iter()
        .filter(|change| change.new.is_none_or(|new| new.kind != Kind::Directory))
        .map(|change| (change.path.as_str(), change.kind()))
        .collect();
    let expected = [
        ("a.txt", ChangeKind::Modified),
        ("dir/run.sh", ChangeKind::Mode),
        ("gone.txt", ChangeKind::Deleted),
        ("kind", ChangeKind::Type),
        ("link", ChangeKind::Modified),
        ("new/made", ChangeKind::Added),
    ];
    assert_eq!(told, expected);
}

async fn checkpoints_come_back_exactly(ground: Arc<dyn Ground>) {
    let real = fill(&*ground);
    let world = ground.world();
    let root = sandbox(&*ground).await;
    change(&*world, &root);
    let changed = content(&*world, &root);
    let second = done(ground.checkpoint().await, "saving");
    assert_eq!(
        done(ground.checkpoint().await, "saving again"),
        second,
        "nothing changed"
    );
    world.remove(&root.join("dir"));
    world.put(&root.join("a.txt/inner"), file(b"i\n"));
    let third = done(ground.checkpoint().await, "saving");
    let last = content(&*world, &root);
    for (to, wanted) in [
        (second, &changed),
        (1, &real),
        (third, &last),
        (second, &changed),
    ] {
        done(ground.rollback(to).await, "going back");
        let now = done(ground.path().await, "asking for the path");
        assert_eq!(content(&*world, &now), *wanted, "checkpoint {to}");
        assert_eq!(content(&*world, &world.root()), real, "the original");
    }
    refused(
        ground.rollback(99).await,
        Code::CheckpointNotFound,
        Disposition::Permanent,
        "going where there is nothing",
    );
}

async fn nothing_arrives_before_apply_and_then_all(ground: Arc<dyn Ground>) {
    let real = fill(&*ground);
    let world = ground.world();
    let root = sandbox(&*ground).await;
    change(&*world, &root);
    let result = content(&*world, &root);
    done(ground.checkpoint().await, "saving");
    assert!(done(ground.apply(true).await, "rehearsing"));
    assert_eq!(content(&*world, &world.root()), real, "after a rehearsal");
    // The person's own work beside it, and in the same file.
    world.put(&world.root().join("mine"), file(b"mine\n"));
    world.put(
        &world.root().join("a.txt"),
        file(b"one\ntwo\nthree\nfour\nFIVE\n"),
    );
    assert!(done(ground.apply(false).await, "applying"));
    let mut wanted = result;
    wanted.insert("mine".into(), file(b"mine\n"));
    wanted.insert("a.txt".into(), file(b"ONE\ntwo\nthree\nfour\nFIVE\n"));
    assert_eq!(content(&*world, &world.root()), wanted);
}

async fn a_conflict_stages_and_writes_nothing(ground: Arc<dyn Ground>) {
    fill(&*ground);
    let world = ground.world();
    let root = sandbox(&*ground).await;
    change(&*world, &root);
    world.put(
        &world.root().join("a.txt"),
        file(b"1\ntwo\nthree\nfour\nfive\n"),
    );
    let own = content(&*world, &world.root());
    assert!(
        !done(ground.apply(false).await, "applying"),
        "both changed a line"
    );
    assert_eq!(content(&*world, &world.root()), own);
    assert!(world.names(&world.root().join(".sandbar")).is_empty());
    // The plan stands, and goes through once it is settled.
    world.put(
        &world.root().join("a.txt"),
        file(b"one\ntwo\nthree\nfour\nfive\n"),
    );
    assert!(done(ground.apply(false).await, "applying again"));
}

async fn an_undo_takes_it_back_exactly(ground: Arc<dyn Ground>) {
    let real = fill(&*ground);
    let world = ground.world();
    let root = sandbox(&*ground).await;
    change(&*world, &root);
    let result = content(&*world, &root);
    assert!(done(ground.apply(false).await, "applying"));
    assert_eq!(content(&*world, &world.root()), result);
    world.put(&world.root().join("mine"), file(b"mine\n"));
    assert!(done(ground.undo().await, "taking it back"));
    let mut wanted = real;
    wanted.insert("mine".into(), file(b"mine\n"));
    assert_eq!(content(&*world, &world.root()), wanted);
    // The plan is open again, its sandbox as it was.
    let root = done(ground.path().await, "asking for the path");
    assert_eq!(content(&*world, &root), result);
    refused(
        ground.undo().await,
        Code::IllegalState,
        Disposition::Conflict,
        "taking back what was",
    );
}

async fn clean_up_removes_the_root_and_nothing_else(ground: Arc<dyn Ground>) {
    fill(&*ground);
    let world = ground.world();
    let root = sandbox(&*ground).await;
    change(&*world, &root);
    assert!(done(ground.apply(false).await, "applying"));
    let real = content(&*world, &world.root());
    assert_eq!(world.get(&root), None, "the root is gone");
    refused(
        ground.path().await,
        Code::SandboxGone,
        Disposition::Permanent,
        "asking for the path of what is gone",
    );
    assert!(
        done(ground.log().await, "the log").len() >= 2,
        "checkpoints stay"
    );
    assert_eq!(content(&*world, &world.root()), real);
}

async fn a_dropped_plan_is_gone_once(ground: Arc<dyn Ground>) {
    let real = fill(&*ground);
    let world = ground.world();
    let root = sandbox(&*ground).await;
    change(&*world, &root);
    done(ground.discard().await, "dropping");
    assert_eq!(world.get(&root), None, "the root is gone");
    refused(
        ground.discard().await,
        Code::IllegalState,
        Disposition::Conflict,
        "dropping it twice",
    );
    assert_eq!(content(&*world, &world.root()), real);
}

async fn what_a_strategy_lacks_is_refused_by_name(ground: Arc<dyn Ground>) {
    let real = fill(&*ground);
    let world = ground.world();
    let root = sandbox(&*ground).await;
    world.put(&root.join("new"), file(b"new\n"));
    let landed = ground.apply_commits().await;
    if ground.strategy().can(Ability::Commits) {
        assert!(done(landed, "landing commits"));
        let own = world.get(&world.root().join("new"));
        assert_eq!(own, Some(file(b"new\n")));
        return;
    }
    let message = landed.as_ref().err().map(ToString::to_string);
    refused(
        landed,
        Code::MissingCapability,
        Disposition::Permanent,
        "landing commits",
    );
    let message = message.unwrap_or_default();
    for name in [ground.strategy().word(), Ability::Commits.word()] {
        assert!(message.contains(name), "{name} is not named: {message}");
    }
    assert_eq!(content(&*world, &world.root()), real);
    assert_eq!(
        content(&*world, &root).len(),
        real.len() + 1,
        "the sandbox stands"
    );
}
