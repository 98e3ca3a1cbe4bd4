//! What a coordinator shows at a scrape.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use super::{Coordinator, Role};
use crate::limits::{PEEK_MAX, SAMPLED_QUEUES_MAX};
use crate::storage;
use crate::store::{self, WorkflowStore};
use crate::telemetry::metrics::{Sample, names};

/// How often queues are looked at.
const SAMPLE_INTERVAL: Duration = Duration::from_secs(15);

/// The latest look at the queues.
#[derive(Debug, Default)]
pub(super) struct QueueSamples(Mutex<Vec<QueueSample>>);

#[derive(Debug, Clone)]
struct QueueSample {
    queue: String,
    messages: u64,
    oldest: Duration,
}

impl QueueSamples {
    /// Looks at the completion queue and the queues of live workflows every now and then, for ever.
    pub(super) async fn keep_sampling(&self, store: &WorkflowStore) {
        loop {
            match sample(store).await {
                Ok(samples) => {
                    *self.0.lock().unwrap_or_else(PoisonError::into_inner) = samples;
                }
                Err(error) => tracing::debug!(%error, "cannot look at the queues"),
            }
            tokio::time::sleep(SAMPLE_INTERVAL).await;
        }
    }

    fn latest(&self) -> Vec<QueueSample> {
        let samples = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        samples.clone()
    }
}

async fn sample(store: &WorkflowStore) -> store::Result<Vec<QueueSample>> {
    let mut queues = BTreeSet::from([store.names().completion_queue().to_owned()]);
    let live = store.rows_not_terminal(None).await?.rows;
    let used = live.into_iter().flat_map(|row| row.queues_used);
    for queue in used {
        if queues.len() < SAMPLED_QUEUES_MAX {
            queues.insert(queue);
        }
    }
    let mut samples = Vec::new();
    for queue in queues {
        let port = &store.storage().queues;
        let looked = match (port.length(&queue).await, port.peek(&queue, PEEK_MAX).await) {
            (Ok(messages), Ok(peeked)) => Some((messages, peeked)),
            (Err(storage::Error::NotFound { .. }), _)
            | (_, Err(storage::Error::NotFound { .. })) => None,
            (Err(error), _) | (_, Err(error)) => return Err(error.into()),
        };
        samples.extend(looked.map(|(messages, peeked)| {
            QueueSample {
                oldest: peeked
                    .iter()
                    .map(|message| message.age)
                    .max()
                    .unwrap_or_default(),
                messages,
                queue,
            }
        }));
    }
    Ok(samples)
}

#[expect(clippy::cast_precision_loss, reason = "counts stay far below 2^53")]
const fn number(count: u64) -> f64 {
    count as f64
}

impl Coordinator {
    /// What it counted, and where it stands now.
    #[must_use]
    pub fn samples(&self) -> Vec<Sample> {
        let stats = self.stats();
        let registry = self
            .registry
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone();
        let (active, remaining) = registry.map_or((0, Duration::ZERO), |registry| {
            (registry.active(), registry.lease_remaining())
        });
        let leads = *self.role().borrow() == Role::Leader;
        let completions = [
            ("finished", stats.completions),
            ("rearmed", stats.rearmed),
            ("duplicate", stats.duplicates),
            ("orphan", stats.orphans),
            ("poison", stats.poison_messages),
            ("deferred", stats.deferred),
        ];
        let pushes = [
            ("ok", stats.pushes),
            ("failed", stats.push_failures),
            ("rejected", stats.rejected),
        ];
        let loads = [("cache", stats.cache_hits), ("storage", stats.loads)];
        let plain = [
            (&names::FLUSHES, stats.flushes),
            (&names::CONFLICTS, stats.conflicts),
            (&names::EXHAUSTED, stats.exhausted),
            (&names::REPAIRS, stats.repairs),
            (&names::TIMEOUTS, stats.timeouts),
            (&names::CANCELS, stats.cancels),
            (&names::RECEIVE_ERRORS, stats.receive_errors),
            (&names::QUARANTINED, stats.quarantined),
            (&names::TERMS, stats.terms),
            (&names::LEADER, u64::from(leads)),
            (&names::ACTIVE_WORKFLOWS, active as u64),
        ];
        let mut samples = Vec::new();
        for (metric, values) in [
            (&names::COMPLETIONS, &completions[..]),
            (&names::PUSHES, &pushes),
            (&names::STATE_LOADS, &loads),
        ] {
            samples.extend(
                values
                    .iter()
                    .map(|(label, count)| Sample::of(metric, *label, number(*count))),
            );
        }
        samples.extend(plain.map(|(metric, count)| Sample::new(metric, number(count))));
        samples.push(Sample::new(
            &names::LEASE_REMAINING,
            remaining.as_secs_f64(),
        ));
        for sample in self.queues.latest() {
            let messages = number(sample.messages);
            samples.push(Sample::of(
                &names::QUEUE_MESSAGES,
                sample.queue.clone(),
                messages,
            ));
            let oldest = sample.oldest.as_secs_f64();
            samples.push(Sample::of(&names::QUEUE_OLDEST, sample.queue, oldest));
        }
        samples
    }
}
