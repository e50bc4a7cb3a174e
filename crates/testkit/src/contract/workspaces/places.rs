//! Roots and places.

use std::path::PathBuf;

use sandbar_domain::{Code, Disposition};

use super::{back_to, everything, sandbox};
use crate::contract::files::{Subject, What, file, symlink};
use crate::contract::{done, refused};

const HOW: Disposition = Disposition::Permanent;

pub(super) async fn a_directory_is_resolved_and_odd_roots_are_refused(subject: Subject) {
    subject.write("file", b"x");
    let inside = subject.world.data().join("inside");
    subject.world.put(&inside, What::Directory);
    let root = subject.root().await;
    assert_eq!(root.path, subject.world.root());
    assert_eq!(
        root,
        subject.root().await,
        "the same directory, the same root"
    );
    let dotted = subject.at("../real/./");
    let dotted = done(
        subject.workspaces.identify(dotted).await,
        "a path with dots",
    );
    assert_eq!(dotted, root);
    for (path, code, why) in [
        (
            PathBuf::from("/"),
            Code::RootRefused,
            "the root of everything",
        ),
        (
            subject.world.data(),
            Code::RootRefused,
            "the data directory",
        ),
        (
            inside,
            Code::RootRefused,
            "a directory in the data directory",
        ),
        (
            subject.world.base(),
            Code::RootRefused,
            "what holds the data",
        ),
        (subject.at("missing"), Code::PathNotFound, "a missing path"),
        (subject.at("file"), Code::PathNotFound, "a file"),
    ] {
        refused(subject.workspaces.identify(path).await, code, HOW, why);
    }
}

pub(super) async fn a_symlink_to_a_root_is_resolved(subject: Subject) {
    let link = subject.world.base().join("link");
    subject.world.put(&link, symlink("real"));
    let root = subject.workspaces.identify(link).await;
    assert_eq!(done(root, "a symlink to a root"), subject.root().await);
    let round = subject.world.base().join("round");
    subject.world.put(&round, symlink("round"));
    assert!(
        subject.workspaces.identify(round).await.is_err(),
        "a circle of symlinks is no root"
    );
}

pub(super) async fn a_place_is_new_empty_and_listed(subject: Subject) {
    let mut expected = done(subject.workspaces.places().await, "listing places");
    for _ in 0..20 {
        let place = done(subject.workspaces.reserve().await, "reserving");
        assert!(place.is_absolute() && place.starts_with(subject.world.data()));
        let short = place.as_os_str().len() - subject.world.data().as_os_str().len();
        assert!(
            short <= 11,
            "a place is short: socket paths end at 108 bytes"
        );
        assert_eq!(subject.world.get(&place), Some(What::Directory));
        assert_eq!(subject.world.names(&place), [] as [&str; 0]);
        assert!(!expected.contains(&place), "each place is new");
        expected.push(place);
    }
    expected.sort();
    let mut found = done(subject.workspaces.places().await, "listing places");
    found.sort();
    assert_eq!(found, expected);
}

pub(super) async fn what_lies_in_a_place_is_our_own(subject: Subject) {
    subject.fill();
    let sandbox = sandbox(&subject, everything()).await;
    let own = subject
        .workspaces
        .identify_own(sandbox.path().to_owned())
        .await;
    assert_eq!(done(own, "a sandbox root"), sandbox.created.root);
    let deeper = sandbox.path().join("dir/sub");
    let own = subject.workspaces.identify_own(deeper.clone()).await;
    assert_eq!(done(own, "a directory in it").path, deeper);
    for (path, why) in [
        (sandbox.place.join("missing"), "a missing path"),
        (sandbox.path().join("a.txt"), "a file"),
        (subject.world.root(), "the real root"),
        (subject.world.data(), "the data directory"),
    ] {
        if why == "a file" {
            assert!(subject.workspaces.identify_own(path).await.is_err());
            continue;
        }
        let own = subject.workspaces.identify_own(path).await;
        refused(own, Code::SandboxGone, HOW, why);
    }
}

pub(super) async fn a_place_is_removed_and_nothing_else(subject: Subject) {
    subject.fill();
    let one = sandbox(&subject, everything()).await;
    let two = sandbox(&subject, everything()).await;
    let before = subject.snapshot(&two.place);
    let real = subject.snapshot(&subject.world.root());
    for _ in 0..2 {
        let removed = subject.workspaces.remove(one.place.clone()).await;
        done(removed, "removing a place, also a second time");
        assert_eq!(subject.world.get(&one.place), None);
    }
    let places = done(subject.workspaces.places().await, "listing places");
    assert_eq!(places, std::slice::from_ref(&two.place));
    for other in [
        subject.world.root(),
        subject.world.data(),
        two.place.join("r"),
        two.place.join("../../../real"),
        two.place.parent().expect("it has one").to_owned(),
    ] {
        for refusal in [
            subject.workspaces.remove(other.clone()).await,
            subject.workspaces.retire(other.clone()).await,
        ] {
            refused(refusal, Code::RootRefused, HOW, "removing what is no place");
        }
    }
    assert_eq!(subject.snapshot(&two.place), before);
    assert_eq!(subject.snapshot(&subject.world.root()), real);
}

pub(super) async fn a_retired_place_keeps_its_pool(subject: Subject) {
    subject.fill();
    let sandbox = sandbox(&subject, everything()).await;
    let content = subject.content(sandbox.path());
    subject
        .world
        .put(&sandbox.place.join("o/pooled"), file(b"object"));
    subject.world.put(&sandbox.place.join("t/half"), file(b"x"));
    for _ in 0..2 {
        let retired = subject.workspaces.retire(sandbox.place.clone()).await;
        done(retired, "retiring a place, also a second time");
        assert_eq!(subject.world.names(&sandbox.place), ["o"]);
    }
    let pooled = subject.world.get(&sandbox.place.join("o/pooled"));
    assert_eq!(pooled, Some(file(b"object")));
    let restore = back_to(&sandbox, sandbox.created.tree, everything());
    let restored = subject.workspaces.restore(restore).await;
    done(restored, "making the root of a retired place again");
    assert_eq!(subject.content(sandbox.path()), content);
    subject
        .workspaces
        .remove(sandbox.place.clone())
        .await
        .expect("a place is removed");
    let retired = subject.workspaces.retire(sandbox.place.clone()).await;
    done(retired, "retiring a place that is gone");
}
