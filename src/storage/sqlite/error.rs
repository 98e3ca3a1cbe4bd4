//! What the database engine's failures mean, and what to do about them.

use std::path::Path;

use rusqlite::ErrorCode;

use crate::storage::Error;

/// Why a call did not succeed, as the code that runs it sees it.
#[derive(Debug)]
pub(super) enum Failure {
    /// The call's answer: the database is fine, and nothing was changed.
    Refused(Error),
    /// The engine failed; the transaction has to be rolled back.
    Engine(rusqlite::Error),
}

pub(super) type Outcome<T> = Result<T, Failure>;

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Refused(error)
    }
}

impl From<rusqlite::Error> for Failure {
    fn from(error: rusqlite::Error) -> Self {
        Self::Engine(error)
    }
}

impl Failure {
    /// The error as callers of the ports see it.
    pub(super) fn explain(self, path: &Path) -> Error {
        match self {
            Self::Refused(error) => error,
            Self::Engine(error) => explain(path, &error),
        }
    }
}

/// The storage error for a failure of the engine. One failure may answer many calls, so the
/// engine's error is not kept as the source but told in the message.
pub(super) fn explain(path: &Path, error: &rusqlite::Error) -> Error {
    let file = path.display();
    let unavailable = |message: String| Error::Unavailable {
        message,
        source: None,
    };
    let corrupt = |message: &str| Error::Corrupt {
        what: file.to_string(),
        message: message.to_owned(),
    };
    if let rusqlite::Error::FromSqlConversionFailure(..)
    | rusqlite::Error::InvalidColumnType(..)
    | rusqlite::Error::IntegralValueOutOfRange(..)
    | rusqlite::Error::Utf8Error(..) = error
    {
        return corrupt(&format!(
            "a row cannot be read ({error}); restore a backup or delete the row"
        ));
    }
    match error.sqlite_error_code() {
        Some(ErrorCode::DiskFull) => unavailable(format!(
            "the disk that holds {file} is full; free some space"
        )),
        Some(ErrorCode::SystemIoFailure) => unavailable(format!(
            "the disk that holds {file} failed ({error}); look into the system's log"
        )),
        Some(ErrorCode::CannotOpen) => unavailable(format!(
            "{file} cannot be opened ({error}); see that its directory exists and may be written"
        )),
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => unavailable(format!(
            "{file} is locked by another process for too long; see what else uses it"
        )),
        Some(ErrorCode::ReadOnly | ErrorCode::PermissionDenied) => Error::Unauthorized {
            message: format!("{file} cannot be written; see who owns it and its directory"),
        },
        Some(ErrorCode::DatabaseCorrupt) => {
            corrupt("the database is damaged; restore a backup or start with another directory")
        }
        Some(ErrorCode::NotADatabase) => {
            corrupt("this is no SQLite database; move it away or choose another directory")
        }
        _ => unavailable(format!("{file}: {error}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rusqlite::ffi;

    #[test]
    fn engine_failures_say_what_to_do() {
        let explained = |code| {
            let error = rusqlite::Error::SqliteFailure(ffi::Error::new(code), None);
            explain(Path::new("data/jobq.db"), &error)
        };
        for (code, kind, advice) in [
            (ffi::SQLITE_FULL, "unavailable", "free some space"),
            (ffi::SQLITE_IOERR, "unavailable", "system's log"),
            (ffi::SQLITE_CANTOPEN, "unavailable", "directory exists"),
            (ffi::SQLITE_BUSY, "unavailable", "what else uses it"),
            (ffi::SQLITE_READONLY, "unauthorized", "who owns it"),
            (ffi::SQLITE_CORRUPT, "corrupt", "restore a backup"),
            (ffi::SQLITE_NOTADB, "corrupt", "another directory"),
        ] {
            let error = explained(code);
            let text = error.to_string();
            assert_eq!(error.kind(), kind, "{text}");
            assert!(text.contains(advice), "{text}");
            assert!(text.contains("data/jobq.db"), "{text}");
        }
    }
}
