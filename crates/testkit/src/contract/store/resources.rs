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

pub(super) async fn a_root_elsewhere_is_a_new_resource(world: Arc<dyn StoreWorld>) {
    let store = world.open().await;
    let old = done(store.register(sample::resource(1)).await, "registering");
    // Moved, or a stranger that was given the inode of what was deleted: the
    // plans of one must never come to the other.
    let elsewhere = Resource {
        id: sample::resource_id(2),
        root: Root {
            path: "/elsewhere".into(),
            ..old.root.clone()
        },
        ..old.clone()
    };
    let found = done(
        store.register(elsewhere.clone()).await,
        "registering another path",
    );
    assert_eq!(found, elsewhere, "an inode does not make two paths one");
    let store = world.open().await;
    for resource in [old, elsewhere] {
        assert_eq!(
            done(store.resource(resource.id).await, "a read"),
            Some(resource.clone()),
            "each has its own place"
        );
        let found = done(store.register(resource.clone()).await, "registering again");
        assert_eq!(found, resource, "each is found by its path");
    }
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
        "the path decides; device and inode are brought up to date"
    );
    assert_eq!(
        done(world.open().await.resource(old.id).await, "a read"),
        Some(expected)
    );
}

pub(super) async fn places_may_change_their_inodes_with_each_other(world: Arc<dyn StoreWorld>) {
    let store = world.open().await;
    let one = done(store.register(sample::resource(1)).await, "registering");
    let two = done(store.register(sample::resource(2)).await, "registering");
    let with_inode = |resource: &Resource, inode| Resource {
        root: Root {
            inode,
            ..resource.root.clone()
        },
        ..resource.clone()
    };
    // Two directories swap names; meanwhile both records have one inode.
    let swapped = [
        with_inode(&one, two.root.inode),
        with_inode(&two, one.root.inode),
    ];
    for (n, resource) in (3..).zip(&swapped) {
        let anew = Resource {
            id: sample::resource_id(n),
            ..resource.clone()
        };
        let found = done(store.register(anew).await, "registering a root made anew");
        assert_eq!(&found, resource, "a path keeps its resource");
    }
    let store = world.open().await;
    for resource in swapped {
        let found = done(store.resource(resource.id).await, "a read");
        assert_eq!(found, Some(resource));
    }
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
