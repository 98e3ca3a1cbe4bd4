//! The database's tables, its settings, and how it is opened.

use std::io;
use std::path::Path;
use std::time::Duration;

use rusqlite::{Connection, OpenFlags, TransactionBehavior};

use super::error::{Failure, Outcome, explain};
use crate::storage::{Error, Result};

/// The version of [`TABLES`], kept in the file. There is nothing to migrate from yet.
const VERSION: i64 = 1;

/// Marks the file as ours ("jobq" in ASCII), so that another program's database is not written.
const APPLICATION: i64 = 0x6a6f_6271;

/// How long a connection waits for another process's transaction. Transactions take milliseconds;
/// whoever waits this long faces a process that hangs.
const BUSY_MAX: Duration = Duration::from_secs(10);

/// How often a waiting connection asks again. Short against a commit (about a millisecond), so
/// that processes take turns.
const BUSY_PAUSE: Duration = Duration::from_millis(1);

/// Prepared statements kept per connection: more than there are in this room.
const STATEMENTS_MAX: usize = 64;

/// - `counter` has one row: the latest version or message id handed out.
/// - `blobs.data` stands last, so that listings and leases do not read through it.
/// - `messages` are found by visibility through an index that ends with the id, as every index
///   does; what a receive or an extension writes again has the same size as before.
/// - `entities` live in their key's tree (without rowid): queries walk it in key order. Its two
///   indexes serve what the coordinator asks every second; see `scan`.
const TABLES: &str = "
    CREATE TABLE counter (value INTEGER NOT NULL) STRICT;
    INSERT INTO counter VALUES (0);

    CREATE TABLE containers (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE) STRICT;
    CREATE TABLE blobs (
        id INTEGER PRIMARY KEY,
        container INTEGER NOT NULL,
        name TEXT NOT NULL,
        etag INTEGER NOT NULL,
        size INTEGER NOT NULL,
        lease_id TEXT,
        lease_until INTEGER,
        lease_micros INTEGER,
        data BLOB NOT NULL,
        UNIQUE (container, name)
    ) STRICT;

    CREATE TABLE queues (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE) STRICT;
    CREATE TABLE messages (
        id INTEGER PRIMARY KEY,
        queue INTEGER NOT NULL,
        visible_from INTEGER NOT NULL,
        receipt INTEGER NOT NULL,
        dequeue_count INTEGER NOT NULL,
        sent_at INTEGER NOT NULL,
        body TEXT NOT NULL
    ) STRICT;
    CREATE INDEX messages_by_visibility ON messages (queue, visible_from);

    CREATE TABLE tables (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE) STRICT;
    CREATE TABLE entities (
        table_id INTEGER NOT NULL,
        partition_key TEXT NOT NULL,
        row_key TEXT NOT NULL,
        etag INTEGER NOT NULL,
        properties TEXT NOT NULL,
        PRIMARY KEY (table_id, partition_key, row_key)
    ) STRICT, WITHOUT ROWID;
    CREATE INDEX entities_by_state ON entities
        (table_id, json_extract(properties, '$.workflow_state'), partition_key, row_key);
    CREATE INDEX entities_cancelled ON entities (table_id, partition_key, row_key)
        WHERE json_extract(properties, '$.cancel_requested') = 1;
";

/// Settings of every connection, none left to a build's default:
/// - `synchronous=FULL`: the log is on the disk before a commit returns. Without it a power cut
///   could take back what was acknowledged.
/// - `fullfsync`: on macOS, "on the disk" needs more than an `fsync`; elsewhere it does nothing.
/// - `wal_autocheckpoint`: the log goes into the database every 16 MiB, rarely enough that a
///   burst of small commits is not slowed and often enough that readers skip little.
/// - `journal_size_limit`: a log that one large burst blew up shrinks again.
/// - `mmap_size=0`: with mapped files a failing disk ends the process instead of the call.
/// - `cache_size`: 16 MiB, enough for the inner pages of queues with millions of messages.
/// - `temp_store`: sorts never write files.
/// - `foreign_keys`: there are none.
/// - `trusted_schema`, `cell_size_check`: a tampered or damaged file is refused, not trusted.
const SETTINGS: &str = "
    PRAGMA synchronous = FULL;
    PRAGMA fullfsync = ON;
    PRAGMA checkpoint_fullfsync = ON;
    PRAGMA wal_autocheckpoint = 4096;
    PRAGMA journal_size_limit = 67108864;
    PRAGMA mmap_size = 0;
    PRAGMA cache_size = -16384;
    PRAGMA temp_store = MEMORY;
    PRAGMA foreign_keys = OFF;
    PRAGMA trusted_schema = OFF;
    PRAGMA cell_size_check = ON;
";

/// Creates the data directory where it is missing.
pub(super) fn create_dir(dir: &Path) -> Result<()> {
    std::fs::create_dir_all(dir).map_err(|error| {
        let shown = dir.display();
        match error.kind() {
            io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
                Error::Unauthorized {
                    message: format!("the data directory {shown} cannot be created: {error}"),
                }
            }
            _ => Error::unavailable(
                format!("the data directory {shown} cannot be created: {error}"),
                error,
            ),
        }
    })
}

/// Opens the database for writing, and creates it where it is missing.
pub(super) fn open_writer(path: &Path) -> Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
        | OpenFlags::SQLITE_OPEN_CREATE
        | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    prepare_writer(path, flags).map_err(|failure| failure.explain(path))
}

fn prepare_writer(path: &Path, flags: OpenFlags) -> Outcome<Connection> {
    let mut db = open(path, flags)?;
    // Has to come before anything is written; a no-op on a database that exists.
    db.execute_batch("PRAGMA page_size = 4096; PRAGMA auto_vacuum = NONE;")?;
    check_application(path, &db)?;
    // Kept in the file. Readers go on while a writer commits.
    db.pragma_update(None, "journal_mode", "WAL")?;
    create_tables(path, &mut db)?;
    Ok(db)
}

/// Opens the database for reading. It must exist.
pub(super) fn open_reader(path: &Path) -> Outcome<Connection> {
    // Read-write all the same: the first connection after a crash has to recover the log.
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let db = open(path, flags)?;
    db.execute_batch("PRAGMA query_only = ON;")?;
    Ok(db)
}

fn open(path: &Path, flags: OpenFlags) -> Outcome<Connection> {
    let mut db = Connection::open_with_flags(path, flags)?;
    db.busy_handler(Some(|attempts: i32| {
        std::thread::sleep(BUSY_PAUSE);
        u32::try_from(attempts).is_ok_and(|attempts| BUSY_PAUSE * attempts < BUSY_MAX)
    }))?;
    db.set_prepared_statement_cache_capacity(STATEMENTS_MAX);
    db.execute_batch(SETTINGS)?;
    Ok(db)
}

fn number(db: &Connection, sql: &str) -> rusqlite::Result<i64> {
    db.query_row(sql, [], |row| row.get(0))
}

/// Refuses a database that is not ours or too new, before anything of it is changed.
fn check_application(path: &Path, db: &Connection) -> Outcome<()> {
    let refuse = |message: String| {
        Err(Failure::Refused(Error::Corrupt {
            what: path.display().to_string(),
            message,
        }))
    };
    if number(db, "SELECT count(*) FROM sqlite_schema")? == 0 {
        return Ok(());
    }
    if number(db, "PRAGMA application_id")? != APPLICATION {
        return refuse("it is another program's database; choose another directory".to_owned());
    }
    let version = number(db, "PRAGMA user_version")?;
    if version != VERSION {
        return refuse(format!(
            "it has version {version}, this program knows version {VERSION}; use the program that \
             wrote it or choose another directory"
        ));
    }
    Ok(())
}

/// Creates the tables unless another process did.
fn create_tables(path: &Path, db: &mut Connection) -> Outcome<()> {
    let tx = db.transaction_with_behavior(TransactionBehavior::Immediate)?;
    if number(&tx, "SELECT count(*) FROM sqlite_schema")? == 0 {
        tx.execute_batch(TABLES)?;
        tx.pragma_update(None, "application_id", APPLICATION)?;
        tx.pragma_update(None, "user_version", VERSION)?;
    }
    check_application(path, &tx)?;
    tx.commit()
        .map_err(|error| Failure::Refused(explain(path, &error)))
}
