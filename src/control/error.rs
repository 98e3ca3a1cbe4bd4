//! Why a use case refuses or fails.

use crate::store;
use crate::workflow::WorkflowId;
use crate::workflow::definition::Problems;

/// The result of a use case.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why a use case refuses or fails. Every text says what to do about it, or names what is missing.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The definition is not valid.
    #[error("the definition is not valid:\n{0}")]
    InvalidDefinition(Problems),
    /// There is no such task.
    #[error("workflow {workflow_id} has no task {task:?}")]
    TaskNotFound {
        /// The workflow.
        workflow_id: WorkflowId,
        /// The name asked for.
        task: String,
    },
    /// The task has no output to show.
    #[error("task {task:?} of workflow {workflow_id} has no output: {reason}")]
    NoOutput {
        /// The workflow.
        workflow_id: WorkflowId,
        /// The task.
        task: String,
        /// Why there is none.
        reason: String,
    },
    /// The workflow ended before.
    #[error("workflow {0} is {1} already")]
    AlreadyTerminal(WorkflowId, crate::workflow::WorkflowState),
    /// The store refuses or fails.
    #[error(transparent)]
    Store(#[from] store::Error),
}
