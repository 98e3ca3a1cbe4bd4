//! What the tasks' states make of the workflow as a whole.

use super::{Runtime, Task};
use crate::workflow::{ResultPolicy, TaskState, WorkflowState};

impl Runtime {
    pub(super) fn derive_state(&self) -> WorkflowState {
        let of = |state| self.counts.of(state);
        let total = self.counts.total();
        if self.counts.terminal() == total {
            return self.result();
        }
        if self.cancel_requested {
            return WorkflowState::Cancelling;
        }
        let untouched = of(TaskState::Pending) + of(TaskState::Ready) == total;
        if untouched && self.counts.dispatched == 0 {
            return WorkflowState::Pending;
        }
        WorkflowState::Running
    }

    fn result(&self) -> WorkflowState {
        let of = |state| self.counts.of(state);
        if self.cancel_requested {
            return WorkflowState::Cancelled;
        }
        let failed = match self.header.result_policy {
            ResultPolicy::AllSinksSucceed => {
                let satisfied = of(TaskState::Completed) + of(TaskState::Skipped);
                self.counts.broken_sinks > 0 || satisfied == 0
            }
            ResultPolicy::AllTasksSucceed => of(TaskState::Failed) > 0,
        };
        if failed {
            WorkflowState::Failed
        } else {
            WorkflowState::Completed
        }
    }

    /// Names the first failed task of a failed workflow, so that a listing says why. Walks all
    /// tasks, once, at the end.
    pub(super) fn derive_error(&self) -> Option<String> {
        if self.state != WorkflowState::Failed {
            return None;
        }
        let failed = |task: &&Task| task.state == TaskState::Failed;
        let first = self.tasks.iter().find(failed)?;
        let count = self.counts.of(TaskState::Failed);
        let others = if count > 1 {
            format!(" (and {} more)", count - 1)
        } else {
            String::new()
        };
        let reason = first.error.as_deref().unwrap_or("failed");
        let text = format!("task {:?} failed{others}: {reason}", first.name.as_str());
        Some(super::apply::clipped(&text).into())
    }
}
