//! Replays the fixtures about definitions: which are valid, and what the fan-in rewrite makes.

use std::collections::BTreeMap;

use jobq::workflow::definition::Definition;
use jobq::workflow::fan_in::limit_fan_in;
use serde_json::Value;

use crate::support;

#[test]
fn every_definition_of_the_fixtures_is_judged_as_given() {
    let mut wrong = Vec::new();
    for line in support::text("definitions.jsonl").lines() {
        let line: Value = serde_json::from_str(line).unwrap();
        let text = serde_json::to_string_pretty(&line["definition"]).unwrap();
        // The same text once more with a comment in front, which makes it YAML.
        let yaml = format!("# a comment\n{text}");
        let verdicts = [
            ("json text", Definition::from_text(text.as_bytes())),
            ("yaml text", Definition::from_text(yaml.as_bytes())),
            ("json value", Definition::from_value(&line["definition"])),
        ];
        for (form, verdict) in verdicts {
            if verdict.is_ok() != line["valid"].as_bool().unwrap() {
                wrong.push(format!("{} as {form}: {verdict:?}", line["case"]));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Seven parents of one leaf, three at a time.
#[test]
fn the_fan_in_rewrite_makes_what_the_fixture_shows() {
    let wire: Value = serde_json::from_str(&support::text("wire.json")).unwrap();
    let expected = &wire["fan_in_7_by_3"];
    let parents: Vec<String> = (0..7).map(|number| format!("p{number}")).collect();
    let mut tasks: Vec<Value> = parents
        .iter()
        .map(|p| serde_json::json!({"name": p}))
        .collect();
    tasks.push(serde_json::json!({"name": "leaf", "depends_on": parents}));
    let definition = serde_json::json!({"name": "fan", "tasks": tasks});

    let definition = limit_fan_in(Definition::from_value(&definition).unwrap(), 3).unwrap();

    let actual: Value = serde_json::from_str(&definition.to_json()).unwrap();
    assert_eq!(actual["name"], expected["name"]);
    assert_eq!(actual["default_queue"], expected["default_queue"]);
    assert_eq!(all_fields(&actual["tasks"]), all_fields(&expected["tasks"]));
}

/// Tasks with absent fields spelt out, as the fixture has them.
fn all_fields(tasks: &Value) -> Vec<BTreeMap<String, Value>> {
    let defaults = [
        ("depends_on", serde_json::json!([])),
        ("queue", Value::Null),
        ("timeout_s", Value::Null),
    ];
    let task = |task: &Value| {
        let mut fields: BTreeMap<String, Value> =
            serde_json::from_value(task.clone()).expect("a task is a map");
        for (name, value) in &defaults {
            fields
                .entry((*name).to_owned())
                .or_insert_with(|| value.clone());
        }
        fields
    };
    tasks
        .as_array()
        .expect("tasks are a list")
        .iter()
        .map(task)
        .collect()
}
