//! Watching a workflow: what changed since the last look.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use tokio::time::Instant;
use utoipa::ToSchema;

use super::{Control, Result, TaskView, WorkflowView};
use crate::storage::ETag;
use crate::store::LoadedIfChanged;
use crate::workflow::runtime::Runtime;
use crate::workflow::{TaskName, TaskState, WorkflowId};

/// The shortest pause between two looks.
const PAUSE_MIN: Duration = Duration::from_millis(50);

/// A look at a large workflow costs time; this many times as long passes until the next, so that
/// watching takes a bounded part of a core.
const PAUSE_PER_LOOK: u32 = 4;

/// A task that is in another state than at the last look.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Change {
    /// The task.
    #[schema(value_type = String)]
    pub task: TaskName,
    /// Its state now.
    pub state: TaskState,
    /// Its latest attempt.
    pub attempt_no: u32,
    /// Why it failed or was skipped.
    pub error: Option<String>,
}

/// A workflow at one moment, and what changed since the moment before.
#[derive(Debug, Clone)]
pub struct Snapshot {
    /// The workflow.
    pub workflow: WorkflowView,
    /// The tasks that changed, in the order of the definition.
    pub changes: Vec<Change>,
    runtime: Box<Runtime>,
}

impl Snapshot {
    /// All tasks at this moment.
    #[must_use]
    pub fn tasks(&self) -> Vec<TaskView> {
        self.runtime
            .tasks()
            .iter()
            .map(|task| TaskView::of(&self.runtime, task))
            .collect()
    }
}

/// Follows one workflow through its stored states. Works whoever leads, in this process or
/// elsewhere; states that follow each other quickly are seen as one.
#[derive(Debug)]
pub struct Watch {
    control: Control,
    id: WorkflowId,
    etag: Option<ETag>,
    seen: Vec<(TaskState, u32)>,
    pause: Duration,
}

impl Control {
    /// Starts to watch a workflow; the first change is its present state.
    #[must_use]
    pub fn watch(&self, id: &WorkflowId) -> Watch {
        let (control, id) = (self.clone(), id.clone());
        Watch {
            control,
            id,
            etag: None,
            seen: Vec::new(),
            pause: Duration::ZERO,
        }
    }
}

impl Watch {
    /// Waits for the next state that differs from the last one.
    ///
    /// # Errors
    /// The store's own; the watch can go on afterwards.
    pub async fn next(&mut self) -> Result<Snapshot> {
        loop {
            tokio::time::sleep(self.pause).await;
            let started = Instant::now();
            let snapshot = self.look().await;
            self.pause = (started.elapsed() * PAUSE_PER_LOOK).max(PAUSE_MIN);
            if let Some(snapshot) = snapshot? {
                return Ok(snapshot);
            }
        }
    }

    async fn look(&mut self) -> Result<Option<Snapshot>> {
        let store = &self.control.store;
        let loaded = match &self.etag {
            None => store.load(&self.id).await?,
            Some(etag) => match store.load_if_changed(&self.id, etag).await? {
                LoadedIfChanged::Unchanged => return Ok(None),
                LoadedIfChanged::Changed(loaded) => *loaded,
            },
        };
        self.etag = Some(loaded.etag);
        let runtime = loaded.runtime;
        self.seen
            .resize(runtime.tasks().len(), (TaskState::Pending, 0));
        let mut changes = Vec::new();
        for (task, seen) in runtime.tasks().iter().zip(&mut self.seen) {
            let now = (task.state(), task.attempt_no());
            if std::mem::replace(seen, now) != now {
                changes.push(Change {
                    task: task.name().clone(),
                    state: task.state(),
                    attempt_no: task.attempt_no(),
                    error: task.error().map(str::to_owned),
                });
            }
        }
        let workflow = WorkflowView::of(&runtime);
        Ok(Some(Snapshot {
            workflow,
            changes,
            runtime: Box::new(runtime),
        }))
    }
}
