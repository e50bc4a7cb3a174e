//! The resource graph, held to its definitions: laws against a slow, obvious
//! reference, and tables for each question.

mod bindings;
mod boundaries;
mod ground;
mod laws;
mod model;
mod refusals;
mod types;
