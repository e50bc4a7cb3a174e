//! Time that stands still until told, and ids in a row.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

use sandbar_ports::clock::{Clock, Ids};

/// A clock that a test sets, also backwards. Clones share the time.
#[derive(Debug, Clone, Default)]
pub struct FixedClock(Arc<AtomicI64>);

impl FixedClock {
    /// Starts at a time in milliseconds since 1970.
    pub fn at(ms: i64) -> Self {
        Self(Arc::new(AtomicI64::new(ms)))
    }

    /// Sets the time.
    pub fn set(&self, ms: i64) {
        self.0.store(ms, Ordering::SeqCst);
    }

    /// Moves the time by so many milliseconds.
    pub fn advance(&self, ms: i64) {
        self.0.fetch_add(ms, Ordering::SeqCst);
    }
}

impl Clock for FixedClock {
    fn now_ms(&self) -> i64 {
        self.0.load(Ordering::SeqCst)
    }
}

/// Ids 1, 2, 3, … Clones share the row.
#[derive(Debug, Clone, Default)]
pub struct SeqIds(Arc<AtomicU64>);

impl SeqIds {
    /// Starts at 1.
    pub fn new() -> Self {
        Self::default()
    }
}

impl Ids for SeqIds {
    fn random(&self) -> u128 {
        u128::from(self.0.fetch_add(1, Ordering::SeqCst)) + 1
    }
}
