//! Starters of real engines for tests.

pub mod postgres;
