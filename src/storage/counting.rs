//! A decorator that counts what goes through: which operation, how it ended, how many messages.
//!
//! Callers: tests that bound the number of storage calls, and `bench`. Counting costs one short
//! lock per call and changes nothing else.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;

use super::{
    Blob, BlobPage, BlobStore, Capabilities, ETag, Entity, EntityKey, EntityPage, Error, Expect,
    Filter, Holder, IfChanged, LeaseId, LeaseStore, Message, OutgoingMessage, PeekedMessage,
    Properties, QueueStore, Receipt, Result, Storage, TableStore,
};

/// The outcome of a call that succeeded; the others are [kinds of errors](Error::kind).
pub const OK: &str = "ok";

/// How often something happened, at one moment.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Counts {
    calls: BTreeMap<(&'static str, &'static str), u64>,
    messages: BTreeMap<(&'static str, &'static str), u64>,
}

impl Counts {
    /// Calls of one operation (`blob_get`, `queue_receive` ...), however they ended. A batch is
    /// one call.
    #[must_use]
    pub fn calls(&self, operation: &str) -> u64 {
        sum(&self.calls, operation)
    }

    /// Calls of one operation that ended so: [`OK`] or a [kind of error](Error::kind). A batch
    /// ends as the first of its messages that failed.
    #[must_use]
    pub fn outcomes(&self, operation: &str, outcome: &str) -> u64 {
        find(&self.calls, operation, outcome)
    }

    /// Messages that were part of calls of one queue operation, however they ended.
    #[must_use]
    pub fn messages(&self, operation: &str) -> u64 {
        sum(&self.messages, operation)
    }

    /// Messages of one queue operation that ended so.
    #[must_use]
    pub fn message_outcomes(&self, operation: &str, outcome: &str) -> u64 {
        find(&self.messages, operation, outcome)
    }

    /// All calls together.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.calls.values().sum()
    }

    /// Every operation and outcome with its number of calls, sorted.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, &'static str, u64)> {
        self.calls
            .iter()
            .map(|(&(operation, outcome), &count)| (operation, outcome, count))
    }

    /// What happened between an earlier moment and this one.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        Self {
            calls: subtract(&self.calls, &earlier.calls),
            messages: subtract(&self.messages, &earlier.messages),
        }
    }
}

type Numbers = BTreeMap<(&'static str, &'static str), u64>;

fn sum(numbers: &Numbers, operation: &str) -> u64 {
    let ours = numbers.iter().filter(|((name, _), _)| *name == operation);
    ours.map(|(_, count)| count).sum()
}

fn find(numbers: &Numbers, operation: &str, outcome: &str) -> u64 {
    // The keys are static texts, so a lookup by shorter-lived ones has to compare.
    let mut ours = numbers.iter();
    ours.find(|(key, _)| **key == (operation, outcome))
        .map_or(0, |(_, count)| *count)
}

fn subtract(numbers: &Numbers, earlier: &Numbers) -> Numbers {
    numbers
        .iter()
        .map(|(key, count)| (*key, count - earlier.get(key).copied().unwrap_or(0)))
        .filter(|(_, count)| *count > 0)
        .collect()
}

/// The decorator: hand [`storage`](Self::storage) to what is observed, and keep this to look.
#[derive(Debug)]
pub struct Counting {
    inner: Storage,
    counts: Mutex<Counts>,
}

impl Counting {
    /// Counts what goes to `inner` from now on.
    #[must_use]
    pub fn new(inner: Storage) -> Arc<Self> {
        Arc::new(Self {
            inner,
            counts: Mutex::default(),
        })
    }

    /// The storage whose calls are counted.
    #[must_use]
    pub fn storage(self: &Arc<Self>) -> Storage {
        Storage::from_backend(self.clone())
    }

    /// The counts of this moment.
    #[must_use]
    pub fn counts(&self) -> Counts {
        self.lock().clone()
    }

    fn lock(&self) -> MutexGuard<'_, Counts> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn call<T>(&self, operation: &'static str, result: Result<T>) -> Result<T> {
        *self
            .lock()
            .calls
            .entry((operation, outcome(&result)))
            .or_default() += 1;
        result
    }

    fn batch(&self, operation: &'static str, answers: Vec<Result<()>>) -> Vec<Result<()>> {
        let mut counts = self.lock();
        for answer in &answers {
            let key = (operation, outcome(answer));
            *counts.messages.entry(key).or_default() += 1;
        }
        let failed = answers.iter().find(|answer| answer.is_err());
        let key = (operation, failed.map_or(OK, outcome));
        *counts.calls.entry(key).or_default() += 1;
        drop(counts);
        answers
    }
}

fn outcome<T>(result: &Result<T>) -> &'static str {
    result.as_ref().map_or_else(Error::kind, |_| OK)
}

#[async_trait]
impl BlobStore for Counting {
    async fn create_container(&self, container: &str) -> Result<()> {
        let result = self.inner.blobs.create_container(container).await;
        self.call("blob_create_container", result)
    }

    async fn get(&self, container: &str, name: &str) -> Result<Blob> {
        self.call("blob_get", self.inner.blobs.get(container, name).await)
    }

    async fn get_if_changed(&self, container: &str, name: &str, etag: &ETag) -> Result<IfChanged> {
        let blobs = &self.inner.blobs;
        let result = blobs.get_if_changed(container, name, etag).await;
        self.call("blob_get_if_changed", result)
    }

    async fn put(&self, container: &str, name: &str, data: Bytes, expect: Expect) -> Result<ETag> {
        let result = self.inner.blobs.put(container, name, data, expect).await;
        self.call("blob_put", result)
    }

    async fn delete(&self, container: &str, name: &str) -> Result<()> {
        let result = self.inner.blobs.delete(container, name).await;
        self.call("blob_delete", result)
    }

    async fn list(
        &self,
        container: &str,
        prefix: &str,
        page: Option<&str>,
        limit: usize,
    ) -> Result<BlobPage> {
        let result = self.inner.blobs.list(container, prefix, page, limit).await;
        self.call("blob_list", result)
    }
}

#[async_trait]
impl QueueStore for Counting {
    fn capabilities(&self) -> Capabilities {
        self.inner.queues.capabilities()
    }

    async fn create_queue(&self, queue: &str) -> Result<()> {
        let result = self.inner.queues.create_queue(queue).await;
        self.call("queue_create", result)
    }

    async fn list_queues(&self, prefix: &str) -> Result<Vec<String>> {
        let result = self.inner.queues.list_queues(prefix).await;
        self.call("queue_list", result)
    }

    async fn send(&self, queue: &str, messages: Vec<OutgoingMessage>) -> Vec<Result<()>> {
        let answers = self.inner.queues.send(queue, messages).await;
        self.batch("queue_send", answers)
    }

    async fn receive(
        &self,
        queue: &str,
        max: usize,
        visibility: Duration,
        wait: Duration,
    ) -> Result<Vec<Message>> {
        let queues = &self.inner.queues;
        let result = queues.receive(queue, max, visibility, wait).await;
        if let Ok(messages) = &result {
            let mut counts = self.lock();
            *counts.messages.entry(("queue_receive", OK)).or_default() += messages.len() as u64;
        }
        self.call("queue_receive", result)
    }

    async fn extend(
        &self,
        queue: &str,
        receipt: &Receipt,
        body: &str,
        visibility: Duration,
    ) -> Result<Receipt> {
        let queues = &self.inner.queues;
        let result = queues.extend(queue, receipt, body, visibility).await;
        self.call("queue_extend", result)
    }

    async fn delete(&self, queue: &str, receipts: Vec<Receipt>) -> Vec<Result<()>> {
        let answers = self.inner.queues.delete(queue, receipts).await;
        self.batch("queue_delete", answers)
    }

    async fn peek(&self, queue: &str, max: usize) -> Result<Vec<PeekedMessage>> {
        let result = self.inner.queues.peek(queue, max).await;
        self.call("queue_peek", result)
    }

    async fn length(&self, queue: &str) -> Result<u64> {
        let result = self.inner.queues.length(queue).await;
        self.call("queue_length", result)
    }

    async fn clear(&self, queue: &str) -> Result<()> {
        let result = self.inner.queues.clear(queue).await;
        self.call("queue_clear", result)
    }
}

#[async_trait]
impl TableStore for Counting {
    async fn create_table(&self, table: &str) -> Result<()> {
        let result = self.inner.tables.create_table(table).await;
        self.call("table_create", result)
    }

    async fn insert(&self, table: &str, key: &EntityKey, properties: Properties) -> Result<ETag> {
        let result = self.inner.tables.insert(table, key, properties).await;
        self.call("table_insert", result)
    }

    async fn merge(
        &self,
        table: &str,
        key: &EntityKey,
        properties: Properties,
        etag: Option<&ETag>,
    ) -> Result<ETag> {
        let tables = &self.inner.tables;
        let result = tables.merge(table, key, properties, etag).await;
        self.call("table_merge", result)
    }

    async fn upsert(&self, table: &str, key: &EntityKey, properties: Properties) -> Result<ETag> {
        let result = self.inner.tables.upsert(table, key, properties).await;
        self.call("table_upsert", result)
    }

    async fn get(&self, table: &str, key: &EntityKey) -> Result<Entity> {
        self.call("table_get", self.inner.tables.get(table, key).await)
    }

    async fn delete(&self, table: &str, key: &EntityKey) -> Result<()> {
        self.call("table_delete", self.inner.tables.delete(table, key).await)
    }

    async fn query(
        &self,
        table: &str,
        filter: &Filter,
        after: Option<&EntityKey>,
        limit: usize,
    ) -> Result<EntityPage> {
        let tables = &self.inner.tables;
        let result = tables.query(table, filter, after, limit).await;
        self.call("table_query", result)
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
        let leases = &self.inner.leases;
        let result = leases.acquire(container, name, id, duration, content).await;
        self.call("lease_acquire", result)
    }

    async fn renew(&self, container: &str, name: &str, id: &LeaseId) -> Result<()> {
        let result = self.inner.leases.renew(container, name, id).await;
        self.call("lease_renew", result)
    }

    async fn release(&self, container: &str, name: &str, id: &LeaseId) -> Result<()> {
        let result = self.inner.leases.release(container, name, id).await;
        self.call("lease_release", result)
    }

    async fn break_lease(&self, container: &str, name: &str) -> Result<()> {
        let result = self.inner.leases.break_lease(container, name).await;
        self.call("lease_break", result)
    }

    async fn holder(&self, container: &str, name: &str) -> Result<Holder> {
        let result = self.inner.leases.holder(container, name).await;
        self.call("lease_holder", result)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::{Clock, Timestamp};
    use crate::storage::conformance::Subject;
    use crate::storage::memory::MemoryStorage;

    fn counting() -> Arc<Counting> {
        let clock = Clock::simulated(Timestamp::from_micros(0), 1);
        Counting::new(Storage::from_backend(MemoryStorage::new(clock)))
    }

    async fn subject() -> Subject {
        tokio::time::pause();
        Subject::new(counting().storage())
    }

    mod conformance {
        crate::storage_conformance!(super::subject);
    }

    #[tokio::test]
    async fn calls_are_counted_by_operation_and_outcome() {
        let counting = counting();
        let storage = counting.storage();
        let blobs = &storage.blobs;
        assert!(blobs.get("missing", "b").await.is_err());
        blobs.create_container("blobs").await.unwrap();
        let before = counting.counts();
        for _ in 0..2 {
            let put = blobs.put("blobs", "b", Bytes::new(), Expect::Anything);
            put.await.unwrap();
        }
        let put = blobs.put("blobs", "b", Bytes::new(), Expect::Absent);
        put.await.unwrap_err();
        let counts = counting.counts();
        assert_eq!(counts.calls("blob_put"), 3);
        assert_eq!(counts.outcomes("blob_put", OK), 2);
        assert_eq!(counts.outcomes("blob_put", "already_exists"), 1);
        assert_eq!(counts.outcomes("blob_get", "not_found"), 1);
        assert_eq!(counts.total(), 5);
        let since: Vec<_> = counts.since(&before).iter().collect();
        let expected = [("blob_put", "already_exists", 1), ("blob_put", OK, 2)];
        assert_eq!(since, expected);
    }

    #[tokio::test]
    async fn messages_are_counted_one_by_one() {
        let counting = counting();
        let queues = counting.storage().queues;
        queues.create_queue("q").await.unwrap();
        let huge = "x".repeat(queues.capabilities().message_bytes_max + 1);
        let messages = ["a", "b", &huge].map(OutgoingMessage::new);
        queues.send("q", messages.to_vec()).await;
        let hide = Duration::from_secs(60);
        let received = queues.receive("q", 10, hide, Duration::ZERO).await;
        let receipts = received.unwrap().into_iter().map(|m| m.receipt);
        queues.delete("q", receipts.collect()).await;
        let counts = counting.counts();
        assert_eq!(counts.calls("queue_send"), 1);
        assert_eq!(counts.outcomes("queue_send", "too_large"), 1);
        assert_eq!(counts.messages("queue_send"), 3);
        assert_eq!(counts.message_outcomes("queue_send", OK), 2);
        assert_eq!(counts.messages("queue_receive"), 2);
        assert_eq!(counts.message_outcomes("queue_delete", OK), 2);
    }
}
