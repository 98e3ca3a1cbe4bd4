//! Queues.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use async_trait::async_trait;
use tokio::time::Instant;

use super::{MemoryStorage, State};
use crate::clock::Timestamp;
use crate::limits::RECEIVE_MAX;
use crate::storage::{
    Capabilities, Error, Message, OutgoingMessage, PeekedMessage, QueueStore, Receipt, Result,
};

/// Bytes of one message: Azure Storage's limit.
const MESSAGE_BYTES_MAX: usize = 64 * 1024;

/// Messages one peek can return: Azure Storage's limit.
const PEEK_MAX: usize = 32;

#[derive(Default)]
pub(super) struct Queue {
    messages: BTreeMap<u64, Stored>,
    /// Messages by the moment they are visible, then by age.
    by_visibility: BTreeSet<(Timestamp, u64)>,
}

struct Stored {
    body: String,
    sent_at: Timestamp,
    visible_at: Timestamp,
    receipt: u64,
    dequeue_count: u32,
}

impl Queue {
    fn send(&mut self, id: u64, body: String, now: Timestamp, delay: Duration) {
        let visible_at = now.plus(delay);
        let stored = Stored {
            body,
            sent_at: now,
            visible_at,
            receipt: 0,
            dequeue_count: 0,
        };
        self.messages.insert(id, stored);
        self.by_visibility.insert((visible_at, id));
    }

    fn visible(&self, now: Timestamp) -> impl Iterator<Item = u64> + '_ {
        self.by_visibility
            .iter()
            .take_while(move |(at, _)| *at <= now)
            .map(|&(_, id)| id)
    }

    fn hide(&mut self, id: u64, until: Timestamp, receipt: u64) -> Option<&mut Stored> {
        let stored = self.messages.get_mut(&id)?;
        self.by_visibility.remove(&(stored.visible_at, id));
        self.by_visibility.insert((until, id));
        stored.visible_at = until;
        stored.receipt = receipt;
        Some(stored)
    }

    /// The message, if the receipt is its latest.
    fn holds(&self, receipt: &Receipt) -> Option<u64> {
        let id = receipt.message_id.parse().ok()?;
        let stored = self.messages.get(&id)?;
        (stored.receipt > 0 && stored.receipt.to_string() == receipt.pop_receipt).then_some(id)
    }

    fn delete(&mut self, receipt: &Receipt) -> bool {
        let Some(id) = self.holds(receipt) else {
            return false;
        };
        let stored = self.messages.remove(&id);
        if let Some(stored) = stored {
            self.by_visibility.remove(&(stored.visible_at, id));
        }
        true
    }
}

fn missing(queue: &str) -> Error {
    Error::NotFound {
        what: format!("queue {queue}"),
    }
}

impl State {
    fn queue(&mut self, queue: &str) -> Result<&mut Queue> {
        self.queues.get_mut(queue).ok_or_else(|| missing(queue))
    }

    fn receive(
        &mut self,
        queue: &str,
        max: usize,
        now: Timestamp,
        visibility: Duration,
    ) -> Result<Vec<Message>> {
        let ids: Vec<u64> = self.queue(queue)?.visible(now).take(max).collect();
        let mut messages = Vec::with_capacity(ids.len());
        for id in ids {
            let number = self.next_number();
            let until = now.plus(visibility);
            let Some(stored) = self.queue(queue)?.hide(id, until, number) else {
                continue;
            };
            stored.dequeue_count += 1;
            messages.push(Message {
                body: stored.body.clone(),
                receipt: Receipt {
                    message_id: id.to_string(),
                    pop_receipt: number.to_string(),
                },
                dequeue_count: stored.dequeue_count,
            });
        }
        Ok(messages)
    }
}

#[async_trait]
impl QueueStore for MemoryStorage {
    fn capabilities(&self) -> Capabilities {
        Capabilities {
            receive_max: RECEIVE_MAX,
            message_bytes_max: MESSAGE_BYTES_MAX,
            receive_waits: true,
        }
    }

    async fn create_queue(&self, queue: &str) -> Result<()> {
        self.state().queues.entry(queue.to_owned()).or_default();
        Ok(())
    }

    async fn list_queues(&self, prefix: &str) -> Result<Vec<String>> {
        let state = self.state();
        let names = state.queues.keys().filter(|name| name.starts_with(prefix));
        Ok(names.cloned().collect())
    }

    async fn send(&self, queue: &str, messages: Vec<OutgoingMessage>) -> Vec<Result<()>> {
        let now = self.clock.now();
        let mut answers = Vec::with_capacity(messages.len());
        {
            let mut state = self.state();
            for OutgoingMessage { body, delay, .. } in messages {
                if body.len() > MESSAGE_BYTES_MAX {
                    let what = format!("a message for queue {queue}");
                    let bytes = body.len();
                    answers.push(Err(Error::TooLarge {
                        what,
                        bytes,
                        limit: MESSAGE_BYTES_MAX,
                    }));
                    continue;
                }
                let id = state.next_number();
                answers.push(
                    state
                        .queue(queue)
                        .map(|queue| queue.send(id, body, now, delay)),
                );
            }
        }
        self.arrivals.notify_waiters();
        answers
    }

    async fn receive(
        &self,
        queue: &str,
        max: usize,
        visibility: Duration,
        wait: Duration,
    ) -> Result<Vec<Message>> {
        let max = max.clamp(1, RECEIVE_MAX);
        let give_up_at = Instant::now() + wait;
        loop {
            // Asked for before the look, so that a send in between is not missed.
            let arrival = self.arrivals.notified();
            tokio::pin!(arrival);
            arrival.as_mut().enable();
            let now = self.clock.now();
            let (messages, next_at) = {
                let mut state = self.state();
                let messages = state.receive(queue, max, now, visibility)?;
                let next_at = state.queue(queue)?.by_visibility.first().map(|&(at, _)| at);
                (messages, next_at)
            };
            if !messages.is_empty() || Instant::now() >= give_up_at {
                return Ok(messages);
            }
            let next_at = next_at.map(|at| Instant::now() + at.since(now));
            tokio::select! {
                () = arrival => {}
                () = tokio::time::sleep_until(next_at.map_or(give_up_at, |at| at.min(give_up_at))) => {}
            }
        }
    }

    async fn extend(
        &self,
        queue: &str,
        receipt: &Receipt,
        _body: &str,
        visibility: Duration,
    ) -> Result<Receipt> {
        let until = self.clock.now().plus(visibility);
        let receipt = {
            let mut state = self.state();
            let number = state.next_number();
            let stored = state.queue(queue)?;
            let lost = || Error::ReceiptLost {
                queue: queue.to_owned(),
            };
            let id = stored.holds(receipt).ok_or_else(lost)?;
            stored.hide(id, until, number);
            Receipt {
                message_id: id.to_string(),
                pop_receipt: number.to_string(),
            }
        };
        if visibility.is_zero() {
            self.arrivals.notify_waiters();
        }
        Ok(receipt)
    }

    async fn delete(&self, queue: &str, receipts: Vec<Receipt>) -> Vec<Result<()>> {
        let mut state = self.state();
        let delete = |receipt: Receipt| {
            let deleted = state.queue(queue)?.delete(&receipt);
            if deleted {
                Ok(())
            } else {
                Err(Error::ReceiptLost {
                    queue: queue.to_owned(),
                })
            }
        };
        receipts.into_iter().map(delete).collect()
    }

    async fn peek(&self, queue: &str, max: usize) -> Result<Vec<PeekedMessage>> {
        let now = self.clock.now();
        let mut state = self.state();
        let queue = state.queue(queue)?;
        let visible = queue.visible(now).take(max.clamp(1, PEEK_MAX));
        let peek = |id| {
            let stored: &Stored = queue.messages.get(&id)?;
            Some(PeekedMessage {
                body: stored.body.clone(),
                dequeue_count: stored.dequeue_count,
                age: now.since(stored.sent_at),
            })
        };
        Ok(visible.filter_map(peek).collect())
    }

    async fn length(&self, queue: &str) -> Result<u64> {
        Ok(self.state().queue(queue)?.messages.len() as u64)
    }

    async fn clear(&self, queue: &str) -> Result<()> {
        *self.state().queue(queue)? = Queue::default();
        Ok(())
    }
}
