//! The resource graph: what there is, where it lives, how it is reached,
//! where it is safe to change and what else is affected.
//!
//! A [`Graph`] is a value in memory. It never reads, hashes, probes or waits:
//! rows come in through [`Loader`] and [`Graph::apply`], facts about the world
//! as plain data or through the small traits [`Handlers`] and [`Identities`].
//! Inside it works with [`Node`], at the edge with resource ids.

mod access;
mod arena;
mod boundary;
mod capability;
mod change;
mod discovery;
mod follow;
mod impact;
mod index;
mod label;
mod load;
mod names;
mod order;
mod policy;
pub mod project;
mod reach;
mod refusal;
pub mod route;
mod rows;
mod tie;
mod tool;
pub mod types;
mod walk;

pub use access::{Forbids, Writability};
pub use arena::{Graph, Node, Seen};
pub use boundary::{BoundaryAnswer, BoundaryStep, CheckpointAnswer, NotHere};
pub use capability::{Capabilities, CapabilityChanges};
pub use change::{Attempt, Change};
pub use discovery::{NotPlaced, Sight, Sort};
pub use follow::Delta;
pub use impact::{AnyChange, Effect, Identities, Identity, Impact, Touch, What};
pub use load::Loader;
pub use order::{Direction, Operation, Pass};
pub use policy::{Policy, PolicySource, Strategy};
pub use project::{AccessProjection, Ask, Handler, Handlers, LiveSandbox, Rules};
pub use reach::{Ability, Inferred, Inverse, Reach, Situation, Want};
pub use refusal::{End, Refusal};
pub use route::{Conditions, Query, Route, Routes};
pub use rows::{
    Canonical, Coherence, Edge, EdgeKind, FileId, Link, OnChange, Plan, Project, ProjectLink,
    Resource, Saved,
};
pub use tool::{
    Access, Bind, BindRefusal, Binding, BindingMode, QueryKind, QueryKinds, Slot, Tool, Toolbox,
};
pub use types::{Protocol, Registry, Scope, Scopes, TypeId};
