use std::io::Write as _;

use serde_json::{Value, json};

use super::*;
use crate::workflow::testkit::*;

fn example() -> Value {
    let mut definition = workflow(vec![task("a"), after("b", &["a"])]);
    definition
        .labels
        .insert("team".to_owned(), "nlp".to_owned());
    serde_json::from_slice(&encode(&started(&definition))).unwrap()
}

fn reencoded(blob: &Value) -> Value {
    let runtime = decode(blob.to_string().as_bytes()).unwrap();
    serde_json::from_slice(&encode(&runtime)).unwrap()
}

fn refusal(blob: &Value) -> Error {
    decode(blob.to_string().as_bytes()).unwrap_err()
}

#[test]
fn a_blob_survives_a_load_and_a_flush() {
    let blob = example();
    assert_eq!(reencoded(&blob), blob);
}

#[test]
fn unknown_keys_survive_at_the_top_and_in_tasks() {
    let mut blob = example();
    blob["x_future"] = json!({"deep": [1, 2.5, "ü"]});
    blob["tasks"]["a"]["x_note"] = json!("kept");
    assert_eq!(reencoded(&blob), blob);
}

#[test]
fn numbers_in_kwargs_keep_every_digit() {
    let text = example().to_string().replacen(
        "\"kwargs\":{}",
        "\"kwargs\":{\"big\": 123456789012345678901234567890, \"f\": 1e400}",
        1,
    );
    let runtime = decode(text.as_bytes()).unwrap();
    let written = String::from_utf8(encode(&runtime).to_vec()).unwrap();
    assert!(written.contains("{\"big\": 123456789012345678901234567890, \"f\": 1e400}"));
}

#[test]
fn gzip_is_read_like_plain_and_written_from_its_size_on() {
    let blob = example();
    let mut encoder = GzEncoder::new(Vec::new(), Compression::new(6));
    encoder.write_all(blob.to_string().as_bytes()).unwrap();
    let runtime = decode(&encoder.finish().unwrap()).unwrap();
    assert_eq!(
        serde_json::from_slice::<Value>(&encode(&runtime)).unwrap(),
        blob
    );

    let many = (0..2_000).map(|i| task(&format!("task-{i}"))).collect();
    let large = encode(&started(&workflow(many)));
    assert!(large.starts_with(GZIP_MAGIC));
    assert_eq!(decode(&large).unwrap().tasks().len(), 2_000);
}

#[test]
fn another_version_is_refused_by_name() {
    let mut blob = example();
    blob["v"] = json!(2);
    assert_eq!(refusal(&blob), Error::UnknownVersion("2".to_owned()));
}

#[test]
fn damage_is_described_and_names_the_task() {
    assert!(matches!(decode(b"{"), Err(Error::Corrupt(_))));
    assert!(matches!(decode(b""), Err(Error::Corrupt(_))));
    assert!(matches!(
        decode(b"\x1f\x8bnot gzip"),
        Err(Error::Corrupt(_))
    ));
    let mut blob = example();
    blob["tasks"]["b"]["state"] = json!("asleep");
    let message = refusal(&blob).to_string();
    assert!(
        message.contains("task \"b\"") && message.contains("\"state\""),
        "{message}"
    );
    let mut blob = example();
    blob["tasks"]["b"]["parents"] = json!(["zz"]);
    assert!(refusal(&blob).to_string().contains("\"zz\""));
    let mut blob = example();
    blob["tasks"]["a"]["parents"] = json!(["b"]);
    assert!(refusal(&blob).to_string().contains("cycle"));
}

#[test]
fn counters_are_recounted_whatever_the_blob_says() {
    let mut blob = example();
    blob["tasks"]["a"]["state"] = json!("completed");
    blob["tasks"]["a"]["attempt_no"] = json!(1);
    blob["tasks"]["b"]["completed_parents"] = json!(7);
    let written = reencoded(&blob);
    assert_eq!(written["tasks"]["b"]["completed_parents"], json!(1));
    assert_eq!(written["workflow_state"], json!("running"));
}
