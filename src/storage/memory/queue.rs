//! Queues in memory.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use tokio::sync::Notify;
use tokio::time::{Instant, timeout};

use super::{MemoryStorage, Rooms};
use crate::clock::Timestamp;
use crate::limits;
use crate::storage::{
    Capabilities, Error, Message, OutgoingMessage, PeekedMessage, QueueStore, Receipt, Result,
    check,
};

#[derive(Default)]
pub(super) struct StoredQueue {
    messages: BTreeMap<u64, StoredMessage>,
    /// (visible from, id) of every message.
    order: BTreeSet<(Timestamp, u64)>,
    /// Wakes those who wait for a message.
    arrivals: Arc<Notify>,
}

struct StoredMessage {
    body: String,
    sent_at: Timestamp,
    visible_from: Timestamp,
    dequeue_count: u32,
    /// The only valid receipt: replaced by every receive and extension.
    receipt: u64,
}

impl StoredQueue {
    fn insert(&mut self, id: u64, message: StoredMessage) {
        self.order.insert((message.visible_from, id));
        self.messages.insert(id, message);
    }

    fn hide_until(&mut self, id: u64, visible_from: Timestamp) {
        if let Some(message) = self.messages.get_mut(&id) {
            self.order.remove(&(message.visible_from, id));
            self.order.insert((visible_from, id));
            message.visible_from = visible_from;
        }
    }

    /// Ids of visible messages, the longest visible first.
    fn visible(&self, now: Timestamp) -> impl Iterator<Item = u64> {
        self.order.range(..=(now, u64::MAX)).map(|&(_, id)| id)
    }

    /// The id the receipt belongs to, if it is the message's latest.
    fn find(&self, queue: &str, receipt: &Receipt) -> Result<u64> {
        let lost = || Error::ReceiptLost {
            queue: queue.to_owned(),
        };
        let id: u64 = receipt.message_id.parse().map_err(|_| lost())?;
        let message = self.messages.get(&id).ok_or_else(lost)?;
        if message.receipt.to_string() != receipt.pop_receipt {
            return Err(lost());
        }
        Ok(id)
    }
}

impl Rooms {
    fn queue(&mut self, queue: &str) -> Result<&mut StoredQueue> {
        self.queues.get_mut(queue).ok_or_else(|| Error::NotFound {
            what: format!("queue {queue}"),
        })
    }
}

/// What one look into a queue found.
struct Look {
    messages: Vec<Message>,
    /// Wakes when something is sent after the look.
    arrivals: Arc<Notify>,
    /// When the next hidden message becomes visible by itself.
    next_visible: Option<Timestamp>,
}

impl MemoryStorage {
    fn look(&self, queue: &str, max: usize, visibility: Duration) -> Result<Look> {
        let now = self.clock.now();
        let mut rooms = self.rooms();
        let ids: Vec<u64> = rooms.queue(queue)?.visible(now).take(max).collect();
        let mut messages = Vec::with_capacity(ids.len());
        for id in ids {
            let receipt = rooms.next();
            let queue = rooms.queue(queue)?;
            queue.hide_until(id, now.plus(visibility));
            if let Some(message) = queue.messages.get_mut(&id) {
                message.receipt = receipt;
                message.dequeue_count += 1;
                messages.push(Message {
                    body: message.body.clone(),
                    receipt: Receipt {
                        message_id: id.to_string(),
                        pop_receipt: receipt.to_string(),
                    },
                    dequeue_count: message.dequeue_count,
                });
            }
        }
        let queue = rooms.queue(queue)?;
        Ok(Look {
            messages,
            arrivals: queue.arrivals.clone(),
            next_visible: queue.order.first().map(|&(visible_from, _)| visible_from),
        })
    }

    fn send_one(&self, queue: &str, message: OutgoingMessage) -> Result<()> {
        let limit = limits::QUEUE_MESSAGE_BYTES_MAX;
        check::message(queue, message.body.len(), limit, message.delay)?;
        let now = self.clock.now();
        let mut rooms = self.rooms();
        let id = rooms.next();
        rooms.queue(queue)?.insert(
            id,
            StoredMessage {
                body: message.body,
                sent_at: now,
                visible_from: now.plus(message.delay),
                dequeue_count: 0,
                receipt: id,
            },
        );
        Ok(())
    }

    fn delete_one(&self, queue: &str, receipt: &Receipt) -> Result<()> {
        let mut rooms = self.rooms();
        let stored = rooms.queue(queue)?;
        let id = stored.find(queue, receipt)?;
        if let Some(message) = stored.messages.remove(&id) {
            stored.order.remove(&(message.visible_from, id));
        }
        Ok(())
    }
}

#[async_trait]
impl QueueStore for MemoryStorage {
    fn capabilities(&self) -> Capabilities {
        Capabilities {
            receive_max: limits::RECEIVE_MAX,
            message_bytes_max: limits::QUEUE_MESSAGE_BYTES_MAX,
            receive_waits: true,
        }
    }

    async fn create_queue(&self, queue: &str) -> Result<()> {
        check::queue(queue)?;
        self.rooms().queues.entry(queue.to_owned()).or_default();
        Ok(())
    }

    async fn list_queues(&self, prefix: &str) -> Result<Vec<String>> {
        let rooms = self.rooms();
        let names = rooms.queues.keys();
        Ok(names
            .filter(|name| name.starts_with(prefix))
            .cloned()
            .collect())
    }

    async fn send(&self, queue: &str, messages: Vec<OutgoingMessage>) -> Vec<Result<()>> {
        let answers = messages
            .into_iter()
            .map(|message| self.send_one(queue, message))
            .collect();
        if let Ok(stored) = self.rooms().queue(queue) {
            // Delayed messages count too: who waits must learn the new time to wake up.
            stored.arrivals.notify_waiters();
        }
        answers
    }

    async fn receive(
        &self,
        queue: &str,
        max: usize,
        visibility: Duration,
        wait: Duration,
    ) -> Result<Vec<Message>> {
        check::receive(max, visibility)?;
        let max = max.min(limits::RECEIVE_MAX);
        let started = Instant::now();
        loop {
            let look = self.look(queue, max, visibility)?;
            let left = wait.saturating_sub(started.elapsed());
            if !look.messages.is_empty() || left.is_zero() {
                return Ok(look.messages);
            }
            // Nothing awaits between the look and this line, so no arrival slips through.
            let arrival = look.arrivals.notified();
            let lapse = look.next_visible.map(|at| at.since(self.clock.now()));
            let pause = lapse.map_or(left, |lapse| left.min(lapse));
            // Arrived or timed out: the next look tells.
            let _ = timeout(pause, arrival).await;
        }
    }

    async fn extend(
        &self,
        queue: &str,
        receipt: &Receipt,
        _body: &str,
        visibility: Duration,
    ) -> Result<Receipt> {
        check::hidden(visibility)?;
        let now = self.clock.now();
        let mut rooms = self.rooms();
        let id = rooms.queue(queue)?.find(queue, receipt)?;
        let replacement = rooms.next();
        let stored = rooms.queue(queue)?;
        stored.hide_until(id, now.plus(visibility));
        if let Some(message) = stored.messages.get_mut(&id) {
            message.receipt = replacement;
        }
        stored.arrivals.notify_waiters();
        Ok(Receipt {
            message_id: receipt.message_id.clone(),
            pop_receipt: replacement.to_string(),
        })
    }

    async fn delete(&self, queue: &str, receipts: Vec<Receipt>) -> Vec<Result<()>> {
        receipts
            .iter()
            .map(|receipt| self.delete_one(queue, receipt))
            .collect()
    }

    async fn peek(&self, queue: &str, max: usize) -> Result<Vec<PeekedMessage>> {
        check::peek(max)?;
        let now = self.clock.now();
        let mut rooms = self.rooms();
        let stored = rooms.queue(queue)?;
        Ok(stored
            .visible(now)
            .take(max)
            .filter_map(|id| stored.messages.get(&id))
            .map(|message| PeekedMessage {
                body: message.body.clone(),
                dequeue_count: message.dequeue_count,
                age: now.since(message.sent_at),
            })
            .collect())
    }

    async fn length(&self, queue: &str) -> Result<u64> {
        Ok(self.rooms().queue(queue)?.messages.len() as u64)
    }

    async fn clear(&self, queue: &str) -> Result<()> {
        let mut rooms = self.rooms();
        let stored = rooms.queue(queue)?;
        stored.messages.clear();
        stored.order.clear();
        Ok(())
    }
}
