//! Every strategy keeps the one contract (STR-8): on real files with git, on
//! real files without, and in memory.
#![allow(
    clippy::disallowed_methods,
    reason = "tests make real repositories with a foreign git"
)]

use std::path::{Path, PathBuf};
use std::sync::Arc;

use async_trait::async_trait;
use sandbar::compose::{self, Opening};
use sandbar::config::{Config, Layer};
use sandbar::domain::Change;
use sandbar::domain::resource::{Ability, Strategy};
use sandbar::ports::PortResult;
use sandbar::{ApplyRequest, Outcome, Parts, Resulting, Sandbar, Surroundings, UndoRequest};
use sandbar_testkit::contract::files::{What, World};
use sandbar_testkit::contract::strategies::{self, Ground};
use sandbar_testkit::memory::{
    FixedClock, MemDisk, MemGit, MemGraphStore, MemObjects, MemPins, MemRunner, MemStore,
    MemTargets, MemWorkspaces, MemWorld, SeqIds,
};
use sandbar_testkit::{RealWorld, run};

/// The plan of every case.
const PLAN: &str = "p";

struct Composed {
    strategy: Strategy,
    world: Arc<dyn World>,
    sandbar: Sandbar,
}

/// Files alone, on a disk in memory.
async fn in_memory() -> Arc<dyn Ground> {
    let disk = MemDisk::new();
    let world = MemWorld(disk.clone());
    world.put(&world.root(), What::Directory);
    let objects = MemObjects::new();
    let data = world.data();
    let workspaces = MemWorkspaces::new(&disk, &objects, &data).expect("a data directory");
    let parts = Parts {
        workspaces: Arc::new(workspaces),
        pins: Arc::new(MemPins),
        objects: Arc::new(objects.clone()),
        contents: Arc::new(objects.clone()),
        targets: Arc::new(MemTargets::new(&disk, &objects, &data)),
        git: Arc::new(MemGit),
        store: Arc::new(MemStore::new()),
        graph: Arc::new(MemGraphStore::new()),
        runner: Arc::new(MemRunner::new(&disk)),
        clock: Arc::new(FixedClock::at(1_000_000)),
        ids: Arc::new(SeqIds::new()),
    };
    let mut config = Config::default();
    let plain = Layer::flag("test", "sandbox.view", "plain".into());
    config.add(plain).expect("a good setting");
    Arc::new(Composed {
        strategy: Strategy::CopyOnWrite,
        world: Arc::new(world),
        sandbar: Sandbar::new(parts, config, Surroundings::silent()),
    })
}

/// The adapters that people use, on real files.
async fn on_disk(strategy: Strategy) -> Arc<dyn Ground> {
    let world = RealWorld::new();
    if strategy == Strategy::GitWorktree {
        git(&world.root(), &["init", "-q", "-b", "main"]);
        git(
            &world.root(),
            &["commit", "-q", "--allow-empty", "-m", "first"],
        );
    }
    let set = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    let opening = Opening {
        cwd: None,
        environment: vec![
            set("SANDBAR_DATA_DIR", world.data().to_str().expect("UTF-8")),
            set("SANDBAR_SANDBOX_VIEW", "plain"),
        ],
        around: Surroundings::silent(),
    };
    Arc::new(Composed {
        strategy,
        sandbar: compose::open(opening).await.expect("it opens"),
        world: Arc::new(world),
    })
}

fn git(dir: &Path, arguments: &[&str]) {
    let identity = ["-c", "user.name=A", "-c", "user.email=a@example.com"];
    let done = std::process::Command::new("git")
        .args(identity)
        .args(arguments)
        .current_dir(dir)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .status();
    assert!(done.expect("git is there").success(), "git {arguments:?}");
}

impl Composed {
    fn cwd(&self) -> PathBuf {
        self.world.root()
    }

    async fn bring(&self, dry_run: bool, resulting: Resulting) -> PortResult<bool> {
        let request = ApplyRequest {
            plan: PLAN.into(),
            cwd: self.cwd(),
            paths: Vec::new(),
            resources: Vec::new(),
            dry_run,
            resulting,
            onto_current: false,
            allow_filters: false,
        };
        match self.sandbar.apply(request).await?.outcome {
            Outcome::Applied | Outcome::DryRun => Ok(true),
            Outcome::Conflict => Ok(false),
            other => panic!("an apply came to {other:?}"),
        }
    }
}

#[async_trait]
impl Ground for Composed {
    fn strategy(&self) -> Strategy {
        self.strategy
    }

    fn world(&self) -> Arc<dyn World> {
        self.world.clone()
    }

    async fn abilities(&self) -> Vec<(Ability, bool)> {
        Sandbar::abilities(self.strategy)
    }

    async fn create(&self) -> PortResult<()> {
        let made = self
            .sandbar
            .new_plan_at(
                Some(PLAN.into()),
                None,
                sandbar::Bring::default(),
                self.cwd(),
            )
            .await?;
        assert_eq!(made.plan.name, PLAN);
        let status = self.sandbar.status(PLAN, &self.cwd()).await?;
        let strategy = status.sandboxes[0].sandbox.strategy;
        assert_eq!(strategy, self.strategy, "the strategy that is judged");
        Ok(())
    }

    async fn path(&self) -> PortResult<PathBuf> {
        self.sandbar.path(PLAN, &self.cwd()).await
    }

    async fn checkpoint(&self) -> PortResult<u64> {
        let saved = self.sandbar.checkpoint(PLAN, None, &self.cwd()).await?;
        Ok(saved.checkpoint.sequence)
    }

    async fn rollback(&self, to: u64) -> PortResult<()> {
        let to = to.to_string();
        self.sandbar
            .rollback(PLAN, &to, &self.cwd())
            .await
            .map(drop)
    }

    async fn changes(&self) -> PortResult<Vec<Change>> {
        let diff = self.sandbar.diff(PLAN, &self.cwd()).await?;
        Ok(diff.boundaries[0].1.changes().to_vec())
    }

    async fn apply(&self, dry_run: bool) -> PortResult<bool> {
        self.bring(dry_run, Resulting::Uncommitted).await
    }

    async fn apply_commits(&self) -> PortResult<bool> {
        self.bring(false, Resulting::Commit(Some("landed".into())))
            .await
    }

    async fn undo(&self) -> PortResult<bool> {
        let request = UndoRequest {
            plan: PLAN.into(),
            cwd: self.cwd(),
            dry_run: false,
            onto_current: false,
        };
        Ok(self.sandbar.undo(request).await?.outcome != Outcome::Conflict)
    }

    async fn discard(&self) -> PortResult<()> {
        self.sandbar.discard(PLAN, &self.cwd()).await.map(drop)
    }

    async fn log(&self) -> PortResult<Vec<u64>> {
        let (_, entries) = self.sandbar.log(PLAN, &self.cwd()).await?;
        let number = |entry: &sandbar::LogEntry| entry.checkpoint.sequence;
        Ok(entries.iter().map(number).collect())
    }
}

// conformance: STR-8 (git_worktree)
#[test]
fn git_worktree_keeps_the_contract() {
    run(strategies::run_all(|_| on_disk(Strategy::GitWorktree)));
}

// conformance: STR-8 (copy_on_write)
#[test]
fn copy_on_write_keeps_the_contract() {
    run(strategies::run_all(|_| on_disk(Strategy::CopyOnWrite)));
}

// conformance: STR-8 (in memory)
#[test]
fn the_composition_in_memory_keeps_the_contract() {
    run(strategies::run_all(|_| in_memory()));
}

// conformance: STR-8
#[test]
fn every_strategy_says_of_each_ability_whether_it_has_it() {
    for strategy in Strategy::ALL {
        let said = Sandbar::abilities(strategy);
        let lacks: Vec<&str> = said
            .iter()
            .filter(|(_, can)| !can)
            .map(|(ability, _)| ability.word())
            .collect();
        let expected: &[&str] = match strategy {
            Strategy::GitWorktree => &[],
            Strategy::CopyOnWrite => &["commits"],
        };
        assert_eq!(lacks, expected, "{}", strategy.word());
    }
}
