//! The storage ports: what jobq needs of a storage, as four small traits.
//!
//! - [`BlobStore`]: state, outputs. Every write is create-only, conditional on a version, or an
//!   outright overwrite: [`Expect`].
//! - [`QueueStore`]: task and completion messages, delivered at least once, hidden by a
//!   visibility timeout while they are worked on.
//! - [`TableStore`]: the index rows that listings read. Derived, never the source of truth.
//! - [`LeaseStore`]: the coordinator's exclusive lease on a lock blob.
//!
//! Backends: [`memory`] for tests and simulations, [`sqlite`] for the processes of one machine,
//! [`azure`] for the cloud.
//! Decorators: [`observed`], [`counting`]. `conformance` holds the cases all of them pass, one named test per case
//! and backend; `check` refuses calls no backend takes.
//!
//! Callers: `store`, `coordinator` and `worker` hold a [`Storage`]; nothing else does.
//!
//! Each method's doc says what survives a crash once it returned `Ok`. A call that fails with
//! [`Error::Unavailable`] may or may not have taken effect; callers must be able to repeat it.

pub mod azure;
#[doc(hidden)]
pub mod conformance;
pub mod counting;
pub mod memory;
pub mod observed;
pub mod sqlite;

mod blob;
pub(crate) mod check;
mod error;
mod filter;
mod lease;
mod queue;
mod table;

pub use blob::{Blob, BlobInfo, BlobPage, BlobStore, ETag, Expect, IfChanged};
pub use error::{Error, Result, Retry, Source};
pub use lease::{Holder, LeaseId, LeaseStore};
pub use queue::{Message, OutgoingMessage, PeekedMessage, QueueStore, Receipt};
pub use table::{
    Compare, Entity, EntityKey, EntityPage, Filter, Operator, Properties, TableStore, Value,
};

use std::sync::Arc;

/// What a backend can do beyond, or not as well as, the others. A flag exists only where callers
/// or conformance cases must know; each difference is named once, here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Capabilities {
    /// Messages one receive can return.
    pub receive_max: usize,
    /// Bytes of one message (after XML escaping on Azure, as it is elsewhere).
    pub message_bytes_max: usize,
    /// Whether `receive` waits for a message (otherwise an empty answer returns at once and the
    /// caller has to pause).
    pub receive_waits: bool,
}

/// One storage: the four ports of one account or directory, cheap to clone.
#[derive(Clone)]
pub struct Storage {
    /// State and outputs.
    pub blobs: Arc<dyn BlobStore>,
    /// Task and completion messages.
    pub queues: Arc<dyn QueueStore>,
    /// Index rows.
    pub tables: Arc<dyn TableStore>,
    /// The coordinator's lease.
    pub leases: Arc<dyn LeaseStore>,
}

impl Storage {
    /// One backend that implements all four ports.
    pub fn from_backend<B>(backend: Arc<B>) -> Self
    where
        B: BlobStore + QueueStore + TableStore + LeaseStore,
    {
        Self {
            blobs: backend.clone(),
            queues: backend.clone(),
            tables: backend.clone(),
            leases: backend,
        }
    }
}

impl std::fmt::Debug for Storage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Storage").finish_non_exhaustive()
    }
}
