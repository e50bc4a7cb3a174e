//! The graph's storage in memory: rows with the generation that wrote them.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use sandbar_domain::graph::{Change, Delta, Edge, EdgeKind, Project, Resource, Saved};
use sandbar_domain::{Code, Disposition, ResourceId};
use sandbar_ports::graph::GraphStore;
use sandbar_ports::{PortError, PortResult};

type Key = (ResourceId, ResourceId, EdgeKind);

/// Storage that lives as long as its last clone; clones share it.
#[derive(Debug, Clone, Default)]
pub struct MemGraphStore(Arc<Mutex<Rows>>);

#[derive(Debug, Default)]
struct Rows {
    generation: u64,
    resources: BTreeMap<ResourceId, (u64, Resource)>,
    edges: BTreeMap<Key, (u64, Edge)>,
    projects: BTreeMap<String, (u64, Project)>,
    gone_resources: BTreeMap<ResourceId, u64>,
    gone_edges: BTreeMap<Key, u64>,
    gone_projects: BTreeMap<String, u64>,
}

impl MemGraphStore {
    /// Makes an empty one.
    pub fn new() -> Self {
        Self::default()
    }

    fn rows(&self) -> MutexGuard<'_, Rows> {
        // Changes are made after the last check, and none of them can panic.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns what is younger than a generation.
fn newer<K: Ord + Clone, V: Clone, R>(
    rows: &BTreeMap<K, V>,
    than: u64,
    of: impl Fn(&K, &V) -> (u64, R),
) -> impl Iterator<Item = R> {
    rows.iter()
        .map(move |(key, value)| of(key, value))
        .filter(move |(generation, _)| *generation > than)
        .map(|(_, row)| row)
        .collect::<Vec<_>>()
        .into_iter()
}

#[async_trait]
impl GraphStore for MemGraphStore {
    async fn load_graph(&self) -> PortResult<(u64, Saved)> {
        let rows = self.rows();
        let saved = Saved {
            resources: rows.resources.values().map(|(_, r)| r.clone()).collect(),
            edges: rows.edges.values().map(|(_, e)| *e).collect(),
            projects: rows.projects.values().map(|(_, p)| p.clone()).collect(),
        };
        Ok((rows.generation, saved))
    }

    async fn graph_since(&self, than: u64) -> PortResult<Option<(u64, Delta)>> {
        let rows = self.rows();
        if than == rows.generation {
            return Ok(None);
        }
        if than > rows.generation {
            return Err(moved(than, rows.generation).with_disposition(Disposition::Permanent));
        }
        let delta = Delta {
            resources: newer(&rows.resources, than, |k, (g, r)| (*g, (*k, r.clone()))).collect(),
            edges: newer(&rows.edges, than, |k, (g, e)| (*g, (*k, *e))).collect(),
            projects: newer(&rows.projects, than, |k, (g, p)| {
                (*g, (k.clone(), p.clone()))
            })
            .collect(),
            gone_resources: newer(&rows.gone_resources, than, |k, g| (*g, *k)).collect(),
            gone_edges: newer(&rows.gone_edges, than, |k, g| (*g, *k)).collect(),
            gone_projects: newer(&rows.gone_projects, than, |k, g| (*g, k.clone())).collect(),
        };
        Ok(Some((rows.generation, delta)))
    }

    async fn commit_graph(&self, expected: u64, changes: Vec<Change>) -> PortResult<u64> {
        plain(&changes)?;
        let mut rows = self.rows();
        if expected != rows.generation {
            return Err(moved(expected, rows.generation));
        }
        let delta = Delta::of(&changes);
        if delta.is_empty() {
            return Ok(expected);
        }
        rows.generation += 1;
        let at = rows.generation;
        for id in delta.gone_resources {
            rows.resources.remove(&id);
            rows.edges.retain(|(p, c, _), _| *p != id && *c != id);
            rows.gone_resources.insert(id, at);
        }
        for key in delta.gone_edges {
            rows.edges.remove(&key);
            rows.gone_edges.insert(key, at);
        }
        for name in delta.gone_projects {
            rows.projects.remove(&name);
            rows.gone_projects.insert(name, at);
        }
        let resources = delta.resources.into_iter().map(|(k, r)| (k, (at, r)));
        rows.resources.extend(resources);
        rows.edges
            .extend(delta.edges.into_iter().map(|(k, e)| (k, (at, e))));
        rows.projects
            .extend(delta.projects.into_iter().map(|(k, p)| (k, (at, p))));
        Ok(at)
    }
}

fn moved(expected: u64, found: u64) -> PortError {
    PortError::new(
        Code::GraphChanged,
        format!("change the graph: it is at generation {found}, not {expected}"),
    )
}

fn plain(changes: &[Change]) -> PortResult<()> {
    let nul = |text: &str| text.contains('\0');
    let bad = changes.iter().any(|change| match change {
        Change::Put(row) => {
            let said = [&row.location, &row.content];
            nul(&row.name)
                || nul(&row.type_name)
                || said.into_iter().flatten().any(|text| nul(text))
                || row.properties.iter().any(|(k, v)| nul(k) || nul(v))
        }
        Change::PutProject(project) => nul(&project.name),
        Change::RemoveProject(name) => nul(name),
        Change::Remove(_) | Change::Link(_) | Change::Unlink { .. } => false,
    });
    if bad {
        let message = "change the graph: a text holds a NUL character";
        return Err(PortError::new(Code::Usage, message));
    }
    Ok(())
}
