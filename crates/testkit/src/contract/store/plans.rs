//! Plans: names, order, compare-and-swap.

use std::sync::Arc;

use sandbar_domain::plan::PlanState;
use sandbar_domain::{Code, Disposition, PlanId};
use sandbar_ports::exec::Owner;
use sandbar_ports::store::{NewPlan, PlanMark, PlanRecord, Store};

use super::sample::{self, at_rest, driven};
use super::{StoreWorld, done, refused, same_list};

async fn registered(store: &Arc<dyn Store>, n: u64) -> sandbar_domain::ResourceId {
    done(store.register(sample::resource(n)).await, "registering").id
}

async fn added(store: &Arc<dyn Store>, plan: NewPlan) -> PlanRecord {
    done(store.add_plan(plan).await, "adding a plan")
}

async fn shifted(store: &Arc<dyn Store>, id: PlanId, from: PlanMark, to: PlanMark) -> PlanRecord {
    done(store.move_plan(id, from, to, 5).await, "moving a plan")
}

fn ids(records: &[PlanRecord]) -> Vec<PlanId> {
    records.iter().map(|record| record.plan.id).collect()
}

pub(super) async fn an_empty_store_has_no_plans(world: Arc<dyn StoreWorld>) {
    let store = world.open().await;
    assert_eq!(done(store.plans().await, "a read"), []);
    assert_eq!(done(store.plan(sample::plan_id(1)).await, "a read"), None);
    for text in ["x", "", "01", "%"] {
        let found = done(store.find_plans(text.to_owned()).await, "a search");
        assert_eq!(found, [], "nothing can be found by {text:?}");
    }
    let newest = store.newest_plan(sample::resource_id(1)).await;
    assert_eq!(done(newest, "a read"), None);
}

pub(super) async fn odd_plans_come_back_equal(world: Arc<dyn StoreWorld>) {
    let store = world.open().await;
    let resource = registered(&store, 1).await;
    let mut all = Vec::new();
    for (n, text) in sample::odd_texts().into_iter().enumerate() {
        let number = sample::ODD_NUMBERS[n % sample::ODD_NUMBERS.len()];
        let owner = (n % 2 == 0).then(|| Owner {
            host: text.clone(),
            boot: text.clone(),
            pid_namespace: number,
            pid: [0, 1, u32::MAX][n % 3],
            started: number.wrapping_add(1),
        });
        let state = PlanState::ALL[n % PlanState::ALL.len()];
        let created_ms = sample::ODD_TIMES[n % sample::ODD_TIMES.len()];
        let plan = NewPlan {
            mark: PlanMark { state, owner },
            settings: text.clone(),
            created_ms,
            ..sample::plan(n as u128, &text, resource)
        };
        let record = added(&store, plan.clone()).await;
        assert_eq!(record.plan, plan);
        assert_eq!(
            record.changed_ms, created_ms,
            "a new plan changed when made"
        );
        all.push(record);
    }
    let store = world.open().await;
    same_list(
        &done(store.plans().await, "a read"),
        &all,
        "plans must come back equal and in order",
    );
    for record in &all {
        let found = done(store.plan(record.plan.id).await, "a read");
        assert_eq!(found.as_ref(), Some(record));
        let found = store.find_plans(record.plan.name.clone()).await;
        assert_eq!(
            done(found, "a search"),
            std::slice::from_ref(record),
            "an odd name must be found exactly"
        );
    }
}

pub(super) async fn order_is_by_sequence_though_clocks_go_back(world: Arc<dyn StoreWorld>) {
    let store = world.open().await;
    let resource = registered(&store, 1).await;
    // Ids and times fall while the order of adding rises.
    let mut expected = Vec::new();
    let mut last = 0;
    for n in 0..5i64 {
        let id = PlanId::from_parts((9_000 - n).cast_unsigned(), 0);
        let plan = NewPlan {
            id,
            created_ms: 1_000_000 - n * 3_600_000,
            ..sample::plan(0, &format!("p{n}"), resource)
        };
        let record = added(&world.open().await, plan).await;
        assert!(record.sequence > last, "a later plan has a higher number");
        last = record.sequence;
        expected.push(id);
    }
    let all = done(store.plans().await, "a read");
    assert_eq!(ids(&all), expected, "plans are listed oldest first");
    let newest = done(store.newest_plan(resource).await, "a read");
    assert_eq!(
        newest.map(|record| record.plan.id),
        expected.last().copied(),
        "the newest plan is that of the highest number"
    );
}

pub(super) async fn a_name_is_unique_until_discarded(world: Arc<dyn StoreWorld>) {
    let store = world.open().await;
    let resource = registered(&store, 1).await;
    let first = added(&store, sample::plan(1, "demo", resource)).await;
    let twin = || sample::plan(2, "demo", resource);
    refused(
        world.open().await.add_plan(twin()).await,
        Code::NameInUse,
        Disposition::Conflict,
        "a name in use",
    );
    // Names are compared as they stand.
    added(&store, sample::plan(3, "Demo", resource)).await;
    for state in PlanState::ALL {
        let now = done(store.plan(first.plan.id).await, "a read").expect("it was added");
        shifted(&store, first.plan.id, now.plan.mark, at_rest(state)).await;
        let second = store.add_plan(twin()).await;
        if state == PlanState::Discarded {
            done(second, "the name of a discarded plan is free");
        } else {
            refused(
                second,
                Code::NameInUse,
                Disposition::Conflict,
                "a name in use in any state but discarded",
            );
        }
    }
}

pub(super) async fn a_discarded_plan_comes_back_only_to_a_free_name(world: Arc<dyn StoreWorld>) {
    let store = world.open().await;
    let resource = registered(&store, 1).await;
    let dropped = || at_rest(PlanState::Discarded);
    let review = || at_rest(PlanState::Review);
    let mut plan = sample::plan(1, "demo", resource);
    plan.mark = dropped();
    let first = added(&store, plan).await.plan.id;
    shifted(&store, first, dropped(), review()).await;
    shifted(&store, first, review(), dropped()).await;
    added(&store, sample::plan(2, "demo", resource)).await;
    refused(
        store.move_plan(first, dropped(), review(), 6).await,
        Code::NameInUse,
        Disposition::Conflict,
        "a return to a name that was taken",
    );
    let now = done(store.plan(first).await, "a read").expect("it was added");
    assert_eq!(now.plan.mark, dropped(), "a refused move changes nothing");
}

pub(super) async fn a_plan_needs_its_resource_and_a_new_id(world: Arc<dyn StoreWorld>) {
    let store = world.open().await;
    refused(
        store
            .add_plan(sample::plan(1, "lost", sample::resource_id(5)))
            .await,
        Code::Internal,
        Disposition::Permanent,
        "a plan on an unknown resource",
    );
    let resource = registered(&store, 1).await;
    added(&store, sample::plan(1, "first", resource)).await;
    refused(
        store.add_plan(sample::plan(1, "second", resource)).await,
        Code::Internal,
        Disposition::Permanent,
        "an id that is taken",
    );
    assert_eq!(done(store.plans().await, "a read").len(), 1);
}

pub(super) async fn names_come_before_prefixes(world: Arc<dyn StoreWorld>) {
    let store = world.open().await;
    let resource = registered(&store, 1).await;
    let one = added(&store, sample::plan(1, "one", resource)).await;
    // A plan that is called like the id of another.
    let prefix = one.plan.id.to_string()[..12].to_owned();
    let sly = added(&store, sample::plan(2, &prefix, resource)).await;
    let find = |text: &str| {
        let (store, text) = (store.clone(), text.to_owned());
        async move { ids(&done(store.find_plans(text).await, "a search")) }
    };
    assert_eq!(
        find(&prefix).await,
        [sly.plan.id],
        "an exact name comes first"
    );
    assert_eq!(find(&prefix[..11]).await.len(), 2);
    // Discarded ones are found by name when no other has it; the newest of them.
    for n in 3..6 {
        let id = added(&store, sample::plan(n, "old", resource))
            .await
            .plan
            .id;
        assert_eq!(find("old").await, [id], "the one not discarded");
        let from = at_rest(PlanState::Draft);
        shifted(&store, id, from, at_rest(PlanState::Discarded)).await;
        assert_eq!(find("old").await, [id], "the newest discarded one");
    }
    assert_eq!(find("nowhere").await, []);
}

pub(super) async fn prefixes_ignore_case_and_may_be_ambiguous(world: Arc<dyn StoreWorld>) {
    let store = world.open().await;
    let resource = registered(&store, 1).await;
    let letters = u128::MAX >> 48;
    let a = added(&store, sample::plan(letters, "a", resource))
        .await
        .plan
        .id;
    let b = added(&store, sample::plan(letters - 1, "b", resource))
        .await
        .plan
        .id;
    let find = |text: String| {
        let store = store.clone();
        async move { ids(&done(store.find_plans(text).await, "a search")) }
    };
    let text = a.to_string();
    assert_eq!(find(text.clone()).await, [a], "the whole id");
    assert_eq!(find(text.to_lowercase()).await, [a], "in lower case");
    assert_eq!(
        find(text[..25].to_lowercase()).await,
        [a, b],
        "oldest first"
    );
    assert_eq!(find(text[..1].to_owned()).await, [a, b]);
    for (odd, why) in [
        (String::new(), "an empty text"),
        ("%".to_owned(), "a wildcard"),
        ("_".repeat(26), "wildcards"),
        (format!("{}%", &text[..5]), "a prefix with a wildcard"),
        (format!("{text}0"), "more than an id"),
        ("é".to_owned(), "no character of an id"),
        (format!("{}\0", &text[..5]), "a NUL"),
    ] {
        assert_eq!(find(odd).await, [], "{why} is no prefix");
    }
}

pub(super) async fn the_newest_plan_is_that_of_its_resource(world: Arc<dyn StoreWorld>) {
    let store = world.open().await;
    let here = registered(&store, 1).await;
    let there = registered(&store, 2).await;
    let newest = || async {
        let found = done(store.newest_plan(here).await, "a read");
        found.map(|record| record.plan.id)
    };
    added(&store, sample::plan(9, "there", there)).await;
    assert_eq!(newest().await, None, "plans elsewhere do not count");
    let first = added(&store, sample::plan(8, "first", here)).await.plan.id;
    assert_eq!(newest().await, Some(first));
    let second = added(&store, sample::plan(7, "second", here)).await.plan.id;
    added(&store, sample::plan(6, "there too", there)).await;
    assert_eq!(newest().await, Some(second));
    let from = at_rest(PlanState::Draft);
    shifted(&store, second, from, at_rest(PlanState::Discarded)).await;
    assert_eq!(
        newest().await,
        Some(second),
        "a discarded plan is still the newest"
    );
}

pub(super) async fn a_move_compares_state_and_owner(world: Arc<dyn StoreWorld>) {
    let store = world.open().await;
    let resource = registered(&store, 1).await;
    let id = added(&store, sample::plan(1, "demo", resource))
        .await
        .plan
        .id;
    let mine = driven(PlanState::Executing, 41);
    let record = shifted(&store, id, at_rest(PlanState::Draft), mine.clone()).await;
    assert_eq!((record.plan.mark, record.changed_ms), (mine.clone(), 5));
    let mut other_host = mine.clone();
    let mut other_boot = mine.clone();
    let mut other_space = mine.clone();
    let mut other_start = mine.clone();
    for (mark, change) in [
        (&mut other_host, 3),
        (&mut other_boot, 0),
        (&mut other_space, 1),
        (&mut other_start, 2),
    ] {
        let owner = mark.owner.as_mut().expect("it is driven");
        match change {
            0 => owner.boot.push('x'),
            1 => owner.pid_namespace += 1,
            3 => owner.host.push('x'),
            _ => owner.started += 1,
        }
    }
    for wrong in [
        at_rest(PlanState::Draft),
        at_rest(PlanState::Executing),
        driven(PlanState::Executing, 42),
        driven(PlanState::Review, 41),
        other_host,
        other_boot,
        other_space,
        other_start,
    ] {
        let to = at_rest(PlanState::Review);
        let result = world.open().await.move_plan(id, wrong, to, 6).await;
        let error = result.as_ref().err().map(ToString::to_string);
        refused(
            result,
            Code::PlanBusy,
            Disposition::Retryable,
            "a move from another mark than the plan's",
        );
        assert!(
            error.is_some_and(|text| text.contains("41")),
            "the error names the owner"
        );
    }
    let now = done(store.plan(id).await, "a read").expect("it was added");
    assert_eq!(now, record_with(&now, mine.clone(), 5), "nothing changed");
    let record = shifted(&store, id, mine, at_rest(PlanState::Review)).await;
    assert_eq!(record.plan.mark, at_rest(PlanState::Review));
    assert_eq!(record.sequence, now.sequence, "a move keeps the order");
    let stored = done(world.open().await.plan(id).await, "a read");
    assert_eq!(stored, Some(record));
}

fn record_with(record: &PlanRecord, mark: PlanMark, changed_ms: i64) -> PlanRecord {
    let mut record = record.clone();
    record.plan.mark = mark;
    record.changed_ms = changed_ms;
    record
}

pub(super) async fn a_move_of_no_plan_is_not_found(world: Arc<dyn StoreWorld>) {
    let store = world.open().await;
    let mark = || at_rest(PlanState::Draft);
    refused(
        store.move_plan(sample::plan_id(1), mark(), mark(), 0).await,
        Code::PlanNotFound,
        Disposition::Permanent,
        "a move of a plan that is not there",
    );
}

pub(super) async fn nul_is_refused_and_nothing_changes(world: Arc<dyn StoreWorld>) {
    let store = world.open().await;
    let resource = registered(&store, 1).await;
    let plan = sample::plan(1, "demo", resource);
    let named = NewPlan {
        name: "a\0b".to_owned(),
        ..plan.clone()
    };
    let set = NewPlan {
        settings: "\0".to_owned(),
        ..plan.clone()
    };
    for bad in [named, set] {
        refused(
            store.add_plan(bad).await,
            Code::Usage,
            Disposition::Permanent,
            "a text with a NUL character",
        );
    }
    assert_eq!(done(store.plans().await, "a read"), []);
    added(&store, plan).await;
}
