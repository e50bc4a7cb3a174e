//! The git adapter against real git: fixtures are made by it, results are
//! judged by it.
#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "tests make fixtures and judge results by other means than the product's"
)]

mod discovery;
mod fixture;
mod hidden;
mod ignore;
mod landing;
mod private;
