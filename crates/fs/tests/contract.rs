//! The contracts of objects, workspaces and targets, on a real disk.

use std::sync::Arc;

use sandbar_fs::FsEngine;
use sandbar_fs::target::FsTargets;
use sandbar_testkit::contract::files::{Subject, World as _};
use sandbar_testkit::{RealWorld, contract};

async fn fresh() -> Subject {
    let world = RealWorld::new();
    let data = world.data();
    let engine = Arc::new(FsEngine::open(&data).expect("a new data directory opens"));
    Subject {
        targets: Arc::new(FsTargets::new(engine.clone(), data)),
        objects: engine.clone(),
        contents: engine.clone(),
        workspaces: engine,
        world: Arc::new(world),
    }
}

#[test]
fn objects_keep_their_contract() {
    sandbar_testkit::run(contract::objects::run_all(|_| fresh()));
}

#[test]
fn workspaces_keep_their_contract() {
    sandbar_testkit::run(contract::workspaces::run_all(|_| fresh()));
}

#[test]
fn targets_keep_their_contract() {
    sandbar_testkit::run(contract::targets::run_all(|_| fresh()));
}
