//! The contract of [`Store`].
//!
//! [`CASES`] lists every case; each gets an empty store of its own. A world
//! opens the same store as often as it is asked, each time as another process
//! would, so that what is remembered can be told from what is cached.

mod checkpoints;
mod concurrency;
mod journal;
mod plans;
mod resources;
pub mod sample;
mod sandboxes;

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use async_trait::async_trait;
use sandbar_domain::{Code, Disposition};
use sandbar_ports::PortResult;
use sandbar_ports::store::Store;

/// One store, empty at first.
#[async_trait]
pub trait StoreWorld: Send + Sync {
    /// Opens it as another process would.
    async fn open(&self) -> Arc<dyn Store>;
}

/// One case.
pub type Case = fn(Arc<dyn StoreWorld>) -> Pin<Box<dyn Future<Output = ()> + Send>>;

macro_rules! cases {
    ($($module:ident::$name:ident),* $(,)?) => {
        /// Every case by name.
        pub const CASES: &[(&str, Case)] = &[
            $((stringify!($name), |world| Box::pin($module::$name(world))),)*
        ];
    };
}

cases! {
    resources::an_unknown_resource_is_none,
    resources::a_root_is_registered_once,
    resources::types_are_apart,
    resources::a_moved_root_is_followed,
    resources::a_root_made_anew_keeps_its_resource,
    resources::of_two_at_one_path_the_last_seen_wins,
    resources::odd_roots_come_back_equal,
    plans::an_empty_store_has_no_plans,
    plans::odd_plans_come_back_equal,
    plans::order_is_by_sequence_though_clocks_go_back,
    plans::a_name_is_unique_until_discarded,
    plans::a_discarded_plan_comes_back_only_to_a_free_name,
    plans::a_plan_needs_its_resource_and_a_new_id,
    plans::names_come_before_prefixes,
    plans::prefixes_ignore_case_and_may_be_ambiguous,
    plans::the_newest_plan_is_that_of_its_resource,
    plans::a_move_compares_state_and_owner,
    plans::a_move_of_no_plan_is_not_found,
    plans::nul_is_refused_and_nothing_changes,
    sandboxes::odd_sandboxes_come_back_equal,
    sandboxes::one_sandbox_for_a_plan_and_resource,
    sandboxes::an_update_replaces_everything_but_the_order,
    sandboxes::a_sandbox_needs_its_plan_and_resource,
    checkpoints::odd_checkpoints_come_back_equal,
    checkpoints::numbers_are_those_of_the_plan_and_never_reused,
    checkpoints::dropping_takes_exactly_what_is_named,
    checkpoints::a_checkpoint_needs_its_plan_and_sandboxes,
    journal::odd_entries_come_back_equal,
    journal::every_step_of_phases_is_as_the_domain_allows,
    journal::a_step_replaces_operations_payload_and_owner,
    journal::a_step_and_the_plan_move_together_or_not_at_all,
    journal::entries_are_in_order_and_open_ones_are_found,
    journal::an_entry_needs_its_plan_and_a_new_id,
    concurrency::one_of_eight_takes_the_plan,
    concurrency::one_of_eight_gets_the_name,
    concurrency::one_of_eight_registers_the_root,
    concurrency::numbers_have_no_holes_and_no_doubles,
    concurrency::one_of_eight_takes_a_journal_step,
    concurrency::a_healthy_store_has_nothing_to_report,
}

/// Runs every case, each in a world that `fresh` makes for it. Cases that fail
/// name themselves through their panic message and the line printed before.
pub async fn run_all<F>(fresh: impl Fn(&'static str) -> F)
where
    F: Future<Output = Arc<dyn StoreWorld>>,
{
    for (name, case) in CASES {
        println!("store contract: {name}");
        case(fresh(name).await).await;
    }
}

/// Expects an error of this code and disposition.
#[track_caller]
fn refused<T: std::fmt::Debug>(
    result: PortResult<T>,
    code: Code,
    disposition: Disposition,
    doing: &str,
) {
    match result {
        Ok(value) => panic!("{doing} must be refused as {code:?}, returned {value:?}"),
        Err(error) => {
            assert_eq!(error.code, code, "{doing}: wrong code for {error}");
            assert_eq!(
                error.disposition, disposition,
                "{doing}: wrong disposition for {error}"
            );
        }
    }
}

/// Expects success.
#[track_caller]
fn done<T>(result: PortResult<T>, doing: &str) -> T {
    match result {
        Ok(value) => value,
        Err(error) => panic!("{doing} must succeed: {:?} {error}", error.code),
    }
}

/// Expects two lists to be equal; names the first difference only, since a
/// list of odd records is long.
#[track_caller]
fn same_list<T: PartialEq + std::fmt::Debug>(found: &[T], expected: &[T], why: &str) {
    for (index, pair) in found.iter().zip(expected).enumerate() {
        assert_eq!(pair.0, pair.1, "{why}: item {index} differs");
    }
    assert_eq!(found.len(), expected.len(), "{why}: wrong number of items");
}
