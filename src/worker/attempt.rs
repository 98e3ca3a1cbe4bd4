//! One attempt of a workflow's task: from its message to its completion.

use std::path::Path;
use std::time::Duration;

use tokio_util::sync::CancellationToken;
use tracing::{Instrument as _, Span, field};

use super::heartbeat::Held;
use super::output::{OutputError, OutputStore, fits_inline, put_creating};
use super::publish::publish;
use super::runner::RunOutcome;
use super::supervise::{Finished, give_back, supervise};
use super::{AttemptStatus, Shared};
use crate::clock::Timestamp;
use crate::limits::ERROR_BYTES_MAX;
use crate::storage;
use crate::telemetry::trace;
use crate::wire::{
    CompletionMessage, Encoded, Names, OutputRef, TaskMessage, UpstreamRefs, WorkflowTask,
    bounded_text,
};

/// How long an attempt is put off when the state it needs cannot be read.
const PUT_OFF: Duration = Duration::from_secs(5);

/// How long a report that is under way may take once the worker is to stop: the work is done, and
/// a few seconds save doing it again.
const REPORT_GRACE: Duration = Duration::from_secs(5);

/// How long storing an attempt's log may hold up its completion.
const LOG_PATIENCE: Duration = Duration::from_secs(10);

/// Takes a message of a workflow to its end: reported and deleted, dropped, or left to reappear.
pub(super) async fn run_attempt(
    shared: &Shared,
    held: Held,
    message: TaskMessage,
    mut task: WorkflowTask,
    dequeue_count: u32,
    shutdown: &CancellationToken,
) {
    let span = tracing::info_span!(
        target: trace::TARGET,
        "attempt",
        otel.kind = "consumer",
        workflow_id = %task.workflow_id,
        task = %task.task,
        attempt_no = task.attempt_no,
        queue = %held.queue(),
        worker_id = shared.config.worker_id,
        delivery = dequeue_count,
        exit_code = field::Empty,
    );
    trace::follow(&span, task.traceparent.as_deref());
    // What the command does, and what follows from it, comes after this span.
    task.traceparent = trace::traceparent_of(&span).or(task.traceparent);
    let attempt = run_traced(shared, held, message, task, dequeue_count, shutdown);
    attempt.instrument(span).await;
}

async fn run_traced(
    shared: &Shared,
    held: Held,
    mut message: TaskMessage,
    mut task: WorkflowTask,
    dequeue_count: u32,
    shutdown: &CancellationToken,
) {
    let upstream = task.upstream.take();
    let attempt = Attempt {
        shared,
        shutdown,
        started_at: shared.clock.now(),
        task,
    };
    if dequeue_count > 1 {
        match attempt.status().await {
            AttemptStatus::Current | AttemptStatus::Unknown => {}
            AttemptStatus::Stale => return attempt.drop_stale(held).await,
            AttemptStatus::Cancelled => return attempt.report_cancelled(held).await,
        }
    }
    let upstream = match upstream {
        Some(upstream) => upstream,
        None => match attempt.upstream_from_state().await {
            Ok(upstream) => upstream,
            Err(error) => return attempt.put_off(held, &error).await,
        },
    };
    message.workflow = Some(WorkflowTask {
        upstream: Some(upstream),
        ..attempt.task.clone()
    });
    let watched = shared.cancels.watch(&attempt.task.workflow_id);
    let run = supervise(shared, held, &message, Some(&watched), shutdown);
    if let Some(finished) = run.await {
        attempt.report(finished).await;
    }
}

/// A completion ready to be sent.
struct Report {
    message: Encoded,
    success: bool,
}

impl Report {
    /// The report of a completion without an inline output.
    fn of(completion: &CompletionMessage) -> Self {
        Self {
            message: encode(completion),
            success: completion.success,
        }
    }
}

struct Attempt<'a> {
    shared: &'a Shared,
    shutdown: &'a CancellationToken,
    started_at: Timestamp,
    /// The attempt's identity; its upstream outputs are in the message that is run.
    task: WorkflowTask,
}

impl Attempt<'_> {
    async fn status(&self) -> AttemptStatus {
        let task = &self.task;
        let states = &self.shared.states;
        states.attempt_status(task).await
    }

    async fn upstream_from_state(&self) -> storage::Result<UpstreamRefs> {
        let task = &self.task;
        let states = &self.shared.states;
        states.upstream_refs(&task.workflow_id, &task.task).await
    }

    /// The state cannot be read now, and without it the command would see wrong inputs.
    async fn put_off(&self, held: Held, error: &storage::Error) {
        tracing::warn!(task = %self.id(), %error, "upstream outputs unknown, putting the task off");
        if let Err(error) = held.give_back(PUT_OFF).await {
            tracing::warn!(task = %self.id(), %error, "not given back, it reappears by itself");
        }
    }

    async fn drop_stale(&self, held: Held) {
        tracing::info!(task = %self.id(), "the attempt is over already, dropping its message");
        self.shared.stats.stale();
        self.delete(held).await;
    }

    /// Ends an attempt that must not start any more. The coordinator waits for its completion.
    async fn report_cancelled(&self, held: Held) {
        self.shared.stats.cancelled();
        let mut completion = self.completion();
        completion.error = Some("cancelled before it was run".to_owned());
        self.send_and_delete(held, async { Ok(Report::of(&completion)) })
            .await;
    }

    async fn report(&self, finished: Finished) {
        let Finished {
            held,
            outcome,
            cancelled,
        } = finished;
        if cancelled {
            self.shared.stats.cancelled();
        }
        let completion = async {
            self.store_log(&outcome).await;
            self.complete(&outcome, cancelled).await
        };
        self.send_and_delete(held, completion).await;
    }

    /// Sends what `report` yields and deletes the message after that, for as long as the
    /// message is ours and the worker may go on.
    async fn send_and_delete(
        &self,
        held: Held,
        report: impl Future<Output = storage::Result<Report>>,
    ) {
        let Shared {
            storage,
            names,
            config,
            clock,
            ..
        } = self.shared;
        let report = async {
            let report = report.await?;
            let attempts_max = config.completion_send_attempts_max;
            let queue = names.completion_queue();
            publish(
                &*storage.queues,
                queue,
                &report.message,
                attempts_max,
                clock,
            )
            .await?;
            Ok::<bool, storage::Error>(report.success)
        };
        let out_of_time = async {
            self.shutdown.cancelled().await;
            tokio::time::sleep(REPORT_GRACE).await;
        };
        let reported = tokio::select! {
            biased;
            reported = report => reported,
            () = held.lost() => {
                tracing::warn!(task = %self.id(), "another worker may have the task, not reporting");
                self.shared.stats.lost();
                return;
            }
            () = out_of_time => return give_back(self.shared, held).await,
        };
        match reported {
            Ok(success) => {
                if success {
                    self.shared.stats.succeeded();
                } else {
                    self.shared.stats.failed();
                }
                self.delete(held).await;
            }
            Err(error) => {
                tracing::error!(task = %self.id(), %error, "not reported, the task will run again");
                self.shared.stats.unreported();
            }
        }
    }

    async fn delete(&self, held: Held) {
        if let Err(error) = held.delete().await {
            // It will be delivered again, found to be over, and dropped.
            tracing::warn!(task = %self.id(), %error, "the task's message could not be deleted");
        }
    }

    async fn complete(&self, outcome: &RunOutcome, cancelled: bool) -> storage::Result<Report> {
        let mut completion = self.completion();
        completion.exit_code = outcome.ending.exit_code();
        Span::current().record("exit_code", completion.exit_code);
        if cancelled {
            completion.error = Some("cancelled while it was running".to_owned());
        } else if !outcome.is_success() {
            completion.error = Some(outcome.failure());
        } else {
            completion.success = true;
            match self.attach_output(&mut completion, outcome).await {
                Ok(message) => {
                    return Ok(Report {
                        message,
                        success: true,
                    });
                }
                Err(OutputError::Storage(error)) => return Err(error),
                Err(OutputError::Unusable(reason)) => {
                    completion.success = false;
                    completion.output_ref = None;
                    completion.error = Some(bounded_text(reason, ERROR_BYTES_MAX));
                }
            }
        }
        // Not what the command wrote: that may be long, and is not for every collector's eyes.
        let reason = match &outcome.ending {
            _ if cancelled => "cancelled".to_owned(),
            _ if outcome.is_success() => "its output cannot be used".to_owned(),
            ending => ending.to_string(),
        };
        trace::failed(&Span::current(), &reason);
        Ok(Report::of(&completion))
    }

    /// Adds the output to a completion: inline if the message can carry it, else by reference.
    async fn attach_output(
        &self,
        completion: &mut CompletionMessage,
        outcome: &RunOutcome,
    ) -> Result<Encoded, OutputError> {
        let output = match &outcome.output {
            Err(reason) => return Err(OutputError::Unusable(reason.clone())),
            Ok(None) => return Ok(encode(completion)),
            Ok(Some(output)) => output.trim(),
        };
        let store = self.output_store();
        let working_dir = outcome
            .working_dir
            .as_deref()
            .unwrap_or_else(|| Path::new("."));
        let output = store.upload_files(output, working_dir).await?;
        if fits_inline(&output) {
            completion.output_ref = Some(OutputRef::inline(&output));
            if let Ok(encoded) = completion.encode() {
                return Ok(encoded);
            }
        }
        completion.output_ref = Some(store.stash(output).await?);
        Ok(encode(completion))
    }

    fn output_store(&self) -> OutputStore<'_> {
        let shared = self.shared;
        OutputStore {
            workflow: &self.task.workflow_id,
            task: &self.task.task,
            outputs: (&*shared.storage.blobs, shared.names.outputs_container()),
            files: (&*shared.files, &shared.config.files_container),
            attempts_max: shared.config.completion_send_attempts_max,
            clock: &shared.clock,
        }
    }

    /// Stores what the command printed. A log is a help, not a result: one that cannot be stored
    /// in a while is given up.
    async fn store_log(&self, outcome: &RunOutcome) {
        let Some(log) = &outcome.log else { return };
        let shared = self.shared;
        let task = &self.task;
        let name = Names::attempt_log_blob(&task.workflow_id, &task.task, task.attempt_no);
        let store = async {
            let text = log.read().await.map_err(|error| error.to_string())?;
            let container = shared.names.outputs_container();
            let put = put_creating(&*shared.storage.blobs, container, &name, text);
            put.await.map_err(|error| error.to_string())
        };
        let stored = tokio::time::timeout(LOG_PATIENCE, store).await;
        let stored = stored.unwrap_or_else(|_| Err("no answer in time".to_owned()));
        if let Err(reason) = stored {
            tracing::warn!(task = %self.id(), reason, "the attempt's log was not stored");
        }
    }

    fn completion(&self) -> CompletionMessage {
        CompletionMessage {
            workflow_id: self.task.workflow_id.clone(),
            task_name: self.task.task.clone(),
            success: false,
            output_ref: None,
            error: None,
            attempt_no: Some(self.task.attempt_no),
            retry_no: Some(self.task.retry_no).filter(|retry_no| *retry_no > 0),
            exit_code: None,
            worker_id: Some(self.shared.config.worker_id.clone()),
            started_at: Some(self.started_at),
            finished_at: Some(self.shared.clock.now()),
            traceparent: self.task.traceparent.clone(),
        }
    }

    fn id(&self) -> String {
        self.task.message_id()
    }
}

/// Writes a completion without an inline output.
fn encode(completion: &CompletionMessage) -> Encoded {
    completion
        .encode()
        .expect("all its fields are bounded so that together they fit a message")
}
