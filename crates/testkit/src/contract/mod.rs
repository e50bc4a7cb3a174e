//! Contract suites: what every implementation of a port must do.
//!
//! A suite is a list of cases. Each case gets a fresh world and panics with
//! what it expected. `CASES` is for harnesses that want one test a case;
//! `run_all` runs them in order and prints the name of each, so that the last
//! line before a panic says which one failed.

pub mod files;
pub mod graph;
pub mod objects;
pub mod store;
pub mod strategies;
pub mod targets;
pub mod workspaces;

use std::fmt::Debug;

use sandbar_domain::{Code, Disposition};
use sandbar_ports::PortResult;

/// Defines the cases of a suite over a type of world.
macro_rules! cases {
    ($world:ty; $($(#[$meta:meta])* $($name:ident)::+),* $(,)?) => {
        /// One case.
        pub type Case =
            fn($world) -> std::pin::Pin<Box<dyn std::future::Future<Output = ()> + Send>>;

        /// Every case by name.
        pub const CASES: &[(&str, Case)] = &[
            $((stringify!($($name)::+), |world| Box::pin($($name)::+(world))),)*
        ];

        /// Runs every case, each in a world that `fresh` makes for its name.
        pub async fn run_all<F>(fresh: impl Fn(&'static str) -> F)
        where
            F: std::future::Future<Output = $world>,
        {
            for (name, case) in CASES {
                println!("contract: {name}");
                case(fresh(name).await).await;
            }
        }
    };
}
pub(crate) use cases;

/// Expects an error of this code and disposition.
#[track_caller]
pub(crate) fn refused<T: Debug>(
    result: PortResult<T>,
    code: Code,
    disposition: Disposition,
    doing: &str,
) {
    match result {
        Ok(value) => panic!("{doing} must be refused as {code:?}, returned {value:?}"),
        Err(error) => {
            assert_eq!(error.code, code, "{doing}: wrong code for {error}");
            assert_eq!(
                error.disposition, disposition,
                "{doing}: wrong disposition for {error}"
            );
        }
    }
}

/// Expects success.
#[track_caller]
pub(crate) fn done<T>(result: PortResult<T>, doing: &str) -> T {
    match result {
        Ok(value) => value,
        Err(error) => panic!("{doing} must succeed: {:?} {error}", error.code),
    }
}

/// Expects two lists to be equal; names the first difference only, since a
/// list of odd records is long.
#[track_caller]
pub(crate) fn same_list<T: PartialEq + Debug>(found: &[T], expected: &[T], why: &str) {
    for (index, pair) in found.iter().zip(expected).enumerate() {
        assert_eq!(pair.0, pair.1, "{why}: item {index} differs");
    }
    assert_eq!(found.len(), expected.len(), "{why}: wrong number of items");
}
