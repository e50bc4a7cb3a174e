//! What a change leads to, in the examples of the hierarchies.

use sandbar_domain::ResourceId;
use sandbar_domain::graph::{AnyChange, Identities, Identity, Impact, Touch, What};

use crate::ground::Ground;
use crate::reaching::thrice;

fn impact(ground: &Ground, name: &str, touch: Touch, judge: &mut dyn Identities) -> Impact {
    ground.graph.impact(&[(ground.node(name), touch)], judge)
}

fn told(ground: &Ground, impact: &Impact) -> Vec<String> {
    let all = impact.effects.iter().chain(&impact.identities);
    let told = all.map(|effect| format!("{} {:?}", ground.name(effect.resource), effect.what));
    told.collect()
}

// conformance: CHG-1
#[test]
fn a_changed_file_bears_on_ancestors_siblings_and_identities() {
    let ground = thrice();
    let found = impact(&ground, "lib.rs", Touch::Content, &mut AnyChange);
    assert_eq!(
        told(&ground, &found),
        [
            "lib.rs Changed",
            "src Status",
            "root Status",
            "repo Status",
            "home Status",
            "page.html Invalidate",
            "doc Refresh",
            "v Reevaluate",
        ]
    );
    let because = |name: &str| {
        let effect = found.effects.iter().find(|e| e.resource == ground.id(name));
        ground.name(effect.expect("told").because)
    };
    assert_eq!(
        (because("doc"), because("src"), because("home")),
        ("lib.rs", "lib.rs", "repo")
    );
}

// conformance: CHG-1
#[test]
fn a_directory_mode_bears_on_what_it_contains() {
    let ground = thrice();
    let found = impact(&ground, "root", Touch::Mode, &mut AnyChange);
    let of = |what| {
        let effects = found.effects.iter().filter(move |e| e.what == what);
        let nodes = effects.filter_map(|e| ground.graph.node(e.resource));
        ground.names(nodes)
    };
    assert_eq!(
        of(What::Mode),
        ["dep", "dep.c", "depdir", "lib.rs", "src", "v.c", "vendor"]
    );
    assert_eq!(of(What::Status), ["home", "repo"]);
}

// conformance: CHG-2
#[test]
fn the_cascade_stops_where_an_identity_stayed() {
    let ground = thrice();
    let run = |stays: &str| {
        let stays = ground.id(stays);
        let mut asked: Vec<ResourceId> = Vec::new();
        let found = impact(&ground, "lib.rs", Touch::Content, &mut |id| {
            asked.push(id);
            if id == stays {
                Identity::Unchanged
            } else {
                Identity::Changed
            }
        });
        let asked: Vec<_> = asked.iter().map(|id| ground.name(*id).to_owned()).collect();
        (told(&ground, &found), asked)
    };
    let (effects, asked) = run("lib.rs");
    assert_eq!(
        (effects.as_slice(), asked.as_slice()),
        (
            &["lib.rs Changed".to_owned()][..],
            &["lib.rs".to_owned()][..]
        )
    );
    let (effects, asked) = run("root");
    assert!(effects.contains(&"root Status".to_owned()));
    assert!(
        !effects
            .iter()
            .any(|e| e.starts_with("repo") || e.starts_with("home"))
    );
    assert_eq!(asked, ["lib.rs", "src", "root"]);
}

#[test]
fn what_cannot_be_identified_yet_is_pending_and_goes_on() {
    let ground = thrice();
    let found = impact(&ground, "lib.rs", Touch::Content, &mut |_| {
        Identity::Unknown
    });
    let pending: Vec<_> = found.pending.iter().map(|id| ground.name(*id)).collect();
    assert_eq!(pending, ["lib.rs", "src", "root", "home"]);
}

// conformance: CHG-2
#[test]
fn shared_storage_is_followed_once() {
    use sandbar_domain::graph::Coherence::Transparent;
    let mut ground = Ground::new(
        "fs-directory a\n  fs-directory b\n    fs-file x\nfs-directory c\n  fs-directory d\n    fs-file y",
    );
    ground.same("file", "v", &[("x", Transparent), ("y", Transparent)]);
    ground.same("directory", "w", &[("b", Transparent), ("d", Transparent)]);
    let found = impact(&ground, "x", Touch::Content, &mut AnyChange);
    assert_eq!(
        told(&ground, &found),
        [
            "x Changed",
            "y Check",
            "b Status",
            "d Status",
            "a Status",
            "c Status",
            "w Reevaluate",
            "v Reevaluate",
        ]
    );
    assert!(found.again.is_empty());
}
