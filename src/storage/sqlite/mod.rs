//! The embedded store: one data directory, one SQLite database, any number of processes.
//!
//! ```text
//!  async callers ──jobs──► writer thread: BEGIN IMMEDIATE … all waiting jobs … COMMIT ──► answers
//!        │                      │ committed sends wake receivers of this process
//!        └──reads──► pool of reading connections
//!                    watcher thread: has another process written? then receivers look again
//! ```
//!
//! | file | what it does |
//! | --- | --- |
//! | `schema` | the database's layout and settings |
//! | `writer` | the one writing thread, which groups commits |
//! | `reader` | the pool of reading connections |
//! | `wake` | waking receivers, in this process and on writes of others |
//! | `errors` | SQLite's failures as the ports' errors |
//! | `blob`, `queue`, `table`, `lease` | the ports |
//!
//! Invariants: an operation is answered only after the commit it is part of; versions come from
//! one counter in the database, so none is ever used twice; only the writer thread writes.
//!
//! Durability: commits that hold anything but receives and extensions are synced to disk. A lost
//! receive or extension only makes a message visible again, which the port allows.

mod blob;
mod errors;
mod lease;
mod queue;
mod reader;
mod schema;
mod table;
mod wake;
mod writer;

#[cfg(test)]
mod tests;

use std::path::Path;
use std::sync::Arc;

use super::{Error, Result};
use crate::clock::Clock;
use reader::Readers;
use wake::Wakers;
use writer::Writer;

/// An open data directory. Its threads end with the last handle; what was answered is durable.
pub struct SqliteStorage {
    writer: Writer,
    readers: Readers,
    wakers: Arc<Wakers>,
    clock: Clock,
}

impl SqliteStorage {
    /// Opens a data directory, creating it if it is missing.
    ///
    /// # Errors
    /// `Unauthorized` if it cannot be written, `Corrupt` if its database is damaged or newer than
    /// this program.
    pub fn open(directory: &Path, clock: Clock) -> Result<Arc<Self>> {
        std::fs::create_dir_all(directory).map_err(|error| Error::Unauthorized {
            message: format!(
                "cannot create the data directory {}: {error}",
                directory.display()
            ),
        })?;
        let path = directory.join(schema::FILE_NAME);
        let connection = schema::open_for_writing(&path)?;
        let wakers = Wakers::start(&path)?;
        Ok(Arc::new(Self {
            writer: Writer::start(connection, wakers.clone())?,
            readers: Readers::new(path),
            wakers,
            clock,
        }))
    }

    fn now(&self) -> i64 {
        self.clock.now().as_micros()
    }
}

impl std::fmt::Debug for SqliteStorage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SqliteStorage").finish_non_exhaustive()
    }
}
