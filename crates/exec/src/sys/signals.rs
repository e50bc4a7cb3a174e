//! Signal dispositions: the caller's while it waits, the supervisor's, and
//! what a command gets back.
//!
//! A handler that only counts is used where a terminal program would ignore
//! a signal: unlike "ignored" it does not survive an exec, so that a command
//! starts with what the caller had in the beginning, `nohup` included.

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, FromRawFd as _, OwnedFd};
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU32, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::Signal;

const QUIET: [libc::c_int; 2] = [libc::SIGINT, libc::SIGQUIT];
const FORWARDED: [libc::c_int; 2] = [libc::SIGTERM, libc::SIGHUP];

/// Concurrent commands of one process; far above what a machine can bear.
const SLOTS: usize = 256;

/// How long an interrupt may take from one member of a group to the next.
const LATE: Duration = Duration::from_millis(100);

/// Where a handler leaves signals for one waiting thread. The descriptor is
/// made once and never closed, so that a late handler cannot hit another.
struct Slot {
    active: AtomicBool,
    wake: AtomicI32,
    pending: [AtomicU32; FORWARDED.len()],
}

static TABLE: [Slot; SLOTS] = [const {
    Slot {
        active: AtomicBool::new(false),
        wake: AtomicI32::new(-1),
        pending: [const { AtomicU32::new(0) }; FORWARDED.len()],
    }
}; SLOTS];

struct Installed {
    users: usize,
    before: Vec<(libc::c_int, libc::sigaction)>,
}

static INSTALLED: Mutex<Installed> = Mutex::new(Installed {
    users: 0,
    before: Vec::new(),
});

/// How many times this process got an interrupt since its handlers stand.
static INTERRUPTS: AtomicU32 = AtomicU32::new(0);

extern "C" fn count(_signal: libc::c_int) {
    INTERRUPTS.fetch_add(1, Ordering::SeqCst);
    for slot in &TABLE {
        if slot.active.load(Ordering::SeqCst) {
            wake(slot);
        }
    }
}

/// Wakes the thread of a slot; may be called from a handler.
fn wake(slot: &Slot) {
    let one = 1_u64;
    // SAFETY: an eventfd takes eight bytes; `write` may be called from a
    // handler, and a full counter only says EAGAIN. errno belongs to this
    // thread, which a handler interrupts, and is put back.
    unsafe {
        let errno = *libc::__errno_location();
        libc::write(slot.wake.load(Ordering::SeqCst), (&raw const one).cast(), 8);
        *libc::__errno_location() = errno;
    }
}

/// Returns how many interrupts this process got since its handlers stand.
pub(crate) fn interrupts() -> u8 {
    u8::try_from(INTERRUPTS.load(Ordering::SeqCst)).unwrap_or(u8::MAX)
}

extern "C" fn note(signal: libc::c_int, info: *mut libc::siginfo_t, _context: *mut libc::c_void) {
    // SAFETY: the kernel passes a valid record to a handler installed with
    // SA_SIGINFO.
    let code = unsafe { (*info).si_code };
    // From the kernel (a terminal that hangs up): the whole group has it.
    if code > 0 {
        return;
    }
    let Some(index) = FORWARDED.iter().position(|&other| other == signal) else {
        return;
    };
    for slot in &TABLE {
        if slot.active.load(Ordering::SeqCst) {
            slot.pending[index].fetch_add(1, Ordering::SeqCst);
            wake(slot);
        }
    }
}

fn action(handler: libc::sighandler_t, flags: libc::c_int) -> libc::sigaction {
    // SAFETY: an all-zero record is valid; the mask is emptied as required.
    let mut record: libc::sigaction = unsafe { MaybeUninit::zeroed().assume_init() };
    record.sa_sigaction = handler;
    record.sa_flags = flags;
    // SAFETY: the mask is a valid set.
    unsafe { libc::sigemptyset(&raw mut record.sa_mask) };
    record
}

fn set_action(signal: libc::c_int, new: &libc::sigaction) -> libc::sigaction {
    let mut old = MaybeUninit::zeroed();
    // SAFETY: both records are valid; it fails only for a bad signal number,
    // and these are constants. The handlers are async-signal-safe.
    unsafe {
        libc::sigaction(signal, new, old.as_mut_ptr());
        old.assume_init()
    }
}

fn quiet() -> libc::sigaction {
    let handler: extern "C" fn(libc::c_int) = count;
    action(handler as libc::sighandler_t, libc::SA_RESTART)
}

fn noting() -> libc::sigaction {
    let handler: extern "C" fn(libc::c_int, *mut libc::siginfo_t, *mut libc::c_void) = note;
    action(
        handler as libc::sighandler_t,
        libc::SA_RESTART | libc::SA_SIGINFO,
    )
}

/// Installs `new` unless the signal was ignored, and remembers what was there.
fn replace(signal: libc::c_int, new: &libc::sigaction) -> Option<(libc::c_int, libc::sigaction)> {
    let old = set_action(signal, new);
    if old.sa_sigaction == libc::SIG_IGN {
        set_action(signal, &old);
        return None;
    }
    Some((signal, old))
}

/// Held by a caller while it waits for a command: INT and QUIT do nothing
/// to it, TERM and HUP are noted for forwarding. Dropped: all as before.
pub(crate) struct Watch {
    slot: usize,
    /// The interrupts before.
    before: u32,
}

impl Watch {
    /// Takes a slot and, as the first, installs the handlers.
    pub(crate) fn begin() -> io::Result<Self> {
        let mut installed = INSTALLED.lock().unwrap_or_else(PoisonError::into_inner);
        let free = TABLE
            .iter()
            .position(|slot| !slot.active.load(Ordering::SeqCst));
        let index = free.ok_or_else(|| io::Error::other("too many commands at once"))?;
        let slot = &TABLE[index];
        if slot.wake.load(Ordering::SeqCst) < 0 {
            // SAFETY: no preconditions; the descriptor lives for ever.
            let wake = unsafe { libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK) };
            if wake < 0 {
                return Err(io::Error::last_os_error());
            }
            slot.wake.store(wake, Ordering::SeqCst);
        }
        for count in &slot.pending {
            count.store(0, Ordering::SeqCst);
        }
        slot.active.store(true, Ordering::SeqCst);
        if installed.users == 0 {
            let (quiet, noting) = (quiet(), noting());
            installed.before = QUIET
                .iter()
                .filter_map(|&signal| replace(signal, &quiet))
                .chain(
                    FORWARDED
                        .iter()
                        .filter_map(|&signal| replace(signal, &noting)),
                )
                .collect();
        }
        installed.users += 1;
        let before = INTERRUPTS.load(Ordering::SeqCst);
        Ok(Self {
            slot: index,
            before,
        })
    }

    /// Returns the signals that arrived since the last call.
    pub(crate) fn take(&self) -> Vec<u8> {
        let slot = &TABLE[self.slot];
        self.clear();
        FORWARDED
            .iter()
            .zip(&slot.pending)
            .filter(|(_, count)| count.swap(0, Ordering::SeqCst) > 0)
            .map(|(&signal, _)| u8::try_from(signal).expect("signal numbers are small"))
            .collect()
    }
}

impl Watch {
    /// Waits a little for interrupts that the group got and this process not
    /// yet: they are the command's, and must not hit what is done next.
    pub(crate) fn await_interrupts(&self, count: u8) {
        let end = Instant::now() + LATE;
        loop {
            let seen = INTERRUPTS.load(Ordering::SeqCst).wrapping_sub(self.before);
            let rest = end.saturating_duration_since(Instant::now());
            if seen >= u32::from(count) || rest.is_zero() {
                return;
            }
            let limit = Timespec::try_from(rest).ok();
            let mut fds = [PollFd::from_borrowed_fd(self.as_fd(), PollFlags::IN)];
            // Woken early or not, the count decides.
            let _ = poll(&mut fds, limit.as_ref());
            self.clear();
        }
    }

    fn clear(&self) {
        let mut count = 0_u64;
        // SAFETY: an eventfd gives eight bytes, or EAGAIN.
        unsafe {
            libc::read(
                TABLE[self.slot].wake.load(Ordering::SeqCst),
                (&raw mut count).cast(),
                8,
            )
        };
    }
}

impl AsFd for Watch {
    fn as_fd(&self) -> BorrowedFd<'_> {
        // SAFETY: the descriptor of a slot in use is open for ever.
        unsafe { BorrowedFd::borrow_raw(TABLE[self.slot].wake.load(Ordering::SeqCst)) }
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        let mut installed = INSTALLED.lock().unwrap_or_else(PoisonError::into_inner);
        installed.users -= 1;
        if installed.users == 0 {
            for (signal, old) in installed.before.drain(..) {
                set_action(signal, &old);
            }
        }
        TABLE[self.slot].active.store(false, Ordering::SeqCst);
    }
}

fn set_of(signals: &[libc::c_int]) -> libc::sigset_t {
    let mut set = MaybeUninit::uninit();
    // SAFETY: `sigemptyset` initialises the set; the numbers are valid.
    unsafe {
        libc::sigemptyset(set.as_mut_ptr());
        for &signal in signals {
            libc::sigaddset(set.as_mut_ptr(), signal);
        }
        set.assume_init()
    }
}

fn set_mask(how: libc::c_int, set: &libc::sigset_t) -> libc::sigset_t {
    let mut old = MaybeUninit::zeroed();
    // SAFETY: both sets are valid; it fails only for a bad `how`.
    unsafe {
        libc::pthread_sigmask(how, set, old.as_mut_ptr());
        old.assume_init()
    }
}

/// The signals of a supervisor. Between [`Supervision::hold`] and the moment
/// when each side has its dispositions nothing is lost: all are blocked.
pub(crate) struct Supervision(OwnedFd);

impl Supervision {
    /// Blocks what concerns us and opens a descriptor that tells of children.
    pub(crate) fn hold() -> io::Result<Self> {
        // An inherited "ignored" would let children vanish unreaped.
        set_action(libc::SIGCHLD, &action(libc::SIG_DFL, 0));
        let signals = [&QUIET[..], &FORWARDED, &[libc::SIGCHLD]].concat();
        set_mask(libc::SIG_BLOCK, &set_of(&signals));
        let children = set_of(&[libc::SIGCHLD]);
        // SAFETY: the set is valid; the descriptor returned is ours.
        unsafe {
            match libc::signalfd(
                -1,
                &raw const children,
                libc::SFD_CLOEXEC | libc::SFD_NONBLOCK,
            ) {
                -1 => Err(io::Error::last_os_error()),
                fd => Ok(Self(OwnedFd::from_raw_fd(fd))),
            }
        }
    }

    /// The supervisor's side of the fork: nothing from the terminal or from a
    /// person ends it before it has cleaned up; the caller tells it what to do.
    pub(crate) fn settle(&self) {
        let quiet = quiet();
        for signal in QUIET.into_iter().chain(FORWARDED) {
            replace(signal, &quiet);
        }
        set_mask(
            libc::SIG_UNBLOCK,
            &set_of(&[&QUIET[..], &FORWARDED].concat()),
        );
    }

    /// The command's side of the fork: nothing blocked, and SIGPIPE, which
    /// the Rust runtime ignores, back at its default.
    pub(crate) fn release() {
        set_action(libc::SIGPIPE, &action(libc::SIG_DFL, 0));
        set_mask(libc::SIG_SETMASK, &set_of(&[]));
    }

    /// Empties the descriptor.
    pub(crate) fn drain(&self) {
        let mut buffer = [0_u8; 1024];
        while rustix::io::read(&self.0, &mut buffer).is_ok_and(|count| count > 0) {}
    }
}

impl AsFd for Supervision {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// Does `work` with the signal held back that stops a background process
/// which touches the terminal.
pub(crate) fn allowing_terminal_output<T>(work: impl FnOnce() -> T) -> T {
    let stop = set_of(&[Signal::TTOU.as_raw()]);
    let old = set_mask(libc::SIG_BLOCK, &stop);
    let value = work();
    set_mask(libc::SIG_SETMASK, &old);
    value
}
