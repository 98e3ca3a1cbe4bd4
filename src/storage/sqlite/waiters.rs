//! Who waits for a message of which queue.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

/// The receivers of this process that wait, by queue.
#[derive(Default)]
pub(super) struct Waiters {
    queues: Mutex<HashMap<String, Arc<Notify>>>,
}

/// A place among the waiters of one queue, held while a receive waits.
pub(super) struct Waiting {
    waiters: Arc<Waiters>,
    queue: String,
    /// Wakes when something may have arrived.
    pub(super) arrivals: Arc<Notify>,
}

impl Waiters {
    fn queues(&self) -> MutexGuard<'_, HashMap<String, Arc<Notify>>> {
        self.queues.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Joins the waiters of a queue until the place is dropped.
    pub(super) fn join(self: &Arc<Self>, queue: &str) -> Waiting {
        let arrivals = self.queues().entry(queue.to_owned()).or_default().clone();
        Waiting {
            waiters: self.clone(),
            queue: queue.to_owned(),
            arrivals,
        }
    }

    /// Whether anyone waits at all.
    pub(super) fn any(&self) -> bool {
        !self.queues().is_empty()
    }

    /// Wakes those who wait for a message of this queue.
    pub(super) fn wake(&self, queue: &str) {
        if let Some(arrivals) = self.queues().get(queue) {
            arrivals.notify_waiters();
        }
    }

    /// Wakes everyone.
    pub(super) fn wake_all(&self) {
        for arrivals in self.queues().values() {
            arrivals.notify_waiters();
        }
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        let mut queues = self.waiters.queues();
        // One reference is the map's, one is this place's: nobody else waits for this queue.
        if Arc::strong_count(&self.arrivals) == 2 {
            queues.remove(&self.queue);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_queue_is_forgotten_with_its_last_waiter() {
        let waiters = Arc::new(Waiters::default());
        let first = waiters.join("q");
        let second = waiters.join("q");
        drop(first);
        assert!(waiters.any());
        drop(second);
        assert!(!waiters.any());
    }
}
