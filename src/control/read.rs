//! Reading one workflow, its tasks and their outputs.

use bytes::Bytes;

use super::{Control, Error, Result, TaskView, WorkflowView};
use crate::wire::OutputRef;
use crate::workflow::WorkflowId;

/// A task's output as JSON text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskOutput {
    /// The text, exactly as the task wrote it.
    pub json: Bytes,
}

impl Control {
    /// One workflow.
    ///
    /// # Errors
    /// The store's own, among them that it does not exist.
    pub async fn get(&self, id: &WorkflowId) -> Result<WorkflowView> {
        Ok(WorkflowView::of(&self.store.load(id).await?.runtime))
    }

    /// Its tasks, in the order of the definition.
    ///
    /// # Errors
    /// As [`get`](Self::get).
    pub async fn tasks(&self, id: &WorkflowId) -> Result<Vec<TaskView>> {
        let runtime = self.store.load(id).await?.runtime;
        Ok(runtime
            .tasks()
            .iter()
            .map(|task| TaskView::of(&runtime, task))
            .collect())
    }

    /// The output of one task.
    ///
    /// # Errors
    /// [`Error::TaskNotFound`]; [`Error::NoOutput`] with the reason; as [`get`](Self::get).
    pub async fn task_output(&self, id: &WorkflowId, task: &str) -> Result<TaskOutput> {
        let runtime = self.store.load(id).await?.runtime;
        let Some(index) = runtime.find(task) else {
            return Err(Error::TaskNotFound {
                workflow_id: id.clone(),
                task: task.to_owned(),
            });
        };
        let none = |reason: String| Error::NoOutput {
            workflow_id: id.clone(),
            task: task.to_owned(),
            reason,
        };
        let found = runtime.task(index);
        let Some(reference) = found.output_ref().map(OutputRef::from_wire) else {
            return Err(none(match found.state() {
                state if state.satisfies() => "it wrote none".to_owned(),
                state => format!("it is {state}"),
            }));
        };
        let json = match reference.blob_path() {
            None => Bytes::copy_from_slice(reference.as_str().as_bytes()),
            Some(path) => self.store.output_bytes(path).await?.map_err(none)?,
        };
        Ok(TaskOutput { json })
    }
}
