//! The rows. Each module has one table and the conversion between its row and
//! the record of the port; both directions name every field, so that a field
//! that is added to either side does not compile until it is stored.
#![allow(unreachable_pub, reason = "the derive of an entity writes `pub`")]

pub(crate) mod checkpoint;
pub(crate) mod checkpoint_part;
pub(crate) mod graph_edge;
pub(crate) mod graph_gone;
pub(crate) mod graph_project;
pub(crate) mod graph_resource;
pub(crate) mod journal;
pub(crate) mod plan;
pub(crate) mod resource;
pub(crate) mod sandbox;
