//! Answers of the graph, for people and as documents.

use std::fmt::Write as _;

use sandbar::domain::graph::{AccessProjection, What, Writability};
use sandbar::{
    BoundaryReport, Card, DomainReport, ImpactReport, ProjectReport, ReachReport, RouteReport,
    ShownReport, Way,
};
use serde_json::{Value, json};

use super::human::count;
use super::style::{DIM, GOOD, NAME, NOTE, PLACE};

/// How many resources a summary lists.
const LISTED: usize = 12;

/// A resource in a sentence.
pub(crate) fn card(card: &Card) -> String {
    let place = place(card);
    format!(
        "{PLACE}{place}{PLACE:#} {DIM}({}, {}){DIM:#}",
        card.type_name, card.id
    )
}

fn place(card: &Card) -> &str {
    card.place.as_deref().unwrap_or(&card.name)
}

fn short(card: &Card) -> String {
    let place = place(card);
    format!("{PLACE}{place}{PLACE:#} {DIM}({}){DIM:#}", card.type_name)
}

/// A resource in a document.
pub(crate) fn card_json(card: &Card) -> Value {
    json!({
        "id": card.id.to_string(),
        "type": card.type_name,
        "name": card.name,
        "location": card.place,
    })
}

fn cards_json(cards: &[Card]) -> Value {
    cards.iter().map(card_json).collect()
}

fn rights_json(rights: &Writability) -> Value {
    let forbids: Vec<String> = rights.forbids.iter().map(ToString::to_string).collect();
    json!({"writable": rights.is_writable(), "forbidden_by": forbids})
}

fn forbidding(rights: &Writability) -> String {
    let words: Vec<String> = rights.forbids.iter().map(ToString::to_string).collect();
    words.join("; ")
}

fn list(cards: &[Card], all: bool) -> String {
    let shown = if all { cards.len() } else { LISTED };
    let mut out = String::new();
    for card in cards.iter().take(shown) {
        let _ = writeln!(out, "  {}", short(card));
    }
    if cards.len() > shown {
        let _ = writeln!(out, "  {DIM}and {} more{DIM:#}", cards.len() - shown);
    }
    out
}

fn amount(cards: &[Card]) -> String {
    count(u64::try_from(cards.len()).unwrap_or(u64::MAX), "resource")
}

/// `resource show`.
pub(crate) fn shown(report: &ShownReport) -> String {
    let of = &report.resource;
    let mut out = format!("{NAME}{}{NAME:#} {DIM}{}{DIM:#}\n", of.name, of.type_name);
    let mut line = |what: &str, text: &str| {
        let _ = writeln!(out, "  {DIM}{what:<10}{DIM:#} {text}");
    };
    line("id", &of.id.to_string());
    line("place", place(of));
    let able: Vec<_> = report.capabilities.words().collect();
    line("can be", &able.join(", "));
    let (policy, source) = report.policy;
    line(
        "policy",
        &format!("{policy}, because of {}", source.words()),
    );
    match &report.boundary {
        Some(boundary) => line("boundary", &short(boundary)),
        None => line("boundary", "none"),
    }
    match report.writability.is_writable() {
        true => line("writable", "yes"),
        false => line(
            "writable",
            &format!("no: {}", forbidding(&report.writability)),
        ),
    }
    for parent in &report.parents {
        line("inside", &short(parent));
    }
    for child in &report.children {
        line("contains", &short(child));
    }
    out
}

/// `resource show --json`.
pub(crate) fn shown_json(report: &ShownReport) -> Value {
    let able: Vec<_> = report.capabilities.words().collect();
    let mut value = card_json(&report.resource);
    value["capabilities"] = json!(able);
    value["policy"] = json!(report.policy.0.to_string());
    value["policy_source"] = json!(report.policy.1.words());
    value["boundary"] = json!(report.boundary.as_ref().map(|card| card.id.to_string()));
    value["rights"] = rights_json(&report.writability);
    value["parents"] = cards_json(&report.parents);
    value["children"] = cards_json(&report.children);
    json!({"resource": value})
}

/// `boundary`.
pub(crate) fn boundary(report: &BoundaryReport, explain: bool) -> String {
    let mut out = match &report.boundary {
        Some((boundary, strategy)) => format!("{}, {}\n", short(boundary), strategy.word()),
        None => format!(
            "none: nothing that contains {} is sandboxed\n",
            short(&report.resource)
        ),
    };
    if explain {
        for (card, step) in &report.path {
            let mark = match (step.is_boundary(), step.sandboxable) {
                (true, _) => format!("{GOOD}boundary{GOOD:#}"),
                (false, true) => format!("{DIM}not one{DIM:#}"),
                (false, false) => format!("{DIM}not sandboxable{DIM:#}"),
            };
            let (policy, why) = (step.policy, step.source.words());
            let _ = writeln!(
                out,
                "  {}  {mark}  {policy} {DIM}because of {why}{DIM:#}",
                short(card)
            );
        }
    }
    out
}

/// `boundary --json`.
pub(crate) fn boundary_json(report: &BoundaryReport) -> Value {
    let steps: Vec<Value> = report
        .path
        .iter()
        .map(|(card, step)| {
            let mut value = card_json(card);
            value["policy"] = json!(step.policy.to_string());
            value["policy_source"] = json!(step.source.words());
            value["sandboxable"] = json!(step.sandboxable);
            value["is_boundary"] = json!(step.is_boundary());
            value
        })
        .collect();
    let boundary = report.boundary.as_ref();
    json!({
        "resource": report.resource.id.to_string(),
        "boundary": boundary.map(|(card, _)| card.id.to_string()),
        "strategy": boundary.map(|(_, strategy)| strategy.word()),
        "path": steps,
    })
}

/// `domain`.
pub(crate) fn domain(report: &DomainReport, explain: bool) -> String {
    let Some(boundary) = &report.boundary else {
        return format!("none: {} is in no sandbox\n", short(&report.resource));
    };
    let mut out = format!(
        "{} known in the sandbox of {}\n{}",
        amount(&report.members),
        short(boundary),
        list(&report.members, explain)
    );
    if !report.nested.is_empty() {
        let _ = writeln!(out, "inside it, with a sandbox of their own");
        out += &list(&report.nested, explain);
    }
    let _ = writeln!(
        out,
        "{DIM}files and directories are known once they were asked about{DIM:#}"
    );
    out
}

/// `domain --json`.
pub(crate) fn domain_json(report: &DomainReport) -> Value {
    json!({
        "resource": report.resource.id.to_string(),
        "boundary": report.boundary.as_ref().map(|card| card.id.to_string()),
        "members": cards_json(&report.members),
        "nested": cards_json(&report.nested),
    })
}

fn abilities(way: &Way) -> &'static str {
    match (way.read, way.write) {
        (true, true) => "reads and writes",
        (true, false) => "reads",
        (false, true) => "writes",
        (false, false) => "cannot",
    }
}

fn projected(projection: &AccessProjection) -> String {
    let within = projection.within.as_ref();
    let within = within.map_or_else(String::new, |place| format!(" {DIM}in {place}{DIM:#}"));
    let crosses = match projection.crosses_sandbox {
        true => format!("  {NOTE}another sandbox{NOTE:#}"),
        false => String::new(),
    };
    format!(
        "{PLACE}{}{PLACE:#}{within}{crosses}",
        projection.access_path
    )
}

fn way_line(way: &Way) -> String {
    format!(
        "{NAME}{}{NAME:#} in {}  {}",
        way.tool,
        short(&way.bound),
        abilities(way)
    )
}

fn way_json(way: &Way) -> Value {
    json!({
        "tool": way.tool,
        "slot": way.slot,
        "bound": card_json(&way.bound),
        "target": card_json(&way.target),
        "path": cards_json(&way.path),
        "read": way.read,
        "write": way.write,
        "projection": way.projection.as_ref().map(projection_json),
    })
}

fn projection_json(projection: &AccessProjection) -> Value {
    json!({
        "access_path": projection.access_path,
        "protocol": projection.protocol.word(),
        "within": projection.within,
        "crosses_sandbox": projection.crosses_sandbox,
        "target_boundary": projection.target_boundary.map(|id| id.to_string()),
        "readable": projection.readable,
        "writable": projection.writable,
        "read_richness": projection.read_richness,
        "generation": projection.generation,
    })
}

fn steps(out: &mut String, cards: &[Card]) {
    for card in cards {
        let _ = writeln!(out, "      {DIM}through{DIM:#} {}", short(card));
    }
}

/// `reach`.
pub(crate) fn reach(report: &ReachReport, write: bool, explain: bool) -> String {
    let mut out = String::new();
    for way in &report.ways {
        let _ = writeln!(out, "  {}", way_line(way));
        if explain {
            steps(&mut out, &way.path);
            if let Some(projection) = &way.projection {
                let _ = writeln!(out, "      {DIM}as{DIM:#} {}", projected(projection));
            }
        }
    }
    if report.ways.is_empty() {
        let verb = if write { "writes" } else { "reads" };
        let _ = writeln!(out, "no tool {verb} {}", short(&report.resource));
    }
    if !report.writability.is_writable() {
        let _ = writeln!(out, "not writable: {}", forbidding(&report.writability));
    }
    out
}

/// `reach --json`.
pub(crate) fn reach_json(report: &ReachReport) -> Value {
    json!({
        "resource": report.resource.id.to_string(),
        "rights": rights_json(&report.writability),
        "ways": report.ways.iter().map(way_json).collect::<Vec<_>>(),
    })
}

/// `project`.
pub(crate) fn project(report: &ProjectReport, explain: bool) -> String {
    let mut out = match &report.projection {
        Some(projection) => format!("{}\n", projected(projection)),
        None => format!(
            "none: {} cannot be reached from {}\n",
            short(&report.resource),
            short(&report.binding)
        ),
    };
    if explain {
        let _ = writeln!(out, "  {DIM}bound to{DIM:#} {}", short(&report.binding));
        steps(&mut out, &report.path);
    }
    out
}

/// `project --json`.
pub(crate) fn project_json(report: &ProjectReport) -> Value {
    json!({
        "resource": report.resource.id.to_string(),
        "binding": report.binding.id.to_string(),
        "path": cards_json(&report.path),
        "projection": report.projection.as_ref().map(projection_json),
    })
}

/// `route`.
pub(crate) fn route(report: &RouteReport, explain: bool) -> String {
    let mut out = format!("{}\n", way_line(&report.way));
    if let Some(projection) = &report.way.projection {
        let _ = writeln!(out, "  {DIM}as{DIM:#} {}", projected(projection));
    }
    if report.fallback {
        let _ = writeln!(
            out,
            "  {NOTE}nothing answers as asked: plain content{NOTE:#}"
        );
    }
    if explain {
        steps(&mut out, &report.way.path);
        for skipped in &report.skipped {
            let tool = skipped.tool.as_ref();
            let tool = tool.map_or("", |(tool, _)| tool.as_str());
            let _ = writeln!(
                out,
                "  {DIM}passed over{DIM:#} {tool} {}: {}",
                short(&skipped.resource),
                skipped.reason
            );
        }
    }
    out
}

/// `route --json`.
pub(crate) fn route_json(report: &RouteReport) -> Value {
    let skipped: Vec<Value> = report
        .skipped
        .iter()
        .map(|skipped| {
            json!({
                "resource": skipped.resource.id.to_string(),
                "tool": skipped.tool.as_ref().map(|(tool, _)| tool),
                "slot": skipped.tool.as_ref().map(|(_, slot)| slot),
                "reason": skipped.reason,
            })
        })
        .collect();
    json!({
        "resource": report.resource.id.to_string(),
        "route": way_json(&report.way),
        "fallback": report.fallback,
        "generation": report.generation,
        "skipped": skipped,
    })
}

/// `impact`.
pub(crate) fn impact(report: &ImpactReport, explain: bool) -> String {
    let mut out = String::new();
    for (card, what, because) in &report.effects {
        let says = match what {
            What::Changed => "changes",
            What::Status => "has another status",
            What::Mode => "lies in what changes its mode",
            What::Check => "is to be checked",
            What::Refresh => "is to be refreshed",
            What::Invalidate => "is equal no more by itself",
            What::Reevaluate => "is to be identified again",
        };
        let _ = write!(out, "  {}  {says}", short(card));
        if explain && because != card {
            let _ = write!(out, " {DIM}because of{DIM:#} {}", short(because));
        }
        out.push('\n');
    }
    out
}

/// `impact --json`.
pub(crate) fn impact_json(report: &ImpactReport) -> Value {
    let effects: Vec<Value> = report
        .effects
        .iter()
        .map(|(card, what, because)| {
            let mut value = card_json(card);
            value["effect"] = json!(what.word());
            value["because"] = json!(because.id.to_string());
            value
        })
        .collect();
    json!({"resource": report.resource.id.to_string(), "effects": effects})
}
