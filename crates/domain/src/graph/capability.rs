//! What can be done with a resource, as four bits (RES-1).

use std::fmt;

/// Readable, writable, sandboxable, checkpointable.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Capabilities(u8);

impl Capabilities {
    /// None of them.
    pub const NONE: Self = Self(0);
    /// Content can be read.
    pub const READABLE: Self = Self(1);
    /// Content can be changed.
    pub const WRITABLE: Self = Self(2);
    /// A private copy of it can be made.
    pub const SANDBOXABLE: Self = Self(4);
    /// Its state can be saved and restored.
    pub const CHECKPOINTABLE: Self = Self(8);

    const LETTERS: [(Self, char, &'static str); 4] = [
        (Self::READABLE, 'R', "readable"),
        (Self::WRITABLE, 'W', "writable"),
        (Self::SANDBOXABLE, 'S', "sandboxable"),
        (Self::CHECKPOINTABLE, 'C', "checkpointable"),
    ];

    /// Returns these and `other`.
    #[must_use]
    pub const fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Says whether every capability of `other` is among these.
    pub const fn has(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// Reads the name of one capability.
    pub fn from_word(word: &str) -> Option<Self> {
        let found = Self::LETTERS.iter().find(|(_, _, name)| *name == word);
        found.map(|(capability, _, _)| *capability)
    }

    /// Returns the names of those that are set.
    pub fn words(self) -> impl Iterator<Item = &'static str> {
        Self::LETTERS
            .into_iter()
            .filter(move |(capability, _, _)| self.has(*capability))
            .map(|(_, _, name)| name)
    }

    pub(super) const fn bits(self) -> u8 {
        self.0
    }

    pub(super) const fn from_bits(bits: u8) -> Self {
        Self(bits & 15)
    }
}

impl fmt::Display for Capabilities {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (capability, letter, _) in Self::LETTERS {
            let shown = if self.has(capability) { letter } else { '-' };
            write!(f, "{shown}")?;
        }
        Ok(())
    }
}

impl fmt::Debug for Capabilities {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Where one resource differs from the capabilities of its type.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct CapabilityChanges {
    /// Readable or not, whatever the type says.
    pub readable: Option<bool>,
    /// Writable or not, whatever the type says.
    pub writable: Option<bool>,
    /// Sandboxable or not, whatever the type says.
    pub sandboxable: Option<bool>,
    /// Checkpointable or not, whatever the type says.
    pub checkpointable: Option<bool>,
}

impl CapabilityChanges {
    /// Returns the capabilities that result from those of the type.
    pub fn over(self, of_type: Capabilities) -> Capabilities {
        let Self {
            readable,
            writable,
            sandboxable,
            checkpointable,
        } = self;
        [
            (readable, Capabilities::READABLE),
            (writable, Capabilities::WRITABLE),
            (sandboxable, Capabilities::SANDBOXABLE),
            (checkpointable, Capabilities::CHECKPOINTABLE),
        ]
        .into_iter()
        .fold(of_type, |all, (change, one)| match change {
            None => all,
            Some(true) => all.with(one),
            Some(false) => Capabilities(all.0 & !one.0),
        })
    }
}
