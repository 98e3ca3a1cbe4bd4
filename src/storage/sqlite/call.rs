//! Calls on their way to the writer thread and back.

use rusqlite::Connection;
use tokio::sync::{OwnedSemaphorePermit, oneshot};

use super::error::{Failure, Outcome};
use crate::storage::{Error, Result};

type Work<T> = Box<dyn Fn(&Connection) -> Outcome<T> + Send>;
type Unclaimed<T> = Box<dyn FnOnce(T) -> Box<dyn Job> + Send>;

/// One call for the writer thread.
pub(super) struct Call<T> {
    work: Work<T>,
    wakes: Option<String>,
    unclaimed: Option<Unclaimed<T>>,
}

impl<T: Send + 'static> Call<T> {
    /// A call that runs `work`, perhaps more than once: each time after everything of the time
    /// before was rolled back.
    pub(super) fn new(work: impl Fn(&Connection) -> Outcome<T> + Send + 'static) -> Self {
        Self {
            work: Box::new(work),
            wakes: None,
            unclaimed: None,
        }
    }

    /// The same call, which wakes the waiters of a queue once it is committed.
    pub(super) fn waking(mut self, queue: String) -> Self {
        self.wakes = Some(queue);
        self
    }

    /// The same call, which is made good by another if the caller is gone before the answer.
    pub(super) fn undone_by<U: Send + 'static>(
        mut self,
        undo: impl FnOnce(T) -> Call<U> + Send + 'static,
    ) -> Self {
        self.unclaimed = Some(Box::new(|value| undo(value).job(None)));
        self
    }

    /// The call as a job that answers to a caller, and where the answer comes out.
    pub(super) fn into_job(
        self,
        place: OwnedSemaphorePermit,
    ) -> (Box<dyn Job>, oneshot::Receiver<Result<T>>) {
        let (reply, answer) = oneshot::channel();
        let caller = Caller {
            reply,
            _place: place,
        };
        (self.job(Some(caller)), answer)
    }

    fn job(self, caller: Option<Caller<T>>) -> Box<dyn Job> {
        Box::new(Pending {
            call: self,
            result: None,
            caller,
        })
    }
}

/// A call with its type hidden.
pub(super) trait Job: Send {
    /// Runs the call; an error is the engine's, and the transaction must be rolled back.
    fn run(&mut self, db: &Connection) -> rusqlite::Result<()>;

    /// Answers after the commit; returns what has to be done if nobody takes the answer.
    fn answer(self: Box<Self>) -> Option<Box<dyn Job>>;

    /// Answers with an error instead.
    fn fail(self: Box<Self>, error: Error);

    /// The queue whose waiters learn of the commit.
    fn wakes(&self) -> Option<&str>;

    /// Whether nobody waits for the answer any more.
    fn abandoned(&self) -> bool;
}

struct Pending<T> {
    call: Call<T>,
    result: Option<Result<T>>,
    /// Calls of the writer's own have none.
    caller: Option<Caller<T>>,
}

/// Who waits for a call.
struct Caller<T> {
    reply: oneshot::Sender<Result<T>>,
    /// The call's place in the bounded queue, free again once it is answered.
    _place: OwnedSemaphorePermit,
}

impl<T: Send> Job for Pending<T> {
    fn run(&mut self, db: &Connection) -> rusqlite::Result<()> {
        self.result = Some(match (self.call.work)(db) {
            Ok(value) => Ok(value),
            Err(Failure::Refused(error)) => Err(error),
            Err(Failure::Engine(error)) => return Err(error),
        });
        Ok(())
    }

    fn answer(self: Box<Self>) -> Option<Box<dyn Job>> {
        match self.caller?.reply.send(self.result?) {
            Err(Ok(value)) => self.call.unclaimed.map(|undo| undo(value)),
            Err(Err(_)) | Ok(()) => None,
        }
    }

    fn fail(self: Box<Self>, error: Error) {
        if let Some(caller) = self.caller {
            // Nobody is left to tell if the caller is gone.
            let _ = caller.reply.send(Err(error));
        }
    }

    fn wakes(&self) -> Option<&str> {
        self.call.wakes.as_deref()
    }

    fn abandoned(&self) -> bool {
        let caller = self.caller.as_ref();
        caller.is_some_and(|caller| caller.reply.is_closed())
    }
}
