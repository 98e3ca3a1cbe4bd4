//! What log lines say, read as machines read them.

use std::process::{Command, Output};

use jobq::telemetry::{self, LogFormat};
use serde_json::Value;

use crate::support::{Site, eventually, text};

fn lines(log: &str) -> Vec<Value> {
    let lines = log.lines().filter(|line| line.starts_with('{'));
    lines
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

#[test]
fn lines_about_an_attempt_name_it() {
    let site = Site::new();
    let flags = ["--log-format", "json", "--cancel-poll-interval", "50ms"];
    let server = site.spawn(&[&["serve", "--worker", "default"], &flags[..]].concat());
    let started = site.path().join("started");
    let file = site.definition(
        "long.yaml",
        &format!(
            "name: long\ntasks:\n  - name: a\n    kwargs: {{ cmd: 'touch {}; sleep 600' }}\n",
            started.display()
        ),
    );
    site.stdout(&["submit", &file, "--id", "long-1"]);
    eventually("its command runs", || started.exists());
    site.stdout(&["cancel", "long-1"]);
    let mut found = Value::Null;
    eventually("the worker stops it", || {
        let message = "the workflow was cancelled, stopping the task";
        let line = lines(&server.log())
            .into_iter()
            .find(|line| line["message"] == message);
        found = line.unwrap_or_default();
        !found.is_null()
    });
    let about = &found["span"];
    assert_eq!(about["workflow_id"], "long-1", "{found}");
    assert_eq!(about["task"], "a");
    assert_eq!(about["attempt_no"], 1);
    assert_eq!(about["queue"], "default");
    eventually("the workflow has ended", || {
        let finished = |line: &Value| line["message"] == "workflow finished";
        lines(&server.log()).iter().any(|line| {
            finished(line) && line["workflow_id"] == "long-1" && line["state"] == "cancelled"
        })
    });
}

/// Set in the process that is to panic.
const CHILD: &str = "JOBQ_TEST_PANICS";

#[test]
fn a_panic_is_one_line() {
    if std::env::var_os(CHILD).is_some() {
        let telemetry = telemetry::start("info", LogFormat::Json, None).unwrap();
        std::thread::Builder::new()
            .name("doomed".to_owned())
            .spawn(|| panic!("cannot\ngo on"))
            .unwrap()
            .join()
            .unwrap_err();
        telemetry.end();
        return;
    }
    let this = std::env::current_exe().unwrap();
    let run = |backtrace: &str| -> Output {
        Command::new(&this)
            .args(["--exact", "logs::a_panic_is_one_line", "--nocapture"])
            .env(CHILD, "1")
            .env("RUST_BACKTRACE", backtrace)
            .output()
            .unwrap()
    };
    for (backtrace, has_one) in [("0", false), ("1", true)] {
        let output = run(backtrace);
        assert!(output.status.success(), "{output:?}");
        let stderr = text(&output.stderr);
        assert_eq!(stderr.lines().count(), 1, "{stderr}");
        let line: Value = serde_json::from_str(&stderr).unwrap();
        assert_eq!(line["level"], "ERROR");
        assert_eq!(line["error"], "cannot\ngo on");
        assert_eq!(line["thread"], "doomed");
        let place = line["place"].as_str().unwrap();
        assert!(place.contains("tests/tracing/logs.rs:"), "{place}");
        assert_eq!(line.get("backtrace").is_some(), has_one);
    }
}
