//! The coordinator: the one process that changes the state of a prefix's workflows.
//!
//! ```text
//!            lease (held, renewed, fenced)
//!              │ while it holds: one term
//!              ▼
//!  completion ─► intake ─► registry ─► actor of the workflow          one actor per workflow
//!  queue            ▲         ▲           │ load (once, then cached)
//!                   │       sweeps        │ apply every waiting completion, in memory
//!                   │   (cancel, pending, │ push newly ready tasks ──► task queues
//!                   │    repair)          │ flush, if the state still has the loaded version
//!                   └──────── acker ◄─────┘ acknowledge: delete the completion messages
//! ```
//!
//! The order push → flush → acknowledge is what makes every crash harmless: what was not flushed is
//! still in the completion queue, and what was pushed twice is recognised by its attempt. While an
//! actor flushes, further completions wait in its mailbox and share the next cycle, so batches grow
//! with the load and nothing sleeps to collect one. Workflows proceed in parallel.
//!
//! The fence stands before every push, flush and acknowledgement: a holder whose lease may have
//! lapsed stops at once. The state itself is guarded by its version as well.
//!
//! Callers: `control` and `cli` start a [`Coordinator`] and nudge it; everything else reaches it
//! through storage.

mod acker;
mod actor;
mod config;
mod cycle;
mod intake;
mod lease;
mod metrics;
mod push;
mod registry;
mod stats;
mod status;
mod sweeps;
mod term;

#[cfg(test)]
mod tests;

pub use config::{CoordinatorConfig, OnHeld};
pub use lease::HolderInfo;
pub use stats::{Stats, StatsSnapshot};
pub use status::CoordinatorStatus;

use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::clock::Clock;
use crate::store::{self, WorkflowStore};
use crate::telemetry::Metrics;
use crate::workflow::WorkflowId;
use lease::{AcquireError, LeaseKeeper};
use metrics::QueueSamples;
use registry::Registry;
use term::{Term, TermEnd};

/// Why a coordinator gave up.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Another coordinator leads, and this one was not asked to wait.
    #[error(
        "another coordinator leads: {holder}; wait for it with --standby, or take over with \
         --break-lease if it is certainly dead"
    )]
    Held {
        /// Who leads, as far as the lock blob says.
        holder: String,
    },
    /// The storage failed before the first term.
    #[error(transparent)]
    Store(#[from] store::Error),
}

/// Whether this coordinator leads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Role {
    /// It has not asked for the lease yet.
    Starting,
    /// Another one leads.
    Standby,
    /// It leads.
    Leader,
    /// It was shut down.
    Stopped,
}

/// A coordinator of one prefix. Leads while it holds the lease.
#[derive(Debug)]
pub struct Coordinator {
    config: CoordinatorConfig,
    store: WorkflowStore,
    clock: Clock,
    stats: Arc<Stats>,
    metrics: Option<Metrics>,
    queues: QueueSamples,
    role: watch::Sender<Role>,
    /// The registry of the present term, for nudges.
    registry: Mutex<Option<Arc<Registry>>>,
}

impl Coordinator {
    /// A coordinator that does nothing until it is [`run`](Self::run).
    #[must_use]
    pub fn new(config: CoordinatorConfig, store: WorkflowStore, clock: Clock) -> Self {
        let (role, _) = watch::channel(Role::Starting);
        let stats = Arc::new(Stats::default());
        Self {
            config,
            store,
            clock,
            stats,
            metrics: None,
            queues: QueueSamples::default(),
            role,
            registry: Mutex::default(),
        }
    }

    /// The same, which tells these metrics what it does.
    #[must_use]
    pub fn with_metrics(mut self, metrics: Metrics) -> Self {
        self.metrics = Some(metrics);
        self
    }

    /// Acquires the lease, leads while it holds, and acquires it anew when it is lost, until
    /// `shutdown`. Then it finishes its cycles, releases the lease and returns.
    ///
    /// # Errors
    /// [`Error::Held`] if another one leads at the start and the configuration says to refuse; the
    /// storage's own if it cannot be reached at the start and waiting is no cure.
    pub async fn run(&self, shutdown: CancellationToken) -> Result<(), Error> {
        self.store.ensure().await?;
        let mut on_held = self.config.on_held;
        loop {
            let Some(keeper) = self.acquire(on_held, &shutdown).await? else {
                break;
            };
            // Whoever has led once goes on waiting: its users count on it.
            on_held = OnHeld::Standby;
            if let TermEnd::Shutdown = self.lead(keeper, &shutdown).await {
                break;
            }
        }
        self.role.send_replace(Role::Stopped);
        Ok(())
    }

    async fn acquire(
        &self,
        on_held: OnHeld,
        shutdown: &CancellationToken,
    ) -> Result<Option<LeaseKeeper>, Error> {
        let mut announced = false;
        let mut on_held = on_held;
        while !shutdown.is_cancelled() {
            match LeaseKeeper::acquire(&self.store, &self.config, &self.clock, on_held).await {
                Ok(keeper) => return Ok(Some(keeper)),
                Err(AcquireError::Held(holder)) if on_held == OnHeld::Refuse => {
                    return Err(Error::Held { holder });
                }
                Err(AcquireError::Held(holder)) => {
                    self.role.send_replace(Role::Standby);
                    if !std::mem::replace(&mut announced, true) {
                        tracing::info!(%holder, "standing by: another coordinator leads");
                    }
                }
                Err(AcquireError::Storage(error))
                    if error.retry() == crate::storage::Retry::Never =>
                {
                    return Err(store::Error::Storage(error).into());
                }
                Err(AcquireError::Storage(error)) => {
                    tracing::error!(%error, error_kind = error.kind(), "cannot ask for the coordinator's lease; trying again");
                }
            }
            // A lease is broken once, on request; after that the usual rules hold.
            on_held = if on_held == OnHeld::Break {
                OnHeld::Standby
            } else {
                on_held
            };
            tokio::select! {
                () = shutdown.cancelled() => {}
                () = tokio::time::sleep(self.config.standby_poll_interval) => {}
            }
        }
        Ok(None)
    }

    async fn lead(&self, keeper: LeaseKeeper, shutdown: &CancellationToken) -> TermEnd {
        let term = Term::new(
            self.config.clone(),
            self.store.clone(),
            self.clock.clone(),
            self.stats.clone(),
            self.metrics.clone(),
            keeper,
        );
        self.stats.terms.increment();
        self.set_registry(Some(term.registry()));
        self.role.send_replace(Role::Leader);
        tracing::info!(prefix = %self.store.names().prefix(), "leading");
        let sampling = self.queues.keep_sampling(&self.store);
        let end = tokio::select! {
            end = term.run(shutdown) => end,
            // Sampling never ends by itself.
            () = sampling, if self.metrics.is_some() => TermEnd::Lost,
        };
        self.set_registry(None);
        end
    }

    fn set_registry(&self, registry: Option<Arc<Registry>>) {
        *self.registry.lock().unwrap_or_else(PoisonError::into_inner) = registry;
    }

    /// Has the workflow looked at now rather than at the next sweep. Does nothing unless leading.
    pub fn nudge(&self, id: &WorkflowId) {
        let registry = self
            .registry
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone();
        if let Some(registry) = registry {
            registry.route(id, registry::Event::Inspect);
        }
    }

    /// What it has done since it was made.
    #[must_use]
    pub fn stats(&self) -> StatsSnapshot {
        self.stats.snapshot()
    }

    /// Its role, now and whenever it changes.
    #[must_use]
    pub fn role(&self) -> watch::Receiver<Role> {
        self.role.subscribe()
    }
}
