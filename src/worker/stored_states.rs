//! The state of workflows as the store has it, for workers.

use async_trait::async_trait;

use super::task_states::{AttemptStatus, TaskStates};
use crate::storage;
use crate::store::{self, WorkflowStore};
use crate::wire::{OutputRef, UpstreamRefs, WorkflowTask};
use crate::workflow::runtime::Task;
use crate::workflow::{TaskName, TaskState, WorkflowId};

/// Answers a worker's questions from the state blobs and the index rows.
#[derive(Debug, Clone)]
pub struct StoredStates {
    store: WorkflowStore,
}

impl StoredStates {
    /// The states of the workflows in `store`.
    #[must_use]
    pub const fn new(store: WorkflowStore) -> Self {
        Self { store }
    }
}

#[async_trait]
impl TaskStates for StoredStates {
    async fn attempt_status(&self, attempt: &WorkflowTask) -> AttemptStatus {
        let (workflow, task) = (&attempt.workflow_id, &attempt.task);
        let runtime = match self.store.load(workflow).await {
            Ok(loaded) => loaded.runtime,
            // Deleted: nobody waits for the attempt.
            Err(store::Error::NotFound(_)) => return AttemptStatus::Stale,
            Err(error) => {
                tracing::warn!(workflow_id = %workflow, %task, %error, error_kind = error.kind(), "cannot read the state");
                return AttemptStatus::Unknown;
            }
        };
        let Some(index) = runtime.find(task) else {
            return AttemptStatus::Stale;
        };
        match status_of(runtime.task(index), attempt) {
            AttemptStatus::Current if runtime.cancel_requested() => AttemptStatus::Cancelled,
            status => status,
        }
    }

    /// Reads the index row, not the state: a cancel stands there first, and the row is small.
    async fn is_cancelled(&self, workflow: &WorkflowId) -> bool {
        match self.store.row(workflow).await {
            Ok(row) => row.is_some_and(|row| row.cancel_requested),
            Err(error) => {
                tracing::warn!(workflow_id = %workflow, %error, error_kind = error.kind(), "cannot look for a cancel");
                false
            }
        }
    }

    async fn upstream_refs(
        &self,
        workflow: &WorkflowId,
        task: &TaskName,
    ) -> storage::Result<UpstreamRefs> {
        let runtime = self.store.load(workflow).await.map_err(as_storage)?.runtime;
        let Some(index) = runtime.find(task) else {
            return Ok(UpstreamRefs::default());
        };
        let parents = runtime
            .task(index)
            .parents()
            .iter()
            .map(|&parent| runtime.task(parent));
        let refs = parents.map(|parent| {
            (
                parent.name().clone(),
                parent.output_ref().map(OutputRef::from_wire),
            )
        });
        Ok(UpstreamRefs(refs.collect()))
    }
}

/// A task is pushed before the state that says so is written, so a message may be one attempt
/// ahead of the state.
fn status_of(task: &Task, attempt: &WorkflowTask) -> AttemptStatus {
    let attempt_no = attempt.attempt_no;
    match task.state() {
        // A person had the task run again since.
        _ if attempt.retry_no != task.retry_no() => AttemptStatus::Stale,
        TaskState::Running if attempt_no >= task.attempt_no() => AttemptStatus::Current,
        TaskState::Ready if attempt_no > task.attempt_no() => AttemptStatus::Current,
        // The push of a task that the stored state still has as pending is under way.
        TaskState::Pending => AttemptStatus::Current,
        _ => AttemptStatus::Stale,
    }
}

fn as_storage(error: store::Error) -> storage::Error {
    match error {
        store::Error::Storage(error) => error,
        other => storage::Error::Corrupt {
            what: "the workflow's state".to_owned(),
            message: other.to_string(),
        },
    }
}
