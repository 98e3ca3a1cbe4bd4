//! State blobs and index rows: written as the golden data has them, and read whoever wrote them.

use std::io::Write as _;

use flate2::Compression;
use flate2::write::GzEncoder;
use jobq::clock::Timestamp;
use jobq::storage::{Properties, Value as Property};
use jobq::wire::{index_row, state_blob};
use jobq::workflow::definition::Definition;
use jobq::workflow::runtime::{Completion, LoadedOutputs, Runtime};
use jobq::workflow::{WorkflowId, WorkflowState};
use serde_json::{Value, json};

use crate::support;

fn fixture(name: &str) -> Value {
    let fixtures: Value = serde_json::from_str(&support::text("wire.json")).unwrap();
    fixtures[name].clone()
}

/// The workflow of the golden data, submitted at its moment.
fn submitted() -> Runtime {
    let definition = json!({
        "name": "diamond",
        "default_queue": "cpu",
        "tasks": [
            {"name": "A", "kwargs": {"cmd": "echo <A> & \"é\""}},
            {"name": "B", "depends_on": ["A"], "queue": "gpu", "num_retries": 2, "timeout_s": 30},
            {"name": "C", "depends_on": ["A"], "condition": "inputs.A.ok"},
            {"name": "D", "depends_on": ["B", "C"], "dep_policy": 1},
        ],
    });
    let id = WorkflowId::parse("3f2a9c0e5b7d4a1f8e6c2b1d0a9f8e7d").unwrap();
    let now: Timestamp = "2026-01-02T03:04:05.678901+00:00".parse().unwrap();
    Runtime::new(id, &Definition::from_value(&definition).unwrap(), now)
}

fn encoded(runtime: &Runtime) -> Value {
    serde_json::from_slice(&state_blob::encode(runtime)).unwrap()
}

fn decoded(blob: &Value) -> Runtime {
    state_blob::decode(blob.to_string().as_bytes()).unwrap()
}

/// A row as the golden data spells it.
fn spelled(runtime: &Runtime, properties: Properties) -> Value {
    let id = &runtime.header().workflow_id;
    let mut row = json!({"PartitionKey": jobq::wire::Names::partition_key(id), "RowKey": id});
    for (name, property) in properties {
        row[name] = match property {
            Property::String(text) => json!(text),
            Property::Bool(flag) => json!(flag),
            Property::Int32(number) => json!(number),
            Property::DateTime(time) => json!(time.to_string()),
        };
    }
    row
}

#[test]
fn a_submitted_workflow_is_written_as_the_golden_blob_and_row() {
    let runtime = submitted();
    assert_eq!(encoded(&runtime), fixture("state_blob_submitted"));
    let row = spelled(&runtime, index_row::complete(&runtime));
    assert_eq!(row, fixture("index_row_submitted"));
}

#[test]
fn a_running_workflow_is_read_and_written_back_as_it_was() {
    let blob = fixture("state_blob_running");
    let runtime = decoded(&blob);
    assert_eq!(encoded(&runtime), blob);
    let row = spelled(&runtime, index_row::complete(&runtime));
    assert_eq!(row, fixture("index_row_running"));
}

/// As the other program writes it: `running` from the first ready root on, keys of its own.
fn of_another_program() -> Value {
    let mut blob = fixture("state_blob_running");
    blob["x_program"] = json!({"name": "another", "numbers": [1, 2.5]});
    blob["tasks"]["C"]["x_note"] = json!("kept");
    blob
}

fn advance(mut runtime: Runtime) -> Value {
    let now: Timestamp = "2026-12-01T06:00:00.000000+00:00".parse().unwrap();
    let report = Completion {
        attempt_no: Some(1),
        retry_no: None,
        success: true,
        output_ref: Some("[1]"),
        error: None,
    };
    let c = runtime.find("C").unwrap();
    runtime.apply(c, &report, now);
    runtime.settle(&LoadedOutputs::new(), now);
    let d = runtime.find("D").unwrap();
    runtime.dispatch(d, now).unwrap();
    runtime.apply(d, &report, now);
    assert_eq!(runtime.state(), WorkflowState::Completed);
    encoded(&runtime)
}

#[test]
fn another_programs_blob_is_advanced_with_its_unknown_keys_intact() {
    let blob = of_another_program();
    let text = blob.to_string();
    let mut gzip = GzEncoder::new(Vec::new(), Compression::new(6));
    gzip.write_all(text.as_bytes()).unwrap();
    for bytes in [text.into_bytes(), gzip.finish().unwrap()] {
        let advanced = advance(state_blob::decode(&bytes).unwrap());
        assert_eq!(advanced["x_program"], blob["x_program"]);
        assert_eq!(
            advanced["tasks"]["C"]["x_note"],
            blob["tasks"]["C"]["x_note"]
        );
        assert_eq!(advanced["tasks"]["C"]["state"], "completed");
        assert_eq!(advanced["tasks"]["D"]["completed_parents"], 2);
        for task in ["A", "B"] {
            assert_eq!(
                advanced["tasks"][task], blob["tasks"][task],
                "{task} was left alone"
            );
        }
    }
}

#[test]
fn a_blob_that_says_running_before_anything_ran_is_pending_here() {
    let mut blob = fixture("state_blob_submitted");
    blob["workflow_state"] = json!("running");
    assert_eq!(decoded(&blob).state(), WorkflowState::Pending);
}
