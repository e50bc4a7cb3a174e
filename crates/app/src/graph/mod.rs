//! The questions of the resource graph, and the places that are brought into
//! it by asking.

mod answers;
mod card;
mod changes;
mod registering;
mod tools;

pub use answers::{
    BoundaryReport, DomainReport, ImpactReport, ProjectReport, ReachReport, RouteReport,
    ShownReport, SkippedWay, Way,
};
pub use card::{Card, GraphReport, no_resource};
