//! What a coordinator counts.

use std::sync::atomic::{AtomicU64, Ordering};

use serde::Serialize;

macro_rules! stats {
    ($($(#[$doc:meta])* $name:ident,)*) => {
        /// Counters since the process started; they only grow.
        #[derive(Debug, Default)]
        pub struct Stats { $($(#[$doc])* pub $name: Counter,)* }

        /// The counters at one moment.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
        pub struct StatsSnapshot { $($(#[$doc])* pub $name: u64,)* }

        impl Stats {
            /// The counters now.
            #[must_use]
            pub fn snapshot(&self) -> StatsSnapshot {
                StatsSnapshot { $($name: self.$name.get(),)* }
            }
        }
    };
}

stats! {
    /// Completions that made a task terminal.
    completions,
    /// Completions that made a task ready again.
    rearmed,
    /// Completions that changed nothing.
    duplicates,
    /// Completions of workflows or tasks that do not exist.
    orphans,
    /// Messages that are no completions.
    poison_messages,
    /// Completions left for redelivery because their workflow's mailbox was full.
    deferred,
    /// Task messages pushed.
    pushes,
    /// Task messages that could not be pushed at once.
    push_failures,
    /// Tasks failed because their message can never fit.
    rejected,
    /// States written.
    flushes,
    /// Flushes that met another writer's state.
    conflicts,
    /// Cycles given up after too many conflicts or failures; their completions are redelivered.
    exhausted,
    /// Attempts failed because of their timeout.
    timeouts,
    /// Workflows whose cancel took effect.
    cancels,
    /// Receives that failed.
    receive_errors,
    /// Workflows looked at because they had not moved for long, or a term began.
    repairs,
    /// Cycles that began with the state in memory.
    cache_hits,
    /// Cycles that began with a state loaded from the storage.
    loads,
    /// Terms of leadership begun.
    terms,
    /// Workflows set aside because their state cannot be used.
    quarantined,
}

/// One counter.
#[derive(Debug, Default)]
pub struct Counter(AtomicU64);

impl Counter {
    /// Adds `count`.
    pub fn add(&self, count: u64) {
        self.0.fetch_add(count, Ordering::Relaxed);
    }

    /// Adds one.
    pub fn increment(&self) {
        self.add(1);
    }

    /// The count now.
    #[must_use]
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}
