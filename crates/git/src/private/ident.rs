//! The `ident` attribute as git expands it, which differs from what gix does
//! by a blank and by what is expanded already. Pure.

use gix::ObjectId;
use gix::bstr::ByteSlice as _;

/// Replaces `$Id$` and `$Id: old $` by `$Id: id $`; what another system
/// expanded (blanks within) and what is cut by a line end stays.
pub(super) fn expand(stored: &[u8], id: ObjectId) -> Vec<u8> {
    let mut out = Vec::with_capacity(stored.len() + 48);
    let mut rest = stored;
    while let Some(at) = rest.find(b"$Id") {
        let (before, found) = rest.split_at(at + 1);
        out.extend_from_slice(before);
        match length(found) {
            Some(length) => {
                out.extend_from_slice(format!("Id: {id} $").as_bytes());
                rest = &found[length..];
            }
            None => rest = found,
        }
    }
    out.extend_from_slice(rest);
    out
}

/// The bytes from `Id` to the second dollar, where git would expand them.
fn length(found: &[u8]) -> Option<usize> {
    let tail = &found[2..];
    match tail.first()? {
        b'$' => Some(3),
        b':' => {
            let end = tail.find_byteset(b"$\n")?;
            let blank = tail[..end].iter().skip(2).position(|byte| *byte == b' ');
            let foreign = blank.is_some_and(|blank| blank + 2 < end - 1);
            (tail[end] == b'$' && !foreign).then_some(end + 3)
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::expand;

    #[test]
    fn only_what_git_expands_is_expanded() {
        let id = gix::ObjectId::empty_blob(gix::hash::Kind::Sha1);
        let new = format!("$Id: {id} $");
        for (stored, expanded) in [
            ("$Id$", new.clone()),
            ("a $Id$ b\n$Id$\n", format!("a {new} b\n{new}\n")),
            ("$Id: 123 $", new.clone()),
            ("$Id:123$", new.clone()),
            ("$Id:$", new.clone()),
            ("$$Id$$", format!("${new}$")),
            ("$Id: a.c,v 1.2 x $", "$Id: a.c,v 1.2 x $".to_owned()),
            ("$Id: cut\n$", "$Id: cut\n$".to_owned()),
            ("$Id: open", "$Id: open".to_owned()),
            ("$Idle$ $I", "$Idle$ $I".to_owned()),
        ] {
            let found = String::from_utf8(expand(stored.as_bytes(), id)).expect("text");
            assert_eq!(found, expanded, "{stored:?}");
        }
    }
}
