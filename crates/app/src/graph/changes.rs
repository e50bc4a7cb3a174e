//! Loading the graph, and changing it beside other processes.

use sandbar_domain::Code;
use sandbar_domain::graph::{Change, Graph, Loader, Refusal, Registry};
use sandbar_ports::{PortError, PortResult};

use crate::Sandbar;

/// How often a change is tried again because somebody was first.
const TRIES: usize = 100;

impl Sandbar {
    /// Loads the whole graph.
    pub(super) async fn load_graph(&self) -> PortResult<Graph> {
        let (generation, rows) = self.parts.graph.load_graph().await?;
        let mut loader = Loader::new(Registry::builtin(), rows.resources.len());
        let damaged = |refusal: Refusal| {
            let message = format!("load the graph: {refusal}");
            PortError::new(Code::CorruptStore, message)
        };
        for row in &rows.resources {
            loader.resource(row).map_err(damaged)?;
        }
        for edge in rows.edges {
            loader.edge(edge);
        }
        for project in rows.projects {
            loader.project(project);
        }
        loader.finish(generation).map_err(damaged)
    }

    /// Makes changes durable; `wanted` says which, and is asked again whenever
    /// somebody else was first. Errors: the refusals of the graph.
    pub(super) async fn change_graph<T>(
        &self,
        graph: &mut Graph,
        mut wanted: impl FnMut(&Graph) -> PortResult<(Vec<Change>, T)>,
    ) -> PortResult<T> {
        for _ in 0..TRIES {
            let (changes, result) = wanted(graph)?;
            if changes.is_empty() {
                return Ok(result);
            }
            let attempt = graph
                .attempt(&changes)
                .map_err(|refusal| refused(&refusal))?;
            let before = graph.generation();
            match self.parts.graph.commit_graph(before, changes).await {
                Ok(generation) => {
                    graph.settle(attempt, generation);
                    return Ok(result);
                }
                Err(error) => {
                    graph.take_back(attempt);
                    if error.code != Code::GraphChanged {
                        return Err(error);
                    }
                }
            }
            if let Some((generation, delta)) = self.parts.graph.graph_since(before).await? {
                let caught_up = graph.catch_up(generation, &delta);
                caught_up.map_err(|refusal| refused(&refusal))?;
            }
        }
        let message = format!("change the graph: others were first {TRIES} times");
        Err(PortError::new(Code::GraphChanged, message))
    }
}

fn refused(refusal: &Refusal) -> PortError {
    PortError::new(refusal.code(), format!("change the graph: {refusal}"))
}
