//! Explicit cancellation: checked between steps, never by dropping a future.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use sandbar_domain::Code;

use crate::error::{PortError, PortResult};

/// A flag that a person's Ctrl-C sets and long operations look at.
#[derive(Debug, Clone, Default)]
pub struct Cancel(Arc<AtomicBool>);

impl Cancel {
    /// Makes a flag that is not set.
    pub fn new() -> Self {
        Self::default()
    }

    /// Asks every holder to stop at the next safe point.
    pub fn cancel(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Says whether it was asked for.
    pub fn is_cancelled(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// Returns an error if it was asked for.
    pub fn check(&self) -> PortResult<()> {
        if self.is_cancelled() {
            return Err(PortError::new(
                Code::Interrupted,
                "finish: interrupted, nothing was changed",
            ));
        }
        Ok(())
    }
}
