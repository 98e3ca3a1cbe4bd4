//! A decorator that counts what goes through: which operation, how it ended, how many messages.
//!
//! Callers: tests that bound the number of storage calls, and `bench`. Counting costs one short
//! lock per call and changes nothing else.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::Storage;
pub use super::observed::OK;
use super::observed::{Call, Observed, Observer};

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

    /// Calls of one operation that ended so: [`OK`] or a [kind of error](super::Error::kind). A batch
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
    storage: Storage,
    counter: Arc<Counter>,
}

#[derive(Debug, Default)]
struct Counter(Mutex<Counts>);

impl Counting {
    /// Counts what goes to `inner` from now on.
    #[must_use]
    pub fn new(inner: Storage) -> Arc<Self> {
        let counter = Arc::new(Counter::default());
        Arc::new(Self {
            storage: Observed::storage(inner, counter.clone()),
            counter,
        })
    }

    /// The storage whose calls are counted.
    #[must_use]
    pub fn storage(&self) -> Storage {
        self.storage.clone()
    }

    /// The counts of this moment.
    #[must_use]
    pub fn counts(&self) -> Counts {
        self.counter.lock().clone()
    }
}

impl Counter {
    fn lock(&self) -> MutexGuard<'_, Counts> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Observer for Counter {
    fn called(&self, call: &Call<'_>) {
        let mut counts = self.lock();
        *counts
            .calls
            .entry((call.operation, call.outcome))
            .or_default() += 1;
        for outcome in call.messages {
            *counts
                .messages
                .entry((call.operation, *outcome))
                .or_default() += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use bytes::Bytes;

    use super::*;
    use crate::clock::{Clock, Timestamp};
    use crate::storage::conformance::Subject;
    use crate::storage::memory::MemoryStorage;
    use crate::storage::{Expect, OutgoingMessage};

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
