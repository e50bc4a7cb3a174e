//! What a strategy can do, and the refusal of what it cannot (STR-8).

use sandbar_domain::Code;
use sandbar_domain::resource::{Ability, Strategy};
use sandbar_ports::{PortError, PortResult};

use crate::Sandbar;

impl Sandbar {
    /// Says of each ability whether a strategy has it. Looks at nothing and
    /// changes nothing.
    pub fn abilities(strategy: Strategy) -> Vec<(Ability, bool)> {
        Ability::ALL
            .into_iter()
            .map(|ability| (ability, strategy.can(ability)))
            .collect()
    }
}

/// Refuses what a strategy cannot do, by name. `doing` says what for.
pub(crate) fn demand(strategy: Strategy, ability: Ability, doing: &str) -> PortResult<()> {
    if strategy.can(ability) {
        return Ok(());
    }
    let message = format!(
        "{doing}: the strategy {} has no {}",
        strategy.word(),
        ability.word()
    );
    Err(PortError::new(Code::MissingCapability, message))
}
