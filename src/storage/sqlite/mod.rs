//! The storage in one directory: a SQLite database that many processes of one machine may open.
//!
//! ```text
//!  async callers ──► channel ──► writer thread ── BEGIN, every waiting call, COMMIT ──► jobq.db
//!        ▲                            │ answers only after the commit, then wakes receivers
//!        └────────────────────────────┘
//!  async callers ──► blocking threads ──► a few reading connections ──────────────────► jobq.db
//! ```
//!
//! Invariants:
//! - Nothing touches the database on an async thread.
//! - A call is answered only after the commit that holds it; with `synchronous=FULL` the commit is
//!   on the disk then. Calls that wait at the same time share a commit, so its cost is shared too.
//! - A call that is refused changed nothing; one that fails does not undo its neighbours.
//! - Versions and message ids come from one counter in the database and are never used twice.
//! - Times in the database are the wall clock's, read where the call was made, so that visibility
//!   timeouts and leases hold across processes.
//!
//! The directory must be on a local disk: SQLite's write-ahead log needs shared memory, which
//! network file systems do not offer.

mod blob;
mod call;
mod error;
mod lease;
mod properties;
mod queue;
mod readers;
mod scan;
mod schema;
mod table;
#[cfg(test)]
mod tests;
mod waiters;
mod writer;

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rusqlite::{Connection, OptionalExtension};

use self::call::Call;
use self::error::{Failure, Outcome};
use self::readers::Readers;
use self::waiters::Waiters;
use self::writer::Writer;
use super::{ETag, Error, Result};
use crate::clock::Clock;

/// The database's file name within its directory.
const FILE: &str = "jobq.db";

/// An open data directory. Dropping the last handle commits what is queued and stops the threads.
pub struct SqliteStorage {
    clock: Clock,
    path: PathBuf,
    writer: Writer,
    readers: Arc<Readers>,
    waiters: Arc<Waiters>,
}

impl SqliteStorage {
    /// Opens the data directory, creating it and its database where they are missing. Blocks for
    /// as long as the disk does; meant for a program's start.
    ///
    /// # Errors
    /// `Unauthorized` if the directory cannot be written, `Corrupt` if its database is damaged,
    /// another program's or a newer version's, `Unavailable` if the disk fails or another process
    /// keeps the database locked.
    pub fn open(dir: &Path, clock: Clock) -> Result<Arc<Self>> {
        schema::create_dir(dir)?;
        let path = dir.join(FILE);
        let connection = schema::open_writer(&path)?;
        let waiters = Arc::new(Waiters::default());
        Ok(Arc::new(Self {
            clock,
            writer: Writer::start(connection, path.clone(), waiters.clone())?,
            readers: Arc::new(Readers::new(path.clone())),
            path,
            waiters,
        }))
    }

    /// Runs a reading call on a blocking thread.
    async fn read<T, F>(&self, work: F) -> Result<T>
    where
        T: Send + 'static,
        F: FnOnce(&Connection) -> Outcome<T> + Send + 'static,
    {
        self.readers.call(work).await
    }

    /// Runs a writing call on the writer thread and returns once it is committed. The work may be
    /// run again after a rollback; it decides before it writes.
    async fn write<T, F>(&self, work: F) -> Result<T>
    where
        T: Send + 'static,
        F: Fn(&Connection) -> Outcome<T> + Send + 'static,
    {
        self.writer.call(Call::new(work)).await
    }
}

impl fmt::Debug for SqliteStorage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SqliteStorage")
            .field("path", &self.path)
            .finish_non_exhaustive()
    }
}

/// Takes `count` numbers that were never used before; returns the last of them.
fn take_numbers(db: &Connection, count: usize) -> rusqlite::Result<i64> {
    db.prepare_cached("UPDATE counter SET value = value + ?1 RETURNING value")?
        .query_row([count], |row| row.get(0))
}

fn take_etag(db: &Connection) -> rusqlite::Result<(i64, ETag)> {
    let number = take_numbers(db, 1)?;
    Ok((number, ETag(number.to_string())))
}

/// Which of the three tables of names a name is in.
#[derive(Debug, Clone, Copy)]
enum Room {
    Container,
    Queue,
    Table,
}

impl Room {
    /// The number that stands for `name` in other tables. Names are never removed.
    fn find(self, db: &Connection, name: &str) -> Outcome<i64> {
        let (what, sql) = match self {
            Self::Container => ("container", "SELECT id FROM containers WHERE name = ?1"),
            Self::Queue => ("queue", "SELECT id FROM queues WHERE name = ?1"),
            Self::Table => ("table", "SELECT id FROM tables WHERE name = ?1"),
        };
        db.prepare_cached(sql)?
            .query_row([name], |row| row.get(0))
            .optional()?
            .ok_or_else(|| {
                Failure::Refused(Error::NotFound {
                    what: format!("{what} {name}"),
                })
            })
    }

    fn create(self, db: &Connection, name: &str) -> Outcome<()> {
        let sql = match self {
            Self::Container => "INSERT OR IGNORE INTO containers (name) VALUES (?1)",
            Self::Queue => "INSERT OR IGNORE INTO queues (name) VALUES (?1)",
            Self::Table => "INSERT OR IGNORE INTO tables (name) VALUES (?1)",
        };
        db.prepare_cached(sql)?.execute([name])?;
        Ok(())
    }
}
