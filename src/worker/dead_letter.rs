//! Messages no worker can use, moved out of the way.

use super::Shared;
use super::heartbeat::Held;
use super::publish::send_creating;
use crate::storage::{Error, Result};
use crate::wire::Names;

/// Moves a message to the dead-letter queue of its queue, as it is. Where that fails for now the
/// message reappears and is moved then.
pub(super) async fn bury(shared: &Shared, held: Held, id: &str, reason: &str) {
    let queue = held.queue().clone();
    tracing::warn!(
        message_id = id,
        error = reason,
        "moving a message to the dead letters"
    );
    let dead_letters = Names::dead_letter_queue(&queue);
    let queues = &*shared.storage.queues;
    match send_creating(queues, &dead_letters, held.body(), id).await {
        Ok(()) => shared.stats.dead_lettered(),
        Err(error @ (Error::Invalid { .. } | Error::TooLarge { .. })) => {
            // No later try could do better, and a message that is never removed would be received
            // for ever.
            tracing::error!(%error, error_kind = error.kind(), "no dead letters for this queue, dropping the message");
        }
        Err(error) => {
            tracing::warn!(%error, error_kind = error.kind(), "not moved, the message reappears by itself");
            return;
        }
    }
    log_leftover(held.delete().await);
}

fn log_leftover(deleted: Result<()>) {
    if let Err(error) = deleted {
        tracing::warn!(%error, error_kind = error.kind(), "a message that was dealt with could not be deleted");
    }
}
