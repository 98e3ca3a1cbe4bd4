//! What can go wrong with a workflow as a durable thing.

use crate::storage;
use crate::wire::state_blob;
use crate::workflow::WorkflowId;

/// The result of a store call.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why a store call failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// There is no such workflow.
    #[error("workflow {0} does not exist")]
    NotFound(WorkflowId),
    /// The id is taken by a workflow with another definition.
    #[error(
        "workflow {0} exists already with a different definition; choose another id, or delete it"
    )]
    DifferentDefinition(WorkflowId),
    /// Another writer changed the state since it was loaded: load again and repeat.
    #[error("the state of workflow {0} was changed by another writer")]
    Conflict(WorkflowId),
    /// The state blob cannot be read. It is left as it is.
    #[error("the state of workflow {id} cannot be used: {reason}")]
    BadState {
        /// The workflow.
        id: WorkflowId,
        /// Why.
        reason: state_blob::Error,
    },
    /// The storage failed.
    #[error(transparent)]
    Storage(#[from] storage::Error),
}

impl Error {
    /// A short stable word for logs.
    #[must_use]
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::NotFound(_) => "not_found",
            Self::DifferentDefinition(_) => "different_definition",
            Self::Conflict(_) => "conflict",
            Self::BadState { .. } => "bad_state",
            Self::Storage(error) => error.kind(),
        }
    }

    /// Whether, and when, the same call may be repeated.
    #[must_use]
    pub fn retry(&self) -> storage::Retry {
        match self {
            Self::Storage(error) => error.retry(),
            _ => storage::Retry::Never,
        }
    }
}
