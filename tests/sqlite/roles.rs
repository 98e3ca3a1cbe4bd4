//! What helper processes do.
#![expect(unreachable_pub, reason = "a helper of this test target")]

use std::path::PathBuf;
use std::time::Duration;

use futures::future::join_all;
use jobq::clock::Clock;
use jobq::storage::sqlite::SqliteStorage;
use jobq::storage::{BlobStore, Error, Expect, LeaseId, LeaseStore, OutgoingMessage, QueueStore};

/// The variable that names the role.
pub const ROLE: &str = "JOBQ_TEST_ROLE";

/// The variable that names the data directory.
pub const DIRECTORY: &str = "JOBQ_TEST_DIRECTORY";

/// Begins the lines that a role reports, among those of the test runner.
pub const REPORT: &str = "report: ";

/// Writers in one process, and what each adds.
pub const WRITERS: usize = 4;
pub const INCREMENTS: usize = 15;

/// How long a receiver waits, and how long the lease lasts.
pub const RECEIVE_WAIT: Duration = Duration::from_secs(30);
pub const LEASE: Duration = Duration::from_secs(15);

/// Plays the role that the environment names, if it names one.
pub fn play() {
    let Ok(role) = std::env::var(ROLE) else {
        return;
    };
    let directory = PathBuf::from(std::env::var_os(DIRECTORY).unwrap());
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async move {
        let storage = SqliteStorage::open(&directory, Clock::system()).unwrap();
        match role.as_str() {
            "increment" => drop(join_all((0..WRITERS).map(|_| increment(&storage))).await),
            "receive-one" => receive_one(&storage).await,
            "drain" => drop(join_all((0..2).map(|_| drain(&storage))).await),
            "hold-lease" => hold_lease(&storage).await,
            "write" => write(&storage).await,
            other => panic!("no role {other}"),
        }
    });
}

fn report(line: &str) {
    println!("{REPORT}{line}");
}

async fn increment(storage: &SqliteStorage) {
    let mut done = 0;
    while done < INCREMENTS {
        let read = BlobStore::get(storage, "runs", "n").await.unwrap();
        let count: usize = std::str::from_utf8(&read.data).unwrap().parse().unwrap();
        let next = (count + 1).to_string().into();
        match storage
            .put("runs", "n", next, Expect::Version(read.etag))
            .await
        {
            Ok(_) => done += 1,
            Err(Error::PreconditionFailed { .. }) => {}
            Err(error) => panic!("{error}"),
        }
    }
}

async fn receive_one(storage: &SqliteStorage) {
    let messages = storage
        .receive("q", 1, RECEIVE_WAIT, RECEIVE_WAIT)
        .await
        .unwrap();
    messages.iter().for_each(|message| report(&message.body));
}

async fn drain(storage: &SqliteStorage) {
    loop {
        let messages = storage
            .receive("q", 7, RECEIVE_WAIT, Duration::ZERO)
            .await
            .unwrap();
        if messages.is_empty() {
            return;
        }
        for message in messages {
            QueueStore::delete(storage, "q", vec![message.receipt])
                .await
                .remove(0)
                .unwrap();
            report(&message.body);
        }
    }
}

pub fn lease_id(clock: &Clock) -> LeaseId {
    LeaseId(clock.new_id())
}

async fn hold_lease(storage: &SqliteStorage) {
    let id = lease_id(&Clock::system());
    storage
        .acquire("runs", "lock", &id, LEASE, "helper".into())
        .await
        .unwrap();
    std::future::pending::<()>().await;
}

/// Writes for ever, and reports what is acknowledged.
async fn write(storage: &SqliteStorage) {
    let clock = Clock::system();
    loop {
        let name = clock.new_id();
        let data = name.clone().into();
        storage
            .put("runs", &name, data, Expect::Absent)
            .await
            .unwrap();
        let message = OutgoingMessage::new(name.as_str());
        storage.send("q", vec![message]).await.remove(0).unwrap();
        report(&name);
    }
}
