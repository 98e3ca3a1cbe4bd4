//! The published JSON Schema says what the parser does.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::super::fields::{TASK_FIELDS, WORKFLOW_FIELDS};
use super::super::kwargs::RESERVED_KEYS;
use crate::limits;
use crate::workflow::definition::Definition;

pub(super) fn schema() -> Value {
    let text = include_str!("../../../../docs/workflow.schema.json");
    serde_json::from_str(text).unwrap()
}

#[test]
fn the_schema_knows_the_same_fields() {
    let schema = schema();
    let names = |pointer: &str| -> BTreeSet<String> {
        let properties = schema.pointer(pointer).unwrap().as_object().unwrap();
        properties.keys().cloned().collect()
    };
    let expected = |fields: &[&str]| fields.iter().map(|&field| field.to_owned()).collect();
    assert_eq!(names("/properties"), expected(WORKFLOW_FIELDS));
    assert_eq!(names("/$defs/task/properties"), expected(TASK_FIELDS));
    let reserved = &schema["$defs"]["task"]["properties"]["kwargs"]["propertyNames"]["not"]["enum"];
    assert_eq!(*reserved, json!(RESERVED_KEYS));
}

#[test]
fn the_schema_knows_the_same_limits() {
    let schema = schema();
    for (pointer, limit) in [
        (
            "/properties/name/maxLength",
            limits::WORKFLOW_NAME_BYTES_MAX as u64,
        ),
        ("/properties/tasks/maxItems", limits::TASKS_MAX as u64),
        ("/properties/max_parallelism/maximum", u64::from(u32::MAX)),
        (
            "/properties/labels/maxProperties",
            limits::LABELS_MAX as u64,
        ),
        (
            "/properties/labels/propertyNames/maxLength",
            limits::LABEL_BYTES_MAX as u64,
        ),
        (
            "/properties/labels/additionalProperties/maxLength",
            limits::LABEL_BYTES_MAX as u64,
        ),
        (
            "/$defs/task/properties/name/maxLength",
            limits::TASK_NAME_BYTES_MAX as u64,
        ),
        (
            "/$defs/task/properties/num_retries/maximum",
            u64::from(limits::RETRIES_MAX),
        ),
        (
            "/$defs/task/properties/condition/maxLength",
            limits::CONDITION_BYTES_MAX as u64,
        ),
        ("/$defs/seconds/maximum", limits::TIMEOUT_S_MAX),
    ] {
        assert_eq!(schema.pointer(pointer), Some(&json!(limit)), "{pointer}");
    }
}

#[test]
fn every_field_of_the_schema_is_described() {
    let schema = schema();
    for pointer in ["/properties", "/$defs/task/properties"] {
        for (name, field) in schema.pointer(pointer).unwrap().as_object().unwrap() {
            assert!(field["description"].is_string(), "{pointer}/{name}");
        }
    }
}

/// The schema may be more lenient than the parser, never stricter.
#[test]
fn what_the_schema_refuses_the_parser_refuses() {
    let schema = jsonschema::validator_for(&schema()).unwrap();
    let folder = std::env::var("JOBQ_FIXTURES")
        .unwrap_or_else(|_| concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures").to_owned());
    let lines = std::fs::read_to_string(format!("{folder}/definitions.jsonl")).unwrap();
    let fixtures = lines.lines().map(|line| {
        let line: Value = serde_json::from_str(line).unwrap();
        line["definition"].clone()
    });
    let mut both = 0;
    for definition in fixtures.chain(near_the_rules()) {
        let verdict = Definition::from_value(&definition);
        let is_schema_content = schema.is_valid(&definition);
        both += usize::from(verdict.is_err() && !is_schema_content);
        assert!(
            verdict.is_err() || is_schema_content,
            "the schema alone refuses {definition}"
        );
    }
    assert!(
        both >= 40,
        "the schema should find most faults, it found {both}"
    );
}

/// Definitions on either side of single rules.
fn near_the_rules() -> impl Iterator<Item = Value> {
    let fields = [
        ("kwargs", json!(null)),
        (
            "kwargs",
            json!({"cmd": null, "env": null, "cwd": null, "x": [1, {"y": null}]}),
        ),
        ("kwargs", json!({"cmd": 5})),
        ("kwargs", json!({"env": {"A": 1.5, "B": true, "C": "c"}})),
        ("kwargs", json!({"env": {"A": []}})),
        ("kwargs", json!({"env": {"": "a"}})),
        ("kwargs", json!({"__batch_merge": true})),
        ("depends_on", json!(null)),
        ("depends_on", json!([])),
        ("depends_on", json!(["p", "p"])),
        ("queue", json!(null)),
        ("queue", json!("q".repeat(63))),
        ("queue", json!("q".repeat(64))),
        ("queue", json!("_q")),
        ("dep_policy", json!(null)),
        ("dep_policy", json!("any")),
        ("dep_policy", json!(-1)),
        ("dep_policy", json!(1.5)),
        ("timeout_s", json!(null)),
        ("timeout_s", json!(0.001)),
        ("timeout_s", json!(limits::TIMEOUT_S_MAX)),
        ("timeout_s", json!(limits::TIMEOUT_S_MAX + 1)),
        ("timeout_s", json!(0)),
        ("num_retries", json!(limits::RETRIES_MAX)),
        ("num_retries", json!(limits::RETRIES_MAX + 1)),
        ("num_retries", json!(null)),
        ("condition", json!(null)),
        ("condition", json!("inputs.p.x")),
        ("name", json!("__merge_x")),
        ("name", json!("n".repeat(257))),
    ];
    let tasks = fields.into_iter().map(|(field, value)| {
        let mut task = json!({"name": "a"});
        task[field] = value;
        json!({"name": "w", "tasks": [{"name": "p"}, task]})
    });
    let workflows = [
        ("$schema", json!("anything")),
        ("labels", json!({"a/b": "c"})),
        ("labels", json!({"a b": "c"})),
        ("labels", json!({"a": null})),
        ("result_policy", json!(null)),
        ("max_parallelism", json!(u32::MAX)),
        ("max_parallelism", json!(u64::from(u32::MAX) + 1)),
        ("default_queue", json!("")),
        ("default_task_timeout_s", json!(-1)),
        ("name", json!("")),
    ];
    tasks.chain(workflows.into_iter().map(|(field, value)| {
        let mut workflow = json!({"name": "w", "tasks": [{"name": "p"}]});
        workflow[field] = value;
        workflow
    }))
}
