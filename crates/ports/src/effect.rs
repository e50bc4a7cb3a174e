//! Numbered effects: the points at which the crash harness kills.
//!
//! Every mutating system call and every durable store transaction of the
//! product passes through [`effect`]. Without the feature `faults` that is
//! the call itself. With it, `SANDBAR_CRASH_AT=<n>:before|after` kills the
//! process (SIGKILL to itself) around effect `n` (from 1) and
//! `SANDBAR_EFFECT_LOG=<path>` appends one line an effect: number and name.

/// Performs `call` as one numbered effect called `name`.
#[cfg(not(feature = "faults"))]
#[inline(always)]
pub fn effect<T>(_name: &'static str, call: impl FnOnce() -> T) -> T {
    call()
}

/// Performs `call` as one numbered effect called `name`.
#[cfg(feature = "faults")]
pub fn effect<T>(name: &'static str, call: impl FnOnce() -> T) -> T {
    let number = counted::begin(name);
    counted::point(number, "before");
    let value = call();
    counted::point(number, "after");
    value
}

/// Awaits `call` as one numbered effect called `name`.
#[cfg(not(feature = "faults"))]
#[inline(always)]
pub fn effect_async<F: Future>(_name: &'static str, call: F) -> F {
    call
}

/// Awaits `call` as one numbered effect called `name`.
#[cfg(feature = "faults")]
pub async fn effect_async<F: Future>(name: &'static str, call: F) -> F::Output {
    let number = counted::begin(name);
    counted::point(number, "before");
    let value = call.await;
    counted::point(number, "after");
    value
}

#[cfg(feature = "faults")]
mod counted {
    use std::io::Write as _;
    use std::sync::OnceLock;
    use std::sync::atomic::{AtomicU64, Ordering};

    static NEXT: AtomicU64 = AtomicU64::new(1);

    fn crash_at() -> &'static Option<(u64, String)> {
        static POINT: OnceLock<Option<(u64, String)>> = OnceLock::new();
        POINT.get_or_init(|| {
            let text = std::env::var("SANDBAR_CRASH_AT").ok()?;
            let (number, side) = text.split_once(':')?;
            Some((number.parse().ok()?, side.to_owned()))
        })
    }

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

    pub(super) fn point(number: u64, side: &str) {
        if crash_at()
            .as_ref()
            .is_some_and(|(n, s)| *n == number && s == side)
        {
            let _ = rustix::process::kill_process(
                rustix::process::getpid(),
                rustix::process::Signal::KILL,
            );
            std::process::abort();
        }
    }
}
