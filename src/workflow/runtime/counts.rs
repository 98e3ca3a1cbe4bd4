//! Counters kept incrementally, so that no step ever walks all tasks.

use crate::workflow::TaskState;

/// How many tasks are in each state, and what the workflow's own state needs to know beside.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts {
    by_state: [u32; TaskState::ALL.len()],
    /// Tasks that were dispatched at least once.
    pub(super) dispatched: u32,
    /// Tasks without children that are failed, upstream-failed or cancelled.
    pub(super) broken_sinks: u32,
}

impl Counts {
    /// How many tasks are in `state`.
    #[must_use]
    pub const fn of(&self, state: TaskState) -> u32 {
        self.by_state[state as usize]
    }

    /// How many tasks there are.
    #[must_use]
    pub fn total(&self) -> u32 {
        self.by_state.iter().sum()
    }

    /// How many tasks are terminal.
    #[must_use]
    pub fn terminal(&self) -> u32 {
        TaskState::ALL
            .iter()
            .filter(|state| state.is_terminal())
            .map(|&state| self.of(state))
            .sum()
    }

    pub(super) const fn enter(&mut self, state: TaskState) {
        self.by_state[state as usize] += 1;
    }

    pub(super) const fn leave(&mut self, state: TaskState) {
        self.by_state[state as usize] -= 1;
    }
}
