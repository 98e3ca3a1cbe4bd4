//! Running again what did not succeed.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::read::find;
use super::{Control, Error, Result};
use crate::store::{self, Loaded};
use crate::workflow::runtime::{LoadedOutputs, Runtime, TaskIndex};
use crate::workflow::{TaskName, WorkflowId, WorkflowState};

/// How often a retry is tried against a coordinator that keeps writing.
const CONFLICTS_MAX: usize = 10;

/// What to run again.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RetryRequest {
    /// One task, with what hangs on it; everything that did not succeed unless given.
    pub task: Option<String>,
    /// Only tell what would run again.
    pub dry_run: bool,
}

/// What runs again, or would.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RetryResult {
    /// The tasks, in the order of the definition.
    #[schema(value_type = Vec<String>)]
    pub tasks: Vec<TaskName>,
    /// Whether it was only asked.
    pub dry_run: bool,
}

impl Control {
    /// Gives failed, upstream-failed and cancelled tasks another life: they are pending again, at
    /// attempt 0. What succeeded is not run again. Works whoever leads.
    ///
    /// A request to cancel is taken back before the state is written: one that is made from then
    /// on counts, whichever of the two is stored first.
    ///
    /// # Errors
    /// [`Error::NothingToRetry`]; [`Error::NotTerminal`] while a cancel is under way;
    /// [`Error::TaskNotFound`]; the store's own.
    pub async fn retry(&self, id: &WorkflowId, request: &RetryRequest) -> Result<RetryResult> {
        for _ in 0..CONFLICTS_MAX {
            match self.try_retry(id, request).await {
                Err(Error::Store(store::Error::Conflict(_))) => {}
                other => return other,
            }
        }
        Err(store::Error::Conflict(id.clone()).into())
    }

    async fn try_retry(&self, id: &WorkflowId, request: &RetryRequest) -> Result<RetryResult> {
        let Loaded { mut runtime, etag } = self.store.load(id).await?;
        let again = planned(&runtime, request)?;
        let names = again
            .iter()
            .map(|&index| runtime.task(index).name().clone());
        let result = RetryResult {
            tasks: names.collect(),
            dry_run: request.dry_run,
        };
        if request.dry_run {
            return Ok(result);
        }
        self.store.clear_cancel(id).await?;
        let now = self.clock.now();
        let mut outputs = LoadedOutputs::new();
        let mut needs = runtime.retry(&again, &outputs, now);
        while !needs.is_empty() {
            for path in needs {
                let value = self.store.output_value(&path).await?;
                outputs.insert(path, value);
            }
            needs = runtime.settle(&outputs, now);
        }
        self.store.flush(&runtime, &etag).await?;
        self.store.index_progress(&runtime).await?;
        if !runtime.state().is_terminal() {
            self.store.ask_for_a_look(id).await?;
        }
        self.nudge(id);
        Ok(result)
    }
}

fn planned(runtime: &Runtime, request: &RetryRequest) -> Result<Vec<TaskIndex>> {
    let id = &runtime.header().workflow_id;
    if runtime.state() == WorkflowState::Cancelling {
        return Err(Error::NotTerminal(id.clone(), runtime.state()));
    }
    let (again, what) = match &request.task {
        None => (runtime.retryable().collect(), format!("workflow {id}")),
        Some(task) => {
            let index = find(runtime, task)?;
            (runtime.retryable_with(index), format!("task {task:?}"))
        }
    };
    if again.is_empty() {
        return Err(Error::NothingToRetry { what });
    }
    Ok(again)
}
