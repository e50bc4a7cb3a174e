//! The in-memory parts, held to the contracts of their ports.

use std::sync::Arc;

use async_trait::async_trait;
use sandbar_ports::graph::GraphStore;
use sandbar_ports::store::Store;
use sandbar_testkit::contract;
use sandbar_testkit::contract::graph::GraphWorld;
use sandbar_testkit::contract::store::{StoreWorld, run_all};
use sandbar_testkit::memory::{MemGraphStore, MemStore, MemWorld};

struct Memory(MemStore);

#[async_trait]
impl StoreWorld for Memory {
    async fn open(&self) -> Arc<dyn Store> {
        Arc::new(self.0.clone())
    }
}

#[test]
fn the_store_keeps_its_contract() {
    sandbar_testkit::run(run_all(|_| async {
        Arc::new(Memory(MemStore::new())) as Arc<dyn StoreWorld>
    }));
}

#[test]
fn objects_keep_their_contract() {
    sandbar_testkit::run(contract::objects::run_all(|_| async {
        MemWorld::subject()
    }));
}

#[test]
fn workspaces_keep_their_contract() {
    sandbar_testkit::run(contract::workspaces::run_all(|_| async {
        MemWorld::subject()
    }));
}

#[test]
fn targets_keep_their_contract() {
    sandbar_testkit::run(contract::targets::run_all(|_| async {
        MemWorld::subject()
    }));
}

struct MemoryGraph(MemGraphStore);

#[async_trait]
impl GraphWorld for MemoryGraph {
    async fn open(&self) -> Arc<dyn GraphStore> {
        Arc::new(self.0.clone())
    }
}

#[test]
fn the_graph_keeps_its_contract() {
    sandbar_testkit::run(contract::graph::run_all(|_| async {
        Arc::new(MemoryGraph(MemGraphStore::new())) as Arc<dyn GraphWorld>
    }));
}
