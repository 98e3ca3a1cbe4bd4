use std::collections::BTreeMap;

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::limits::MESSAGE_BYTES_MAX;
use crate::wire::{OutputRef, xml_escaped_len};

fn raw(text: &str) -> Box<RawValue> {
    RawValue::from_string(text.to_owned()).unwrap()
}

fn task(upstream: Option<UpstreamRefs>) -> WorkflowTask {
    WorkflowTask {
        workflow_id: WorkflowId::parse("w-1").unwrap(),
        task: TaskName::parse("grp/t").unwrap(),
        attempt_no: 3,
        retry_no: 0,
        upstream,
        traceparent: None,
    }
}

fn envelope(kwargs: &str) -> String {
    json!({"version": 1, "reply_requested": false, "kwargs": kwargs, "num_retries": 2, "id": "i"})
        .to_string()
}

#[test]
fn kwargs_keep_their_text_to_the_digit() {
    let text = r#"{"big": 123456789012345678901234567890, "f": 1.10, "s": "\u00e9<&>", "o": {"a": [1,  2]}}"#;
    let sent = TaskMessage::of_workflow(raw(text), task(None))
        .encode()
        .unwrap();
    let received = TaskMessage::decode(&sent.text).unwrap();
    for part in [
        "123456789012345678901234567890",
        "1.10",
        r#""\u00e9<&>""#,
        r#"{"a": [1,  2]}"#,
    ] {
        assert!(
            received.kwargs.get().contains(part),
            "{part} in {}",
            received.kwargs
        );
    }
    assert_eq!(
        (received.id.as_str(), sent.id.as_str()),
        ("w-1/grp/t/3", "w-1/grp/t/3")
    );
}

#[test]
fn empty_kwargs_stay_an_object() {
    for text in ["{}", " { } ", "{\n}"] {
        let sent = TaskMessage::of_workflow(raw(text), task(None))
            .encode()
            .unwrap();
        assert_eq!(
            TaskMessage::decode(&sent.text).unwrap().kwargs.get(),
            "{}",
            "{text:?}"
        );
    }
}

#[test]
fn the_tasks_own_kwargs_cannot_pose_as_another_task() {
    let kwargs = raw(r#"{"__workflow_id": "other", "__attempt_no": 99, "cmd": "true"}"#);
    let sent = TaskMessage::of_workflow(kwargs, task(None))
        .encode()
        .unwrap();
    let received = TaskMessage::decode(&sent.text).unwrap();
    assert_eq!(received.workflow, Some(task(None)));
    assert_eq!(received.kwargs.get(), r#"{"cmd":"true"}"#);
}

#[test]
fn a_message_without_a_workflow_is_a_plain_task() {
    let received = TaskMessage::decode(&envelope(r#"{"cmd": "true", "__attempt_no": 1}"#)).unwrap();
    assert_eq!(received.workflow, None);
    assert_eq!((received.id.as_str(), received.num_retries), ("i", 2));
    assert_eq!(
        received.kwargs.get(),
        r#"{"cmd": "true", "__attempt_no": 1}"#
    );
    let again = TaskMessage::decode(&received.encode().unwrap().text).unwrap();
    assert_eq!(
        (again.num_retries, again.kwargs.get()),
        (2, received.kwargs.get())
    );
}

#[test]
fn the_older_plain_map_of_upstream_outputs_is_read() {
    let kwargs = r#"{"__workflow_id":"w-1","__workflow_task":"grp/t","__attempt_no":3,
        "__upstream_output_refs":{"a":null,"b":"blob:x"},"__traceparent":7}"#;
    let received = TaskMessage::decode(&envelope(kwargs)).unwrap();
    let upstream = UpstreamRefs(BTreeMap::from([
        (TaskName::parse("a").unwrap(), None),
        (TaskName::parse("b").unwrap(), Some(OutputRef::blob("x"))),
    ]));
    assert_eq!(received.workflow, Some(task(Some(upstream))));
}

#[test]
fn base64_messages_are_read() {
    use base64::Engine as _;
    let encoded = base64::engine::general_purpose::STANDARD.encode(envelope("{}"));
    assert_eq!(TaskMessage::decode(&encoded).unwrap().id, "i");
}

#[test]
fn upstream_outputs_are_left_out_when_they_do_not_fit() {
    let refs = (0..MESSAGE_BYTES_MAX / 16)
        .map(|i| (TaskName::parse(&format!("parent-{i:08}")).unwrap(), None));
    let upstream = Some(UpstreamRefs(refs.collect()));
    let message = TaskMessage::of_workflow(raw(r#"{"cmd":"x"}"#), task(upstream));
    let sent = message.encode().unwrap();
    assert!(xml_escaped_len(&sent.text) < 1_000);
    assert_eq!(
        TaskMessage::decode(&sent.text).unwrap().workflow,
        Some(task(None))
    );
}

#[test]
fn kwargs_that_do_not_fit_are_too_large() {
    let kwargs = json!({"cmd": "<".repeat(MESSAGE_BYTES_MAX / 4)}).to_string();
    let upstream = Some(UpstreamRefs::default());
    let error = TaskMessage::of_workflow(raw(&kwargs), task(upstream))
        .encode()
        .unwrap_err();
    assert!(error.bytes > MESSAGE_BYTES_MAX);
}

#[test]
fn what_names_no_attempt_is_poison() {
    let table = [
        ("[]", "kwargs: "),
        ("not json", "kwargs: "),
        (r#"{"__workflow_id":"w"}"#, "no __workflow_task"),
        (
            r#"{"__workflow_id":7,"__workflow_task":"t","__attempt_no":1}"#,
            "__workflow_id: ",
        ),
        (
            r#"{"__workflow_id":"_w","__workflow_task":"t","__attempt_no":1}"#,
            "__workflow_id: ",
        ),
        (
            r#"{"__workflow_id":"w","__workflow_task":"/t","__attempt_no":1}"#,
            "__workflow_task: ",
        ),
        (
            r#"{"__workflow_id":"w","__workflow_task":"t"}"#,
            "no __attempt_no",
        ),
        (
            r#"{"__workflow_id":"w","__workflow_task":"t","__attempt_no":-1}"#,
            "__attempt_no: ",
        ),
        (
            r#"{"__workflow_id":"w","__workflow_task":"t","__attempt_no":1,"__upstream_outputs_compact":[]}"#,
            "compact upstream outputs: ",
        ),
    ];
    for (kwargs, reason) in table {
        let poison = TaskMessage::decode(&envelope(kwargs)).unwrap_err();
        assert!(poison.reason().starts_with(reason), "{kwargs}: {poison}");
    }
}

fn names() -> impl Strategy<Value = String> {
    "[^\\p{C}/]{0,20}[a-z<\"\\\\é]"
}

fn json_values() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        "(?s).{0,12}".prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 16, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::hash_map("(?s).{0,6}", inner, 0..4)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn every_message_comes_back(
        name in names(),
        attempt_no: u32,
        kwargs in prop::collection::hash_map("(?s).{0,8}", json_values(), 0..5),
        traceparent in prop::option::of("[!-~]{0,60}"),
        parents in prop::option::of(prop::collection::btree_set(names(), 0..5)),
    ) {
        let kwargs = Value::Object(kwargs.into_iter().collect());
        let upstream = parents.map(|names| {
            UpstreamRefs(names.iter().map(|name| (TaskName::parse(name).unwrap(), None)).collect())
        });
        let sent = WorkflowTask {
            task: TaskName::parse(&name).unwrap(),
            attempt_no,
            retry_no: attempt_no % 3,
            traceparent,
            ..task(upstream)
        };
        let message = TaskMessage::of_workflow(raw(&kwargs.to_string()), sent.clone());
        let received = TaskMessage::decode(&message.encode().unwrap().text).unwrap();
        prop_assert_eq!(received.workflow, Some(sent));
        prop_assert_eq!(serde_json::from_str::<Value>(received.kwargs.get()).unwrap(), kwargs);
    }

    #[test]
    fn arbitrary_text_never_panics(text in "(?s).{0,300}", kwargs in "(?s)[{}\":,a-z_0-9]{0,80}") {
        let _ = TaskMessage::decode(&text);
        let _ = TaskMessage::decode(&envelope(&kwargs));
    }
}
