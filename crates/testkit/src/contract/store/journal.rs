//! The journal: phases, and the plan that moves with them.

use std::sync::Arc;

use sandbar_domain::journal::{JournalKind, Phase};
use sandbar_domain::plan::PlanState;
use sandbar_domain::{Code, Disposition, Hash, JournalId, PlanId};
use sandbar_ports::exec::Owner;
use sandbar_ports::store::{JournalQuery, JournalRecord, JournalStep, Store};

use super::sample::{self, at_rest, driven};
use super::{StoreWorld, done, refused, same_list};

async fn plan(store: &Arc<dyn Store>, n: u64) -> PlanId {
    let resource = done(store.register(sample::resource(n)).await, "registering").id;
    let new = sample::plan(n.into(), &format!("plan {n}"), resource);
    done(store.add_plan(new).await, "adding a plan").plan.id
}

async fn opened(store: &Arc<dyn Store>, entry: JournalRecord) -> JournalRecord {
    done(store.open_journal(entry).await, "opening an entry")
}

async fn of(store: &Arc<dyn Store>, query: JournalQuery) -> Vec<JournalRecord> {
    done(store.journal(query).await, "reading the journal")
}

fn step(id: JournalId, from: Phase, to: Phase) -> JournalStep {
    JournalStep {
        id,
        from,
        to,
        ops: None,
        payload: String::new(),
        owner: None,
        plan: None,
    }
}

pub(super) async fn odd_entries_come_back_equal(world: Arc<dyn StoreWorld>) {
    let store = world.open().await;
    let plan = plan(&store, 1).await;
    let mut all = Vec::new();
    let mut last = 0;
    for (n, text) in sample::odd_texts().into_iter().enumerate() {
        let number = sample::ODD_NUMBERS[n % sample::ODD_NUMBERS.len()];
        let entry = JournalRecord {
            id: sample::journal_id(1_000 - n as u128),
            sequence: 77,
            version: [0, 1, u32::MAX][n % 3],
            kind: [JournalKind::Apply, JournalKind::Undo][n % 2],
            phase: Phase::ALL[n % Phase::ALL.len()],
            plan,
            owner: (n % 2 == 0).then(|| Owner {
                host: text.clone(),
                boot: text.clone(),
                pid_namespace: number,
                pid: u32::MAX,
                started: !number,
            }),
            ops: (n % 3 == 0).then(|| Hash::of(text.as_bytes())),
            payload: text,
        };
        let record = opened(&store, entry.clone()).await;
        assert!(record.sequence > last, "a later entry has a higher number");
        last = record.sequence;
        let expected = JournalRecord {
            sequence: last,
            ..entry
        };
        assert_eq!(record, expected, "all but the sequence is as given");
        all.push(record);
    }
    same_list(
        &of(&world.open().await, JournalQuery::OfPlan(plan)).await,
        &all,
        "entries must come back equal, oldest first",
    );
}

pub(super) async fn every_step_of_phases_is_as_the_domain_allows(world: Arc<dyn StoreWorld>) {
    let store = world.open().await;
    let plan = plan(&store, 1).await;
    let mut n = 0;
    for from in Phase::ALL {
        for to in Phase::ALL {
            n += 1;
            let entry = JournalRecord {
                phase: from,
                ..sample::entry(n, plan)
            };
            let id = opened(&store, entry.clone()).await.id;
            for wrong in Phase::ALL.into_iter().filter(|phase| *phase != from) {
                refused(
                    store.advance_journal(step(id, wrong, to)).await,
                    Code::IllegalState,
                    Disposition::Conflict,
                    "a step from a phase that the entry is not in",
                );
            }
            let result = store.advance_journal(step(id, from, to)).await;
            if from == to || from.allows(to) {
                let record = done(result, "a step that the domain allows");
                assert_eq!(record.phase, to);
            } else {
                refused(
                    result,
                    Code::IllegalState,
                    Disposition::Conflict,
                    &format!("a step from {from:?} to {to:?}"),
                );
                let all = of(&store, JournalQuery::OfPlan(plan)).await;
                let now = all.iter().find(|record| record.id == id);
                let now = now.map(|record| (record.phase, &record.payload));
                assert_eq!(now, Some((from, &entry.payload)), "nothing changed");
            }
        }
    }
    refused(
        store
            .advance_journal(step(
                sample::journal_id(9_999),
                Phase::Staging,
                Phase::Decided,
            ))
            .await,
        Code::IllegalState,
        Disposition::Conflict,
        "a step of an entry that is not there",
    );
}

pub(super) async fn a_step_replaces_operations_payload_and_owner(world: Arc<dyn StoreWorld>) {
    let store = world.open().await;
    let plan = plan(&store, 1).await;
    let mut entry = opened(&store, sample::entry(1, plan)).await;
    for (to, ops, payload, owner) in [
        (Phase::Staging, None, "staged", Some(sample::owner(1))),
        (
            Phase::Decided,
            Some(Hash::of(b"ops")),
            "intent",
            Some(sample::owner(2)),
        ),
        (Phase::Decided, Some(Hash::of(b"more")), "", None),
        (Phase::Done, None, "over", None),
    ] {
        let step = JournalStep {
            ops,
            payload: payload.to_owned(),
            owner: owner.clone(),
            ..step(entry.id, entry.phase, to)
        };
        let expected = JournalRecord {
            phase: to,
            ops,
            payload: payload.to_owned(),
            owner,
            ..entry
        };
        entry = done(store.advance_journal(step).await, "a step");
        assert_eq!(entry, expected, "a step replaces what it carries");
        let stored = of(&world.open().await, JournalQuery::OfPlan(plan)).await;
        assert_eq!(stored, [expected]);
    }
}

pub(super) async fn a_step_and_the_plan_move_together_or_not_at_all(world: Arc<dyn StoreWorld>) {
    let store = world.open().await;
    let plan = plan(&store, 1).await;
    let entry = opened(&store, sample::entry(1, plan)).await;
    let draft = || at_rest(PlanState::Draft);
    let mine = || driven(PlanState::Applying, 41);
    let with = |from, to, marks| JournalStep {
        payload: "new".to_owned(),
        plan: Some(marks),
        ..step(entry.id, from, to)
    };
    let unchanged = async || {
        let plan = done(store.plan(plan).await, "a read").expect("it was added");
        assert_eq!(plan.plan.mark, draft(), "the plan must stay");
        let entries = of(&store, JournalQuery::Open).await;
        assert_eq!(entries, std::slice::from_ref(&entry), "the entry must stay");
    };
    let wrong_mark = with(Phase::Staging, Phase::Decided, (mine(), draft(), 9));
    refused(
        store.advance_journal(wrong_mark).await,
        Code::PlanBusy,
        Disposition::Retryable,
        "a step with a mark that is not the plan's",
    );
    unchanged().await;
    for (from, to) in [(Phase::Decided, Phase::Done), (Phase::Staging, Phase::Done)] {
        refused(
            store
                .advance_journal(with(from, to, (draft(), mine(), 9)))
                .await,
            Code::IllegalState,
            Disposition::Conflict,
            "a step that the phase does not allow, with a right mark",
        );
        unchanged().await;
    }
    let right = with(Phase::Staging, Phase::Decided, (draft(), mine(), 9));
    let record = done(store.advance_journal(right).await, "a step with a plan");
    assert_eq!(
        (record.phase, record.payload.as_str()),
        (Phase::Decided, "new")
    );
    let moved = done(world.open().await.plan(plan).await, "a read").expect("it was added");
    assert_eq!((moved.plan.mark, moved.changed_ms), (mine(), 9));
}

pub(super) async fn entries_are_in_order_and_open_ones_are_found(world: Arc<dyn StoreWorld>) {
    let store = world.open().await;
    let one = plan(&store, 1).await;
    let two = plan(&store, 2).await;
    let mut all = Vec::new();
    for (n, phase) in Phase::ALL.into_iter().enumerate() {
        for plan in [one, two] {
            // Ids fall while the order rises.
            let id = sample::journal_id(500 - all.len() as u128);
            let entry = JournalRecord {
                id,
                phase,
                ..sample::entry(n as u128, plan)
            };
            all.push(opened(&store, entry).await);
        }
    }
    let open: Vec<_> = all.iter().filter(|e| e.phase.is_open()).cloned().collect();
    assert_eq!(of(&store, JournalQuery::Open).await, open, "open ones");
    for plan in [one, two] {
        let expected: Vec<_> = all.iter().filter(|e| e.plan == plan).cloned().collect();
        let found = of(&store, JournalQuery::OfPlan(plan)).await;
        assert_eq!(found, expected, "all of a plan");
    }
    let none = of(&store, JournalQuery::OfPlan(sample::plan_id(9))).await;
    assert_eq!(none, []);
}

pub(super) async fn an_entry_needs_its_plan_and_a_new_id(world: Arc<dyn StoreWorld>) {
    let store = world.open().await;
    refused(
        store
            .open_journal(sample::entry(1, sample::plan_id(9)))
            .await,
        Code::PlanNotFound,
        Disposition::Permanent,
        "an entry of an unknown plan",
    );
    let plan = plan(&store, 1).await;
    opened(&store, sample::entry(1, plan)).await;
    refused(
        store.open_journal(sample::entry(1, plan)).await,
        Code::Internal,
        Disposition::Permanent,
        "an id that is taken",
    );
    assert_eq!(of(&store, JournalQuery::OfPlan(plan)).await.len(), 1);
}
