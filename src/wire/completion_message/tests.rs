use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::limits::{
    MESSAGE_BYTES_MAX, TASK_NAME_BYTES_MAX, TRACEPARENT_BYTES_MAX, WORKER_ID_BYTES_MAX,
    WORKFLOW_ID_CHARS_MAX,
};

fn completion() -> CompletionMessage {
    CompletionMessage {
        workflow_id: WorkflowId::parse("w").unwrap(),
        task_name: TaskName::parse("t").unwrap(),
        success: true,
        output_ref: Some(OutputRef::inline("{\"a\": 1.10}")),
        error: None,
        attempt_no: Some(2),
        retry_no: None,
        exit_code: None,
        worker_id: None,
        started_at: None,
        finished_at: None,
        traceparent: None,
    }
}

fn envelope(kwargs: &str) -> String {
    json!({"version": 1, "reply_requested": false, "kwargs": kwargs, "num_retries": 0, "id": "i"})
        .to_string()
}

const BODY: &str = r#"{"workflow_id": "w", "task_name": "t", "success": true,
    "output_ref": "{\"a\": 1.10}", "error": null, "attempt_no": 2,
    "task_etag": "0x1", "task_depended_by": ["x"], "task_queue": null}"#;

#[test]
fn every_form_of_a_completion_is_read() {
    let in_body = json!({"__completion_body": BODY}).to_string();
    let coded_body = json!({"__completion_body": BASE64.encode(BODY)}).to_string();
    for message in [
        BODY.to_owned(),
        format!("\n {BODY} \n"),
        BASE64.encode(BODY),
        envelope(BODY),
        envelope(&in_body),
        envelope(&coded_body),
        BASE64.encode(envelope(BODY)),
        BASE64.encode(envelope(&in_body)),
        json!({"version": 0, "kwargs": in_body, "num_retries": 0, "id": "i"}).to_string(),
        json!({"kwargs": BODY}).to_string(),
    ] {
        assert_eq!(
            CompletionMessage::decode(&message),
            Ok(completion()),
            "{message}"
        );
    }
}

#[test]
fn old_workers_need_not_name_the_attempt() {
    let body = r#"{"workflow_id":"w","task_name":"t","success":false}"#;
    let read = CompletionMessage::decode(body).unwrap();
    assert_eq!(
        (read.attempt_no, read.success, read.output_ref),
        (None, false, None)
    );
}

#[test]
fn informing_fields_of_another_type_are_dropped() {
    let body = r#"{"workflow_id":"w","task_name":"t","success":true,"exit_code":"none",
        "worker_id":{"host":1},"started_at":"yesterday","finished_at":12.5,"traceparent":[]}"#;
    let read = CompletionMessage::decode(body).unwrap();
    assert_eq!(
        (read.exit_code, read.worker_id, read.started_at),
        (None, None, None)
    );
}

#[test]
fn anything_else_is_poison() {
    let table = [
        (String::new(), "message: not a JSON object"),
        ("hello".to_owned(), "neither a JSON object"),
        ("[1]".to_owned(), "neither a JSON object"),
        (BASE64.encode([0xff, 0xfe]), "base64 of something"),
        (BASE64.encode("[1]"), "message: "),
        ("{".to_owned(), "message: "),
        ("{}".to_owned(), "neither an envelope nor a completion"),
        (envelope("{}"), "no workflow_id"),
        (envelope("[]"), "neither a JSON object"),
        (envelope(r#"{"__completion_body":"{}"}"#), "no workflow_id"),
        (envelope(r#"{"__completion_body":{}}"#), "kwargs: "),
        (
            envelope(r#"{"__completion_body":"{"}"#),
            "completion body: ",
        ),
        (
            json!({"version": 2, "kwargs": BODY}).to_string(),
            "unknown envelope version 2",
        ),
        (r#"{"workflow_id":"w"}"#.to_owned(), "no task_name"),
        (
            r#"{"workflow_id":"w","task_name":"t"}"#.to_owned(),
            "no success",
        ),
        (
            r#"{"workflow_id":"w","task_name":"t","success":1}"#.to_owned(),
            "message: ",
        ),
        (
            r#"{"workflow_id":"../w","task_name":"t","success":true}"#.to_owned(),
            "workflow id",
        ),
        (
            r#"{"workflow_id":"w","task_name":"","success":true}"#.to_owned(),
            "task name",
        ),
        (
            r#"{"workflow_id":"w","task_name":"t","success":true,"attempt_no":-1}"#.to_owned(),
            "message: ",
        ),
        (
            r#"{"workflow_id":"w","task_name":"t","success":true,"output_ref":{}}"#.to_owned(),
            "message: ",
        ),
    ];
    for (message, reason) in table {
        let poison = CompletionMessage::decode(&message).unwrap_err();
        assert!(poison.reason().starts_with(reason), "{message}: {poison}");
    }
}

#[test]
fn errors_are_cut_to_what_the_state_keeps() {
    let mut long = completion();
    long.error = Some("e".repeat(ERROR_BYTES_MAX + 1));
    let read = CompletionMessage::decode(&long.encode().unwrap().text).unwrap();
    assert_eq!(read.error.map(|error| error.len()), Some(ERROR_BYTES_MAX));
}

#[test]
fn the_worst_completion_without_an_inline_output_fits() {
    // What grows most in three layers of JSON: a control character where they are allowed, else a
    // quote.
    let worst = CompletionMessage {
        workflow_id: WorkflowId::parse(&"w".repeat(WORKFLOW_ID_CHARS_MAX)).unwrap(),
        task_name: TaskName::parse(&"\"".repeat(TASK_NAME_BYTES_MAX)).unwrap(),
        success: false,
        output_ref: None,
        error: Some("\u{1}".repeat(ERROR_BYTES_MAX)),
        attempt_no: Some(u32::MAX),
        retry_no: Some(u32::MAX),
        exit_code: Some(i32::MIN),
        worker_id: Some("\u{1}".repeat(WORKER_ID_BYTES_MAX)),
        started_at: Some(Timestamp::default()),
        finished_at: Some(Timestamp::default()),
        traceparent: Some("\"".repeat(TRACEPARENT_BYTES_MAX)),
    };
    let stashed = CompletionMessage {
        success: true,
        output_ref: Some(OutputRef::canonical(&worst.workflow_id, &worst.task_name)),
        error: None,
        ..worst.clone()
    };
    assert!(worst.encode().is_ok());
    assert!(stashed.encode().is_ok());
}

#[test]
fn an_output_that_does_not_fit_is_too_large() {
    let mut large = completion();
    large.output_ref = Some(OutputRef::inline(&"\"".repeat(MESSAGE_BYTES_MAX / 4)));
    assert!(large.encode().unwrap_err().bytes > MESSAGE_BYTES_MAX);
}

proptest! {
    #[test]
    fn every_completion_comes_back(
        task in "[^\\p{C}/]{0,20}[a-z<\"\\\\é]",
        success: bool,
        output in prop::option::of("(?s).{0,80}"),
        error in prop::option::of("(?s).{0,80}"),
        attempt_no: Option<u32>,
        exit_code: Option<i32>,
        worker_id in prop::option::of("(?s).{0,20}"),
        micros in prop::option::of(0..4_000_000_000_000_000i64),
        traceparent in prop::option::of("[!-~]{0,60}"),
    ) {
        let sent = CompletionMessage {
            workflow_id: WorkflowId::parse("w").unwrap(),
            task_name: TaskName::parse(&task).unwrap(),
            success,
            output_ref: output.map(|text| OutputRef::from_wire(&text)),
            error,
            attempt_no,
            retry_no: attempt_no.filter(|number| number % 2 == 0),
            exit_code,
            worker_id,
            started_at: micros.map(Timestamp::from_micros),
            finished_at: micros.map(Timestamp::from_micros),
            traceparent,
        };
        prop_assert_eq!(CompletionMessage::decode(&sent.encode().unwrap().text), Ok(sent));
    }

    #[test]
    fn arbitrary_text_never_panics(text in "(?s).{0,300}", kwargs in "(?s)[{}\":,a-z_0-9]{0,80}") {
        let _ = CompletionMessage::decode(&text);
        let _ = CompletionMessage::decode(&envelope(&kwargs));
        let _ = CompletionMessage::decode(&BASE64.encode(&text));
    }
}
