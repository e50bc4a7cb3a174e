//! Sandboxes: one a plan and resource.

use std::sync::Arc;

use sandbar_domain::resource::{Root, Strategy};
use sandbar_domain::{Code, Disposition, Hash, PlanId, RelPath, ResourceId};
use sandbar_ports::exec::View;
use sandbar_ports::store::{SandboxRecord, SandboxState, Store};

use super::{StoreWorld, done, refused, same_list, sample};

async fn plan(store: &Arc<dyn Store>, n: u64) -> (PlanId, ResourceId) {
    let resource = done(store.register(sample::resource(n)).await, "registering").id;
    let plan = sample::plan(n.into(), &format!("plan {n}"), resource);
    (done(store.add_plan(plan).await, "adding").plan.id, resource)
}

async fn stored(store: &Arc<dyn Store>, plan: PlanId) -> Vec<SandboxRecord> {
    done(store.sandboxes(plan).await, "reading sandboxes")
}

pub(super) async fn odd_sandboxes_come_back_equal(world: Arc<dyn StoreWorld>) {
    let store = world.open().await;
    let (plan, _) = plan(&store, 1).await;
    let paths = sample::odd_paths();
    let texts = sample::odd_texts();
    let states = [
        SandboxState::Creating,
        SandboxState::Ready,
        SandboxState::Cleaned,
    ];
    let mut all = Vec::new();
    for n in 0..texts.len() {
        let resource = sample::resource(100 + n as u64);
        let resource = done(store.register(resource).await, "registering").id;
        let path = |k: usize| paths[(n + k) % paths.len()].clone();
        let rel = |k: usize| RelPath::new(&format!("ünï/{k} \n")).expect("a valid path");
        let number = sample::ODD_NUMBERS[n % sample::ODD_NUMBERS.len()];
        let record = SandboxRecord {
            // Ids fall, so that they cannot be what orders.
            id: sample::sandbox_id(1_000 - n as u128),
            strategy: Strategy::ALL[n % 2],
            state: states[n % 3],
            place: path(0),
            root: (n % 2 == 0).then(|| Root {
                path: path(1),
                device: number,
                inode: !number,
            }),
            view: [View::InPlace, View::Plain][n % 2],
            base: (n % 3 == 0).then(|| Hash::of(b"base")),
            base_branch: (n % 2 == 1).then(|| texts[n].clone()),
            base_head: (n % 3 == 1).then(|| texts[n].clone()),
            rules: (n % 3 == 2).then(|| Hash::of(b"rules")),
            ignored: number,
            binds: (0..n % 4).map(|k| (path(k), path(k + 1))).collect(),
            unsettled: (0..n % 3).map(|k| (rel(k), rel(k + 1))).collect(),
            ..sample::sandbox(0, plan, resource)
        };
        done(store.add_sandbox(record.clone()).await, "adding a sandbox");
        all.push(record);
    }
    same_list(
        &stored(&world.open().await, plan).await,
        &all,
        "sandboxes must come back equal, oldest first",
    );
    assert_eq!(stored(&store, sample::plan_id(99)).await, []);
}

pub(super) async fn one_sandbox_for_a_plan_and_resource(world: Arc<dyn StoreWorld>) {
    let store = world.open().await;
    let (one, here) = plan(&store, 1).await;
    let (two, there) = plan(&store, 2).await;
    for (n, plan, resource) in [(1, one, here), (2, one, there), (3, two, here)] {
        let record = sample::sandbox(n, plan, resource);
        done(store.add_sandbox(record).await, "adding a sandbox");
    }
    refused(
        store.add_sandbox(sample::sandbox(4, one, here)).await,
        Code::IllegalState,
        Disposition::Conflict,
        "a second sandbox of one plan for one resource",
    );
    refused(
        store.update_sandbox(sample::sandbox(2, one, here)).await,
        Code::IllegalState,
        Disposition::Conflict,
        "an update onto the resource of another sandbox",
    );
    refused(
        store.add_sandbox(sample::sandbox(1, two, there)).await,
        Code::Internal,
        Disposition::Permanent,
        "an id that is taken",
    );
    assert_eq!(stored(&store, one).await.len(), 2);
    assert_eq!(stored(&store, two).await.len(), 1);
}

pub(super) async fn an_update_replaces_everything_but_the_order(world: Arc<dyn StoreWorld>) {
    let store = world.open().await;
    let (plan, here) = plan(&store, 1).await;
    let there = done(store.register(sample::resource(2)).await, "registering").id;
    let first = sample::sandbox(2, plan, here);
    let second = sample::sandbox(1, plan, there);
    for record in [&first, &second] {
        done(store.add_sandbox(record.clone()).await, "adding a sandbox");
    }
    let full = SandboxRecord {
        strategy: Strategy::GitWorktree,
        state: SandboxState::Ready,
        place: "/elsewhere".into(),
        root: Some(Root {
            path: "/elsewhere/r".into(),
            device: 1,
            inode: 2,
        }),
        view: View::InPlace,
        base: Some(Hash::of(b"1")),
        base_branch: Some("refs/heads/main".to_owned()),
        base_head: Some("0123".to_owned()),
        rules: Some(Hash::of(b"2")),
        ignored: 3,
        binds: vec![("/a".into(), "/b".into())],
        unsettled: vec![(
            RelPath::new("a").expect("a valid path"),
            RelPath::new("b/c").expect("a valid path"),
        )],
        ..first.clone()
    };
    // Filled, then emptied again: no column may keep an old value.
    for record in [full, first] {
        done(store.update_sandbox(record.clone()).await, "an update");
        let found = stored(&world.open().await, plan).await;
        assert_eq!(
            found,
            [record, second.clone()],
            "an update replaces every field and keeps the order"
        );
    }
    refused(
        store
            .update_sandbox(sample::sandbox(9, plan, sample::resource_id(77)))
            .await,
        Code::Internal,
        Disposition::Permanent,
        "an update of a sandbox that is not there",
    );
}

pub(super) async fn a_sandbox_needs_its_plan_and_resource(world: Arc<dyn StoreWorld>) {
    let store = world.open().await;
    let (plan, resource) = plan(&store, 1).await;
    refused(
        store
            .add_sandbox(sample::sandbox(1, sample::plan_id(9), resource))
            .await,
        Code::PlanNotFound,
        Disposition::Permanent,
        "a sandbox of an unknown plan",
    );
    refused(
        store
            .add_sandbox(sample::sandbox(1, plan, sample::resource_id(9)))
            .await,
        Code::Internal,
        Disposition::Permanent,
        "a sandbox of an unknown resource",
    );
    assert_eq!(stored(&store, plan).await, []);
}
