//! Tools, their slots, and what a slot is bound to (RCH-1).
//!
//! Binding happens at activation; reach, projection and routes are computed
//! when they are used.

use std::collections::HashMap;

use super::arena::{Graph, Node};
use super::boundary::NotHere;
use super::rows::Plan;
use super::types::{Registry, Scope, TypeId};
use crate::error::Code;
use crate::id::ResourceId;

/// What a slot does with what it is bound to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Access {
    /// It reads.
    ReadOnly,
    /// It reads and writes.
    ReadWrite,
    /// It writes.
    WriteOnly,
}

impl Access {
    /// Says whether it reads.
    pub fn reads(self) -> bool {
        self != Self::WriteOnly
    }

    /// Says whether it writes.
    pub fn writes(self) -> bool {
        self != Self::ReadOnly
    }
}

/// What a read asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum QueryKind {
    /// Meaning: types, references, diagnostics.
    Semantic,
    /// Plain content.
    Content,
    /// Earlier states.
    History,
}

impl QueryKind {
    /// Every kind.
    pub const ALL: [Self; 3] = [Self::Semantic, Self::Content, Self::History];

    /// Returns the name.
    pub fn word(self) -> &'static str {
        match self {
            Self::Semantic => "semantic",
            Self::Content => "content",
            Self::History => "history",
        }
    }

    /// Reads the name back.
    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|one| one.word() == word)
    }
}

/// A set of query kinds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct QueryKinds(u8);

impl QueryKinds {
    /// Returns the set of these.
    pub fn of(kinds: &[QueryKind]) -> Self {
        Self(kinds.iter().fold(0, |all, one| all | 1 << *one as u8))
    }

    /// Says whether it holds `kind`.
    pub fn has(self, kind: QueryKind) -> bool {
        self.0 & 1 << kind as u8 != 0
    }
}

/// How a slot finds its resource.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum BindingMode {
    /// The plan's one matching resource.
    Contextual,
    /// The resource of this name or id.
    Static(String),
    /// Given at the call.
    Parameter,
}

/// A place of a tool for one resource.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Slot {
    /// Its name, unique in the tool.
    pub name: String,
    /// The names of the types it takes.
    pub accepts: Vec<String>,
    /// What it does with it.
    pub access: Access,
    /// Whether what it does can be taken back by a checkpoint.
    pub checkpointable: bool,
    /// How much a checkpoint for it takes.
    pub checkpoint_scope: Option<Scope>,
    /// How its work is taken back, in the tool's own words.
    pub rollback: String,
    /// What its reads can answer.
    pub queries: QueryKinds,
    /// How much its reads tell, where that is not the type's figure.
    pub richness: Option<u8>,
    /// How it finds its resource.
    pub binding: BindingMode,
}

/// A tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tool {
    /// Its name, unique.
    pub name: String,
    /// Its slots.
    pub slots: Vec<Slot>,
}

/// One slot of a toolbox, by position.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Bind {
    /// The tool.
    pub tool: u32,
    /// The slot.
    pub slot: u32,
}

/// A slot and what it is bound to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Binding {
    /// The slot.
    pub slot: Bind,
    /// The resource.
    pub resource: Node,
}

/// Tools, found by the types that they take.
#[derive(Debug, Clone)]
pub struct Toolbox {
    tools: Vec<Tool>,
    by_type: HashMap<TypeId, Vec<Bind>>,
}

/// Why a tool could not be taken in or bound.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BindRefusal {
    /// A tool or slot name that comes twice.
    #[error("{0} comes twice")]
    Twice(String),
    /// A slot that takes a type that is not known.
    #[error("slot {slot} takes {type_name:?}, which is not known")]
    UnknownType {
        /// `tool.slot`.
        slot: String,
        /// The type.
        type_name: String,
    },
    /// A slot with a scope but no checkpoints, or the other way round.
    #[error("slot {0}: checkpointable and a checkpoint scope go together")]
    ScopeWithoutCheckpoint(String),
    /// No such tool.
    #[error("no tool {0}")]
    NoTool(String),
    /// A parameter for a slot that takes none.
    #[error("tool {tool} takes no parameter {slot}")]
    NoParameter {
        /// The tool.
        tool: String,
        /// The parameter.
        slot: String,
    },
    /// Nothing fits.
    #[error("nothing fits slot {slot}, which takes {}", .accepts.join(", "))]
    NoMatch {
        /// `tool.slot`.
        slot: String,
        /// The types it takes.
        accepts: Vec<String>,
    },
    /// More than one fits.
    #[error("several resources fit slot {slot}: {}", list(.candidates))]
    Several {
        /// `tool.slot`.
        slot: String,
        /// All that fit, by id.
        candidates: Vec<ResourceId>,
    },
    /// A parameter of a wrong type.
    #[error("slot {slot} does not take {type_name} {resource}")]
    WrongType {
        /// `tool.slot`.
        slot: String,
        /// The resource.
        resource: ResourceId,
        /// Its type.
        type_name: String,
    },
    /// A resource that does not exist.
    #[error("slot {slot}: no resource {resource}")]
    NoResource {
        /// `tool.slot`.
        slot: String,
        /// The id.
        resource: ResourceId,
    },
    /// No boundary can take checkpoints of the slot's scope (SBX-5).
    #[error("slot {slot}: no boundary of {resource} takes {} checkpoints", .scope.word())]
    Scope {
        /// `tool.slot`.
        slot: String,
        /// The resource.
        resource: ResourceId,
        /// The scope.
        scope: Scope,
        /// The boundaries that cannot, nearest first.
        skipped: Vec<(ResourceId, NotHere)>,
    },
    /// The plan requires checkpoints, and the slot writes without (CKP-5).
    #[error("slot {0} cannot take checkpoints, which the plan requires")]
    NotCheckpointable(String),
}

impl BindRefusal {
    /// Returns the code of the closed list.
    pub fn code(&self) -> Code {
        match self {
            Self::NoTool(_) | Self::NoResource { .. } => Code::ResourceNotFound,
            Self::Several { .. } => Code::AmbiguousResource,
            Self::Twice(_) | Self::UnknownType { .. } | Self::ScopeWithoutCheckpoint(_) => {
                Code::BadConfig
            }
            Self::NoParameter { .. } | Self::WrongType { .. } => Code::Usage,
            Self::NoMatch { .. } | Self::Scope { .. } | Self::NotCheckpointable(_) => {
                Code::BindingRefused
            }
        }
    }
}

fn list(ids: &[ResourceId]) -> String {
    let words: Vec<_> = ids.iter().map(ResourceId::to_string).collect();
    words.join(", ")
}

impl Toolbox {
    /// Takes tools in. Errors: unknown types, names that come twice, scopes
    /// without checkpoints.
    pub fn new(registry: &Registry, tools: Vec<Tool>) -> Result<Self, BindRefusal> {
        let mut by_type: HashMap<TypeId, Vec<Bind>> = HashMap::new();
        for (at, tool) in (0u32..).zip(&tools) {
            if tools[..at as usize].iter().any(|one| one.name == tool.name) {
                return Err(BindRefusal::Twice(format!("tool {}", tool.name)));
            }
            for (number, slot) in (0u32..).zip(&tool.slots) {
                let name = format!("{}.{}", tool.name, slot.name);
                let before = &tool.slots[..number as usize];
                if before.iter().any(|one| one.name == slot.name) {
                    return Err(BindRefusal::Twice(format!("slot {name}")));
                }
                if slot.checkpointable != slot.checkpoint_scope.is_some() {
                    return Err(BindRefusal::ScopeWithoutCheckpoint(name));
                }
                for type_name in &slot.accepts {
                    let Some(kind) = registry.find(type_name) else {
                        return Err(BindRefusal::UnknownType {
                            slot: name,
                            type_name: type_name.clone(),
                        });
                    };
                    let list = by_type.entry(kind).or_default();
                    let bind = Bind {
                        tool: at,
                        slot: number,
                    };
                    if !list.contains(&bind) {
                        list.push(bind);
                    }
                }
            }
        }
        Ok(Self { tools, by_type })
    }

    /// Returns the tools.
    pub fn tools(&self) -> &[Tool] {
        &self.tools
    }

    /// Returns a tool.
    pub fn tool(&self, bind: Bind) -> &Tool {
        &self.tools[bind.tool as usize]
    }

    /// Returns a slot.
    pub fn slot(&self, bind: Bind) -> &Slot {
        &self.tool(bind).slots[bind.slot as usize]
    }

    /// Finds a slot by names.
    pub fn find(&self, tool: &str, slot: &str) -> Option<Bind> {
        let at = self.tools.iter().position(|one| one.name == tool)?;
        let slots = &self.tools[at].slots;
        let number = slots.iter().position(|one| one.name == slot)?;
        Some(Bind {
            tool: u32::try_from(at).ok()?,
            slot: u32::try_from(number).ok()?,
        })
    }

    /// Returns the slots that take a type.
    pub(super) fn taking(&self, kind: TypeId) -> &[Bind] {
        self.by_type.get(&kind).map_or(&[], Vec::as_slice)
    }

    /// Says whether a slot could be bound to a resource of a type it takes: a
    /// static one to what it names, a contextual one to what the plan links.
    pub(super) fn may_bind(
        &self,
        graph: &Graph,
        plan: Option<&Plan>,
        bind: Bind,
        node: Node,
    ) -> bool {
        match &self.slot(bind).binding {
            BindingMode::Parameter => true,
            BindingMode::Static(name) => is_called(graph, node, name),
            BindingMode::Contextual => plan.is_none() || graph.linked(plan).contains(&node),
        }
    }

    /// Binds every slot of a tool for a plan. `given` are the parameters, by
    /// slot name. Errors: see [`BindRefusal`]; the first slot that fails.
    pub fn bind(
        &self,
        graph: &Graph,
        plan: &Plan,
        tool: &str,
        given: &[(&str, ResourceId)],
    ) -> Result<Vec<Binding>, BindRefusal> {
        let at = self.tools.iter().position(|one| one.name == tool);
        let at = at.ok_or_else(|| BindRefusal::NoTool(tool.to_owned()))?;
        let found = &self.tools[at];
        let takes =
            |slot: &Slot, name: &str| slot.name == name && slot.binding == BindingMode::Parameter;
        for (name, _) in given {
            if !found.slots.iter().any(|slot| takes(slot, name)) {
                return Err(BindRefusal::NoParameter {
                    tool: tool.to_owned(),
                    slot: (*name).to_owned(),
                });
            }
        }
        let slots = (0u32..).zip(&found.slots);
        slots
            .map(|(number, slot)| {
                let name = format!("{tool}.{}", slot.name);
                let resource = self.candidate(graph, plan, &name, slot, given)?;
                self.check_checkpoints(graph, plan, name, slot, resource)?;
                Ok(Binding {
                    slot: Bind {
                        tool: u32::try_from(at).expect("positions were counted in 32 bits"),
                        slot: number,
                    },
                    resource,
                })
            })
            .collect()
    }

    fn candidate(
        &self,
        graph: &Graph,
        plan: &Plan,
        name: &str,
        slot: &Slot,
        given: &[(&str, ResourceId)],
    ) -> Result<Node, BindRefusal> {
        let fits = |node: &Node| {
            let type_name = graph.see(*node).type_name();
            slot.accepts.iter().any(|one| one == type_name)
        };
        let mut candidates: Vec<Node> = match &slot.binding {
            BindingMode::Contextual => graph.linked(Some(plan)).into_iter().filter(fits).collect(),
            BindingMode::Static(wanted) => graph.called(wanted).into_iter().filter(fits).collect(),
            BindingMode::Parameter => {
                let Some((_, id)) = given.iter().find(|(given, _)| *given == slot.name) else {
                    return Err(no_match(name, slot));
                };
                let node = graph.node(*id).ok_or_else(|| BindRefusal::NoResource {
                    slot: name.to_owned(),
                    resource: *id,
                })?;
                if !fits(&node) {
                    return Err(BindRefusal::WrongType {
                        slot: name.to_owned(),
                        resource: *id,
                        type_name: graph.see(node).type_name().to_owned(),
                    });
                }
                vec![node]
            }
        };
        match candidates.as_slice() {
            [] => Err(no_match(name, slot)),
            [one] => Ok(*one),
            _ => {
                candidates.sort_unstable_by_key(|node| graph.id(*node));
                Err(BindRefusal::Several {
                    slot: name.to_owned(),
                    candidates: candidates.iter().map(|node| graph.id(*node)).collect(),
                })
            }
        }
    }

    fn check_checkpoints(
        &self,
        graph: &Graph,
        plan: &Plan,
        name: String,
        slot: &Slot,
        resource: Node,
    ) -> Result<(), BindRefusal> {
        let Some(scope) = slot.checkpoint_scope else {
            return if plan.require_checkpoints && slot.access.writes() {
                Err(BindRefusal::NotCheckpointable(name))
            } else {
                Ok(())
            };
        };
        let answer = graph.checkpoint_boundary(resource, scope);
        match answer.boundary {
            Some(_) => Ok(()),
            None => Err(BindRefusal::Scope {
                slot: name,
                resource: graph.id(resource),
                scope,
                skipped: answer.skipped,
            }),
        }
    }
}

impl Graph {
    /// Finds resources by name or id, by id.
    pub fn called(&self, text: &str) -> Vec<Node> {
        let by_id = text.parse().ok().and_then(|id| self.node(id));
        if let Some(node) = by_id {
            return vec![node];
        }
        let Some(name) = self.names.find(text) else {
            return Vec::new();
        };
        let mut found: Vec<_> = self
            .nodes()
            .filter(|node| self.at(node.0).name == name)
            .collect();
        found.sort_unstable_by_key(|node| self.id(*node));
        found
    }
}

fn is_called(graph: &Graph, node: Node, text: &str) -> bool {
    graph.see(node).name() == text || text.parse() == Ok(graph.id(node))
}

fn no_match(name: &str, slot: &Slot) -> BindRefusal {
    BindRefusal::NoMatch {
        slot: name.to_owned(),
        accepts: slot.accepts.clone(),
    }
}
