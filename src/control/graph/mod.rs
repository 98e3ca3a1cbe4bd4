//! The graph of a workflow, for pictures: as data, for Graphviz, and for Mermaid.
//!
//! Nodes stand in layers: a node's layer is one past the deepest of its parents. Groups of tasks that
//! look alike (same parents, same children) can be shown as one node with counts, so that a fan of
//! thousands stays readable.

mod build;
mod text;

pub use build::{Edge, Graph, Node};
pub use text::GraphFormat;

use super::{Control, Result};
use crate::workflow::WorkflowId;

/// How to draw.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GraphRequest {
    /// From how many alike tasks on a group is one node; none for never.
    pub collapse_from: Option<usize>,
}

impl Default for GraphRequest {
    fn default() -> Self {
        Self {
            collapse_from: Some(10),
        }
    }
}

impl Control {
    /// The graph of a workflow with the states of its tasks.
    ///
    /// # Errors
    /// The store's own.
    pub async fn graph(&self, id: &WorkflowId, request: GraphRequest) -> Result<Graph> {
        let runtime = self.store.load(id).await?.runtime;
        Ok(build::graph(&runtime, request.collapse_from))
    }
}
