//! The acker: deletes completion messages whose effect is durable.
//!
//! It works beside the actors, so that a workflow's next cycle need not wait for the deletes of
//! the last, and deletes of many workflows share a round trip.

use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::lease::Fence;
use crate::storage::{self, Receipt};
use crate::store::WorkflowStore;

/// Batches of receipts waiting to be deleted. A full channel holds the actors back, which is
/// right: work that cannot be acknowledged would only be repeated.
const WAITING_MAX: usize = 1_024;

/// Receipts deleted in one call to the queue.
const BATCH_MAX: usize = 4_096;

/// Where actors hand their receipts in.
pub(super) type Acknowledgements = mpsc::Sender<Vec<Receipt>>;

pub(super) struct Acker {
    store: WorkflowStore,
    fence: Fence,
    inbox: mpsc::Receiver<Vec<Receipt>>,
}

impl Acker {
    pub(super) fn new(store: &WorkflowStore, fence: Fence) -> (Self, Acknowledgements) {
        let (sender, inbox) = mpsc::channel(WAITING_MAX);
        (
            Self {
                store: store.clone(),
                fence,
                inbox,
            },
            sender,
        )
    }

    /// Deletes what comes in until it is told to stop; then what has come in by that time.
    pub(super) async fn run(mut self, stop: CancellationToken) {
        loop {
            let first = tokio::select! {
                biased;
                first = self.inbox.recv() => first,
                () = stop.cancelled() => None,
            };
            let Some(first) = first else { return };
            let mut receipts = first;
            while receipts.len() < BATCH_MAX
                && let Ok(more) = self.inbox.try_recv()
            {
                receipts.extend(more);
            }
            self.acknowledge(receipts).await;
        }
    }

    async fn acknowledge(&self, receipts: Vec<Receipt>) {
        if !self.fence.holds() {
            return;
        }
        let queue = self.store.names().completion_queue();
        for deleted in self.store.storage().queues.delete(queue, receipts).await {
            match deleted {
                // Gone, or visible again: then it is a duplicate at its next delivery.
                Ok(())
                | Err(storage::Error::ReceiptLost { .. } | storage::Error::NotFound { .. }) => {}
                Err(error) => {
                    tracing::warn!(%error, error_kind = error.kind(), "cannot acknowledge a completion");
                }
            }
        }
    }
}
