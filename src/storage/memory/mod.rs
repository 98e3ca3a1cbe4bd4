//! The storage in this process's memory: for tests and simulations.
//!
//! Same calls, same answers: versions, message ids and receipts come from one counter, and time
//! comes from the [`Clock`], so that paused tokio time drives visibility timeouts and leases.
//!
//! Invariants:
//! - The lock is never held across an await; every call is one step that others see whole.
//! - A queue's messages stand in two maps, by id and by (visible from, id), which always agree.
//!   Sends, receives and deletes cost O(log n).

mod blob;
mod lease;
mod queue;
mod table;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use self::blob::StoredBlob;
use self::queue::StoredQueue;
use self::table::StoredRow;
use super::{ETag, EntityKey};
use crate::clock::Clock;

/// A storage that lives and dies with this value.
pub struct MemoryStorage {
    clock: Clock,
    rooms: Mutex<Rooms>,
}

#[derive(Default)]
struct Rooms {
    /// The latest version or id handed out.
    counter: u64,
    containers: BTreeMap<String, BTreeMap<String, StoredBlob>>,
    queues: BTreeMap<String, StoredQueue>,
    tables: BTreeMap<String, BTreeMap<EntityKey, StoredRow>>,
}

impl Rooms {
    fn next(&mut self) -> u64 {
        self.counter += 1;
        self.counter
    }

    fn next_etag(&mut self) -> ETag {
        ETag(self.next().to_string())
    }
}

impl MemoryStorage {
    /// An empty storage whose time is `clock`'s.
    #[must_use]
    pub fn new(clock: Clock) -> Arc<Self> {
        Arc::new(Self {
            clock,
            rooms: Mutex::default(),
        })
    }

    fn rooms(&self) -> MutexGuard<'_, Rooms> {
        // No call panics between two changes that belong together, so a poisoned lock is sound.
        self.rooms.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for MemoryStorage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryStorage").finish_non_exhaustive()
    }
}
