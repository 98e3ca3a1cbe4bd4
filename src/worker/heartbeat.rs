//! A received message, kept from other workers by a heartbeat.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;
use tracing::Instrument as _;

use crate::storage::{Error, Message, QueueStore, Receipt, Result};
use crate::workflow::QueueName;

/// The message of one task. While this lives its visibility is extended at every third of the
/// timeout; dropping it lets the message reappear by itself.
///
/// Invariant: the heartbeat alone holds the receipt, and hands it over only once it has stopped,
/// so an extension and a delete never race for it.
pub(super) struct Held {
    queues: Arc<dyn QueueStore>,
    queue: QueueName,
    body: Arc<str>,
    lost: CancellationToken,
    stop: CancellationToken,
    beating: AbortOnDropHandle<Option<Receipt>>,
}

impl Held {
    /// Starts the heartbeat of a message that was just received with `visibility`.
    pub(super) fn start(
        queues: Arc<dyn QueueStore>,
        queue: QueueName,
        message: Message,
        visibility: Duration,
    ) -> Self {
        let heart = Heart {
            queues: queues.clone(),
            queue: queue.clone(),
            body: message.body.into(),
            visibility,
            lost: CancellationToken::new(),
            stop: CancellationToken::new(),
        };
        Self {
            queues,
            queue,
            body: heart.body.clone(),
            lost: heart.lost.clone(),
            stop: heart.stop.clone(),
            beating: AbortOnDropHandle::new(tokio::spawn(
                heart.beat(message.receipt).in_current_span(),
            )),
        }
    }

    /// The queue the message came from.
    pub(super) fn queue(&self) -> &QueueName {
        &self.queue
    }

    /// The text of the message.
    pub(super) fn body(&self) -> &str {
        &self.body
    }

    /// Returns once another worker may have the message.
    pub(super) async fn lost(&self) {
        self.lost.cancelled().await;
    }

    /// Stops the heartbeat and deletes the message.
    pub(super) async fn delete(self) -> Result<()> {
        let (queues, queue) = (self.queues.clone(), self.queue.clone());
        let receipt = self.into_receipt().await?;
        let results = queues.delete(&queue, vec![receipt]).await;
        results.into_iter().collect()
    }

    /// Stops the heartbeat and lets the message appear again after `delay`.
    pub(super) async fn give_back(self, delay: Duration) -> Result<()> {
        let (queues, queue, body) = (self.queues.clone(), self.queue.clone(), self.body.clone());
        let receipt = self.into_receipt().await?;
        queues
            .extend(&queue, &receipt, &body, delay)
            .await
            .map(drop)
    }

    async fn into_receipt(self) -> Result<Receipt> {
        self.stop.cancel();
        let receipt = self.beating.await.ok().flatten();
        receipt.ok_or_else(|| Error::ReceiptLost {
            queue: self.queue.to_string(),
        })
    }
}

struct Heart {
    queues: Arc<dyn QueueStore>,
    queue: QueueName,
    body: Arc<str>,
    visibility: Duration,
    lost: CancellationToken,
    stop: CancellationToken,
}

impl Heart {
    /// Extends until told to stop, and returns the receipt then; or until the message is lost.
    ///
    /// Only a definite answer counts as lost. Where the storage cannot be reached the command goes
    /// on: if somebody else got the message meanwhile, the next answer says so, and if nobody did,
    /// hours of work are saved.
    async fn beat(self, mut receipt: Receipt) -> Option<Receipt> {
        let third = self.visibility / 3;
        let mut pause = third;
        loop {
            tokio::select! {
                () = self.stop.cancelled() => return Some(receipt),
                () = sleep(pause) => {}
            }
            let extended = self
                .queues
                .extend(&self.queue, &receipt, &self.body, self.visibility);
            pause = match timeout(third, extended).await {
                Ok(Ok(next)) => {
                    receipt = next;
                    third
                }
                Ok(Err(Error::ReceiptLost { .. } | Error::NotFound { .. })) => {
                    self.lost.cancel();
                    return None;
                }
                Ok(Err(error)) => self.missed(&error.to_string()),
                Err(_) => self.missed("no answer in time"),
            };
        }
    }

    /// After a miss there is time for a few more tries before the visibility timeout.
    fn missed(&self, reason: &str) -> Duration {
        tracing::warn!(error = reason, "heartbeat missed");
        self.visibility / 12
    }
}
