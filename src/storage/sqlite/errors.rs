//! SQLite's failures as the ports' errors.

use rusqlite::ErrorCode;

use crate::storage::Error;

/// Translates a failure of something done to `what`.
pub(super) fn translate(error: &rusqlite::Error, what: &str) -> Error {
    let message = |advice: &str| format!("{what}: {advice} ({error})");
    match error.sqlite_error_code() {
        Some(ErrorCode::DiskFull) => unavailable(message("the disk is full; free some space")),
        Some(ErrorCode::SystemIoFailure) => {
            unavailable(message("the disk failed; see the system's log"))
        }
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => {
            unavailable(message("another process has kept it locked for long"))
        }
        Some(ErrorCode::OutOfMemory) => unavailable(message("out of memory")),
        Some(ErrorCode::ReadOnly | ErrorCode::PermissionDenied) => Error::Unauthorized {
            message: message("it is not writable for this user"),
        },
        Some(ErrorCode::CannotOpen) => Error::Unauthorized {
            message: message("it cannot be opened; check that it exists and may be written"),
        },
        Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => Error::Corrupt {
            what: what.to_owned(),
            message: format!("its database is damaged; restore a copy of it ({error})"),
        },
        Some(ErrorCode::TooBig) => Error::Invalid {
            message: message("it is larger than the database allows"),
        },
        _ => unavailable(message("the database failed")),
    }
}

fn unavailable(message: String) -> Error {
    Error::Unavailable {
        message,
        source: None,
    }
}
