//! Measures what a command pays for the store: opening it, one look, one
//! durable commit. Takes the address of a store; prints medians in µs.

use std::time::Instant;

use sandbar_domain::plan::PlanState;
use sandbar_domain::resource::{Resource, ResourceType, Root};
use sandbar_domain::{PlanId, ResourceId};
use sandbar_ports::store::{NewPlan, PlanMark, Store as _};
use sandbar_store::SqlStore;

fn main() {
    let url = std::env::args().nth(1).expect("an address of a store");
    let mut first = Vec::new();
    let mut look = Vec::new();
    let mut commit = Vec::new();
    for round in 0..41u64 {
        // A new runtime each time, as a new process has.
        let started = Instant::now();
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .expect("a runtime can be built");
        runtime.block_on(async {
            let store = SqlStore::open(&url).await.expect("the store opens");
            first.push(started.elapsed().as_micros());
            if round == 0 {
                return;
            }
            let n = round.into();
            let resource = Resource {
                id: ResourceId::from_parts(0, n),
                kind: ResourceType::FsDirectory,
                root: Root {
                    path: format!("/{round}").into(),
                    device: 1,
                    inode: round,
                },
            };
            let resource = store.register(resource).await.expect("it registers");
            let started = Instant::now();
            let mark = PlanMark {
                state: PlanState::Discarded,
                owner: None,
            };
            let plan = NewPlan {
                id: PlanId::from_parts(
                    started.elapsed().as_nanos() as u64 + u64::from(std::process::id()) * 1_000_000,
                    n,
                ),
                name: String::new(),
                resource: resource.id,
                mark,
                settings: String::new(),
                created_ms: 0,
            };
            store.add_plan(plan).await.expect("it is added");
            commit.push(started.elapsed().as_micros());
        });
        let started = Instant::now();
        runtime.block_on(async {
            let store = SqlStore::open_existing(&url).await.expect("it opens");
            let store = store.expect("it is there");
            store.plans().await.expect("plans can be read");
        });
        look.push(started.elapsed().as_micros());
    }
    println!("open, new store: {} µs", first.remove(0));
    println!("open: {} µs", median(first));
    println!("open_existing + plans: {} µs", median(look));
    println!("commit: {} µs", median(commit));
}

fn median(mut values: Vec<u128>) -> u128 {
    values.sort_unstable();
    values[values.len() / 2]
}
