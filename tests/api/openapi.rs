//! The committed description is that of the server, and holds together.

use std::collections::BTreeSet;

use jobq::workflow::{ResultPolicy, TaskState, WorkflowState};
use serde_json::{Value, json};

#[test]
fn the_committed_description_is_the_served_one() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/openapi/openapi.json");
    let mut served = jobq::api::rest::document().to_pretty_json().unwrap();
    served.push('\n');
    if std::env::var_os("JOBQ_WRITE_OPENAPI").is_some() {
        std::fs::write(path, &served).unwrap();
    }
    let committed = std::fs::read_to_string(path).unwrap_or_default();
    assert!(
        committed == served,
        "openapi/openapi.json is outdated; JOBQ_WRITE_OPENAPI=1 cargo test --test api openapi writes it"
    );
}

/// Each value under a key, wherever it stands.
fn under<'v>(key: &str, value: &'v Value, found: &mut Vec<&'v Value>) {
    match value {
        Value::Object(fields) => {
            found.extend(fields.get(key));
            fields.values().for_each(|field| under(key, field, found));
        }
        Value::Array(items) => items.iter().for_each(|item| under(key, item, found)),
        _ => {}
    }
}

fn served() -> Value {
    serde_json::to_value(jobq::api::rest::document()).unwrap()
}

#[test]
fn operations_have_names_of_their_own_and_references_lead_somewhere() {
    let served = served();
    let mut names = Vec::new();
    under("operationId", &served, &mut names);
    let distinct: BTreeSet<String> = names.iter().map(ToString::to_string).collect();
    assert!(
        names.len() > 10 && distinct.len() == names.len(),
        "{names:?}"
    );
    let mut references = Vec::new();
    under("$ref", &served, &mut references);
    assert!(references.len() > 10);
    for reference in references {
        let pointer = reference.as_str().unwrap().trim_start_matches('#');
        assert!(served.pointer(pointer).is_some(), "{pointer}");
    }
}

#[test]
fn words_are_described_as_they_are_sent() {
    let served = served();
    let words = |name: &str| served["components"]["schemas"][name]["enum"].clone();
    assert_eq!(words("WorkflowState"), json!(WorkflowState::ALL));
    assert_eq!(words("TaskState"), json!(TaskState::ALL));
    assert_eq!(words("ResultPolicy"), json!(ResultPolicy::ALL));
    let terminal = WorkflowState::ALL
        .iter()
        .filter(|state| state.is_terminal());
    assert_eq!(words("TerminalState"), json!(terminal.collect::<Vec<_>>()));
}
