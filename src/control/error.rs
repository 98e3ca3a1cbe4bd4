//! Why a use case refuses or fails.

use super::page_token::PageTokenError;
use crate::storage::{self, Retry};
use crate::store;
use crate::workflow::definition::Problems;
use crate::workflow::{WorkflowId, WorkflowState};

/// The result of a use case.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why a use case refuses or fails. Every text says what to do about it, or names what is missing.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The definition is not valid.
    #[error("the definition is not valid:\n{0}")]
    InvalidDefinition(Problems),
    /// Something else in the request is not valid.
    #[error("{field}: {reason}")]
    InvalidArgument {
        /// What is wrong.
        field: &'static str,
        /// Why, and what is possible.
        reason: String,
    },
    /// The page token cannot be used.
    #[error(transparent)]
    PageToken(#[from] PageTokenError),
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
    AlreadyTerminal(WorkflowId, WorkflowState),
    /// The workflow has not ended.
    #[error("workflow {0} is {1}; wait for its end, cancel it, or use force")]
    NotTerminal(WorkflowId, WorkflowState),
    /// There is nothing that a retry would run again.
    #[error(
        "{what} has nothing to run again: only failed, upstream-failed and cancelled tasks are"
    )]
    NothingToRetry {
        /// The workflow or task.
        what: String,
    },
    /// Nobody ever led.
    #[error("no coordinator has written a status yet; start one with `jobq serve`")]
    NoCoordinator,
    /// The store refuses or fails.
    #[error(transparent)]
    Store(#[from] store::Error),
}

impl Error {
    pub(super) fn invalid(field: &'static str, reason: impl Into<String>) -> Self {
        Self::InvalidArgument {
            field,
            reason: reason.into(),
        }
    }

    /// A short stable word, the same in every API.
    #[must_use]
    pub const fn code(&self) -> &'static str {
        match self {
            Self::InvalidDefinition(_) => "invalid_definition",
            Self::InvalidArgument { .. } => "invalid_argument",
            Self::PageToken(_) => "invalid_page_token",
            Self::TaskNotFound { .. } => "task_not_found",
            Self::NoOutput { .. } => "no_output",
            Self::AlreadyTerminal(..) => "already_terminal",
            Self::NotTerminal(..) => "not_terminal",
            Self::NothingToRetry { .. } => "nothing_to_retry",
            Self::NoCoordinator => "no_coordinator",
            Self::Store(store::Error::NotFound(_)) => "workflow_not_found",
            Self::Store(store::Error::DifferentDefinition(_)) => "different_definition",
            Self::Store(store::Error::Conflict(_)) => "conflict",
            Self::Store(store::Error::BadState { .. }) => "bad_state",
            Self::Store(store::Error::Storage(storage::Error::Throttled { .. })) => "throttled",
            Self::Store(store::Error::Storage(storage::Error::TooLarge { .. })) => "too_large",
            Self::Store(store::Error::Storage(storage::Error::Unavailable { .. })) => "unavailable",
            Self::Store(_) => "storage",
        }
    }

    /// After how long the same call may be repeated; `None` if that cannot help.
    #[must_use]
    pub fn retry_after(&self) -> Option<std::time::Duration> {
        match self.retry() {
            Retry::Never => None,
            Retry::After(pause) => Some(pause),
        }
    }

    /// Whether, and when, the same call may be repeated.
    #[must_use]
    pub fn retry(&self) -> Retry {
        match self {
            Self::Store(error) => error.retry(),
            _ => Retry::Never,
        }
    }
}
