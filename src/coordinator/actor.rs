//! The actor of one workflow: its only writer while the coordinator leads.
//!
//! It waits for events, works off all that are there in one cycle (`cycle`), and keeps the state in
//! memory between cycles. It wakes by itself for a deadline, a push to repeat, or an index row to
//! refresh, and leaves when it has been idle for a while.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::acker::Acknowledgements;
use super::lease::Fence;
use super::registry::{Delivery, Event, Registry};
use super::{CoordinatorConfig, Stats};
use crate::clock::Clock;
use crate::store::{Loaded, WorkflowStore};
use crate::telemetry::Metrics;
use crate::workflow::{TaskName, WorkflowId};

/// How long an index row may lag behind the state: under the two seconds promised to listings.
const INDEX_LAG_MAX: Duration = Duration::from_millis(1_500);

/// How long a workflow stays in memory without anything happening to it.
const IDLE_MAX: Duration = Duration::from_secs(60);

/// The same for a terminal workflow, which only late duplicates still reach.
const IDLE_TERMINAL_MAX: Duration = Duration::from_secs(5);

/// Pause before tasks whose push failed are pushed again.
pub(super) const PUSH_RETRY: Duration = Duration::from_secs(1);

/// Events worked off in one cycle: all that a mailbox holds.
const BATCH_MAX: usize = crate::limits::MAILBOX_MAX;

/// What every actor of a term shares.
#[derive(Debug, Clone)]
pub(super) struct ActorContext {
    pub(super) config: CoordinatorConfig,
    pub(super) store: WorkflowStore,
    pub(super) clock: Clock,
    pub(super) stats: Arc<Stats>,
    pub(super) metrics: Option<Metrics>,
    pub(super) fence: Fence,
    pub(super) acknowledgements: Acknowledgements,
    pub(super) stop: CancellationToken,
}

/// The events of one cycle.
#[derive(Debug, Default)]
pub(super) struct Batch {
    pub(super) deliveries: Vec<Delivery>,
    pub(super) cancel: bool,
    pub(super) inspect: bool,
}

pub(super) struct Actor {
    pub(super) id: WorkflowId,
    pub(super) context: ActorContext,
    registry: Arc<Registry>,
    mailbox: mpsc::Receiver<Event>,
    /// The state as last loaded or flushed.
    pub(super) cached: Option<Loaded>,
    /// Attempts pushed since the last flush: a repeated cycle marks them without pushing again.
    pub(super) pushed: HashSet<(TaskName, u32)>,
    /// When the index row is to be refreshed; none while it is up to date.
    pub(super) index_due: Option<Instant>,
    /// When tasks whose push failed are to be pushed again.
    pub(super) push_due: Option<Instant>,
    /// Until when the workflow is left alone, because its state cannot be used.
    pub(super) quarantined_until: Option<Instant>,
}

/// Why an actor woke.
enum Wake {
    Work(Batch),
    Timer,
    Idle,
    Stop,
}

impl Actor {
    pub(super) fn new(
        id: WorkflowId,
        context: ActorContext,
        registry: Arc<Registry>,
        mailbox: mpsc::Receiver<Event>,
    ) -> Self {
        Self {
            id,
            context,
            registry,
            mailbox,
            cached: None,
            pushed: HashSet::new(),
            index_due: None,
            push_due: None,
            quarantined_until: None,
        }
    }

    /// Works until it is idle or told to stop.
    pub(super) async fn run(mut self) {
        let mut last_event = Instant::now();
        loop {
            match self.wake(last_event).await {
                Wake::Work(batch) => {
                    self.work(batch).await;
                    last_event = Instant::now();
                }
                Wake::Timer => self.work(Batch::default()).await,
                Wake::Idle if self.registry.retire(&self.id, &self.mailbox) => return,
                Wake::Idle => {}
                Wake::Stop => return self.finish().await,
            }
            if self.is_index_due() {
                self.refresh_index().await;
            }
        }
    }

    /// On a shutdown: what waits in the mailbox is worked off, and the row brought up to date, so
    /// that the next coordinator finds little to do.
    async fn finish(mut self) {
        self.mailbox.close();
        let mut events = Vec::new();
        while let Ok(event) = self.mailbox.try_recv() {
            events.push(event);
        }
        if !events.is_empty() {
            self.work(Batch::from_events(events)).await;
        }
        if self.index_due.is_some() {
            self.refresh_index().await;
        }
    }

    async fn wake(&mut self, last_event: Instant) -> Wake {
        let idle_at = last_event + self.idle_max();
        let timer_at = self.next_timer();
        let mut events = Vec::new();
        tokio::select! {
            biased;
            () = self.context.stop.cancelled() => Wake::Stop,
            _ = self.mailbox.recv_many(&mut events, BATCH_MAX) => {
                Wake::Work(Batch::from_events(events))
            }
            () = tokio::time::sleep_until(timer_at.unwrap_or(idle_at)), if timer_at.is_some() => {
                Wake::Timer
            }
            () = tokio::time::sleep_until(idle_at), if self.may_retire() => Wake::Idle,
        }
    }

    fn idle_max(&self) -> Duration {
        let terminal = |loaded: &Loaded| loaded.runtime.state().is_terminal();
        if self.registry.is_crowded() {
            return Duration::ZERO;
        }
        if self.cached.as_ref().is_some_and(terminal) {
            IDLE_TERMINAL_MAX
        } else {
            IDLE_MAX
        }
    }

    /// An actor with something to do later stays, unless memory is short: then the repair sweep
    /// takes over its deadlines.
    fn may_retire(&self) -> bool {
        let waits = self.next_deadline().is_some() || self.push_due.is_some();
        self.index_due.is_none() && (!waits || self.registry.is_crowded())
    }

    fn next_timer(&self) -> Option<Instant> {
        [self.index_due, self.push_due, self.next_deadline()]
            .into_iter()
            .flatten()
            .min()
    }

    fn next_deadline(&self) -> Option<Instant> {
        let deadline = self.cached.as_ref()?.runtime.next_deadline()?;
        // One millisecond past it, because a timeout is only passed after its last moment.
        let wait = deadline.since(self.context.clock.now()) + Duration::from_millis(1);
        Some(Instant::now() + wait)
    }

    /// Notes that the row lags behind the state. A terminal state is indexed at once.
    pub(super) fn index_lags(&mut self, terminal: bool) {
        let now = Instant::now();
        if terminal {
            self.index_due = Some(now);
        } else {
            self.index_due.get_or_insert(now + INDEX_LAG_MAX);
        }
    }

    fn is_index_due(&self) -> bool {
        self.index_due.is_some_and(|due| due <= Instant::now())
    }

    async fn refresh_index(&mut self) {
        self.index_due = None;
        let Some(loaded) = &self.cached else { return };
        if !self.context.fence.holds() {
            return;
        }
        if let Err(error) = self.context.store.index_progress(&loaded.runtime).await {
            tracing::warn!(workflow_id = %self.id, %error, error_kind = error.kind(), "cannot refresh the index row");
            self.index_due = Some(Instant::now() + INDEX_LAG_MAX);
        }
    }
}

impl Batch {
    fn from_events(events: Vec<Event>) -> Self {
        let mut batch = Self::default();
        for event in events {
            match event {
                Event::Completion(delivery) => batch.deliveries.push(*delivery),
                Event::Cancel => batch.cancel = true,
                Event::Inspect => batch.inspect = true,
            }
        }
        batch
    }
}
