//! Names of things: ULIDs, one type each. They order nothing; "newest" comes
//! from sequence numbers of the store, since clocks go back.

use std::fmt;
use std::str::FromStr;

use ulid::Ulid;

/// A text that is not a ULID.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("an id is a ULID of 26 characters")]
pub struct BadId;

macro_rules! id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(Ulid);

        impl $name {
            /// Makes an id from a time in milliseconds since 1970 and 80 random bits.
            pub const fn from_parts(milliseconds: u64, random: u128) -> Self {
                Self(Ulid::from_parts(milliseconds, random))
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(&self.0, f)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(&self.0, f)
            }
        }

        impl FromStr for $name {
            type Err = BadId;

            fn from_str(text: &str) -> Result<Self, BadId> {
                Ulid::from_string(text).map(Self).map_err(|_| BadId)
            }
        }
    };
}

id! {
    /// Names a plan: one task of one agent.
    PlanId
}
id! {
    /// Names a sandbox: a plan's private copy of one boundary (SBX-6).
    SandboxId
}
id! {
    /// Names a checkpoint.
    CheckpointId
}
id! {
    /// Names a resource (RES-1).
    ResourceId
}
id! {
    /// Names a journal entry.
    JournalId
}
