//! Workers that run real commands, on a storage that fails when told to.

mod backend;
mod rig;

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use serde_json::json;

pub(super) use self::rig::eventually;
use self::rig::{COMPLETIONS, OUTPUTS, Plan, QUEUE, Rig, output, task};
use super::*;
use crate::limits::{ERROR_BYTES_MAX, OUTPUT_INLINE_BYTES_MAX};
use crate::storage::QueueStore as _;
use crate::wire::{CompletionMessage, OutputRef, UpstreamRefs};
use crate::workflow::TaskName;

fn plan() -> Plan {
    Plan::default()
}

/// Runs nothing, so that a test may pause the clock.
fn noop_plan() -> Plan {
    Plan {
        runner: Arc::new(NoopRunner::default()),
        ..plan()
    }
}

#[tokio::test]
async fn success_is_reported_with_its_output_and_the_message_deleted() {
    let rig = Rig::start(plan());
    let done = rig
        .complete(r#"echo hello; echo '{"loss": 0.10}' > "$JOBQ_OUTPUT_FILE""#)
        .await;
    assert_eq!(
        (&*done.workflow_id, &*done.task_name, done.attempt_no),
        ("w", "t", Some(1))
    );
    assert_eq!(
        (done.success, &done.error, done.exit_code),
        (true, &None, Some(0))
    );
    assert_eq!(done.output_ref, Some(OutputRef::inline("{\"loss\": 0.10}")));
    assert_eq!(done.worker_id.as_deref(), Some("worker-1"));
    assert_eq!(done.traceparent.as_deref(), Some("00-1-2-01"));
    assert!(done.started_at.unwrap() <= done.finished_at.unwrap());
    assert_eq!(rig.backend.blob(OUTPUTS, "w/t/1.log").unwrap(), "hello\n");
    rig.holds(QUEUE, 0).await;
    rig.stop().await;
}

#[tokio::test]
async fn no_output_is_reported_as_none() {
    let rig = Rig::start(plan());
    let done = rig.complete("true").await;
    assert_eq!((done.success, done.output_ref), (true, None));
    assert_eq!(rig.backend.blob(OUTPUTS, "w/t/1.log"), None);
    rig.stop().await;
}

#[tokio::test]
async fn failure_is_reported_with_code_and_last_words_within_bounds() {
    let rig = Rig::start(plan());
    let done = rig
        .complete("echo '1' > $JOBQ_OUTPUT_FILE; echo no data >&2; exit 3")
        .await;
    assert_eq!(
        (done.success, done.exit_code, done.output_ref),
        (false, Some(3), None)
    );
    assert_eq!(done.error.as_deref(), Some("exit code 3: no data"));
    rig.holds(QUEUE, 0).await;
    let done = rig
        .complete("for ((i = 0; i < 9999; i++)); do echo $i; done >&2; exit 1")
        .await;
    let error = done.error.unwrap();
    assert_eq!(error.len(), ERROR_BYTES_MAX);
    assert!(
        error.starts_with("exit code 1: ") && error.ends_with("9998"),
        "{error}"
    );
    let done = rig.complete("kill -9 $$").await;
    assert_eq!(
        (done.exit_code, done.error.as_deref()),
        (None, Some("killed by SIGKILL"))
    );
    rig.stop().await;
}

#[tokio::test]
async fn a_task_without_a_command_fails() {
    let rig = Rig::start(plan());
    let message = task("x", rig.dir(), Some(UpstreamRefs::default())).replace("cmd", "command");
    rig.backend.push(QUEUE, &message).await;
    let done = rig.completion().await;
    assert_eq!(
        done.error.as_deref(),
        Some("the task has no kwargs.cmd to run")
    );
    rig.stop().await;
}

#[tokio::test]
async fn output_that_is_not_json_fails_the_attempt() {
    let rig = Rig::start(plan());
    let done = rig.complete("echo 'loss=0.1' > $JOBQ_OUTPUT_FILE").await;
    assert_eq!(
        (done.success, &done.output_ref, done.exit_code),
        (false, &None, Some(0))
    );
    let error = done.error.unwrap();
    assert!(
        error.starts_with("the output cannot be used: not JSON"),
        "{error}"
    );
    rig.stop().await;
}

#[tokio::test]
async fn output_too_large_for_the_state_or_the_message_is_stashed() {
    let rig = Rig::start(plan());
    // The second fits the state, but its quotes do not fit the message once they are escaped.
    let large = OUTPUT_INLINE_BYTES_MAX;
    for (what, length) in [("x", large), (r#"\""#, large / 2 - 2)] {
        let text = format!(r#"for ((i = 0; i < {length}; i++)); do printf '%s' '{what}'; done"#);
        let cmd = format!(r#"(printf '"'; {text}; printf '"') > $JOBQ_OUTPUT_FILE"#);
        let done = rig.complete(&cmd).await;
        assert_eq!(done.error, None);
        assert_eq!(done.output_ref, Some(OutputRef::blob("w/t.json")));
        assert_eq!(output(&rig.backend, &done).as_str().unwrap().len(), length);
    }
    rig.stop().await;
}

#[tokio::test]
async fn file_outputs_are_uploaded_and_named_in_the_output() {
    let rig = Rig::start(plan());
    let marker = json!({"model": {"__jobq_stash__": {
        "v": 1, "state": "pending", "local_path": "model.bin", "filename": "best/model.bin"}}});
    let cmd = format!("printf weights > model.bin; echo '{marker}' > $JOBQ_OUTPUT_FILE");
    let done = rig.complete(&cmd).await;
    let name = "workflow-files/w/t/best/model.bin";
    let ready = json!({"model": {"__jobq_stash__": {"v": 1, "state": "ready", "blob_name": name,
        "md5": "63f4f1e9b725370f459720575cd5f953", "size": 7}}});
    assert_eq!(output(&rig.backend, &done), ready);
    assert_eq!(
        rig.backend.blob("jobq-workflow-data", name).unwrap(),
        "weights"
    );
    rig.stop().await;
}

#[tokio::test]
async fn a_missing_file_output_fails_the_attempt() {
    let rig = Rig::start(plan());
    let marker = json!({"__jobq_stash__": {
        "v": 1, "state": "pending", "local_path": "gone", "filename": "f"}});
    let done = rig
        .complete(&format!("echo '{marker}' > $JOBQ_OUTPUT_FILE"))
        .await;
    let error = done.error.unwrap();
    assert!(
        error.starts_with("file output ") && error.contains("/gone: "),
        "{error}"
    );
    rig.stop().await;
}

#[tokio::test]
async fn cancel_ends_the_command_with_all_it_started_and_is_reported() {
    let rig = Rig::start(plan());
    rig.send("sleep 600 & echo $! > pid; wait").await;
    eventually(async || rig.file("pid").is_some_and(|pid| pid.ends_with('\n'))).await;
    rig.states.cancelled.store(true, Ordering::SeqCst);
    let done = rig.completion().await;
    assert_eq!((done.success, done.exit_code), (false, None));
    assert_eq!(
        done.error.as_deref(),
        Some("cancelled while it was running")
    );
    rig.holds(QUEUE, 0).await;
    let pid = rig.file("pid").unwrap();
    eventually(async || is_gone(pid.trim())).await;
    assert_eq!(
        (rig.stats.counts().cancelled, rig.stats.counts().failed),
        (1, 1)
    );
    rig.stop().await;
}

fn is_gone(pid: &str) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.is_empty() || stat.contains(") Z ")
}

#[tokio::test]
async fn a_lost_message_ends_the_command_and_reports_nothing() {
    let mut plan = plan();
    plan.config.visibility_timeout = Duration::from_secs(1);
    let rig = Rig::start(plan);
    rig.send("echo $$ > pid; sleep 600").await;
    eventually(async || rig.file("pid").is_some_and(|pid| pid.ends_with('\n'))).await;
    rig.backend.steal(QUEUE);
    rig.counts(|counts| counts.lost == 1).await;
    // The thief finishes the task, so that this worker does not receive it again.
    rig.backend.pop(QUEUE).unwrap();
    let pid = rig.file("pid").unwrap();
    eventually(async || is_gone(pid.trim())).await;
    let backend = rig.backend.clone();
    rig.stop().await;
    assert_eq!(backend.pop(COMPLETIONS), None);
}

#[tokio::test]
async fn a_command_may_outlive_its_visibility_timeout() {
    let mut plan = plan();
    plan.config.visibility_timeout = Duration::from_secs(1);
    plan.config.parallel = 2;
    let rig = Rig::start(plan);
    let done = rig.complete("echo run >> runs; sleep 2.2").await;
    assert!(done.success);
    assert_eq!(rig.file("runs").unwrap(), "run\n");
    rig.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_completion_is_sent_again_until_it_arrives() {
    let rig = Rig::start(noop_plan());
    rig.backend.refuse_sends(2);
    assert!(rig.complete("").await.success);
    rig.holds(QUEUE, 0).await;
    let counts = rig.stats.counts();
    assert_eq!((counts.succeeded, counts.unreported), (1, 0));
    rig.stop().await;
}

#[tokio::test]
async fn a_completion_that_never_arrives_leaves_the_message_to_another_delivery() {
    let mut plan = plan();
    plan.config.completion_send_attempts_max = Some(1);
    plan.config.visibility_timeout = Duration::from_secs(1);
    let rig = Rig::start(plan);
    rig.backend.refuse_sends(1);
    let done = rig.complete("echo run >> runs").await;
    assert!(done.success);
    assert_eq!(rig.stats.counts().unreported, 1);
    assert_eq!(rig.file("runs").unwrap(), "run\nrun\n");
    rig.stop().await;
}

/// Delivers the message once to nobody, so that the worker gets it as a second delivery.
async fn redeliver(status: AttemptStatus) -> Rig {
    let backend = Arc::new(backend::Backend::default());
    let dir = tempfile::tempdir().unwrap();
    let message = task("echo run", dir.path(), Some(UpstreamRefs::default()));
    backend.push(QUEUE, &message).await;
    let first = backend
        .receive(QUEUE, 1, Duration::ZERO, Duration::ZERO)
        .await
        .unwrap();
    assert_eq!(first[0].dequeue_count, 1);
    let mut plan = noop_plan();
    plan.states.status = status.into();
    Rig::start_on(backend, plan)
}

#[tokio::test]
async fn a_stale_redelivery_is_dropped_unrun() {
    let rig = redeliver(AttemptStatus::Stale).await;
    rig.holds(QUEUE, 0).await;
    assert_eq!(
        rig.stats.counts(),
        WorkerCounts {
            stale: 1,
            ..WorkerCounts::default()
        }
    );
    assert_eq!(rig.backend.pop(COMPLETIONS), None);
    rig.stop().await;
}

#[tokio::test]
async fn a_redelivery_of_a_cancelled_workflow_is_reported_unrun() {
    let rig = redeliver(AttemptStatus::Cancelled).await;
    let done = rig.completion().await;
    assert_eq!(done.error.as_deref(), Some("cancelled before it was run"));
    rig.holds(QUEUE, 0).await;
    assert_eq!(rig.stats.counts().cancelled, 1);
    rig.stop().await;
}

#[tokio::test]
async fn a_redelivery_that_may_still_run_is_run() {
    for status in [AttemptStatus::Current, AttemptStatus::Unknown] {
        let rig = redeliver(status).await;
        assert!(rig.completion().await.success);
        rig.stop().await;
    }
}

#[tokio::test]
async fn upstream_outputs_the_message_lacks_come_from_the_state() {
    let mut plan = plan();
    let parent = TaskName::parse("a").unwrap();
    plan.states.upstream = UpstreamRefs(BTreeMap::from([(parent, Some(OutputRef::inline("7")))]));
    let rig = Rig::start(plan);
    let message = task(
        r#"cat "$JOBQ_WORKFLOW_UPSTREAM_REFS" > "$JOBQ_OUTPUT_FILE""#,
        rig.dir(),
        None,
    );
    rig.backend.push(QUEUE, &message).await;
    let done = rig.completion().await;
    assert_eq!(output(&rig.backend, &done), json!({"a": "7"}));
    rig.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_task_whose_inputs_cannot_be_read_now_is_put_off() {
    let plan = noop_plan();
    plan.states.failures.store(1, Ordering::SeqCst);
    let rig = Rig::start(plan);
    rig.backend.push(QUEUE, &task("", rig.dir(), None)).await;
    assert!(rig.completion().await.success);
    assert_eq!(rig.stats.counts().failed, 0);
    rig.stop().await;
}

#[tokio::test]
async fn a_plain_task_is_repeated_as_often_as_it_says_then_moved() {
    let rig = Rig::start(plan());
    rig.send_plain("echo run >> runs; exit 1", 2).await;
    rig.holds("cpu-failed", 1).await;
    rig.holds(QUEUE, 0).await;
    assert_eq!(rig.file("runs").unwrap(), "run\n".repeat(3));
    assert!(rig.backend.pop("cpu-failed").unwrap().contains("echo run"));
    assert_eq!(rig.backend.pop(COMPLETIONS), None);
    rig.stop().await;
}

#[tokio::test]
async fn a_plain_task_that_succeeds_is_gone() {
    let rig = Rig::start(plan());
    rig.send_plain("[ -e again ] || { touch again; exit 1; }", 1)
        .await;
    rig.holds(QUEUE, 0).await;
    let counts = rig.stats.counts();
    assert_eq!(
        (counts.failed, counts.succeeded, counts.dead_lettered),
        (1, 1, 0)
    );
    rig.stop().await;
}

#[tokio::test]
async fn poison_is_moved_to_the_dead_letters() {
    let rig = Rig::start(plan());
    rig.backend.push(QUEUE, "not a task").await;
    rig.holds("cpu-failed", 1).await;
    rig.holds(QUEUE, 0).await;
    assert_eq!(rig.backend.pop("cpu-failed").as_deref(), Some("not a task"));
    let counts = rig.stats.counts();
    assert_eq!((counts.poison, counts.dead_lettered), (1, 1));
    rig.stop().await;
}

#[tokio::test]
async fn poison_that_cannot_be_kept_is_dropped() {
    let queue = QueueName::parse(&"q".repeat(60)).unwrap();
    let mut plan = noop_plan();
    plan.config.queues = vec![queue.clone()];
    let rig = Rig::start(plan);
    rig.backend.push(&queue, "not a task").await;
    rig.counts(|counts| counts.poison == 1).await;
    rig.holds(&queue, 0).await;
    assert_eq!(rig.stats.counts().dead_lettered, 0);
    rig.stop().await;
}

#[tokio::test(start_paused = true)]
async fn receives_that_fail_never_end_the_worker() {
    let rig = Rig::start(noop_plan());
    rig.backend.fail_receives(5);
    assert!(rig.complete("").await.success);
    rig.stop().await;
}

#[tokio::test(start_paused = true)]
async fn an_empty_queue_is_looked_at_less_and_less_often() {
    let backend = Arc::new(backend::Backend::default());
    backend.never_wait();
    let mut plan = noop_plan();
    plan.config.idle_backoff_max = Duration::from_secs(30);
    let rig = Rig::start_on(backend, plan);
    tokio::time::sleep(Duration::from_secs(600)).await;
    // Nine looks until the pause has grown to 30 s, then two a minute.
    assert!(
        (20..=35).contains(&rig.backend.receives()),
        "{}",
        rig.backend.receives()
    );
    rig.stop().await;
}

#[tokio::test]
async fn a_stopping_worker_gives_its_messages_back_at_once() {
    let mut plan = plan();
    // The command ignores the first request to end, and the message must not wait for it.
    plan.runner = Arc::new(ShellRunner::new(Duration::from_secs(2)));
    let rig = Rig::start(plan);
    rig.send("trap '' TERM; echo > started; while :; do sleep 0.01; done")
        .await;
    eventually(async || rig.file("started").is_some()).await;
    let backend = rig.backend.clone();
    let stopping = Instant::now();
    rig.shut_down();
    let visibility = Duration::from_secs(60);
    let again = backend
        .receive(QUEUE, 1, visibility, Duration::from_secs(1))
        .await
        .unwrap();
    assert_eq!(again.len(), 1, "back within a second");
    assert_eq!(rig.stats.counts().given_back, 1);
    rig.stop().await;
    assert!(stopping.elapsed() < Duration::from_secs(10));
    assert_eq!(backend.pop(COMPLETIONS), None);
}

#[tokio::test]
async fn an_idle_worker_stops_at_once() {
    let rig = Rig::start(plan());
    let stopping = Instant::now();
    rig.stop().await;
    assert!(stopping.elapsed() < Duration::from_secs(2));
}

#[tokio::test]
async fn as_many_tasks_run_at_once_as_there_are_slots() {
    let mut plan = plan();
    plan.config.parallel = 2;
    let rig = Rig::start(plan);
    // Each waits for the other, so neither could end alone.
    for (own, other) in [("a", "b"), ("b", "a")] {
        rig.send(&format!(
            "touch {own}; until [ -e {other} ]; do sleep 0.01; done"
        ))
        .await;
    }
    for _ in 0..2 {
        assert!(rig.completion().await.success);
    }
    rig.stop().await;
}

#[tokio::test]
async fn a_busy_queue_does_not_hold_up_another() {
    let backend = Arc::new(backend::Backend::default());
    let dir = tempfile::tempdir().unwrap();
    let message = task("true", dir.path(), Some(UpstreamRefs::default()));
    for _ in 0..50 {
        backend.push(QUEUE, &message).await;
    }
    backend
        .push(
            "gpu",
            &message
                .replace("w/t/1", "w/rare/1")
                .replace(r#"\"t\""#, r#"\"rare\""#),
        )
        .await;
    let mut plan = noop_plan();
    plan.config.queues.push(QueueName::parse("gpu").unwrap());
    let rig = Rig::start_on(backend, plan);
    rig.holds(COMPLETIONS, 51).await;
    let order: Vec<CompletionMessage> = std::iter::from_fn(|| rig.backend.pop(COMPLETIONS))
        .map(|body| CompletionMessage::decode(&body).unwrap())
        .collect();
    let rare = order
        .iter()
        .position(|done| &*done.task_name == "rare")
        .unwrap();
    assert!(rare < 4, "came {rare} others late");
    rig.stop().await;
}

#[tokio::test]
async fn a_queue_that_goes_missing_is_created_again() {
    let rig = Rig::start(plan());
    eventually(async || rig.backend.length(QUEUE).await.is_ok()).await;
    rig.backend.drop_queue(QUEUE);
    eventually(async || rig.backend.length(QUEUE).await.is_ok()).await;
    assert!(rig.complete("true").await.success);
    rig.stop().await;
}

#[tokio::test]
async fn settings_outside_their_range_are_refused() {
    let config = WorkerConfig::new(Vec::new(), "w");
    let backend = Arc::new(backend::Backend::default());
    let storage = Storage {
        blobs: backend.clone(),
        queues: backend,
        tables: Arc::new(backend::Unused),
        leases: Arc::new(backend::Unused),
    };
    let names = Names::new(crate::wire::Prefix::parse("Test").unwrap());
    let states = Arc::new(rig::States::default());
    let runner = Arc::new(NoopRunner::default());
    let refused = Worker::new(config, storage, names, states, runner, Clock::system());
    assert_eq!(refused.err().unwrap().setting, "queues");
}
