//! The resource graph, held to its definitions: laws against a slow, obvious
//! reference, and tables for each question.

mod bindings;
mod boundaries;
mod ground;
mod impacts;
mod laws;
mod model;
mod projections;
mod reaching;
mod refusals;
mod routing;
mod types;
