//! Failing attempts that take too long.

use super::build::index_of;
use super::{Applied, Completion, Runtime, TaskIndex};
use crate::clock::Timestamp;
use crate::workflow::TaskState;

impl Runtime {
    /// The running tasks whose attempt was dispatched longer ago than their timeout.
    pub fn overdue(&self, now: Timestamp) -> impl Iterator<Item = TaskIndex> + '_ {
        (0..self.tasks.len())
            .map(index_of)
            .filter(move |&index| self.is_overdue(index, now))
    }

    /// Fails the attempt of an overdue task, as a worker's report of a failure would: with
    /// attempts left it becomes ready again. `None` if the task is not overdue.
    pub fn time_out(&mut self, index: TaskIndex, now: Timestamp) -> Option<Applied> {
        if !self.is_overdue(index, now) {
            return None;
        }
        let task = self.task(index);
        let limit_s = task.timeout_s.map_or(0.0, |limit| limit.0);
        let attempt_no = task.attempt_no;
        let error = format!("attempt {attempt_no} passed its timeout of {limit_s} s");
        let completion = Completion {
            attempt_no: Some(attempt_no),
            success: false,
            output_ref: None,
            error: Some(&error),
        };
        Some(self.apply(index, &completion, now))
    }

    fn is_overdue(&self, index: TaskIndex, now: Timestamp) -> bool {
        let task = self.task(index);
        match (task.state, task.timeout_s, task.started_at) {
            (TaskState::Running, Some(limit), Some(started_at)) => {
                now.since(started_at) > limit.as_duration()
            }
            _ => false,
        }
    }
}
