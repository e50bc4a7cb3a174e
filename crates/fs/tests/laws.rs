//! Laws over random trees and edits: the cache never changes what a scan
//! finds, and a restore is exact whatever happened in between.
#![allow(clippy::unwrap_used, clippy::disallowed_methods, missing_docs)]

mod sandboxes;

use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;
use std::sync::Arc;

use proptest::prelude::*;
use sandbar_ports::objects::Objects as _;
use sandbar_ports::rules::Everything;
use sandbar_ports::workspace::CacheKey;
use sandboxes::{Bench, Sandbox, tar_digest, wait};

#[derive(Debug, Clone)]
enum Edit {
    Write(String, Vec<u8>),
    /// Same size, old times put back: only ctime tells.
    Sneak(String, u8),
    Remove(String),
    Mode(String, bool),
    Link(String, String),
    Dir(String),
    Rename(String, String),
    HardLink(String, String),
    /// A capture in between, which renews the cache.
    Capture(bool),
}

fn path() -> impl Strategy<Value = String> {
    proptest::collection::vec(
        prop_oneof![Just("a"), Just("b"), Just("c.txt"), Just("é"), Just("a-b")],
        1..4,
    )
    .prop_map(|names| names.join("/"))
}

fn content() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        proptest::collection::vec(any::<u8>(), 0..40),
        (any::<u8>(), 4_000usize..6_000).prop_map(|(byte, length)| vec![byte; length]),
        any::<u8>().prop_map(|byte| vec![byte; 300_000]),
    ]
}

fn edit() -> impl Strategy<Value = Edit> {
    prop_oneof![
        4 => (path(), content()).prop_map(|(p, c)| Edit::Write(p, c)),
        2 => (path(), any::<u8>()).prop_map(|(p, b)| Edit::Sneak(p, b)),
        2 => path().prop_map(Edit::Remove),
        2 => (path(), any::<bool>()).prop_map(|(p, x)| Edit::Mode(p, x)),
        1 => (path(), path()).prop_map(|(p, t)| Edit::Link(p, t)),
        1 => path().prop_map(Edit::Dir),
        2 => (path(), path()).prop_map(|(a, b)| Edit::Rename(a, b)),
        1 => (path(), path()).prop_map(|(a, b)| Edit::HardLink(a, b)),
        2 => any::<bool>().prop_map(Edit::Capture),
    ]
}

/// Makes an edit; one that the file system refuses is no edit.
fn perform(root: &Path, edit: &Edit) {
    let parents = |rel: &str| {
        let path = root.join(rel);
        let _ = std::fs::create_dir_all(path.parent().unwrap());
        path
    };
    let _ = match edit {
        Edit::Write(rel, bytes) => std::fs::write(parents(rel), bytes),
        Edit::Sneak(rel, byte) => sneak(&root.join(rel), *byte),
        Edit::Remove(rel) => {
            let path = root.join(rel);
            std::fs::remove_file(&path).or_else(|_| std::fs::remove_dir_all(path))
        }
        Edit::Mode(rel, executable) => {
            let mode = if *executable { 0o755 } else { 0o644 };
            let path = root.join(rel);
            match std::fs::symlink_metadata(&path) {
                Ok(meta) if meta.is_file() => {
                    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode))
                }
                _ => Ok(()),
            }
        }
        Edit::Link(rel, target) => symlink(target, parents(rel)),
        Edit::Dir(rel) => std::fs::create_dir_all(root.join(rel)),
        Edit::Rename(from, to) => std::fs::rename(root.join(from), parents(to)),
        Edit::HardLink(from, to) => std::fs::hard_link(root.join(from), parents(to)),
        Edit::Capture(_) => Ok(()),
    };
}

fn sneak(path: &Path, byte: u8) -> std::io::Result<()> {
    let meta = std::fs::symlink_metadata(path)?;
    if !meta.is_file() {
        return Ok(());
    }
    let size = usize::try_from(meta.len()).unwrap();
    std::fs::write(path, vec![byte; size])?;
    let file = std::fs::File::options().write(true).open(path)?;
    file.set_times(std::fs::FileTimes::new().set_modified(meta.modified()?))
}

fn both(sandbox: &Sandbox<'_>, install: bool) -> Result<sandbar_domain::Hash, TestCaseError> {
    let rules = || Arc::new(Everything);
    let with = sandbox
        .capture_by(sandbox.cache(), install, rules())
        .unwrap();
    let without = sandbox.capture_by(CacheKey::None, false, rules()).unwrap();
    prop_assert_eq!(with.tree, without.tree);
    prop_assert_eq!(with.tally, without.tally);
    Ok(with.tree)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_cache_changes_nothing_and_restores_are_exact(
        start in proptest::collection::vec(edit(), 0..25),
        edits in proptest::collection::vec(edit(), 1..25),
    ) {
        let bench = Bench::on_disk();
        for edit in &start {
            perform(&bench.source(), edit);
        }
        let sandbox = bench.sandbox();
        let root = sandbox.root();
        prop_assert_eq!(tar_digest(&bench.source()), tar_digest(&root));
        prop_assert_eq!(both(&sandbox, true)?, sandbox.created.tree);
        for edit in &edits {
            perform(&root, edit);
            if let Edit::Capture(install) = edit {
                both(&sandbox, *install)?;
            }
        }
        let result = both(&sandbox, true)?;
        let digest = tar_digest(&root);
        for (_, entry) in wait(bench.engine.list(result)).unwrap() {
            wait(bench.engine.get(entry.hash)).unwrap();
        }
        sandbox.restore(sandbox.created.tree);
        prop_assert_eq!(tar_digest(&bench.source()), tar_digest(&root));
        prop_assert_eq!(both(&sandbox, true)?, sandbox.created.tree);
        sandbox.restore(result);
        prop_assert_eq!(tar_digest(&root), digest);
        prop_assert_eq!(both(&sandbox, false)?, result);
    }
}
