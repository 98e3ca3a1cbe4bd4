//! Queues.

use std::time::Duration;

use async_trait::async_trait;
use rusqlite::{Connection, OptionalExtension as _};
use tokio::time::Instant;

use super::SqliteStorage;
use super::writer::{Group, Sync};
use crate::limits::RECEIVE_MAX;
use crate::storage::{
    Capabilities, Error, Message, OutgoingMessage, PeekedMessage, QueueStore, Receipt, Result,
};

/// Bytes of one message: Azure Storage's limit, so that a workflow moves there without surprises.
const MESSAGE_BYTES_MAX: usize = 64 * 1024;

/// Messages one peek can return: Azure Storage's limit.
const PEEK_MAX: usize = 32;

fn what(queue: &str) -> String {
    format!("queue {queue}")
}

fn missing(queue: &str) -> Error {
    Error::NotFound { what: what(queue) }
}

fn lost(queue: &str) -> Error {
    Error::ReceiptLost {
        queue: queue.to_owned(),
    }
}

fn id_of(connection: &Connection, queue: &str) -> rusqlite::Result<Option<i64>> {
    connection
        .prepare_cached("SELECT id FROM queues WHERE name = ?1")?
        .query_row([queue], |row| row.get(0))
        .optional()
}

fn micros(duration: Duration) -> i64 {
    i64::try_from(duration.as_micros()).unwrap_or(i64::MAX / 4)
}

fn limit(max: usize, bound: usize) -> i64 {
    i64::try_from(max.clamp(1, bound)).unwrap_or(1)
}

/// The message's row and receipt number, if the receipt is one of ours at all.
fn numbers(receipt: &Receipt) -> Option<(i64, i64)> {
    Some((
        receipt.message_id.parse().ok()?,
        receipt.pop_receipt.parse().ok()?,
    ))
}

#[async_trait]
impl QueueStore for SqliteStorage {
    fn capabilities(&self) -> Capabilities {
        Capabilities {
            receive_max: RECEIVE_MAX,
            message_bytes_max: MESSAGE_BYTES_MAX,
            receive_waits: true,
        }
    }

    async fn create_queue(&self, queue: &str) -> Result<()> {
        let name = queue.to_owned();
        self.writer
            .run(Sync::Durable, &what(queue), move |group| {
                // Looked up first, because an ignored insert would still use up an id.
                if id_of(group.connection, &name)?.is_none() {
                    group
                        .connection
                        .prepare_cached("INSERT INTO queues (name) VALUES (?1)")?
                        .execute([name])?;
                }
                Ok(Ok(()))
            })
            .await
    }

    async fn list_queues(&self, prefix: &str) -> Result<Vec<String>> {
        let prefix = prefix.to_owned();
        self.readers
            .run("the queues", move |connection| {
                let mut statement =
                    connection.prepare_cached("SELECT name FROM queues ORDER BY name")?;
                let names = statement.query_map([], |row| row.get(0))?;
                let mut names = names.collect::<rusqlite::Result<Vec<String>>>()?;
                names.retain(|name| name.starts_with(&prefix));
                Ok(Ok(names))
            })
            .await
    }

    async fn send(&self, queue: &str, messages: Vec<OutgoingMessage>) -> Vec<Result<()>> {
        let count = messages.len();
        let (name, now) = (queue.to_owned(), self.now());
        let sent = self
            .writer
            .run(Sync::Durable, &what(queue), move |group| {
                send(group, &name, messages, now).map(Ok)
            })
            .await;
        each(sent, count)
    }

    async fn receive(
        &self,
        queue: &str,
        max: usize,
        visibility: Duration,
        wait: Duration,
    ) -> Result<Vec<Message>> {
        let give_up_at = Instant::now() + wait;
        let mut waiting = None;
        loop {
            let (id, next_at) = self.next_visible(queue).await?;
            // Asked for before the look, so that a send in between is not missed.
            let notify = self.wakers.of_queue(id);
            let notified = notify.notified();
            tokio::pin!(notified);
            notified.as_mut().enable();
            let now = self.now();
            if next_at.is_some_and(|at| at <= now) {
                let messages = self.take(queue, id, max, visibility).await?;
                if !messages.is_empty() {
                    return Ok(messages);
                }
            }
            if Instant::now() >= give_up_at {
                return Ok(Vec::new());
            }
            if waiting.is_none() {
                // The first look was before anybody watched; look once more.
                waiting = Some(self.wakers.waiting());
                continue;
            }
            let wake_at = next_at.map_or(give_up_at, |at| {
                let pause = u64::try_from(at - now).unwrap_or(0);
                give_up_at.min(Instant::now() + Duration::from_micros(pause))
            });
            tokio::select! {
                () = notified => {}
                () = tokio::time::sleep_until(wake_at) => {}
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
        let Some((id, number)) = numbers(receipt) else {
            return Err(lost(queue));
        };
        let (name, visible_at) = (queue.to_owned(), self.now() + micros(visibility));
        let gives_back = visibility.is_zero();
        self.writer
            .run(Sync::Volatile, &what(queue), move |group| {
                let Some(queue) = id_of(group.connection, &name)? else {
                    return Ok(Err(missing(&name)));
                };
                let next = group.next_number();
                let extended = group
                    .connection
                    .prepare_cached(
                        "UPDATE messages SET visible_at = ?1, receipt = ?2
                         WHERE id = ?3 AND receipt = ?4 AND queue = ?5",
                    )?
                    .execute((visible_at, next, id, number, queue))?;
                if extended == 0 {
                    return Ok(Err(lost(&name)));
                }
                if gives_back {
                    group.wake(queue);
                }
                Ok(Ok(Receipt {
                    message_id: id.to_string(),
                    pop_receipt: next.to_string(),
                }))
            })
            .await
    }

    async fn delete(&self, queue: &str, receipts: Vec<Receipt>) -> Vec<Result<()>> {
        let count = receipts.len();
        let name = queue.to_owned();
        let deleted = self
            .writer
            .run(Sync::Durable, &what(queue), move |group| {
                delete(group, &name, &receipts).map(Ok)
            })
            .await;
        each(deleted, count)
    }

    async fn peek(&self, queue: &str, max: usize) -> Result<Vec<PeekedMessage>> {
        let (name, now) = (queue.to_owned(), self.now());
        self.readers
            .run(&what(queue), move |connection| {
                let Some(id) = id_of(connection, &name)? else {
                    return Ok(Err(missing(&name)));
                };
                let mut statement = connection.prepare_cached(
                    "SELECT body, dequeue_count, sent_at FROM messages
                     WHERE queue = ?1 AND visible_at <= ?2 ORDER BY visible_at, id LIMIT ?3",
                )?;
                let messages = statement.query_map((id, now, limit(max, PEEK_MAX)), |row| {
                    let age = now.saturating_sub(row.get(2)?);
                    Ok(PeekedMessage {
                        body: row.get(0)?,
                        dequeue_count: row.get(1)?,
                        age: Duration::from_micros(u64::try_from(age).unwrap_or(0)),
                    })
                })?;
                messages.collect::<rusqlite::Result<Vec<_>>>().map(Ok)
            })
            .await
    }

    async fn length(&self, queue: &str) -> Result<u64> {
        let name = queue.to_owned();
        self.readers
            .run(&what(queue), move |connection| {
                let Some(id) = id_of(connection, &name)? else {
                    return Ok(Err(missing(&name)));
                };
                let count: i64 = connection
                    .prepare_cached("SELECT count(*) FROM messages WHERE queue = ?1")?
                    .query_row([id], |row| row.get(0))?;
                Ok(Ok(u64::try_from(count).unwrap_or(0)))
            })
            .await
    }

    async fn clear(&self, queue: &str) -> Result<()> {
        let name = queue.to_owned();
        self.writer
            .run(Sync::Durable, &what(queue), move |group| {
                let Some(id) = id_of(group.connection, &name)? else {
                    return Ok(Err(missing(&name)));
                };
                group
                    .connection
                    .prepare_cached("DELETE FROM messages WHERE queue = ?1")?
                    .execute([id])?;
                Ok(Ok(()))
            })
            .await
    }
}

/// The answers of a batch: one each, or the failure of all.
fn each(answers: Result<Vec<Result<()>>>, count: usize) -> Vec<Result<()>> {
    answers.unwrap_or_else(|error| {
        let message = error.to_string();
        let mut failures = vec![Err(error)];
        failures.resize_with(count, || {
            Err(Error::Unavailable {
                message: message.clone(),
                source: None,
            })
        });
        failures.truncate(count);
        failures
    })
}

fn send(
    group: &Group<'_>,
    queue: &str,
    messages: Vec<OutgoingMessage>,
    now: i64,
) -> rusqlite::Result<Vec<Result<()>>> {
    let Some(id) = id_of(group.connection, queue)? else {
        return Ok(messages.iter().map(|_| Err(missing(queue))).collect());
    };
    let mut statement = group.connection.prepare_cached(
        "INSERT INTO messages (queue, visible_at, sent_at, body) VALUES (?1, ?2, ?3, ?4)",
    )?;
    let mut answers = Vec::with_capacity(messages.len());
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
        statement.execute((id, now.saturating_add(micros(delay)), now, body))?;
        answers.push(Ok(()));
    }
    group.wake(id);
    Ok(answers)
}

fn delete(
    group: &Group<'_>,
    queue: &str,
    receipts: &[Receipt],
) -> rusqlite::Result<Vec<Result<()>>> {
    let Some(queue_id) = id_of(group.connection, queue)? else {
        return Ok(receipts.iter().map(|_| Err(missing(queue))).collect());
    };
    let mut statement = group
        .connection
        .prepare_cached("DELETE FROM messages WHERE id = ?1 AND receipt = ?2 AND queue = ?3")?;
    let mut answers = Vec::with_capacity(receipts.len());
    for receipt in receipts {
        let deleted = match numbers(receipt) {
            Some((id, number)) => statement.execute((id, number, queue_id))?,
            None => 0,
        };
        answers.push(if deleted == 0 {
            Err(lost(queue))
        } else {
            Ok(())
        });
    }
    Ok(answers)
}

impl SqliteStorage {
    /// The queue's id and when its first message is or will be visible.
    async fn next_visible(&self, queue: &str) -> Result<(i64, Option<i64>)> {
        let name = queue.to_owned();
        self.readers
            .run(&what(queue), move |connection| {
                let Some(id) = id_of(connection, &name)? else {
                    return Ok(Err(missing(&name)));
                };
                let next = connection
                    .prepare_cached("SELECT min(visible_at) FROM messages WHERE queue = ?1")?
                    .query_row([id], |row| row.get(0))?;
                Ok(Ok((id, next)))
            })
            .await
    }

    /// Takes visible messages, if there are any by the time the writer gets to it.
    async fn take(
        &self,
        queue: &str,
        id: i64,
        max: usize,
        visibility: Duration,
    ) -> Result<Vec<Message>> {
        let clock = self.clock.clone();
        self.writer
            .run(Sync::Volatile, &what(queue), move |group| {
                let now = clock.now().as_micros();
                take(group, id, limit(max, RECEIVE_MAX), now, micros(visibility)).map(Ok)
            })
            .await
    }
}

fn take(
    group: &Group<'_>,
    queue: i64,
    limit: i64,
    now: i64,
    visibility: i64,
) -> rusqlite::Result<Vec<Message>> {
    let mut select = group.connection.prepare_cached(
        "SELECT id, body, dequeue_count FROM messages
         WHERE queue = ?1 AND visible_at <= ?2 ORDER BY visible_at, id LIMIT ?3",
    )?;
    let found = select.query_map((queue, now, limit), |row| {
        Ok((
            row.get::<_, i64>(0)?,
            row.get::<_, String>(1)?,
            row.get::<_, u32>(2)?,
        ))
    })?;
    let found = found.collect::<rusqlite::Result<Vec<_>>>()?;
    let mut update = group.connection.prepare_cached(
        "UPDATE messages SET visible_at = ?1, receipt = ?2, dequeue_count = ?3 WHERE id = ?4",
    )?;
    let mut messages = Vec::with_capacity(found.len());
    for (id, body, received_before) in found {
        let number = group.next_number();
        let dequeue_count = received_before.saturating_add(1);
        update.execute((now.saturating_add(visibility), number, dequeue_count, id))?;
        let receipt = Receipt {
            message_id: id.to_string(),
            pop_receipt: number.to_string(),
        };
        messages.push(Message {
            body,
            receipt,
            dequeue_count,
        });
    }
    Ok(messages)
}
