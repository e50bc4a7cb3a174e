//! The merge: laws, tables, and the same answers as `git merge-file`.
#![allow(
    clippy::disallowed_methods,
    reason = "git is the foreign judge of a test"
)]

use super::*;
use proptest::prelude::*;
use std::process::Command;

fn merge(base: &str, ours: &str, theirs: &str) -> Result<String, MergeConflict> {
    merge3(base.as_bytes(), ours.as_bytes(), theirs.as_bytes())
        .map(|bytes| String::from_utf8(bytes).expect("made of text"))
}

#[test]
fn table() {
    use MergeConflict::Overlap;
    let clean = |text: &str| Ok(text.to_owned());
    let base = "a\nb\nc\nd\ne\n";
    for (name, base, ours, theirs, want) in [
        (
            "apart",
            base,
            "A\nb\nc\nd\ne\n",
            "a\nb\nc\nd\nE\n",
            clean("A\nb\nc\nd\nE\n"),
        ),
        (
            "touching",
            base,
            "A\nb\nc\nd\ne\n",
            "a\nB\nc\nd\ne\n",
            Err(Overlap),
        ),
        (
            "one common line between",
            base,
            "A\nb\nc\nd\ne\n",
            "a\nb\nC\nd\ne\n",
            clean("A\nb\nC\nd\ne\n"),
        ),
        (
            "same line",
            base,
            "A\nb\nc\nd\ne\n",
            "x\nb\nc\nd\ne\n",
            Err(Overlap),
        ),
        (
            "identical change once",
            base,
            "A\nb\nc\nd\ne\n",
            "A\nb\nc\nd\nE\n",
            clean("A\nb\nc\nd\nE\n"),
        ),
        (
            "insert at both ends",
            base,
            "0\na\nb\nc\nd\ne\n",
            "a\nb\nc\nd\ne\nf\n",
            clean("0\na\nb\nc\nd\ne\nf\n"),
        ),
        (
            "insert at one place",
            base,
            "a\nb\n1\nc\nd\ne\n",
            "a\nb\n2\nc\nd\ne\n",
            Err(Overlap),
        ),
        (
            "crlf kept",
            "a\r\nb\r\nc\r\n",
            "A\r\nb\r\nc\r\n",
            "a\r\nb\r\nC\r\n",
            clean("A\r\nb\r\nC\r\n"),
        ),
        (
            "no final newline kept",
            "a\nb\nc",
            "A\nb\nc",
            "a\nb\nc\nd\n",
            clean("A\nb\nc\nd\n"),
        ),
        (
            "final newline taken away",
            "a\nb\nc\n",
            "A\nb\nc\n",
            "a\nb\nc",
            clean("A\nb\nc"),
        ),
        ("both sides from nothing", "", "a\n", "b\n", Err(Overlap)),
        (
            "delete against edit",
            base,
            "a\nb\n",
            "a\nb\nc\nD\ne\n",
            Err(Overlap),
        ),
    ] {
        assert_eq!(merge(base, ours, theirs), want, "{name}");
        assert_eq!(merge(base, theirs, ours), want, "{name}, sides changed");
    }
}

#[test]
fn binary_and_huge_sides_conflict_by_name() {
    let nul = |at: usize| {
        let mut bytes = vec![b'a'; 9000];
        bytes[at] = 0;
        bytes
    };
    assert_eq!(
        merge3(b"a\n", b"b\n", &nul(7999)),
        Err(MergeConflict::Binary)
    );
    assert_ne!(
        merge3(b"a\n", b"b\n", &nul(8000)),
        Err(MergeConflict::Binary)
    );
    let huge = vec![b'\n'; MAX_BYTES + 1];
    assert_eq!(merge3(b"a\n", b"b\n", &huge), Err(MergeConflict::TooLarge));
    assert_eq!(merge3(b"a\n", b"a\n", &nul(0)), Ok(nul(0)));
}

#[test]
fn a_search_without_end_is_given_up() {
    // Long texts of few different lines in no order: no algorithm is quick.
    let mut seed = 1u64;
    let mut noise = || -> Vec<u8> {
        (0..60_000)
            .flat_map(|_| {
                seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                [b'a' + (seed >> 60) as u8, b'\n']
            })
            .collect()
    };
    let (base, ours, theirs) = (noise(), noise(), noise());
    assert_eq!(merge3(&base, &ours, &theirs), Err(MergeConflict::TooLarge));
    // A long block that one side added is no such case.
    let block: String = (0..5_000).map(|line| format!("new {line}\n")).collect();
    let (ours, theirs) = (format!("a\nb\nc\n{block}"), "A\nb\nc\n");
    let merged = merge("a\nb\nc\n", &ours, theirs).unwrap();
    assert_eq!(merged, format!("A\nb\nc\n{block}"));
}

#[test]
fn the_bound_finds_exactly_what_is_near() {
    let (base, side) = ([1, 2, 3, 4, 5, 6], [1, 3, 4, 9, 5, 6, 7]);
    assert!(is_near(&base, &side, 1_000));
    assert!(!is_near(&base, &side, 3));
    assert!(is_near(&[], &side, 1_000));
    assert!(is_near(&base, &[], 1_000));
    assert!(is_near(&[], &[], 0));
}

fn text() -> impl Strategy<Value = Vec<u8>> {
    (
        prop::collection::vec("[abc]{1,2}|\\}|", 0..14),
        any::<bool>(),
    )
        .prop_map(|(lines, end)| {
            let mut text = lines.join("\n").into_bytes();
            if end {
                text.push(b'\n');
            }
            text
        })
}

/// A base and two descendants made by a few edits each.
fn family() -> impl Strategy<Value = [Vec<u8>; 3]> {
    let line = "[abcdef]|\\}|";
    let edits = || prop::collection::vec((0usize..3, any::<prop::sample::Index>(), line), 0..4);
    (
        prop::collection::vec(line, 1..16),
        edits(),
        edits(),
        any::<[bool; 3]>(),
    )
        .prop_map(|(base, ours, theirs, ends)| {
            let edit = |edits: Vec<(usize, prop::sample::Index, String)>| {
                let mut lines = base.clone();
                for (what, at, line) in edits {
                    let place = at.index(lines.len() + 1);
                    match what {
                        0 => lines.insert(place, line),
                        1 if place < lines.len() => lines[place] = line,
                        2 if place < lines.len() => drop(lines.remove(place)),
                        _ => {}
                    }
                }
                lines
            };
            let (ours, theirs) = (edit(ours), edit(theirs));
            let mut index = 0;
            [base, ours, theirs].map(|lines| {
                let mut text = lines.join("\n").into_bytes();
                // Mostly with a final newline, as in real files.
                if ends[index] || ends[(index + 1) % 3] {
                    text.push(b'\n');
                }
                index += 1;
                text
            })
        })
}

proptest! {
    #[test]
    fn an_unchanged_side_gives_the_other(base in text(), x in text()) {
        prop_assert_eq!(merge3(&base, &base, &x), Ok(x.clone()));
        prop_assert_eq!(merge3(&base, &x, &base), Ok(x.clone()));
        prop_assert_eq!(merge3(&base, &x, &x), Ok(x.clone()));
    }

    #[test]
    fn sides_are_equal_before_the_law([base, ours, theirs] in family()) {
        prop_assert_eq!(merge3(&base, &ours, &theirs), merge3(&base, &theirs, &ours));
    }

    #[test]
    fn every_line_of_a_clean_merge_comes_from_a_side([base, ours, theirs] in family()) {
        if let Ok(merged) = merge3(&base, &ours, &theirs) {
            let lines = |text: &[u8]| -> std::collections::HashSet<Vec<u8>> {
                text.split_inclusive(|byte| *byte == b'\n').map(<[u8]>::to_vec).collect()
            };
            let known = &(&lines(&ours) | &lines(&theirs)) | &lines(&base);
            prop_assert!(lines(&merged).is_subset(&known));
        }
    }
}

/// What `git merge-file -p` says: the bytes when it is clean.
fn git_says(dir: &std::path::Path, sides: &[Vec<u8>; 3]) -> Option<Vec<u8>> {
    for (name, bytes) in ["base", "ours", "theirs"].iter().zip(sides) {
        std::fs::write(dir.join(name), bytes).expect("write a scratch file");
    }
    let out = Command::new("git")
        .args(["merge-file", "-p", "ours", "base", "theirs"])
        .current_dir(dir)
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .output()
        .expect("git runs");
    out.status.success().then_some(out.stdout)
}

/// A clean merge of ours is a clean merge of git with the same bytes. The
/// opposite is not asked for; it is counted.
#[test]
fn git_agrees_with_every_clean_merge() {
    use proptest::strategy::ValueTree as _;
    use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
    let cases: usize = std::env::var("SANDBAR_MERGE_CASES")
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or(2_000);
    let dir = std::env::temp_dir().join(format!("sandbar-merge-{}", std::process::id()));
    std::fs::create_dir_all(&dir).expect("make a scratch directory");
    let mut seed = [7u8; 32];
    seed[..8].copy_from_slice(&(cases as u64).to_le_bytes());
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &seed);
    let mut runner = TestRunner::new_with_rng(Config::default(), rng);
    let (mut clean, mut stricter, mut both_conflict) = (0, 0, 0);
    let mut wrong = Vec::new();
    for _ in 0..cases {
        let sides = family().new_tree(&mut runner).expect("generates").current();
        let [base, ours, theirs] = &sides;
        match (merge3(base, ours, theirs), git_says(&dir, &sides)) {
            (Ok(mine), Some(git)) if mine == git => clean += 1,
            (Err(_), Some(_)) => stricter += 1,
            (Err(_), None) => both_conflict += 1,
            (Ok(mine), git) => wrong.push((sides, mine, git)),
        }
    }
    std::fs::remove_dir_all(&dir).expect("remove the scratch directory");
    println!("clean {clean}, conflict in both {both_conflict}, git clean and we not {stricter}");
    for ([base, ours, theirs], mine, git) in wrong.iter().take(5) {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        println!(
            "base {:?}\nours {:?}\ntheirs {:?}\nmine {:?}\ngit {:?}\n",
            text(base),
            text(ours),
            text(theirs),
            text(mine),
            git.as_deref().map(text)
        );
    }
    assert!(wrong.is_empty(), "{} of {cases} merges differ", wrong.len());
    assert!(clean > cases / 4, "the cases exercise clean merges");
}
