//! Tasks that belong to no workflow: the queue alone keeps their record.

use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::Shared;
use super::dead_letter::bury;
use super::heartbeat::Held;
use super::supervise::{Finished, supervise};
use crate::wire::TaskMessage;

/// Runs a plain task: deleted after success, given back after a failure that leaves it an attempt,
/// else moved to the dead letters. `num_retries` more attempts follow the first.
pub(super) async fn run_plain(
    shared: &Shared,
    held: Held,
    task: &TaskMessage,
    dequeue_count: u32,
    shutdown: &CancellationToken,
) {
    let Some(Finished { held, outcome, .. }) = supervise(shared, held, task, None, shutdown).await
    else {
        return;
    };
    if outcome.is_success() {
        shared.stats.succeeded();
        if let Err(error) = held.delete().await {
            tracing::warn!(%error, error_kind = error.kind(), "a finished task could not be deleted");
        }
        return;
    }
    shared.stats.failed();
    let failure = outcome.failure();
    if dequeue_count > task.num_retries {
        bury(shared, held, &task.id, &failure).await;
        return;
    }
    tracing::info!(error = failure, "a plain task failed, it will be run again");
    if let Err(error) = held.give_back(Duration::ZERO).await {
        tracing::warn!(%error, error_kind = error.kind(), "not given back, the message reappears by itself");
    }
}
