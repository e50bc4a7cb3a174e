//! The store's contract on both databases.

use std::sync::Arc;

use async_trait::async_trait;
use sandbar_ports::graph::GraphStore;
use sandbar_ports::store::Store;
use sandbar_store::SqlStore;
use sandbar_testkit::contract::graph::{self, GraphWorld};
use sandbar_testkit::contract::store::{StoreWorld, run_all};
use sandbar_testkit::engines::postgres::Postgres;

/// A store by its address; every handle has connections of its own.
struct At(String);

#[async_trait]
impl StoreWorld for At {
    async fn open(&self) -> Arc<dyn Store> {
        Arc::new(SqlStore::open(&self.0).await.expect("the store opens"))
    }
}

#[test]
fn sqlite_keeps_the_contract() {
    let dir = tempfile::tempdir().expect("a directory can be made");
    sandbar_testkit::run(run_all(|name| {
        let file = dir.path().join(name);
        async move { Arc::new(At(format!("sqlite:{}", file.display()))) as Arc<dyn StoreWorld> }
    }));
}

#[test]
fn postgres_keeps_the_contract() {
    let server = Postgres::get();
    sandbar_testkit::run(run_all(|_| {
        let url = server.database();
        async move { Arc::new(At(url)) as Arc<dyn StoreWorld> }
    }));
}

#[async_trait]
impl GraphWorld for At {
    async fn open(&self) -> Arc<dyn GraphStore> {
        Arc::new(SqlStore::open(&self.0).await.expect("the store opens"))
    }
}

#[test]
fn sqlite_keeps_the_contract_of_the_graph() {
    let dir = tempfile::tempdir().expect("a directory can be made");
    sandbar_testkit::run(graph::run_all(|name| {
        let file = dir.path().join(name);
        async move { Arc::new(At(format!("sqlite:{}", file.display()))) as Arc<dyn GraphWorld> }
    }));
}

#[test]
fn postgres_keeps_the_contract_of_the_graph() {
    let server = Postgres::get();
    sandbar_testkit::run(graph::run_all(|_| {
        let url = server.database();
        async move { Arc::new(At(url)) as Arc<dyn GraphWorld> }
    }));
}
