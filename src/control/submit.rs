//! Submitting a workflow.

use super::{Control, Error, Result};
use crate::store::Submitted;
use crate::workflow::definition::Definition;
use crate::workflow::runtime::Runtime;
use crate::workflow::{WorkflowId, fan_in};

/// What to submit.
#[derive(Debug, Clone)]
pub struct SubmitRequest {
    /// The workflow.
    pub definition: Definition,
    /// Its id; a fresh one unless given. With an id, repeating a submit is safe.
    pub id: Option<WorkflowId>,
    /// Rewrites tasks with more dependencies than this into sequential batches.
    pub max_fan_in: Option<usize>,
}

/// What became of a submit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SubmitResult {
    /// The workflow's id.
    pub id: WorkflowId,
    /// Whether it is new; otherwise it was there already, with the same definition.
    pub created: bool,
}

impl Control {
    /// Makes a workflow durable and has it started. After `Ok` it will run, whatever dies.
    ///
    /// # Errors
    /// [`Error::InvalidDefinition`] if it cannot be rewritten as asked; the store's own, among them
    /// that the id is taken by a different definition.
    pub async fn submit(&self, request: SubmitRequest) -> Result<SubmitResult> {
        let definition = match request.max_fan_in {
            None => request.definition,
            Some(max_fan_in) => fan_in::limit_fan_in(request.definition, max_fan_in)
                .map_err(Error::InvalidDefinition)?,
        };
        let id = request.id.unwrap_or_else(|| {
            WorkflowId::parse(&self.clock.new_id()).expect("a fresh id is 32 hex digits")
        });
        let mut runtime = Runtime::new(id.clone(), &definition, self.clock.now());
        runtime.set_definition_sha256(definition.sha256());
        let submitted = self.store.submit(&runtime).await?;
        self.nudge(&id);
        Ok(SubmitResult {
            id,
            created: submitted == Submitted::Created,
        })
    }
}
