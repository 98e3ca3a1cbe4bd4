//! One command from its start to its end, stopped early where that is called for.

use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::Shared;
use super::cancel_watch::Watched;
use super::heartbeat::Held;
use super::runner::{RunOutcome, StopSignal};
use crate::wire::TaskMessage;

/// A command that ended while its message was still held.
pub(super) struct Finished {
    pub(super) held: Held,
    pub(super) outcome: RunOutcome,
    /// Whether it was asked to end because its workflow was cancelled.
    pub(super) cancelled: bool,
}

/// Runs a task. `None` if there is nothing to report any more: the message is lost, or it was
/// given back because the worker is to stop. Returns only once the command has ended.
pub(super) async fn supervise(
    shared: &Shared,
    held: Held,
    task: &TaskMessage,
    watched: Option<&Watched>,
    shutdown: &CancellationToken,
) -> Option<Finished> {
    if shutdown.is_cancelled() {
        give_back(shared, held).await;
        return None;
    }
    let stop = StopSignal::default();
    let run = shared.runner.run(task, stop.clone());
    tokio::pin!(run);
    let mut cancelled = false;
    let outcome = loop {
        tokio::select! {
            biased;
            outcome = &mut run => break outcome,
            () = held.lost() => {
                tracing::warn!("another worker may have the task, stopping it");
                shared.stats.lost();
                stop.stop();
                run.await;
                return None;
            }
            () = shutdown.cancelled() => {
                stop.stop();
                // The message does not wait for the command: it may take long to end, and another
                // worker can start meanwhile.
                tokio::join!(give_back(shared, held), run);
                return None;
            }
            () = seen(watched), if !cancelled => {
                tracing::info!("the workflow was cancelled, stopping the task");
                cancelled = true;
                stop.stop();
            }
        }
    };
    Some(Finished {
        held,
        outcome,
        cancelled,
    })
}

async fn seen(watched: Option<&Watched>) {
    match watched {
        Some(watched) => watched.cancelled().await,
        None => std::future::pending().await,
    }
}

/// Gives a message back because this worker is to stop.
pub(super) async fn give_back(shared: &Shared, held: Held) {
    shared.stats.given_back();
    if let Err(error) = held.give_back(Duration::ZERO).await {
        tracing::warn!(%error, error_kind = error.kind(), "a message could not be given back, it reappears by itself");
    }
}
