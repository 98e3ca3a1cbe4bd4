//! A decorator that counts operations, by kind and by how they ended.
//!
//! Benchmarks divide its numbers by completions; tests assert that a path costs no more than it
//! should. Counting changes nothing else, which the conformance suite checks.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;

use super::{
    Blob, BlobPage, BlobStore, Capabilities, ETag, Entity, EntityKey, EntityPage, Expect, Filter,
    Holder, IfChanged, LeaseId, LeaseStore, Message, OutgoingMessage, PeekedMessage, Properties,
    QueueStore, Receipt, Result, Storage, TableStore,
};

/// How often one operation was called, and how it ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Count {
    /// Calls that succeeded. For batches, one for each message.
    pub ok: u64,
    /// Calls that failed. For batches, one for each message.
    pub failed: u64,
}

/// Counts by operation, such as `blob_get` or `queue_send`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Counts(pub BTreeMap<&'static str, Count>);

impl Counts {
    /// Calls of one operation, however they ended.
    #[must_use]
    pub fn of(&self, operation: &str) -> u64 {
        self.0
            .get(operation)
            .map_or(0, |count| count.ok + count.failed)
    }

    /// Calls of all operations, however they ended.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.0.values().map(|count| count.ok + count.failed).sum()
    }
}

/// A storage whose operations are counted.
#[derive(Debug)]
pub struct Counting {
    inner: Storage,
    counts: Mutex<Counts>,
}

impl Counting {
    /// Counts the operations on `inner`.
    #[must_use]
    pub fn new(inner: Storage) -> Arc<Self> {
        Arc::new(Self {
            inner,
            counts: Mutex::default(),
        })
    }

    /// The counts so far.
    #[must_use]
    pub fn counts(&self) -> Counts {
        self.counts
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    fn count<T>(&self, operation: &'static str, result: Result<T>) -> Result<T> {
        self.add(operation, std::iter::once(result.is_ok()));
        result
    }

    fn count_each<T>(&self, operation: &'static str, results: Vec<Result<T>>) -> Vec<Result<T>> {
        self.add(operation, results.iter().map(Result::is_ok));
        results
    }

    fn add(&self, operation: &'static str, outcomes: impl Iterator<Item = bool>) {
        let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        let count = counts.0.entry(operation).or_default();
        for ok in outcomes {
            count.ok += u64::from(ok);
            count.failed += u64::from(!ok);
        }
    }
}

#[async_trait]
impl BlobStore for Counting {
    async fn create_container(&self, container: &str) -> Result<()> {
        let result = self.inner.blobs.create_container(container).await;
        self.count("blob_create_container", result)
    }

    async fn get(&self, container: &str, name: &str) -> Result<Blob> {
        let result = self.inner.blobs.get(container, name).await;
        self.count("blob_get", result)
    }

    async fn get_if_changed(&self, container: &str, name: &str, etag: &ETag) -> Result<IfChanged> {
        let result = self.inner.blobs.get_if_changed(container, name, etag).await;
        self.count("blob_get_if_changed", result)
    }

    async fn put(&self, container: &str, name: &str, data: Bytes, expect: Expect) -> Result<ETag> {
        let result = self.inner.blobs.put(container, name, data, expect).await;
        self.count("blob_put", result)
    }

    async fn delete(&self, container: &str, name: &str) -> Result<()> {
        let result = self.inner.blobs.delete(container, name).await;
        self.count("blob_delete", result)
    }

    async fn list(
        &self,
        container: &str,
        prefix: &str,
        page: Option<&str>,
        limit: usize,
    ) -> Result<BlobPage> {
        let result = self.inner.blobs.list(container, prefix, page, limit).await;
        self.count("blob_list", result)
    }
}

#[async_trait]
impl QueueStore for Counting {
    fn capabilities(&self) -> Capabilities {
        self.inner.queues.capabilities()
    }

    async fn create_queue(&self, queue: &str) -> Result<()> {
        let result = self.inner.queues.create_queue(queue).await;
        self.count("queue_create", result)
    }

    async fn list_queues(&self, prefix: &str) -> Result<Vec<String>> {
        let result = self.inner.queues.list_queues(prefix).await;
        self.count("queue_list", result)
    }

    async fn send(&self, queue: &str, messages: Vec<OutgoingMessage>) -> Vec<Result<()>> {
        let results = self.inner.queues.send(queue, messages).await;
        self.count_each("queue_send", results)
    }

    async fn receive(
        &self,
        queue: &str,
        max: usize,
        visibility: Duration,
        wait: Duration,
    ) -> Result<Vec<Message>> {
        let result = self
            .inner
            .queues
            .receive(queue, max, visibility, wait)
            .await;
        self.count("queue_receive", result)
    }

    async fn extend(
        &self,
        queue: &str,
        receipt: &Receipt,
        body: &str,
        visibility: Duration,
    ) -> Result<Receipt> {
        let result = self
            .inner
            .queues
            .extend(queue, receipt, body, visibility)
            .await;
        self.count("queue_extend", result)
    }

    async fn delete(&self, queue: &str, receipts: Vec<Receipt>) -> Vec<Result<()>> {
        let results = self.inner.queues.delete(queue, receipts).await;
        self.count_each("queue_delete", results)
    }

    async fn peek(&self, queue: &str, max: usize) -> Result<Vec<PeekedMessage>> {
        let result = self.inner.queues.peek(queue, max).await;
        self.count("queue_peek", result)
    }

    async fn length(&self, queue: &str) -> Result<u64> {
        let result = self.inner.queues.length(queue).await;
        self.count("queue_length", result)
    }

    async fn clear(&self, queue: &str) -> Result<()> {
        let result = self.inner.queues.clear(queue).await;
        self.count("queue_clear", result)
    }
}

#[async_trait]
impl TableStore for Counting {
    async fn create_table(&self, table: &str) -> Result<()> {
        let result = self.inner.tables.create_table(table).await;
        self.count("table_create", result)
    }

    async fn insert(&self, table: &str, key: &EntityKey, properties: Properties) -> Result<ETag> {
        let result = self.inner.tables.insert(table, key, properties).await;
        self.count("table_insert", result)
    }

    async fn merge(
        &self,
        table: &str,
        key: &EntityKey,
        properties: Properties,
        etag: Option<&ETag>,
    ) -> Result<ETag> {
        let result = self.inner.tables.merge(table, key, properties, etag).await;
        self.count("table_merge", result)
    }

    async fn upsert(&self, table: &str, key: &EntityKey, properties: Properties) -> Result<ETag> {
        let result = self.inner.tables.upsert(table, key, properties).await;
        self.count("table_upsert", result)
    }

    async fn get(&self, table: &str, key: &EntityKey) -> Result<Entity> {
        let result = self.inner.tables.get(table, key).await;
        self.count("table_get", result)
    }

    async fn delete(&self, table: &str, key: &EntityKey) -> Result<()> {
        let result = self.inner.tables.delete(table, key).await;
        self.count("table_delete", result)
    }

    async fn query(
        &self,
        table: &str,
        filter: &Filter,
        after: Option<&EntityKey>,
        limit: usize,
    ) -> Result<EntityPage> {
        let result = self.inner.tables.query(table, filter, after, limit).await;
        self.count("table_query", result)
    }
}

#[async_trait]
impl LeaseStore for Counting {
    async fn acquire(
        &self,
        container: &str,
        name: &str,
        id: &LeaseId,
        duration: Duration,
        content: Bytes,
    ) -> Result<()> {
        let result = self
            .inner
            .leases
            .acquire(container, name, id, duration, content)
            .await;
        self.count("lease_acquire", result)
    }

    async fn renew(&self, container: &str, name: &str, id: &LeaseId) -> Result<()> {
        let result = self.inner.leases.renew(container, name, id).await;
        self.count("lease_renew", result)
    }

    async fn release(&self, container: &str, name: &str, id: &LeaseId) -> Result<()> {
        let result = self.inner.leases.release(container, name, id).await;
        self.count("lease_release", result)
    }

    async fn break_lease(&self, container: &str, name: &str) -> Result<()> {
        let result = self.inner.leases.break_lease(container, name).await;
        self.count("lease_break", result)
    }

    async fn holder(&self, container: &str, name: &str) -> Result<Holder> {
        let result = self.inner.leases.holder(container, name).await;
        self.count("lease_holder", result)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::clock::{Clock, Timestamp};
    use crate::storage::conformance::Rig;
    use crate::storage::memory::MemoryStorage;

    fn counting(clock: &Clock) -> Arc<Counting> {
        Counting::new(Storage::from_backend(MemoryStorage::new(clock.clone())))
    }

    async fn rig() -> Rig {
        let clock = Clock::simulated(Timestamp::from_micros(1_767_225_600_000_000), 1);
        Rig {
            storage: Storage::from_backend(counting(&clock)),
            clock,
            lease_duration: Duration::from_secs(15),
            visibility: Duration::from_secs(30),
        }
    }

    crate::conformance_tests!(tokio::test(start_paused = true), super::rig);

    #[tokio::test(start_paused = true)]
    async fn calls_are_counted_by_kind_and_messages_one_by_one() {
        let counting = counting(&Clock::system());
        let storage = Storage::from_backend(counting.clone());
        storage.queues.create_queue("q").await.unwrap();
        let three = (0..3).map(|_| OutgoingMessage::new("x")).collect();
        storage.queues.send("q", three).await;
        storage.blobs.get("c", "missing").await.unwrap_err();
        let counts = counting.counts();
        assert_eq!(counts.0["queue_send"], Count { ok: 3, failed: 0 });
        assert_eq!(counts.0["blob_get"], Count { ok: 0, failed: 1 });
        assert_eq!((counts.of("queue_send"), counts.total()), (3, 5));
    }
}
