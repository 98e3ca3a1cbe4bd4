//! What can go wrong at a storage port, the same for every backend.

use std::time::Duration;

/// A boxed error of a backend's own library, kept as the source for the log.
pub type Source = Box<dyn std::error::Error + Send + Sync + 'static>;

/// The result of a storage call.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Whether repeating the same call can help.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Retry {
    /// Never: the answer stays the same until something else changes.
    Never,
    /// Later, with growing pauses, at least this long after the first failure.
    After(Duration),
}

/// Why a storage call failed. Texts never hold keys, tokens or signed addresses.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// No such container, blob, queue, message, table or row.
    #[error("{what} does not exist")]
    NotFound {
        /// What was asked for, by kind and name.
        what: String,
    },
    /// A create-only write found something there.
    #[error("{what} exists already")]
    AlreadyExists {
        /// What was to be created.
        what: String,
    },
    /// A write conditional on a version found another version.
    #[error("{what} was changed by another writer")]
    PreconditionFailed {
        /// What was to be written.
        what: String,
    },
    /// Somebody else holds the lease.
    #[error("the lease on {what} is held by another process")]
    LeaseHeld {
        /// The leased blob.
        what: String,
    },
    /// The receipt is stale: the message's visibility lapsed, or it was deleted.
    #[error("the receipt for a message of queue {queue} is no longer valid")]
    ReceiptLost {
        /// The message's queue.
        queue: String,
    },
    /// The backend cannot hold something this large.
    #[error("{what} is too large: {bytes} bytes, at most {limit} fit")]
    TooLarge {
        /// What was to be written.
        what: String,
        /// Its size.
        bytes: usize,
        /// The backend's limit.
        limit: usize,
    },
    /// The backend asks to slow down.
    #[error("the storage is throttling; retry after {}", humane(*.retry_after))]
    Throttled {
        /// How long to wait at least.
        retry_after: Duration,
    },
    /// The credentials do not allow this.
    #[error("not allowed: {message}")]
    Unauthorized {
        /// What was refused and, where known, which role is missing.
        message: String,
    },
    /// The backend could not be reached or failed inside; whether the call took effect is unknown.
    #[error("storage unavailable: {message}")]
    Unavailable {
        /// What was attempted.
        message: String,
        /// The library's own error.
        #[source]
        source: Option<Source>,
    },
    /// Stored bytes are not what this program or a compatible one writes.
    #[error("{what} is corrupt: {message}")]
    Corrupt {
        /// The damaged thing.
        what: String,
        /// How it is damaged.
        message: String,
    },
    /// The call itself is not valid for any backend (a bad name, a page of zero).
    #[error("invalid storage call: {message}")]
    Invalid {
        /// What is wrong with it.
        message: String,
    },
}

fn humane(duration: Duration) -> String {
    format!("{} s", duration.as_secs_f32())
}

impl Error {
    /// Whether, and when, the same call may be repeated.
    #[must_use]
    pub fn retry(&self) -> Retry {
        match self {
            Self::Throttled { retry_after } => Retry::After(*retry_after),
            Self::Unavailable { .. } => Retry::After(Duration::from_millis(100)),
            Self::NotFound { .. }
            | Self::AlreadyExists { .. }
            | Self::PreconditionFailed { .. }
            | Self::LeaseHeld { .. }
            | Self::ReceiptLost { .. }
            | Self::TooLarge { .. }
            | Self::Unauthorized { .. }
            | Self::Corrupt { .. }
            | Self::Invalid { .. } => Retry::Never,
        }
    }

    /// A short stable word for metrics and logs.
    #[must_use]
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::NotFound { .. } => "not_found",
            Self::AlreadyExists { .. } => "already_exists",
            Self::PreconditionFailed { .. } => "precondition_failed",
            Self::LeaseHeld { .. } => "lease_held",
            Self::ReceiptLost { .. } => "receipt_lost",
            Self::TooLarge { .. } => "too_large",
            Self::Throttled { .. } => "throttled",
            Self::Unauthorized { .. } => "unauthorized",
            Self::Unavailable { .. } => "unavailable",
            Self::Corrupt { .. } => "corrupt",
            Self::Invalid { .. } => "invalid",
        }
    }

    /// An [`Error::Unavailable`] with its source.
    pub fn unavailable(message: impl Into<String>, source: impl Into<Source>) -> Self {
        Self::Unavailable {
            message: message.into(),
            source: Some(source.into()),
        }
    }
}
