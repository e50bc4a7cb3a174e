//! What was made with git inside and is not brought is said (APL-10).
#![allow(
    clippy::disallowed_methods,
    reason = "tests inspect real trees with foreign means"
)]

use sandbar_tests::fixture;
use sandbar_tests::foreign::git;
use sandbar_tests::product::World;

// conformance: APL-10 (listed)
#[test]
fn what_stays_inside_is_listed_whole_and_only_that() {
    let (world, repo) = (World::new(), fixture::small());
    let root = repo.root();
    git(root, &["branch", "doomed"]);
    git(root, &["branch", "moves"]);
    world.run(
        root,
        "l",
        "git config user.name A; git config user.email secret@example.com
         git branch -D doomed; git tag mark; echo s >> b.txt; git stash -q
         git switch -qc topic; echo t > t.txt; git add t.txt; git commit -qm topic",
    );
    // What the person does meanwhile was not made inside.
    git(
        root,
        &["commit", "--quiet", "--allow-empty", "--message=mine"],
    );
    git(root, &["branch", "--force", "moves"]);
    let expected = [
        "stays inside: branch topic: 1 commit",
        "stays inside: stash: 1 entry",
        "stays inside: tag mark: new, at ",
        "stays inside: branch doomed: deleted inside, not in your repository",
        "stays inside: config: user.email, user.name",
    ];
    let listed = |line: &[&str]| -> Vec<String> {
        let report = world.json(root, line);
        let warnings = report["warnings"].as_array().expect("a list");
        let text = |one: &serde_json::Value| one.as_str().expect("a text").to_owned();
        let all = warnings.iter().map(text);
        all.filter(|text| text.starts_with("stays inside"))
            .collect()
    };
    for line in [&["apply", "l", "--dry-run"][..], &["apply", "l"]] {
        let found = listed(line);
        assert_eq!(found.len(), expected.len(), "{found:?}");
        for (found, expected) in found.iter().zip(expected) {
            assert!(found.starts_with(expected), "{found}");
        }
    }
    drop(world.ok(root, &["undo", "l"]));
    let found = listed(&["apply", "l", "--commit"]);
    assert_eq!(found.len(), 4, "the branch is brought: {found:?}");
}
