//! Workers and coordinators inside this process, as `run`, `serve` and `worker` host them.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use clap::Args;

use super::exit::Failure;
use super::{GlobalArgs, duration, open};
use crate::clock::Clock;
use crate::config::{FilesSpec, QueuesSpec, StorageSpec};
use crate::coordinator::{CoordinatorConfig, HolderInfo, OnHeld};
use crate::limits::WORKER_PARALLEL_MAX;
use crate::storage::observed::{Call, Observed, Observer};
use crate::store::WorkflowStore;
use crate::telemetry::Metrics;
use crate::worker::{ShellRunner, StoredStates, Worker, WorkerConfig};
use crate::workflow::QueueName;

/// Settings of a worker, wherever it runs.
#[derive(Debug, Clone, Args)]
pub(super) struct WorkerSettings {
    /// How long a task stays with a silent worker before another one gets it.
    #[arg(long, default_value = "60s", value_parser = duration::parse, value_name = "DURATION")]
    visibility_timeout: Duration,
    /// How often a running workflow's cancel is looked for.
    #[arg(
        long,
        env = "JOBQ_CANCEL_POLL_INTERVAL",
        default_value = "30s",
        value_parser = duration::parse,
        value_name = "DURATION"
    )]
    cancel_poll_interval: Duration,
    /// How long a command may take to end after SIGTERM before it gets SIGKILL.
    #[arg(
        long,
        env = "JOBQ_KILL_TIMEOUT",
        default_value = "10m",
        value_parser = duration::parse,
        value_name = "DURATION"
    )]
    kill_timeout: Duration,
    /// The longest pause between looks at empty queues, where the storage cannot wait by itself.
    #[arg(
        long,
        env = "JOBQ_MAX_IDLE_BACKOFF",
        default_value = "30s",
        value_parser = duration::parse,
        value_name = "DURATION"
    )]
    max_idle_backoff: Duration,
    /// How often a completion is sent before its task is left to another delivery; no bound unless
    /// given.
    #[arg(long, env = "JOBQ_COMPLETION_SEND_MAX_ATTEMPTS", value_name = "N")]
    completion_send_max_attempts: Option<usize>,
}

/// A worker of this process for some queues.
pub(super) fn worker(
    global: &GlobalArgs,
    store: &WorkflowStore,
    clock: &Clock,
    queues: Vec<QueueName>,
    parallel: usize,
    settings: &WorkerSettings,
) -> Result<Worker, Failure> {
    let this = HolderInfo::of_this_process(clock.now());
    let mut config = WorkerConfig::new(queues, format!("{}/{}", this.host, this.pid));
    config.parallel = parallel;
    config.visibility_timeout = settings.visibility_timeout;
    config.cancel_poll_interval = settings.cancel_poll_interval;
    config.idle_backoff_max = settings.max_idle_backoff;
    config.completion_send_attempts_max = settings.completion_send_max_attempts;
    let runner = ShellRunner::new(settings.kill_timeout).with_env(task_environment(global)?);
    if let Some(files) = &global.file_storage {
        config.files_container.clone_from(&files.container);
    }
    let worker = Worker::new(
        config,
        store.storage().clone(),
        store.names().clone(),
        Arc::new(StoredStates::new(store.clone())),
        Arc::new(runner),
        clock.clone(),
    );
    let worker = worker.map_err(|error| Failure::Usage(error.to_string()))?;
    match &global.file_storage {
        None => Ok(worker),
        Some(files) => Ok(worker.with_files(open::storage(&files.storage, clock)?.blobs)),
    }
}

/// What lets `jobq` inside a task's command find the same storage and itself.
fn task_environment(global: &GlobalArgs) -> Result<Vec<(String, String)>, Failure> {
    let absolute = |spec: &StorageSpec| match spec {
        // The command may run in another directory.
        StorageSpec::Sqlite(directory) => std::path::absolute(directory).map(StorageSpec::Sqlite),
        // What else they need is in the environment that the command inherits.
        other => Ok(other.clone()),
    };
    let mut environment = vec![
        (
            "JOBQ_STORAGE".to_owned(),
            absolute(&global.storage)?.to_string(),
        ),
        ("JOBQ_PREFIX".to_owned(), global.prefix.to_string()),
    ];
    if let Some(QueuesSpec(spec)) = &global.queue_storage {
        environment.push((
            "JOBQ_WORKFLOW_QUEUES".to_owned(),
            absolute(spec)?.to_string(),
        ));
    }
    if let Some(files) = &global.file_storage {
        let files = FilesSpec {
            storage: absolute(&files.storage)?,
            container: files.container.clone(),
        };
        environment.push(("JOBQ_WORKFLOW_BLOBS".to_owned(), files.to_string()));
    }
    let executable = std::env::current_exe().ok();
    if let Some(directory) = executable.as_deref().and_then(Path::parent) {
        let path = std::env::var("PATH").unwrap_or_default();
        environment.push(("PATH".to_owned(), format!("{path}:{}", directory.display())));
    }
    Ok(environment)
}

/// The metrics of this process.
pub(super) fn metrics(clock: &Clock) -> Metrics {
    #[expect(
        clippy::cast_precision_loss,
        reason = "microseconds of this century fit 53 bits"
    )]
    let started_at_s = clock.now().as_micros() as f64 / 1e6;
    Metrics::new(started_at_s)
}

#[derive(Debug)]
struct StorageMetrics(Metrics);

impl Observer for StorageMetrics {
    fn called(&self, call: &Call<'_>) {
        self.0.storage(call.operation, call.outcome, call.took);
    }
}

/// The same store, whose calls to the storage are measured.
pub(super) fn observed(store: &WorkflowStore, metrics: &Metrics) -> WorkflowStore {
    let observer = Arc::new(StorageMetrics(metrics.clone()));
    let storage = Observed::storage(store.storage().clone(), observer);
    WorkflowStore::new(storage, store.names().clone())
}

/// Settings for the coordinator of this process.
pub(super) fn coordinator_config(global: &GlobalArgs, on_held: OnHeld) -> CoordinatorConfig {
    let single_machine = matches!(global.storage, StorageSpec::Sqlite(_));
    CoordinatorConfig {
        on_held,
        single_machine,
        ..CoordinatorConfig::default()
    }
}

/// As many commands at once as the machine has processors.
pub(super) fn parallel_default() -> usize {
    std::thread::available_parallelism()
        .map_or(1, usize::from)
        .min(WORKER_PARALLEL_MAX)
}

/// Checks a number of commands at once.
pub(super) fn parse_parallel(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(parallel @ 1..=WORKER_PARALLEL_MAX) => Ok(parallel),
        _ => Err(format!("must be a number from 1 to {WORKER_PARALLEL_MAX}")),
    }
}
