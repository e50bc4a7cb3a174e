//! Stat data of the index: what git believed of an original it may believe of
//! its exact copy, and nothing more.

use sandbar_ports::workspace::CopiedFile;

use crate::index::{Index, Stat, mode};

/// Gives each entry whose original was clean by stat the stat of the copy.
/// `files` is sorted by path.
///
/// An entry that was racily clean (its file is not older than the index) gets
/// size 0, as git itself smudges it: the content is compared once.
pub(super) fn refresh(index: &mut Index, files: &[CopiedFile]) {
    let written = index.written_ns;
    let mut rest = files;
    index.restat(|entry| {
        while let [first, tail @ ..] = rest
            && first.path.as_str().as_bytes() < entry.path
        {
            rest = tail;
        }
        let file = rest
            .first()
            .filter(|file| file.path.as_str().as_bytes() == entry.path)?;
        if entry.stage() != 0 || entry.mode() == mode::GITLINK {
            return None;
        }
        let have = entry.stat();
        if !matches(have, Stat::of(&file.source)) {
            return None;
        }
        let mut stat = Stat::of(&file.copy);
        if have.modified_ns() >= written {
            stat.size = 0;
        }
        Some(stat)
    });
}

/// The device is left out of the comparison, as in git.
fn matches(have: Stat, original: Stat) -> bool {
    Stat {
        dev: original.dev,
        ..have
    } == original
}
