//! Replays the fixtures that other implementations of the formats agree on.
//!
//! They are read from the folder `JOBQ_FIXTURES`, or from `tests/fixtures`. Each test reports all
//! lines that disagree, not only the first.

use std::collections::BTreeMap;
use std::path::PathBuf;

use jobq::workflow::condition::Condition;
use serde_json::Value;

/// Calls `check` with each line of a fixture file; it returns what disagrees.
#[track_caller]
fn replay(file: &str, check: impl Fn(&Value) -> Result<(), String>) {
    let folder = std::env::var_os("JOBQ_FIXTURES").map_or_else(
        || PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures"),
        PathBuf::from,
    );
    let path = folder.join(file);
    let text = std::fs::read_to_string(&path)
        .unwrap_or_else(|error| panic!("cannot read {}: {error}", path.display()));
    let mut lines = 0;
    let mut disagreements = Vec::new();
    for (index, line) in text
        .lines()
        .enumerate()
        .filter(|(_, line)| !line.is_empty())
    {
        lines += 1;
        let value = serde_json::from_str(line)
            .unwrap_or_else(|error| panic!("{file}:{}: {error}", index + 1));
        if let Err(disagreement) = check(&value) {
            disagreements.push(format!("{file}:{}: {disagreement}", index + 1));
        }
    }
    assert!(lines > 0, "{file} is empty");
    assert!(
        disagreements.is_empty(),
        "{} of {lines} lines disagree:\n{}",
        disagreements.len(),
        disagreements.join("\n")
    );
}

#[test]
fn conditions_have_the_values_of_the_fixtures() {
    replay("conditions.jsonl", |case| {
        let text = case["expr"].as_str().ok_or("expr is no text")?;
        let inputs = case["inputs"].as_object().ok_or("inputs are no object")?;
        let inputs: BTreeMap<&str, Value> = inputs
            .iter()
            .map(|(name, output)| (name.as_str(), output.clone()))
            .collect();
        let condition = Condition::parse(text).map_err(|error| format!("{text}: {error}"))?;
        // What fails to evaluate counts as false.
        let value = condition.evaluate(&inputs);
        if Some(*value.as_ref().unwrap_or(&false)) == case["result"].as_bool() {
            Ok(())
        } else {
            Err(format!(
                "{text}: got {value:?}, expected {}",
                case["result"]
            ))
        }
    });
}

#[test]
fn conditions_are_accepted_and_refused_as_in_the_fixtures() {
    replay("condition_validation.jsonl", |case| {
        let text = case["expr"].as_str().ok_or("expr is no text")?;
        let dependencies = case["depends_on"]
            .as_array()
            .ok_or("depends_on is no list")?;
        let dependencies: Vec<&str> = dependencies.iter().filter_map(Value::as_str).collect();
        let verdict = Condition::parse(text)
            .map_err(|error| error.to_string())
            .and_then(|condition| {
                condition
                    .check_references(&dependencies)
                    .map_err(|problems| problems.join("; "))
            });
        if Some(verdict.is_ok()) == case["valid"].as_bool() {
            Ok(())
        } else {
            Err(format!(
                "{text}: got {verdict:?}, expected valid: {}",
                case["valid"]
            ))
        }
    });
}
