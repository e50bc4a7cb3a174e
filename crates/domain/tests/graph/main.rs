//! The resource graph, held to its definitions: laws against a slow, obvious
//! reference, and tables for each question.

mod laws;
mod model;
