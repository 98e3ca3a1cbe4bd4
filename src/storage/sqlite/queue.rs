//! Queues in the database.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use rusqlite::{Connection, params};
use tokio::time::{Instant, timeout};

use super::call::Call;
use super::error::Outcome;
use super::{Room, SqliteStorage, take_numbers};
use crate::clock::Timestamp;
use crate::limits;
use crate::storage::{
    Capabilities, Error, Message, OutgoingMessage, PeekedMessage, QueueStore, Receipt, Result,
    check,
};

fn lost(queue: &str) -> Error {
    Error::ReceiptLost {
        queue: queue.to_owned(),
    }
}

/// A receipt as the database knows it: the message's id, never used twice, and how often its
/// receipt was replaced.
#[derive(Debug, Clone, Copy)]
struct Proof {
    id: i64,
    receipt: i64,
}

impl Proof {
    /// `None` for what this backend never handed out.
    fn parse(receipt: &Receipt) -> Option<Self> {
        Some(Self {
            id: receipt.message_id.parse().ok()?,
            receipt: receipt.pop_receipt.parse().ok()?,
        })
    }

    fn receipt(self) -> Receipt {
        Receipt {
            message_id: self.id.to_string(),
            pop_receipt: self.receipt.to_string(),
        }
    }
}

/// What one look into a queue found.
struct Look {
    messages: Vec<Message>,
    /// Where nothing is visible: when the next message becomes so by itself.
    next_visible: Option<Timestamp>,
}

fn insert(
    db: &Connection,
    queue: i64,
    messages: &[OutgoingMessage],
    now: Timestamp,
) -> Outcome<()> {
    let last = take_numbers(db, messages.len())?;
    let mut statement = db.prepare_cached(
        "INSERT INTO messages (id, queue, visible_from, receipt, dequeue_count, sent_at, body)
         VALUES (?1, ?2, ?3, 0, 0, ?4, ?5)",
    )?;
    for (id, message) in (1 + last - messages.len() as i64..).zip(messages) {
        let visible_from = now.plus(message.delay).as_micros();
        statement.execute(params![
            id,
            queue,
            visible_from,
            now.as_micros(),
            message.body
        ])?;
    }
    Ok(())
}

/// Takes visible messages, the longest visible first, and hides them until `hidden_until`.
fn take(
    db: &Connection,
    queue: i64,
    max: usize,
    now: Timestamp,
    hidden_until: Timestamp,
) -> Outcome<Vec<Message>> {
    let mut find = db.prepare_cached(
        "SELECT id, receipt, dequeue_count, body FROM messages
         WHERE queue = ?1 AND visible_from <= ?2 ORDER BY visible_from, id LIMIT ?3",
    )?;
    let mut hide = db.prepare_cached(
        "UPDATE messages
         SET visible_from = ?2, receipt = receipt + 1, dequeue_count = dequeue_count + 1
         WHERE id = ?1",
    )?;
    // Read to the end before anything is written: the writes move rows in the index that is read.
    let found = find
        .query_map(params![queue, now.as_micros(), max], |row| {
            let proof = Proof {
                id: row.get(0)?,
                receipt: row.get::<_, i64>(1)? + 1,
            };
            let message = Message {
                body: row.get(3)?,
                receipt: proof.receipt(),
                dequeue_count: row.get::<_, u32>(2)?.saturating_add(1),
            };
            Ok((proof.id, message))
        })?
        .collect::<rusqlite::Result<Vec<_>>>()?;
    let mut messages = Vec::with_capacity(found.len());
    for (id, message) in found {
        hide.execute(params![id, hidden_until.as_micros()])?;
        messages.push(message);
    }
    Ok(messages)
}

/// Hides a message until `visible_from` under a new receipt; `None` if the proof is stale.
fn hide(
    db: &Connection,
    queue: i64,
    proof: Proof,
    visible_from: Timestamp,
) -> Outcome<Option<Proof>> {
    let changed = db
        .prepare_cached(
            "UPDATE messages SET visible_from = ?4, receipt = receipt + 1
             WHERE id = ?1 AND receipt = ?2 AND queue = ?3",
        )?
        .execute(params![
            proof.id,
            proof.receipt,
            queue,
            visible_from.as_micros()
        ])?;
    Ok((changed == 1).then_some(Proof {
        receipt: proof.receipt + 1,
        ..proof
    }))
}

/// Makes messages visible again whose receiver was gone before it got them.
fn give_back(queue: Arc<str>, messages: Vec<Message>, received: Timestamp) -> Call<()> {
    let wakes = queue.to_string();
    Call::new(move |db| {
        let room = Room::Queue.find(db, &queue)?;
        for message in &messages {
            if let Some(proof) = Proof::parse(&message.receipt) {
                hide(db, room, proof, received)?;
            }
        }
        Ok(())
    })
    .waking(wakes)
}

impl SqliteStorage {
    async fn look(&self, queue: &Arc<str>, max: usize, visibility: Duration) -> Result<Look> {
        let now = self.clock.now();
        let hidden_until = now.plus(visibility);
        let (place, returned_to) = (queue.clone(), queue.clone());
        let call = Call::new(move |db| {
            let room = Room::Queue.find(db, &place)?;
            let messages = take(db, room, max, now, hidden_until)?;
            if !messages.is_empty() {
                return Ok(Look {
                    messages,
                    next_visible: None,
                });
            }
            let next: Option<i64> = db
                .prepare_cached("SELECT min(visible_from) FROM messages WHERE queue = ?1")?
                .query_row([room], |row| row.get(0))?;
            Ok(Look {
                messages,
                next_visible: next.map(Timestamp::from_micros),
            })
        });
        let undo = move |look: Look| give_back(returned_to, look.messages, now);
        self.writer.call(call.undone_by(undo)).await
    }

    /// Looks again whenever something may have arrived, for at most `wait`.
    async fn wait(
        &self,
        queue: &Arc<str>,
        max: usize,
        visibility: Duration,
        wait: Duration,
    ) -> Result<Vec<Message>> {
        let place = self.waiters.join(queue);
        let started = Instant::now();
        loop {
            // Made before the look: what arrives after the look wakes it.
            let arrival = place.arrivals.notified();
            let look = self.look(queue, max, visibility).await?;
            let left = wait.saturating_sub(started.elapsed());
            if !look.messages.is_empty() || left.is_zero() {
                return Ok(look.messages);
            }
            let lapse = look.next_visible.map(|at| at.since(self.clock.now()));
            let pause = lapse.map_or(left, |lapse| left.min(lapse));
            // Arrived or timed out: the next look tells.
            let _ = timeout(pause, arrival).await;
        }
    }
}

#[async_trait]
impl QueueStore for SqliteStorage {
    fn capabilities(&self) -> Capabilities {
        Capabilities {
            receive_max: limits::RECEIVE_MAX,
            message_bytes_max: limits::QUEUE_MESSAGE_BYTES_MAX,
            receive_waits: true,
        }
    }

    async fn create_queue(&self, queue: &str) -> Result<()> {
        check::queue(queue)?;
        let queue = queue.to_owned();
        self.write(move |db| Room::Queue.create(db, &queue)).await
    }

    async fn list_queues(&self, prefix: &str) -> Result<Vec<String>> {
        let prefix = prefix.to_owned();
        self.read(move |db| {
            let mut statement =
                db.prepare_cached("SELECT name FROM queues WHERE name >= ?1 ORDER BY name")?;
            let names = statement.query_map([&prefix], |row| row.get::<_, String>(0))?;
            let ours = names.take_while(|name| {
                // A failing row is let through, so that the collection reports it.
                name.as_ref().map_or(true, |name| name.starts_with(&prefix))
            });
            Ok(ours.collect::<rusqlite::Result<_>>()?)
        })
        .await
    }

    async fn send(&self, queue: &str, messages: Vec<OutgoingMessage>) -> Vec<Result<()>> {
        let limit = limits::QUEUE_MESSAGE_BYTES_MAX;
        let mut answers: Vec<Result<()>> = messages
            .iter()
            .map(|message| check::message(queue, message.body.len(), limit, message.delay))
            .collect();
        let fitting: Vec<OutgoingMessage> = messages
            .into_iter()
            .zip(&answers)
            .filter_map(|(message, answer)| answer.is_ok().then_some(message))
            .collect();
        if fitting.is_empty() {
            return answers;
        }
        let now = self.clock.now();
        let name = queue.to_owned();
        let call = Call::new(move |db| {
            let room = Room::Queue.find(db, &name)?;
            insert(db, room, &fitting, now)
        });
        let sent = self.writer.call(call.waking(queue.to_owned())).await;
        if let Err(error) = sent {
            spread(&error, &mut answers);
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
        let queue: Arc<str> = queue.into();
        if wait.is_zero() {
            return Ok(self.look(&queue, max, visibility).await?.messages);
        }
        self.wait(&queue, max, visibility, wait).await
    }

    async fn extend(
        &self,
        queue: &str,
        receipt: &Receipt,
        _body: &str,
        visibility: Duration,
    ) -> Result<Receipt> {
        check::hidden(visibility)?;
        let proof = Proof::parse(receipt).ok_or_else(|| lost(queue))?;
        let visible_from = self.clock.now().plus(visibility);
        let name = queue.to_owned();
        let call = Call::new(move |db| {
            let room = Room::Queue.find(db, &name)?;
            let replaced = hide(db, room, proof, visible_from)?;
            Ok(replaced.ok_or_else(|| lost(&name))?.receipt())
        });
        // A shorter timeout concerns whoever waits for the message to reappear.
        self.writer.call(call.waking(queue.to_owned())).await
    }

    async fn delete(&self, queue: &str, receipts: Vec<Receipt>) -> Vec<Result<()>> {
        let count = receipts.len();
        if count == 0 {
            return Vec::new();
        }
        let name = queue.to_owned();
        let deleted = self
            .write(move |db| {
                let room = Room::Queue.find(db, &name)?;
                let mut statement = db.prepare_cached(
                    "DELETE FROM messages WHERE id = ?1 AND receipt = ?2 AND queue = ?3",
                )?;
                let mut deleted = Vec::with_capacity(receipts.len());
                for receipt in &receipts {
                    deleted.push(match Proof::parse(receipt) {
                        Some(proof) => {
                            statement.execute(params![proof.id, proof.receipt, room])? == 1
                        }
                        None => false,
                    });
                }
                Ok(deleted)
            })
            .await;
        match deleted {
            Ok(deleted) => deleted
                .into_iter()
                .map(|deleted| if deleted { Ok(()) } else { Err(lost(queue)) })
                .collect(),
            Err(error) => {
                let mut answers: Vec<Result<()>> = (0..count).map(|_| Ok(())).collect();
                spread(&error, &mut answers);
                answers
            }
        }
    }

    async fn peek(&self, queue: &str, max: usize) -> Result<Vec<PeekedMessage>> {
        check::peek(max)?;
        let now = self.clock.now();
        let queue = queue.to_owned();
        self.read(move |db| {
            let room = Room::Queue.find(db, &queue)?;
            let mut statement = db.prepare_cached(
                "SELECT body, dequeue_count, sent_at FROM messages
                 WHERE queue = ?1 AND visible_from <= ?2 ORDER BY visible_from, id LIMIT ?3",
            )?;
            let messages = statement.query_map(params![room, now.as_micros(), max], |row| {
                Ok(PeekedMessage {
                    body: row.get(0)?,
                    dequeue_count: row.get(1)?,
                    age: now.since(Timestamp::from_micros(row.get(2)?)),
                })
            })?;
            Ok(messages.collect::<rusqlite::Result<_>>()?)
        })
        .await
    }

    async fn length(&self, queue: &str) -> Result<u64> {
        let queue = queue.to_owned();
        self.read(move |db| {
            let room = Room::Queue.find(db, &queue)?;
            let count = db
                .prepare_cached("SELECT count(*) FROM messages WHERE queue = ?1")?
                .query_row([room], |row| row.get(0))?;
            Ok(count)
        })
        .await
    }

    async fn clear(&self, queue: &str) -> Result<()> {
        let queue = queue.to_owned();
        self.write(move |db| {
            let room = Room::Queue.find(db, &queue)?;
            db.prepare_cached("DELETE FROM messages WHERE queue = ?1")?
                .execute([room])?;
            Ok(())
        })
        .await
    }
}

/// Gives every message of a batch that failed as a whole the batch's error.
fn spread(error: &Error, answers: &mut [Result<()>]) {
    for answer in answers.iter_mut().filter(|answer| answer.is_ok()) {
        *answer = Err(match error {
            Error::NotFound { what } => Error::NotFound { what: what.clone() },
            Error::Unauthorized { message } => Error::Unauthorized {
                message: message.clone(),
            },
            Error::Corrupt { what, message } => Error::Corrupt {
                what: what.clone(),
                message: message.clone(),
            },
            other => Error::Unavailable {
                message: other.to_string(),
                source: None,
            },
        });
    }
}
