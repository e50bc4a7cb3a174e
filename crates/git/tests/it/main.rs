//! The git adapter against real git: fixtures are made by it, results are
//! judged by it.

mod discovery;
mod fixture;
mod hidden;
mod ignore;
mod landing;
mod private;
