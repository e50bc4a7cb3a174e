//! The journal of operations that change real resources (APL-5, APL-9).
//!
//! A row names a hashed list of operations; how far they came is read from
//! the targets, not from the row, so that 50,000 paths cost a constant number
//! of transactions.

/// What a journal entry does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum JournalKind {
    /// Brings a plan's result to the real resource.
    Apply,
    /// Takes an apply back.
    Undo,
}

impl JournalKind {
    /// Returns the stored word.
    pub fn word(self) -> &'static str {
        match self {
            Self::Apply => "apply",
            Self::Undo => "undo",
        }
    }

    /// Reads the word back.
    pub fn from_word(word: &str) -> Option<Self> {
        [Self::Apply, Self::Undo]
            .into_iter()
            .find(|kind| kind.word() == word)
    }
}

/// How far an entry is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Phase {
    /// Staging: invisible; a crash sweeps it (presumed aborted).
    Staging,
    /// The intent is durable: a crash is rolled forward.
    Decided,
    /// A failure after the intent: a crash is rolled back.
    Undoing,
    /// Over: all new.
    Done,
    /// Over: all old.
    Aborted,
    /// Parked: neither completed nor undone.
    NeedsAttention,
}

impl Phase {
    /// Every phase.
    pub const ALL: [Self; 6] = [
        Self::Staging,
        Self::Decided,
        Self::Undoing,
        Self::Done,
        Self::Aborted,
        Self::NeedsAttention,
    ];

    /// Returns the stored word.
    pub fn word(self) -> &'static str {
        match self {
            Self::Staging => "staging",
            Self::Decided => "decided",
            Self::Undoing => "undoing",
            Self::Done => "done",
            Self::Aborted => "aborted",
            Self::NeedsAttention => "needs_attention",
        }
    }

    /// Reads the word back.
    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|phase| phase.word() == word)
    }

    /// Says whether recovery has something to do.
    pub fn is_open(self) -> bool {
        !matches!(self, Self::Done | Self::Aborted)
    }

    /// Says whether `next` may follow.
    pub fn allows(self, next: Self) -> bool {
        matches!(
            (self, next),
            (Self::Staging, Self::Decided | Self::Aborted)
                | (
                    Self::Decided,
                    Self::Done | Self::Undoing | Self::NeedsAttention
                )
                | (Self::Undoing, Self::Aborted | Self::NeedsAttention)
                | (
                    Self::NeedsAttention,
                    Self::Done | Self::Undoing | Self::Aborted
                )
        )
    }

    /// Returns what recovery does with an entry in this phase.
    pub fn recovery(self) -> Recovery {
        match self {
            Self::Staging => Recovery::Sweep,
            Self::Decided => Recovery::RollForward,
            // It got stuck while it was taken back: that is what goes on.
            Self::Undoing | Self::NeedsAttention => Recovery::RollBack,
            Self::Done | Self::Aborted => Recovery::Nothing,
        }
    }
}

/// What recovery does with an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Recovery {
    /// Remove what was staged.
    Sweep,
    /// Complete it.
    RollForward,
    /// Take back what was done.
    RollBack,
    /// It is over.
    Nothing,
}
