//! The states of a plan, through the use cases: what may follow happens and is
//! recorded, and what may not is refused and changes nothing (PLN-1).

mod world;

use std::path::Path;

use sandbar::domain::Code;
use sandbar::domain::plan::PlanState;
use sandbar::ports::PortError;
use sandbar::ports::exec::Runner as _;
use sandbar::ports::store::PlanMark;
use world::{REAL, World};

/// What a person can ask of a plan, and in which states.
const ASKED: [(&str, &[PlanState], PlanState); 5] = [
    (
        "exec",
        &[PlanState::Draft, PlanState::Review, PlanState::Failed],
        PlanState::Review,
    ),
    (
        "checkpoint",
        &[PlanState::Review, PlanState::Failed],
        PlanState::Review,
    ),
    (
        "rollback",
        &[PlanState::Review, PlanState::Failed],
        PlanState::Review,
    ),
    (
        "apply",
        &[
            PlanState::Review,
            PlanState::Failed,
            PlanState::PartiallyApplied,
        ],
        PlanState::Applied,
    ),
    (
        "discard",
        &[
            PlanState::Draft,
            PlanState::Review,
            PlanState::Failed,
            PlanState::Applied,
            PlanState::PartiallyApplied,
            PlanState::NeedsAttention,
        ],
        PlanState::Discarded,
    ),
];

async fn ask(world: &World, what: &str) -> Result<(), PortError> {
    let cwd = Path::new(REAL);
    match what {
        "exec" => world.exec("p", "edit").await.map(drop),
        "checkpoint" => world.sandbar.checkpoint("p", None, cwd).await.map(drop),
        "rollback" => world.sandbar.rollback("p", "1", cwd).await.map(drop),
        "apply" => world.apply("p").await.map(drop),
        "discard" => world.sandbar.discard("p", cwd).await.map(drop),
        other => panic!("nobody asks for {other}"),
    }
}

// conformance: PLN-1
#[test]
fn each_state_allows_what_the_contract_says_and_refuses_the_rest() {
    sandbar_testkit::run(async {
        for state in PlanState::ALL {
            for (what, allowed, then) in ASKED {
                let world = World::new();
                world.put(Path::new(REAL), "file", Some("old\n"));
                world.runner.install("edit", |seat| {
                    seat.write("file", b"new\n").expect("a write");
                    0
                });
                world.run("p", "edit").await.expect("it runs");
                let store = world.sandbar.parts().store.clone();
                let plan = store.find_plans("p".into()).await.expect("read").remove(0);
                // At work only with a living process; else at rest.
                let at_work = matches!(state, PlanState::Executing | PlanState::Applying);
                let mark = PlanMark {
                    state,
                    owner: at_work.then(|| world.runner.owner()),
                };
                let from = plan.plan.mark.clone();
                let forced = store.move_plan(plan.plan.id, from, mark.clone(), 0).await;
                drop(forced.expect("forced"));
                let real = world.real();

                let answer = ask(&world, what).await;
                let now = store.plan(plan.plan.id).await.expect("read");
                let now = now.expect("it is there").plan.mark;
                let at = format!("{what} in {}", state.word());
                if allowed.contains(&state) {
                    answer.unwrap_or_else(|error| panic!("{at}: {error}"));
                    assert_eq!(now.state, then, "{at}");
                    assert_eq!(now.owner, None, "{at}: nobody drives it any more");
                    continue;
                }
                let error = answer.expect_err(&at);
                let code = match at_work {
                    true => Code::PlanBusy,
                    false => Code::IllegalState,
                };
                assert_eq!(error.code, code, "{at}: {error}");
                assert_eq!(now, mark, "{at}: the plan stays as it was");
                assert_eq!(world.real(), real, "{at}: nothing is written");
            }
        }
    });
}
