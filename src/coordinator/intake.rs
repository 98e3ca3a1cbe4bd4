//! The intake: receives completions and hands each to its workflow's actor.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::lease::Fence;
use super::registry::{Delivery, Event, Registry};
use super::{CoordinatorConfig, Stats};
use crate::storage::{Message, Receipt};
use crate::store::WorkflowStore;
use crate::wire::CompletionMessage;

/// How long one receive may wait for a message: short enough to notice a stop soon.
const RECEIVE_WAIT: Duration = Duration::from_secs(5);

/// Longest part of a message that a log line shows.
const LOGGED_TEXT_CHARS: usize = 200;

pub(super) struct Intake {
    config: CoordinatorConfig,
    store: WorkflowStore,
    stats: Arc<Stats>,
    fence: Fence,
    registry: Arc<Registry>,
}

impl Intake {
    pub(super) const fn new(
        config: CoordinatorConfig,
        store: WorkflowStore,
        stats: Arc<Stats>,
        fence: Fence,
        registry: Arc<Registry>,
    ) -> Self {
        Self {
            config,
            store,
            stats,
            fence,
            registry,
        }
    }

    /// Receives for ever. A failed receive is logged and followed by a pause, never by an end.
    ///
    /// Dropping this future between two receives loses nothing; dropping it within one leaves the
    /// messages to their visibility timeout.
    pub(super) async fn run(self) {
        let queues = self.store.storage().queues.clone();
        let queue = self.store.names().completion_queue().to_owned();
        let receive_max = queues.capabilities().receive_max;
        let batch = self
            .config
            .batch_size
            .map_or(receive_max, |size| size.clamp(1, receive_max));
        loop {
            let asked = Instant::now();
            let received = queues
                .receive(&queue, batch, self.config.visibility_timeout, RECEIVE_WAIT)
                .await;
            match received {
                Ok(messages) if messages.is_empty() => {
                    // Queues that wait by themselves have used the time already.
                    let slept = asked.elapsed();
                    tokio::time::sleep(self.config.idle_sleep.saturating_sub(slept)).await;
                }
                Ok(messages) => self.deliver(&queue, messages).await,
                Err(error) => {
                    self.stats.receive_errors.increment();
                    tracing::error!(%error, error_kind = error.kind(), "cannot receive completions; trying again");
                    tokio::time::sleep(self.config.idle_sleep).await;
                }
            }
        }
    }

    async fn deliver(&self, queue: &str, messages: Vec<Message>) {
        let mut poison = Vec::new();
        for message in messages {
            match CompletionMessage::decode(&message.body) {
                Ok(completion) => {
                    let id = completion.workflow_id.clone();
                    let delivery = Delivery {
                        completion,
                        receipt: message.receipt,
                    };
                    if !self
                        .registry
                        .route(&id, Event::Completion(Box::new(delivery)))
                    {
                        self.stats.deferred.increment();
                    }
                }
                Err(reason) => {
                    let text: String = message.body.chars().take(LOGGED_TEXT_CHARS).collect();
                    tracing::warn!(error = %reason, text, "deleting a message that is no completion");
                    poison.push(message.receipt);
                }
            }
        }
        self.delete_poison(queue, poison).await;
    }

    async fn delete_poison(&self, queue: &str, receipts: Vec<Receipt>) {
        if receipts.is_empty() || !self.fence.holds() {
            return;
        }
        self.stats.poison_messages.add(receipts.len() as u64);
        for deleted in self.store.storage().queues.delete(queue, receipts).await {
            if let Err(error) = deleted {
                tracing::warn!(%error, error_kind = error.kind(), "cannot delete a message that is no completion");
            }
        }
    }
}
