//! Time and new names. The only source of both.

use sandbar_domain::{CheckpointId, JournalId, PlanId, ResourceId, SandboxId};

/// The current time; may go back.
pub trait Clock: Send + Sync {
    /// Milliseconds since 1970, UTC.
    fn now_ms(&self) -> i64;
}

/// New ids.
pub trait Ids: Send + Sync {
    /// 128 random bits, of which an id takes 80.
    fn random(&self) -> u128;
}

/// Makes ids from a clock and a source of randomness.
pub struct Names<'a>(pub &'a dyn Clock, pub &'a dyn Ids);

impl Names<'_> {
    fn parts(&self) -> (u64, u128) {
        (u64::try_from(self.0.now_ms()).unwrap_or(0), self.1.random())
    }

    /// Names a plan.
    pub fn plan(&self) -> PlanId {
        let (time, random) = self.parts();
        PlanId::from_parts(time, random)
    }

    /// Names a sandbox.
    pub fn sandbox(&self) -> SandboxId {
        let (time, random) = self.parts();
        SandboxId::from_parts(time, random)
    }

    /// Names a checkpoint.
    pub fn checkpoint(&self) -> CheckpointId {
        let (time, random) = self.parts();
        CheckpointId::from_parts(time, random)
    }

    /// Names a resource.
    pub fn resource(&self) -> ResourceId {
        let (time, random) = self.parts();
        ResourceId::from_parts(time, random)
    }

    /// Names a journal entry.
    pub fn journal(&self) -> JournalId {
        let (time, random) = self.parts();
        JournalId::from_parts(time, random)
    }
}
