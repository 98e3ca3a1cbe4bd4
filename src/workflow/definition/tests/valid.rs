//! What valid texts turn into.

use super::support::accepted;
use crate::workflow::definition::Definition;
use crate::workflow::{DepPolicy, ResultPolicy};

#[test]
fn every_field_arrives() {
    let definition = accepted(
        "\
$schema: ../docs/workflow.schema.json
name: nightly
default_queue: cpu
default_task_timeout_s: 60
max_parallelism: 2
result_policy: all_tasks_succeed
labels: {team: vision, cost/center: '7'}
tasks:
  - name: prepare data
    kwargs:
      cmd: |
        echo one
        echo two
      env: {SEED: 7, FLAG: on, RATE: 0.5}
      cwd: /data
    num_retries: 2
    timeout_s: 0.5
  - name: train
    depends_on: [prepare data]
    dep_policy: all_settled
    queue: gpu
    condition: inputs['prepare data'].rows > 0
",
    );
    let expected = concat!(
        r#"{"name":"nightly","default_queue":"cpu","default_task_timeout_s":60,"max_parallelism":2,"#,
        r#""result_policy":"all_tasks_succeed","labels":{"cost/center":"7","team":"vision"},"tasks":["#,
        r#"{"name":"prepare data","kwargs":{"cmd":"echo one\necho two\n","cwd":"/data","#,
        r#""env":{"FLAG":"on","RATE":0.5,"SEED":7}},"dep_policy":"all","timeout_s":0.5,"num_retries":2},"#,
        r#"{"name":"train","kwargs":{},"depends_on":["prepare data"],"queue":"gpu","#,
        r#""dep_policy":"all_settled","num_retries":0,"condition":"inputs['prepare data'].rows > 0"}]}"#,
    );
    assert_eq!(definition.to_json(), expected);
    assert_eq!(Definition::from_json(expected).unwrap().to_json(), expected);
}

#[test]
fn null_counts_as_absent() {
    for text in [
        r#"{"name": "w", "default_queue": null, "default_task_timeout_s": null, "max_parallelism": null, "result_policy": null, "labels": null,
            "tasks": [{"name": "a", "kwargs": null, "depends_on": null, "queue": null, "dep_policy": null, "timeout_s": null, "num_retries": null, "condition": null}]}"#,
        "name: w\ndefault_queue: ~\ntasks:\n- name: a\n  kwargs:\n  depends_on:\n  condition: null\n",
    ] {
        let definition = accepted(text);
        assert_eq!(definition.default_queue.as_str(), "default");
        assert_eq!(definition.result_policy, ResultPolicy::AllSinksSucceed);
        let task = &definition.tasks[0];
        assert_eq!(task.kwargs.get(), "{}");
        assert_eq!(task.dep_policy, DepPolicy::All);
        assert!(task.depends_on.is_empty() && task.queue.is_none() && task.condition.is_none());
    }
}

#[test]
fn kwargs_keep_their_text_and_every_digit() {
    let kwargs = r#"{"b": 123456789012345678901234567890, "a" : 1.50}"#;
    let json = accepted(&format!(
        r#"{{"name": "w", "tasks": [{{"name": "a", "kwargs": {kwargs}}}]}}"#
    ));
    assert_eq!(json.tasks[0].kwargs.get(), kwargs);
    let yaml = accepted(&format!("name: w\ntasks:\n- name: a\n  kwargs: {kwargs}\n"));
    assert_eq!(
        yaml.tasks[0].kwargs.get(),
        r#"{"b":123456789012345678901234567890,"a":1.5}"#
    );
    assert_eq!(json.sha256(), yaml.sha256());
}

#[test]
fn yaml_keys_are_text_as_they_are_spelt() {
    let yaml = "name: w\ntasks:\n- name: a\n  kwargs: {8080: a, true: b, 1.50: c, yes: d}\n";
    let expected = r#"{"8080":"a","true":"b","1.50":"c","yes":"d"}"#;
    assert_eq!(accepted(yaml).tasks[0].kwargs.get(), expected);
}

#[test]
fn anchors_and_merge_keys_spare_repetition() {
    let definition = accepted(
        "\
name: w
tasks:
  - &first
    name: a
    queue: gpu
    num_retries: 3
    kwargs: &kwargs {cmd: 'true', env: &env {A: '1', B: '2'}}
  - <<: *first
    name: b
    kwargs:
      <<: *kwargs
      env: {<<: [{B: '3'}, *env], C: '4'}
      '<<': quoted
",
    );
    let second = &definition.tasks[1];
    assert_eq!(second.queue.as_deref(), Some("gpu"));
    assert_eq!(second.num_retries, 3);
    assert_eq!(
        second.kwargs.get(),
        r#"{"env":{"C":"4","B":"3","A":"1"},"<<":"quoted","cmd":"true"}"#
    );
}

#[test]
fn yaml_dialects_of_text_are_read() {
    let tasks = "name: w\ntasks: [{name: a}]";
    for text in [
        format!("\u{feff}{tasks}"),
        format!("# comment\n%YAML 1.2\n---\n{tasks}\n...\n").replace("# comment\n", ""),
        tasks.replace('\n', "\r\n"),
        "{name: w, tasks: [{name: a}]}".to_owned(),
        "{\"name\": \"w\", \"tasks\": [{\"name\": \"a\"},]}".to_owned(),
        "\u{feff}{\"name\": \"w\", \"tasks\": [{\"name\": \"a\"}]}".to_owned(),
        "!!map {name: !!str w, tasks: !!seq [{name: ! a}]}".to_owned(),
    ] {
        assert_eq!(accepted(&text).name, "w", "{text}");
    }
}

#[test]
fn texts_that_mean_the_same_hash_the_same() {
    let hash = |text: &str| accepted(text).sha256();
    let base = hash(
        "name: w\ntasks:\n- {name: a, queue: q, timeout_s: 5, kwargs: {x: 1.0, y: 2}}\n- {name: b, queue: q, timeout_s: 5}\n- {name: c, depends_on: [a, b], queue: q, timeout_s: 5}\n",
    );
    assert_eq!(base.len(), 64);
    let same = r#"{"default_queue": "q", "default_task_timeout_s": 5.0, "result_policy": "all_sinks_succeed", "name": "w",
        "tasks": [{"kwargs": {"\u0079": 2, "x": 10e-1}, "name": "a"}, {"name": "b"}, {"name": "c", "depends_on": ["b", "a"], "num_retries": 0}]}"#;
    assert_eq!(hash(same), base);
    for (from, to) in [
        ("\"q\"", "\"p\""),
        ("5.0", "6"),
        (": 2", ": 3"),
        ("\"num_retries\": 0", "\"num_retries\": 1"),
        ("\"name\": \"w\"", "\"name\": \"v\""),
    ] {
        assert_ne!(hash(&same.replacen(from, to, 1)), base, "{from} to {to}");
    }
}
