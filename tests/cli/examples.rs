//! Every example does what its first lines say.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::support::{Site, text};

/// Runs an example with `jobq run -o json`; the exit code, the workflow's state and its tasks.
#[track_caller]
fn run(example: &str) -> (i32, String, BTreeMap<String, Value>) {
    let site = Site::new();
    let output = site.output(&[
        "run",
        &format!("examples/{example}.yaml"),
        "--output",
        "json",
    ]);
    let report: Value = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}", text(&output.stderr)));
    let tasks = report["task_list"].as_array().unwrap().iter();
    let tasks = tasks.map(|task| (task["name"].as_str().unwrap().to_owned(), task.clone()));
    let state = report["workflow_state"].as_str().unwrap().to_owned();
    (output.status.code().unwrap(), state, tasks.collect())
}

#[track_caller]
fn output_of(tasks: &BTreeMap<String, Value>, task: &str) -> Value {
    let reference = &tasks[task]["output_ref"];
    let json = reference
        .as_str()
        .unwrap_or_else(|| panic!("{task}: {}", tasks[task]));
    serde_json::from_str(json).unwrap()
}

#[track_caller]
fn state_of<'a>(tasks: &'a BTreeMap<String, Value>, task: &str) -> &'a str {
    tasks[task]["state"].as_str().unwrap()
}

#[test]
fn diamond_joins_what_its_branches_found() {
    let (code, state, tasks) = run("diamond");
    assert_eq!((code, state.as_str()), (0, "completed"));
    // 303 primes up to 2000 and 44 squared.
    assert_eq!(
        output_of(&tasks, "report"),
        json!({"primes": 303, "largest_square": 1936})
    );
}

#[test]
fn sweep_publishes_the_best_fit_and_skips_the_alternative() {
    let (code, state, tasks) = run("sweep");
    assert_eq!((code, state.as_str()), (0, "completed"));
    assert_eq!(output_of(&tasks, "publish")["slope"], json!(2.9));
    assert_eq!(state_of(&tasks, "widen"), "skipped");
    assert_eq!(tasks["widen"]["error"], json!("the condition is false"));
}

#[test]
fn flaky_succeeds_at_its_third_attempt() {
    let (code, state, tasks) = run("flaky");
    assert_eq!((code, state.as_str()), (0, "completed"));
    assert_eq!(tasks["download"]["attempt_no"], json!(3));
    assert_eq!(output_of(&tasks, "download"), json!({"attempt": 3}));
}

#[test]
fn fan_sums_two_hundred_squares() {
    let (code, state, tasks) = run("fan");
    assert_eq!((code, state.as_str()), (0, "completed"));
    let sum: u64 = (1..=200).map(|n: u64| n * n).sum();
    assert_eq!(output_of(&tasks, "sum"), json!({ "sum": sum }));
}

#[test]
fn settled_absorbs_the_mirror_that_failed() {
    let (code, state, tasks) = run("settled");
    assert_eq!((code, state.as_str()), (0, "completed"));
    assert_eq!(state_of(&tasks, "mirror/south"), "failed");
    let error = tasks["mirror/south"]["error"].as_str().unwrap();
    assert!(
        error.contains("exit code 1") && error.contains("does not answer"),
        "{error}"
    );
    assert_eq!(output_of(&tasks, "collect"), json!({"packages": 200}));
}

#[test]
fn every_example_is_valid_and_run_by_a_test() {
    let tested = include_str!("examples.rs");
    let site = Site::new();
    let mut count = 0;
    for entry in std::fs::read_dir("examples").unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|extension| extension != "yaml") {
            continue;
        }
        let name = path.file_stem().unwrap().to_str().unwrap();
        assert!(
            tested.contains(&format!("run(\"{name}\")")),
            "{name} is run by no test"
        );
        let output = site.output(&["validate", path.to_str().unwrap()]);
        assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
        let first = std::fs::read_to_string(&path).unwrap();
        assert!(first.starts_with("# yaml-language-server: $schema=../docs/workflow.schema.json"));
        count += 1;
    }
    assert!(count >= 5, "{count} examples");
}
