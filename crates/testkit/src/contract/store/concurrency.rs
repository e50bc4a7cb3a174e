//! Eight tasks at once, each with a handle of its own.

use std::future::Future;
use std::sync::Arc;

use sandbar_domain::journal::Phase;
use sandbar_domain::plan::PlanState;
use sandbar_domain::resource::Resource;
use sandbar_domain::{Code, PlanId, ResourceId, SandboxId};
use sandbar_ports::PortResult;
use sandbar_ports::store::{JournalQuery, JournalStep, Store};

use super::sample::{self, at_rest, driven};
use super::{StoreWorld, done};

const TASKS: u32 = 8;

/// Starts eight tasks on eight handles and returns what each came to.
async fn at_once<T, F>(
    world: &Arc<dyn StoreWorld>,
    task: impl Fn(Arc<dyn Store>, u32) -> F,
) -> Vec<T>
where
    F: Future<Output = T> + Send + 'static,
    T: Send + 'static,
{
    let mut handles = Vec::new();
    for _ in 0..TASKS {
        handles.push(world.open().await);
    }
    let start = Arc::new(tokio::sync::Barrier::new(handles.len()));
    let mut tasks = Vec::new();
    for (n, store) in (0..).zip(handles) {
        let start = start.clone();
        let body = task(store, n);
        tasks.push(tokio::spawn(async move {
            start.wait().await;
            body.await
        }));
    }
    let mut results = Vec::new();
    for task in tasks {
        results.push(task.await.expect("a task must not panic"));
    }
    results
}

/// Expects one success; the others refused with `code`.
#[track_caller]
fn one_of<T>(results: Vec<PortResult<T>>, code: Code) -> T {
    let mut winner = None;
    for result in results {
        match result {
            Ok(value) => assert!(
                winner.replace(value).is_none(),
                "only one of eight may succeed"
            ),
            Err(error) => assert_eq!(error.code, code, "the others are told: {error}"),
        }
    }
    winner.expect("one of eight must succeed")
}

async fn prepared(world: &Arc<dyn StoreWorld>) -> (Arc<dyn Store>, ResourceId, PlanId, SandboxId) {
    let store = world.open().await;
    let resource = done(store.register(sample::resource(1)).await, "registering").id;
    let plan = sample::plan(1, "demo", resource);
    let plan = done(store.add_plan(plan).await, "adding a plan").plan.id;
    let sandbox = sample::sandbox(1, plan, resource);
    let id = sandbox.id;
    done(store.add_sandbox(sandbox).await, "adding a sandbox");
    (store, resource, plan, id)
}

pub(super) async fn one_of_eight_takes_the_plan(world: Arc<dyn StoreWorld>) {
    let (store, _, plan, _) = prepared(&world).await;
    let results = at_once(&world, |store, n| async move {
        let from = at_rest(PlanState::Draft);
        let to = driven(PlanState::Executing, n);
        store.move_plan(plan, from, to, n.into()).await
    })
    .await;
    let winner = one_of(results, Code::PlanBusy);
    let now = done(store.plan(plan).await, "a read");
    assert_eq!(now, Some(winner), "the plan is the winner's");
}

pub(super) async fn one_of_eight_gets_the_name(world: Arc<dyn StoreWorld>) {
    let (store, resource, _, _) = prepared(&world).await;
    let results = at_once(&world, |store, n| async move {
        let plan = sample::plan(100 + u128::from(n), "wanted", resource);
        store.add_plan(plan).await
    })
    .await;
    let winner = one_of(results, Code::NameInUse);
    let found = done(store.find_plans("wanted".to_owned()).await, "a search");
    assert_eq!(found, [winner]);
}

pub(super) async fn one_of_eight_registers_the_root(world: Arc<dyn StoreWorld>) {
    let store = world.open().await;
    let results = at_once(&world, |store, n| async move {
        let resource = Resource {
            id: sample::resource_id(100 + u128::from(n)),
            ..sample::resource(5)
        };
        done(store.register(resource).await, "registering")
    })
    .await;
    let first = results[0].clone();
    assert!(
        results.iter().all(|resource| *resource == first),
        "all eight must get the same resource: {results:?}"
    );
    assert_eq!(done(store.resource(first.id).await, "a read"), Some(first));
}

pub(super) async fn numbers_have_no_holes_and_no_doubles(world: Arc<dyn StoreWorld>) {
    const EACH: u32 = 6;
    let (store, resource, plan, sandbox) = prepared(&world).await;
    let mut all: Vec<(u64, u64, u64)> = at_once(&world, |store, n| async move {
        let mut mine = Vec::new();
        for k in 0..EACH {
            let id = u128::from(1_000 + n * EACH + k);
            let new = sample::checkpoint(id, plan, sandbox);
            let checkpoint = done(store.add_checkpoint(new).await, "adding").sequence;
            let new = sample::plan(id, &format!("p {id}"), resource);
            let added = done(store.add_plan(new).await, "adding").sequence;
            let new = sample::entry(id, plan);
            let entry = done(store.open_journal(new).await, "opening").sequence;
            mine.push((checkpoint, added, entry));
        }
        let falls = mine
            .windows(2)
            .any(|pair| pair[0].0 >= pair[1].0 || pair[0].1 >= pair[1].1 || pair[0].2 >= pair[1].2);
        assert!(!falls, "the numbers that one task gets must rise: {mine:?}");
        mine
    })
    .await
    .into_iter()
    .flatten()
    .collect();
    let count = u64::from(TASKS * EACH);
    all.sort_unstable();
    let checkpoints: Vec<u64> = all.iter().map(|numbers| numbers.0).collect();
    assert_eq!(
        checkpoints,
        (1..=count).collect::<Vec<_>>(),
        "checkpoints are numbered without holes or doubles"
    );
    for pick in [
        |numbers: &(u64, u64, u64)| numbers.1,
        |numbers: &(u64, u64, u64)| numbers.2,
    ] {
        let mut given: Vec<u64> = all.iter().map(pick).collect();
        given.sort_unstable();
        given.dedup();
        assert_eq!(given.len() as u64, count, "no number is given twice");
    }
    let stored = done(store.checkpoints(plan).await, "a read");
    assert_eq!(stored.len() as u64, count);
    assert!(
        stored
            .iter()
            .all(|record| record.checkpoint.parts.len() == 1)
    );
}

pub(super) async fn one_of_eight_takes_a_journal_step(world: Arc<dyn StoreWorld>) {
    let (store, _, plan, _) = prepared(&world).await;
    let entry = done(store.open_journal(sample::entry(1, plan)).await, "opening");
    let results = at_once(&world, |store, n| async move {
        let step = JournalStep {
            id: sample::journal_id(1),
            from: Phase::Staging,
            to: Phase::Decided,
            ops: None,
            payload: n.to_string(),
            owner: Some(sample::owner(n)),
            plan: Some((
                at_rest(PlanState::Draft),
                driven(PlanState::Applying, n),
                n.into(),
            )),
        };
        store.advance_journal(step).await
    })
    .await;
    let winner = one_of(results, Code::IllegalState);
    assert_eq!(winner.id, entry.id);
    let now = done(store.plan(plan).await, "a read").expect("it was added");
    assert_eq!(
        now.plan.mark.owner, winner.owner,
        "plan and entry are the same winner's"
    );
    let entries = done(store.journal(JournalQuery::Open).await, "a read");
    assert_eq!(entries, [winner]);
}

pub(super) async fn a_healthy_store_has_nothing_to_report(world: Arc<dyn StoreWorld>) {
    let (store, _, plan, sandbox) = prepared(&world).await;
    let new = sample::checkpoint(1, plan, sandbox);
    done(store.add_checkpoint(new).await, "adding a checkpoint");
    done(store.open_journal(sample::entry(1, plan)).await, "opening");
    let wrong = done(store.check().await, "the check");
    assert_eq!(wrong, [] as [String; 0], "nothing is wrong");
}
