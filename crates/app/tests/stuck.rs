//! An apply that fails, and an undo of it that gets stuck.

mod world;

use std::path::Path;

use sandbar::Outcome;
use sandbar::domain::plan::PlanState;
use world::{Jam, REAL, World};

// conformance: PLN-1, APL-9 partial: an undo that got stuck
#[test]
fn an_undo_that_got_stuck_is_taken_up_by_recovery() {
    sandbar_testkit::run(async {
        let world = World::new();
        let root = Path::new(REAL);
        world.put(root, "a/one", Some("1\n"));
        world.put(root, "z/two", Some("2\n"));
        world.put(root, "z/gone", Some("3\n"));
        let old = world.real();
        world.runner.install("edit", |seat| {
            seat.write("a/one", b"one\n").expect("a write");
            seat.write("a/made/deep", b"m\n").expect("a write");
            seat.write("z/two", b"two\n").expect("a write");
            seat.remove("z/gone").expect("a removal");
            0
        });
        world.run("p", "edit").await.expect("it runs");
        let new = {
            let report = world.sandbar.status("p", root).await.expect("a status");
            world.dump(&report.sandboxes[0].root)
        };
        *world.jam.lock().expect("whole") = Jam {
            execute: Some("z/two".into()),
            undo: Some("a".into()),
        };
        let report = world.apply("p").await.expect("an answer");
        assert_eq!(report.outcome, Outcome::NeedsAttention);
        assert_eq!(report.plan.plan.mark.state, PlanState::NeedsAttention);
        assert_eq!(report.plan.plan.mark.owner, None, "nobody drives it");
        let named: Vec<&str> = report.conflicts.iter().map(|c| c.path.as_str()).collect();
        assert!(named.contains(&"z/two"), "why it failed: {named:?}");
        assert!(named.contains(&"a/one"), "what is stuck: {named:?}");
        let kept = report.kept.expect("it says where displaced bytes are");
        assert!(
            world
                .dump(&kept)
                .values()
                .any(|what| what.content() == Some(b"1\n")),
            "what was displaced and could not go back is kept whole"
        );
        let stuck = world.real();
        assert_ne!(stuck, old);

        // Whoever comes by tries again; in vain, and without harm.
        world.open("z/two");
        for _ in 0..2 {
            let recovered = world.sandbar.recover().await.expect("an answer");
            let outcome = ("p".to_owned(), Outcome::NeedsAttention);
            assert_eq!(recovered.applies, [outcome]);
            assert_eq!(world.real(), stuck);
        }
        let error = world.apply("p").await.expect_err("it is stuck");
        assert_eq!(error.code, sandbar::domain::Code::IllegalState);
        let doctor = world.sandbar.doctor().await.expect("a diagnosis");
        let finding = doctor.findings.iter().find(|f| f.kind == "needs_attention");
        let message = &finding.expect("a finding").message;
        assert!(message.contains(&kept.display().to_string()), "{message}");

        world.open("a");
        let recovered = world.sandbar.recover().await.expect("an answer");
        assert_eq!(recovered.applies, [("p".to_owned(), Outcome::Conflict)]);
        assert_eq!(world.real(), old, "everything is old");
        assert!(world.dump(&kept).is_empty(), "nothing is left to keep");
        let plan = world.sandbar.find_plan("p", root).await.expect("a plan");
        assert_eq!(plan.plan.mark.state, PlanState::Review);
        let again = world.sandbar.recover().await.expect("an answer");
        assert!(again.is_empty(), "{again:?}");
        let doctor = world.sandbar.doctor().await.expect("a diagnosis");
        assert!(doctor.findings.is_empty(), "{:?}", doctor.findings);

        let report = world.apply("p").await.expect("it applies now");
        assert_eq!(report.outcome, Outcome::Applied);
        assert_eq!(world.real(), new);
    });
}

// conformance: APL-5 partial: what fails is taken back
#[test]
fn an_apply_that_fails_half_way_is_taken_back() {
    sandbar_testkit::run(async {
        let world = World::new();
        let root = Path::new(REAL);
        world.put(root, "a/one", Some("1\n"));
        world.put(root, "z/two", Some("2\n"));
        let old = world.real();
        world.runner.install("edit", |seat| {
            seat.write("a/one", b"one\n").expect("a write");
            seat.write("z/two", b"two\n").expect("a write");
            0
        });
        world.run("p", "edit").await.expect("it runs");
        world.jam.lock().expect("whole").execute = Some("z".into());
        let report = world.apply("p").await.expect("an answer");
        assert_eq!(report.outcome, Outcome::Failed);
        assert_eq!(report.plan.plan.mark.state, PlanState::Failed);
        assert_eq!(report.conflicts[0].path, "z/two");
        assert_eq!(world.real(), old);
        let recovered = world.sandbar.recover().await.expect("an answer");
        assert!(recovered.is_empty(), "{recovered:?}");
    });
}

// conformance: PLN-1 (discard of a stuck apply), STR-9 (kept bytes)
#[test]
fn a_stuck_apply_can_be_given_up() {
    sandbar_testkit::run(async {
        let world = World::new();
        let root = Path::new(REAL);
        world.put(root, "a/one", Some("1\n"));
        world.put(root, "z/two", Some("2\n"));
        world.runner.install("edit", |seat| {
            seat.write("a/one", b"one\n").expect("a write");
            seat.write("z/two", b"two\n").expect("a write");
            0
        });
        world.run("p", "edit").await.expect("it runs");
        *world.jam.lock().expect("whole") = Jam {
            execute: Some("z/two".into()),
            undo: Some("a".into()),
        };
        let report = world.apply("p").await.expect("an answer");
        assert_eq!(report.outcome, Outcome::NeedsAttention);
        let kept = report.kept.expect("it says where displaced bytes are");
        let stuck = world.real();

        let plan = world.sandbar.discard("p", root).await.expect("given up");
        assert_eq!(plan.plan.mark.state, PlanState::Discarded);
        assert_eq!(plan.plan.mark.owner, None);
        assert_eq!(world.real(), stuck, "giving up writes nothing");
        let bytes = |dir: &Path| {
            let mut all = world.dump(dir).into_values();
            all.any(|what| what.content() == Some(b"1\n"))
        };
        assert!(bytes(&kept), "what was displaced is still there");

        // Nothing is left to settle, now or once the cause is mended.
        *world.jam.lock().expect("whole") = Jam::default();
        world.open("z/two");
        world.open("a");
        let recovered = world.sandbar.recover().await.expect("an answer");
        assert!(recovered.is_empty(), "{recovered:?}");
        assert_eq!(world.real(), stuck);
        let doctor = world.sandbar.doctor().await.expect("an answer");
        let stuck_still = doctor.findings.iter().any(|f| f.kind == "needs_attention");
        assert!(!stuck_still, "{:?}", doctor.findings);
        assert!(bytes(&kept), "until retention ends");
        // The place is free for the next plan.
        world.run("q", "edit").await.expect("it runs");
        assert_eq!(
            world.apply("q").await.expect("an answer").outcome,
            Outcome::Applied
        );
    });
}
