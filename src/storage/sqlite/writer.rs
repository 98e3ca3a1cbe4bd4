//! The one thread of this process that writes.
//!
//! It takes every call that waits, runs them in one transaction, commits, and answers. While a
//! commit is under way the next calls gather, so the group's size adapts to the load by itself.
//!
//! If the engine fails in the middle of a group, the group is rolled back and each of its calls is
//! run again in a transaction of its own: only those that fail by themselves are told so.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, TryRecvError, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rusqlite::{Connection, Transaction, TransactionBehavior};
use tokio::sync::Semaphore;

use super::call::{Call, Job};
use super::error::explain;
use super::waiters::Waiters;
use crate::limits;
use crate::storage::{Error, Result};

/// How often the thread looks whether another process wrote something, while receivers wait.
/// Short against what people notice; a look costs microseconds.
const WATCH_INTERVAL: Duration = Duration::from_millis(20);

/// After this much uninterrupted work the thread leaves the database alone for a moment, so that
/// other processes, which ask once a millisecond, get a turn.
const TURN: Duration = Duration::from_millis(40);

/// The moment: long enough that everyone who asks once a millisecond does so within it.
const TURN_PAUSE: Duration = Duration::from_millis(2);

/// The callers' end. Dropping it commits what is queued and ends the thread.
pub(super) struct Writer {
    jobs: Option<Sender<Box<dyn Job>>>,
    places: Arc<Semaphore>,
    thread: Option<JoinHandle<()>>,
}

impl Writer {
    /// Starts the thread on a connection that may write.
    pub(super) fn start(db: Connection, path: PathBuf, waiters: Arc<Waiters>) -> Result<Self> {
        let (sender, jobs) = channel();
        let mut desk = Desk {
            db,
            path,
            jobs,
            waiters,
            undo: Vec::new(),
            seen: None,
            watched: Instant::now(),
            turn: Instant::now(),
        };
        let thread = std::thread::Builder::new()
            .name("jobq-sqlite".to_owned())
            .spawn(move || desk.work())
            .map_err(|error| Error::unavailable("no thread for the database", error))?;
        Ok(Self {
            jobs: Some(sender),
            places: Arc::new(Semaphore::new(limits::SQLITE_WAITING_MAX)),
            thread: Some(thread),
        })
    }

    /// Runs a call and returns its result once it is committed. A call that was dropped before it
    /// ran is not run.
    pub(super) async fn call<T: Send + 'static>(&self, call: Call<T>) -> Result<T> {
        let closed = || Error::Unavailable {
            message: "the database's writer has stopped".to_owned(),
            source: None,
        };
        let place = self.places.clone().acquire_owned().await;
        let (job, answer) = call.into_job(place.map_err(|_| closed())?);
        let jobs = self.jobs.as_ref().ok_or_else(closed)?;
        jobs.send(job).map_err(|_| closed())?;
        answer.await.map_err(|_| closed())?
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.jobs = None;
        if let Some(thread) = self.thread.take() {
            // It only fails by panicking, which has been reported by then.
            let _ = thread.join();
        }
    }
}

/// The thread's end.
struct Desk {
    db: Connection,
    path: PathBuf,
    jobs: Receiver<Box<dyn Job>>,
    waiters: Arc<Waiters>,
    /// What makes good calls whose callers were gone.
    undo: Vec<Box<dyn Job>>,
    /// The latest answer to "which version of the data is this", which only others' commits change.
    seen: Option<i64>,
    /// When that was asked.
    watched: Instant,
    /// Since when the thread has been at work without a break.
    turn: Instant,
}

impl Desk {
    fn work(&mut self) {
        while let Some(group) = self.gather() {
            self.commit(group);
            if self.watched.elapsed() >= WATCH_INTERVAL {
                self.watch();
            }
        }
    }

    /// Every job that waits, at most as many as fit a group; `None` once the callers' end is gone
    /// and nothing is left to do.
    fn gather(&mut self) -> Option<Vec<Box<dyn Job>>> {
        let mut group = std::mem::take(&mut self.undo);
        if group.is_empty() {
            group.push(self.next()?);
        }
        while group.len() < limits::SQLITE_GROUP_MAX
            && let Ok(job) = self.jobs.try_recv()
        {
            group.push(job);
        }
        Some(group)
    }

    /// The next job; waits for one, and meanwhile watches for other processes' commits.
    fn next(&mut self) -> Option<Box<dyn Job>> {
        match self.jobs.try_recv() {
            Ok(job) => {
                if self.turn.elapsed() >= TURN {
                    std::thread::sleep(TURN_PAUSE);
                    self.turn = Instant::now();
                }
                return Some(job);
            }
            Err(TryRecvError::Empty) => {}
            Err(TryRecvError::Disconnected) => return None,
        }
        let job = loop {
            if !self.waiters.any() {
                break self.jobs.recv().ok();
            }
            match self.jobs.recv_timeout(WATCH_INTERVAL) {
                Ok(job) => break Some(job),
                Err(RecvTimeoutError::Timeout) => self.watch(),
                Err(RecvTimeoutError::Disconnected) => break None,
            }
        };
        self.turn = Instant::now();
        job
    }

    /// Wakes all waiters if another process committed anything since the last look.
    fn watch(&mut self) {
        self.watched = Instant::now();
        if !self.waiters.any() {
            return;
        }
        let version = self
            .db
            .prepare_cached("PRAGMA data_version")
            .and_then(|mut statement| statement.query_row([], |row| row.get(0)));
        // A failing look wakes too: the receivers' own calls will meet the failure and report it.
        let version: Option<i64> = version.ok();
        if version.is_none() || version != self.seen {
            self.waiters.wake_all();
        }
        self.seen = version;
    }

    fn commit(&mut self, mut group: Vec<Box<dyn Job>>) {
        group.retain(|job| !job.abandoned());
        if group.is_empty() {
            return;
        }
        match attempt(&self.db, &mut group) {
            Ok(()) => self.answer(group),
            Err(Broken::Run(_)) if group.len() > 1 => {
                for job in group {
                    self.commit(vec![job]);
                }
            }
            Err(Broken::Run(error) | Broken::Transaction(error)) => {
                for job in group {
                    job.fail(explain(&self.path, &error));
                }
            }
        }
    }

    fn answer(&mut self, group: Vec<Box<dyn Job>>) {
        for job in &group {
            if let Some(queue) = job.wakes() {
                self.waiters.wake(queue);
            }
        }
        for job in group {
            self.undo.extend(job.answer());
        }
    }
}

/// Where a group failed.
enum Broken {
    /// In one of its calls.
    Run(rusqlite::Error),
    /// At its beginning or end, for all of them.
    Transaction(rusqlite::Error),
}

/// Runs a group in one transaction, which is rolled back on any error.
fn attempt(db: &Connection, group: &mut [Box<dyn Job>]) -> Result<(), Broken> {
    // Taken at once: a transaction that starts as a reader could not become a writer after
    // another process has written.
    let tx = Transaction::new_unchecked(db, TransactionBehavior::Immediate)
        .map_err(Broken::Transaction)?;
    for job in group {
        job.run(&tx).map_err(Broken::Run)?;
    }
    tx.commit().map_err(Broken::Transaction)
}
