//! The bytes in which rules are kept with a sandbox. Versioned; whatever is
//! not exactly this form is refused.

use sandbar_domain::Code;
use sandbar_ports::{PortError, PortResult};

use super::engine::Engine;
use super::patterns::List;
use super::realm::Realm;
use super::tracked::Tracked;

const TAG: &[u8] = b"sandbar.git-rules.v1\0";

/// Encodes rules, ignore files met so far included.
pub(super) fn encode(engine: &Engine) -> Vec<u8> {
    let mut out = TAG.to_vec();
    out.push(u8::from(engine.track_ignored()));
    bytes(&mut out, engine.includes().raw());
    realm(&mut out, engine.root());
    let realms = engine.realms();
    count(&mut out, realms.len());
    for (dir, nested) in realms {
        bytes(&mut out, dir.as_bytes());
        out.push(u8::from(nested.is_some()));
        if let Some(nested) = nested {
            realm(&mut out, &nested);
        }
    }
    let files = engine.files();
    count(&mut out, files.len());
    for (dir, list) in files {
        bytes(&mut out, dir.as_bytes());
        bytes(&mut out, list.raw());
    }
    out
}

/// Decodes what [`encode`] made.
pub(super) fn decode(saved: &[u8]) -> PortResult<Engine> {
    let mut reader = Reader(saved);
    reader
        .engine()
        .filter(|_| reader.0.is_empty())
        .ok_or_else(|| {
            PortError::new(
                Code::CorruptStore,
                "read the saved ignore rules: they are damaged or of another version",
            )
        })
}

fn count(out: &mut Vec<u8>, number: usize) {
    let number = u32::try_from(number).expect("fewer than 2^32 of anything in one tree");
    out.extend_from_slice(&number.to_be_bytes());
}

fn bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    count(out, bytes.len());
    out.extend_from_slice(bytes);
}

fn realm(out: &mut Vec<u8>, realm: &Realm) {
    let Realm {
        prefix,
        tracked,
        exclude,
        user,
        absent,
        folds,
    } = realm;
    bytes(out, prefix.as_bytes());
    out.push(u8::from(*folds));
    bytes(out, exclude.raw());
    bytes(out, user.raw());
    count(out, absent.len());
    for (dir, content) in absent {
        bytes(out, dir.as_bytes());
        bytes(out, content);
    }
    count(out, tracked.len());
    let mut last: &[u8] = &[];
    for (path, gitlink) in tracked.iter() {
        let shared = path.iter().zip(last).take_while(|(a, b)| a == b).count();
        let shared = u16::try_from(shared).unwrap_or(u16::MAX);
        out.extend_from_slice(&shared.to_be_bytes());
        out.push(u8::from(gitlink));
        bytes(out, &path[usize::from(shared)..]);
        last = path;
    }
}

struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let (head, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(head)
    }

    fn flag(&mut self) -> Option<bool> {
        match self.take(1)? {
            [0] => Some(false),
            [1] => Some(true),
            _ => None,
        }
    }

    fn count(&mut self) -> Option<usize> {
        let number = u32::from_be_bytes(self.take(4)?.try_into().ok()?);
        usize::try_from(number).ok()
    }

    fn bytes(&mut self) -> Option<&'a [u8]> {
        let length = self.count()?;
        self.take(length)
    }

    fn text(&mut self) -> Option<String> {
        String::from_utf8(self.bytes()?.to_vec()).ok()
    }

    fn engine(&mut self) -> Option<Engine> {
        (self.take(TAG.len())? == TAG).then_some(())?;
        let track_ignored = self.flag()?;
        let includes = List::parse(self.bytes()?);
        let engine = Engine::new(self.realm()?, includes, track_ignored);
        for _ in 0..self.count()? {
            let dir = self.text()?;
            let realm = if self.flag()? {
                Some(self.realm()?)
            } else {
                None
            };
            engine.recall(realm, &dir);
        }
        for _ in 0..self.count()? {
            let dir = self.text()?;
            engine.enter(&dir, ".gitignore", self.bytes()?);
        }
        Some(engine)
    }

    fn realm(&mut self) -> Option<Realm> {
        let prefix = self.text()?;
        let folds = self.flag()?;
        let exclude = List::parse(self.bytes()?);
        let user = List::parse(self.bytes()?);
        let mut absent = Vec::new();
        for _ in 0..self.count()? {
            absent.push((self.text()?, self.bytes()?.to_vec()));
        }
        let mut tracked = Tracked::default();
        let mut path: Vec<u8> = Vec::new();
        for _ in 0..self.count()? {
            let shared = u16::from_be_bytes(self.take(2)?.try_into().ok()?);
            let gitlink = self.flag()?;
            let rest = self.bytes()?;
            (usize::from(shared) <= path.len()).then_some(())?;
            path.truncate(usize::from(shared));
            path.extend_from_slice(rest);
            tracked.push(&path, gitlink);
        }
        Some(Realm {
            prefix,
            tracked,
            exclude,
            user,
            absent,
            folds,
        })
    }
}
