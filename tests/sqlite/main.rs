//! Several processes on one data directory.
//!
//! The test binary starts itself again as helper processes: the test `helper` does nothing unless
//! the environment gives it a role.
#![expect(
    clippy::unwrap_used,
    reason = "helpers outside test functions fail the test that calls them"
)]

mod roles;

use std::collections::BTreeSet;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use jobq::clock::Clock;
use jobq::storage::sqlite::SqliteStorage;
use jobq::storage::{BlobStore, Error, Expect, LeaseStore, OutgoingMessage, QueueStore};

/// How long anything may take before a test gives up.
const PATIENCE: Duration = Duration::from_secs(60);

/// A helper process that plays a role on a data directory. Killed with the value.
struct Helper(Child);

impl Helper {
    fn start(directory: &Path, role: &str) -> Self {
        let child = Command::new(std::env::current_exe().unwrap())
            .args(["helper", "--exact", "--nocapture"])
            .env(roles::ROLE, role)
            .env(roles::DIRECTORY, directory)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        Self(child)
    }

    /// Waits for a successful end; the lines it reported.
    #[track_caller]
    fn finish(mut self) -> Vec<String> {
        let give_up_at = Instant::now() + PATIENCE;
        let reports = self.reports();
        while self.0.try_wait().unwrap().is_none() {
            assert!(Instant::now() < give_up_at, "a helper does not end");
            std::thread::sleep(Duration::from_millis(10));
        }
        assert!(self.0.wait().unwrap().success(), "a helper failed");
        reports.join().unwrap()
    }

    /// Kills it without warning; the lines it had reported.
    fn kill(mut self) -> Vec<String> {
        let reports = self.reports();
        self.0.kill().unwrap();
        self.0.wait().unwrap();
        reports.join().unwrap()
    }

    fn reports(&mut self) -> std::thread::JoinHandle<Vec<String>> {
        let stdout = self.0.stdout.take().unwrap();
        std::thread::spawn(move || {
            let lines = std::io::BufRead::lines(std::io::BufReader::new(stdout));
            let lines = lines.map_while(Result::ok);
            lines
                .filter_map(|line| line.strip_prefix(roles::REPORT).map(str::to_owned))
                .collect()
        })
    }
}

impl Drop for Helper {
    fn drop(&mut self) {
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

fn open(directory: &Path) -> Arc<SqliteStorage> {
    SqliteStorage::open(directory, Clock::system()).unwrap()
}

#[test]
fn helper() {
    roles::play();
}

#[tokio::test]
async fn increments_of_eight_writers_in_two_processes_are_all_counted() {
    let directory = tempfile::tempdir().unwrap();
    let storage = open(directory.path());
    storage.create_container("runs").await.unwrap();
    storage
        .put("runs", "n", "0".into(), Expect::Absent)
        .await
        .unwrap();
    let helpers = [(); 2].map(|()| Helper::start(directory.path(), "increment"));
    for helper in helpers {
        helper.finish();
    }
    let total = BlobStore::get(&*storage, "runs", "n").await.unwrap().data;
    assert_eq!(total, (2 * roles::WRITERS * roles::INCREMENTS).to_string());
}

#[tokio::test]
async fn a_waiting_receiver_hears_of_another_processs_send() {
    let directory = tempfile::tempdir().unwrap();
    let storage = open(directory.path());
    storage.create_queue("q").await.unwrap();
    let receiver = Helper::start(directory.path(), "receive-one");
    // It reports once it waits; what it then receives was sent by this process.
    tokio::time::sleep(Duration::from_millis(500)).await;
    storage
        .send("q", vec![OutgoingMessage::new("hello")])
        .await
        .remove(0)
        .unwrap();
    let started = Instant::now();
    assert_eq!(receiver.finish(), ["hello"]);
    assert!(
        started.elapsed() < roles::RECEIVE_WAIT / 2,
        "{:?}",
        started.elapsed()
    );
}

#[tokio::test]
async fn receivers_in_two_processes_take_each_message_exactly_once() {
    const MESSAGES: usize = 1_000;
    let directory = tempfile::tempdir().unwrap();
    let storage = open(directory.path());
    storage.create_queue("q").await.unwrap();
    let messages = (0..MESSAGES)
        .map(|i| OutgoingMessage::new(i.to_string()))
        .collect();
    for sent in storage.send("q", messages).await {
        sent.unwrap();
    }
    let helpers = [(); 2].map(|()| Helper::start(directory.path(), "drain"));
    let taken: Vec<String> = helpers.map(Helper::finish).into_iter().flatten().collect();
    assert_eq!(taken.len(), MESSAGES, "some were taken twice or not at all");
    assert_eq!(taken.into_iter().collect::<BTreeSet<_>>().len(), MESSAGES);
    assert_eq!(storage.length("q").await.unwrap(), 0);
}

#[tokio::test]
async fn the_lease_of_a_killed_process_excludes_others_until_it_lapses() {
    let directory = tempfile::tempdir().unwrap();
    let storage = open(directory.path());
    storage.create_container("runs").await.unwrap();
    let holder = Helper::start(directory.path(), "hold-lease");
    let give_up_at = Instant::now() + PATIENCE;
    let held = async || {
        storage
            .holder("runs", "lock")
            .await
            .is_ok_and(|holder| holder.held)
    };
    while !held().await {
        assert!(
            Instant::now() < give_up_at,
            "the helper does not take the lease"
        );
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    holder.kill();
    let mine = roles::lease_id(&Clock::system());
    let acquire = async || {
        storage
            .acquire("runs", "lock", &mine, roles::LEASE, "me".into())
            .await
    };
    let refused = acquire().await;
    assert!(
        matches!(refused, Err(Error::LeaseHeld { .. })),
        "{refused:?}"
    );
    tokio::time::sleep(roles::LEASE).await;
    acquire().await.unwrap();
}

#[tokio::test]
async fn what_was_acknowledged_survives_a_kill_at_any_moment() {
    let directory = tempfile::tempdir().unwrap();
    open(directory.path())
        .create_container("runs")
        .await
        .unwrap();
    open(directory.path()).create_queue("q").await.unwrap();
    let mut acknowledged = BTreeSet::new();
    for round in 0..8 {
        let writer = Helper::start(directory.path(), "write");
        tokio::time::sleep(Duration::from_millis(120 + 37 * round)).await;
        acknowledged.extend(writer.kill());
    }
    assert!(
        acknowledged.len() > 50,
        "only {} writes",
        acknowledged.len()
    );
    let storage = open(directory.path());
    for name in &acknowledged {
        let blob = BlobStore::get(&*storage, "runs", name).await;
        assert_eq!(blob.unwrap().data, name.as_bytes());
    }
    let received = storage.length("q").await.unwrap();
    assert!(received >= acknowledged.len() as u64, "{received} messages");
    let connection = rusqlite::Connection::open(directory.path().join("jobq.db")).unwrap();
    let verdict: String = connection
        .pragma_query_value(None, "integrity_check", |row| row.get(0))
        .unwrap();
    assert_eq!(verdict, "ok");
}
