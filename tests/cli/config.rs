//! `jobq config` and the layers of settings.

use serde_json::{Value, json};

use crate::support::{Site, text};

/// The row of a setting.
fn row(rows: &Value, setting: &str) -> Value {
    let found = rows.as_array().unwrap().iter();
    let mut found = found.filter(|row| row["setting"] == setting);
    found.next().unwrap_or(&Value::Null).clone()
}

#[test]
fn each_setting_is_shown_with_the_place_it_came_from() {
    let site = Site::new();
    let file = site.definition(
        "settings.yaml",
        "connection:\n  prefix: Filed\nworker:\n  parallel: 7\ncoordinator:\n  batch_size: 3\n",
    );
    let mut command = site.jobq(&["config", "-o", "json", "--batch-size", "5"]);
    command
        .env("JOBQ_WORKFLOW_CONFIG", &file)
        .env("JOBQ_KILL_TIMEOUT", "7s");
    let output = command.output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let rows: Value = serde_json::from_slice(&output.stdout).unwrap();
    for (setting, value, from) in [
        ("connection.prefix", json!("Filed"), format!("{file}:2")),
        ("worker.parallel", json!("7"), format!("{file}:4")),
        (
            "coordinator.batch_size",
            json!("5"),
            "--batch-size".to_owned(),
        ),
        (
            "worker.kill_timeout",
            json!("7s"),
            "JOBQ_KILL_TIMEOUT".to_owned(),
        ),
        (
            "coordinator.idle_sleep_s",
            json!("0.5"),
            "default".to_owned(),
        ),
        ("log", Value::Null, "default".to_owned()),
    ] {
        let expected = json!({"setting": setting, "value": value, "from": from});
        assert_eq!(row(&rows, setting), expected);
    }
    let storage = row(&rows, "connection.storage");
    assert_eq!(storage["from"], "JOBQ_STORAGE");
}

#[test]
fn secrets_are_masked_and_endpoints_are_not() {
    let site = Site::new();
    let secret = "c2VjcmV0IHNlY3JldA==";
    let mut command = site.jobq(&["config", "--storage", "azure"]);
    command.env(
        "AZURE_STORAGE_CONNECTION_STRING",
        format!("AccountName=science;AccountKey={secret};QueueEndpoint=https://q.example/science"),
    );
    let output = command.output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let shown = text(&output.stdout);
    for part in [
        "account key (***)",
        "https://science.blob.core.windows.net",
        "https://q.example/science",
        "AZURE_STORAGE_CONNECTION_STRING",
    ] {
        assert!(shown.contains(part), "{part} in {shown}");
    }
    assert!(!shown.contains(secret), "{shown}");
}

#[test]
fn a_bad_file_stops_every_command_with_all_its_problems() {
    let site = Site::new();
    let file = site.definition("bad.yaml", "connection:\n  prefix: '1'\n  colour: red\n");
    let output = site.output(&["list", "--config", &file]);
    assert_eq!(output.status.code(), Some(2));
    let stderr = text(&output.stderr);
    for part in [
        "bad.yaml:2: ",
        "bad.yaml:3: there is no setting connection.colour",
    ] {
        assert!(stderr.contains(part), "{part} in {stderr}");
    }
    let output = site.output(&["list", "--config", "missing.yaml"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("missing.yaml"));
}

#[test]
fn queues_and_file_outputs_may_live_elsewhere() {
    let site = Site::new();
    let elsewhere = |name: &str| format!("sqlite:{}", site.path().join(name).display());
    let queues = elsewhere("queues");
    let files = format!("{}/results", elsewhere("files"));
    let file = site.definition(
        "files.yaml",
        "name: files\ntasks:\n\
         \x20 - name: a\n\
         \x20   kwargs:\n\
         \x20     cmd: |\n\
         \x20       echo data > data.txt\n\
         \x20       jobq task set-output '{\"file\": {\"__jobq_stash__\": {\"v\": 1, \"state\": \"pending\", \"local_path\": \"data.txt\", \"filename\": \"data.txt\"}}}'\n",
    );
    let flags = ["--queue-storage", &queues, "--file-storage", &files];
    let mut args = vec!["run", &file, "--id", "files"];
    args.extend(flags);
    site.stdout(&args);
    let output: Value = site.json(&["output", "files", "a"]);
    assert_eq!(output["file"]["__jobq_stash__"]["state"], "ready");
    let blobs = |data: &str| site.path().join(data).join("jobq.db").is_file();
    let found = ["data", "queues", "files"].map(|name| {
        let directory = site.path().join(name);
        directory.is_dir() && std::fs::read_dir(directory).unwrap().count() > 0
    });
    assert_eq!(found, [true; 3], "{}", blobs("data"));
    // The queues are not beside the state: a worker there finds none of them.
    let mut list = site.jobq(&["list", "-o", "json"]);
    list.env("JOBQ_STORAGE", &queues);
    let output = list.output().unwrap();
    assert_eq!(text(&output.stdout).trim(), "[]");
}
