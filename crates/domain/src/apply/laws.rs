//! Laws of the decision against a plain model, and its table.

use std::collections::{BTreeMap, HashMap};

use proptest::prelude::*;

use super::*;
use crate::change::Change;
use crate::entry::{Entry, Kind};
use crate::hash::Hash;
use crate::merge::MergeConflict;

/// A whole tree: every path, directories included.
type Model = BTreeMap<RelPath, Entry>;

fn path(text: &str) -> RelPath {
    RelPath::new(text).expect("valid")
}

fn dir() -> Entry {
    Entry::new(Kind::Directory, crate::tree::empty())
}

/// Reads `a=f1 b/c=x2 l=l3 d/`: kind letter, then content.
fn tree(text: &str) -> Model {
    let mut model = Model::new();
    for word in text.split_whitespace() {
        let (name, entry) = match word.split_once('=') {
            Some((name, value)) => {
                let kind = match &value[..1] {
                    "f" => Kind::File,
                    "x" => Kind::Executable,
                    "l" => Kind::Symlink,
                    other => panic!("no kind {other}"),
                };
                (name, Entry::new(kind, Hash::of(&value.as_bytes()[1..])))
            }
            None => (word.trim_end_matches('/'), dir()),
        };
        insert(&mut model, path(name), entry);
    }
    model
}

/// Adds an entry and its parents, unless something else is in the way.
fn insert(model: &mut Model, at: RelPath, entry: Entry) {
    let mut parents: Vec<_> = std::iter::successors(at.parent(), RelPath::parent).collect();
    parents.reverse();
    if parents
        .iter()
        .any(|p| model.get(p).is_some_and(|e| e.kind != Kind::Directory))
        || model.contains_key(&at)
    {
        return;
    }
    for parent in parents {
        model.insert(parent, dir());
    }
    model.insert(at, entry);
}

fn changes(base: &Model, result: &Model) -> Vec<Change> {
    let mut paths: Vec<_> = base.keys().chain(result.keys()).cloned().collect();
    paths.sort();
    paths.dedup();
    paths
        .into_iter()
        .filter_map(|p| {
            let (old, new) = (base.get(&p).copied(), result.get(&p).copied());
            Change::between(p, old, new)
        })
        .collect()
}

fn observed(real: &Model, changes: &[Change]) -> Observed {
    let paths = paths_to_observe(changes);
    let found = paths.iter().map(|p| real.get(p).copied()).collect();
    Observed::new(paths, found)
}

/// What else lies in a directory that becomes a file is not among the facts
/// of the decision; the preflight looks, and refuses.
fn crowded(ops: &[PathOp], real: &Model, changed: &[Change]) -> bool {
    ops.iter().any(|op| {
        let PathOp::Create { path: at, .. } = op else {
            return false;
        };
        real.keys()
            .any(|p| p != at && p.is_within(at) && !changed.iter().any(|c| &c.path == p))
    })
}

type Merges = HashMap<RelPath, Result<Hash, MergeConflict>>;

/// Every request is answered with a content of its own.
fn merge_all(triage: &Triage) -> Merges {
    triage
        .merges
        .iter()
        .map(|m| (m.path.clone(), Ok(Hash::of(m.path.as_str().as_bytes()))))
        .collect()
}

fn decide(base: &Model, real: &Model, result: &Model, facts: Facts) -> (Decision, Merges) {
    let changes = changes(base, result);
    let triage = triage(&changes, &observed(real, &changes), facts);
    let merged = merge_all(&triage);
    (plan_ops(triage, &merged), merged)
}

/// Performs operations as a file system would; a precondition that does not
/// hold is a fault of the decision.
fn perform(model: &mut Model, ops: &[PathOp]) {
    let below = |model: &Model, at: &RelPath| model.keys().any(|p| p != at && p.is_within(at));
    for op in ops {
        let at = op.path().clone();
        let here = model.get(&at).copied();
        let parent_is_dir = at
            .parent()
            .is_none_or(|p| model.get(&p).is_some_and(|e| e.kind == Kind::Directory));
        assert!(parent_is_dir, "no directory for {op:?}");
        match op {
            PathOp::MakeDir { .. } => {
                assert!(here.is_none_or(|e| e.kind == Kind::Directory), "{op:?}");
                model.insert(at, dir());
            }
            PathOp::Create { new, .. } => {
                assert_eq!(here, None, "{op:?}");
                model.insert(at, *new);
            }
            PathOp::Replace { old, new, .. } | PathOp::SetMode { old, new, .. } => {
                assert_eq!(here, Some(*old), "{op:?}");
                model.insert(at, *new);
            }
            PathOp::Remove { old, .. } => {
                assert_eq!(here, Some(*old), "{op:?}");
                model.remove(&at);
            }
            PathOp::RemoveDir { .. } => {
                if !below(model, &at) {
                    model.remove(&at);
                }
            }
        }
    }
}

#[test]
fn table() {
    let plain = Facts::default();
    let checkout = Facts {
        checkout: true,
        ..plain
    };
    let folded = Facts {
        case_insensitive: true,
        ..plain
    };
    let mut out = String::new();
    for (name, facts, base, real, result) in [
        (
            "nothing drifted",
            plain,
            "a=f1 b=f1 d/e=f1",
            "a=f1 b=f1 d/e=f1",
            "a=f2 n/m=x1",
        ),
        (
            "other paths drifted",
            plain,
            "a=f1 b=f1",
            "a=f1 b=f9 u=f9",
            "a=f2 b=f1",
        ),
        ("there already", plain, "a=f1 b=f1", "a=f2", "a=f2"),
        ("text on both sides", plain, "a=f1", "a=f2", "a=f3"),
        (
            "text on both sides, bit on one",
            plain,
            "a=f1",
            "a=f2",
            "a=x3",
        ),
        ("content here, bit there", plain, "a=f1", "a=f2", "a=x1"),
        ("bit here, content there", plain, "a=f1", "a=x1", "a=f2"),
        ("bit here, both there", plain, "a=f1", "a=x1", "a=x2"),
        ("mode only", plain, "a=f1", "a=f1", "a=x1"),
        ("deleted here, changed there", plain, "a=f1", "", "a=f2"),
        ("changed here, deleted there", plain, "a=f1", "a=f2", ""),
        ("deleted on both sides", plain, "a=f1", "", ""),
        ("added on both sides", plain, "", "a=f1", "a=f2"),
        (
            "added on both sides, bit differs",
            plain,
            "",
            "a=f1",
            "a=x1",
        ),
        ("added alike", plain, "", "a=f1", "a=f1"),
        ("symlinks", plain, "a=l1", "a=l2", "a=l3"),
        ("symlink here, file there", plain, "a=f1", "a=l2", "a=f3"),
        ("file becomes symlink", plain, "a=f1", "a=f1", "a=l2"),
        ("file becomes directory", plain, "a=f1", "a=f1", "a/b/c=f2"),
        (
            "directory becomes file",
            plain,
            "a/b/c=f1 a/d=f1",
            "a/b/c=f1 a/d=f1",
            "a=f2",
        ),
        (
            "directory becomes file, gone here",
            plain,
            "a/b=f1",
            "",
            "a=f2",
        ),
        (
            "directory added, there already",
            plain,
            "",
            "a/x=f1",
            "a/y=f1",
        ),
        ("directory added, file here", plain, "", "a=f1", "a/y=f1"),
        (
            "directory deleted, others in it",
            plain,
            "a/b=f1",
            "a/b=f1 a/u=f9",
            "",
        ),
        ("directory deleted, file here", plain, "a/b=f1", "a=f9", ""),
        (
            "parent deleted here",
            plain,
            "a/b/c=f1",
            "",
            "a/b/c=f1 a/b/d=f1",
        ),
        (
            "parent replaced by a symlink",
            plain,
            "a/b=f1",
            "a=l9",
            "a/b=f1 a/c=f1",
        ),
        (
            "parent replaced, file there changed",
            plain,
            "a/b=f1",
            "a=f9",
            "a/b=f2",
        ),
        (
            "nested removal",
            plain,
            "a/b/c=f1 a/d=f1",
            "a/b/c=f1 a/d=f1",
            "",
        ),
        (
            "git directory of a checkout",
            checkout,
            "",
            "",
            ".git/config=f1 a=f1",
        ),
        ("git directory elsewhere", plain, "", "", ".git/config=f1"),
        ("keep-aside directory", plain, "", "", ".sandbar/kept=f1"),
        ("case on both names", folded, "", "", "Read=f1 read=f1"),
        ("case matters", plain, "", "", "Read=f1 read=f1"),
    ] {
        let (decision, _) = decide(&tree(base), &tree(real), &tree(result), facts);
        out += &format!("{name}: [{base}] here [{real}] there [{result}]\n");
        match decision.ops() {
            Ok(ops) => {
                for op in ops {
                    out += &format!("  {}\n", show(op));
                }
            }
            Err(conflicts) => {
                for Conflict { path, reason } in conflicts {
                    out += &format!("  conflict {path}: {}\n", reason.word());
                }
            }
        }
        for path in &decision.already {
            out += &format!("  already {path}\n");
        }
        for warning in &decision.warnings {
            out += &format!("  warning {}: {}\n", warning.path(), warning.word());
        }
    }
    insta::assert_snapshot!(out);
}

fn show(op: &PathOp) -> String {
    let word = match op {
        PathOp::MakeDir { .. } => "make dir",
        PathOp::Create { .. } => "create",
        PathOp::Replace { .. } => "replace",
        PathOp::SetMode { .. } => "set mode",
        PathOp::Remove { .. } => "remove",
        PathOp::RemoveDir { .. } => "remove dir",
    };
    format!("{word} {}", op.path())
}

#[test]
fn a_failed_or_missing_merge_is_a_conflict() {
    let (base, real, result) = (tree("a=f1 b=f1"), tree("a=f2 b=f2"), tree("a=f3 b=f3 c=f1"));
    let changes = changes(&base, &result);
    let triage = triage(&changes, &observed(&real, &changes), Facts::default());
    let merged = HashMap::from([(path("a"), Err(MergeConflict::Binary))]);
    let decision = plan_ops(triage, &merged);
    let reasons: Vec<_> = decision
        .conflicts()
        .iter()
        .map(|c| (c.path.as_str(), c.reason))
        .collect();
    assert_eq!(reasons, [("a", Reason::Binary), ("b", Reason::Unmerged)]);
    assert!(decision.clone().into_ops().is_err());
    assert!(decision.ops().is_err());
}

fn model() -> impl Strategy<Value = Model> {
    let place = prop::sample::select(vec![
        "a", "b", "a/x", "a/y", "a/x/z", "d", "d/e", "d/f", "d/e/g", "A",
    ]);
    let entry = prop_oneof![
        6 => (0u8..3).prop_map(|c| Entry::new(Kind::File, Hash::of(&[c]))),
        2 => (0u8..3).prop_map(|c| Entry::new(Kind::Executable, Hash::of(&[c]))),
        1 => (0u8..2).prop_map(|c| Entry::new(Kind::Symlink, Hash::of(&[c]))),
        1 => Just(dir()),
    ];
    prop::collection::vec((place, entry), 0..8).prop_map(|entries| {
        let mut model = Model::new();
        for (at, entry) in entries {
            insert(&mut model, path(at), entry);
        }
        model
    })
}

/// A tree that mostly is `base`, so that few paths conflict.
fn near(base: Model) -> impl Strategy<Value = Model> {
    (model(), prop::collection::vec(0u8..4, 16)).prop_map(move |(other, dice)| {
        let mut out = Model::new();
        let from = |m: &Model, keep: &dyn Fn(u8) -> bool, out: &mut Model| {
            for (index, (at, entry)) in m.iter().enumerate() {
                if keep(dice[index % dice.len()]) {
                    insert(out, at.clone(), *entry);
                }
            }
        };
        from(&other, &|die| die == 0, &mut out);
        from(&base, &|die| die != 1, &mut out);
        out
    })
}

fn three() -> impl Strategy<Value = (Model, Model, Model)> {
    model().prop_flat_map(|base| (Just(base.clone()), near(base.clone()), near(base)))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4_000))]

    #[test]
    fn without_drift_the_real_tree_becomes_the_result(base in model(), result in model()) {
        let (decision, _) = decide(&base, &base, &result, Facts::default());
        let mut real = base.clone();
        perform(&mut real, decision.ops().expect("no drift, no conflict"));
        prop_assert_eq!(real, result);
    }

    #[test]
    fn what_was_applied_and_taken_back_is_as_before((base, real, result) in three()) {
        let (decision, _) = decide(&base, &real, &result, Facts::default());
        let Ok(ops) = decision.ops() else {
            return Ok(());
        };
        let changed = changes(&base, &result);
        if crowded(ops, &real, &changed) {
            return Ok(());
        }
        let mut after = real.clone();
        perform(&mut after, ops);
        let back = inverse(ops);
        let triage = triage(&back, &observed(&after, &back), Facts::default());
        prop_assert!(triage.merges.is_empty(), "nobody changed anything since");
        let undone = plan_ops(triage, &HashMap::new());
        let back = undone.ops().expect("nobody changed anything since");
        let mut again = after.clone();
        perform(&mut again, back);
        prop_assert_eq!(&again, &real);
        // Replaying says the same as performing, for the paths it touches.
        let mut now: Present = real.keys().map(|at| (at.clone(), real.get(at).copied())).collect();
        replay(&mut now, ops);
        for op in ops {
            let left = matches!(op, PathOp::RemoveDir { path } if after.contains_key(path));
            prop_assert!(left || now[op.path()] == after.get(op.path()).copied());
        }
    }

    #[test]
    fn with_drift_each_side_keeps_what_it_alone_changed((base, real, result) in three()) {
        let (decision, merged) = decide(&base, &real, &result, Facts::default());
        let Ok(ops) = decision.ops() else {
            // The conflicts are all there is: nothing can be performed.
            return Ok(());
        };
        let changed = changes(&base, &result);
        if crowded(ops, &real, &changed) {
            return Ok(());
        }
        let mut after = real.clone();
        perform(&mut after, ops);
        let made: Vec<_> = decision.warnings.iter()
            .filter(|w| matches!(w, Warning::ParentMade(_))).map(Warning::path).collect();
        for at in base.keys().chain(real.keys()).chain(result.keys()) {
            let (b, r, n, end) = (base.get(at), real.get(at), result.get(at), after.get(at));
            if !changed.iter().any(|c| &c.path == at) {
                prop_assert!(end == r || made.contains(&at), "{at} outside the change set");
            } else if r == b || r == n {
                let occupied = b == Some(&dir()) && n.is_none()
                    && after.keys().any(|p| p != at && p.is_within(at));
                prop_assert!(end == n || occupied, "{at} is not the result");
            } else if let Some(Ok(hash)) = merged.get(at) {
                prop_assert_eq!(end.map(|e| e.hash), Some(*hash));
            } else {
                // One side's content, the other's bit.
                let ends = [r, n].map(|e| e.map(|e| e.hash));
                prop_assert!(ends.contains(&end.map(|e| e.hash)), "{at} is neither");
            }
        }
        // The same decision on what came out of it has nothing left to do.
        let (again, _) = decide(&result, &after, &result, Facts::default());
        prop_assert_eq!(again.into_ops(), Ok(Vec::new()));
    }

    #[test]
    fn encoding_is_exact((base, real, result) in three()) {
        let (decision, _) = decide(&base, &real, &result, Facts::default());
        if let Ok(ops) = decision.into_ops() {
            prop_assert_eq!(decode_ops(&encode_ops(&ops)), Ok(ops));
        }
    }
}
