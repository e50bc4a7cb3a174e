//! Counts effects, and kills or fails the one that a harness asked for. Built
//! for harnesses only, and never part of a release.

use std::error::Error;
use std::io::Write as _;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};

use rustix::io::Errno;
use sandbar_domain::Code;

use crate::PortError;

/// An error that a fault plan can make out of the kernel's.
pub trait Injected {
    /// Makes the error that a failed call would have been.
    fn injected(errno: Errno) -> Self;
}

impl Injected for Errno {
    fn injected(errno: Errno) -> Self {
        errno
    }
}

impl Injected for std::io::Error {
    fn injected(errno: Errno) -> Self {
        errno.into()
    }
}

impl Injected for PortError {
    fn injected(errno: Errno) -> Self {
        let code = match errno {
            Errno::NOSPC => Code::NoSpace,
            Errno::ACCESS => Code::PermissionDenied,
            Errno::ROFS => Code::ReadOnly,
            _ => Code::Io,
        };
        let error = std::io::Error::from(errno);
        let message = format!("perform an effect: {error} (injected)");
        let boxed: Box<dyn Error + Send + Sync> = Box::new(error);
        Self::new(code, message).with_source(boxed)
    }
}

/// How far a fault goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reach {
    /// One effect.
    Once,
    /// This one and every later one of its name (`persistent`).
    Kind,
    /// Every effect from this one on, as if the disk were gone (`gone`).
    All,
    /// One effect, which is done and then reported as failed (`late`).
    Late,
}

/// Which effect fails, and how.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fault {
    /// The first effect, from 1.
    pub number: u64,
    /// What the kernel says.
    pub errno: Errno,
    /// How far it goes on.
    pub reach: Reach,
}

impl Fault {
    /// Reads `<n>:<errno name>[:persistent|gone|late]`.
    pub fn parse(text: &str) -> Option<Self> {
        let mut words = text.split(':');
        let number = words.next()?.parse().ok()?;
        let errno = match words.next()? {
            "EIO" => Errno::IO,
            "ENOSPC" => Errno::NOSPC,
            "EACCES" => Errno::ACCESS,
            "EROFS" => Errno::ROFS,
            "EMFILE" => Errno::MFILE,
            "EXDEV" => Errno::XDEV,
            "EINTR" => Errno::INTR,
            _ => return None,
        };
        let reach = match words.next() {
            None => Reach::Once,
            Some("persistent") => Reach::Kind,
            Some("gone") => Reach::All,
            Some("late") => Reach::Late,
            Some(_) => return None,
        };
        Some(Self {
            number,
            errno,
            reach,
        })
    }
}

/// One failure that is due.
pub(super) struct Failure {
    pub(super) errno: Errno,
    /// Whether the call is made all the same.
    pub(super) late: bool,
}

struct Plan {
    fault: Option<Fault>,
    /// The name of the effect that failed first.
    struck: Option<&'static str>,
}

static NEXT: AtomicU64 = AtomicU64::new(1);

fn plan() -> &'static Mutex<Plan> {
    static PLAN: OnceLock<Mutex<Plan>> = OnceLock::new();
    PLAN.get_or_init(|| {
        let text = std::env::var("SANDBAR_FAULT").ok();
        let fault = text.map(|text| {
            Fault::parse(&text)
                .expect("SANDBAR_FAULT is set by a harness, which knows how to write it")
        });
        Mutex::new(Plan {
            fault,
            struck: None,
        })
    })
}

/// Sets or lifts the fault of this process, for harnesses that use the
/// library.
pub fn inject(fault: Option<Fault>) {
    let mut plan = plan().lock().unwrap_or_else(PoisonError::into_inner);
    *plan = Plan {
        fault,
        struck: None,
    };
}

/// Starts to count at 1 again.
pub fn restart() {
    NEXT.store(1, Ordering::SeqCst);
}

/// Returns how many effects there were.
pub fn count() -> u64 {
    NEXT.load(Ordering::SeqCst) - 1
}

/// Returns how an effect is to fail, if it is.
pub(super) fn fault(number: u64, name: &'static str) -> Option<Failure> {
    let mut plan = plan().lock().unwrap_or_else(PoisonError::into_inner);
    let fault = plan.fault?;
    let due = match fault.reach {
        Reach::Once | Reach::Late => number == fault.number,
        Reach::All => number >= fault.number,
        Reach::Kind => {
            if number == fault.number {
                plan.struck = Some(name);
            }
            number >= fault.number && plan.struck == Some(name)
        }
    };
    due.then_some(Failure {
        errno: fault.errno,
        late: fault.reach == Reach::Late,
    })
}

fn crash_at() -> &'static Option<(u64, String)> {
    static POINT: OnceLock<Option<(u64, String)>> = OnceLock::new();
    POINT.get_or_init(|| {
        let text = std::env::var("SANDBAR_CRASH_AT").ok()?;
        let (number, side) = text.split_once(':')?;
        Some((number.parse().ok()?, side.to_owned()))
    })
}

/// Takes the next number.
pub(super) fn begin(name: &str) -> u64 {
    let number = NEXT.fetch_add(1, Ordering::SeqCst);
    if let Some(path) = std::env::var_os("SANDBAR_EFFECT_LOG") {
        #[allow(
            clippy::disallowed_methods,
            reason = "the log of the harness, not product data"
        )]
        let file = std::fs::OpenOptions::new()
            .append(true)
            .create(true)
            .open(path);
        if let Ok(mut file) = file {
            let _ = writeln!(file, "{number} {name}");
        }
    }
    number
}

/// Kills the process if this is the point.
pub(super) fn point(number: u64, side: &str) {
    if crash_at()
        .as_ref()
        .is_some_and(|(n, s)| *n == number && s == side)
    {
        let _ =
            rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL);
        std::process::abort();
    }
}

/// Says whether a known bug is switched on.
pub(super) fn planted(name: &str) -> bool {
    static NAME: OnceLock<Option<String>> = OnceLock::new();
    NAME.get_or_init(|| std::env::var("SANDBAR_PLANTED").ok())
        .as_deref()
        == Some(name)
}
