//! The one writing thread of a process. It groups commits: all jobs that wait when it is free
//! share one transaction, and so one sync of the disk.

use std::cell::{Cell, RefCell};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};

use rusqlite::Connection;
use tokio::sync::oneshot;

use super::errors::translate;
use super::wake::Wakers;
use crate::storage::{Error, Result};

/// Jobs of one transaction. Bounds how long a job waits for those it shares a commit with.
const GROUP_MAX: usize = 1_024;

/// Whether a job's effect has to survive a power cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sync {
    /// Yes: its commit is synced.
    Durable,
    /// No: losing it is within what the port allows.
    Volatile,
}

/// Answers a job once it is known whether its transaction was committed.
type Answer = Box<dyn FnOnce(Option<&Error>) + Send>;

/// What a job does in its transaction, or with the reason why there is none.
type Work = Box<dyn FnOnce(Result<&Group<'_>, &Error>) -> Answer + Send>;

struct Job {
    sync: Sync,
    work: Work,
}

/// What a job works with: the open transaction and its share of the counter.
pub(super) struct Group<'a> {
    /// The connection, inside a transaction.
    pub(super) connection: &'a Connection,
    counter: Cell<i64>,
    wakes: RefCell<Vec<i64>>,
}

impl Group<'_> {
    /// A number that was never used before: a version or a receipt.
    pub(super) fn next_number(&self) -> i64 {
        let next = self.counter.get() + 1;
        self.counter.set(next);
        next
    }

    /// Wakes the receivers of a queue once the transaction is committed.
    pub(super) fn wake(&self, queue: i64) {
        self.wakes.borrow_mut().push(queue);
    }
}

/// The handle of the writing thread; the thread ends with it.
pub(super) struct Writer {
    jobs: Sender<Job>,
}

impl Writer {
    pub(super) fn start(connection: Connection, wakers: Arc<Wakers>) -> Result<Self> {
        let (jobs, inbox) = channel();
        std::thread::Builder::new()
            .name("jobq-sqlite-writer".to_owned())
            .spawn(move || run(&connection, &inbox, &wakers))
            .map_err(|error| Error::unavailable("no thread for the database", error))?;
        Ok(Self { jobs })
    }

    /// Runs `work` in a transaction, and returns its result once that is committed. An `Err` that
    /// `work` returns must leave nothing half done: it does not undo what the job wrote.
    pub(super) async fn run<T, F>(&self, sync: Sync, what: &str, work: F) -> Result<T>
    where
        T: Send + 'static,
        F: FnOnce(&Group<'_>) -> rusqlite::Result<Result<T>> + Send + 'static,
    {
        let (sender, receiver) = oneshot::channel();
        let what = what.to_owned();
        let work = Box::new(move |group: Result<&Group<'_>, &Error>| -> Answer {
            let result = match group {
                Ok(group) => work(group).unwrap_or_else(|error| Err(translate(&error, &what))),
                Err(error) => Err(copy(error)),
            };
            Box::new(move |failed: Option<&Error>| {
                let result = match failed {
                    None => result,
                    Some(error) => Err(copy(error)),
                };
                // The caller may have gone away meanwhile; its job is done all the same.
                sender.send(result).ok();
            })
        });
        let ended = || Error::Unavailable {
            message: "the database's writing thread has ended".to_owned(),
            source: None,
        };
        self.jobs.send(Job { sync, work }).map_err(|_| ended())?;
        receiver.await.unwrap_or_else(|_| Err(ended()))
    }
}

/// The same failure, for each job of a transaction.
fn copy(error: &Error) -> Error {
    match error {
        Error::Unauthorized { message } => Error::Unauthorized {
            message: message.clone(),
        },
        Error::Corrupt { what, message } => Error::Corrupt {
            what: what.clone(),
            message: message.clone(),
        },
        other => Error::Unavailable {
            message: other.to_string(),
            source: None,
        },
    }
}

fn run(connection: &Connection, inbox: &Receiver<Job>, wakers: &Wakers) {
    let mut synced = true;
    while let Ok(first) = inbox.recv() {
        let mut jobs = vec![first];
        while jobs.len() < GROUP_MAX
            && let Ok(job) = inbox.try_recv()
        {
            jobs.push(job);
        }
        let durable = jobs.iter().any(|job| job.sync == Sync::Durable);
        let mut answers = Vec::with_capacity(jobs.len());
        let mut wakes = Vec::new();
        let committed = set_sync(connection, &mut synced, durable)
            .and_then(|()| commit(connection, jobs, &mut answers, &mut wakes))
            .map_err(|error| translate(&error, "the data directory"));
        let failed = committed.as_ref().err();
        if failed.is_some() && !connection.is_autocommit() {
            connection.execute_batch("ROLLBACK").ok();
        }
        for answer in answers {
            answer(failed);
        }
        if failed.is_none() {
            wakers.wake(&wakes);
        }
    }
}

/// Switches between syncing every commit and leaving it to the next one that does.
fn set_sync(connection: &Connection, synced: &mut bool, durable: bool) -> rusqlite::Result<()> {
    if *synced != durable {
        let level = if durable { "full" } else { "normal" };
        connection.pragma_update(None, "synchronous", level)?;
        *synced = durable;
    }
    Ok(())
}

fn commit(
    connection: &Connection,
    jobs: Vec<Job>,
    answers: &mut Vec<Answer>,
    wakes: &mut Vec<i64>,
) -> rusqlite::Result<()> {
    let begun = connection
        .execute_batch("BEGIN IMMEDIATE")
        .and_then(|()| read_counter(connection));
    let begin = match begun {
        Ok(begin) => begin,
        Err(error) => {
            let told = translate(&error, "the data directory");
            answers.extend(jobs.into_iter().map(|job| (job.work)(Err(&told))));
            return Err(error);
        }
    };
    let group = Group {
        connection,
        counter: begin.into(),
        wakes: RefCell::default(),
    };
    answers.extend(jobs.into_iter().map(|job| (job.work)(Ok(&group))));
    // A failure such as a full disk may have ended the transaction by itself.
    if connection.is_autocommit() {
        return Err(rusqlite::Error::SqliteFailure(
            rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_FULL),
            Some("the transaction was rolled back".to_owned()),
        ));
    }
    if group.counter.get() != begin {
        connection
            .prepare_cached("UPDATE counter SET value = ?1 WHERE id = 1")?
            .execute([group.counter.get()])?;
    }
    connection.execute_batch("COMMIT")?;
    wakes.append(&mut group.wakes.borrow_mut());
    Ok(())
}

fn read_counter(connection: &Connection) -> rusqlite::Result<i64> {
    connection
        .prepare_cached("SELECT value FROM counter WHERE id = 1")?
        .query_row([], |row| row.get(0))
}
