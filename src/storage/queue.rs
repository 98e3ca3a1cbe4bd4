//! The queue port.

use std::fmt;
use std::time::Duration;

use async_trait::async_trait;

use super::{Capabilities, Result};

/// The right to extend or delete one received message. Each extension replaces it with a new one.
/// It ends when the message is received again, which may happen once the visibility timeout has
/// passed; between the two it may or may not be valid still.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Receipt {
    /// The message, as the backend names it.
    pub message_id: String,
    /// The proof of the latest receive or extension.
    pub pop_receipt: String,
}

impl fmt::Debug for Receipt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Receipt({})", self.message_id)
    }
}

/// A received message, hidden from other receivers until its visibility timeout.
#[derive(Debug, Clone)]
pub struct Message {
    /// The text that was sent.
    pub body: String,
    /// The right to extend or delete it.
    pub receipt: Receipt,
    /// How often it was received, this time included; above 1 it may already have been worked on.
    pub dequeue_count: u32,
}

/// A message as seen without receiving it.
#[derive(Debug, Clone)]
pub struct PeekedMessage {
    /// The text that was sent.
    pub body: String,
    /// How often it was received so far.
    pub dequeue_count: u32,
    /// How long ago it was sent.
    pub age: Duration,
}

/// A message to send.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutgoingMessage {
    /// The text.
    pub body: String,
    /// How long it stays hidden at first.
    pub delay: Duration,
    /// Identifies the message to backends that drop a second one with the same id; others
    /// ignore it.
    pub dedup_id: Option<String>,
}

impl OutgoingMessage {
    /// A message that is visible at once and has no identity of its own.
    pub fn new(body: impl Into<String>) -> Self {
        Self {
            body: body.into(),
            delay: Duration::ZERO,
            dedup_id: None,
        }
    }

    /// The same message with an identity.
    #[must_use]
    pub fn with_id(mut self, id: impl Into<String>) -> Self {
        self.dedup_id = Some(id.into());
        self
    }
}

/// Queues with at-least-once delivery.
#[async_trait]
pub trait QueueStore: Send + Sync + 'static {
    /// What this backend's queues can do.
    fn capabilities(&self) -> Capabilities;

    /// Creates the queue; fine if it exists. Queues are never deleted. Survives a crash after `Ok`.
    async fn create_queue(&self, queue: &str) -> Result<()>;

    /// The names of all queues that start with `prefix`, sorted.
    async fn list_queues(&self, prefix: &str) -> Result<Vec<String>>;

    /// Sends messages to one queue; the answers stand in the messages' order. Each `Ok` message
    /// survives a crash and never expires by itself; a refused one does not keep the others from
    /// being sent. A message may be sent twice where the answer was lost. Text that the backend
    /// cannot carry (control characters, on some) is `Invalid`; what is sent is never altered.
    /// A delay is at most seven days. `NotFound` if the queue is missing.
    async fn send(&self, queue: &str, messages: Vec<OutgoingMessage>) -> Vec<Result<()>>;

    /// Receives at most `max` (at least 1; the backend's `receive_max` bounds it) visible messages
    /// and hides them for `visibility` (1 s to seven days, whole seconds on some backends). With nothing
    /// there, backends that can wait do so for at most `wait` and return as soon as something
    /// arrives; others return at once. Roughly first in, first out. What a crash interrupts
    /// reappears after the visibility timeout, and so does what a dropped call may have received.
    /// `NotFound` if the queue is missing.
    async fn receive(
        &self,
        queue: &str,
        max: usize,
        visibility: Duration,
        wait: Duration,
    ) -> Result<Vec<Message>>;

    /// Hides a received message for `visibility` (at most seven days) from now (zero: gives it back at once) and
    /// returns the receipt that replaces the one given. `body` must be the message's text: some
    /// backends write it again. `ReceiptLost` if the receipt is stale or the message is gone.
    async fn extend(
        &self,
        queue: &str,
        receipt: &Receipt,
        body: &str,
        visibility: Duration,
    ) -> Result<Receipt>;

    /// Deletes received messages; the answers stand in the receipts' order. After `Ok` a message
    /// never appears again. `ReceiptLost` if a receipt is stale or the message is gone.
    async fn delete(&self, queue: &str, receipts: Vec<Receipt>) -> Vec<Result<()>>;

    /// Up to `max` (1 to 32) visible messages, oldest first, left as they are.
    async fn peek(&self, queue: &str, max: usize) -> Result<Vec<PeekedMessage>>;

    /// How many messages the queue holds, hidden ones included; approximate while it is in use.
    async fn length(&self, queue: &str) -> Result<u64>;

    /// Removes all messages.
    async fn clear(&self, queue: &str) -> Result<()>;
}
