//! Conditions: which are accepted, and their values.

use std::collections::BTreeMap;

use jobq::workflow::condition::Condition;
use serde_json::Value;

use crate::support::replay;

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
