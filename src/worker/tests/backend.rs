//! A storage in memory that does what a test tells it to: refuse sends, lose a lock.
//!
//! Workers use queues and blobs only; a call to any other port fails the test.

use std::collections::HashMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use tokio::time::{Instant, sleep};

use crate::storage::*;

/// As on Azure Storage.
const QUEUE_NAME_CHARS_MAX: usize = 63;

struct Stored {
    body: String,
    visible_at: Instant,
    dequeue_count: u32,
    receipt: usize,
}

#[derive(Default)]
pub(super) struct Backend {
    queues: Mutex<HashMap<String, Vec<Stored>>>,
    blobs: Mutex<HashMap<String, HashMap<String, Bytes>>>,
    receipts: AtomicUsize,
    refusals: AtomicUsize,
    receives: AtomicUsize,
    failing_receives: AtomicUsize,
    impatient: AtomicBool,
}

impl Backend {
    /// Sends to the completion queue fail this many times.
    pub(super) fn refuse_sends(&self, times: usize) {
        self.refusals.store(times, Ordering::SeqCst);
    }

    /// Receives fail this many times.
    pub(super) fn fail_receives(&self, times: usize) {
        self.failing_receives.store(times, Ordering::SeqCst);
    }

    /// From now on receives do not wait, as on Azure Storage.
    pub(super) fn never_wait(&self) {
        self.impatient.store(true, Ordering::SeqCst);
    }

    /// How often a receive was tried.
    pub(super) fn receives(&self) -> usize {
        self.receives.load(Ordering::SeqCst)
    }

    /// Makes every receipt for messages of `queue` stale, as if another worker had received them.
    pub(super) fn steal(&self, queue: &str) {
        for stored in self.queues.lock().unwrap().get_mut(queue).unwrap() {
            stored.receipt = self.receipt();
        }
    }

    pub(super) async fn push(&self, queue: &str, body: &str) {
        self.create_queue(queue).await.unwrap();
        let sent = self.send(queue, vec![OutgoingMessage::new(body)]).await;
        assert!(sent.iter().all(Result::is_ok));
    }

    /// Takes the oldest message, hidden or not.
    pub(super) fn pop(&self, queue: &str) -> Option<String> {
        let mut queues = self.queues.lock().unwrap();
        let stored = queues.get_mut(queue).filter(|stored| !stored.is_empty())?;
        Some(stored.remove(0).body)
    }

    pub(super) fn drop_queue(&self, queue: &str) {
        self.queues.lock().unwrap().remove(queue);
    }

    pub(super) fn blob(&self, container: &str, name: &str) -> Option<Bytes> {
        self.blobs
            .lock()
            .unwrap()
            .get(container)?
            .get(name)
            .cloned()
    }

    fn receipt(&self) -> usize {
        self.receipts.fetch_add(1, Ordering::SeqCst)
    }

    fn take_visible(&self, queue: &str, max: usize, visibility: Duration) -> Result<Vec<Message>> {
        let now = Instant::now();
        let mut queues = self.queues.lock().unwrap();
        let stored = queues.get_mut(queue).ok_or_else(|| missing(queue))?;
        let visible = stored.iter_mut().filter(|stored| stored.visible_at <= now);
        let taken = visible.take(max).map(|stored| {
            stored.visible_at = now + visibility;
            stored.dequeue_count += 1;
            stored.receipt = self.receipt();
            Message {
                body: stored.body.clone(),
                receipt: as_receipt(stored.receipt),
                dequeue_count: stored.dequeue_count,
            }
        });
        Ok(taken.collect())
    }
}

fn as_receipt(receipt: usize) -> Receipt {
    Receipt {
        message_id: "m".to_owned(),
        pop_receipt: receipt.to_string(),
    }
}

/// Whether a countdown was not at zero yet; takes one from it.
pub(super) fn take_one(countdown: &AtomicUsize) -> bool {
    let less = |left: usize| left.checked_sub(1);
    countdown
        .fetch_update(Ordering::SeqCst, Ordering::SeqCst, less)
        .is_ok()
}

pub(super) fn unavailable() -> Error {
    Error::Unavailable {
        message: "scripted".to_owned(),
        source: None,
    }
}

fn missing(what: &str) -> Error {
    Error::NotFound {
        what: what.to_owned(),
    }
}

fn lost(queue: &str) -> Error {
    Error::ReceiptLost {
        queue: queue.to_owned(),
    }
}

#[async_trait]
impl QueueStore for Backend {
    fn capabilities(&self) -> Capabilities {
        Capabilities {
            receive_max: 32,
            message_bytes_max: 64 * 1024,
            receive_waits: !self.impatient.load(Ordering::SeqCst),
        }
    }

    async fn create_queue(&self, queue: &str) -> Result<()> {
        self.queues
            .lock()
            .unwrap()
            .entry(queue.to_owned())
            .or_default();
        Ok(())
    }

    async fn send(&self, queue: &str, messages: Vec<OutgoingMessage>) -> Vec<Result<()>> {
        if queue == super::rig::COMPLETIONS && take_one(&self.refusals) {
            return vec![Err(unavailable())];
        }
        if queue.len() > QUEUE_NAME_CHARS_MAX {
            let message = "the queue's name is too long".to_owned();
            return vec![Err(Error::Invalid { message })];
        }
        let mut queues = self.queues.lock().unwrap();
        let Some(stored) = queues.get_mut(queue) else {
            return messages.iter().map(|_| Err(missing(queue))).collect();
        };
        let count = messages.len();
        stored.extend(messages.into_iter().map(|message| Stored {
            body: message.body,
            visible_at: Instant::now() + message.delay,
            dequeue_count: 0,
            receipt: self.receipt(),
        }));
        (0..count).map(|_| Ok(())).collect()
    }

    async fn receive(
        &self,
        queue: &str,
        max: usize,
        visibility: Duration,
        wait: Duration,
    ) -> Result<Vec<Message>> {
        self.receives.fetch_add(1, Ordering::SeqCst);
        if take_one(&self.failing_receives) {
            return Err(unavailable());
        }
        let waits = self.capabilities().receive_waits;
        let deadline = Instant::now() + if waits { wait } else { Duration::ZERO };
        loop {
            let taken = self.take_visible(queue, max, visibility)?;
            if !taken.is_empty() || Instant::now() >= deadline {
                return Ok(taken);
            }
            sleep(Duration::from_millis(5)).await;
        }
    }

    async fn extend(
        &self,
        queue: &str,
        receipt: &Receipt,
        body: &str,
        visibility: Duration,
    ) -> Result<Receipt> {
        let mut queues = self.queues.lock().unwrap();
        let stored = queues.get_mut(queue).ok_or_else(|| missing(queue))?;
        let held = stored
            .iter_mut()
            .find(|stored| as_receipt(stored.receipt) == *receipt);
        let held = held.ok_or_else(|| lost(queue))?;
        body.clone_into(&mut held.body);
        held.visible_at = Instant::now() + visibility;
        held.receipt = self.receipt();
        Ok(as_receipt(held.receipt))
    }

    async fn delete(&self, queue: &str, receipts: Vec<Receipt>) -> Vec<Result<()>> {
        let mut queues = self.queues.lock().unwrap();
        let stored = queues.get_mut(queue).unwrap();
        let mut delete = |receipt: Receipt| {
            let at = stored
                .iter()
                .position(|stored| as_receipt(stored.receipt) == receipt);
            at.map(|at| drop(stored.remove(at)))
                .ok_or_else(|| lost(queue))
        };
        receipts.into_iter().map(&mut delete).collect()
    }

    async fn length(&self, queue: &str) -> Result<u64> {
        let queues = self.queues.lock().unwrap();
        queues
            .get(queue)
            .map(|stored| stored.len() as u64)
            .ok_or_else(|| missing(queue))
    }

    async fn list_queues(&self, _: &str) -> Result<Vec<String>> {
        panic!("workers list no queues")
    }

    async fn peek(&self, _: &str, _: usize) -> Result<Vec<PeekedMessage>> {
        panic!("workers do not peek")
    }

    async fn clear(&self, _: &str) -> Result<()> {
        panic!("workers clear no queue")
    }
}

#[async_trait]
impl BlobStore for Backend {
    async fn create_container(&self, container: &str) -> Result<()> {
        self.blobs
            .lock()
            .unwrap()
            .entry(container.to_owned())
            .or_default();
        Ok(())
    }

    async fn put(&self, container: &str, name: &str, data: Bytes, _: Expect) -> Result<ETag> {
        let mut blobs = self.blobs.lock().unwrap();
        let blobs = blobs.get_mut(container).ok_or_else(|| missing(container))?;
        blobs.insert(name.to_owned(), data);
        Ok(ETag(self.receipt().to_string()))
    }

    async fn get(&self, _: &str, _: &str) -> Result<Blob> {
        panic!("workers read no blobs")
    }

    async fn get_if_changed(&self, _: &str, _: &str, _: &ETag) -> Result<IfChanged> {
        panic!("workers read no blobs")
    }

    async fn delete(&self, _: &str, _: &str) -> Result<()> {
        panic!("workers delete no blobs")
    }

    async fn list(&self, _: &str, _: &str, _: Option<&str>, _: usize) -> Result<BlobPage> {
        panic!("workers list no blobs")
    }
}

/// The ports that workers leave alone.
pub(super) struct Unused;

#[async_trait]
impl TableStore for Unused {
    async fn create_table(&self, _: &str) -> Result<()> {
        panic!("workers use no tables")
    }

    async fn insert(&self, _: &str, _: &EntityKey, _: Properties) -> Result<ETag> {
        panic!("workers use no tables")
    }

    async fn merge(&self, _: &str, _: &EntityKey, _: Properties, _: Option<&ETag>) -> Result<ETag> {
        panic!("workers use no tables")
    }

    async fn upsert(&self, _: &str, _: &EntityKey, _: Properties) -> Result<ETag> {
        panic!("workers use no tables")
    }

    async fn get(&self, _: &str, _: &EntityKey) -> Result<Entity> {
        panic!("workers use no tables")
    }

    async fn delete(&self, _: &str, _: &EntityKey) -> Result<()> {
        panic!("workers use no tables")
    }

    async fn query(
        &self,
        _: &str,
        _: &Filter,
        _: Option<&EntityKey>,
        _: usize,
    ) -> Result<EntityPage> {
        panic!("workers use no tables")
    }
}

#[async_trait]
impl LeaseStore for Unused {
    async fn acquire(&self, _: &str, _: &str, _: &LeaseId, _: Duration, _: Bytes) -> Result<()> {
        panic!("workers hold no leases")
    }

    async fn renew(&self, _: &str, _: &str, _: &LeaseId) -> Result<()> {
        panic!("workers hold no leases")
    }

    async fn release(&self, _: &str, _: &str, _: &LeaseId) -> Result<()> {
        panic!("workers hold no leases")
    }

    async fn break_lease(&self, _: &str, _: &str) -> Result<()> {
        panic!("workers hold no leases")
    }

    async fn holder(&self, _: &str, _: &str) -> Result<Holder> {
        panic!("workers hold no leases")
    }
}
