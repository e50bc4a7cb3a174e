//! The system's clock and randomness.

use std::time::UNIX_EPOCH;

use sandbar_ports::clock::{Clock, Ids};

/// The system's clock.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now_ms(&self) -> i64 {
        #[allow(clippy::disallowed_methods, reason = "this is the clock adapter")]
        let now = std::time::SystemTime::now();
        now.duration_since(UNIX_EPOCH)
            .ok()
            .and_then(|since| i64::try_from(since.as_millis()).ok())
            .unwrap_or(0)
    }
}

/// The system's randomness.
#[derive(Debug, Clone, Copy, Default)]
pub struct RandomIds;

impl Ids for RandomIds {
    fn random(&self) -> u128 {
        let mut bytes = [0; 16];
        getrandom::fill(&mut bytes).expect("the kernel always has random bytes");
        u128::from_ne_bytes(bytes)
    }
}
