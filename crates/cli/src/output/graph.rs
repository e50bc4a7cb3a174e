//! Resources with their edges: as a list, a tree, for Graphviz, for Mermaid,
//! as a document.

use std::collections::HashMap;
use std::fmt::Write as _;

use sandbar::domain::ResourceId;
use sandbar::domain::graph::Link;
use sandbar::{Card, GraphReport};
use serde_json::{Value, json};

use super::style::{DIM, NAME, PLACE};

/// What is shown where nothing was registered.
const NOTHING: &str = "nothing is registered yet: `sandbar resource add PATH`\n";

/// The document.
pub(crate) fn json(report: &GraphReport) -> Value {
    let resources: Vec<Value> = report
        .resources
        .iter()
        .map(|(card, boundary)| {
            let mut value = super::question::card_json(card);
            value["boundary"] = json!(boundary.map(|id| id.to_string()));
            value
        })
        .collect();
    let edges: Vec<Value> = report
        .edges
        .iter()
        .map(|edge| {
            let coherence = match edge.link {
                Link::Manifests(coherence) => Some(coherence.word()),
                Link::Contains | Link::References => None,
            };
            json!({
                "parent": edge.parent.to_string(),
                "child": edge.child.to_string(),
                "kind": edge.link.kind().word(),
                "coherence": coherence,
            })
        })
        .collect();
    json!({"generation": report.generation, "resources": resources, "edges": edges})
}

/// A line for each resource.
pub(crate) fn list(report: &GraphReport) -> String {
    if report.resources.is_empty() {
        return NOTHING.to_owned();
    }
    let width = report
        .resources
        .iter()
        .map(|(card, _)| card.type_name.len());
    let width = width.max().unwrap_or(0);
    let mut out = String::new();
    for (card, _) in &report.resources {
        let place = card.place.as_deref().unwrap_or(&card.name);
        let _ = writeln!(
            out,
            "{DIM}{}{DIM:#}  {:<width$}  {PLACE}{place}{PLACE:#}",
            card.id, card.type_name
        );
    }
    out
}

/// What contains what.
pub(crate) fn tree(report: &GraphReport) -> String {
    if report.resources.is_empty() {
        return NOTHING.to_owned();
    }
    let mut children: HashMap<ResourceId, Vec<usize>> = HashMap::new();
    let numbers = numbers(report);
    for edge in &report.edges {
        if edge.link == Link::Contains {
            children
                .entry(edge.parent)
                .or_default()
                .push(numbers[&edge.child]);
        }
    }
    for list in children.values_mut() {
        list.sort_unstable();
    }
    let mut out = String::new();
    // A line to write: the resource, what stands before it, and before what
    // it contains.
    let tops = report.tops.iter().rev();
    let mut lines: Vec<(usize, String, String)> = tops
        .map(|top| (numbers[top], String::new(), String::new()))
        .collect();
    while let Some((number, before, below)) = lines.pop() {
        let (card, boundary) = &report.resources[number];
        let name = match (before.is_empty(), &card.place) {
            (true, Some(place)) => place,
            _ => &card.name,
        };
        let mark = match *boundary == Some(card.id) {
            true => "  *",
            false => "",
        };
        let _ = writeln!(
            out,
            "{DIM}{before}{DIM:#}{NAME}{name}{NAME:#}  {DIM}{}{DIM:#}{mark}",
            card.type_name
        );
        let inner = children.get(&card.id).map_or(&[][..], Vec::as_slice);
        for (at, child) in inner.iter().enumerate().rev() {
            let (branch, trunk) = match at + 1 == inner.len() {
                true => ("└── ", "    "),
                false => ("├── ", "│   "),
            };
            lines.push((
                *child,
                format!("{below}{branch}"),
                format!("{below}{trunk}"),
            ));
        }
    }
    let _ = writeln!(out, "{DIM}* has a sandbox of its own{DIM:#}");
    out
}

/// For Graphviz; boundaries have a double frame.
pub(crate) fn dot(report: &GraphReport) -> String {
    let quoted = |text: &str| {
        let text = text.replace('\\', "\\\\").replace('"', "\\\"");
        text.replace('\n', "\\n")
    };
    let mut out = String::from("digraph sandbar {\n  node [shape=box];\n");
    for (number, (card, boundary)) in report.resources.iter().enumerate() {
        let frame = match *boundary == Some(card.id) {
            true => ", peripheries=2",
            false => "",
        };
        let (name, kind) = (quoted(label(card)), &card.type_name);
        let _ = writeln!(out, "  n{number} [label=\"{name}\\n{kind}\"{frame}];");
    }
    for (from, to, link) in numbered(report) {
        let style = match link {
            Link::Contains => "",
            Link::References => " [style=dashed]",
            Link::Manifests(_) => " [style=dotted]",
        };
        let _ = writeln!(out, "  n{from} -> n{to}{style};");
    }
    out.push_str("}\n");
    out
}

/// For Mermaid; boundaries have a double frame.
pub(crate) fn mermaid(report: &GraphReport) -> String {
    let mut out = String::from("graph TD\n");
    for (number, (card, boundary)) in report.resources.iter().enumerate() {
        let (open, close) = match *boundary == Some(card.id) {
            true => ("[[", "]]"),
            false => ("[", "]"),
        };
        let (name, kind) = (entities(label(card)), &card.type_name);
        let _ = writeln!(out, "  n{number}{open}\"{name}<br/>{kind}\"{close}");
    }
    for (from, to, link) in numbered(report) {
        let arrow = match link {
            Link::Contains => "-->",
            Link::References => "-.->",
            Link::Manifests(_) => "-. manifests .->",
        };
        let _ = writeln!(out, "  n{from} {arrow} n{to}");
    }
    out
}

/// Writes what Mermaid would read as its own signs by number.
fn entities(text: &str) -> String {
    let plain = |c: char| c.is_alphanumeric() || " ./-_".contains(c);
    let mut out = String::new();
    for c in text.chars() {
        match plain(c) {
            true => out.push(c),
            false => {
                let _ = write!(out, "#{};", u32::from(c));
            }
        }
    }
    out
}

fn label(card: &Card) -> &str {
    match card.name.as_str() {
        "." => "root directory",
        name => name,
    }
}

/// The edges by the numbers of their ends, in order.
fn numbered(report: &GraphReport) -> Vec<(usize, usize, Link)> {
    let numbers = numbers(report);
    let edges = report.edges.iter();
    let mut all: Vec<_> = edges
        .map(|edge| (numbers[&edge.parent], numbers[&edge.child], edge.link))
        .collect();
    all.sort_by_key(|(from, to, link)| (*from, *to, link.kind()));
    all
}

fn numbers(report: &GraphReport) -> HashMap<ResourceId, usize> {
    let cards = report.resources.iter().enumerate();
    cards.map(|(at, (card, _))| (card.id, at)).collect()
}
