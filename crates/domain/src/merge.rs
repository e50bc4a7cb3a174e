//! Three-way merge of texts, byte exact, without conflict markers (APL-3).
//!
//! A wrong clean merge loses work silently, a conflict never does. So a line
//! counts as common only where several readings of the differences (diff
//! algorithms, forwards and backwards) agree that it is; a hunk reaches over
//! every line that it can slide across; and between a hunk of one side and one
//! of the other there must lie a line that occurs once in each text: blank
//! lines and braces prove nothing. Touching hunks are a conflict.

use std::collections::HashMap;
use std::ops::Range;

use similar::{Algorithm, DiffTag, capture_diff_slices};

mod marked;

pub use marked::{has_markers, merge3_marked};

/// The largest side that is merged, in bytes.
pub const MAX_BYTES: usize = 16 << 20;
/// How many steps the search for differences may take: about a second.
const MAX_STEPS: usize = 200_000_000;
/// How many bytes at the head are searched for a NUL, as git does.
const BINARY_PROBE: usize = 8000;
/// The readings of the differences, each with whether the texts are read
/// from the end.
const READINGS: [(Algorithm, bool); 4] = [
    (Algorithm::Myers, false),
    (Algorithm::Myers, true),
    (Algorithm::Histogram, false),
    (Algorithm::Histogram, true),
];

/// Why two changed contents have no common result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, thiserror::Error)]
pub enum MergeConflict {
    /// A NUL byte near the head of a side.
    #[error("it is not text")]
    Binary,
    /// A side of more than 16 MiB, or too many differences to search.
    #[error("it is too large to merge")]
    TooLarge,
    /// Both sides changed the same or touching lines.
    #[error("both sides changed the same lines")]
    Overlap,
}

/// Merges `ours` and `theirs`, both made from `base`. Lines keep their bytes,
/// CRLF and a missing final newline included. A side that did not change, or
/// changed as the other did, needs no merge and is taken whatever it holds.
pub fn merge3(base: &[u8], ours: &[u8], theirs: &[u8]) -> Result<Vec<u8>, MergeConflict> {
    if ours == theirs || theirs == base {
        return Ok(ours.to_vec());
    }
    if ours == base {
        return Ok(theirs.to_vec());
    }
    refuse_rubbish([base, ours, theirs])?;
    Texts::new(base, ours, theirs).merge()
}

/// Refuses what is no text, or too much of it.
fn refuse_rubbish(sides: [&[u8]; 3]) -> Result<(), MergeConflict> {
    for side in sides {
        if side.len() > MAX_BYTES {
            return Err(MergeConflict::TooLarge);
        }
        if side[..side.len().min(BINARY_PROBE)].contains(&0) {
            return Err(MergeConflict::Binary);
        }
    }
    Ok(())
}

/// Three texts as sequences of line numbers: equal lines, equal numbers.
struct Texts<'a> {
    lines: Vec<&'a [u8]>,
    base: Vec<u32>,
    ours: Vec<u32>,
    theirs: Vec<u32>,
}

/// One difference between base and a side, widened to every line that it could
/// be read as touching.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Hunk<'a> {
    /// The lines of base that it replaces.
    base: Range<usize>,
    /// What it puts there.
    new: &'a [u32],
}

impl<'a> Texts<'a> {
    fn new(base: &'a [u8], ours: &'a [u8], theirs: &'a [u8]) -> Self {
        let mut lines = Vec::new();
        let mut numbers: HashMap<&'a [u8], u32> = HashMap::new();
        let [base, ours, theirs] = [base, ours, theirs].map(|text| {
            text.split_inclusive(|byte| *byte == b'\n')
                .map(|line| {
                    *numbers.entry(line).or_insert_with(|| {
                        lines.push(line);
                        u32::try_from(lines.len() - 1).expect("three times 16 MiB fit 32 bits")
                    })
                })
                .collect()
        });
        Self {
            lines,
            base,
            ours,
            theirs,
        }
    }

    /// Returns the differences of both sides.
    fn hunks(&self) -> (Vec<Hunk<'_>>, Vec<Hunk<'_>>) {
        (
            hunks(&self.base, &self.ours),
            hunks(&self.base, &self.theirs),
        )
    }

    /// Refuses texts whose differences take too long to find.
    fn refuse_far(&self) -> Result<(), MergeConflict> {
        if ![&self.ours, &self.theirs]
            .into_iter()
            .all(|side| is_near(&self.base, side, MAX_STEPS))
        {
            return Err(MergeConflict::TooLarge);
        }
        Ok(())
    }

    fn merge(&self) -> Result<Vec<u8>, MergeConflict> {
        self.refuse_far()?;
        let (ours, theirs) = self.hunks();
        let mut out = Vec::with_capacity(self.ours.len().max(self.theirs.len()));
        let anchors = self.anchors();
        let apart = |x: &Hunk<'_>, y: &Hunk<'_>| are_apart(&anchors, x, y);
        let (mut at, mut a, mut b) = (0, 0, 0);
        let (mut last_ours, mut last_theirs): (Option<&Hunk<'_>>, Option<&Hunk<'_>>) = (None, None);
        loop {
            let (x, y) = match (ours.get(a), theirs.get(b)) {
                (None, None) => break,
                (Some(x), Some(y)) if x == y => (Some(x), Some(y)),
                (Some(x), Some(y)) if x.base.start > y.base.start => (None, Some(y)),
                (Some(x), _) => (Some(x), None),
                (None, Some(y)) => (None, Some(y)),
            };
            if let Some(x) = x {
                a += 1;
                if last_theirs.is_some_and(|y| !apart(x, y)) {
                    return Err(MergeConflict::Overlap);
                }
            }
            if let Some(y) = y {
                b += 1;
                if last_ours.is_some_and(|x| !apart(x, y)) {
                    return Err(MergeConflict::Overlap);
                }
            }
            (last_ours, last_theirs) = (x.or(last_ours), y.or(last_theirs));
            let hunk = x.or(y).expect("one of them is next");
            out.extend_from_slice(&self.base[at..hunk.base.start]);
            out.extend_from_slice(hunk.new);
            at = hunk.base.end;
        }
        out.extend_from_slice(&self.base[at..]);
        let text: Vec<&[u8]> = out.iter().map(|number| self.line(*number)).collect();
        // A line without a newline can only be the last one.
        if text.iter().rev().skip(1).any(|line| !line.ends_with(b"\n")) {
            return Err(MergeConflict::Overlap);
        }
        Ok(text.concat())
    }

    /// Counts, before each line of base and after the last, the lines that
    /// occur once in every text.
    fn anchors(&self) -> Vec<u32> {
        let mut counts = vec![[0u32; 3]; self.lines.len()];
        let index = |number: u32| usize::try_from(number).expect("32 bits fit usize");
        for (side, text) in [&self.base, &self.ours, &self.theirs]
            .into_iter()
            .enumerate()
        {
            for number in text {
                counts[index(*number)][side] += 1;
            }
        }
        let mut sum = 0;
        let mut out = vec![0];
        out.extend(self.base.iter().map(|number| {
            sum += u32::from(counts[index(*number)] == [1; 3]);
            sum
        }));
        out
    }

    fn line(&self, number: u32) -> &'a [u8] {
        self.lines[usize::try_from(number).expect("32 bits fit usize")]
    }
}

/// Says whether a line that proves something lies between two differences.
fn are_apart(anchors: &[u32], x: &Hunk<'_>, y: &Hunk<'_>) -> bool {
    let (first, second) = if x.base.start <= y.base.start {
        (x, y)
    } else {
        (y, x)
    };
    let (from, to) = (first.base.end, second.base.start);
    from < to && anchors[from] < anchors[to]
}

/// Says whether the shortest script from `base` to `side` is found within a
/// number of steps. The diff algorithms have no bound of their own that does
/// not look at a clock.
fn is_near(base: &[u32], side: &[u32], steps: usize) -> bool {
    let head = base.iter().zip(side).take_while(|(a, b)| a == b).count();
    let (base, side) = (&base[head..], &side[head..]);
    let ends = base.iter().rev().zip(side.iter().rev());
    let tail = ends.take_while(|(a, b)| a == b).count();
    let (base, side) = (&base[..base.len() - tail], &side[..side.len() - tail]);
    // Myers' greedy search, keeping only how far each diagonal came: index
    // `limit + k` is diagonal `k` (position in base less position in side).
    let limit = base.len() + side.len();
    let mut reached = vec![0usize; 2 * limit + 3];
    let mut left = steps;
    for d in 0..=limit {
        for k in (limit - d..=limit + d).step_by(2) {
            let down = k == limit - d || (k != limit + d && reached[k] < reached[k + 2]);
            let mut x = if down { reached[k + 2] } else { reached[k] + 1 };
            let mut y = x + limit - k;
            let start = x;
            while x < base.len() && y < side.len() && base[x] == side[y] {
                (x, y) = (x + 1, y + 1);
            }
            reached[k + 1] = x;
            if x >= base.len() && y >= side.len() {
                return true;
            }
            match left.checked_sub(1 + x - start) {
                Some(rest) => left = rest,
                None => return false,
            }
        }
    }
    true
}

/// Says for each line of `base` which line of `side` it is, where all readings
/// agree.
fn common(base: &[u32], side: &[u32]) -> Vec<Option<usize>> {
    let reversed = |lines: &[u32]| lines.iter().rev().copied().collect::<Vec<_>>();
    let (base_back, side_back) = (reversed(base), reversed(side));
    let mut agreed: Option<Vec<Option<usize>>> = None;
    for (algorithm, backwards) in READINGS {
        let ops = if backwards {
            capture_diff_slices(algorithm, &base_back, &side_back)
        } else {
            capture_diff_slices(algorithm, base, side)
        };
        let mut reading = vec![None; base.len()];
        for op in ops {
            if let (DiffTag::Equal, old, new) = op.as_tag_tuple() {
                for (o, n) in old.zip(new) {
                    if backwards {
                        reading[base.len() - 1 - o] = Some(side.len() - 1 - n);
                    } else {
                        reading[o] = Some(n);
                    }
                }
            }
        }
        match &mut agreed {
            None => agreed = Some(reading),
            Some(agreed) => {
                for (line, other) in agreed.iter_mut().zip(reading) {
                    if *line != other {
                        *line = None;
                    }
                }
            }
        }
    }
    agreed.expect("there is a reading")
}

/// Returns the gaps between the common lines.
fn gaps(base: &[u32], side: &[u32]) -> Vec<(Range<usize>, Range<usize>)> {
    let mut out = Vec::new();
    let (mut old, mut new) = (0, 0);
    let ends = [(base.len(), side.len())];
    let lines = common(base, side)
        .into_iter()
        .enumerate()
        .filter_map(|(o, n)| Some((o, n?)))
        .collect::<Vec<_>>();
    for (o, n) in lines.into_iter().chain(ends) {
        if old < o || new < n {
            out.push((old..o, new..n));
        }
        (old, new) = (o + 1, n + 1);
    }
    out
}

/// Returns the differences from `base` to `side` in order, each with the lines
/// that it can slide over; what touches then is one difference.
fn hunks<'a>(base: &[u32], side: &'a [u32]) -> Vec<Hunk<'a>> {
    let mut spans: Vec<(Range<usize>, Range<usize>)> = Vec::new();
    let mut changed = gaps(base, side).into_iter().peekable();
    let mut floor = 0;
    while let Some((old, new)) = changed.next() {
        let ceiling = changed.peek().map_or(base.len(), |(next, _)| next.start);
        let (up, down) = slides(base, side, &old, &new, floor, ceiling);
        floor = old.end;
        let old = old.start - up..old.end + down;
        let new = new.start - up..new.end + down;
        match spans.last_mut() {
            Some((o, n)) if o.end >= old.start => {
                o.end = old.end;
                n.end = new.end;
            }
            _ => spans.push((old, new)),
        }
    }
    spans
        .into_iter()
        .map(|(base, new)| Hunk {
            base,
            new: &side[new],
        })
        .collect()
}

/// Returns how many lines a pure insertion or deletion can move up and down
/// without changing the result.
fn slides(
    base: &[u32],
    side: &[u32],
    old: &Range<usize>,
    new: &Range<usize>,
    floor: usize,
    ceiling: usize,
) -> (usize, usize) {
    let (text, span) = match (old.is_empty(), new.is_empty()) {
        (true, false) => (side, new),
        (false, true) => (base, old),
        _ => return (0, 0),
    };
    let up_limit = (old.start - floor).min(new.start);
    let down_limit = (ceiling - old.end).min(side.len() - new.end);
    let up = (0..up_limit)
        .take_while(|k| text[span.start - 1 - k] == text[span.end - 1 - k])
        .count();
    let down = (0..down_limit)
        .take_while(|k| text[span.start + k] == text[span.end + k])
        .count();
    (up, down)
}

#[cfg(test)]
mod tests;
