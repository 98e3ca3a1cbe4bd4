//! The sweeps: what must happen though no completion says so.

use std::sync::Arc;
use std::time::Duration;

use super::registry::{Event, Registry};
use super::{CoordinatorConfig, Stats};
use crate::clock::Clock;
use crate::store::{self, WorkflowStore};
use crate::wire::index_row::IndexRow;
use crate::workflow::{WorkflowId, WorkflowState};

#[derive(Clone)]
pub(super) struct Sweeps {
    config: CoordinatorConfig,
    store: WorkflowStore,
    clock: Clock,
    registry: Arc<Registry>,
    stats: Arc<Stats>,
}

impl Sweeps {
    pub(super) const fn new(
        config: CoordinatorConfig,
        store: WorkflowStore,
        clock: Clock,
        registry: Arc<Registry>,
        stats: Arc<Stats>,
    ) -> Self {
        Self {
            config,
            store,
            clock,
            registry,
            stats,
        }
    }

    /// Looks for cancel requests and new workflows, for ever.
    pub(super) async fn poll(self) {
        loop {
            if let Err(error) = self.poll_once().await {
                tracing::warn!(%error, error_kind = error.kind(), "cannot look for cancel requests and new workflows");
            }
            tokio::time::sleep(self.clock.jitter(self.config.cancel_poll_interval, 0.1)).await;
        }
    }

    async fn poll_once(&self) -> store::Result<()> {
        let mut after = None;
        loop {
            let page = self.store.rows_to_act_on(after.as_ref()).await?;
            for row in page.rows {
                let event = if row.cancel_requested {
                    Event::Cancel
                } else {
                    Event::Inspect
                };
                self.route(&row, event);
            }
            after = page.next;
            if after.is_none() {
                return Ok(());
            }
        }
    }

    /// Looks at every unfinished workflow when the term begins, because its predecessor may have
    /// stopped anywhere, and from then on at those that have not moved for long.
    pub(super) async fn repair(self) {
        let mut unmoved_for = Duration::ZERO;
        loop {
            match self.repair_once(unmoved_for).await {
                Ok(()) => {
                    unmoved_for = self.config.ready_repair_threshold;
                    tokio::time::sleep(self.config.ready_sweep_interval).await;
                }
                Err(error) => {
                    tracing::warn!(%error, error_kind = error.kind(), "cannot look for workflows that have not moved");
                    tokio::time::sleep(self.config.idle_sleep).await;
                }
            }
        }
    }

    async fn repair_once(&self, unmoved_for: Duration) -> store::Result<()> {
        let moved_before = self.clock.now().minus(unmoved_for);
        let mut after = None;
        loop {
            let page = self.store.rows_not_terminal(after.as_ref()).await?;
            for row in page
                .rows
                .iter()
                .filter(|row| row.updated_at <= moved_before)
            {
                // New ones are the poll's business.
                if row.workflow_state != WorkflowState::Pending {
                    self.stats.repairs.increment();
                    self.route(row, Event::Inspect);
                }
            }
            after = page.next;
            if after.is_none() {
                return Ok(());
            }
        }
    }

    fn route(&self, row: &IndexRow, event: Event) {
        match WorkflowId::parse(&row.workflow_id) {
            Ok(id) => drop(self.registry.route(&id, event)),
            Err(error) => tracing::warn!(%error, "an index row with an impossible id"),
        }
    }
}
