//! The conformance cases on the memory, and what only the memory promises.

use std::time::{Duration, Instant};

use super::MemoryStorage;
use crate::clock::{Clock, Timestamp};
use crate::storage::conformance::Subject;
use crate::storage::{OutgoingMessage, QueueStore, Storage};

fn storage() -> std::sync::Arc<MemoryStorage> {
    MemoryStorage::new(Clock::simulated(Timestamp::from_micros(0), 1))
}

/// A storage whose time passes only when everything waits for it.
async fn subject() -> Subject {
    tokio::time::pause();
    Subject::new(Storage::from_backend(storage()))
}

mod conformance {
    crate::storage_conformance!(super::subject);
}

#[tokio::test]
async fn same_calls_give_the_same_receipts() {
    let run = async || {
        let storage = storage();
        storage.create_queue("q").await.unwrap();
        storage.send("q", vec![OutgoingMessage::new("a")]).await;
        let wait = Duration::ZERO;
        let received = storage.receive("q", 1, Duration::from_secs(1), wait).await;
        received.unwrap().remove(0).receipt
    };
    assert_eq!(run().await, run().await);
}

/// Goal: no step looks through the whole queue. Method: with 100,000 messages, 100,000 such looks
/// would take minutes; the bound is generous for slow machines.
#[tokio::test]
async fn a_long_queue_stays_fast() {
    let storage = storage();
    storage.create_queue("q").await.unwrap();
    let started = Instant::now();
    let messages = (0..100_000).map(|i| OutgoingMessage::new(i.to_string()));
    storage.send("q", messages.collect()).await;
    for _ in 0..100_000 {
        let hide = Duration::from_secs(60);
        let received = storage.receive("q", 1, hide, Duration::ZERO).await.unwrap();
        let receipt = received[0].receipt.clone();
        storage.delete("q", vec![receipt]).await.remove(0).unwrap();
    }
    assert_eq!(storage.length("q").await.unwrap(), 0);
    assert!(started.elapsed() < Duration::from_secs(30));
}
