//! Waking receivers: at once for sends of this process, soon for those of others.

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex, PoisonError, Weak};
use std::time::Duration;

use rusqlite::Connection;
use tokio::sync::Notify;

use super::errors::translate;
use super::schema;
use crate::storage::{Error, Result};

/// How often the watcher asks whether another process has written. The question is answered from
/// shared memory, in about a microsecond.
const WATCH_PAUSE: Duration = Duration::from_millis(10);

/// Who waits for which queue.
pub(super) struct Wakers {
    queues: Mutex<HashMap<i64, Arc<Notify>>>,
    /// How many receivers wait; the watcher sleeps while none does.
    waiting: Mutex<usize>,
    some_wait: Condvar,
}

impl Wakers {
    /// Starts the watcher, which ends with the last handle.
    pub(super) fn start(path: &Path) -> Result<Arc<Self>> {
        let connection = schema::open_for_reading(path)
            .map_err(|error| translate(&error, "the data directory"))?;
        let wakers = Arc::new(Self {
            queues: Mutex::default(),
            waiting: Mutex::default(),
            some_wait: Condvar::new(),
        });
        let watched = Arc::downgrade(&wakers);
        std::thread::Builder::new()
            .name("jobq-sqlite-watcher".to_owned())
            .spawn(move || watch(&connection, &watched))
            .map_err(|error| Error::unavailable("no thread for the database", error))?;
        Ok(wakers)
    }

    /// What is notified when the queue may have a message.
    pub(super) fn of_queue(&self, queue: i64) -> Arc<Notify> {
        let mut queues = self.queues.lock().unwrap_or_else(PoisonError::into_inner);
        queues.entry(queue).or_default().clone()
    }

    /// Wakes all receivers of some queues.
    pub(super) fn wake(&self, queues: &[i64]) {
        let wakers = self.queues.lock().unwrap_or_else(PoisonError::into_inner);
        for queue in queues {
            if let Some(notify) = wakers.get(queue) {
                notify.notify_waiters();
            }
        }
    }

    fn wake_all(&self) {
        let wakers = self.queues.lock().unwrap_or_else(PoisonError::into_inner);
        for notify in wakers.values() {
            notify.notify_waiters();
        }
    }

    /// Keeps the watcher awake until the value is dropped.
    pub(super) fn waiting(self: &Arc<Self>) -> Waiting {
        *self.waiting.lock().unwrap_or_else(PoisonError::into_inner) += 1;
        self.some_wait.notify_one();
        Waiting(self.clone())
    }
}

/// A receiver that waits.
pub(super) struct Waiting(Arc<Wakers>);

impl Drop for Waiting {
    fn drop(&mut self) {
        *self
            .0
            .waiting
            .lock()
            .unwrap_or_else(PoisonError::into_inner) -= 1;
    }
}

fn watch(connection: &Connection, wakers: &Weak<Wakers>) {
    let mut seen = None;
    loop {
        let Some(wakers) = wakers.upgrade() else {
            return;
        };
        let idle = {
            let waiting = wakers
                .waiting
                .lock()
                .unwrap_or_else(PoisonError::into_inner);
            let (waiting, _) = wakers
                .some_wait
                .wait_timeout_while(waiting, WATCH_PAUSE * 50, |waiting| *waiting == 0)
                .unwrap_or_else(PoisonError::into_inner);
            *waiting == 0
        };
        if !idle {
            // Grows with every commit of another connection, so with those of other processes.
            let version: rusqlite::Result<i64> =
                connection.pragma_query_value(None, "data_version", |row| row.get(0));
            // What cannot be told is looked at.
            let version = version.ok();
            if version.is_none() || std::mem::replace(&mut seen, version) != version {
                wakers.wake_all();
            }
        }
        drop(wakers);
        std::thread::sleep(WATCH_PAUSE);
    }
}
