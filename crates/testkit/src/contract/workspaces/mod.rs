//! The contract of [`Workspaces`](sandbar_ports::workspace::Workspaces).

mod capture;
mod create;
mod parts;
mod places;
mod restore;
mod rules;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use sandbar_domain::Hash;
use sandbar_domain::resource::Root;
use sandbar_ports::rules::{CarryRules, Everything};
use sandbar_ports::workspace::{CacheKey, Capture, Captured, Create, Created, Restore};
use sandbar_ports::{Cancel, Silent};

use super::files::Subject;
use super::{cases, done};

cases! {
    Subject;
    places::a_directory_is_resolved_and_odd_roots_are_refused,
    places::a_symlink_to_a_root_is_resolved,
    places::a_place_is_new_empty_and_listed,
    places::what_lies_in_a_place_is_our_own,
    places::a_place_is_removed_and_nothing_else,
    places::a_retired_place_keeps_its_pool,
    create::a_copy_is_exact_and_the_original_untouched,
    create::hidden_names_are_no_part_of_it,
    create::what_cannot_be_carried_is_refused_and_leaves_nothing,
    create::a_name_that_is_not_utf8_is_refused,
    create::a_cancelled_copy_leaves_nothing,
    create::a_root_that_was_replaced_is_refused,
    create::ignored_paths_are_counted_and_left,
    create::rules_are_announced_parents_first,
    capture::a_scan_sees_every_change,
    capture::a_scan_without_installing_has_the_same_hash,
    capture::a_change_of_equal_size_is_seen,
    capture::what_cannot_be_carried_is_named,
    capture::a_missing_or_replaced_root_is_gone,
    capture::a_directory_looked_into_for_nothing_is_ignored,
    restore::a_tree_comes_back_exactly,
    restore::every_type_turns_into_every_other,
    restore::what_does_not_change_is_not_touched,
    restore::a_missing_root_is_made,
    restore::ignored_files_stay_where_they_are,
    restore::a_missing_object_stops_it_before_the_first_change,
    restore::a_cancelled_restore_changes_nothing,
    parts::parts_are_assembled_in_order,
    parts::a_pool_is_linked_back,
    parts::a_failed_assembly_leaves_nothing,
}

/// Everything belongs.
fn everything() -> Arc<dyn CarryRules> {
    Arc::new(Everything)
}

/// A sandbox of the real root.
struct Sandbox {
    place: PathBuf,
    created: Created,
}

impl Sandbox {
    fn path(&self) -> &Path {
        &self.created.root.path
    }
}

async fn request(subject: &Subject, place: &Path, rules: Arc<dyn CarryRules>) -> Create {
    Create {
        source: subject.root().await,
        dest: place.join("r"),
        hidden: Vec::new(),
        rules,
        progress: Arc::new(Silent),
        cancel: Cancel::new(),
    }
}

async fn sandbox(subject: &Subject, rules: Arc<dyn CarryRules>) -> Sandbox {
    let place = done(subject.workspaces.reserve().await, "reserving a place");
    let request = request(subject, &place, rules).await;
    Sandbox {
        created: create(subject, request).await,
        place,
    }
}

async fn create(subject: &Subject, request: Create) -> Created {
    let created = subject.workspaces.create(request).await;
    let mut created = done(created, "creating a sandbox");
    done(created.sealing.wait().await, "making it durable");
    created
}

fn scan(root: &Root, rules: Arc<dyn CarryRules>) -> Capture {
    Capture {
        root: root.clone(),
        hidden: Vec::new(),
        rules,
        cache: CacheKey::None,
        install: true,
        progress: Arc::new(Silent),
        cancel: Cancel::new(),
    }
}

async fn captured(subject: &Subject, sandbox: &Sandbox) -> Captured {
    let mut request = scan(&sandbox.created.root, everything());
    request.cache = CacheKey::Named {
        place: sandbox.place.clone(),
        name: "tree.cache",
    };
    done(subject.workspaces.capture(request).await, "a scan")
}

fn back_to(sandbox: &Sandbox, tree: Hash, rules: Arc<dyn CarryRules>) -> Restore {
    Restore {
        path: sandbox.path().to_owned(),
        tree,
        hidden: Vec::new(),
        rules,
        cache: CacheKey::Named {
            place: sandbox.place.clone(),
            name: "tree.cache",
        },
        pool: None,
        progress: Arc::new(Silent),
        cancel: Cancel::new(),
    }
}
