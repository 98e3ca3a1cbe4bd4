//! Running again what did not succeed, on a person's request.

use super::build::index_of;
use super::{LoadedOutputs, Runtime, TaskIndex};
use crate::clock::Timestamp;
use crate::workflow::TaskState;

impl Runtime {
    /// The tasks a retry would run again: failed, upstream-failed and cancelled ones.
    pub fn retryable(&self) -> impl Iterator<Item = TaskIndex> + '_ {
        (0..self.tasks.len())
            .map(index_of)
            .filter(|&index| self.task(index).state.breaks())
    }

    /// Resets the retryable tasks to pending, attempt 0, and decides them afresh, conditions
    /// included. Completed and skipped tasks are left as they are. Returns the paths of outputs
    /// that conditions need, as [`settle`](Self::settle) does.
    pub fn retry(&mut self, outputs: &LoadedOutputs, now: Timestamp) -> Vec<String> {
        let again: Vec<TaskIndex> = self.retryable().collect();
        for index in again {
            let task = self.task_mut(index);
            task.state = TaskState::Pending;
            task.attempt_no = 0;
            task.output_ref = None;
            task.error = None;
            task.started_at = None;
            task.completed_at = None;
        }
        self.cancel_requested = false;
        self.recount();
        self.touch(now);
        self.settle(outputs, now)
    }
}
