use std::collections::BTreeMap;
use std::path::Path;
use std::time::Instant;

use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::*;
use crate::limits::{ATTEMPT_LOG_BYTES_MAX, ERROR_BYTES_MAX};
use crate::wire::{OutputRef, UpstreamRefs, WorkflowTask};
use crate::worker::tests::eventually;
use crate::workflow::{TaskName, WorkflowId};

/// Longer than any test may take: a command that is still there then hangs.
const NEVER: Duration = Duration::from_secs(600);

fn task(kwargs: &Value) -> TaskMessage {
    let kwargs = RawValue::from_string(kwargs.to_string()).unwrap();
    let name = |text| TaskName::parse(text).unwrap();
    let upstream = UpstreamRefs(BTreeMap::from([
        (name("a"), Some(OutputRef::inline("[1]"))),
        (name("b"), None),
    ]));
    TaskMessage::of_workflow(
        kwargs,
        WorkflowTask {
            workflow_id: WorkflowId::parse("w").unwrap(),
            task: name("grp/t"),
            attempt_no: 2,
            retry_no: 0,
            upstream: Some(upstream),
            traceparent: Some("00-1-2-01".to_owned()),
        },
    )
}

async fn run(kwargs: Value) -> RunOutcome {
    ShellRunner::new(NEVER)
        .run(&task(&kwargs), StopSignal::default())
        .await
}

async fn log_text(outcome: &RunOutcome) -> String {
    let text = outcome.log.as_ref().unwrap().read().await.unwrap();
    String::from_utf8(text.into()).unwrap()
}

/// Starts `cmd` with a kill timeout, requests the stop once `dir/started` exists, and returns the
/// outcome.
async fn stopped(cmd: &str, dir: &Path, kill_timeout: Duration) -> RunOutcome {
    let stop = StopSignal::default();
    let runner = ShellRunner::new(kill_timeout);
    let task = task(&json!({"cmd": cmd, "cwd": dir}));
    let run = runner.run(&task, stop.clone());
    let stopping = async {
        eventually(async || dir.join("started").exists()).await;
        stop.stop();
    };
    tokio::join!(run, stopping).0
}

fn is_alive(pid_file: &Path) -> bool {
    let pid: i32 = std::fs::read_to_string(pid_file)
        .unwrap()
        .trim()
        .parse()
        .unwrap();
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    // A zombie waits only for its parent to take note.
    !stat.is_empty() && !stat.contains(") Z ")
}

#[tokio::test]
async fn a_command_sees_its_task_and_writes_its_output() {
    let outcome = run(json!({
        "cmd": r#"
            [ "$(cat "$JOBQ_WORKFLOW_UPSTREAM_REFS")" = '{"a":"[1]","b":null}' ] || exit 1
            echo "[\"$JOBQ_WORKFLOW_ID\",\"$JOBQ_WORKFLOW_TASK\",$JOBQ_WORKFLOW_ATTEMPT,\"$TRACEPARENT\",\"$SEED\"]" > "$JOBQ_OUTPUT_FILE"
        "#,
        "env": {"SEED": 7, "JOBQ_WORKFLOW_ID": "forged"},
    }))
    .await;
    assert_eq!(outcome.ending, Ending::Exited(0), "{}", outcome.failure());
    let output = outcome.output.unwrap().unwrap();
    assert_eq!(output, "[\"w\",\"grp/t\",2,\"00-1-2-01\",\"7\"]\n");
}

#[tokio::test]
async fn the_runners_own_variables_reach_the_command() {
    let runner = ShellRunner::new(NEVER).with_env(vec![(
        "JOBQ_WORKFLOW_PREFIX".to_owned(),
        "account/My".to_owned(),
    )]);
    let task = task(&json!({"cmd": r#"[ "$JOBQ_WORKFLOW_PREFIX" = account/My ]"#}));
    assert!(runner.run(&task, StopSignal::default()).await.is_success());
}

#[tokio::test]
async fn a_failing_command_reports_its_code_and_its_last_words() {
    let outcome = run(json!({"cmd": "echo fine; echo trouble >&2; exit 3"})).await;
    assert_eq!(outcome.failure(), "exit code 3: trouble");
    let log = log_text(&outcome).await;
    assert!(log.contains("fine\n") && log.contains("trouble\n"), "{log}");
}

#[tokio::test]
async fn a_command_killed_by_a_signal_says_so() {
    let outcome = run(json!({"cmd": "kill -9 $$"})).await;
    assert_eq!(outcome.failure(), "killed by SIGKILL");
}

#[tokio::test]
async fn what_cannot_be_started_fails_with_a_reason() {
    for (kwargs, reason) in [
        (json!({}), "no kwargs.cmd"),
        (
            json!({"cmd": "true", "cwd": "/no/such/dir"}),
            "is not a directory",
        ),
        (json!({"cmd": "a\u{0}b"}), "could not be started"),
    ] {
        let outcome = run(kwargs).await;
        assert!(!outcome.is_success());
        assert!(outcome.failure().contains(reason), "{}", outcome.failure());
    }
}

#[tokio::test]
async fn a_command_that_floods_its_pipes_never_blocks_and_is_bounded() {
    let lines = 2 * ATTEMPT_LOG_BYTES_MAX / 1_000;
    let cmd = format!(
        "line=$(printf '%0999d' 7); for ((i = 0; i < {lines}; i++)); do echo $line; done >&2; \
         echo the end >&2; exit 1"
    );
    let outcome = run(json!({"cmd": cmd})).await;
    assert_eq!(outcome.ending, Ending::Exited(1));
    assert!(outcome.stderr_tail.len() <= ERROR_BYTES_MAX);
    assert!(outcome.stderr_tail.ends_with("the end\n"));
    let log = log_text(&outcome).await;
    assert!(log.len() <= ATTEMPT_LOG_BYTES_MAX + 100 && log.len() > ATTEMPT_LOG_BYTES_MAX / 2);
    assert!(log.ends_with("the end\n") && log.starts_with("[earlier"));
}

#[tokio::test]
async fn what_a_command_leaves_behind_in_its_group_is_killed() {
    let dir = tempfile::tempdir().unwrap();
    let cmd = "sleep 600 & echo $! > pid; echo '1' > \"$JOBQ_OUTPUT_FILE\"";
    let outcome = run(json!({"cmd": cmd, "cwd": dir.path()})).await;
    assert!(outcome.is_success());
    eventually(async || !is_alive(&dir.path().join("pid"))).await;
}

#[tokio::test]
async fn a_process_that_left_the_group_with_a_pipe_open_does_not_hang_the_worker() {
    let dir = tempfile::tempdir().unwrap();
    let cmd = "setsid bash -c 'echo $$ > pid; exec sleep 600' & \
               until [ -s pid ]; do sleep 0.01; done; echo done";
    let started = Instant::now();
    let outcome = run(json!({"cmd": cmd, "cwd": dir.path()})).await;
    assert!(outcome.is_success());
    assert!(started.elapsed() < Duration::from_secs(30));
    assert_eq!(log_text(&outcome).await, "done\n");
    let pid = std::fs::read_to_string(dir.path().join("pid")).unwrap();
    let pid = nix::unistd::Pid::from_raw(pid.trim().parse().unwrap());
    nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGKILL).unwrap();
}

#[tokio::test]
async fn a_stop_lets_the_whole_group_save_its_work() {
    let dir = tempfile::tempdir().unwrap();
    // The shell dies of SIGTERM at once; its child needs a moment longer, with its output
    // elsewhere, so that no pipe tells it is still there.
    let cmd = "(trap 'sleep 0.2; echo saved > saved; exit 0' TERM; echo > started; \
               while :; do sleep 0.01; done) > child.log 2>&1; true";
    let outcome = stopped(cmd, dir.path(), NEVER).await;
    assert_eq!(outcome.failure(), "killed by SIGTERM");
    assert!(dir.path().join("saved").exists());
}

#[tokio::test]
async fn a_group_that_ignores_the_stop_is_killed_grandchildren_included() {
    let dir = tempfile::tempdir().unwrap();
    let cmd = "trap '' TERM; (echo $BASHPID > pid; echo > started; \
               while :; do sleep 0.01; done) & while :; do sleep 0.01; done";
    let outcome = stopped(cmd, dir.path(), Duration::from_millis(300)).await;
    assert_eq!(outcome.failure(), "killed by SIGKILL");
    eventually(async || !is_alive(&dir.path().join("pid"))).await;
}

#[tokio::test]
async fn an_aborted_run_leaves_no_process_and_no_file() {
    let dir = tempfile::tempdir().unwrap();
    let cmd = "echo $$ > pid; dirname \"$JOBQ_OUTPUT_FILE\" > scratch; echo > started; sleep 600";
    let runner = ShellRunner::new(NEVER);
    let task = task(&json!({"cmd": cmd, "cwd": dir.path()}));
    tokio::select! {
        _ = runner.run(&task, StopSignal::default()) => panic!("the command sleeps"),
        () = eventually(async || dir.path().join("started").exists()) => {}
    }
    eventually(async || !is_alive(&dir.path().join("pid"))).await;
    let scratch = std::fs::read_to_string(dir.path().join("scratch")).unwrap();
    assert!(!Path::new(scratch.trim()).exists());
}
