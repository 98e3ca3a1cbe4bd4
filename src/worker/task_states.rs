//! What a worker has to know of a workflow's state; the store answers.

use async_trait::async_trait;

use crate::storage;
use crate::wire::{UpstreamRefs, WorkflowTask};
use crate::workflow::{TaskName, WorkflowId};

/// What the state says about one attempt whose message was delivered again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AttemptStatus {
    /// It may run: the task is running or ready at this attempt, or at the one before (tasks are
    /// pushed before the state that says so is written).
    Current,
    /// It is over: the task is terminal or at a later attempt. Its message is dropped.
    Stale,
    /// The workflow's cancel was requested while the task is running. It ends without running.
    Cancelled,
    /// The state cannot tell. The attempt runs: completions of a double are dropped, but one that
    /// never ran would be missed for ever.
    Unknown,
}

/// Read access to the state of workflows.
#[async_trait]
pub trait TaskStates: Send + Sync + 'static {
    /// Whether the attempt may still run. Asked only for messages delivered more than once.
    async fn attempt_status(&self, attempt: &WorkflowTask) -> AttemptStatus;

    /// Whether the workflow's cancel was requested. `false` where that cannot be found out: the
    /// next poll asks again.
    async fn is_cancelled(&self, workflow: &WorkflowId) -> bool;

    /// The outputs of the task's parents; asked when the message does not tell. Empty for a task
    /// without parents.
    ///
    /// # Errors
    /// When the state cannot be read; the attempt is put off.
    async fn upstream_refs(
        &self,
        workflow: &WorkflowId,
        task: &TaskName,
    ) -> storage::Result<UpstreamRefs>;
}
