//! Applying a worker's report to a task.

use super::{Runtime, TaskIndex};
use crate::clock::Timestamp;
use crate::limits::ERROR_BYTES_MAX;
use crate::workflow::TaskState;

/// What a worker reports about one attempt.
#[derive(Debug, Clone, Copy)]
pub struct Completion<'a> {
    /// The attempt; `None` from workers that do not say, which means the current one.
    pub attempt_no: Option<u32>,
    /// Which of the task's lives the attempt belongs to, see [`Task::retry_no`](super::Task::retry_no);
    /// `None` from workers that do not say, which means the current one.
    pub retry_no: Option<u32>,
    /// Whether the command succeeded.
    pub success: bool,
    /// The output of a successful attempt.
    pub output_ref: Option<&'a str>,
    /// Why it failed, for people.
    pub error: Option<&'a str>,
}

/// What became of a completion.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Applied {
    /// The task is terminal now.
    Finished,
    /// The attempt failed and another one may follow: the task is ready again.
    Rearmed,
    /// It changes nothing, for the reason given. Normal where queues deliver more than once.
    Ignored(IgnoredBecause),
}

/// Why a completion changes nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IgnoredBecause {
    /// The task is terminal already.
    AlreadyTerminal,
    /// It reports an attempt that was succeeded by another.
    StaleAttempt,
    /// It reports an attempt that cannot have been dispatched.
    ImpossibleAttempt,
}

impl Runtime {
    /// Applies one completion. Repeating it, or applying an older one, changes nothing.
    ///
    /// Accepted are reports of a running task's current attempt, and of a later attempt of a ready
    /// or running task: that one was pushed, but the state that said so was lost in a crash before
    /// its flush, so the state catches up with it.
    pub fn apply(
        &mut self,
        index: TaskIndex,
        completion: &Completion<'_>,
        now: Timestamp,
    ) -> Applied {
        let attempt_no = match self.accepted_attempt(index, completion) {
            Ok(attempt_no) => attempt_no,
            Err(reason) => return Applied::Ignored(reason),
        };
        self.catch_up(index, attempt_no, now);
        if completion.success {
            let task = self.task_mut(index);
            task.output_ref = completion.output_ref.map(Into::into);
            task.error = None;
            self.finish(index, TaskState::Completed, now);
        } else if self.may_rearm(index) {
            self.task_mut(index).error = completion.error.map(clipped);
            self.rearm(index, now);
        } else {
            self.task_mut(index).error = Some(clipped(completion.error.unwrap_or("failed")));
            self.finish(index, TaskState::Failed, now);
        }
        self.touch(now);
        match self.task(index).state {
            TaskState::Ready => Applied::Rearmed,
            _ => Applied::Finished,
        }
    }

    fn accepted_attempt(
        &self,
        index: TaskIndex,
        completion: &Completion<'_>,
    ) -> Result<u32, IgnoredBecause> {
        let task = self.task(index);
        match completion.retry_no {
            Some(retry_no) if retry_no < task.retry_no => return Err(IgnoredBecause::StaleAttempt),
            // A retry is stored before anything of it is pushed.
            Some(retry_no) if retry_no > task.retry_no => {
                return Err(IgnoredBecause::ImpossibleAttempt);
            }
            _ => {}
        }
        // A task that is ready at attempt n waits for n + 1; one that runs is at n.
        let current = match task.state {
            TaskState::Ready => task.attempt_no + 1,
            TaskState::Running => task.attempt_no,
            // Nothing was ever pushed for a pending task, so a report about it is not ours.
            TaskState::Pending => return Err(IgnoredBecause::ImpossibleAttempt),
            _ => return Err(IgnoredBecause::AlreadyTerminal),
        };
        match completion.attempt_no {
            // Without a number only a running task can be meant: a ready one has no attempt out.
            None if task.state == TaskState::Running => Ok(current),
            None => Err(IgnoredBecause::StaleAttempt),
            Some(attempt_no) if attempt_no < current => Err(IgnoredBecause::StaleAttempt),
            Some(attempt_no) if attempt_no > task.num_retries + 1 => {
                Err(IgnoredBecause::ImpossibleAttempt)
            }
            Some(attempt_no) => Ok(attempt_no),
        }
    }

    /// Brings a task to the running attempt that is being reported.
    fn catch_up(&mut self, index: TaskIndex, attempt_no: u32, now: Timestamp) {
        if self.task(index).state == TaskState::Ready {
            self.start(index, now);
        }
        self.task_mut(index).attempt_no = attempt_no;
    }

    const fn is_cancelling(&self) -> bool {
        self.cancel_requested
    }

    fn may_rearm(&self, index: TaskIndex) -> bool {
        let task = self.task(index);
        !self.is_cancelling() && task.attempt_no <= task.num_retries
    }

    fn rearm(&mut self, index: TaskIndex, now: Timestamp) {
        self.set_state(index, TaskState::Ready);
        self.task_mut(index).started_at = None;
        self.touch(now);
    }

    /// Makes a task terminal and tells its children; the next settle decides those that this
    /// satisfies or breaks.
    pub(super) fn finish(&mut self, index: TaskIndex, state: TaskState, now: Timestamp) {
        debug_assert!(state.is_terminal());
        self.set_state(index, state);
        self.task_mut(index).completed_at = Some(now);
        let children = std::mem::take(&mut self.task_mut(index).children);
        for &child_index in &children {
            let child = self.task_mut(child_index);
            child.satisfied += u32::from(state.satisfies());
            child.broken += u32::from(state.breaks());
            if child.state == TaskState::Pending
                && (child.is_policy_satisfied() || child.is_policy_broken())
            {
                self.undecided.insert(child_index);
            }
        }
        self.task_mut(index).children = children;
    }

    /// Moves a task between states and keeps every counter and queue in step.
    pub(super) fn set_state(&mut self, index: TaskIndex, state: TaskState) {
        let old = self.task(index).state;
        self.counts.leave(old);
        self.counts.enter(state);
        if self.task(index).is_sink() {
            self.counts.broken_sinks -= u32::from(old.breaks());
            self.counts.broken_sinks += u32::from(state.breaks());
        }
        if old == TaskState::Ready {
            let seq = self.task(index).ready_seq;
            self.ready.remove(&(seq, index));
        }
        if old == TaskState::Running
            && let Some(deadline) = self.task(index).deadline(index)
        {
            self.deadlines.remove(&deadline);
        }
        if state == TaskState::Ready {
            let seq = self.next_ready_seq;
            self.next_ready_seq += 1;
            self.ready.insert((seq, index));
            self.task_mut(index).ready_seq = seq;
        }
        self.task_mut(index).state = state;
    }

    /// Notes a change at `now` and what it makes of the workflow as a whole.
    pub(super) fn touch(&mut self, now: Timestamp) {
        self.updated_at = now;
        self.revision += 1;
        self.state = self.derive_state();
        self.error = self.derive_error();
    }
}

/// An error text within its bound, cut at a character.
pub(super) fn clipped(text: &str) -> Box<str> {
    text[..text.floor_char_boundary(ERROR_BYTES_MAX)].into()
}
