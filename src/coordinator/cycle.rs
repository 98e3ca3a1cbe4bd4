//! One cycle of an actor: load, apply, push, flush, acknowledge.

use std::time::Duration;

use tokio::time::Instant;
use tracing::{Span, field};

use super::actor::{Actor, Batch};
use crate::clock::Timestamp;
use crate::storage::Retry;
use crate::store::{self, Loaded};
use crate::telemetry::trace;
use crate::wire::CompletionMessage;
use crate::workflow::WorkflowState;
use crate::workflow::runtime::{Applied, Completion, LoadedOutputs, Runtime};

/// How long a workflow whose state cannot be used is left alone before it is looked at again.
const QUARANTINE: Duration = Duration::from_secs(60);

/// First pause after a storage failure; it doubles up to the second number.
const BACKOFF_MIN: Duration = Duration::from_millis(100);
const BACKOFF_MAX: Duration = Duration::from_secs(5);

/// Why a cycle did not get through.
#[derive(Debug)]
pub(super) enum Interrupted {
    /// The lease may have lapsed.
    Fenced,
    /// The store said so.
    Store(store::Error),
}

impl From<store::Error> for Interrupted {
    fn from(error: store::Error) -> Self {
        Self::Store(error)
    }
}

/// What a cycle saw; counted once it is durable, so that repeated cycles count once.
#[derive(Debug, Default)]
pub(super) struct Tally {
    completions: u64,
    rearmed: u64,
    duplicates: u64,
    orphans: u64,
    timeouts: u64,
    cancels: u64,
    pub(super) rejected: u64,
}

impl Actor {
    /// Works off a batch, repeating the cycle after conflicts (a bounded number of times) and
    /// passing failures (for half the visibility timeout). What is given up stays in the queue.
    pub(super) async fn work(&mut self, batch: Batch) {
        if self
            .quarantined_until
            .is_some_and(|until| Instant::now() < until)
        {
            return;
        }
        let started = Instant::now();
        let give_up_at = started + self.context.config.visibility_timeout / 2;
        let mut conflicts = 0;
        let mut backoff = BACKOFF_MIN;
        loop {
            match self.cycle(&batch).await {
                Ok(()) => break,
                Err(Interrupted::Fenced) => {
                    self.forget();
                    return;
                }
                Err(Interrupted::Store(error)) => {
                    self.forget();
                    match error {
                        store::Error::Conflict(_) => {
                            conflicts += 1;
                            self.context.stats.conflicts.increment();
                            if conflicts > self.context.config.flush_retry_limit {
                                return self.give_up(&error);
                            }
                        }
                        store::Error::NotFound(_) => return self.orphaned(batch).await,
                        error if matches!(error.retry(), Retry::After(_)) => {
                            if Instant::now() + backoff > give_up_at {
                                return self.give_up(&error);
                            }
                            tokio::time::sleep(self.context.clock.jitter(backoff, 0.2)).await;
                            backoff = (backoff * 2).min(BACKOFF_MAX);
                        }
                        error => return self.quarantine(&error),
                    }
                }
            }
        }
        if let Some(metrics) = &self.context.metrics {
            metrics.cycle(started.elapsed(), batch.deliveries.len());
        }
        self.pushed.clear();
        self.acknowledge(batch).await;
    }

    async fn cycle(&mut self, batch: &Batch) -> Result<(), Interrupted> {
        let Loaded { mut runtime, etag } = self.take_loaded(batch).await?;
        let loaded_revision = runtime.revision();
        let mut tally = Tally::default();
        self.apply(&mut runtime, batch, &mut tally).await?;
        self.push(&mut runtime, &mut tally).await?;
        let etag = if runtime.revision() == loaded_revision {
            etag
        } else {
            self.check_fence()?;
            let started = Instant::now();
            let etag = self.context.store.flush(&runtime, &etag).await?;
            if let Some(metrics) = &self.context.metrics {
                metrics.flush(started.elapsed());
            }
            self.context.stats.flushes.increment();
            let terminal = runtime.state().is_terminal();
            if terminal {
                log_finished(&runtime);
            }
            self.index_lags(terminal || tally.cancels > 0);
            etag
        };
        // A row that says otherwise than the state was left behind by a crash, or by a retry that
        // asked for this look.
        if batch.inspect {
            self.index_lags(runtime.state().is_terminal());
        }
        self.count(&tally);
        self.cached = Some(Loaded { runtime, etag });
        Ok(())
    }

    /// The state, from memory if it is there. A terminal state in memory may be outdated by a
    /// retry from outside, so an inspection loads it anew.
    async fn take_loaded(&mut self, batch: &Batch) -> Result<Loaded, Interrupted> {
        match self.cached.take() {
            Some(loaded) if !(batch.inspect && loaded.runtime.state().is_terminal()) => {
                self.context.stats.cache_hits.increment();
                Ok(loaded)
            }
            _ => {
                self.context.stats.loads.increment();
                Ok(self.context.store.load(&self.id).await?)
            }
        }
    }

    async fn apply(
        &self,
        runtime: &mut Runtime,
        batch: &Batch,
        tally: &mut Tally,
    ) -> Result<(), Interrupted> {
        let now = self.context.clock.now();
        self.settle(runtime, now).await?;
        let cancel = batch.cancel || self.is_cancel_behind_failures(runtime, batch).await?;
        if cancel && runtime.cancel(now) {
            tally.cancels += 1;
        }
        for delivery in &batch.deliveries {
            let report = &delivery.completion;
            let Some(index) = runtime.find(&report.task_name) else {
                tally.orphans += 1;
                continue;
            };
            let completion = Completion {
                attempt_no: report.attempt_no,
                retry_no: report.retry_no,
                success: report.success,
                output_ref: report
                    .output_ref
                    .as_ref()
                    .map(crate::wire::OutputRef::as_str),
                error: report.error.as_deref(),
            };
            let span = apply_span(report);
            let result = match span.in_scope(|| runtime.apply(index, &completion, now)) {
                Applied::Finished => {
                    tally.completions += 1;
                    "finished"
                }
                Applied::Rearmed => {
                    tally.rearmed += 1;
                    "rearmed"
                }
                Applied::Ignored(_) => {
                    tally.duplicates += 1;
                    "duplicate"
                }
            };
            span.record("result", result);
            self.settle(runtime, now).await?;
        }
        let overdue: Vec<_> = runtime.overdue(now).collect();
        for index in overdue {
            tally.timeouts += u64::from(runtime.time_out(index, now).is_some());
        }
        self.settle(runtime, now).await
    }

    /// Whether failures in the batch may come from a cancel that the next poll has yet to find: a
    /// worker stops its command as soon as it sees the request. Such a failure must not fail the
    /// workflow, or be retried, as if the command had failed by itself.
    async fn is_cancel_behind_failures(
        &self,
        runtime: &Runtime,
        batch: &Batch,
    ) -> Result<bool, Interrupted> {
        let failures = batch
            .deliveries
            .iter()
            .any(|delivery| !delivery.completion.success);
        if !failures || runtime.cancel_requested() {
            return Ok(false);
        }
        let row = self.context.store.row(&self.id).await?;
        Ok(row.is_some_and(|row| row.cancel_requested))
    }

    /// Decides what can be decided, loading the outputs that conditions need.
    pub(super) async fn settle(
        &self,
        runtime: &mut Runtime,
        now: Timestamp,
    ) -> Result<(), Interrupted> {
        let mut outputs = LoadedOutputs::new();
        loop {
            let needs = runtime.settle(&outputs, now);
            if needs.is_empty() {
                return Ok(());
            }
            for path in needs {
                let value = self.context.store.output_value(&path).await?;
                outputs.insert(path, value);
            }
        }
    }

    pub(super) fn check_fence(&self) -> Result<(), Interrupted> {
        if self.context.fence.holds() {
            Ok(())
        } else {
            Err(Interrupted::Fenced)
        }
    }

    fn forget(&mut self) {
        self.cached = None;
    }

    fn give_up(&self, error: &store::Error) {
        self.context.stats.exhausted.increment();
        tracing::warn!(workflow_id = %self.id, %error, "giving up a cycle; its completions come again");
    }

    fn quarantine(&mut self, error: &store::Error) {
        self.context.stats.quarantined.increment();
        tracing::error!(workflow_id = %self.id, %error, "setting the workflow aside");
        self.quarantined_until = Some(Instant::now() + QUARANTINE);
    }

    /// The workflow does not exist: it was deleted, or never was.
    async fn orphaned(&mut self, batch: Batch) {
        self.context
            .stats
            .orphans
            .add(batch.deliveries.len() as u64);
        if !batch.deliveries.is_empty() {
            let count = batch.deliveries.len();
            tracing::warn!(workflow_id = %self.id, count, "completions of an unknown workflow");
        } else if batch.inspect || batch.cancel {
            tracing::warn!(workflow_id = %self.id, "an index row without a state");
            self.quarantined_until = Some(Instant::now() + QUARANTINE);
        }
        self.acknowledge(batch).await;
    }

    async fn acknowledge(&self, batch: Batch) {
        let receipts: Vec<_> = batch
            .deliveries
            .into_iter()
            .map(|delivery| delivery.receipt)
            .collect();
        if !receipts.is_empty() {
            // Fails only when the term is over; then the messages come again.
            self.context.acknowledgements.send(receipts).await.ok();
        }
    }

    fn count(&self, tally: &Tally) {
        let stats = &self.context.stats;
        stats.completions.add(tally.completions);
        stats.rearmed.add(tally.rearmed);
        stats.duplicates.add(tally.duplicates);
        stats.orphans.add(tally.orphans);
        stats.timeouts.add(tally.timeouts);
        stats.cancels.add(tally.cancels);
        stats.rejected.add(tally.rejected);
    }
}

/// The span of applying a completion, which follows the attempt it reports.
fn apply_span(report: &CompletionMessage) -> Span {
    let span = tracing::info_span!(
        target: trace::TARGET,
        "apply completion",
        otel.kind = "consumer",
        workflow_id = %report.workflow_id,
        task = %report.task_name,
        attempt_no = report.attempt_no,
        success = report.success,
        result = field::Empty,
    );
    trace::follow(&span, report.traceparent.as_deref());
    span
}

/// The one line that says how a workflow ended; its fields are a contract.
fn log_finished(runtime: &Runtime) {
    let header = runtime.header();
    let duration_s = runtime.updated_at().since(header.created_at).as_secs_f64();
    let (workflow_id, name, state) = (&header.workflow_id, &header.name, runtime.state());
    if state == WorkflowState::Completed {
        tracing::info!(%workflow_id, name, %state, duration_s, "workflow finished");
    } else {
        let error = runtime.error().unwrap_or_default();
        tracing::warn!(%workflow_id, name, %state, duration_s, error, "workflow finished");
    }
}
