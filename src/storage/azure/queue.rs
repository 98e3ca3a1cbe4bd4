//! The queue port on the queue service.

use std::time::Duration;

use async_trait::async_trait;
use azure_core::prelude::Prefix;
use azure_storage_queues::operations::Message as ServiceMessage;
use azure_storage_queues::{MessageTTL, PopReceipt, QueueClient, VisibilityTimeout};
use futures::StreamExt as _;
use futures::stream;

use super::AzureStorage;
use super::errors::{Service, Translate, answer};
use super::retry::{SHORT, once, repeatable};
use crate::clock::Timestamp;
use crate::limits;
use crate::storage::{
    Capabilities, Error, Message, OutgoingMessage, PeekedMessage, QueueStore, Receipt, Result,
    check,
};

/// As good as for ever: the library cannot say "never", and 68 years outlast every workflow.
const TIME_TO_LIVE: Duration = Duration::from_secs(i32::MAX as u64);

impl AzureStorage {
    fn queue_client(&self, queue: &str) -> Result<QueueClient> {
        check::queue(queue)?;
        // The storage's own rule is narrower than that of all backends: it is that of containers.
        check::container(queue).map_err(|_| Error::Invalid {
            message: format!(
                "{queue:?} is no queue name on Azure Storage: 3 to 63 lower-case letters, digits \
                 and single dashes"
            ),
        })?;
        Ok(self.queues.queue_client(queue))
    }

    fn about_queue(&self, queue: &str) -> Translate<'_> {
        self.translate(Service::Queue, format!("queue {queue}"))
    }

    async fn send_one(&self, queue: &str, message: OutgoingMessage) -> Result<()> {
        let client = self.queue_client(queue)?;
        let bytes = bytes_on_the_wire(&message.body);
        check::message(queue, bytes, limits::QUEUE_MESSAGE_BYTES_MAX, message.delay)?;
        carriable(&message.body)?;
        let send = || {
            client
                .put_message(message.body.clone())
                .visibility_timeout(VisibilityTimeout::new(whole_seconds(message.delay)))
                .ttl(MessageTTL::new(TIME_TO_LIVE))
                .into_future()
        };
        once(&self.about_queue(queue), SHORT, send).await.map(drop)
    }

    async fn delete_one(&self, queue: &str, receipt: Receipt) -> Result<()> {
        let client = self.queue_client(queue)?.pop_receipt_client(pop(&receipt));
        let mut tries = 0_u32;
        let delete = || {
            tries += 1;
            let (tries, delete) = (tries, client.delete().into_future());
            async move {
                match delete.await {
                    // The answer to the first try was lost: it did its work.
                    Err(error) if tries > 1 && matches!(answer(&error), Some((404, _))) => Ok(()),
                    other => other.map(drop),
                }
            }
        };
        let deleted = repeatable(&self.about_queue(queue), SHORT, delete).await;
        deleted.map_err(|error| receipt_lost(queue, error))
    }
}

fn pop(receipt: &Receipt) -> PopReceipt {
    PopReceipt::new(receipt.message_id.clone(), receipt.pop_receipt.clone())
}

/// A message that is gone, or whose receipt is another one by now. A missing queue says the same
/// of its messages.
fn receipt_lost(queue: &str, error: Error) -> Error {
    match error {
        Error::NotFound { .. } | Error::Invalid { .. } => Error::ReceiptLost {
            queue: queue.to_owned(),
        },
        other => other,
    }
}

/// Rounded up: nothing may appear sooner than told.
fn whole_seconds(duration: Duration) -> Duration {
    Duration::from_secs(duration.as_secs() + u64::from(duration.subsec_nanos() > 0))
}

/// The size of a text within the XML that carries it.
fn bytes_on_the_wire(text: &str) -> usize {
    let extra = |byte: u8| match byte {
        b'&' => 4,
        b'<' | b'>' => 3,
        _ => 0,
    };
    text.len() + text.bytes().map(extra).sum::<usize>()
}

/// XML cannot carry some characters, and its readers change others: they turn carriage returns into
/// line feeds, and the library's drops the space around a text.
fn carriable(text: &str) -> Result<()> {
    let lost = |c: char| {
        (c.is_ascii_control() && c != '\t' && c != '\n') || matches!(c, '\u{fffe}' | '\u{ffff}')
    };
    let reason = match text.chars().find(|c| lost(*c)) {
        Some(found) => format!("the character {found:?}"),
        None if text.trim_ascii() != text => "space around its text".to_owned(),
        None => return Ok(()),
    };
    Err(Error::Invalid {
        message: format!("Azure Storage cannot carry a message with {reason}"),
    })
}

fn received(message: ServiceMessage) -> Message {
    Message {
        body: message.message_text,
        receipt: Receipt {
            message_id: message.message_id,
            pop_receipt: message.pop_receipt,
        },
        dequeue_count: u32::try_from(message.dequeue_count).unwrap_or(u32::MAX),
    }
}

#[async_trait]
impl QueueStore for AzureStorage {
    fn capabilities(&self) -> Capabilities {
        Capabilities {
            receive_max: limits::AZURE_RECEIVE_MAX,
            message_bytes_max: limits::QUEUE_MESSAGE_BYTES_MAX,
            receive_waits: false,
        }
    }

    async fn create_queue(&self, queue: &str) -> Result<()> {
        let client = self.queue_client(queue)?;
        let about = self.about_queue(queue);
        match repeatable(&about, SHORT, || client.create().into_future()).await {
            Ok(_) | Err(Error::AlreadyExists { .. }) => Ok(()),
            // Whoever may not create queues may be given one that exists.
            Err(refused @ Error::Unauthorized { .. }) => {
                self.length(queue).await.map(drop).map_err(|_| refused)
            }
            Err(error) => Err(error),
        }
    }

    async fn list_queues(&self, prefix: &str) -> Result<Vec<String>> {
        let about = self.translate(Service::Queue, "the list of queues");
        let mut names = repeatable(&about, SHORT, || {
            let mut list = self.queues.list_queues();
            if !prefix.is_empty() {
                list = list.prefix(Prefix::from(prefix.to_owned()));
            }
            let mut pages = list.into_stream();
            async move {
                let mut names = Vec::new();
                while let Some(page) = pages.next().await.transpose()? {
                    names.extend(page.queues.into_iter().map(|queue| queue.name));
                }
                Ok(names)
            }
        })
        .await?;
        names.sort_unstable();
        Ok(names)
    }

    async fn send(&self, queue: &str, messages: Vec<OutgoingMessage>) -> Vec<Result<()>> {
        let sends = messages
            .into_iter()
            .map(|message| self.send_one(queue, message));
        let sends = stream::iter(sends).buffered(limits::AZURE_MESSAGES_AT_ONCE_MAX);
        sends.collect().await
    }

    async fn receive(
        &self,
        queue: &str,
        max: usize,
        visibility: Duration,
        _wait: Duration,
    ) -> Result<Vec<Message>> {
        check::receive(max, visibility)?;
        let client = self.queue_client(queue)?;
        let max = u8::try_from(max.min(limits::AZURE_RECEIVE_MAX)).unwrap_or(u8::MAX);
        let visibility = VisibilityTimeout::new(whole_seconds(visibility));
        // Never repeated blindly: a receive whose answer was lost has hidden its messages.
        let receive = || {
            client
                .get_messages()
                .number_of_messages(max)
                .visibility_timeout(visibility.clone())
                .into_future()
        };
        let answer = once(&self.about_queue(queue), SHORT, receive).await?;
        Ok(answer.messages.into_iter().map(received).collect())
    }

    async fn extend(
        &self,
        queue: &str,
        receipt: &Receipt,
        body: &str,
        visibility: Duration,
    ) -> Result<Receipt> {
        check::hidden(visibility)?;
        let client = self.queue_client(queue)?.pop_receipt_client(pop(receipt));
        let visibility = whole_seconds(visibility);
        let update = || client.update(body, visibility).into_future();
        let updated = once(&self.about_queue(queue), SHORT, update).await;
        let updated = updated.map_err(|error| receipt_lost(queue, error))?;
        Ok(Receipt {
            message_id: receipt.message_id.clone(),
            pop_receipt: updated.pop_receipt,
        })
    }

    async fn delete(&self, queue: &str, receipts: Vec<Receipt>) -> Vec<Result<()>> {
        let deletes = receipts
            .into_iter()
            .map(|receipt| self.delete_one(queue, receipt));
        let deletes = stream::iter(deletes).buffered(limits::AZURE_MESSAGES_AT_ONCE_MAX);
        deletes.collect().await
    }

    async fn peek(&self, queue: &str, max: usize) -> Result<Vec<PeekedMessage>> {
        check::peek(max)?;
        let client = self.queue_client(queue)?;
        let max = u8::try_from(max).unwrap_or(u8::MAX);
        let peek = || client.peek_messages().number_of_messages(max).into_future();
        let answer = repeatable(&self.about_queue(queue), SHORT, peek).await?;
        let now = self.clock.now();
        let seen = answer.messages.into_iter().map(|message| PeekedMessage {
            body: message.message_text,
            dequeue_count: u32::try_from(message.dequeue_count).unwrap_or(u32::MAX),
            age: now.since(Timestamp::from_micros(
                message.insertion_time.unix_timestamp() * 1_000_000,
            )),
        });
        Ok(seen.collect())
    }

    async fn length(&self, queue: &str) -> Result<u64> {
        let client = self.queue_client(queue)?;
        let look = || client.get_metadata().into_future();
        let answer = repeatable(&self.about_queue(queue), SHORT, look).await?;
        Ok(answer.approximate_messages_count as u64)
    }

    async fn clear(&self, queue: &str) -> Result<()> {
        let client = self.queue_client(queue)?;
        let clear = || client.clear_messages().into_future();
        let cleared = repeatable(&self.about_queue(queue), SHORT, clear).await;
        cleared.map(drop)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_as_large_as_its_xml() {
        assert_eq!(bytes_on_the_wire("abc"), 3);
        assert_eq!(bytes_on_the_wire("a&b"), 7);
        assert_eq!(bytes_on_the_wire("<ü>"), 10);
    }

    #[test]
    fn what_xml_would_lose_or_change_is_refused() {
        for text in ["a", "a\nb\tc", "ü😀", "{\"a\": \"&<>\"}", ""] {
            assert!(carriable(text).is_ok(), "{text:?}");
        }
        for text in ["a\0b", "a\rb", "\u{1b}[0m", "a\u{ffff}", " a", "a\n"] {
            assert!(carriable(text).is_err(), "{text:?}");
        }
    }

    #[test]
    fn nothing_appears_sooner_than_told() {
        assert_eq!(whole_seconds(Duration::ZERO), Duration::ZERO);
        assert_eq!(whole_seconds(Duration::from_millis(1)).as_secs(), 1);
        assert_eq!(whole_seconds(Duration::from_millis(2_000)).as_secs(), 2);
    }
}
