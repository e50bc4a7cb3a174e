//! Times create, unchanged capture and restore of one directory:
//! `copybench <directory> <data directory> [create]`. Prints milliseconds.
#![allow(clippy::unwrap_used, reason = "a measuring tool")]

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use sandbar_domain::Hash;
use sandbar_fs::FsEngine;
use sandbar_ports::rules::Everything;
use sandbar_ports::workspace::{CacheKey, Capture, Create, Restore, Workspaces};
use sandbar_ports::{Cancel, Silent};

fn main() {
    let mut args = std::env::args_os().skip(1).map(PathBuf::from);
    let (source, data) = (args.next().unwrap(), args.next().unwrap());
    let only_create = args.next().is_some();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap();
    runtime.block_on(measure(source, data, only_create));
}

async fn measure(source: PathBuf, data: PathBuf, only_create: bool) {
    let engine = FsEngine::open(&data).unwrap();
    let place = engine.reserve().await.unwrap();
    let source = engine.identify(source).await.unwrap();
    let start = Instant::now();
    let created = engine
        .create(Create {
            source,
            dest: place.join("r"),
            hidden: Vec::new(),
            rules: Arc::new(Everything),
            progress: Arc::new(Silent),
            cancel: Cancel::new(),
        })
        .await
        .unwrap();
    show("create", start);
    if only_create {
        return;
    }
    let cache = CacheKey::Named {
        place: place.clone(),
        name: "tree.cache",
    };
    for _ in 0..4 {
        let start = Instant::now();
        let captured = engine
            .capture(Capture {
                root: created.root.clone(),
                hidden: Vec::new(),
                rules: Arc::new(Everything),
                cache: cache.clone(),
                install: true,
                progress: Arc::new(Silent),
                cancel: Cancel::new(),
            })
            .await
            .unwrap();
        show("capture", start);
        assert_eq!(captured.tree, created.tree);
    }
    let start = Instant::now();
    engine
        .restore(again(place.join("r"), created.tree, cache))
        .await
        .unwrap();
    show("restore unchanged", start);
    let second = engine.reserve().await.unwrap();
    let start = Instant::now();
    engine
        .restore(again(second.join("r"), created.tree, CacheKey::None))
        .await
        .unwrap();
    show("restore missing", start);
    let start = Instant::now();
    engine.remove(place).await.unwrap();
    show("remove", start);
    engine.remove(second).await.unwrap();
}

fn again(path: PathBuf, tree: Hash, cache: CacheKey) -> Restore {
    Restore {
        path,
        tree,
        hidden: Vec::new(),
        rules: Arc::new(Everything),
        cache,
        pool: None,
        progress: Arc::new(Silent),
        cancel: Cancel::new(),
    }
}

fn show(what: &str, start: Instant) {
    println!("{what} {:.1} ms", start.elapsed().as_secs_f64() * 1e3);
}
