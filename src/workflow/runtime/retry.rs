//! Running again what did not succeed, on a person's request.

use std::collections::BTreeSet;

use super::build::index_of;
use super::{LoadedOutputs, Runtime, TaskIndex};
use crate::clock::Timestamp;

impl Runtime {
    /// The tasks a retry of everything would run again: failed, upstream-failed and cancelled ones.
    pub fn retryable(&self) -> impl Iterator<Item = TaskIndex> + '_ {
        (0..self.tasks.len())
            .map(index_of)
            .filter(|&index| self.task(index).state.breaks())
    }

    /// The tasks a retry of one task would run again: itself, what it waits for and what waits for
    /// it, as far as these did not succeed either. Empty if the task is not retryable.
    #[must_use]
    pub fn retryable_with(&self, index: TaskIndex) -> Vec<TaskIndex> {
        let mut found = BTreeSet::new();
        self.spread(index, |task| &task.parents, &mut found);
        // What was found so far is broken because of itself; what waits for it, because of it.
        for above in found.clone() {
            found.remove(&above);
            self.spread(above, |task| &task.children, &mut found);
        }
        found.into_iter().collect()
    }

    /// Adds a broken task and the broken tasks reachable from it through broken ones.
    fn spread(
        &self,
        from: TaskIndex,
        neighbours: impl Fn(&super::Task) -> &Vec<TaskIndex>,
        found: &mut BTreeSet<TaskIndex>,
    ) {
        let mut waiting = vec![from];
        while let Some(index) = waiting.pop() {
            if self.task(index).state.breaks() && found.insert(index) {
                waiting.extend(neighbours(self.task(index)));
            }
        }
    }

    /// Resets these retryable tasks to pending, attempt 0, and decides them afresh, conditions
    /// included. Completed and skipped tasks are left as they are, and a cancel is taken back.
    /// Returns the paths of outputs that conditions need, as [`settle`](Self::settle) does.
    pub fn retry(
        &mut self,
        again: &[TaskIndex],
        outputs: &LoadedOutputs,
        now: Timestamp,
    ) -> Vec<String> {
        for &index in again {
            let task = self.task_mut(index);
            task.state = crate::workflow::TaskState::Pending;
            task.attempt_no = 0;
            task.retry_no += 1;
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
