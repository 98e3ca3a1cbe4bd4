//! The coordinator on the memory backend, with paused time.

use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::*;
use crate::clock::{Clock, Timestamp};
use crate::limits::{LEASE_DURATION, LEASE_MARGIN};
use crate::storage::memory::MemoryStorage;
use crate::storage::{Expect, Message, OutgoingMessage, Storage};
use crate::wire::{CompletionMessage, Names, Prefix, TaskMessage};
use crate::workflow::definition::{Definition, TaskDefinition};
use crate::workflow::runtime::Runtime;
use crate::workflow::testkit::{after, task, workflow};
use crate::workflow::{Seconds, TaskName, TaskState, WorkflowState};

/// Long enough for every sweep.
const PATIENCE: Duration = Duration::from_secs(600);

/// A storage, and coordinators on it.
struct Bench {
    store: WorkflowStore,
    clock: Clock,
    shutdown: CancellationToken,
    tasks: TaskTracker,
}

impl Bench {
    async fn new() -> Self {
        let clock = Clock::simulated(Timestamp::from_micros(1_767_225_600_000_000), 1);
        let storage = Storage::from_backend(MemoryStorage::new(clock.clone()));
        let store = WorkflowStore::new(storage, Names::new(Prefix::parse("Test").unwrap()));
        store.ensure().await.unwrap();
        Self {
            store,
            clock,
            shutdown: CancellationToken::new(),
            tasks: TaskTracker::new(),
        }
    }

    fn coordinator(&self, on_held: OnHeld) -> Arc<Coordinator> {
        let config = CoordinatorConfig {
            on_held,
            ..CoordinatorConfig::default()
        };
        Arc::new(Coordinator::new(
            config,
            self.store.clone(),
            self.clock.clone(),
        ))
    }

    /// A coordinator that leads.
    async fn leader(&self) -> Arc<Coordinator> {
        let coordinator = self.coordinator(OnHeld::Refuse);
        self.start(&coordinator, self.shutdown.clone());
        wait_for_role(&coordinator, Role::Leader).await;
        coordinator
    }

    fn start(&self, coordinator: &Arc<Coordinator>, shutdown: CancellationToken) {
        let coordinator = coordinator.clone();
        self.tasks
            .spawn(async move { coordinator.run(shutdown).await.unwrap() });
    }

    async fn submit(&self, id: &str, definition: &Definition) -> WorkflowId {
        let id = WorkflowId::parse(id).unwrap();
        let runtime = Runtime::new(id.clone(), definition, self.clock.now());
        self.store.submit(&runtime).await.unwrap();
        id
    }

    async fn runtime(&self, id: &WorkflowId) -> Runtime {
        self.store.load(id).await.unwrap().runtime
    }

    /// The next task message of a queue; waits for it.
    async fn task(&self, queue: &str) -> (TaskMessage, Message) {
        let hour = Duration::from_secs(3_600);
        let queues = &self.store.storage().queues;
        let message = queues
            .receive(queue, 1, hour, PATIENCE)
            .await
            .unwrap()
            .remove(0);
        (TaskMessage::decode(&message.body).unwrap(), message)
    }

    async fn no_task(&self, queue: &str) {
        let queues = &self.store.storage().queues;
        let messages = queues
            .receive(queue, 1, PATIENCE, Duration::from_secs(5))
            .await
            .unwrap();
        assert_eq!(messages.len(), 0, "{messages:?}");
    }

    async fn complete(&self, id: &WorkflowId, task: &str, attempt_no: u32, success: bool) {
        let message = completion(id, task, attempt_no, success);
        self.send(&message.encode().unwrap().text).await;
    }

    async fn send(&self, text: &str) {
        let queue = self.store.names().completion_queue();
        let queues = &self.store.storage().queues;
        queues
            .send(queue, vec![OutgoingMessage::new(text)])
            .await
            .remove(0)
            .unwrap();
    }

    async fn wait_for(&self, id: &WorkflowId, state: WorkflowState) -> Runtime {
        let give_up_at = tokio::time::Instant::now() + PATIENCE;
        loop {
            let runtime = self.runtime(id).await;
            if runtime.state() == state {
                return runtime;
            }
            assert!(
                tokio::time::Instant::now() < give_up_at,
                "{id} is {}",
                runtime.state()
            );
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// Waits until the completion queue holds nothing, not even hidden messages.
    async fn wait_for_empty_completions(&self) {
        let queue = self.store.names().completion_queue();
        let give_up_at = tokio::time::Instant::now() + PATIENCE;
        while self.store.storage().queues.length(queue).await.unwrap() > 0 {
            assert!(
                tokio::time::Instant::now() < give_up_at,
                "completions are left"
            );
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    async fn stop(&self) {
        self.shutdown.cancel();
        self.tasks.close();
        tokio::time::timeout(PATIENCE, self.tasks.wait())
            .await
            .expect("it stops");
    }
}

fn completion(id: &WorkflowId, task: &str, attempt_no: u32, success: bool) -> CompletionMessage {
    CompletionMessage {
        workflow_id: id.clone(),
        task_name: TaskName::parse(task).unwrap(),
        success,
        output_ref: None,
        error: (!success).then(|| "exit code 1".to_owned()),
        attempt_no: Some(attempt_no),
        retry_no: None,
        exit_code: None,
        worker_id: None,
        started_at: None,
        finished_at: None,
        traceparent: None,
    }
}

async fn wait_for_role(coordinator: &Coordinator, role: Role) {
    let mut roles = coordinator.role();
    let wait = roles.wait_for(|now| *now == role);
    tokio::time::timeout(PATIENCE, wait)
        .await
        .expect("it takes the role")
        .unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_submitted_workflow_is_run_to_its_end() {
    let bench = Bench::new().await;
    let coordinator = bench.leader().await;
    let id = bench
        .submit("w1", &workflow(vec![task("a"), after("b", &["a"])]))
        .await;
    let (first, _) = bench.task("default").await;
    let first = first.workflow.unwrap();
    assert_eq!((first.task.as_str(), first.attempt_no), ("a", 1));
    bench.complete(&id, "a", 1, true).await;
    assert_eq!(
        bench
            .task("default")
            .await
            .0
            .workflow
            .unwrap()
            .task
            .as_str(),
        "b"
    );
    bench.complete(&id, "b", 1, true).await;
    bench.wait_for(&id, WorkflowState::Completed).await;
    bench.wait_for_empty_completions().await;
    bench.stop().await;
    let row = bench.store.row(&id).await.unwrap().unwrap();
    assert_eq!(
        (row.workflow_state, row.completed_tasks),
        (WorkflowState::Completed, 2)
    );
    assert_eq!(coordinator.stats().completions, 2);
}

#[tokio::test(start_paused = true)]
async fn a_nudge_starts_a_workflow_without_waiting_for_the_poll() {
    let bench = Bench::new().await;
    let coordinator = bench.leader().await;
    let started = tokio::time::Instant::now();
    let id = bench.submit("w1", &workflow(vec![task("a")])).await;
    coordinator.nudge(&id);
    bench.task("default").await;
    assert!(
        started.elapsed() < Duration::from_millis(100),
        "{:?}",
        started.elapsed()
    );
    bench.stop().await;
}

#[tokio::test(start_paused = true)]
async fn duplicate_completions_are_acknowledged_and_counted() {
    let bench = Bench::new().await;
    let coordinator = bench.leader().await;
    let id = bench
        .submit("w1", &workflow(vec![task("a"), after("b", &["a"])]))
        .await;
    bench.task("default").await;
    for _ in 0..3 {
        bench.complete(&id, "a", 1, true).await;
    }
    bench.task("default").await;
    bench.wait_for_empty_completions().await;
    bench.no_task("default").await;
    let stats = coordinator.stats();
    assert_eq!((stats.completions, stats.duplicates), (1, 2));
    bench.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_failed_attempt_is_pushed_again_until_the_budget_is_used() {
    let bench = Bench::new().await;
    bench.leader().await;
    let flaky = TaskDefinition {
        num_retries: 1,
        ..task("a")
    };
    let id = bench.submit("w1", &workflow(vec![flaky])).await;
    for attempt_no in 1..=2 {
        let message = bench.task("default").await.0;
        assert_eq!(message.workflow.unwrap().attempt_no, attempt_no);
        bench.complete(&id, "a", attempt_no, false).await;
    }
    let ended = bench.wait_for(&id, WorkflowState::Failed).await;
    assert_eq!(ended.error(), Some("task \"a\" failed: exit code 1"));
    bench.stop().await;
}

#[tokio::test(start_paused = true)]
async fn poison_and_orphans_are_deleted_and_counted() {
    let bench = Bench::new().await;
    let coordinator = bench.leader().await;
    bench.send("no completion at all").await;
    let unknown = WorkflowId::parse("unknown").unwrap();
    bench.complete(&unknown, "a", 1, true).await;
    let id = bench.submit("w1", &workflow(vec![task("a")])).await;
    bench.complete(&id, "nobody", 1, true).await;
    bench.wait_for_empty_completions().await;
    let stats = coordinator.stats();
    assert_eq!((stats.poison_messages, stats.orphans), (1, 2));
    bench.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_cancel_reaches_the_state_and_spares_what_was_terminal() {
    let bench = Bench::new().await;
    bench.leader().await;
    let definition = workflow(vec![task("a"), after("b", &["a"]), after("c", &["b"])]);
    let id = bench.submit("w1", &definition).await;
    bench.task("default").await;
    bench.complete(&id, "a", 1, true).await;
    bench.task("default").await;
    bench.store.request_cancel(&id).await.unwrap();
    bench.wait_for(&id, WorkflowState::Cancelling).await;
    bench.complete(&id, "b", 1, false).await;
    let ended = bench.wait_for(&id, WorkflowState::Cancelled).await;
    let states: Vec<_> = ended
        .tasks()
        .iter()
        .map(crate::workflow::runtime::Task::state)
        .collect();
    assert_eq!(
        states,
        [
            TaskState::Completed,
            TaskState::Failed,
            TaskState::Cancelled
        ]
    );
    bench.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_cancel_before_anything_ran_is_not_lost() {
    let bench = Bench::new().await;
    let id = bench.submit("w1", &workflow(vec![task("a")])).await;
    bench.store.request_cancel(&id).await.unwrap();
    bench.leader().await;
    bench.wait_for(&id, WorkflowState::Cancelled).await;
    bench.no_task("default").await;
    bench.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_failure_that_outruns_its_cancel_is_not_retried_and_not_a_failed_workflow() {
    let bench = Bench::new().await;
    bench.leader().await;
    let flaky = TaskDefinition {
        num_retries: 5,
        ..task("a")
    };
    let id = bench.submit("w1", &workflow(vec![flaky])).await;
    bench.task("default").await;
    // Within one poll interval: the request, and the report of the command it stopped.
    bench.store.request_cancel(&id).await.unwrap();
    bench.complete(&id, "a", 1, false).await;
    bench.wait_for(&id, WorkflowState::Cancelled).await;
    bench.no_task("default").await;
    bench.stop().await;
}

#[tokio::test(start_paused = true)]
async fn an_overdue_attempt_fails_at_its_deadline() {
    let bench = Bench::new().await;
    let coordinator = bench.leader().await;
    let slow = TaskDefinition {
        timeout_s: Some(Seconds(5.0)),
        num_retries: 1,
        ..task("a")
    };
    let id = bench.submit("w1", &workflow(vec![slow])).await;
    bench.task("default").await;
    let pushed = tokio::time::Instant::now();
    let again = bench.task("default").await.0.workflow.unwrap();
    assert_eq!(again.attempt_no, 2);
    assert!(
        pushed.elapsed() < Duration::from_secs(6),
        "{:?}",
        pushed.elapsed()
    );
    bench.complete(&id, "a", 2, true).await;
    bench.wait_for(&id, WorkflowState::Completed).await;
    assert_eq!(coordinator.stats().timeouts, 1);
    bench.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_second_coordinator_refuses_and_names_the_holder() {
    let bench = Bench::new().await;
    bench.leader().await;
    let second = bench.coordinator(OnHeld::Refuse);
    let error = second.run(CancellationToken::new()).await.unwrap_err();
    let told = error.to_string();
    let pid = format!("process {}", std::process::id());
    assert!(told.contains(&pid) && told.contains("--standby"), "{told}");
    bench.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_standby_leads_at_once_after_a_release() {
    let bench = Bench::new().await;
    bench.leader().await;
    let second = bench.coordinator(OnHeld::Standby);
    let shutdown = CancellationToken::new();
    bench.start(&second, shutdown.clone());
    wait_for_role(&second, Role::Standby).await;
    bench.shutdown.cancel();
    let released = tokio::time::Instant::now();
    wait_for_role(&second, Role::Leader).await;
    assert!(
        released.elapsed() < Duration::from_secs(6),
        "{:?}",
        released.elapsed()
    );
    shutdown.cancel();
    bench.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_holder_whose_lease_was_broken_stops_and_stands_by() {
    let bench = Bench::new().await;
    let first = bench.leader().await;
    let second = bench.coordinator(OnHeld::Break);
    bench.start(&second, bench.shutdown.clone());
    wait_for_role(&second, Role::Leader).await;
    wait_for_role(&first, Role::Standby).await;
    let id = bench.submit("w1", &workflow(vec![task("a")])).await;
    bench.task("default").await;
    bench.complete(&id, "a", 1, true).await;
    bench.wait_for(&id, WorkflowState::Completed).await;
    assert_eq!((first.stats().pushes, second.stats().pushes), (0, 1));
    bench.stop().await;
}

#[tokio::test(start_paused = true)]
async fn the_fence_closes_before_the_lease_can_lapse() {
    let bench = Bench::new().await;
    let config = CoordinatorConfig::default();
    let keeper = LeaseKeeper::acquire(&bench.store, &config, &bench.clock, OnHeld::Refuse)
        .await
        .unwrap();
    let fence = keeper.fence();
    tokio::time::sleep(LEASE_DURATION - LEASE_MARGIN - Duration::from_secs(1)).await;
    assert!(fence.holds());
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert!(
        !fence.holds(),
        "writes must stop {LEASE_MARGIN:?} before the lease lapses"
    );
}

#[tokio::test(start_paused = true)]
async fn the_next_leader_takes_up_what_the_last_one_left() {
    let bench = Bench::new().await;
    bench.leader().await;
    let id = bench
        .submit("w1", &workflow(vec![task("a"), after("b", &["a"])]))
        .await;
    bench.task("default").await;
    bench.stop().await;
    // While nobody leads a worker reports.
    bench.complete(&id, "a", 1, true).await;
    let next = bench.coordinator(OnHeld::Refuse);
    let shutdown = CancellationToken::new();
    let tasks = TaskTracker::new();
    tasks.spawn({
        let (next, shutdown) = (next.clone(), shutdown.clone());
        async move { next.run(shutdown).await.unwrap() }
    });
    bench.task("default").await;
    bench.complete(&id, "b", 1, true).await;
    bench.wait_for(&id, WorkflowState::Completed).await;
    shutdown.cancel();
    tasks.close();
    tasks.wait().await;
}

#[tokio::test(start_paused = true)]
async fn another_writers_state_is_met_by_a_reload() {
    let bench = Bench::new().await;
    let coordinator = bench.leader().await;
    let id = bench
        .submit("w1", &workflow(vec![task("a"), after("b", &["a"])]))
        .await;
    bench.task("default").await;
    bench.wait_for(&id, WorkflowState::Running).await;
    // Somebody rewrites the blob: same content, other version.
    let container = bench.store.names().state_container();
    let blobs = &bench.store.storage().blobs;
    let name = Names::state_blob(&id);
    let blob = blobs.get(container, &name).await.unwrap();
    blobs
        .put(container, &name, blob.data, Expect::Anything)
        .await
        .unwrap();
    bench.complete(&id, "a", 1, true).await;
    bench.task("default").await;
    bench.no_task("default").await;
    bench.wait_for_empty_completions().await;
    let stats = coordinator.stats();
    assert_eq!(
        (stats.conflicts, stats.completions, stats.pushes),
        (1, 1, 2)
    );
    bench.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_state_that_cannot_be_used_is_set_aside_and_others_go_on() {
    let bench = Bench::new().await;
    let coordinator = bench.leader().await;
    let bad = bench.submit("bad", &workflow(vec![task("a")])).await;
    let container = bench.store.names().state_container();
    let name = Names::state_blob(&bad);
    let blobs = &bench.store.storage().blobs;
    blobs
        .put(container, &name, "{\"v\": 9}".into(), Expect::Anything)
        .await
        .unwrap();
    let good = bench.submit("good", &workflow(vec![task("a")])).await;
    bench.task("default").await;
    bench.complete(&good, "a", 1, true).await;
    bench.wait_for(&good, WorkflowState::Completed).await;
    assert!(coordinator.stats().quarantined > 0);
    assert_eq!(
        blobs.get(container, &name).await.unwrap().data,
        "{\"v\": 9}"
    );
    bench.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_message_that_can_never_fit_fails_its_task() {
    let bench = Bench::new().await;
    bench.leader().await;
    let text = format!(
        "{{\"cmd\": \"{}\"}}",
        "x".repeat(crate::limits::MESSAGE_BYTES_MAX)
    );
    let kwargs = serde_json::value::RawValue::from_string(text).unwrap();
    let huge = TaskDefinition {
        kwargs,
        ..task("huge")
    };
    let id = bench.submit("w1", &workflow(vec![huge])).await;
    let ended = bench.wait_for(&id, WorkflowState::Failed).await;
    assert!(
        ended.error().unwrap().contains("huge"),
        "{:?}",
        ended.error()
    );
    bench.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_deleted_queue_is_made_again() {
    let bench = Bench::new().await;
    let definition = workflow(vec![task("a")]);
    // The blob and the row are there, the queue is not: as after its deletion.
    let id = WorkflowId::parse("w1").unwrap();
    let runtime = Runtime::new(id.clone(), &definition, bench.clock.now());
    let other = WorkflowStore::new(
        Storage {
            queues: MemoryStorage::new(bench.clock.clone()),
            ..bench.store.storage().clone()
        },
        bench.store.names().clone(),
    );
    other.submit(&runtime).await.unwrap();
    bench.leader().await;
    bench.wait_for(&id, WorkflowState::Running).await;
    bench.task("default").await;
    bench.stop().await;
}

#[tokio::test(start_paused = true)]
async fn who_leads_is_written_for_people() {
    let bench = Bench::new().await;
    assert!(
        CoordinatorStatus::read(&bench.store)
            .await
            .unwrap()
            .is_none()
    );
    bench.leader().await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    let status = CoordinatorStatus::read(&bench.store)
        .await
        .unwrap()
        .unwrap();
    assert_eq!(status.holder.pid, std::process::id());
    bench.stop().await;
}
