//! Cancelling a workflow.

use super::build::index_of;
use super::{Runtime, TaskIndex};
use crate::clock::Timestamp;
use crate::workflow::TaskState;

impl Runtime {
    /// Cancels what has not started: pending and ready tasks. Running ones stay until their
    /// completion arrives, and are not re-armed. Returns whether anything changed; a workflow that
    /// is terminal, or was cancelled before, does not.
    pub fn cancel(&mut self, now: Timestamp) -> bool {
        if self.cancel_requested || self.state.is_terminal() {
            return false;
        }
        self.cancel_requested = true;
        let waiting: Vec<TaskIndex> = (0..self.tasks.len())
            .map(index_of)
            .filter(|&index| {
                matches!(
                    self.task(index).state,
                    TaskState::Pending | TaskState::Ready
                )
            })
            .collect();
        for index in waiting {
            self.finish(index, TaskState::Cancelled, now);
        }
        self.undecided.clear();
        self.touch(now);
        true
    }
}
