//! Receives from several queues so that none waits for another.

use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::Shared;
use crate::storage::{Error, Message, QueueStore, Retry};
use crate::workflow::QueueName;

/// How long a round may wait for a message where there is one queue.
const WAIT: Duration = Duration::from_millis(500);

/// How long a stop waits for a receive that may just be taking messages: dropped at that moment it
/// would leave them hidden until their visibility timeout. One that only waits takes nothing.
const STOP_GRACE: Duration = Duration::from_millis(20);

/// The first pause after all queues were found empty; it doubles from there.
const PAUSE_MIN: Duration = Duration::from_millis(100);

/// The receiving side of a worker.
pub(super) struct Intake<'a> {
    shared: &'a Shared,
    /// The queue that is asked first the next time.
    next: usize,
    /// The pause after the next round that finds nothing.
    pause: Duration,
}

impl<'a> Intake<'a> {
    pub(super) const fn new(shared: &'a Shared) -> Self {
        Self {
            shared,
            next: 0,
            pause: PAUSE_MIN,
        }
    }

    /// Creates the queues that are missing. One that cannot be created now is created when a
    /// receive misses it.
    pub(super) async fn create_queues(&self) {
        for queue in &self.shared.config.queues {
            if let Err(error) = self.queues().create_queue(queue).await {
                tracing::error!(%queue, %error, error_kind = error.kind(), "the queue could not be created");
            }
        }
    }

    /// Messages for at most `free` slots, after a pause if there were none. May return none.
    pub(super) async fn receive(
        &mut self,
        free: usize,
        shutdown: &CancellationToken,
    ) -> Vec<(QueueName, Message)> {
        let received = self.round(free, shutdown).await;
        if !received.is_empty() {
            self.pause = PAUSE_MIN;
        } else if !self.queues().capabilities().receive_waits {
            self.rest(shutdown).await;
        }
        received
    }

    /// Asks each queue once, each for its share of the slots that are still free, a different one
    /// first each time. Whatever is there is taken before anything is waited for.
    async fn round(
        &mut self,
        free: usize,
        shutdown: &CancellationToken,
    ) -> Vec<(QueueName, Message)> {
        let count = self.shared.config.queues.len();
        let first = self.next;
        self.next = (self.next + 1) % count;
        let mut received = Vec::new();
        for asked in 0..count {
            let share = (free - received.len()).div_ceil(count - asked);
            if share == 0 {
                break;
            }
            let last = asked + 1 == count;
            // The others are not looked at meanwhile, so the more there are the shorter the wait.
            let wait = if last && received.is_empty() {
                WAIT / u32::try_from(count).unwrap_or(u32::MAX)
            } else {
                Duration::ZERO
            };
            let queue = &self.shared.config.queues[(first + asked) % count];
            let messages = self.receive_from(queue, share, wait, shutdown).await;
            received.extend(messages.into_iter().map(|message| (queue.clone(), message)));
        }
        received
    }

    async fn receive_from(
        &self,
        queue: &QueueName,
        max: usize,
        wait: Duration,
        shutdown: &CancellationToken,
    ) -> Vec<Message> {
        let max = max.min(self.queues().capabilities().receive_max);
        let visibility = self.shared.config.visibility_timeout;
        let receive = self.queues().receive(queue, max, visibility, wait);
        tokio::pin!(receive);
        let stopped = async {
            shutdown.cancelled().await;
            // What does not wait is over soon, and taking messages all the while.
            if wait.is_zero() || !self.queues().capabilities().receive_waits {
                std::future::pending::<()>().await;
            }
            tokio::time::sleep(STOP_GRACE).await;
        };
        let received = tokio::select! {
            biased;
            received = &mut receive => received,
            () = stopped => return Vec::new(),
        };
        match received {
            Ok(messages) => messages,
            Err(error) => {
                tracing::error!(%queue, %error, error_kind = error.kind(), "receiving failed");
                self.mend(queue, &error).await;
                Vec::new()
            }
        }
    }

    /// After a failed receive: creates a queue that went missing, else waits as long as the
    /// storage asks for.
    async fn mend(&self, queue: &QueueName, error: &Error) {
        if matches!(error, Error::NotFound { .. })
            && self.queues().create_queue(queue).await.is_ok()
        {
            return;
        }
        let pause = match error.retry() {
            Retry::After(pause) => pause.clamp(PAUSE_MIN, self.pause_max()),
            Retry::Never => self.pause_max(),
        };
        tokio::time::sleep(pause).await;
    }

    async fn rest(&mut self, shutdown: &CancellationToken) {
        let pause = self.pause.min(self.pause_max());
        self.pause = pause.saturating_mul(2);
        tokio::select! {
            () = tokio::time::sleep(pause) => {}
            () = shutdown.cancelled() => {}
        }
    }

    fn pause_max(&self) -> Duration {
        self.shared.config.idle_backoff_max.max(PAUSE_MIN)
    }

    fn queues(&self) -> &dyn QueueStore {
        &*self.shared.storage.queues
    }
}
