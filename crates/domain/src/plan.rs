//! The life of a plan: which state may follow which, and why (PLN-1).

/// Where a plan is in its life.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PlanState {
    /// Made, nothing bound yet.
    Draft,
    /// A command or library step is at work.
    Executing,
    /// Waiting for a person: look, go on, apply or discard.
    Review,
    /// An apply is under way.
    Applying,
    /// Everything was brought back.
    Applied,
    /// Some resources were brought back, each listed.
    PartiallyApplied,
    /// Sandbar's own part failed; the sandboxes are kept.
    Failed,
    /// An apply that could be neither completed nor undone.
    NeedsAttention,
    /// Dropped.
    Discarded,
}

/// What happens to a plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PlanEvent {
    /// `run`, `exec`, `shell` or a library step begins.
    Execute,
    /// The command ended, whatever its exit code.
    Finish,
    /// Sandbar's own part of a command failed.
    Break,
    /// Rollback or update begins.
    Rework,
    /// Apply begins.
    Apply,
    /// Apply brought everything back.
    ApplySucceeded,
    /// Apply brought a part back (`--partial`).
    ApplyPartly,
    /// Apply failed and undid what it had done.
    ApplyFailed,
    /// Apply found conflicts and wrote nothing.
    ApplyRefused,
    /// Apply could be neither completed nor undone.
    ApplyStuck,
    /// `undo` took an apply back.
    Undo,
    /// Recovery found an executing plan whose owner is dead.
    OwnerDied,
    /// Dropped by its user.
    Discard,
}

/// An event that the state does not allow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a plan that is {} cannot {}", .state.word(), .event.words())]
pub struct IllegalTransition {
    /// Where the plan is.
    pub state: PlanState,
    /// What was asked.
    pub event: PlanEvent,
}

impl PlanState {
    /// Every state.
    pub const ALL: [Self; 9] = [
        Self::Draft,
        Self::Executing,
        Self::Review,
        Self::Applying,
        Self::Applied,
        Self::PartiallyApplied,
        Self::Failed,
        Self::NeedsAttention,
        Self::Discarded,
    ];

    /// Returns the state that `event` leads to.
    pub fn after(self, event: PlanEvent) -> Result<Self, IllegalTransition> {
        use PlanEvent as E;
        use PlanState as S;
        let next = match (self, event) {
            (S::Draft | S::Review | S::Failed, E::Execute) => S::Executing,
            (S::Review | S::Failed, E::Rework) => S::Executing,
            (S::Executing, E::Finish | E::OwnerDied) => S::Review,
            (S::Executing, E::Break) => S::Failed,
            (S::Review | S::PartiallyApplied | S::Failed, E::Apply) => S::Applying,
            (S::Applying | S::NeedsAttention, E::ApplySucceeded) => S::Applied,
            (S::Applying | S::NeedsAttention, E::ApplyPartly) => S::PartiallyApplied,
            (S::Applying | S::NeedsAttention, E::ApplyFailed) => S::Failed,
            (S::Applying | S::NeedsAttention, E::ApplyRefused) => S::Review,
            (S::Applying, E::ApplyStuck) => S::NeedsAttention,
            (S::Applied | S::PartiallyApplied, E::Undo) => S::Review,
            (state, E::Discard) if state != S::Applying && state != S::Discarded => S::Discarded,
            (state, event) => return Err(IllegalTransition { state, event }),
        };
        Ok(next)
    }

    /// Says whether the plan is over (STR-9): applied or discarded.
    pub fn is_terminal(self) -> bool {
        matches!(self, Self::Applied | Self::Discarded)
    }

    /// Returns the word of the output contract.
    pub fn word(self) -> &'static str {
        match self {
            Self::Draft => "draft",
            Self::Executing => "executing",
            Self::Review => "review",
            Self::Applying => "applying",
            Self::Applied => "applied",
            Self::PartiallyApplied => "partially_applied",
            Self::Failed => "failed",
            Self::NeedsAttention => "needs_attention",
            Self::Discarded => "discarded",
        }
    }

    /// Reads the word back.
    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.word() == word)
    }
}

impl PlanEvent {
    /// Returns the event as it reads after "cannot".
    pub fn words(self) -> &'static str {
        match self {
            Self::Execute => "run a command",
            Self::Finish => "finish a command",
            Self::Break => "break off a command",
            Self::Rework => "be rolled back or updated",
            Self::Apply => "be applied",
            Self::ApplySucceeded
            | Self::ApplyPartly
            | Self::ApplyFailed
            | Self::ApplyRefused
            | Self::ApplyStuck => "end an apply",
            Self::Undo => "be undone",
            Self::OwnerDied => "lose its owner",
            Self::Discard => "be discarded",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_whole_table_is_pinned() {
        use PlanEvent as E;
        let events = [
            E::Execute,
            E::Finish,
            E::Break,
            E::Rework,
            E::Apply,
            E::ApplySucceeded,
            E::ApplyPartly,
            E::ApplyFailed,
            E::ApplyRefused,
            E::ApplyStuck,
            E::Undo,
            E::OwnerDied,
            E::Discard,
        ];
        let mut table = String::new();
        for state in PlanState::ALL {
            assert_eq!(PlanState::from_word(state.word()), Some(state));
            for event in events {
                if let Ok(next) = state.after(event) {
                    table += &format!("{} --{event:?}--> {}\n", state.word(), next.word());
                }
            }
        }
        insta::assert_snapshot!(table);
    }
}
