//! Lists of gitignore patterns, matched by gix as git matches them.

use gix::bstr::{BStr, BString, ByteSlice as _};
use gix::glob::pattern::{Case, Mode};
use gix::glob::wildmatch;
use gix::glob::{Pattern, wildmatch as matches};

const SLASHES: wildmatch::Mode = wildmatch::Mode::NO_MATCH_SLASH_LITERAL;

/// The patterns of one file, with its bytes so that it can be saved.
#[derive(Debug, Clone, Default)]
pub(crate) struct List {
    raw: Vec<u8>,
    patterns: Vec<Pattern>,
}

impl List {
    /// Parses a file of patterns, one a line.
    pub(crate) fn parse(raw: &[u8]) -> Self {
        Self {
            patterns: gix::ignore::parse(raw, false)
                .map(|(pattern, _, _)| pattern)
                .collect(),
            raw: raw.to_vec(),
        }
    }

    /// Returns the bytes it was parsed from.
    pub(crate) fn raw(&self) -> &[u8] {
        &self.raw
    }

    /// Says whether there is no pattern.
    pub(crate) fn is_empty(&self) -> bool {
        self.patterns.is_empty()
    }

    /// Returns what the last matching pattern says of `path`, which is
    /// relative to the directory of the list: ignored or not; `None` if no
    /// pattern matches.
    pub(crate) fn judge(&self, path: &str, is_dir: bool, case: Case) -> Option<bool> {
        let path: &BStr = path.into();
        let base = path.rfind_byte(b'/').map(|at| at + 1);
        self.patterns
            .iter()
            .rev()
            .find(|pattern| {
                pattern.matches_repo_relative_path(path, base, Some(is_dir), case, SLASHES)
            })
            .map(|pattern| !pattern.is_negative())
    }

    /// Says whether something beneath the directory `dir`, which itself does
    /// not match, could match.
    pub(crate) fn reaches_into(&self, dir: &str, case: Case) -> bool {
        self.patterns
            .iter()
            .any(|pattern| !pattern.is_negative() && reaches_into(pattern, dir, case))
    }
}

fn reaches_into(pattern: &Pattern, dir: &str, case: Case) -> bool {
    if pattern.mode.contains(Mode::NO_SUB_DIR) && !pattern.mode.contains(Mode::ABSOLUTE) {
        return true;
    }
    let flags = match case {
        Case::Fold => SLASHES | wildmatch::Mode::IGNORE_CASE,
        Case::Sensitive => SLASHES,
    };
    let text: &BString = &pattern.text;
    let mut parts = text.split_str("/");
    for name in dir.split('/') {
        match parts.next() {
            // Used up above `dir`: it would have matched a parent.
            None => return false,
            Some(b"**") => return true,
            Some(part) if !matches(part.as_bstr(), name.into(), flags) => return false,
            Some(_) => {}
        }
    }
    parts.next().is_some()
}
