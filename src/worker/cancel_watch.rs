//! Watches the cancel flags of the workflows whose commands run here.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures::StreamExt as _;
use futures::stream;
use tokio_util::sync::CancellationToken;

use super::TaskStates;
use crate::clock::Clock;
use crate::limits::CANCEL_POLLS_AT_ONCE_MAX;
use crate::workflow::WorkflowId;

/// The workflows watched, each with the number of commands that watch it. One poll serves all
/// commands of a workflow.
#[derive(Clone, Default)]
pub(super) struct CancelWatch {
    watched: Arc<Mutex<HashMap<WorkflowId, Entry>>>,
}

struct Entry {
    commands: usize,
    cancelled: CancellationToken,
}

/// One command's interest in its workflow; dropping it ends the interest.
pub(super) struct Watched {
    watch: CancelWatch,
    workflow: WorkflowId,
    cancelled: CancellationToken,
}

impl CancelWatch {
    /// Watches a workflow from the next poll on.
    pub(super) fn watch(&self, workflow: &WorkflowId) -> Watched {
        let mut watched = self.lock();
        let entry = watched.entry(workflow.clone()).or_insert_with(|| Entry {
            commands: 0,
            cancelled: CancellationToken::new(),
        });
        entry.commands += 1;
        Watched {
            watch: self.clone(),
            workflow: workflow.clone(),
            cancelled: entry.cancelled.clone(),
        }
    }

    /// Polls for ever, every `interval` give or take a tenth, so that many workers that started
    /// together do not ask together.
    pub(super) async fn poll(&self, states: &dyn TaskStates, clock: &Clock, interval: Duration) {
        loop {
            tokio::time::sleep(clock.jitter(interval, 0.1)).await;
            let open: Vec<(WorkflowId, CancellationToken)> = self
                .lock()
                .iter()
                .filter(|(_, entry)| !entry.cancelled.is_cancelled())
                .map(|(workflow, entry)| (workflow.clone(), entry.cancelled.clone()))
                .collect();
            stream::iter(open)
                .for_each_concurrent(
                    CANCEL_POLLS_AT_ONCE_MAX,
                    |(workflow, cancelled)| async move {
                        if states.is_cancelled(&workflow).await {
                            cancelled.cancel();
                        }
                    },
                )
                .await;
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<WorkflowId, Entry>> {
        self.watched.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Watched {
    /// Returns once the workflow's cancel was seen.
    pub(super) async fn cancelled(&self) {
        self.cancelled.cancelled().await;
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        let mut watched = self.watch.lock();
        if let Some(entry) = watched.get_mut(&self.workflow) {
            entry.commands -= 1;
            if entry.commands == 0 {
                watched.remove(&self.workflow);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use async_trait::async_trait;

    use super::*;
    use crate::clock::Timestamp;
    use crate::storage;
    use crate::wire::UpstreamRefs;
    use crate::worker::AttemptStatus;
    use crate::workflow::TaskName;

    #[derive(Default)]
    struct CancelledFromThirdPoll {
        polls: AtomicUsize,
    }

    #[async_trait]
    impl TaskStates for CancelledFromThirdPoll {
        async fn attempt_status(&self, _: &crate::wire::WorkflowTask) -> AttemptStatus {
            AttemptStatus::Unknown
        }

        async fn is_cancelled(&self, _: &WorkflowId) -> bool {
            self.polls.fetch_add(1, Ordering::SeqCst) + 1 >= 3
        }

        async fn upstream_refs(
            &self,
            _: &WorkflowId,
            _: &TaskName,
        ) -> storage::Result<UpstreamRefs> {
            Ok(UpstreamRefs::default())
        }
    }

    #[tokio::test(start_paused = true)]
    async fn one_poll_serves_all_commands_of_a_workflow() {
        let states = CancelledFromThirdPoll::default();
        let clock = Clock::simulated(Timestamp::default(), 1);
        let watch = CancelWatch::default();
        let workflow = WorkflowId::parse("w").unwrap();
        let commands = [watch.watch(&workflow), watch.watch(&workflow)];
        tokio::select! {
            () = watch.poll(&states, &clock, Duration::from_secs(30)) => {}
            () = async { for command in &commands { command.cancelled().await } } => {}
        }
        assert_eq!(states.polls.load(Ordering::SeqCst), 3);
        let waited = clock.now().since(Timestamp::default());
        assert!((81..=99).contains(&waited.as_secs()), "{waited:?}");
        drop(commands);
        assert!(watch.lock().is_empty());
    }
}
