//! Counts of what a worker did, for metrics and the log.

use std::sync::atomic::{AtomicU64, Ordering};

macro_rules! counters {
    ($($(#[$doc:meta])* $field:ident,)*) => {
        /// What happened to the messages of a worker so far.
        #[derive(Debug, Default)]
        pub struct WorkerStats { $($field: AtomicU64,)* }

        /// The counts of one moment.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
        pub struct WorkerCounts { $($(#[$doc])* pub $field: u64,)* }

        impl WorkerStats {
            /// The counts now.
            #[must_use]
            pub fn counts(&self) -> WorkerCounts {
                WorkerCounts { $($field: self.$field.load(Ordering::Relaxed),)* }
            }

            $(pub(super) fn $field(&self) {
                self.$field.fetch_add(1, Ordering::Relaxed);
            })*
        }
    };
}

counters! {
    /// Attempts reported, or plain tasks ended, with success.
    succeeded,
    /// Attempts reported, or plain tasks ended, without success; cancelled ones included.
    failed,
    /// Commands stopped, or not started, because of their workflow's cancel.
    cancelled,
    /// Messages of attempts that were over, dropped unrun.
    stale,
    /// Commands stopped because another worker may have their message.
    lost,
    /// Messages given back because this worker was to stop.
    given_back,
    /// Completions that could not be sent in the attempts allowed.
    unreported,
    /// Messages that could not be read.
    poison,
    /// Messages moved to a dead-letter queue.
    dead_lettered,
}
