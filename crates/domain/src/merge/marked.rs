//! Three-way merge that marks what it cannot decide, for a person to settle
//! in a sandbox. Never for a real tree: that is what [`merge3`](super::merge3)
//! refuses for.

use super::{Hunk, MergeConflict, Texts, are_apart, merge3, refuse_rubbish};

const OURS: &[u8] = b"<<<<<<< sandbar: the plan";
const BASE: &[u8] = b"||||||| sandbar: both started from";
const MIDDLE: &[u8] = b"=======";
const THEIRS: &[u8] = b">>>>>>> sandbar: your tree";

/// Merges `ours` (the plan's) and `theirs` (the real tree's), both made from
/// `base`; where both changed the same or touching lines, all three stand
/// there between markers. What is no text is refused.
pub fn merge3_marked(base: &[u8], ours: &[u8], theirs: &[u8]) -> Result<Vec<u8>, MergeConflict> {
    match merge3(base, ours, theirs) {
        Err(MergeConflict::Overlap) => {}
        other => return other,
    }
    refuse_rubbish([base, ours, theirs])?;
    Texts::new(base, ours, theirs).mark()
}

/// Says whether a text still has markers of [`merge3_marked`].
pub fn has_markers(text: &[u8]) -> bool {
    text.split(|byte| *byte == b'\n')
        .map(|line| line.strip_suffix(b"\r").unwrap_or(line))
        .any(|line| line == OURS || line == THEIRS)
}

/// Differences that belong together: none of them is apart from one of the
/// other side.
#[derive(Default)]
struct Group<'a> {
    sides: [Vec<&'a Hunk<'a>>; 2],
}

impl Group<'_> {
    fn start(&self) -> usize {
        let all = self.sides.iter().flatten();
        all.map(|hunk| hunk.base.start).min().unwrap_or(0)
    }

    fn end(&self) -> usize {
        let all = self.sides.iter().flatten();
        all.map(|hunk| hunk.base.end).max().unwrap_or(0)
    }
}

impl Texts<'_> {
    fn mark(&self) -> Result<Vec<u8>, MergeConflict> {
        self.refuse_far()?;
        let (ours, theirs) = self.hunks();
        let anchors = self.anchors();
        let mut all: Vec<(usize, &Hunk<'_>)> = ours
            .iter()
            .map(|hunk| (0, hunk))
            .chain(theirs.iter().map(|hunk| (1, hunk)))
            .collect();
        all.sort_by_key(|(side, hunk)| (hunk.base.start, hunk.base.end, *side));
        let mut groups: Vec<Group<'_>> = Vec::new();
        for (side, hunk) in all {
            // The first group that reaches here takes all after it along.
            let first = groups.iter().rposition(|group| {
                let others = &group.sides[1 - side];
                others.iter().any(|other| !are_apart(&anchors, hunk, other))
            });
            match first {
                Some(first) => {
                    for later in groups.split_off(first + 1) {
                        for (into, from) in groups[first].sides.iter_mut().zip(later.sides) {
                            into.extend(from);
                        }
                    }
                    groups[first].sides[side].push(hunk);
                }
                None => {
                    let mut group = Group::default();
                    group.sides[side].push(hunk);
                    groups.push(group);
                }
            }
        }
        let mut out = Vec::new();
        let mut at = 0;
        for group in &groups {
            // Differences of one side may have been grouped over others.
            let (from, to) = (group.start().max(at), group.end().max(at));
            self.emit(&mut out, &self.base[at..from]);
            let text = |side: usize| self.side(&group.sides[side], from, to);
            let (ours, theirs) = (text(0), text(1));
            match (group.sides[0].is_empty(), group.sides[1].is_empty()) {
                _ if ours == theirs => self.emit(&mut out, &ours),
                (_, true) => self.emit(&mut out, &ours),
                (true, _) => self.emit(&mut out, &theirs),
                _ => self.block(&mut out, &ours, &self.base[from..to], &theirs),
            }
            at = to;
        }
        self.emit(&mut out, &self.base[at..]);
        Ok(out)
    }

    /// Returns what a side has in the place of some lines of base.
    fn side(&self, hunks: &[&Hunk<'_>], from: usize, to: usize) -> Vec<u32> {
        let (mut out, mut at) = (Vec::new(), from);
        for hunk in hunks {
            out.extend_from_slice(&self.base[at..hunk.base.start.max(at)]);
            out.extend_from_slice(hunk.new);
            at = hunk.base.end.max(at);
        }
        out.extend_from_slice(&self.base[at..to.max(at)]);
        out
    }

    fn block(&self, out: &mut Vec<u8>, ours: &[u32], base: &[u32], theirs: &[u32]) {
        for (marker, lines) in [(OURS, ours), (BASE, base), (MIDDLE, theirs)] {
            line(out, marker);
            self.emit(out, lines);
        }
        line(out, THEIRS);
    }

    fn emit(&self, out: &mut Vec<u8>, lines: &[u32]) {
        for number in lines {
            // Only the last line of a text has no end; it is the last no more.
            end(out);
            out.extend_from_slice(self.line(*number));
        }
    }
}

fn line(out: &mut Vec<u8>, text: &[u8]) {
    end(out);
    out.extend_from_slice(text);
    out.push(b'\n');
}

fn end(out: &mut Vec<u8>) {
    if out.last().is_some_and(|byte| *byte != b'\n') {
        out.push(b'\n');
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn marked(base: &str, ours: &str, theirs: &str) -> String {
        let merged = merge3_marked(base.as_bytes(), ours.as_bytes(), theirs.as_bytes());
        String::from_utf8(merged.expect("texts")).expect("UTF-8")
    }

    #[test]
    fn both_sides_and_what_they_started_from_stand_between_markers() {
        let base = "one\ntwo\nthree\nfour\nfive\nsix\nseven\n";
        let ours = "ONE\ntwo\nthree\nfour\nours\nsix\nseven\n";
        let theirs = "one\ntwo\nthree\nfour\ntheirs\nsix\nSEVEN\n";
        insta::assert_snapshot!(marked(base, ours, theirs), @r"
        ONE
        two
        three
        four
        <<<<<<< sandbar: the plan
        ours
        ||||||| sandbar: both started from
        five
        =======
        theirs
        >>>>>>> sandbar: your tree
        six
        SEVEN
        ");
        insta::assert_snapshot!(marked("", "a", "b"), @r"
        <<<<<<< sandbar: the plan
        a
        ||||||| sandbar: both started from
        =======
        b
        >>>>>>> sandbar: your tree
        ");
        assert!(has_markers(marked("", "a", "b").as_bytes()));
        assert!(has_markers(b"x\n>>>>>>> sandbar: your tree\r\n"));
        assert!(!has_markers(b"<<<<<<< HEAD\n=======\n"));
        let binary = merge3_marked(b"a", b"b\0", b"c\0");
        assert_eq!(binary, Err(MergeConflict::Binary));
    }

    proptest! {
        #[test]
        fn each_line_of_both_sides_is_in_the_result(
            base in "([a-e]\n){0,12}", ours in "([a-h]\n){0,12}", theirs in "([a-h]\n){0,12}"
        ) {
            let bytes = |text: &str| text.as_bytes().to_vec();
            let (b, o, t) = (bytes(&base), bytes(&ours), bytes(&theirs));
            let clean = merge3(&b, &o, &t);
            let marked = merge3_marked(&b, &o, &t).expect("texts");
            match clean {
                Ok(clean) => prop_assert_eq!(clean, marked),
                Err(_) => {
                    prop_assert!(has_markers(&marked), "a conflict is always marked");
                    let marked = String::from_utf8(marked).expect("ASCII");
                    for side in [&ours, &theirs] {
                        for line in side.lines().filter(|line| !base.contains(line)) {
                            prop_assert!(marked.lines().any(|have| have == line), "{}", line);
                        }
                    }
                }
            }
        }
    }
}
