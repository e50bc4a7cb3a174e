//! Registered roots.

use std::sync::Arc;

use sandbar_domain::resource::{Resource, ResourceType, Root};

use super::{StoreWorld, done, sample};

pub(super) async fn an_unknown_resource_is_none(world: Arc<dyn StoreWorld>) {
    let store = world.open().await;
    let found = done(store.resource(sample::resource_id(9)).await, "a read");
    assert_eq!(found, None, "an unknown resource must be none");
}

pub(super) async fn a_root_is_registered_once(world: Arc<dyn StoreWorld>) {
    let store = world.open().await;
    let first = sample::resource(1);
    let registered = done(store.register(first.clone()).await, "registering");
    assert_eq!(registered, first, "a new root gets the id it came with");
    let again = Resource {
        id: sample::resource_id(2),
        ..first.clone()
    };
    for store in [store, world.open().await] {
        let found = done(store.register(again.clone()).await, "registering again");
        assert_eq!(found, first, "a known root must keep its first id");
        assert_eq!(
            done(store.resource(again.id).await, "a read"),
            None,
            "the id of a second registration must not be stored"
        );
        assert_eq!(
            done(store.resource(first.id).await, "a read"),
            Some(first.clone())
        );
    }
}

pub(super) async fn types_are_apart(world: Arc<dyn StoreWorld>) {
    let store = world.open().await;
    let directory = sample::resource(1);
    let checkout = Resource {
        id: sample::resource_id(2),
        kind: ResourceType::GitCheckout,
        ..directory.clone()
    };
    for resource in [&directory, &checkout, &directory, &checkout] {
        let found = done(store.register(resource.clone()).await, "registering");
        assert_eq!(
            &found, resource,
            "one root may be a resource of each type, with its own id"
        );
    }
}

pub(super) async fn a_moved_root_is_followed(world: Arc<dyn StoreWorld>) {
    let store = world.open().await;
    let old = done(store.register(sample::resource(1)).await, "registering");
    let moved = Resource {
        id: sample::resource_id(2),
        root: Root {
            path: "/elsewhere".into(),
            ..old.root.clone()
        },
        ..old.clone()
    };
    let expected = Resource {
        id: old.id,
        ..moved.clone()
    };
    let found = done(store.register(moved).await, "registering a moved root");
    assert_eq!(
        found, expected,
        "device and inode decide; the path is brought up to date"
    );
    let store = world.open().await;
    assert_eq!(
        done(store.resource(old.id).await, "a read"),
        Some(expected),
        "the new path must be remembered"
    );
}

pub(super) async fn a_root_made_anew_keeps_its_resource(world: Arc<dyn StoreWorld>) {
    let store = world.open().await;
    let old = done(store.register(sample::resource(1)).await, "registering");
    let anew = Resource {
        id: sample::resource_id(2),
        root: Root {
            device: 8,
            inode: 99,
            ..old.root.clone()
        },
        ..old.clone()
    };
    let expected = Resource {
        id: old.id,
        ..anew.clone()
    };
    let found = done(store.register(anew).await, "registering a root made anew");
    assert_eq!(
        found, expected,
        "the path decides where no inode is known; device and inode are brought up to date"
    );
    assert_eq!(
        done(world.open().await.resource(old.id).await, "a read"),
        Some(expected)
    );
}

pub(super) async fn of_two_at_one_path_the_last_seen_wins(world: Arc<dyn StoreWorld>) {
    let store = world.open().await;
    let one = done(store.register(sample::resource(1)).await, "registering");
    let two = done(store.register(sample::resource(2)).await, "registering");
    // The first moves to where the second was; then that path is made anew.
    let at_two = |id, inode| Resource {
        id,
        root: Root {
            inode,
            ..two.root.clone()
        },
        ..two.clone()
    };
    let moved = at_two(sample::resource_id(3), one.root.inode);
    let found = done(store.register(moved).await, "registering a moved root");
    assert_eq!(found.id, one.id);
    let anew = at_two(sample::resource_id(4), 77);
    let found = done(store.register(anew).await, "registering a root made anew");
    assert_eq!(
        found,
        at_two(one.id, 77),
        "of two resources at one path the one seen there last is taken"
    );
    assert_eq!(
        done(store.resource(two.id).await, "a read"),
        Some(two),
        "the other one stays as it was"
    );
}

pub(super) async fn odd_roots_come_back_equal(world: Arc<dyn StoreWorld>) {
    let store = world.open().await;
    let mut all = Vec::new();
    for (n, path) in (0u64..).zip(sample::odd_paths()) {
        for number in sample::ODD_NUMBERS {
            let id = 1 + u128::from(n) * 100 + all.len() as u128;
            all.push(Resource {
                id: sample::resource_id(id),
                kind: ResourceType::GitCheckout,
                root: Root {
                    path: path.join(number.to_string()),
                    device: number,
                    inode: number.wrapping_sub(n),
                },
            });
        }
    }
    for resource in &all {
        let found = done(store.register(resource.clone()).await, "registering");
        assert_eq!(&found, resource);
    }
    let store = world.open().await;
    for resource in &all {
        let found = done(store.resource(resource.id).await, "a read");
        assert_eq!(
            found.as_ref(),
            Some(resource),
            "a root must come back equal"
        );
        let again = Resource {
            id: sample::resource_id(999_999),
            ..resource.clone()
        };
        let found = done(store.register(again).await, "registering again");
        assert_eq!(&found, resource, "an odd root must be found again");
    }
}
