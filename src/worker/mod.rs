//! Runs tasks from queues and reports how they ended.
//!
//! ```text
//!   intake ── as many messages as slots are free ──► one task each:
//!
//!   decode ─► delivered before? ask the state ─► run the command ─► store log and output
//!     │                │                           │  ▲  ▲  ▲              │
//!     ▼                ▼                           │  │  │  │              ▼
//!   unreadable:      over already:                 │  │  │ shutdown     publish the completion
//!   dead letters     drop                          │  │ cancel watch      │
//!                                                  │ heartbeat: lost      ▼
//!                                                  ▼                   delete the message
//!                                    SIGTERM, later SIGKILL
//! ```
//!
//! | file | what it does |
//! | --- | --- |
//! | `intake` | receives from all queues in turn |
//! | `heartbeat` | `Held`: a message kept from other workers |
//! | `attempt`, `plain` | the journey of a workflow's task, of any other task |
//! | `supervise` | one command, and what may stop it |
//! | `cancel_watch` | polls the cancel flags of the workflows that run here |
//! | `runner`, `shell` | the [`Runner`] seam; the runner of shell commands |
//! | `output` | outputs and file outputs into their containers |
//! | `publish`, `dead_letter` | what is sent: completions until they arrive, unusable messages |
//! | `task_states`, `stored_states` | [`TaskStates`]: what must be answered; [`StoredStates`]: how the store does |
//!
//! Callers: `cli`, tests, benchmarks.
//!
//! Invariants: a message is deleted only after its completion is durable, or when it is certain
//! that nobody waits for one. A message that is lost is never reported on. Every failure but that
//! of the storage is reported, so no workflow waits for a worker's problem. Timeouts and retries
//! of workflow tasks are the coordinator's: each delivery is one attempt.

mod attempt;
mod cancel_watch;
mod config;
mod dead_letter;
mod heartbeat;
mod intake;
mod output;
mod plain;
mod publish;
mod runner;
mod shell;
mod stats;
mod stored_states;
mod supervise;
mod task_states;

pub use config::{ConfigError, WorkerConfig};
pub use runner::{Ending, NoopRunner, RunOutcome, Runner, StopSignal};
pub use shell::ShellRunner;
pub use stats::{WorkerCounts, WorkerStats};
pub use stored_states::StoredStates;
pub use task_states::{AttemptStatus, TaskStates};

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;
use tracing::Instrument as _;

use self::cancel_watch::CancelWatch;
use self::heartbeat::Held;
use self::intake::Intake;
use crate::clock::Clock;
use crate::storage::{BlobStore, Message, Storage};
use crate::wire::{Names, Poison, TaskMessage};
use crate::workflow::QueueName;

/// A worker: runs the tasks of its queues until it is told to stop.
pub struct Worker {
    shared: Arc<Shared>,
}

/// What all tasks of a worker use.
struct Shared {
    config: WorkerConfig,
    storage: Storage,
    files: Arc<dyn BlobStore>,
    names: Names,
    states: Arc<dyn TaskStates>,
    runner: Arc<dyn Runner>,
    clock: Clock,
    stats: Arc<WorkerStats>,
    cancels: CancelWatch,
}

impl Worker {
    /// A worker on `storage`. File outputs go there too; see [`with_files`](Self::with_files).
    ///
    /// # Errors
    /// When a setting is outside its range.
    pub fn new(
        config: WorkerConfig,
        storage: Storage,
        names: Names,
        states: Arc<dyn TaskStates>,
        runner: Arc<dyn Runner>,
        clock: Clock,
    ) -> Result<Self, ConfigError> {
        config.check()?;
        Ok(Self {
            shared: Arc::new(Shared {
                config,
                files: storage.blobs.clone(),
                storage,
                names,
                states,
                runner,
                clock,
                stats: Arc::default(),
                cancels: CancelWatch::default(),
            }),
        })
    }

    /// The same worker, with file outputs in another account.
    ///
    /// # Panics
    /// Once the worker runs.
    #[must_use]
    pub fn with_files(mut self, files: Arc<dyn BlobStore>) -> Self {
        let shared = Arc::get_mut(&mut self.shared).expect("only a running worker is shared");
        shared.files = files;
        self
    }

    /// What the worker did so far. Stays valid while and after the worker runs.
    #[must_use]
    pub fn stats(&self) -> Arc<WorkerStats> {
        self.shared.stats.clone()
    }

    /// Runs tasks until `shutdown`. Then it receives no more, asks its commands to end, gives
    /// their messages back at once, and returns when the commands have ended. Storage errors never
    /// end it.
    pub async fn run(self, shutdown: CancellationToken) {
        let Self { shared } = self;
        let _polling = AbortOnDropHandle::new(tokio::spawn({
            let shared = shared.clone();
            async move {
                let interval = shared.config.cancel_poll_interval;
                shared
                    .cancels
                    .poll(&*shared.states, &shared.clock, interval)
                    .await;
            }
        }));
        let mut tasks = JoinSet::new();
        let slots = Arc::new(Semaphore::new(shared.config.parallel));
        let mut intake = Intake::new(&shared);
        intake.create_queues().await;
        while let Some(free) = free_slots(&slots, &shutdown).await {
            let received = intake.receive(free.num_permits(), &shutdown).await;
            start_tasks(&mut tasks, &shared, received, free, &shutdown);
            while let Some(ended) = tasks.try_join_next() {
                report_panic(ended);
            }
        }
        while let Some(ended) = tasks.join_next().await {
            report_panic(ended);
        }
    }
}

/// All slots that are free, once there is one; `None` on shutdown.
async fn free_slots(
    slots: &Arc<Semaphore>,
    shutdown: &CancellationToken,
) -> Option<OwnedSemaphorePermit> {
    let mut free = tokio::select! {
        biased;
        () = shutdown.cancelled() => return None,
        permit = slots.clone().acquire_owned() => permit.ok()?,
    };
    let more = u32::try_from(slots.available_permits()).unwrap_or(u32::MAX);
    if let Ok(more) = slots.clone().try_acquire_many_owned(more) {
        free.merge(more);
    }
    Some(free)
}

fn start_tasks(
    tasks: &mut JoinSet<()>,
    shared: &Arc<Shared>,
    received: Vec<(QueueName, Message)>,
    mut free: OwnedSemaphorePermit,
    shutdown: &CancellationToken,
) {
    for (queue, message) in received {
        let slot = free.split(1);
        let shared = shared.clone();
        let shutdown = shutdown.clone();
        tasks.spawn(async move {
            handle(&shared, queue, message, &shutdown).await;
            drop(slot);
        });
    }
}

/// Takes one message to its end. Whatever is logged meanwhile says what it is about.
async fn handle(shared: &Shared, queue: QueueName, message: Message, shutdown: &CancellationToken) {
    let decoded = TaskMessage::decode(&message.body);
    let about = match decoded
        .as_ref()
        .map(|task| (&task.id, task.workflow.as_ref()))
    {
        Ok((_, Some(task))) => tracing::error_span!(
            "attempt",
            workflow_id = %task.workflow_id,
            task = %task.task,
            attempt_no = task.attempt_no,
            %queue
        ),
        Ok((id, None)) => tracing::error_span!("plain task", message_id = id, %queue),
        Err(_) => {
            let id = &message.receipt.message_id;
            tracing::error_span!("unreadable message", message_id = id, %queue)
        }
    };
    let handled = handle_decoded(shared, queue, message, decoded, shutdown);
    handled.instrument(about).await;
}

async fn handle_decoded(
    shared: &Shared,
    queue: QueueName,
    message: Message,
    decoded: Result<TaskMessage, Poison>,
    shutdown: &CancellationToken,
) {
    let dequeue_count = message.dequeue_count;
    let message_id = message.receipt.message_id.clone();
    let visibility = shared.config.visibility_timeout;
    let held = Held::start(shared.storage.queues.clone(), queue, message, visibility);
    match decoded {
        Err(poison) => {
            shared.stats.poison();
            dead_letter::bury(shared, held, &message_id, poison.reason()).await;
        }
        Ok(mut task) => match task.workflow.take() {
            Some(workflow) => {
                let attempt =
                    attempt::run_attempt(shared, held, task, workflow, dequeue_count, shutdown);
                attempt.await;
            }
            None => plain::run_plain(shared, held, &task, dequeue_count, shutdown).await,
        },
    }
}

/// A task of ours that panicked is a bug, but no reason to stop the others; its message reappears.
fn report_panic(ended: Result<(), tokio::task::JoinError>) {
    if let Err(error) = ended {
        tracing::error!(%error, "a task ended by a bug, its message will reappear");
    }
}

#[cfg(test)]
mod tests;
