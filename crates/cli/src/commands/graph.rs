//! `resource`, `graph`, and the questions: `boundary`, `domain`, `reach`,
//! `project`, `route`, `impact`.

use std::path::Path;

use sandbar::domain::graph::{QueryKind, Touch, Want};
use sandbar::ports::{PortError, PortResult};
use sandbar::{GraphReport, Sandbar, no_resource};
use serde_json::json;

use crate::args::{Asked, GraphFormat, Query, ResourceCommand};
use crate::output::{document, graph, print, question};

/// `sandbar resource …`.
pub(crate) async fn resource(
    sandbar: &Sandbar,
    command: ResourceCommand,
    cwd: &Path,
    json: bool,
) -> PortResult<u8> {
    match command {
        ResourceCommand::Add { path } => {
            let card = sandbar.add_resource(&path, cwd).await?;
            if json {
                document(&json!({"resource": question::card_json(&card)}));
            } else {
                print(&format!("registered {}\n", question::card(&card)));
            }
        }
        ResourceCommand::List => return Ok(list(&sandbar.graph(None, cwd).await?, json)),
        ResourceCommand::Show(asked) => {
            let report = sandbar.show_resource(&asked.resource, cwd).await?;
            if json {
                document(&question::shown_json(&report));
            } else {
                print(&question::shown(&report));
            }
        }
        ResourceCommand::Rm { resource } => {
            let gone = sandbar.forget_resource(&resource, cwd).await?;
            if json {
                let all: Vec<_> = gone.iter().map(question::card_json).collect();
                document(&json!({"forgotten": all}));
            } else {
                for card in &gone {
                    print(&format!("forgot {}\n", question::card(card)));
                }
            }
        }
        ResourceCommand::Tree { resource } => {
            let report = sandbar.graph(resource.as_deref(), cwd).await?;
            return Ok(whole(&report, GraphFormat::Tree, json));
        }
    }
    Ok(0)
}

/// Prints what is known, a line each.
pub(crate) fn list(report: &GraphReport, json: bool) -> u8 {
    if json {
        document(&graph::json(report));
    } else {
        print(&graph::list(report));
    }
    0
}

/// `sandbar graph`.
pub(crate) async fn graph(
    sandbar: &Sandbar,
    resource: Option<&str>,
    format: GraphFormat,
    cwd: &Path,
    json: bool,
) -> PortResult<u8> {
    Ok(whole(&sandbar.graph(resource, cwd).await?, format, json))
}

/// Prints resources with their edges.
pub(crate) fn whole(report: &GraphReport, format: GraphFormat, json: bool) -> u8 {
    match format {
        _ if json => document(&graph::json(report)),
        GraphFormat::Json => document(&graph::json(report)),
        GraphFormat::Tree => print(&graph::tree(report)),
        GraphFormat::Dot => print(&graph::dot(report)),
        GraphFormat::Mermaid => print(&graph::mermaid(report)),
    }
    0
}

/// `sandbar boundary`.
pub(crate) async fn boundary(
    sandbar: &Sandbar,
    asked: &Asked,
    cwd: &Path,
    json: bool,
) -> PortResult<u8> {
    let report = sandbar.boundary(&asked.resource, cwd).await?;
    if json {
        document(&question::boundary_json(&report));
    } else {
        print(&question::boundary(&report, asked.explain));
    }
    Ok(0)
}

/// `sandbar domain`.
pub(crate) async fn domain(
    sandbar: &Sandbar,
    asked: &Asked,
    cwd: &Path,
    json: bool,
) -> PortResult<u8> {
    let report = sandbar.domain(&asked.resource, cwd).await?;
    if json {
        document(&question::domain_json(&report));
    } else {
        print(&question::domain(&report, asked.explain));
    }
    Ok(0)
}

/// `sandbar reach`.
pub(crate) async fn reach(
    sandbar: &Sandbar,
    asked: &Asked,
    write: bool,
    cwd: &Path,
    json: bool,
) -> PortResult<u8> {
    let want = if write { Want::Write } else { Want::Read };
    let report = sandbar.reach(&asked.resource, cwd, want).await?;
    if json {
        document(&question::reach_json(&report));
    } else {
        print(&question::reach(&report, write, asked.explain));
    }
    Ok(0)
}

/// `sandbar project`.
pub(crate) async fn project(
    sandbar: &Sandbar,
    asked: &Asked,
    from: Option<&str>,
    plan: Option<&str>,
    cwd: &Path,
    json: bool,
) -> PortResult<u8> {
    let report = sandbar.project(&asked.resource, from, plan, cwd).await?;
    if json {
        document(&question::project_json(&report));
    } else {
        print(&question::project(&report, asked.explain));
    }
    Ok(0)
}

/// `sandbar route`.
pub(crate) async fn route(
    sandbar: &Sandbar,
    asked: &Asked,
    write: bool,
    query: Query,
    cwd: &Path,
    json: bool,
) -> PortResult<u8> {
    let report = if write {
        sandbar.route_write(&asked.resource, cwd).await?
    } else {
        let kind = match query {
            Query::Content => QueryKind::Content,
            Query::Semantic => QueryKind::Semantic,
            Query::History => QueryKind::History,
        };
        sandbar.route_read(&asked.resource, cwd, kind).await?
    };
    if json {
        document(&question::route_json(&report));
    } else {
        print(&question::route(&report, asked.explain));
    }
    Ok(0)
}

/// `sandbar impact`.
pub(crate) async fn impact(
    sandbar: &Sandbar,
    asked: &Asked,
    mode: bool,
    cwd: &Path,
    json: bool,
) -> PortResult<u8> {
    let touch = if mode { Touch::Mode } else { Touch::Content };
    let report = sandbar.impact(&asked.resource, cwd, touch).await?;
    if json {
        document(&question::impact_json(&report));
    } else {
        print(&question::impact(&report, asked.explain));
    }
    Ok(0)
}

/// Says that nothing is known, and so not `resource` either.
pub(crate) fn unknown(resource: &str) -> PortError {
    no_resource(resource).with_hint("`sandbar resource add PATH` registers a checkout or directory")
}
