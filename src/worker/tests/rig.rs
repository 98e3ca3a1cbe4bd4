//! A worker between a scripted storage and a scripted state, with the questions tests ask of it.

use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tokio::task::JoinHandle;

use super::backend::{Backend, Unused, take_one, unavailable};
use crate::storage::{QueueStore as _, Result};
use crate::wire::{CompletionMessage, Prefix, UpstreamRefs, WorkflowTask};
use crate::worker::*;
use crate::workflow::{TaskName, WorkflowId};

pub(super) const QUEUE: &str = "cpu";
pub(super) const COMPLETIONS: &str = "test-workflow-completions";
pub(super) const OUTPUTS: &str = "test-outputs";

/// Waits until `fact` holds; fails the test when it does not within ten seconds.
#[track_caller]
pub(in crate::worker) fn eventually(
    mut fact: impl AsyncFnMut() -> bool,
) -> impl Future<Output = ()> {
    let caller = std::panic::Location::caller();
    async move {
        for _ in 0..1_000 {
            if fact().await {
                return;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        panic!("still not the case after ten seconds: {caller}");
    }
}

/// What the state says of every task.
pub(super) struct States {
    pub(super) status: Mutex<AttemptStatus>,
    pub(super) cancelled: AtomicBool,
    pub(super) upstream: UpstreamRefs,
    /// How many reads of upstream outputs fail.
    pub(super) failures: AtomicUsize,
}

impl Default for States {
    fn default() -> Self {
        Self {
            status: Mutex::new(AttemptStatus::Current),
            cancelled: AtomicBool::new(false),
            upstream: UpstreamRefs::default(),
            failures: AtomicUsize::new(0),
        }
    }
}

#[async_trait]
impl TaskStates for States {
    async fn attempt_status(&self, _: &WorkflowTask) -> AttemptStatus {
        *self.status.lock().unwrap()
    }

    async fn is_cancelled(&self, _: &WorkflowId) -> bool {
        self.cancelled.load(Ordering::SeqCst)
    }

    async fn upstream_refs(&self, _: &WorkflowId, _: &TaskName) -> Result<UpstreamRefs> {
        if take_one(&self.failures) {
            return Err(unavailable());
        }
        Ok(self.upstream.clone())
    }
}

/// What a rig is built from; change what a test is about.
pub(super) struct Plan {
    pub(super) config: WorkerConfig,
    pub(super) states: States,
    pub(super) runner: Arc<dyn Runner>,
}

impl Default for Plan {
    fn default() -> Self {
        let mut config = WorkerConfig::new(vec![QueueName::parse(QUEUE).unwrap()], "worker-1");
        config.cancel_poll_interval = Duration::from_millis(50);
        config.idle_backoff_max = Duration::from_millis(20);
        Self {
            config,
            states: States::default(),
            runner: Arc::new(ShellRunner::new(Duration::from_secs(600))),
        }
    }
}

/// A running worker.
pub(super) struct Rig {
    pub(super) backend: Arc<Backend>,
    pub(super) states: Arc<States>,
    pub(super) stats: Arc<WorkerStats>,
    shutdown: CancellationToken,
    running: JoinHandle<()>,
    dir: tempfile::TempDir,
}

impl Rig {
    pub(super) fn start(plan: Plan) -> Self {
        Self::start_on(Arc::new(Backend::default()), plan)
    }

    pub(super) fn start_on(backend: Arc<Backend>, plan: Plan) -> Self {
        let states = Arc::new(plan.states);
        let worker = Worker::new(
            plan.config,
            Storage {
                blobs: backend.clone(),
                queues: backend.clone(),
                tables: Arc::new(Unused),
                leases: Arc::new(Unused),
            },
            Names::new(Prefix::parse("Test").unwrap()),
            states.clone(),
            plan.runner,
            Clock::system(),
        )
        .unwrap();
        let shutdown = CancellationToken::new();
        Self {
            backend,
            states,
            stats: worker.stats(),
            running: tokio::spawn(worker.run(shutdown.clone())),
            shutdown,
            dir: tempfile::tempdir().unwrap(),
        }
    }

    /// The directory all commands run in.
    pub(super) fn dir(&self) -> &Path {
        self.dir.path()
    }

    pub(super) fn file(&self, name: &str) -> Option<String> {
        std::fs::read_to_string(self.dir().join(name)).ok()
    }

    /// Sends the first attempt of a workflow's task that runs `cmd`.
    pub(super) async fn send(&self, cmd: &str) {
        self.backend
            .push(QUEUE, &task(cmd, self.dir(), Some(UpstreamRefs::default())))
            .await;
    }

    /// Sends a plain task.
    pub(super) async fn send_plain(&self, cmd: &str, num_retries: u32) {
        let kwargs = json!({"cmd": cmd, "cwd": self.dir()}).to_string();
        let envelope =
            json!({"version": 1, "kwargs": kwargs, "num_retries": num_retries, "id": "p"});
        self.backend.push(QUEUE, &envelope.to_string()).await;
    }

    /// Waits for the next completion and takes it from its queue.
    pub(super) async fn completion(&self) -> CompletionMessage {
        let mut body = None;
        eventually(async || {
            body = self.backend.pop(COMPLETIONS);
            body.is_some()
        })
        .await;
        CompletionMessage::decode(&body.unwrap()).unwrap()
    }

    /// Runs one command to its completion.
    pub(super) async fn complete(&self, cmd: &str) -> CompletionMessage {
        self.send(cmd).await;
        self.completion().await
    }

    /// Waits until a queue holds `count` messages, hidden ones included.
    pub(super) async fn holds(&self, queue: &str, count: u64) {
        eventually(async || self.backend.length(queue).await.unwrap_or(0) == count).await;
    }

    pub(super) async fn counts(&self, done: impl Fn(WorkerCounts) -> bool) {
        eventually(async || done(self.stats.counts())).await;
    }

    /// Tells the worker to stop, without waiting for it.
    pub(super) fn shut_down(&self) {
        self.shutdown.cancel();
    }

    /// Stops the worker; whatever it leaves undone stays in the storage.
    pub(super) async fn stop(self) {
        self.shutdown.cancel();
        self.running.await.unwrap();
    }
}

/// The message of the first attempt of a task that runs `cmd` in `dir`.
pub(super) fn task(cmd: &str, dir: &Path, upstream: Option<UpstreamRefs>) -> String {
    let kwargs = json!({"cmd": cmd, "cwd": dir}).to_string();
    let task = WorkflowTask {
        workflow_id: WorkflowId::parse("w").unwrap(),
        task: TaskName::parse("t").unwrap(),
        attempt_no: 1,
        retry_no: 0,
        upstream,
        traceparent: Some("00-1-2-01".to_owned()),
    };
    let message = TaskMessage::of_workflow(RawValue::from_string(kwargs).unwrap(), task);
    message.encode().unwrap().text
}

/// The output of a completion, wherever it is.
pub(super) fn output(backend: &Backend, completion: &CompletionMessage) -> Value {
    let output = completion.output_ref.as_ref().unwrap();
    match output.blob_path() {
        Some(path) => serde_json::from_slice(&backend.blob(OUTPUTS, path).unwrap()).unwrap(),
        None => serde_json::from_str(output.inline_json().unwrap()).unwrap(),
    }
}
