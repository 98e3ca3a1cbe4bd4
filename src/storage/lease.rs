//! The lease port.

use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;

use super::Result;

/// Names one attempt to hold a lease. The caller proposes it, so that a repeated acquire (after a
/// lost answer) succeeds instead of conflicting with itself. A UUID in the dashed form, as Azure
/// requires.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct LeaseId(pub String);

/// What the lock blob says about its holder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Holder {
    /// The content the latest holder wrote; empty if none did.
    pub content: Bytes,
    /// Whether the lease is held now.
    pub held: bool,
}

/// Exclusive, time-bounded leases on blobs. The blob is listed and read like any other, but only
/// `acquire` may write it: whether other writes to a leased blob are refused differs by backend.
#[async_trait]
pub trait LeaseStore: Send + Sync + 'static {
    /// Takes the lease on a blob for `duration` (15 to 60 s), creating the blob if it is missing,
    /// and then writes `content` into it to tell others who holds it. `LeaseHeld` if another id
    /// holds it. The same id may acquire again: that renews. `NotFound` if the container is missing.
    async fn acquire(
        &self,
        container: &str,
        name: &str,
        id: &LeaseId,
        duration: Duration,
        content: Bytes,
    ) -> Result<()>;

    /// Starts the lease's duration anew. `LeaseHeld` if another id holds it by now, or if it was
    /// released or broken; a lease that lapsed without a new holder may be renewed.
    async fn renew(&self, container: &str, name: &str, id: &LeaseId) -> Result<()>;

    /// Ends the lease, so that others may take it at once. Fine if it is no longer held by `id`.
    async fn release(&self, container: &str, name: &str, id: &LeaseId) -> Result<()>;

    /// Ends whatever lease there is, at once. Fine if there is none.
    async fn break_lease(&self, container: &str, name: &str) -> Result<()>;

    /// Who holds the lease. `NotFound` if the blob was never leased.
    async fn holder(&self, container: &str, name: &str) -> Result<Holder>;
}
