//! Numbered effects: the points at which the harnesses kill and make fail.
//!
//! Every mutating system call and every durable store transaction of the
//! product passes through [`effect`]. Without the feature `faults` that is
//! the call itself, and nothing else in this module does anything. With it:
//!
//! - `SANDBAR_EFFECT_LOG=<path>` appends one line an effect: number and name;
//! - `SANDBAR_CRASH_AT=<n>:before|after` kills the process (SIGKILL to itself)
//!   around effect `n` (from 1);
//! - `SANDBAR_FAULT=<n>:<errno name>[:<reach>]` makes effect `n` fail without
//!   its call; see `Reach` for how far it goes on;
//! - `SANDBAR_PLANTED=<name>` switches on one known bug, see [`planted`].

#[cfg(feature = "faults")]
mod counted;
#[cfg(feature = "faults")]
pub use counted::{Fault, Injected, Reach, count, inject, restart};
#[cfg(feature = "faults")]
pub use rustix::io::Errno;

/// Performs `call` as one numbered effect called `name`.
#[cfg(not(feature = "faults"))]
#[inline(always)]
pub fn effect<T, E>(_name: &'static str, call: impl FnOnce() -> Result<T, E>) -> Result<T, E> {
    call()
}

/// Performs `call` as one numbered effect called `name`.
#[cfg(feature = "faults")]
pub fn effect<T, E: Injected>(
    name: &'static str,
    call: impl FnOnce() -> Result<T, E>,
) -> Result<T, E> {
    let number = counted::begin(name);
    counted::point(number, "before");
    let value = match counted::fault(number, name) {
        Some(failure) if failure.late => call().and(Err(E::injected(failure.errno))),
        Some(failure) => Err(E::injected(failure.errno)),
        None => call(),
    };
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
pub async fn effect_async<T, E: Injected>(
    name: &'static str,
    call: impl Future<Output = Result<T, E>>,
) -> Result<T, E> {
    let number = counted::begin(name);
    counted::point(number, "before");
    let value = match counted::fault(number, name) {
        Some(failure) if failure.late => call.await.and(Err(E::injected(failure.errno))),
        Some(failure) => Err(E::injected(failure.errno)),
        None => call.await,
    };
    counted::point(number, "after");
    value
}

/// Says whether the known bug `name` is switched on: a harness that does not
/// notice it proves nothing. Never in a build without the feature `faults`.
#[cfg(not(feature = "faults"))]
#[inline(always)]
pub const fn planted(_name: &'static str) -> bool {
    false
}

/// Says whether the known bug `name` is switched on: a harness that does not
/// notice it proves nothing. Never in a build without the feature `faults`.
#[cfg(feature = "faults")]
pub fn planted(name: &'static str) -> bool {
    counted::planted(name)
}
