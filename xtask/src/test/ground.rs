//! What tests stand on while they run: a database server and scratch space,
//! both gone afterwards.

use super::postgres::Postgres;
use super::setup::{self, Scratch};
use crate::process::Outcome;

/// Everything that tests find in their environment.
pub(crate) struct Ground {
    postgres: Postgres,
    scratch: Scratch,
}

impl Ground {
    /// Installs what is missing and starts the rest.
    pub(crate) fn prepare() -> Outcome<Self> {
        setup::install()?;
        Self::start()
    }

    /// Starts what is installed.
    pub(super) fn start() -> Outcome<Self> {
        Ok(Self {
            postgres: Postgres::start()?,
            scratch: Scratch::new()?,
        })
    }

    /// Returns the variables that tell tests where it is.
    pub(crate) fn environment(&self) -> Vec<(String, String)> {
        vec![
            ("SANDBAR_TEST_POSTGRES_URL".to_owned(), self.postgres.url()),
            ("TMPDIR".to_owned(), self.scratch.path()),
        ]
    }
}
