//! What the caller and the supervisor say to each other over their socket.
//!
//! Downwards: one order, then one byte a signal to forward. Upwards: reports.
//! Bytes of any value pass; a length that makes no sense is refused, so that
//! a hand-made `__enter` call ends in an error and nothing else.

use std::ffi::{OsStr, OsString};
use std::io::{self, Read, Write};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::PathBuf;

/// No message is longer: far above the kernel's limit on arguments.
const LIMIT: usize = 64 << 20;

/// What the supervisor is told to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Order {
    pub(crate) aim: Aim,
    pub(crate) real: PathBuf,
    pub(crate) sandbox: PathBuf,
    pub(crate) subdir: PathBuf,
    pub(crate) binds: Vec<(PathBuf, PathBuf)>,
    pub(crate) hidden: Vec<PathBuf>,
    pub(crate) argv: Vec<OsString>,
    pub(crate) environment: Vec<(OsString, OsString)>,
    pub(crate) stdout_to_stderr: bool,
}

/// How far to go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Aim {
    /// Run the command in the in-place view.
    InPlace,
    /// Run the command in the sandbox's own directory.
    Plain,
    /// Make the in-place view, look whether it is right, and run nothing.
    Probe,
}

/// Why a command could not be started.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FailureKind {
    /// The program does not exist or cannot be executed.
    Command,
    /// The view cannot be had.
    View,
    /// The sandbox is not there.
    Gone,
    /// Anything else.
    Other,
}

/// A failure before anything ran: kind and a lower-case fragment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Failure {
    pub(crate) kind: FailureKind,
    pub(crate) text: String,
}

impl Failure {
    pub(crate) fn new(kind: FailureKind, text: impl Into<String>) -> Self {
        Self {
            kind,
            text: text.into(),
        }
    }
}

/// What the supervisor reports.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Report {
    /// The command runs (or, for a probe, the view is right).
    Started,
    /// It could not be started.
    Failed(Failure),
    /// The command alone was stopped from the terminal.
    Stopped,
    /// The command ended with this code, after so many interrupts from the
    /// terminal; what it left was stopped.
    Ended(u8, u8, Vec<(u32, String)>),
}

fn bad(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}

/// Reads one message; `None` at a clean end of the stream.
pub(crate) fn receive(stream: &mut impl Read) -> io::Result<Option<Vec<u8>>> {
    let mut head = [0; 4];
    let mut have = 0;
    while have < head.len() {
        match stream.read(&mut head[have..]) {
            Ok(0) if have == 0 => return Ok(None),
            Ok(0) => return Err(bad("the message is cut off")),
            Ok(count) => have += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    let length = u32::from_be_bytes(head) as usize;
    if length > LIMIT {
        return Err(bad("the message is too long"));
    }
    let mut body = Vec::new();
    stream.take(length as u64).read_to_end(&mut body)?;
    if body.len() < length {
        return Err(bad("the message is cut off"));
    }
    Ok(Some(body))
}

/// Writes one message.
pub(crate) fn send(stream: &mut impl Write, body: &[u8]) -> io::Result<()> {
    let length = u32::try_from(body.len())
        .ok()
        .filter(|_| body.len() <= LIMIT)
        .ok_or_else(|| bad("the message is too long"))?;
    let mut whole = Vec::with_capacity(body.len() + 4);
    whole.extend_from_slice(&length.to_be_bytes());
    whole.extend_from_slice(body);
    stream.write_all(&whole)
}

#[derive(Default)]
struct Writer(Vec<u8>);

impl Writer {
    fn number(&mut self, value: usize) {
        let value = u32::try_from(value).expect("arguments and environments have under 2^32 bytes");
        self.0.extend_from_slice(&value.to_be_bytes());
    }

    fn bytes(&mut self, bytes: impl AsRef<OsStr>) {
        let bytes = bytes.as_ref().as_bytes();
        self.number(bytes.len());
        self.0.extend_from_slice(bytes);
    }

    fn list<A: AsRef<OsStr>>(&mut self, items: &[A]) {
        self.number(items.len());
        for item in items {
            self.bytes(item);
        }
    }

    fn pairs<A: AsRef<OsStr>>(&mut self, items: &[(A, A)]) {
        self.number(items.len());
        for (left, right) in items {
            self.bytes(left);
            self.bytes(right);
        }
    }
}

struct Reader<'a>(&'a [u8]);

impl Reader<'_> {
    fn byte(&mut self) -> io::Result<u8> {
        let (&byte, rest) = self.0.split_first().ok_or_else(|| bad("cut off"))?;
        self.0 = rest;
        Ok(byte)
    }

    fn number(&mut self) -> io::Result<usize> {
        let (head, rest) = self
            .0
            .split_first_chunk::<4>()
            .ok_or_else(|| bad("cut off"))?;
        self.0 = rest;
        Ok(u32::from_be_bytes(*head) as usize)
    }

    fn bytes(&mut self) -> io::Result<OsString> {
        let length = self.number()?;
        let (head, rest) = self
            .0
            .split_at_checked(length)
            .ok_or_else(|| bad("cut off"))?;
        self.0 = rest;
        Ok(OsString::from_vec(head.to_vec()))
    }

    fn list<A: From<OsString>>(&mut self) -> io::Result<Vec<A>> {
        let count = self.number()?;
        (0..count).map(|_| Ok(self.bytes()?.into())).collect()
    }

    fn pairs<A: From<OsString>>(&mut self) -> io::Result<Vec<(A, A)>> {
        let count = self.number()?;
        (0..count)
            .map(|_| Ok((self.bytes()?.into(), self.bytes()?.into())))
            .collect()
    }

    fn end<T>(self, value: T) -> io::Result<T> {
        if self.0.is_empty() {
            Ok(value)
        } else {
            Err(bad("bytes left over"))
        }
    }
}

impl Order {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut out = Writer::default();
        out.0.push(match self.aim {
            Aim::InPlace => b'i',
            Aim::Plain => b'p',
            Aim::Probe => b'?',
        });
        out.0.push(u8::from(self.stdout_to_stderr));
        for path in [&self.real, &self.sandbox, &self.subdir] {
            out.bytes(path);
        }
        out.pairs(&self.binds);
        out.list(&self.hidden);
        out.list(&self.argv);
        out.pairs(&self.environment);
        out.0
    }

    pub(crate) fn decode(bytes: &[u8]) -> io::Result<Self> {
        let mut reader = Reader(bytes);
        let aim = match reader.byte()? {
            b'i' => Aim::InPlace,
            b'p' => Aim::Plain,
            b'?' => Aim::Probe,
            _ => return Err(bad("not an order")),
        };
        let order = Self {
            aim,
            stdout_to_stderr: reader.byte()? != 0,
            real: reader.bytes()?.into(),
            sandbox: reader.bytes()?.into(),
            subdir: reader.bytes()?.into(),
            binds: reader.pairs()?,
            hidden: reader.list()?,
            argv: reader.list()?,
            environment: reader.pairs()?,
        };
        reader.end(order)
    }
}

impl Report {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut out = Writer::default();
        match self {
            Self::Started => out.0.push(b'S'),
            Self::Stopped => out.0.push(b'T'),
            Self::Failed(Failure { kind, text }) => {
                out.0.push(b'F');
                out.0.push(match kind {
                    FailureKind::Command => b'c',
                    FailureKind::View => b'v',
                    FailureKind::Gone => b'g',
                    FailureKind::Other => b'o',
                });
                out.bytes(text);
            }
            Self::Ended(code, interrupts, left) => {
                out.0.extend_from_slice(&[b'E', *code, *interrupts]);
                out.number(left.len());
                for (pid, name) in left {
                    out.number(*pid as usize);
                    out.bytes(name);
                }
            }
        }
        out.0
    }

    pub(crate) fn decode(bytes: &[u8]) -> io::Result<Self> {
        let text = |bytes: OsString| bytes.to_string_lossy().into_owned();
        let mut reader = Reader(bytes);
        let report = match reader.byte()? {
            b'S' => Self::Started,
            b'T' => Self::Stopped,
            b'F' => {
                let kind = match reader.byte()? {
                    b'c' => FailureKind::Command,
                    b'v' => FailureKind::View,
                    b'g' => FailureKind::Gone,
                    b'o' => FailureKind::Other,
                    _ => return Err(bad("not a report")),
                };
                Self::Failed(Failure::new(kind, text(reader.bytes()?)))
            }
            b'E' => {
                let (code, interrupts) = (reader.byte()?, reader.byte()?);
                let count = reader.number()?;
                let left = (0..count)
                    .map(|_| {
                        let pid = u32::try_from(reader.number()?).map_err(|_| bad("not a pid"))?;
                        Ok((pid, text(reader.bytes()?)))
                    })
                    .collect::<io::Result<_>>()?;
                Self::Ended(code, interrupts, left)
            }
            _ => return Err(bad("not a report")),
        };
        reader.end(report)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order() -> Order {
        let odd = OsString::from_vec(vec![0xff, b'\n', b'=', 0x80]);
        Order {
            aim: Aim::InPlace,
            real: PathBuf::from(odd.clone()),
            sandbox: "/s".into(),
            subdir: "".into(),
            binds: vec![("/a".into(), odd.clone().into())],
            hidden: vec!["/x".into()],
            argv: vec!["".into(), odd.clone()],
            environment: vec![("A".into(), odd)],
            stdout_to_stderr: true,
        }
    }

    #[test]
    fn an_order_survives_and_every_cut_is_refused() {
        let bytes = order().encode();
        assert_eq!(Order::decode(&bytes).expect("whole"), order());
        for cut in 0..bytes.len() {
            assert!(Order::decode(&bytes[..cut]).is_err(), "cut at {cut}");
        }
        assert!(Order::decode(&[bytes, vec![0]].concat()).is_err());
    }

    #[test]
    fn reports_survive_and_every_cut_is_refused() {
        for report in [
            Report::Started,
            Report::Stopped,
            Report::Failed(Failure::new(FailureKind::View, "unshare: not permitted")),
            Report::Ended(143, 2, vec![(7, "sleep".into()), (9, "ä b".into())]),
        ] {
            let bytes = report.encode();
            assert_eq!(Report::decode(&bytes).expect("whole"), report);
            for cut in 0..bytes.len() {
                assert!(
                    Report::decode(&bytes[..cut]).is_err(),
                    "{report:?} cut at {cut}"
                );
            }
        }
    }

    #[test]
    fn frames_end_cleanly_or_not_at_all() {
        let mut stream = Vec::new();
        send(&mut stream, b"one").expect("fits");
        send(&mut stream, b"").expect("fits");
        let mut reader = &stream[..];
        assert_eq!(receive(&mut reader).expect("whole"), Some(b"one".to_vec()));
        assert_eq!(receive(&mut reader).expect("whole"), Some(Vec::new()));
        assert_eq!(receive(&mut reader).expect("end"), None);
        assert!(receive(&mut &stream[..5]).is_err());
        assert!(receive(&mut &[0xff; 9][..]).is_err());
    }
}
