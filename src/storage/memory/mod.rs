//! A storage in this process's memory, for tests, simulation and benchmarks.
//!
//! Time comes from the [`Clock`], so a paused runtime drives visibility and leases, and the same
//! calls in the same order give the same answers. Nothing survives the process: a "crash" in a
//! simulation is the loss of a coordinator or worker, never of the storage.
//!
//! One lock around everything: operations are short, and none waits while holding it. Receives and
//! deletes cost the logarithm of a queue's length.

mod blob;
mod lease;
mod queue;
mod table;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use tokio::sync::Notify;

use super::{ETag, EntityKey, Properties};
use crate::clock::{Clock, Timestamp};
use queue::Queue;

/// A storage in memory.
pub struct MemoryStorage {
    clock: Clock,
    state: Mutex<State>,
    /// Notified whenever a message may have become visible.
    arrivals: Notify,
}

#[derive(Default)]
struct State {
    /// The source of versions and receipts; never repeats.
    counter: u64,
    containers: BTreeMap<String, BTreeMap<String, StoredBlob>>,
    leases: BTreeMap<(String, String), Lease>,
    queues: BTreeMap<String, Queue>,
    tables: BTreeMap<String, BTreeMap<EntityKey, (ETag, Properties)>>,
}

#[derive(Clone)]
struct StoredBlob {
    data: Bytes,
    etag: ETag,
}

struct Lease {
    id: String,
    duration: std::time::Duration,
    expires_at: Timestamp,
}

impl MemoryStorage {
    /// An empty storage whose time is `clock`'s.
    #[must_use]
    pub fn new(clock: Clock) -> Arc<Self> {
        Arc::new(Self {
            clock,
            state: Mutex::default(),
            arrivals: Notify::new(),
        })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn next_number(&mut self) -> u64 {
        self.counter += 1;
        self.counter
    }

    fn next_etag(&mut self) -> ETag {
        ETag(self.next_number().to_string())
    }
}

impl std::fmt::Debug for MemoryStorage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("MemoryStorage").finish_non_exhaustive()
    }
}
