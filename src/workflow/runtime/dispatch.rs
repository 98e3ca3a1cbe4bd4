//! Handing ready tasks to their queues.

use super::{Runtime, TaskIndex};
use crate::clock::Timestamp;
use crate::workflow::TaskState;

impl Runtime {
    /// The ready tasks that may be pushed now, the longest waiting first: as many as
    /// `max_parallelism` leaves free. None after a cancel.
    pub fn dispatchable(&self) -> impl Iterator<Item = TaskIndex> + '_ {
        self.ready
            .iter()
            .map(|&(_, index)| index)
            .take(self.free_slots())
    }

    /// Marks a ready task as running, because it was or is about to be pushed, and returns the
    /// attempt that the push must carry. `None` if the task is not ready.
    pub fn dispatch(&mut self, index: TaskIndex, now: Timestamp) -> Option<u32> {
        if self.task(index).state != TaskState::Ready {
            return None;
        }
        self.start(index, now);
        self.touch(now);
        Some(self.task(index).attempt_no)
    }

    /// Fails a ready task that can never be pushed (its message would not fit any queue).
    pub fn reject(&mut self, index: TaskIndex, error: &str, now: Timestamp) {
        if self.task(index).state == TaskState::Ready {
            self.task_mut(index).error = Some(super::apply::clipped(error));
            self.finish(index, TaskState::Failed, now);
            self.touch(now);
        }
    }

    pub(super) fn start(&mut self, index: TaskIndex, now: Timestamp) {
        self.set_state(index, TaskState::Running);
        let task = self.task_mut(index);
        task.attempt_no += 1;
        task.started_at = Some(now);
        let is_first = task.attempt_no == 1;
        let deadline = task.deadline(index);
        self.deadlines.extend(deadline);
        self.counts.dispatched += u32::from(is_first);
    }

    fn free_slots(&self) -> usize {
        if self.cancel_requested {
            return 0;
        }
        self.header.max_parallelism.map_or(usize::MAX, |bound| {
            bound.saturating_sub(self.counts.of(TaskState::Running)) as usize
        })
    }
}
