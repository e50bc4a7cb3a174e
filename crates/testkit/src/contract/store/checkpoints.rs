//! Checkpoints: numbered within their plan.

use std::sync::Arc;

use sandbar_domain::{Code, Disposition, Hash, PlanId, ResourceId, SandboxId};
use sandbar_ports::store::{CheckpointPart, NewCheckpoint, Store};

use super::{StoreWorld, done, refused, same_list, sample};

async fn plan(store: &Arc<dyn Store>, n: u64) -> (PlanId, ResourceId, SandboxId) {
    let resource = done(store.register(sample::resource(n)).await, "registering").id;
    let new = sample::plan(n.into(), &format!("plan {n}"), resource);
    let plan = done(store.add_plan(new).await, "adding a plan").plan.id;
    let sandbox = sample::sandbox(n.into(), plan, resource);
    let id = sandbox.id;
    done(store.add_sandbox(sandbox).await, "adding a sandbox");
    (plan, resource, id)
}

async fn numbers(store: &Arc<dyn Store>, plan: PlanId) -> Vec<u64> {
    let all = done(store.checkpoints(plan).await, "reading checkpoints");
    all.iter().map(|record| record.sequence).collect()
}

pub(super) async fn odd_checkpoints_come_back_equal(world: Arc<dyn StoreWorld>) {
    let store = world.open().await;
    let (plan, _, _) = plan(&store, 1).await;
    let mut sandboxes = Vec::new();
    for n in 10..15u64 {
        let resource = done(store.register(sample::resource(n)).await, "registering").id;
        let sandbox = sample::sandbox(n.into(), plan, resource);
        sandboxes.push(sandbox.id);
        done(store.add_sandbox(sandbox).await, "adding a sandbox");
    }
    let mut all = Vec::new();
    for (n, text) in sample::odd_texts().into_iter().enumerate() {
        // Parts in an order that is not that of ids; also none at all.
        let parts = (0..n % 5).map(|k| CheckpointPart {
            sandbox: sandboxes[(4 * k + n) % 5],
            snapshot: Hash::of(&[n as u8, k as u8]),
            commit: (k % 2 == 0).then(|| text.clone()),
        });
        let new = NewCheckpoint {
            id: sample::checkpoint_id(1_000 - n as u128),
            plan,
            parts: parts.collect(),
            message: (n % 3 != 0).then(|| text.clone()),
            step: text.clone(),
            created_ms: sample::ODD_TIMES[n % sample::ODD_TIMES.len()],
        };
        let record = done(store.add_checkpoint(new.clone()).await, "adding");
        assert_eq!(record.checkpoint, new);
        assert_eq!(record.sequence, n as u64 + 1, "numbers are from 1");
        all.push(record);
    }
    let found = world.open().await.checkpoints(plan).await;
    same_list(
        &done(found, "a read"),
        &all,
        "checkpoints must come back equal, parts in order, oldest first",
    );
    assert_eq!(numbers(&store, sample::plan_id(99)).await, [] as [u64; 0]);
}

pub(super) async fn numbers_are_those_of_the_plan_and_never_reused(world: Arc<dyn StoreWorld>) {
    let store = world.open().await;
    let (one, _, a) = plan(&store, 1).await;
    let (two, _, b) = plan(&store, 2).await;
    let mut id = 0;
    let mut add = async |plan, sandbox| {
        id += 1;
        let new = sample::checkpoint(id, plan, sandbox);
        let store = world.open().await;
        done(store.add_checkpoint(new).await, "adding a checkpoint").sequence
    };
    assert_eq!(add(one, a).await, 1);
    assert_eq!(add(one, a).await, 2);
    assert_eq!(add(two, b).await, 1, "each plan counts for itself");
    assert_eq!(add(one, a).await, 3);
    done(store.drop_checkpoints(one, vec![3, 1]).await, "dropping");
    assert_eq!(add(one, a).await, 4, "a dropped number is not given again");
    let all = numbers(&store, one).await;
    done(store.drop_checkpoints(one, all).await, "dropping all");
    assert_eq!(add(one, a).await, 5, "not even when all are gone");
    assert_eq!(numbers(&store, one).await, [5]);
}

pub(super) async fn dropping_takes_exactly_what_is_named(world: Arc<dyn StoreWorld>) {
    let store = world.open().await;
    let (one, _, a) = plan(&store, 1).await;
    let (two, _, b) = plan(&store, 2).await;
    for n in 0..6 {
        let (plan, sandbox) = if n % 2 == 0 { (one, a) } else { (two, b) };
        let new = sample::checkpoint(n, plan, sandbox);
        done(store.add_checkpoint(new).await, "adding a checkpoint");
    }
    let many = (4..1_500).collect();
    for (gone, left) in [
        (vec![], vec![1, 2, 3]),
        (vec![2], vec![1, 3]),
        (vec![2, 0, u64::MAX], vec![1, 3]),
        (many, vec![1, 3]),
        (vec![3, 3], vec![1]),
    ] {
        let dropped = store.drop_checkpoints(one, gone).await;
        done(dropped, "dropping, of missing ones as well,");
        assert_eq!(numbers(&store, one).await, left);
        assert_eq!(
            numbers(&store, two).await,
            [1, 2, 3],
            "another plan's checkpoints must stay"
        );
    }
    let none = store.drop_checkpoints(sample::plan_id(9), vec![1]).await;
    done(none, "dropping checkpoints of no plan");
}

pub(super) async fn a_checkpoint_needs_its_plan_and_sandboxes(world: Arc<dyn StoreWorld>) {
    let store = world.open().await;
    let (plan, _, sandbox) = plan(&store, 1).await;
    refused(
        store
            .add_checkpoint(sample::checkpoint(1, sample::plan_id(9), sandbox))
            .await,
        Code::PlanNotFound,
        Disposition::Permanent,
        "a checkpoint of an unknown plan",
    );
    let lost = sample::sandbox_id(9);
    refused(
        store
            .add_checkpoint(sample::checkpoint(1, plan, lost))
            .await,
        Code::Internal,
        Disposition::Permanent,
        "a checkpoint of an unknown sandbox",
    );
    let record = store
        .add_checkpoint(sample::checkpoint(1, plan, sandbox))
        .await;
    assert_eq!(
        done(record, "adding a checkpoint").sequence,
        1,
        "a refused checkpoint takes no number"
    );
    refused(
        store
            .add_checkpoint(sample::checkpoint(1, plan, sandbox))
            .await,
        Code::Internal,
        Disposition::Permanent,
        "an id that is taken",
    );
    assert_eq!(numbers(&store, plan).await, [1]);
}

pub(super) async fn only_a_plan_without_a_past_is_forgotten(world: Arc<dyn StoreWorld>) {
    let store = world.open().await;
    let (fresh, resource, _) = plan(&store, 1).await;
    let (past, _, sandbox) = plan(&store, 2).await;
    let parts = vec![CheckpointPart {
        sandbox,
        snapshot: Hash::of(b"s"),
        commit: None,
    }];
    let new = NewCheckpoint {
        id: sample::checkpoint_id(1),
        plan: past,
        parts,
        message: None,
        step: "base".into(),
        created_ms: 0,
    };
    done(store.add_checkpoint(new).await, "adding a checkpoint");
    done(store.forget_plan(fresh).await, "forgetting");
    done(store.forget_plan(fresh).await, "forgetting what is gone");
    refused(
        store.forget_plan(past).await,
        Code::IllegalState,
        Disposition::Conflict,
        "forgetting a plan with a past",
    );
    let left = done(world.open().await.plans().await, "reading plans");
    assert_eq!(
        left.iter().map(|record| record.plan.id).collect::<Vec<_>>(),
        [past]
    );
    assert!(done(store.sandboxes(fresh).await, "reading sandboxes").is_empty());
    assert!(
        done(store.resource(resource).await, "reading").is_some(),
        "resources stay"
    );
    // Name and id are free again.
    let again = sample::plan(1, "plan 1", resource);
    done(store.add_plan(again).await, "adding it anew");
}
