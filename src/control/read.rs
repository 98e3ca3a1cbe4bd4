//! Reading one workflow, its definition, its tasks and their outputs.

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::page_token;
use super::{Control, Error, Result, TaskView, WorkflowView};
use crate::coordinator::CoordinatorStatus;
use crate::limits::PAGE_MAX;
use crate::storage::ETag;
use crate::wire::OutputRef;
use crate::workflow::runtime::{Runtime, Task, TaskIndex};
use crate::workflow::{TaskState, WorkflowId};

/// A value and the version of the state it was read from.
#[derive(Debug, Clone)]
pub struct Versioned<T> {
    /// The value.
    pub value: T,
    /// Another one after every change of the workflow.
    pub etag: ETag,
}

/// A task's output as JSON text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskOutput {
    /// The text, exactly as the task wrote it.
    pub json: Bytes,
}

/// Which tasks of a workflow to list.
#[derive(Debug, Clone, Default)]
pub struct TaskListRequest {
    /// Only tasks in one of these states; all if empty.
    pub states: Vec<TaskState>,
    /// Only tasks of this queue.
    pub queue: Option<String>,
    /// Only tasks whose name starts so.
    pub name_prefix: Option<String>,
    /// At most this many, 1 to 1,000; all of them if none is given.
    pub limit: Option<usize>,
    /// Where the page before ended; none for the first.
    pub page_token: Option<String>,
}

/// A page of tasks.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct TaskPage {
    /// The tasks, in the order of the definition.
    pub tasks: Vec<TaskView>,
    /// Hand this to the next call; absent after the last page.
    pub next_page_token: Option<String>,
}

impl TaskListRequest {
    fn fingerprint(&self, id: &WorkflowId) -> String {
        let mut states: Vec<_> = self.states.iter().map(|state| state.as_str()).collect();
        states.sort_unstable();
        page_token::fingerprint(&(id, states, &self.queue, &self.name_prefix))
    }

    fn matches(&self, task: &Task) -> bool {
        let state = self.states.is_empty() || self.states.contains(&task.state());
        let queue = self
            .queue
            .as_ref()
            .is_none_or(|queue| task.queue().as_str() == queue);
        let prefix = self.name_prefix.as_ref();
        state && queue && prefix.is_none_or(|prefix| task.name().as_str().starts_with(prefix))
    }
}

impl Control {
    /// One workflow.
    ///
    /// # Errors
    /// The store's own, among them that it does not exist.
    pub async fn get(&self, id: &WorkflowId) -> Result<Versioned<WorkflowView>> {
        let loaded = self.store.load(id).await?;
        Ok(Versioned {
            value: WorkflowView::of(&loaded.runtime),
            etag: loaded.etag,
        })
    }

    /// Its definition as JSON: what would be submitted to run the same again, with the defaults
    /// written out.
    ///
    /// # Errors
    /// As [`get`](Self::get).
    pub async fn definition(&self, id: &WorkflowId) -> Result<Versioned<String>> {
        let loaded = self.store.load(id).await?;
        Ok(Versioned {
            value: loaded.runtime.definition().to_json(),
            etag: loaded.etag,
        })
    }

    /// A page of its tasks, in the order of the definition, which never changes.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for an impossible limit; [`Error::PageToken`]; as
    /// [`get`](Self::get).
    pub async fn tasks(
        &self,
        id: &WorkflowId,
        request: &TaskListRequest,
    ) -> Result<Versioned<TaskPage>> {
        let limit = request.limit.unwrap_or(usize::MAX);
        if request
            .limit
            .is_some_and(|limit| !(1..=PAGE_MAX).contains(&limit))
        {
            let reason = format!("{limit} is not from 1 to {PAGE_MAX}");
            return Err(Error::invalid("limit", reason));
        }
        let fingerprint = request.fingerprint(id);
        let start = match &request.page_token {
            None => 0,
            Some(token) => {
                let key = page_token::decode(&fingerprint, token)?;
                key.parse()
                    .map_err(|_| page_token::PageTokenError::Damaged)?
            }
        };
        let loaded = self.store.load(id).await?;
        let runtime = loaded.runtime;
        let mut matching = runtime
            .tasks()
            .iter()
            .enumerate()
            .skip(start)
            .filter(|(_, task)| request.matches(task));
        let page = matching.by_ref().take(limit);
        let tasks = page.map(|(_, task)| TaskView::of(&runtime, task)).collect();
        let next = matching.next().map(|(position, _)| position.to_string());
        let next_page_token = next.map(|key| page_token::encode(&fingerprint, &key));
        Ok(Versioned {
            value: TaskPage {
                tasks,
                next_page_token,
            },
            etag: loaded.etag,
        })
    }

    /// One task.
    ///
    /// # Errors
    /// [`Error::TaskNotFound`]; as [`get`](Self::get).
    pub async fn task(&self, id: &WorkflowId, task: &str) -> Result<Versioned<TaskView>> {
        let loaded = self.store.load(id).await?;
        let index = find(&loaded.runtime, task)?;
        let task = loaded.runtime.task(index);
        Ok(Versioned {
            value: TaskView::of(&loaded.runtime, task),
            etag: loaded.etag,
        })
    }

    /// The output of one task.
    ///
    /// # Errors
    /// [`Error::TaskNotFound`]; [`Error::NoOutput`] with the reason; as [`get`](Self::get).
    pub async fn task_output(&self, id: &WorkflowId, task: &str) -> Result<TaskOutput> {
        let runtime = self.store.load(id).await?.runtime;
        let index = find(&runtime, task)?;
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

    /// What the coordinator last wrote about itself.
    ///
    /// # Errors
    /// [`Error::NoCoordinator`] if none ever led; the store's own.
    pub async fn coordinator_status(&self) -> Result<CoordinatorStatus> {
        let status = CoordinatorStatus::read(&self.store).await;
        let status = status.map_err(crate::store::Error::from)?;
        status.ok_or(Error::NoCoordinator)
    }
}

/// The task of this name.
pub(super) fn find(runtime: &Runtime, task: &str) -> Result<TaskIndex> {
    runtime.find(task).ok_or_else(|| Error::TaskNotFound {
        workflow_id: runtime.header().workflow_id.clone(),
        task: task.to_owned(),
    })
}
