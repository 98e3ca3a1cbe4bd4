//! The coordinator's lease: taking it, keeping it, and knowing when it may be gone.

use std::fmt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tokio::time::Instant;

use super::{CoordinatorConfig, OnHeld};
use crate::clock::{Clock, Timestamp};
use crate::limits::{LEASE_DURATION, LEASE_MARGIN, LEASE_RENEW_INTERVAL};
use crate::storage::{self, LeaseId};
use crate::store::WorkflowStore;
use crate::wire::Names;

/// Pause before a renewal that failed is tried again: often enough to use what remains.
const RENEW_RETRY: Duration = Duration::from_secs(2);

/// What a holder writes into the lock blob about itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct HolderInfo {
    /// The machine's name.
    pub host: String,
    /// The process.
    pub pid: u32,
    /// The program's version.
    pub version: String,
    /// Since when it leads.
    #[schema(value_type = String, format = DateTime)]
    pub since: Timestamp,
}

impl HolderInfo {
    /// This process, leading since `since`.
    #[must_use]
    pub fn of_this_process(since: Timestamp) -> Self {
        Self {
            host: gethostname::gethostname().to_string_lossy().into_owned(),
            pid: std::process::id(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            since,
        }
    }

    /// Whether its process certainly ended: it ran on this machine and is not among its processes.
    fn is_gone(&self) -> bool {
        let this = Self::of_this_process(self.since);
        let processes = Path::new("/proc");
        let is_running = processes.join(self.pid.to_string()).exists();
        this.host == self.host && processes.exists() && !is_running
    }
}

impl fmt::Display for HolderInfo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            host,
            pid,
            version,
            since,
        } = self;
        write!(
            f,
            "process {pid} on host {host} (jobq {version}), since {since}"
        )
    }
}

/// Tells whether the lease certainly still holds. Cheap to clone and to ask.
#[derive(Debug, Clone)]
pub(super) struct Fence {
    started: Instant,
    /// Milliseconds after `started` until which the holder may write.
    until_ms: Arc<AtomicU64>,
}

impl Fence {
    fn new() -> Self {
        Self {
            started: Instant::now(),
            until_ms: Arc::default(),
        }
    }

    /// Notes a renewal that was sent at `sent` and succeeded: the lease runs from some moment
    /// after `sent`, so counting from `sent` errs on the safe side.
    fn extend(&self, sent: Instant) {
        let until = sent + LEASE_DURATION - LEASE_MARGIN;
        let until_ms = until.duration_since(self.started).as_millis();
        self.until_ms.store(
            u64::try_from(until_ms).unwrap_or(u64::MAX),
            Ordering::Release,
        );
    }

    /// Whether the holder may push, flush and acknowledge now.
    pub(super) fn holds(&self) -> bool {
        Instant::now() < self.until()
    }

    /// How long the holder may still write.
    pub(super) fn remaining(&self) -> Duration {
        self.until().saturating_duration_since(Instant::now())
    }

    fn until(&self) -> Instant {
        self.started + Duration::from_millis(self.until_ms.load(Ordering::Acquire))
    }
}

/// Why the lease could not be taken.
#[derive(Debug)]
pub(super) enum AcquireError {
    Held(String),
    Storage(storage::Error),
}

/// A lease that is held.
pub(super) struct LeaseKeeper {
    store: WorkflowStore,
    id: LeaseId,
    fence: Fence,
    holder: HolderInfo,
}

impl LeaseKeeper {
    pub(super) async fn acquire(
        store: &WorkflowStore,
        config: &CoordinatorConfig,
        clock: &Clock,
        on_held: OnHeld,
    ) -> Result<Self, AcquireError> {
        let holder = HolderInfo::of_this_process(clock.now());
        let keeper = Self {
            store: store.clone(),
            id: fresh_id(clock),
            fence: Fence::new(),
            holder,
        };
        match keeper.try_acquire().await {
            Err(storage::Error::LeaseHeld { .. }) => {}
            Err(error) => return Err(AcquireError::Storage(error)),
            Ok(()) => return Ok(keeper),
        }
        let other = keeper.other_holder().await;
        let may_break = on_held == OnHeld::Break
            || (config.single_machine && other.as_ref().is_some_and(HolderInfo::is_gone));
        let told = other.map_or_else(
            || "an unknown process".to_owned(),
            |other| other.to_string(),
        );
        if !may_break {
            return Err(AcquireError::Held(told));
        }
        tracing::warn!(holder = %told, "breaking the lease of another coordinator");
        keeper
            .break_and_acquire()
            .await
            .map_err(|error| match error {
                storage::Error::LeaseHeld { .. } => AcquireError::Held(told),
                error => AcquireError::Storage(error),
            })?;
        Ok(keeper)
    }

    async fn try_acquire(&self) -> storage::Result<()> {
        let content = serde_json::to_vec(&self.holder).expect("a holder is plain data");
        let sent = Instant::now();
        let container = self.store.names().state_container();
        let leases = &self.store.storage().leases;
        leases
            .acquire(
                container,
                Names::LOCK_BLOB,
                &self.id,
                LEASE_DURATION,
                content.into(),
            )
            .await?;
        self.fence.extend(sent);
        Ok(())
    }

    async fn break_and_acquire(&self) -> storage::Result<()> {
        let container = self.store.names().state_container();
        self.store
            .storage()
            .leases
            .break_lease(container, Names::LOCK_BLOB)
            .await?;
        self.try_acquire().await
    }

    async fn other_holder(&self) -> Option<HolderInfo> {
        let container = self.store.names().state_container();
        let holder = self
            .store
            .storage()
            .leases
            .holder(container, Names::LOCK_BLOB)
            .await
            .ok()?;
        serde_json::from_slice(&holder.content).ok()
    }

    pub(super) fn fence(&self) -> Fence {
        self.fence.clone()
    }

    pub(super) const fn holder(&self) -> &HolderInfo {
        &self.holder
    }

    /// Renews the lease until it is lost: taken by another, or not renewed in time.
    pub(super) async fn keep(&self) {
        let container = self.store.names().state_container();
        let mut pause = LEASE_RENEW_INTERVAL;
        loop {
            let wake = (Instant::now() + pause).min(self.fence.until());
            tokio::time::sleep_until(wake).await;
            if !self.fence.holds() {
                tracing::error!("the lease could not be renewed in time and counts as lost");
                return;
            }
            let sent = Instant::now();
            let leases = &self.store.storage().leases;
            let renewal = leases.renew(container, Names::LOCK_BLOB, &self.id);
            match tokio::time::timeout_at(self.fence.until(), renewal).await {
                Ok(Ok(())) => {
                    self.fence.extend(sent);
                    pause = LEASE_RENEW_INTERVAL;
                }
                Ok(Err(error)) if error.retry() == storage::Retry::Never => {
                    tracing::error!(%error, error_kind = error.kind(), "the lease is lost");
                    return;
                }
                Ok(Err(error)) => {
                    tracing::warn!(%error, error_kind = error.kind(), "cannot renew the lease; trying again");
                    pause = RENEW_RETRY;
                }
                Err(_) => {}
            }
        }
    }

    pub(super) async fn release(&self) {
        let container = self.store.names().state_container();
        let leases = &self.store.storage().leases;
        if let Err(error) = leases.release(container, Names::LOCK_BLOB, &self.id).await {
            tracing::warn!(%error, error_kind = error.kind(), "cannot release the lease; it will lapse by itself");
        }
    }
}

/// A lease id in the dashed form that Azure requires.
fn fresh_id(clock: &Clock) -> LeaseId {
    let id = clock.new_id();
    let dashed = [&id[..8], &id[8..12], &id[12..16], &id[16..20], &id[20..]].join("-");
    LeaseId(dashed)
}
