//! What the end-to-end tests stand on: real repositories as fixtures, foreign
//! programs as judges, and the built `sandbar` binary as the thing judged.
//!
//! Nothing here calls the product's own code: what Sandbar says of itself is
//! never the evidence.
#![allow(
    clippy::disallowed_methods,
    reason = "tests set up and inspect real trees with foreign means"
)]

pub mod account;
pub mod fixture;
pub mod foreign;
pub mod harness;
pub mod judge;
pub mod mount;
pub mod product;
pub mod trace;
