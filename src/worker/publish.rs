//! Calls that must get through: completions to the coordinator, outputs to their container.

use std::future::Future;
use std::time::Duration;

use backon::{ExponentialBuilder, Retryable};

use crate::clock::Clock;
use crate::storage::{Error, OutgoingMessage, QueueStore, Result, Retry};
use crate::wire::Encoded;

const PAUSE_MIN: Duration = Duration::from_secs(1);
const PAUSE_MAX: Duration = Duration::from_secs(60);

/// Repeats `call` with pauses that double from 1 s to 60 s, at most `attempts_max` times where
/// that is set. Whoever calls races this against what may end the wait.
///
/// # Errors
/// The last attempt's, or the first that says the call can never succeed.
pub(super) async fn insist<T, F, Fut>(
    what: &str,
    attempts_max: Option<usize>,
    clock: &Clock,
    call: F,
) -> Result<T>
where
    F: FnMut() -> Fut,
    Fut: Future<Output = Result<T>>,
{
    let pauses = ExponentialBuilder::new()
        .with_min_delay(PAUSE_MIN)
        .with_max_delay(PAUSE_MAX)
        .with_factor(2.0)
        .with_jitter()
        .with_jitter_seed(clock.random());
    let pauses = match attempts_max {
        Some(attempts) => pauses.with_max_times(attempts.saturating_sub(1)),
        None => pauses.without_max_times(),
    };
    call.retry(pauses)
        .sleep(tokio::time::sleep)
        // A role may be granted and a queue created while we wait; a call too large stays so.
        .when(|error| !matches!(error, Error::TooLarge { .. } | Error::Invalid { .. }))
        .adjust(|error, pause| match error.retry() {
            Retry::After(at_least) => pause.map(|pause| pause.max(at_least)),
            Retry::Never => pause,
        })
        .notify(|error, pause| tracing::warn!(%error, error_kind = error.kind(), ?pause, "{what} failed, trying again"))
        .await
}

/// Sends a completion until it is durable, creating the queue if it is missing.
///
/// # Errors
/// As [`insist`].
pub(super) async fn publish(
    queues: &dyn QueueStore,
    queue: &str,
    completion: &Encoded,
    attempts_max: Option<usize>,
    clock: &Clock,
) -> Result<()> {
    insist("sending a completion", attempts_max, clock, || {
        send_creating(queues, queue, &completion.text, &completion.id)
    })
    .await
}

/// Sends one message; creates the queue first if it is missing.
pub(super) async fn send_creating(
    queues: &dyn QueueStore,
    queue: &str,
    body: &str,
    id: &str,
) -> Result<()> {
    let message = OutgoingMessage::new(body).with_id(id);
    let sent = send_one(queues, queue, message.clone()).await;
    if !matches!(sent, Err(Error::NotFound { .. })) {
        return sent;
    }
    queues.create_queue(queue).await?;
    send_one(queues, queue, message).await
}

async fn send_one(queues: &dyn QueueStore, queue: &str, message: OutgoingMessage) -> Result<()> {
    queues
        .send(queue, vec![message])
        .await
        .into_iter()
        .collect()
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;
    use crate::clock::Timestamp;

    fn unavailable() -> Error {
        Error::Unavailable {
            message: "down".to_owned(),
            source: None,
        }
    }

    #[tokio::test(start_paused = true)]
    async fn pauses_grow_to_a_minute_and_never_end() {
        let clock = Clock::simulated(Timestamp::default(), 1);
        let calls = Cell::new(0);
        let result = insist("a call", None, &clock, async || {
            calls.set(calls.get() + 1);
            if calls.get() < 100 {
                Err(unavailable())
            } else {
                Ok(())
            }
        })
        .await;
        assert!(result.is_ok());
        let waited = clock.now().since(Timestamp::default()).as_secs();
        assert!((90 * 60..=100 * 121).contains(&waited), "{waited} s");
    }

    #[tokio::test(start_paused = true)]
    async fn the_number_of_attempts_can_be_bounded() {
        let clock = Clock::simulated(Timestamp::default(), 1);
        for attempts in [1, 3] {
            let calls = Cell::new(0);
            let result: Result<()> = insist("a call", Some(attempts), &clock, async || {
                calls.set(calls.get() + 1);
                Err(unavailable())
            })
            .await;
            assert!(result.is_err());
            assert_eq!(calls.get(), attempts);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn what_can_never_succeed_is_tried_once() {
        let clock = Clock::simulated(Timestamp::default(), 1);
        let calls = Cell::new(0);
        let result: Result<()> = insist("a call", None, &clock, async || {
            calls.set(calls.get() + 1);
            Err(Error::Invalid {
                message: "bad name".to_owned(),
            })
        })
        .await;
        assert!(result.is_err());
        assert_eq!(calls.get(), 1);
    }
}
