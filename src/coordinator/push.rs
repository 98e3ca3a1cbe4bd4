//! Pushing ready tasks to their queues.

use std::collections::{BTreeMap, HashSet};

use futures::future::join_all;
use std::time::Duration;
use tokio::time::Instant;
use tracing::Span;

use super::actor::{Actor, PUSH_RETRY};
use super::cycle::{Interrupted, Tally};
use crate::storage::{self, OutgoingMessage};
use crate::telemetry::trace;
use crate::wire::{OutputRef, TaskMessage, TooLarge, UpstreamRefs, WorkflowTask};
use crate::workflow::QueueName;
use crate::workflow::runtime::{Runtime, TaskIndex};

/// Tasks sent in one round; bounds the memory of messages being built.
const ROUND_MAX: usize = 1_024;

/// After this long the pushed part is flushed before more is pushed, so that a crash in the middle
/// of a very wide fan-out repeats seconds of it, not all.
const PUSH_TIME_MAX: Duration = Duration::from_secs(2);

/// A message ready to be sent.
struct Outgoing {
    index: TaskIndex,
    message: OutgoingMessage,
    /// Lasts until it is sent.
    span: Span,
}

impl Actor {
    /// Pushes the tasks that may be dispatched and marks them as running. Those that could not be
    /// sent stay ready and are tried again soon; those that can never be sent fail.
    pub(super) async fn push(
        &mut self,
        runtime: &mut Runtime,
        tally: &mut Tally,
    ) -> Result<(), Interrupted> {
        let started = Instant::now();
        let mut failed = HashSet::new();
        self.push_due = None;
        loop {
            let round: Vec<TaskIndex> = runtime
                .dispatchable()
                .filter(|index| !failed.contains(index))
                .take(ROUND_MAX)
                .collect();
            if round.is_empty() {
                break;
            }
            if started.elapsed() > PUSH_TIME_MAX {
                self.push_due = Some(Instant::now());
                return Ok(());
            }
            self.check_fence()?;
            self.push_round(runtime, round, &mut failed, tally).await?;
        }
        if !failed.is_empty() {
            self.context.stats.push_failures.add(failed.len() as u64);
            self.push_due = Some(Instant::now() + PUSH_RETRY);
        }
        Ok(())
    }

    async fn push_round(
        &mut self,
        runtime: &mut Runtime,
        round: Vec<TaskIndex>,
        failed: &mut HashSet<TaskIndex>,
        tally: &mut Tally,
    ) -> Result<(), Interrupted> {
        let now = self.context.clock.now();
        let mut by_queue: BTreeMap<QueueName, Vec<Outgoing>> = BTreeMap::new();
        for index in round {
            let task = runtime.task(index);
            if self
                .pushed
                .contains(&(task.name().clone(), task.attempt_no() + 1))
            {
                runtime.dispatch(index, now);
                continue;
            }
            let queue = task.queue().clone();
            match message_for(runtime, index) {
                Ok(outgoing) => by_queue.entry(queue).or_default().push(outgoing),
                Err(error) => {
                    runtime.reject(index, &error.to_string(), now);
                    tally.rejected += 1;
                }
            }
        }
        let sends = by_queue
            .into_iter()
            .map(|(queue, outgoing)| self.send(queue, outgoing));
        let sent = join_all(sends).await;
        for (index, result) in sent.into_iter().flatten() {
            match result {
                Ok(()) => {
                    let name = runtime.task(index).name().clone();
                    if let Some(attempt_no) = runtime.dispatch(index, now) {
                        self.pushed.insert((name, attempt_no));
                    }
                    self.context.stats.pushes.increment();
                }
                Err(error @ storage::Error::TooLarge { .. }) => {
                    runtime.reject(index, &error.to_string(), now);
                    tally.rejected += 1;
                }
                Err(error) => {
                    let task = runtime.task(index);
                    let (task, queue) = (task.name(), task.queue());
                    tracing::warn!(workflow_id = %self.id, %task, %queue, %error, "cannot push a task");
                    failed.insert(index);
                }
            }
        }
        self.settle(runtime, now).await
    }

    /// Sends to one queue, creating it if it was deleted meanwhile.
    async fn send(
        &self,
        queue: QueueName,
        outgoing: Vec<Outgoing>,
    ) -> Vec<(TaskIndex, storage::Result<()>)> {
        let queues = &self.context.store.storage().queues;
        let (pushed, messages): (Vec<_>, Vec<_>) = outgoing
            .into_iter()
            .map(|out| ((out.index, out.span), out.message))
            .unzip();
        let is_missing =
            |result: &storage::Result<()>| matches!(result, Err(storage::Error::NotFound { .. }));
        let mut results = queues.send(&queue, messages.clone()).await;
        if results.iter().all(is_missing) && queues.create_queue(&queue).await.is_ok() {
            results = queues.send(&queue, messages).await;
        }
        let results = pushed.into_iter().zip(results);
        results
            .map(|((index, span), result)| {
                if let Err(error) = &result {
                    trace::failed(&span, error.kind());
                }
                (index, result)
            })
            .collect()
    }
}

fn message_for(runtime: &Runtime, index: TaskIndex) -> Result<Outgoing, TooLarge> {
    let task = runtime.task(index);
    let header = runtime.header();
    let span = tracing::info_span!(
        target: trace::TARGET,
        "push",
        otel.kind = "producer",
        workflow_id = %header.workflow_id,
        task = %task.name(),
        attempt_no = task.attempt_no() + 1,
        queue = %task.queue(),
    );
    trace::follow(&span, header.traceparent.as_deref());
    // Empty for a task without parents, so that its worker need not ask the state for them.
    let parents = task.parents().iter().map(|&parent| runtime.task(parent));
    let upstream = parents
        .map(|parent| {
            (
                parent.name().clone(),
                parent.output_ref().map(OutputRef::from_wire),
            )
        })
        .collect();
    let message = TaskMessage::of_workflow(
        task.kwargs().to_owned(),
        WorkflowTask {
            workflow_id: header.workflow_id.clone(),
            task: task.name().clone(),
            attempt_no: task.attempt_no() + 1,
            retry_no: task.retry_no(),
            upstream: Some(UpstreamRefs(upstream)),
            traceparent: trace::traceparent_of(&span).or_else(|| header.traceparent.clone()),
        },
    );
    let encoded = message.encode()?;
    Ok(Outgoing {
        index,
        message: OutgoingMessage::new(encoded.text).with_id(encoded.id),
        span,
    })
}
