//! The database's layout and settings.

use std::path::Path;
use std::time::Duration;

use rusqlite::{Connection, OpenFlags};

use super::errors::translate;
use crate::storage::{Error, Result};

/// The database within the data directory.
pub(super) const FILE_NAME: &str = "jobq.db";

/// The layout this program knows.
const VERSION: i64 = 1;

/// How often a connection asks again for a lock that another process holds. Commits take about a
/// millisecond, so a longer pause would only add latency.
const BUSY_PAUSE: Duration = Duration::from_millis(1);

/// How often it asks before it gives up: half a minute, far beyond any commit.
const BUSY_TRIES_MAX: i32 = 30_000;

/// Statements kept prepared in each connection; there are about thirty.
const STATEMENT_CACHE: usize = 64;

const LAYOUT: &str = "
    CREATE TABLE counter (id INTEGER PRIMARY KEY CHECK (id = 1), value INTEGER NOT NULL);
    INSERT INTO counter VALUES (1, 0);

    CREATE TABLE containers (name TEXT PRIMARY KEY) WITHOUT ROWID;
    CREATE TABLE blobs (
        container TEXT NOT NULL, name TEXT NOT NULL, etag INTEGER NOT NULL, data BLOB NOT NULL,
        PRIMARY KEY (container, name)
    );
    CREATE TABLE leases (
        container TEXT NOT NULL, name TEXT NOT NULL, lease_id TEXT NOT NULL,
        duration INTEGER NOT NULL, expires_at INTEGER NOT NULL,
        PRIMARY KEY (container, name)
    ) WITHOUT ROWID;

    CREATE TABLE queues (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE);
    CREATE TABLE messages (
        id INTEGER PRIMARY KEY AUTOINCREMENT, queue INTEGER NOT NULL, visible_at INTEGER NOT NULL,
        receipt INTEGER NOT NULL DEFAULT 0, dequeue_count INTEGER NOT NULL DEFAULT 0,
        sent_at INTEGER NOT NULL, body TEXT NOT NULL
    );
    CREATE INDEX messages_by_visibility ON messages (queue, visible_at, id);

    CREATE TABLE tables (name TEXT PRIMARY KEY) WITHOUT ROWID;
    CREATE TABLE entities (
        tbl TEXT NOT NULL, part TEXT NOT NULL, row TEXT NOT NULL, etag INTEGER NOT NULL,
        properties TEXT NOT NULL,
        PRIMARY KEY (tbl, part, row)
    ) WITHOUT ROWID;
    -- The properties that sweeps look for every second, so that finished rows cost them nothing.
    CREATE INDEX entities_by_state
        ON entities (tbl, json_extract(properties, '$.\"workflow_state\"'));
    CREATE INDEX entities_by_cancel
        ON entities (tbl, json_extract(properties, '$.\"cancel_requested\"'));
";

/// Opens the database for the writer, creating it if it is missing.
pub(super) fn open_for_writing(path: &Path) -> Result<Connection> {
    let open = || -> rusqlite::Result<Connection> {
        let mut connection = Connection::open(path)?;
        // Readers never wait for the writer, and the writer never for readers.
        connection.pragma_update(None, "journal_mode", "wal")?;
        configure(&mut connection)?;
        // What is committed survives a power cut (see the room's page for the exception).
        connection.pragma_update(None, "synchronous", "full")?;
        // Checkpoints every 16 MB of log: seldom enough for batches, early enough for the disk.
        connection.pragma_update(None, "wal_autocheckpoint", 4_000)?;
        // After a checkpoint the log is cut back, so that one burst does not keep its size for ever.
        connection.pragma_update(None, "journal_size_limit", 64 * 1024 * 1024)?;
        create(&mut connection)?;
        Ok(connection)
    };
    let connection = open().map_err(|error| translate(&error, "the data directory"))?;
    check_version(&connection)?;
    Ok(connection)
}

/// Opens the database for reading.
pub(super) fn open_for_reading(path: &Path) -> rusqlite::Result<Connection> {
    // Not read-only: a reader of a write-ahead log updates the log's shared index.
    let mut connection = Connection::open_with_flags(
        path,
        OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX,
    )?;
    configure(&mut connection)?;
    connection.pragma_update(None, "query_only", true)?;
    Ok(connection)
}

fn configure(connection: &mut Connection) -> rusqlite::Result<()> {
    connection.busy_handler(Some(|tries| {
        std::thread::sleep(BUSY_PAUSE);
        tries < BUSY_TRIES_MAX
    }))?;
    connection.set_prepared_statement_cache_capacity(STATEMENT_CACHE);
    // 16 MB of pages a connection: the hot part of queues and index, not the outputs.
    connection.pragma_update(None, "cache_size", -16 * 1024)?;
    // Temporary sorts stay in memory; they are bounded by a page of results.
    connection.pragma_update(None, "temp_store", "memory")?;
    Ok(())
}

/// Creates the layout in an empty database. Several processes may try at once.
fn create(connection: &mut Connection) -> rusqlite::Result<()> {
    let transaction =
        connection.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)?;
    if version(&transaction)? == 0 {
        transaction.execute_batch(LAYOUT)?;
        transaction.pragma_update(None, "user_version", VERSION)?;
    }
    transaction.commit()
}

fn version(connection: &Connection) -> rusqlite::Result<i64> {
    connection.pragma_query_value(None, "user_version", |row| row.get(0))
}

fn check_version(connection: &Connection) -> Result<()> {
    match version(connection) {
        Ok(VERSION) => Ok(()),
        Ok(other) => Err(Error::Corrupt {
            what: "the data directory".to_owned(),
            message: format!(
                "its layout is version {other}, this program knows version {VERSION}; use the \
                 program that wrote it, or a newer one"
            ),
        }),
        Err(error) => Err(translate(&error, "the data directory")),
    }
}
