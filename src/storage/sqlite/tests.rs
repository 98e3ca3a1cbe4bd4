use std::time::Duration;

use super::SqliteStorage;
use crate::clock::Clock;
use crate::storage::conformance::Rig;
use crate::storage::{Error, Storage};

/// One data directory for all cases of the process: they use names of their own.
fn directory() -> std::path::PathBuf {
    use std::sync::OnceLock;
    static DIRECTORY: OnceLock<tempfile::TempDir> = OnceLock::new();
    DIRECTORY
        .get_or_init(|| tempfile::tempdir().unwrap())
        .path()
        .to_owned()
}

async fn rig() -> Rig {
    let clock = Clock::system();
    Rig {
        storage: Storage::from_backend(SqliteStorage::open(&directory(), clock.clone()).unwrap()),
        clock,
        lease_duration: Duration::from_secs(3),
        visibility: Duration::from_secs(3),
    }
}

crate::conformance_tests!(tokio::test, super::rig);

#[tokio::test]
async fn a_newer_layout_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    drop(SqliteStorage::open(directory.path(), Clock::system()).unwrap());
    let connection = rusqlite::Connection::open(directory.path().join("jobq.db")).unwrap();
    connection.pragma_update(None, "user_version", 7).unwrap();
    let error = SqliteStorage::open(directory.path(), Clock::system()).unwrap_err();
    assert!(matches!(&error, Error::Corrupt { message, .. } if message.contains("version 7")));
}

#[tokio::test]
async fn what_is_no_database_is_refused_and_left_alone() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("jobq.db");
    std::fs::write(&file, "these are my notes, not a database".repeat(100)).unwrap();
    let error = SqliteStorage::open(directory.path(), Clock::system()).unwrap_err();
    assert!(matches!(error, Error::Corrupt { .. }), "{error:?}");
    assert!(
        std::fs::read_to_string(&file)
            .unwrap()
            .starts_with("these are my notes")
    );
}

#[tokio::test]
async fn a_directory_that_cannot_be_made_is_named() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let error = SqliteStorage::open(&file.path().join("data"), Clock::system()).unwrap_err();
    assert!(error.to_string().contains("data"), "{error}");
    assert!(matches!(error, Error::Unauthorized { .. }));
}
