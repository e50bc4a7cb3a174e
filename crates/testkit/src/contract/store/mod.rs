//! The contract of [`Store`].
//!
//! Each case gets an empty store of its own. A world
//! opens the same store as often as it is asked, each time as another process
//! would, so that what is remembered can be told from what is cached.

mod checkpoints;
mod concurrency;
mod journal;
mod plans;
mod resources;
pub mod sample;
mod sandboxes;

use std::sync::Arc;

use async_trait::async_trait;
use sandbar_ports::store::Store;

use super::{cases, done, refused, same_list};

/// One store, empty at first.
#[async_trait]
pub trait StoreWorld: Send + Sync {
    /// Opens it as another process would.
    async fn open(&self) -> Arc<dyn Store>;
}

cases! {
    Arc<dyn StoreWorld>;
    resources::an_unknown_resource_is_none,
    resources::a_root_is_registered_once,
    resources::types_are_apart,
    resources::a_root_elsewhere_is_a_new_resource,
    resources::a_root_made_anew_keeps_its_resource,
    resources::places_may_change_their_inodes_with_each_other,
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
    checkpoints::only_a_plan_without_a_past_is_forgotten,
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
