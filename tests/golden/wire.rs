//! Replays the examples that the upstream project's own program produced.
use std::collections::BTreeMap;

use jobq::wire::{CompletionMessage, Names, Prefix, TaskMessage, UpstreamRefs};
use jobq::workflow::{TaskName, WorkflowId};
use serde_json::Value;

use crate::support;

fn fixtures() -> Value {
    serde_json::from_str(&support::text("wire.json")).unwrap()
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap()
}

/// The JSON of a message with its nested JSON texts opened, so that two spellings of the same
/// message compare equal.
fn opened(message: &str) -> Value {
    let mut value: Value = serde_json::from_str(message).unwrap();
    let mut kwargs: Value = serde_json::from_str(text(&value["kwargs"])).unwrap();
    if let Some(body) = kwargs.get("__completion_body") {
        kwargs["__completion_body"] = serde_json::from_str(text(body)).unwrap();
    }
    value["kwargs"] = kwargs;
    value
}

#[test]
fn names_are_spelled_as_upstream_does() {
    let fixtures = fixtures();
    let expected = &fixtures["names"];
    let names = Names::new(Prefix::parse(text(&expected["prefix"])).unwrap());
    let workflow = WorkflowId::parse("3f2a9c0e5b7d4a1f8e6c2b1d0a9f8e7d").unwrap();
    let task = |name| TaskName::parse(name).unwrap();
    let ours = BTreeMap::from([
        ("prefix", names.prefix().to_string()),
        ("state_container", names.state_container().to_owned()),
        ("output_container", names.outputs_container().to_owned()),
        ("index_table", names.index_table().to_owned()),
        ("completion_queue", names.completion_queue().to_owned()),
        ("state_blob", Names::state_blob(&workflow)),
        ("output_blob", Names::output_blob(&workflow, &task("grp/t"))),
        ("lock_blob", Names::LOCK_BLOB.to_owned()),
        (
            "task_message_id",
            Names::task_message_id(&workflow, &task("D"), 1, 0),
        ),
    ]);
    assert_eq!(serde_json::to_value(ours).unwrap(), *expected);
}

#[test]
fn partition_keys_are_computed_as_upstream_does() {
    for (id, key) in fixtures()["partition_keys"].as_object().unwrap() {
        assert_eq!(Names::partition_key(id), text(key), "{id}");
    }
}

#[test]
fn the_task_message_is_read_and_written_alike() {
    let fixtures = fixtures();
    let upstream = text(&fixtures["task_message"]);
    let message = TaskMessage::decode(upstream).unwrap();
    let task = message.workflow.as_ref().unwrap();
    assert_eq!((&*task.task, task.attempt_no), ("D", 1));
    let refs = task.upstream.as_ref().unwrap();
    assert_eq!(
        refs.to_plain_json(),
        r#"{"B":"blob:3f2a9c0e5b7d4a1f8e6c2b1d0a9f8e7d/B.json","C":null}"#
    );
    assert_eq!(opened(&message.encode().unwrap().text), opened(upstream));
}

#[test]
fn the_completion_message_is_read_and_written_alike() {
    let fixtures = fixtures();
    let upstream = text(&fixtures["completion_message"]);
    let completion = CompletionMessage::decode(upstream).unwrap();
    assert_eq!(completion.error.as_deref(), Some("exit code 3"));
    assert_eq!(
        CompletionMessage::decode(text(&fixtures["completion_body"])).unwrap(),
        completion
    );
    let mut ours = opened(&completion.encode().unwrap().text);
    let mut theirs = opened(upstream);
    // The id is a hash of the text, and the texts differ in their blanks.
    for message in [&mut ours, &mut theirs] {
        let id = message.as_object_mut().unwrap().remove("id").unwrap();
        assert_eq!(text(&id).len(), 32);
    }
    assert_eq!(ours, theirs);
}

#[test]
fn compact_references_are_read_and_written_alike() {
    for case in fixtures()["compact_refs"].as_array().unwrap() {
        let workflow = WorkflowId::parse(text(&case["workflow_id"])).unwrap();
        let refs = UpstreamRefs::from_plain_json(&case["refs"].to_string()).unwrap();
        let compact = refs.to_compact_json(&workflow);
        assert_eq!(
            serde_json::from_str::<Value>(&compact).unwrap(),
            case["compact"]
        );
        let read = UpstreamRefs::from_compact_json(&case["compact"].to_string(), &workflow);
        assert_eq!(read.unwrap(), refs);
    }
}
