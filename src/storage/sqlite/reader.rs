//! The pool of reading connections. Reads run on tokio's blocking threads.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use rusqlite::Connection;
use tokio::sync::Semaphore;

use super::errors::translate;
use super::schema;
use crate::storage::{Error, Result};

/// Reads at once. More would only compete for the processors with the commands of workers.
const READS_MAX: usize = 4;

pub(super) struct Readers {
    path: PathBuf,
    idle: Arc<Mutex<Vec<Connection>>>,
    slots: Arc<Semaphore>,
}

impl Readers {
    pub(super) fn new(path: PathBuf) -> Self {
        Self {
            path,
            idle: Arc::default(),
            slots: Arc::new(Semaphore::new(READS_MAX)),
        }
    }

    /// Runs `work` on a reading connection; what it sees is one moment of the database.
    pub(super) async fn run<T, F>(&self, what: &str, work: F) -> Result<T>
    where
        T: Send + 'static,
        F: FnOnce(&Connection) -> rusqlite::Result<Result<T>> + Send + 'static,
    {
        let slot = self.slots.clone().acquire_owned().await;
        let (path, idle) = (self.path.clone(), self.idle.clone());
        let read = tokio::task::spawn_blocking(move || {
            let pooled = idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
            let connection = match pooled {
                Some(connection) => connection,
                None => schema::open_for_reading(&path)?,
            };
            let result = within_one_moment(&connection, work);
            idle.lock()
                .unwrap_or_else(PoisonError::into_inner)
                .push(connection);
            drop(slot);
            result
        });
        match read.await {
            Ok(result) => result.unwrap_or_else(|error| Err(translate(&error, what))),
            Err(error) => Err(Error::unavailable(
                "a read of the database was interrupted",
                error,
            )),
        }
    }
}

fn within_one_moment<T>(
    connection: &Connection,
    work: impl FnOnce(&Connection) -> rusqlite::Result<Result<T>>,
) -> rusqlite::Result<Result<T>> {
    connection.execute_batch("BEGIN")?;
    let result = work(connection);
    connection.execute_batch("COMMIT")?;
    result
}
