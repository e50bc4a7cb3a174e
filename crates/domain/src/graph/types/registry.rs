//! The registry itself: built-in types, users' types, settings over types.

use std::collections::HashMap;

use super::builtin::{self, ALONE, PHYSICAL, VIRTUAL};
use super::definition::{BadDefinition, Definition, check, check_name};
use super::{DefaultPolicy, Kind, Protocol, Scope, Scopes, Strategies, Type, TypeId};
use crate::graph::capability::Capabilities;
use crate::graph::policy::{Policy, PolicySource, Strategy};

/// Types by name, with the policies that the configuration gives them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Registry {
    types: Vec<Type>,
    by_name: HashMap<String, TypeId>,
    configured: HashMap<TypeId, Policy>,
    setting: Option<Policy>,
    resolved: Vec<Resolved>,
}

/// The policy of resources of a type that say nothing themselves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::graph) struct Resolved {
    pub(in crate::graph) policy: Policy,
    pub(in crate::graph) source: PolicySource,
    pub(in crate::graph) inherits_inside: bool,
}

/// A setting that does not fit the types.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadSetting {
    /// No such type.
    #[error("no type {0:?}")]
    UnknownType(String),
    /// A strategy that cannot isolate the type.
    #[error("{type_name} cannot be isolated by {}", .strategy.word())]
    Unsupported {
        /// The type.
        type_name: String,
        /// The strategy.
        strategy: Strategy,
    },
    /// `inherit` is no setting for all types.
    #[error("sandbox.strategy names a strategy, or none")]
    NotAStrategy,
}

impl Registry {
    /// Returns the built-in and shipped types.
    pub fn builtin() -> Self {
        let mut registry = Self {
            types: Vec::new(),
            by_name: HashMap::new(),
            configured: HashMap::new(),
            setting: None,
            resolved: Vec::new(),
        };
        for name in VIRTUAL {
            registry.push(virtual_type(name));
        }
        for row in PHYSICAL {
            registry.push(bare(row.name));
        }
        for row in PHYSICAL {
            let id = registry.find(row.name).expect("it was pushed above");
            registry.types[usize::from(id.0)] = registry.physical(row);
        }
        registry
            .define(&builtin::shipped())
            .expect("the shipped definitions are tested");
        registry
    }

    /// Adds users' types, which may name each other. Errors: the first bad
    /// definition, with field and reason (RES-3); then nothing was added.
    pub fn define(&mut self, definitions: &[Definition]) -> Result<(), BadDefinition> {
        let mut next = self.clone();
        let bad = |name: &str, reason: &str| BadDefinition {
            name: name.to_owned(),
            field: "name",
            reason: reason.to_owned(),
        };
        for definition in definitions {
            let name = definition.name.as_str();
            if let Some(reason) = check_name(name) {
                return Err(bad(name, reason));
            }
            if next.by_name.contains_key(name) {
                return Err(bad(name, "a type of that name exists"));
            }
            if next.types.len() >= usize::from(u16::MAX) {
                return Err(bad(name, "there are too many types"));
            }
            next.push(bare(name));
        }
        for definition in definitions {
            let checked = check(&next, definition)?;
            let id = next.by_name[&definition.name];
            next.types[usize::from(id.0)] = checked;
        }
        next.resolve();
        *self = next;
        Ok(())
    }

    /// Sets the policy of a type, as the configuration does (RES-2).
    pub fn configure(&mut self, type_name: &str, policy: Policy) -> Result<(), BadSetting> {
        let id = self
            .find(type_name)
            .ok_or_else(|| BadSetting::UnknownType(type_name.to_owned()))?;
        if let Some(strategy) = self.unsupported(id, policy) {
            return Err(BadSetting::Unsupported {
                type_name: type_name.to_owned(),
                strategy,
            });
        }
        self.configured.insert(id, policy);
        self.resolve();
        Ok(())
    }

    /// Sets `sandbox.strategy` where a person said it explicitly: it holds for
    /// the types that have sandboxes of their own and support it (RES-2).
    pub fn set_strategy(&mut self, setting: Option<Policy>) -> Result<(), BadSetting> {
        if setting == Some(Policy::Inherit) {
            return Err(BadSetting::NotAStrategy);
        }
        self.setting = setting;
        self.resolve();
        Ok(())
    }

    /// Finds a type by name.
    pub fn find(&self, name: &str) -> Option<TypeId> {
        self.by_name.get(name).copied()
    }

    /// Returns what is known about a type.
    pub fn get(&self, id: TypeId) -> &Type {
        &self.types[usize::from(id.0)]
    }

    /// Iterates over all types, built-in ones first.
    pub fn iter(&self) -> impl Iterator<Item = (TypeId, &Type)> {
        (0u16..).map(TypeId).zip(&self.types)
    }

    /// Counts the types.
    pub fn len(&self) -> usize {
        self.types.len()
    }

    /// Says whether there is none, which never holds.
    pub fn is_empty(&self) -> bool {
        self.types.is_empty()
    }

    /// Says whether a type may contain another.
    pub fn may_contain(&self, parent: TypeId, child: TypeId) -> bool {
        self.get(parent).children.contains(&child)
    }

    /// Returns the strategy of a policy that cannot isolate the type.
    pub(in crate::graph) fn unsupported(&self, id: TypeId, policy: Policy) -> Option<Strategy> {
        match policy {
            Policy::Own(strategy) if !self.get(id).strategies.has(strategy) => Some(strategy),
            _ => None,
        }
    }

    pub(in crate::graph) fn resolved(&self, id: TypeId) -> Resolved {
        self.resolved[usize::from(id.0)]
    }

    pub(super) fn kind(&self, id: TypeId) -> Kind {
        self.get(id).kind
    }

    fn push(&mut self, new: Type) {
        let id = TypeId(u16::try_from(self.types.len()).expect("the number was checked"));
        self.by_name.insert(new.name.clone(), id);
        self.types.push(new);
    }

    fn physical(&self, row: &builtin::Row) -> Type {
        let alone = row.policy == ALONE;
        let policy = if alone {
            Policy::Own(Strategy::CopyOnWrite)
        } else {
            Policy::from_word(row.policy).expect("a word of the table")
        };
        let own = match policy {
            Policy::Own(strategy) => Some(strategy),
            _ => None,
        };
        let listed = row.strategies.split_whitespace();
        let strategies: Vec<_> = listed.filter_map(Strategy::from_word).chain(own).collect();
        let scopes: Vec<_> = row
            .scopes
            .split_whitespace()
            .filter_map(Scope::from_word)
            .collect();
        let letters = ["R", "W", "S", "C"].into_iter().zip([
            Capabilities::READABLE,
            Capabilities::WRITABLE,
            Capabilities::SANDBOXABLE,
            Capabilities::CHECKPOINTABLE,
        ]);
        let capabilities = letters
            .filter(|(letter, _)| row.capabilities.contains(letter))
            .fold(Capabilities::NONE, |all, (_, one)| all.with(one));
        Type {
            name: row.name.to_owned(),
            kind: Kind::Physical,
            policy: DefaultPolicy {
                policy,
                inherits_inside: alone,
            },
            strategies: Strategies::of(&strategies),
            capabilities,
            children: row
                .children
                .split_whitespace()
                .map(|child| self.find(child).expect("a name of the table"))
                .collect(),
            scopes: Scopes::of(&scopes),
            protocol: Protocol::from_word(row.protocol).expect("a word of the table"),
            richness: row.richness,
            equivalence: self.find(row.equivalence),
        }
    }

    fn resolve(&mut self) {
        let each = self.iter().map(|(id, of)| {
            if let Some(policy) = self.configured.get(&id) {
                return Resolved {
                    policy: *policy,
                    source: PolicySource::TypeConfiguration,
                    inherits_inside: false,
                };
            }
            let DefaultPolicy {
                policy,
                inherits_inside,
            } = of.policy;
            let supported = |setting: &Policy| {
                matches!(policy, Policy::Own(_)) && self.unsupported(id, *setting).is_none()
            };
            match self.setting.filter(supported) {
                Some(policy) => Resolved {
                    policy,
                    source: PolicySource::Setting,
                    inherits_inside,
                },
                None => Resolved {
                    policy,
                    source: PolicySource::TypeDefault,
                    inherits_inside,
                },
            }
        });
        self.resolved = each.collect();
    }
}

/// A name whose other fields are still to come.
fn bare(name: &str) -> Type {
    Type {
        kind: Kind::Physical,
        ..virtual_type(name)
    }
}

fn virtual_type(name: &str) -> Type {
    Type {
        name: name.to_owned(),
        kind: Kind::Virtual,
        policy: DefaultPolicy {
            policy: Policy::Inherit,
            inherits_inside: false,
        },
        strategies: Strategies::default(),
        capabilities: Capabilities::READABLE.with(Capabilities::WRITABLE),
        children: Vec::new(),
        scopes: Scopes::NONE,
        protocol: Protocol::Filesystem,
        richness: 0,
        equivalence: None,
    }
}
