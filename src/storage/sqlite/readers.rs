//! The reading connections.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use rusqlite::Connection;
use tokio::sync::Semaphore;
use tokio::task::spawn_blocking;

use super::error::Outcome;
use super::schema;
use crate::limits;
use crate::storage::{Error, Result};

/// A few connections, opened when first needed and then kept.
pub(super) struct Readers {
    path: PathBuf,
    idle: Mutex<Vec<Connection>>,
    room: Arc<Semaphore>,
}

impl Readers {
    pub(super) fn new(path: PathBuf) -> Self {
        Self {
            path,
            idle: Mutex::default(),
            room: Arc::new(Semaphore::new(limits::SQLITE_READERS_MAX)),
        }
    }

    /// Runs `work` on a blocking thread with a connection of its own.
    pub(super) async fn call<T, F>(self: &Arc<Self>, work: F) -> Result<T>
    where
        T: Send + 'static,
        F: FnOnce(&Connection) -> Outcome<T> + Send + 'static,
    {
        let permit = self.room.clone().acquire_owned().await;
        let readers = self.clone();
        let task = spawn_blocking(move || {
            // Held by the thread, not the caller, who may be gone before the work is done.
            let _permit = permit;
            readers.run(work)
        });
        task.await
            .map_err(|error| Error::unavailable("a read was interrupted", error))?
    }

    fn run<T>(&self, work: impl FnOnce(&Connection) -> Outcome<T>) -> Result<T> {
        let idle = self.idle().pop();
        let db = match idle {
            Some(db) => db,
            None => schema::open_reader(&self.path).map_err(|f| f.explain(&self.path))?,
        };
        let outcome = work(&db);
        self.idle().push(db);
        outcome.map_err(|failure| failure.explain(&self.path))
    }

    fn idle(&self) -> std::sync::MutexGuard<'_, Vec<Connection>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
