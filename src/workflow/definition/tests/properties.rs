//! What holds for every text and every definition.

use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::{Map, Value, json};

use super::schema::schema;
use crate::workflow::definition::Definition;

/// JSON values that `kwargs` may hold.
fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        (-1e300..1e300_f64).prop_map(Value::from),
        ".{0,12}".prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 16, 4, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..4).prop_map(Value::from),
            vec((".{0,6}", inner), 0..4).prop_map(|entries| Value::from(Map::from_iter(entries))),
        ]
    })
}

/// A valid definition: task i depends on some of those before it.
fn definition() -> impl Strategy<Value = Value> {
    let task = (
        "[^\\p{Cc}/]{0,8}",
        vec(("x.{0,6}", value()), 0..4),
        vec(any::<prop::sample::Index>(), 0..4),
        prop_oneof![Just("all"), Just("any"), Just("all_settled")],
        proptest::option::of(1_u32..100_000),
        0_u32..=1_000,
    );
    let workflow = (
        vec(task, 1..12),
        proptest::option::of(1_u32..9),
        proptest::option::of("[a-z][a-z0-9-]{0,9}"),
    );
    workflow.prop_map(|(tasks, max_parallelism, default_queue)| {
        let mut names: Vec<String> = Vec::new();
        let mut list = Vec::new();
        for (index, (name, kwargs, parents, dep_policy, timeout, num_retries)) in
            tasks.into_iter().enumerate()
        {
            let mut depends_on: Vec<&String> = Vec::new();
            for parent in parents.iter().filter(|_| index > 0) {
                depends_on.push(&names[parent.index(index)]);
            }
            depends_on.sort();
            depends_on.dedup();
            let name = format!("{index}{name}.");
            list.push(json!({
                "name": name,
                "kwargs": Map::from_iter(kwargs),
                "depends_on": depends_on,
                "dep_policy": dep_policy,
                "timeout_s": timeout.map(|half| f64::from(half) / 2.0),
                "num_retries": num_retries,
            }));
            names.push(name);
        }
        json!({
            "name": "w",
            "tasks": list,
            "max_parallelism": max_parallelism,
            "default_queue": default_queue,
        })
    })
}

/// Pieces that texts near the languages are made of.
fn piece() -> impl Strategy<Value = String> {
    let words = [
        "name",
        "tasks",
        "kwargs",
        "depends_on",
        ": ",
        "- ",
        "\n",
        "  ",
        "{",
        "}",
        "[",
        "]",
        ",",
        "\"",
        "'",
        "&a ",
        "*a",
        "<<",
        "!!str ",
        "|\n",
        ">-\n",
        "? ",
        "#",
        "---\n",
        "...\n",
        "null",
        "1e9",
        "0x",
        "\\u00",
        "\t",
        "\r\n",
        "%YAML 1.2\n",
        "é",
        "\u{feff}",
        "\0",
        ".inf",
    ];
    prop_oneof![
        prop::sample::select(words.to_vec()).prop_map(str::to_owned),
        ".{0,3}"
    ]
}

proptest! {
    #[test]
    fn no_bytes_make_it_panic(bytes in vec(any::<u8>(), 0..200)) {
        let _ = Definition::from_text(&bytes);
    }

    #[test]
    fn no_text_makes_it_panic(pieces in vec(piece(), 0..40)) {
        let text = pieces.concat();
        for text in [text.clone(), format!("{{{text}"), format!("name: w\ntasks:\n{text}")] {
            if let Err(problems) = Definition::from_text(text.as_bytes()) {
                for problem in &problems.0 {
                    prop_assert!(problem.line >= Some(1) && problem.column >= Some(1), "{problem}");
                }
            }
        }
    }

    #[test]
    fn a_definition_survives_being_written_and_read(value in definition()) {
        let first = Definition::from_value(&value).map_err(|e| TestCaseError::fail(e.to_string()))?;
        let text = first.to_json();
        let second = Definition::from_json(&text).map_err(|e| TestCaseError::fail(e.to_string()))?;
        prop_assert_eq!(&second.to_json(), &text);
        prop_assert_eq!(second.sha256(), first.sha256());
        let schema = jsonschema::validator_for(&schema()).unwrap();
        prop_assert!(schema.is_valid(&value));
    }

    #[test]
    fn yaml_and_json_agree(value in definition()) {
        let json = Definition::from_value(&value).map_err(|e| TestCaseError::fail(e.to_string()))?;
        let yaml = format!("# yaml\n{value:#}");
        let yaml = Definition::from_text(yaml.as_bytes());
        let yaml = yaml.map_err(|e| TestCaseError::fail(e.to_string()))?;
        prop_assert_eq!(json.sha256(), yaml.sha256());
    }
}
