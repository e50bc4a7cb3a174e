//! The paths of one index, sorted. Lookups narrow the range of a directory
//! step by step, so that no path is hashed or copied.

use std::cmp::Ordering;
use std::ops::Range;

use crate::index::{Index, mode};

/// Tracked paths, sorted by bytes, none twice.
#[derive(Debug, Clone, Default)]
pub(crate) struct Tracked {
    names: Vec<u8>,
    spans: Vec<Span>,
}

#[derive(Debug, Clone, Copy)]
struct Span {
    start: u32,
    end: u32,
    gitlink: bool,
}

/// How a path stands to the index.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Standing {
    /// Not in it.
    Unknown,
    /// A file or symlink of it.
    File,
    /// A directory that leads to something in it.
    Leads,
    /// A submodule.
    Gitlink,
}

impl Tracked {
    /// Takes the paths of an index, whatever their stage.
    pub(crate) fn of(index: &Index) -> Self {
        let mut tracked = Self::default();
        tracked.spans.reserve(index.len());
        for entry in index.entries() {
            tracked.push(entry.path, entry.mode() == mode::GITLINK);
        }
        tracked
    }

    /// Appends a path; those that do not sort after the last are left out.
    pub(crate) fn push(&mut self, path: &[u8], gitlink: bool) {
        if self
            .spans
            .last()
            .is_some_and(|last| self.bytes(*last) >= path)
        {
            return;
        }
        let offset = |length: usize| u32::try_from(length).ok();
        let start = self.names.len();
        self.names.extend_from_slice(path);
        if let (Some(start), Some(end)) = (offset(start), offset(self.names.len())) {
            self.spans.push(Span {
                start,
                end,
                gitlink,
            });
        }
    }

    fn bytes(&self, span: Span) -> &[u8] {
        &self.names[span.start as usize..span.end as usize]
    }

    /// Iterates over the paths; the flag says whether it is a submodule.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&[u8], bool)> {
        self.spans
            .iter()
            .map(|span| (self.bytes(*span), span.gitlink))
    }

    /// Counts the paths.
    pub(crate) fn len(&self) -> usize {
        self.spans.len()
    }

    /// Returns the range of everything.
    pub(crate) fn all(&self) -> Range<usize> {
        0..self.spans.len()
    }

    /// Narrows `within` to what lies beneath `dir`.
    pub(crate) fn beneath(&self, within: Range<usize>, dir: &[u8]) -> Range<usize> {
        let spans = &self.spans[within.clone()];
        let start = spans.partition_point(|span| under(self.bytes(*span), dir) == Ordering::Less);
        let length =
            spans[start..].partition_point(|span| under(self.bytes(*span), dir) == Ordering::Equal);
        within.start + start..within.start + start + length
    }

    /// Judges `path`, whose directory has the range `within`.
    pub(crate) fn standing(&self, within: Range<usize>, path: &[u8], is_dir: bool) -> Standing {
        let spans = &self.spans[within];
        let at = spans.partition_point(|span| self.bytes(*span) < path);
        match spans.get(at) {
            Some(span) if self.bytes(*span) == path => {
                if span.gitlink && is_dir {
                    return Standing::Gitlink;
                }
                if !is_dir {
                    return Standing::File;
                }
            }
            _ => {}
        }
        if is_dir {
            let rest = &spans[at..];
            let at = rest.partition_point(|span| under(self.bytes(*span), path) == Ordering::Less);
            if rest
                .get(at)
                .is_some_and(|span| under(self.bytes(*span), path) == Ordering::Equal)
            {
                return Standing::Leads;
            }
        }
        Standing::Unknown
    }
}

/// Orders `path` against everything that starts with `dir/`; equal when it
/// does.
fn under(path: &[u8], dir: &[u8]) -> Ordering {
    match path.get(dir.len()) {
        Some(next) => path[..dir.len()].cmp(dir).then(next.cmp(&b'/')),
        None => path.cmp(dir).then(Ordering::Less),
    }
}
