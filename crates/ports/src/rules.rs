//! Which paths of a root belong to it: ignore rules without a disk.

use sandbar_domain::{Hash, RelPath};

use crate::error::PortError;

/// What a scan does with one path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// It belongs to the tree; a directory is entered.
    Carry,
    /// It is ignored, but something beneath may belong: enter it, and keep the
    /// directory itself only if something beneath is carried.
    Look,
    /// It is ignored with all beneath: counted, not read.
    Ignore,
    /// It is no part of the root at all: neither read nor counted.
    Hide,
}

/// Ignore rules of one root (CKP-6, PLN-5). Pure and shareable between threads.
///
/// A scan lists a directory, calls [`CarryRules::enter`] once for it with the
/// content of each file whose name is in [`CarryRules::rule_files`], then
/// [`CarryRules::verdict`] for each name in it. Parents come before children.
pub trait CarryRules: Send + Sync {
    /// Names of files that hold rules, such as `.gitignore`.
    fn rule_files(&self) -> &[&str];

    /// Announces that the directory `dir` (`None`: the root) holds a rule file.
    fn enter(&self, dir: Option<&RelPath>, name: &str, content: &[u8]);

    /// Judges one path.
    fn verdict(&self, path: &RelPath, is_dir: bool) -> Verdict;

    /// Names what [`CarryRules::lasting`] rests on. A scan may remember what
    /// is lasting as long as this stays; `None`: nothing may be remembered.
    fn identity(&self) -> Option<Hash> {
        None
    }

    /// Says whether a path is carried whatever rule files come to say.
    fn lasting(&self, path: &RelPath, is_dir: bool) -> bool {
        let _ = (path, is_dir);
        false
    }

    /// Returns, once, what kept the rules from being read. A scan that met it
    /// is worth nothing, since its verdicts were guesses.
    fn fault(&self) -> Option<PortError> {
        None
    }
}

/// Carries everything: plain directories and sessions (CKP-6).
#[derive(Debug, Clone, Copy, Default)]
pub struct Everything;

impl CarryRules for Everything {
    fn rule_files(&self) -> &[&str] {
        &[]
    }

    fn enter(&self, _: Option<&RelPath>, _: &str, _: &[u8]) {}

    fn verdict(&self, _: &RelPath, _: bool) -> Verdict {
        Verdict::Carry
    }

    fn identity(&self) -> Option<Hash> {
        Some(Hash::of(b"everything"))
    }

    fn lasting(&self, _: &RelPath, _: bool) -> bool {
        true
    }
}
