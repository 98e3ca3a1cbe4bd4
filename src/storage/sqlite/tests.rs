//! The conformance cases on a directory, and what only a directory promises.

use std::path::Path;
use std::time::Duration;

use rusqlite::Connection;
use tempfile::TempDir;

use super::{FILE, SqliteStorage};
use crate::clock::{Clock, Timestamp};
use crate::storage::conformance::Subject;
use crate::storage::memory::MemoryStorage;
use crate::storage::{
    EntityKey, Error, Expect, Filter, Operator, OutgoingMessage, Result, Storage, Value,
};

/// A storage in a fresh directory. Its time passes as it does, and `elapse` makes it jump.
async fn subject() -> Subject {
    let dir = TempDir::new().unwrap();
    let clock = Clock::simulated(Timestamp::from_micros(1_767_000_000_000_000), 1);
    let storage = SqliteStorage::open(dir.path(), clock).unwrap();
    Subject::new(Storage::from_backend(storage))
        .with_elapse(|duration| Box::pin(jump(duration)))
        .keeping(dir)
}

/// Moves tokio's clock, which otherwise has to run: while it is paused, every wait for the
/// database's threads would count as idleness and fire all timers.
async fn jump(duration: Duration) {
    tokio::time::pause();
    tokio::time::advance(duration).await;
    tokio::time::resume();
}

mod conformance {
    crate::storage_conformance!(super::subject);
}

fn open(dir: &Path) -> Result<Storage> {
    SqliteStorage::open(dir, Clock::system()).map(Storage::from_backend)
}

fn messages(bodies: &[&str]) -> Vec<OutgoingMessage> {
    bodies.iter().map(|b| OutgoingMessage::new(*b)).collect()
}

const HIDE: Duration = Duration::from_secs(60);

#[tokio::test]
async fn everything_is_there_after_reopening() {
    let dir = TempDir::new().unwrap();
    let nested = dir.path().join("created/when/missing");
    {
        let storage = open(&nested).unwrap();
        storage.blobs.create_container("blobs").await.unwrap();
        storage.queues.create_queue("q").await.unwrap();
        let put = storage
            .blobs
            .put("blobs", "b", "bytes".into(), Expect::Absent);
        put.await.unwrap();
        for answer in storage.queues.send("q", messages(&["a", "b"])).await {
            answer.unwrap();
        }
    }
    let storage = open(&nested).unwrap();
    assert_eq!(storage.blobs.get("blobs", "b").await.unwrap().data, "bytes");
    let received = storage.queues.receive("q", 10, HIDE, Duration::ZERO).await;
    assert_eq!(received.unwrap().len(), 2);
}

#[tokio::test]
async fn two_handles_on_one_directory_see_each_other() {
    let dir = TempDir::new().unwrap();
    let (one, two) = (open(dir.path()).unwrap(), open(dir.path()).unwrap());
    one.queues.create_queue("q").await.unwrap();
    let sending = async {
        tokio::time::sleep(Duration::from_millis(100)).await;
        one.queues.send("q", messages(&["across"])).await.remove(0)
    };
    let started = std::time::Instant::now();
    let (received, sent) = tokio::join!(two.queues.receive("q", 1, HIDE, HIDE), sending);
    sent.unwrap();
    assert!(
        started.elapsed() < HIDE / 2,
        "noticed only when time was up"
    );
    assert_eq!(received.unwrap()[0].body, "across");
}

#[tokio::test]
async fn a_call_that_is_refused_does_not_undo_its_neighbours() {
    let dir = TempDir::new().unwrap();
    let storage = open(dir.path()).unwrap();
    storage.blobs.create_container("blobs").await.unwrap();
    // Polled together, so that they share a transaction.
    let puts = (0..100).map(|i| {
        let name = format!("{}", i % 50);
        let storage = storage.clone();
        async move {
            storage
                .blobs
                .put("blobs", &name, "x".into(), Expect::Absent)
                .await
        }
    });
    let answers = futures::future::join_all(puts).await;
    let refused = answers.iter().filter(|answer| answer.is_err()).count();
    assert_eq!(refused, 50);
    let page = storage.blobs.list("blobs", "", None, 100).await.unwrap();
    assert_eq!(page.blobs.len(), 50);
}

#[tokio::test]
async fn an_engine_failure_fails_only_its_own_call() {
    let dir = TempDir::new().unwrap();
    let storage = open(dir.path()).unwrap();
    storage.blobs.create_container("blobs").await.unwrap();
    // A trigger stands for a disk that fails at one blob.
    let db = Connection::open(dir.path().join(FILE)).unwrap();
    db.execute_batch(
        "CREATE TRIGGER fails AFTER INSERT ON blobs WHEN new.name = '7'
         BEGIN SELECT raise(ABORT, 'as told'); END;",
    )
    .unwrap();
    let puts = (0..20).map(|i| {
        let storage = storage.clone();
        async move {
            let name = i.to_string();
            storage
                .blobs
                .put("blobs", &name, "x".into(), Expect::Absent)
                .await
        }
    });
    let answers = futures::future::join_all(puts).await;
    for (i, answer) in answers.iter().enumerate() {
        assert_eq!(answer.is_ok(), i != 7, "{i}: {answer:?}");
    }
    let page = storage.blobs.list("blobs", "", None, 100).await.unwrap();
    assert_eq!(page.blobs.len(), 19);
}

#[tokio::test]
async fn a_receive_dropped_before_its_answer_gives_its_messages_back() {
    let dir = TempDir::new().unwrap();
    let storage = open(dir.path()).unwrap();
    storage.queues.create_queue("q").await.unwrap();
    storage
        .queues
        .send("q", messages(&["a"]))
        .await
        .remove(0)
        .unwrap();
    for _ in 0..50 {
        let receive = storage.queues.receive("q", 1, HIDE, Duration::ZERO);
        // Polled once, which hands the call to the writer thread, and dropped.
        assert!(futures::poll!(std::pin::pin!(receive)).is_pending());
        let again = storage
            .queues
            .receive("q", 1, HIDE, HIDE / 2)
            .await
            .unwrap();
        let receipt = again[0].receipt.clone();
        let zero = Duration::ZERO;
        storage
            .queues
            .extend("q", &receipt, "a", zero)
            .await
            .unwrap();
    }
}

#[tokio::test]
async fn versions_are_not_reused_after_reopening() {
    let dir = TempDir::new().unwrap();
    let put = async || {
        let storage = open(dir.path()).unwrap();
        storage.blobs.create_container("blobs").await.unwrap();
        let put = storage.blobs.put("blobs", "b", "x".into(), Expect::Absent);
        let etag = put.await.unwrap();
        storage.blobs.delete("blobs", "b").await.unwrap();
        etag
    };
    assert_ne!(put().await, put().await);
}

#[tokio::test]
async fn long_queues_keep_their_order_of_cost() {
    // The plan is what keeps a receive from reading or sorting the whole queue.
    let dir = TempDir::new().unwrap();
    drop(open(dir.path()).unwrap());
    let db = Connection::open(dir.path().join(FILE)).unwrap();
    let plan = |sql: &str| {
        let mut statement = db.prepare(&format!("EXPLAIN QUERY PLAN {sql}")).unwrap();
        let lines = statement.query_map([], |row| row.get::<_, String>(3));
        lines
            .unwrap()
            .collect::<rusqlite::Result<Vec<_>>>()
            .unwrap()
            .join("\n")
    };
    let receive = plan(
        "SELECT id, body FROM messages
         WHERE queue = 1 AND visible_from <= 5 ORDER BY visible_from, id LIMIT 9",
    );
    assert!(receive.contains("messages_by_visibility"), "{receive}");
    assert!(!receive.contains("TEMP B-TREE"), "{receive}");
    let query = plan(
        "SELECT row_key FROM entities
         WHERE table_id = 1 AND partition_key = 'p' AND row_key >= 'r' ORDER BY row_key",
    );
    assert!(query.contains("row_key>?"), "{query}");
    assert!(!query.contains("TEMP B-TREE"), "{query}");
}

/// Every matching row, page by page.
async fn query(storage: &Storage, filter: &Filter) -> Vec<EntityKey> {
    let (mut keys, mut after) = (Vec::new(), None);
    loop {
        let page = storage.tables.query("Rows", filter, after.as_ref(), 7);
        let page = page.await.unwrap();
        keys.extend(page.entities.into_iter().map(|entity| entity.key));
        after = page.next;
        if after.is_none() {
            return keys;
        }
    }
}

/// Goal: an index never changes an answer. Method: rows with every combination of what is indexed,
/// other types and nothing included, and the same questions to the memory, which has no index.
#[tokio::test]
async fn indexed_queries_answer_as_full_walks_do() {
    let dir = TempDir::new().unwrap();
    let indexed = open(dir.path()).unwrap();
    let walked = Storage::from_backend(MemoryStorage::new(Clock::system()));
    let text = |text: &str| Some(Value::String(text.to_owned()));
    let states = [text("pending"), text("running"), text("a\0b"), None];
    let odd = [Some(Value::Int32(1)), Some(Value::Bool(true)), text("1")];
    let flags = [Some(Value::Bool(true)), Some(Value::Bool(false)), None];
    for storage in [&indexed, &walked] {
        storage.tables.create_table("Rows").await.unwrap();
        for n in 0..120 {
            let state = states.iter().chain(&odd).nth(n % 7).unwrap();
            let flag = flags.iter().chain(&odd).nth(n % 6).unwrap();
            let named = [("workflow_state", state), ("cancel_requested", flag)];
            let properties = named.into_iter().filter_map(|(name, value)| {
                let value = value.clone()?;
                Some((name.to_owned(), value))
            });
            let key = EntityKey {
                partition: format!("p{}", n % 3),
                row: format!("{n:03}"),
            };
            let insert = storage.tables.insert("Rows", &key, properties.collect());
            insert.await.unwrap();
        }
    }
    let some = states.iter().chain(&odd).flatten();
    let by_state = some.map(|value| Filter::eq("workflow_state", value.clone()));
    let some = flags.iter().chain(&odd).flatten();
    let by_flag = some.map(|value| Filter::eq("cancel_requested", value.clone()));
    let late = Filter::compare("RowKey", Operator::Ge, Value::String("050".to_owned()));
    for filter in by_state.chain(by_flag) {
        let (alone, late) = (filter.clone(), Filter::And(vec![late.clone(), filter]));
        for filter in [alone, late] {
            let expected = query(&walked, &filter).await;
            assert_eq!(query(&indexed, &filter).await, expected, "{filter:?}");
        }
    }
}

#[track_caller]
fn assert_refused(result: Result<Storage>, kind: &str, says: &str) {
    let error: Error = result.expect_err(kind);
    assert_eq!(error.kind(), kind, "{error}");
    assert!(error.to_string().contains(says), "{error}");
}

#[test]
fn a_newer_version_is_refused_and_left_alone() {
    let dir = TempDir::new().unwrap();
    drop(open(dir.path()).unwrap());
    let db = Connection::open(dir.path().join(FILE)).unwrap();
    db.pragma_update(None, "user_version", 2).unwrap();
    assert_refused(open(dir.path()), "corrupt", "version 2");
}

#[test]
fn another_programs_database_is_refused() {
    let dir = TempDir::new().unwrap();
    let db = Connection::open(dir.path().join(FILE)).unwrap();
    db.execute_batch("CREATE TABLE theirs (x)").unwrap();
    assert_refused(open(dir.path()), "corrupt", "another program's");
    let mode: String = db
        .query_row("PRAGMA journal_mode", [], |row| row.get(0))
        .unwrap();
    assert_eq!(mode, "delete", "their file was changed");
}

#[test]
fn a_file_that_is_no_database_is_refused() {
    let dir = TempDir::new().unwrap();
    std::fs::write(dir.path().join(FILE), "x".repeat(10_000)).unwrap();
    assert_refused(open(dir.path()), "corrupt", "no SQLite database");
}

#[test]
fn a_file_in_the_directorys_place_is_refused() {
    let dir = TempDir::new().unwrap();
    let file = dir.path().join("file");
    std::fs::write(&file, "").unwrap();
    assert_refused(open(&file), "unavailable", "cannot be created");
}

#[tokio::test]
async fn a_damaged_row_is_an_error_not_a_panic() {
    let dir = TempDir::new().unwrap();
    let storage = open(dir.path()).unwrap();
    storage.tables.create_table("Rows").await.unwrap();
    let db = Connection::open(dir.path().join(FILE)).unwrap();
    db.execute(
        r#"INSERT INTO entities VALUES (1, 'p', 'r', 1, '{"n":1.5}')"#,
        [],
    )
    .unwrap();
    let key = EntityKey {
        partition: "p".to_owned(),
        row: "r".to_owned(),
    };
    let error = storage.tables.get("Rows", &key).await.unwrap_err();
    assert_eq!(error.kind(), "corrupt", "{error}");
}
