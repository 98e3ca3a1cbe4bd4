//! Failing attempts that take too long.

use super::{Applied, Completion, Runtime, TaskIndex};
use crate::clock::Timestamp;
use crate::workflow::TaskState;

impl Runtime {
    /// The running tasks whose attempt was dispatched longer ago than their timeout.
    pub fn overdue(&self, now: Timestamp) -> impl Iterator<Item = TaskIndex> + '_ {
        let past = self
            .deadlines
            .iter()
            .take_while(move |&&(deadline, _)| deadline < now);
        past.map(|&(_, index)| index)
    }

    /// When the next attempt will be overdue, if any running one has a timeout.
    #[must_use]
    pub fn next_deadline(&self) -> Option<Timestamp> {
        self.deadlines.first().map(|&(deadline, _)| deadline)
    }

    /// Fails the attempt of an overdue task, as a worker's report of a failure would: with
    /// attempts left it becomes ready again. `None` if the task is not overdue.
    pub fn time_out(&mut self, index: TaskIndex, now: Timestamp) -> Option<Applied> {
        let task = self.task(index);
        let limit = task.timeout_s?;
        let (deadline, _) = task.deadline(index)?;
        if task.state != TaskState::Running || deadline >= now {
            return None;
        }
        let attempt_no = task.attempt_no;
        let error = format!("attempt {attempt_no} passed its timeout of {} s", limit.0);
        let completion = Completion {
            attempt_no: Some(attempt_no),
            retry_no: None,
            success: false,
            output_ref: None,
            error: Some(&error),
        };
        Some(self.apply(index, &completion, now))
    }
}
