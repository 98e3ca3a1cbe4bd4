//! A decorator that tells an observer of every call: which operation, how it ended, how long it took.
//!
//! Users: [`counting`](super::counting), and the metrics of a server.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use tokio::time::Instant;

use super::{
    Blob, BlobPage, BlobStore, Capabilities, ETag, Entity, EntityKey, EntityPage, Error, Expect,
    Filter, Holder, IfChanged, LeaseId, LeaseStore, Message, OutgoingMessage, PeekedMessage,
    Properties, QueueStore, Receipt, Result, Storage, TableStore,
};

/// The outcome of a call that succeeded; the others are [kinds of errors](Error::kind).
pub const OK: &str = "ok";

/// A call that ended.
#[derive(Debug)]
pub struct Call<'a> {
    /// Its operation: `blob_get`, `queue_receive` ... A batch is one call.
    pub operation: &'static str,
    /// How it ended: [`OK`] or a [kind of error](Error::kind). A batch ends as the first of its
    /// messages that failed.
    pub outcome: &'static str,
    /// How long it took.
    pub took: Duration,
    /// How each message of a batch ended.
    pub messages: &'a [&'static str],
}

/// Is told of every call. Must not take long.
pub trait Observer: Send + Sync + std::fmt::Debug + 'static {
    /// A call ended.
    fn called(&self, call: &Call<'_>);
}

/// The decorator.
#[derive(Debug)]
pub struct Observed {
    inner: Storage,
    observer: Arc<dyn Observer>,
}

impl Observed {
    /// The storage `inner`, whose calls the observer is told of.
    #[must_use]
    pub fn storage(inner: Storage, observer: Arc<dyn Observer>) -> Storage {
        Storage::from_backend(Arc::new(Self { inner, observer }))
    }

    async fn call<T>(
        &self,
        operation: &'static str,
        call: impl Future<Output = Result<T>>,
    ) -> Result<T> {
        let started = Instant::now();
        let result = call.await;
        self.observer.called(&Call {
            operation,
            outcome: outcome(&result),
            took: started.elapsed(),
            messages: &[],
        });
        result
    }

    async fn batch(
        &self,
        operation: &'static str,
        call: impl Future<Output = Vec<Result<()>>>,
    ) -> Vec<Result<()>> {
        let started = Instant::now();
        let answers = call.await;
        let messages: Vec<&'static str> = answers.iter().map(outcome).collect();
        let failed = messages.iter().find(|outcome| **outcome != OK);
        self.observer.called(&Call {
            operation,
            outcome: failed.copied().unwrap_or(OK),
            took: started.elapsed(),
            messages: &messages,
        });
        answers
    }
}

fn outcome<T>(result: &Result<T>) -> &'static str {
    result.as_ref().map_or_else(Error::kind, |_| OK)
}

#[async_trait]
impl BlobStore for Observed {
    async fn create_container(&self, container: &str) -> Result<()> {
        self.call(
            "blob_create_container",
            self.inner.blobs.create_container(container),
        )
        .await
    }

    async fn get(&self, container: &str, name: &str) -> Result<Blob> {
        self.call("blob_get", self.inner.blobs.get(container, name))
            .await
    }

    async fn get_if_changed(&self, container: &str, name: &str, etag: &ETag) -> Result<IfChanged> {
        let call = self.inner.blobs.get_if_changed(container, name, etag);
        self.call("blob_get_if_changed", call).await
    }

    async fn put(&self, container: &str, name: &str, data: Bytes, expect: Expect) -> Result<ETag> {
        self.call(
            "blob_put",
            self.inner.blobs.put(container, name, data, expect),
        )
        .await
    }

    async fn delete(&self, container: &str, name: &str) -> Result<()> {
        self.call("blob_delete", self.inner.blobs.delete(container, name))
            .await
    }

    async fn list(
        &self,
        container: &str,
        prefix: &str,
        page: Option<&str>,
        limit: usize,
    ) -> Result<BlobPage> {
        self.call(
            "blob_list",
            self.inner.blobs.list(container, prefix, page, limit),
        )
        .await
    }
}

#[async_trait]
impl QueueStore for Observed {
    fn capabilities(&self) -> Capabilities {
        self.inner.queues.capabilities()
    }

    async fn create_queue(&self, queue: &str) -> Result<()> {
        self.call("queue_create", self.inner.queues.create_queue(queue))
            .await
    }

    async fn list_queues(&self, prefix: &str) -> Result<Vec<String>> {
        self.call("queue_list", self.inner.queues.list_queues(prefix))
            .await
    }

    async fn send(&self, queue: &str, messages: Vec<OutgoingMessage>) -> Vec<Result<()>> {
        self.batch("queue_send", self.inner.queues.send(queue, messages))
            .await
    }

    async fn receive(
        &self,
        queue: &str,
        max: usize,
        visibility: Duration,
        wait: Duration,
    ) -> Result<Vec<Message>> {
        let started = Instant::now();
        let queues = &self.inner.queues;
        let result = queues.receive(queue, max, visibility, wait).await;
        let received = result.as_ref().map_or(0, Vec::len);
        self.observer.called(&Call {
            operation: "queue_receive",
            outcome: outcome(&result),
            took: started.elapsed(),
            messages: &vec![OK; received],
        });
        result
    }

    async fn extend(
        &self,
        queue: &str,
        receipt: &Receipt,
        body: &str,
        visibility: Duration,
    ) -> Result<Receipt> {
        let call = self.inner.queues.extend(queue, receipt, body, visibility);
        self.call("queue_extend", call).await
    }

    async fn delete(&self, queue: &str, receipts: Vec<Receipt>) -> Vec<Result<()>> {
        self.batch("queue_delete", self.inner.queues.delete(queue, receipts))
            .await
    }

    async fn peek(&self, queue: &str, max: usize) -> Result<Vec<PeekedMessage>> {
        self.call("queue_peek", self.inner.queues.peek(queue, max))
            .await
    }

    async fn length(&self, queue: &str) -> Result<u64> {
        self.call("queue_length", self.inner.queues.length(queue))
            .await
    }

    async fn clear(&self, queue: &str) -> Result<()> {
        self.call("queue_clear", self.inner.queues.clear(queue))
            .await
    }
}

#[async_trait]
impl TableStore for Observed {
    async fn create_table(&self, table: &str) -> Result<()> {
        self.call("table_create", self.inner.tables.create_table(table))
            .await
    }

    async fn insert(&self, table: &str, key: &EntityKey, properties: Properties) -> Result<ETag> {
        self.call(
            "table_insert",
            self.inner.tables.insert(table, key, properties),
        )
        .await
    }

    async fn merge(
        &self,
        table: &str,
        key: &EntityKey,
        properties: Properties,
        etag: Option<&ETag>,
    ) -> Result<ETag> {
        let call = self.inner.tables.merge(table, key, properties, etag);
        self.call("table_merge", call).await
    }

    async fn upsert(&self, table: &str, key: &EntityKey, properties: Properties) -> Result<ETag> {
        self.call(
            "table_upsert",
            self.inner.tables.upsert(table, key, properties),
        )
        .await
    }

    async fn get(&self, table: &str, key: &EntityKey) -> Result<Entity> {
        self.call("table_get", self.inner.tables.get(table, key))
            .await
    }

    async fn delete(&self, table: &str, key: &EntityKey) -> Result<()> {
        self.call("table_delete", self.inner.tables.delete(table, key))
            .await
    }

    async fn query(
        &self,
        table: &str,
        filter: &Filter,
        after: Option<&EntityKey>,
        limit: usize,
    ) -> Result<EntityPage> {
        let call = self.inner.tables.query(table, filter, after, limit);
        self.call("table_query", call).await
    }
}

#[async_trait]
impl LeaseStore for Observed {
    async fn acquire(
        &self,
        container: &str,
        name: &str,
        id: &LeaseId,
        duration: Duration,
        content: Bytes,
    ) -> Result<()> {
        let call = self
            .inner
            .leases
            .acquire(container, name, id, duration, content);
        self.call("lease_acquire", call).await
    }

    async fn renew(&self, container: &str, name: &str, id: &LeaseId) -> Result<()> {
        self.call("lease_renew", self.inner.leases.renew(container, name, id))
            .await
    }

    async fn release(&self, container: &str, name: &str, id: &LeaseId) -> Result<()> {
        self.call(
            "lease_release",
            self.inner.leases.release(container, name, id),
        )
        .await
    }

    async fn break_lease(&self, container: &str, name: &str) -> Result<()> {
        self.call(
            "lease_break",
            self.inner.leases.break_lease(container, name),
        )
        .await
    }

    async fn holder(&self, container: &str, name: &str) -> Result<Holder> {
        self.call("lease_holder", self.inner.leases.holder(container, name))
            .await
    }
}
