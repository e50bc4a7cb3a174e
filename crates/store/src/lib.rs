//! The [`Store`](sandbar_ports::store::Store) port on SQLite (one machine)
//! and PostgreSQL (several machines), through sea-orm.
//!
//! One writer at a time on both: a mutation takes the database's write lock
//! before it reads, so that what it decided on still holds when it commits.
//! What is absent, on purpose: rules. The store compares marks and phases as
//! the domain defines them, and decides nothing else.

mod convert;
mod entity;
mod error;
mod open;
mod ops;
mod place;
mod schema;
mod transact;

pub use open::SqlStore;
