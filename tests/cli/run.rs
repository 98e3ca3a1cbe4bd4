//! `jobq run`: exit codes, what goes where, interruption and resumption.

use std::time::Duration;

use crate::support::{Site, eventually, text};

const FAILING: &str = "name: w\ntasks:\n  - {name: a, kwargs: {cmd: 'echo oh no >&2; exit 3'}}\n";

#[test]
fn the_id_goes_to_stdout_and_everything_for_people_to_stderr() {
    let site = Site::new();
    let output = site.output(&["run", "examples/diamond.yaml", "--id", "d1"]);
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(text(&output.stdout), "d1\n");
    let stderr = text(&output.stderr);
    for shown in [
        "report",
        "completed",
        "{\"primes\": 303, \"largest_square\": 1936}",
    ] {
        assert!(stderr.contains(shown), "{shown} in {stderr}");
    }
}

#[test]
fn a_failed_workflow_exits_with_1_and_says_why() {
    let site = Site::new();
    let file = site.definition("failing.yaml", FAILING);
    let output = site.output(&["run", &file]);
    assert_eq!(output.status.code(), Some(1));
    let stderr = text(&output.stderr);
    assert!(
        stderr.contains("exit code 3") && stderr.contains("oh no"),
        "{stderr}"
    );
}

#[test]
fn a_cancelled_workflow_exits_with_1_and_its_command_is_stopped() {
    let site = Site::new();
    let marker = site.path().join("ended");
    let cmd = format!(
        "trap 'touch {}; exit 1' TERM; sleep 600 & wait",
        marker.display()
    );
    let file = site.definition("slow.yaml", &format!(
        "name: w\ntasks:\n  - name: slow\n    kwargs:\n      cmd: \"{cmd}\"\n  - {{name: after, depends_on: [slow]}}\n"
    ));
    let mut run = site.spawn(&[
        "run",
        &file,
        "--id",
        "w1",
        "--cancel-poll-interval",
        "250ms",
    ]);
    eventually("the task runs", || run.log().contains("running"));
    site.stdout(&["cancel", "w1"]);
    assert_eq!(run.wait(), Some(1));
    assert!(marker.exists(), "the command was not asked to end");
    assert_eq!(
        site.json(&["status", "w1", "-o", "json"])["workflow_state"],
        "cancelled"
    );
}

#[test]
fn an_interrupted_run_goes_on_with_the_same_id() {
    let site = Site::new();
    let gate = site.path().join("gate");
    let file = site.definition("gated.yaml", &format!(
        "name: w\ntasks:\n  - {{name: first, kwargs: {{cmd: 'true'}}}}\n  - name: second\n    depends_on: [first]\n    kwargs: {{cmd: 'until [ -e {} ]; do sleep 0.05; done'}}\n",
        gate.display()
    ));
    let mut run = site.spawn(&["run", &file, "--id", "w1"]);
    eventually("the second task runs", || {
        run.log().contains("running         second")
    });
    assert_eq!(run.terminate(), Some(130));
    assert!(run.log().contains("jobq run --id w1"), "{}", run.log());
    std::fs::write(&gate, "").unwrap();
    let output = site.output(&["run", &file, "--id", "w1"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let tasks = site.json(&["tasks", "w1", "-o", "json"]);
    assert_eq!(
        tasks[0]["attempt_no"], 1,
        "what was completed is not run again"
    );
}

#[test]
fn a_killed_run_goes_on_at_once_with_the_same_id() {
    let site = Site::new();
    let gate = site.path().join("gate");
    let file = site.definition("gated.yaml", &format!(
        "name: w\ntasks:\n  - {{name: first, kwargs: {{cmd: 'true'}}}}\n  - name: second\n    depends_on: [first]\n    kwargs: {{cmd: 'until [ -e {} ]; do sleep 0.05; done'}}\n",
        gate.display()
    ));
    let timeout = ["--visibility-timeout", "2s"];
    let run_args = [&["run", file.as_str(), "--id", "w1"][..], &timeout].concat();
    let mut run = site.spawn(&run_args);
    eventually("the second task runs", || {
        run.log().contains("running         second")
    });
    run.kill();
    std::fs::write(&gate, "").unwrap();
    // Far below the 60 s of the dead leader's lease: its process is known to be gone.
    let started = std::time::Instant::now();
    let output = site.output(&run_args);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    assert!(
        started.elapsed() < Duration::from_secs(30),
        "{:?}",
        started.elapsed()
    );
}

#[test]
fn a_second_run_on_the_same_directory_works_beside_a_server() {
    let site = Site::new();
    let server = site.spawn(&["serve"]);
    eventually("the server leads", || server.log().contains("leading"));
    let output = site.output(&["run", "examples/diamond.yaml"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
}
