//! The published package of the upstream project and this one on the same account.

use std::process::Command;

use jobq::storage::Expect;
use jobq::wire::{Names, state_blob};
use jobq::workflow::WorkflowId;
use serde_json::{Value, json};

use crate::emulator::{self, ACCOUNT, KEY};
use crate::formats::{fixture, submitted};
use crate::support::{eventually, text};

/// A program of the package's virtual environment.
fn program(name: &str) -> Command {
    let home = std::env::var("JOBQ_TEST_UPSTREAM").expect("run through scripts/with-upstream");
    let mut command = Command::new(format!("{home}/bin/{name}"));
    command
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .env(
            "AZURE_STORAGE_CONNECTION_STRING",
            emulator::connection_string(KEY),
        )
        // It would write files for editors into the home directory.
        .env("JOBQ_COPILOT_SKILL", "0");
    command
}

/// Runs a function of `upstream.py` and gives what it returned.
#[track_caller]
fn upstream(arguments: &[&str]) -> Value {
    let mut command = program("python");
    command.arg("tests/azurite/upstream.py").args(arguments);
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", text(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn a_task_that_its_command_line_pushed_is_run_by_our_worker() {
    let prefix = emulator::prefix();
    let (site, queue) = (emulator::site(&prefix), prefix.to_lowercase());
    let marker = site.path().join("ran");
    let [_, port, _] = emulator::ports();
    let endpoint = format!("QueueEndpoint=http://127.0.0.1:{port}/{ACCOUNT}");
    let pushed = program("ai4s-jobq")
        .env(
            "JOBQ_CONNECTION_STRING",
            format!("AccountName={ACCOUNT};AccountKey={KEY};{endpoint}"),
        )
        .args([
            &format!("{ACCOUNT}/{queue}"),
            "push",
            "-e",
            "WORD=hello",
            "-c",
        ])
        .arg(format!("echo $WORD > {}", marker.display()))
        .output()
        .unwrap();
    assert!(pushed.status.success(), "{}", text(&pushed.stderr));
    let _worker = site.spawn(&["worker", &queue]);
    eventually("the command ran", || {
        std::fs::read_to_string(&marker).is_ok_and(|text| text == "hello\n")
    });
    eventually("its message is gone", || {
        upstream(&["tasks", &queue]) == json!([])
    });
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn our_task_message_is_decoded_and_its_completion_advances_the_workflow() {
    let prefix = emulator::prefix();
    let (site, queue) = (emulator::site(&prefix), prefix.to_lowercase());
    let file = site.definition(
        "two.yaml",
        &format!(
            "name: two\ndefault_queue: {queue}\ntasks:\n\
             \x20 - name: first\n\
             \x20   kwargs: {{cmd: 'echo <a> & \"é\"', lr: 1.0e-3, big: 12345678901234567890, deep: {{x: [null, true]}}}}\n\
             \x20 - {{name: second, depends_on: [first]}}\n"
        ),
    );
    let id = site.stdout(&["submit", &file]).trim().to_owned();
    let _server = site.spawn(&["serve"]);
    eventually("the task is pushed", || {
        upstream(&["tasks", &queue]) != json!([])
    });
    let tasks = upstream(&["tasks", &queue]);
    assert_eq!(tasks[0]["id"], format!("{id}/first/1"));
    assert_eq!(tasks[0]["num_retries"], 0);
    let mut kwargs = tasks[0]["kwargs"].clone();
    for (key, expected) in [
        ("__workflow_id", json!(id)),
        ("__workflow_task", json!("first")),
        ("__attempt_no", json!(1)),
    ] {
        assert_eq!(kwargs[key], expected, "{key}");
    }
    let own = kwargs.as_object_mut().unwrap();
    own.retain(|key, _| !key.starts_with("__"));
    let expected = json!({
        "cmd": "echo <a> & \"é\"", "lr": 1.0e-3, "big": 12_345_678_901_234_567_890_u64,
        "deep": {"x": [null, true]},
    });
    assert_eq!(kwargs, expected);

    let body = json!({"workflow_id": id, "task_name": "first", "success": true,
        "output_ref": "{\"n\": 1}", "error": null, "attempt_no": 1});
    let completions = format!("{queue}-workflow-completions");
    upstream(&["complete", &completions, &body.to_string()]);
    eventually("the next task is pushed", || {
        let tasks = upstream(&["tasks", &queue]);
        tasks
            .as_array()
            .unwrap()
            .iter()
            .any(|task| task["kwargs"]["__upstream_outputs_compact"]["i"]["first"] == "{\"n\": 1}")
    });
    assert_eq!(site.stdout(&["output", &id, "first"]).trim(), "{\"n\": 1}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn names_and_state_blob_in_the_account_equal_the_golden_ones() {
    let prefix = emulator::prefix();
    submitted(&prefix).await;
    // The golden names are those of another prefix.
    let golden = fixture("names");
    let ours = |name: &str| {
        let text = golden[name].as_str().unwrap();
        text.replace("myproject", &prefix.to_lowercase())
    };
    let found = upstream(&["names"]);
    for (kind, names) in [
        (
            "containers",
            ["state_container", "output_container"].as_slice(),
        ),
        ("queues", ["completion_queue"].as_slice()),
    ] {
        for name in names {
            let all = found[kind].as_array().unwrap();
            assert!(all.contains(&json!(ours(name))), "{}", ours(name));
        }
    }
    let blob = golden["state_blob"].as_str().unwrap();
    let state = upstream(&["read", &ours("state_container"), blob]);
    let golden = fixture("state_blob_submitted");
    for (key, expected) in golden.as_object().unwrap() {
        assert_eq!(&state[key], expected, "{key}");
    }
}

/// A running workflow as the other project stores it, with keys that only it knows.
fn of_upstream(queue: &str) -> Value {
    let mut blob = fixture("state_blob_running");
    blob["default_queue"] = json!(queue);
    blob["theirs"] = json!({"nested": [1, 2.5, null]});
    for task in blob["tasks"].as_object_mut().unwrap().values_mut() {
        task["queue"] = json!(queue);
        task["their_note"] = json!("kept");
    }
    blob
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn its_state_blobs_are_loaded_advanced_and_written_back_with_unknown_keys_intact() {
    for how in ["plain", "gzip"] {
        let prefix = emulator::prefix();
        let (site, queue) = (emulator::site(&prefix), prefix.to_lowercase());
        // The row and the queues come from a submit; the blob is then the other project's.
        let (store, runtime) = submitted(&prefix).await;
        store.storage().queues.create_queue(&queue).await.unwrap();
        let blob = of_upstream(&queue);
        let name = Names::state_blob(&runtime.header().workflow_id);
        let container = format!("{queue}-workflows");
        upstream(&["write", &container, &name, how, &blob.to_string()]);

        let _server = site.spawn(&["serve"]);
        // C was running and D ready: D is pushed anew, then both complete.
        for (task, attempt_no) in [("C", 1), ("D", 1)] {
            let body = json!({"workflow_id": runtime.header().workflow_id, "task_name": task,
                "success": true, "output_ref": null, "error": null, "attempt_no": attempt_no});
            if task == "D" {
                eventually("D is pushed", || upstream(&["tasks", &queue]) != json!([]));
            }
            upstream(&[
                "complete",
                &format!("{queue}-workflow-completions"),
                &body.to_string(),
            ]);
        }
        let id = runtime.header().workflow_id.to_string();
        eventually("the workflow ends", || {
            site.json(&["status", &id, "-o", "json"])["workflow_state"] == "completed"
        });
        let after = upstream(&["read", &container, &name]);
        assert_eq!(after["theirs"], blob["theirs"]);
        for (task, before) in blob["tasks"].as_object().unwrap() {
            assert_eq!(after["tasks"][task]["their_note"], before["their_note"]);
            assert_eq!(after["tasks"][task]["state"], "completed", "{task}");
        }
        assert_eq!(
            after["tasks"]["A"]["output_ref"],
            blob["tasks"]["A"]["output_ref"]
        );
    }
}

#[tokio::test]
async fn a_large_state_is_written_as_gzip_that_its_reader_unpacks() {
    let prefix = emulator::prefix();
    let (store, _) = submitted(&prefix).await;
    let tasks: Vec<Value> = (0..4_000)
        .map(|n| json!({"name": format!("task-{n}"), "kwargs": {"cmd": "x".repeat(64)}}))
        .collect();
    let definition = json!({"name": "large", "tasks": tasks});
    let definition = jobq::workflow::definition::Definition::from_value(&definition).unwrap();
    let id = WorkflowId::parse("large").unwrap();
    let now = jobq::clock::Clock::system().now();
    let runtime = jobq::workflow::runtime::Runtime::new(id, &definition, now);
    let data = state_blob::encode(&runtime);
    assert_eq!(data[..2], [0x1f, 0x8b]);
    let container = store.names().state_container();
    let put = store
        .storage()
        .blobs
        .put(container, "large.json", data, Expect::Absent);
    put.await.unwrap();
    let state = upstream(&["read", container, "large.json"]);
    assert_eq!(state["tasks"].as_object().unwrap().len(), 4_000);
}
