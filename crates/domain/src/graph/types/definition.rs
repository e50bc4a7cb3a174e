//! A user's definition of a type, and what is refused in one (RES-3).

use super::registry::Registry;
use super::{DefaultPolicy, Kind, Protocol, Scope, Scopes, Strategies, Type, TypeId};
use crate::error::Code;
use crate::graph::capability::Capabilities;
use crate::graph::policy::{Policy, Strategy};

/// A type as a person writes it. Lists hold names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Definition {
    /// Lower-case letters, digits and single hyphens, at most 64.
    pub name: String,
    /// `physical`; identity functions of virtual types cannot be configured.
    pub kind: String,
    /// `inherit`, `none` or `own(strategy)`.
    pub policy: String,
    /// Strategies that can isolate it, beside that of the policy.
    pub strategies: Vec<String>,
    /// `readable`, `writable`, `sandboxable`, `checkpointable`.
    pub capabilities: Vec<String>,
    /// Types it may contain; others of the same configuration included.
    pub children: Vec<String>,
    /// Checkpoint scopes.
    pub scopes: Vec<String>,
    /// The protocol it is reached by.
    pub protocol: String,
    /// 0 to 255, but not 5, which is kept for semantic indexes.
    pub richness: i64,
    /// A virtual type.
    pub equivalence: Option<String>,
}

/// A definition that was refused: which type, which field, and why.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("type {name}: {field}: {reason}")]
pub struct BadDefinition {
    /// The type's name as written.
    pub name: String,
    /// The field.
    pub field: &'static str,
    /// What is wrong with it.
    pub reason: String,
}

impl BadDefinition {
    /// Returns the code of the closed list: types come from configuration.
    pub fn code(&self) -> Code {
        Code::BadConfig
    }
}

/// The richness kept for semantic indexes.
const RESERVED_RICHNESS: i64 = 5;
const MAX_NAME: usize = 64;

/// Checks a definition against a registry that knows every name already.
pub(super) fn check(registry: &Registry, definition: &Definition) -> Result<Type, BadDefinition> {
    let Definition {
        name,
        kind,
        policy,
        strategies,
        capabilities,
        children,
        scopes,
        protocol,
        richness,
        equivalence,
    } = definition;
    let bad = |field: &'static str, reason: String| BadDefinition {
        name: name.clone(),
        field,
        reason,
    };
    if kind != "physical" {
        let reason = match kind.as_str() {
            "virtual" => "only built-in types are virtual".to_owned(),
            other => format!("no kind {other:?}; it is physical"),
        };
        return Err(bad("kind", reason));
    }
    let capabilities = fold(capabilities, Capabilities::NONE, |all, word| {
        Some(all.with(Capabilities::from_word(word)?))
    })
    .map_err(|word| bad("capabilities", format!("no capability {word:?}")))?;
    let policy = Policy::from_word(policy).ok_or_else(|| {
        let reason = format!("{policy:?} is none of inherit, none, own(strategy)");
        bad("policy", reason)
    })?;
    let mut isolating: Vec<Strategy> = strategies
        .iter()
        .map(|word| {
            Strategy::from_word(word)
                .ok_or_else(|| bad("strategies", format!("no strategy {word:?}")))
        })
        .collect::<Result<_, _>>()?;
    if let Policy::Own(strategy) = policy {
        isolating.push(strategy);
    }
    if !isolating.is_empty() && !capabilities.has(Capabilities::SANDBOXABLE) {
        let field = if matches!(policy, Policy::Own(_)) {
            "policy"
        } else {
            "strategies"
        };
        return Err(bad(
            field,
            "a sandbox needs the capability sandboxable".to_owned(),
        ));
    }
    let children = children
        .iter()
        .map(|child| match registry.find(child) {
            None => Err(bad("children", format!("no type {child:?}"))),
            Some(id) if registry.kind(id) == Kind::Virtual => Err(bad(
                "children",
                format!("{child} is virtual and is never contained"),
            )),
            Some(id) => Ok(id),
        })
        .collect::<Result<Vec<TypeId>, _>>()?;
    if (1..children.len()).any(|at| children[..at].contains(&children[at])) {
        return Err(bad("children", "a type is named twice".to_owned()));
    }
    let scopes = scopes
        .iter()
        .map(|word| {
            Scope::from_word(word).ok_or_else(|| bad("scopes", format!("no scope {word:?}")))
        })
        .collect::<Result<Vec<_>, _>>()?;
    if scopes.is_empty() == capabilities.has(Capabilities::CHECKPOINTABLE) {
        let reason = "scopes and the capability checkpointable go together";
        return Err(bad("scopes", reason.to_owned()));
    }
    let protocol = Protocol::from_word(protocol)
        .ok_or_else(|| bad("protocol", format!("no protocol {protocol:?}")))?;
    let richness = match u8::try_from(*richness) {
        Ok(_) if *richness == RESERVED_RICHNESS => {
            return Err(bad("richness", "5 is kept for semantic indexes".to_owned()));
        }
        Ok(richness) => richness,
        Err(_) => {
            return Err(bad(
                "richness",
                format!("{richness} is not within 0 and 255"),
            ));
        }
    };
    let equivalence = equivalence
        .as_ref()
        .map(|virtual_type| match registry.find(virtual_type) {
            Some(id) if registry.kind(id) == Kind::Virtual => Ok(id),
            Some(_) => Err(bad("equivalence", format!("{virtual_type} is not virtual"))),
            None => Err(bad("equivalence", format!("no type {virtual_type:?}"))),
        })
        .transpose()?;
    Ok(Type {
        name: name.clone(),
        kind: Kind::Physical,
        policy: DefaultPolicy {
            policy,
            inherits_inside: false,
        },
        strategies: Strategies::of(&isolating),
        capabilities,
        children,
        scopes: Scopes::of(&scopes),
        protocol,
        richness,
        equivalence,
    })
}

/// Returns what is wrong with a name by itself.
pub(super) fn check_name(name: &str) -> Option<&'static str> {
    let ends = |hyphen: char| name.starts_with(hyphen) || name.ends_with(hyphen);
    let allowed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    if name.is_empty() {
        Some("it is empty")
    } else if name.len() > MAX_NAME {
        Some("it is longer than 64 characters")
    } else if !name.chars().all(allowed) || ends('-') || name.contains("--") {
        Some("it is not of lower-case letters, digits and single hyphens between them")
    } else {
        None
    }
}

fn fold<T>(
    words: &[String],
    start: T,
    mut add: impl FnMut(T, &str) -> Option<T>,
) -> Result<T, &str> {
    let mut all = start;
    for word in words {
        all = add(all, word).ok_or(word.as_str())?;
    }
    Ok(all)
}
