//! Facts about the language, one table per feature. The replay of the fixtures, which judge all
//! of it, is `tests/fixtures.rs`.

mod evaluating;
mod globs;
mod parsing;
mod random;

use std::collections::BTreeMap;

use serde_json::{Value as Json, json};

use super::*;

#[track_caller]
fn parse(text: &str) -> Condition {
    Condition::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"))
}

/// Evaluates over two inputs, `a` with one field per kind of value, and `b` without output.
#[track_caller]
fn evaluate(text: &str) -> Result<bool, EvaluationError> {
    let a = json!({
        "one": 1, "half": 0.5, "yes": true, "no": false, "none": null, "text": "hello",
        "list": [1, 2, 3], "dict": {"k": {"deep": "v"}}, "empty": [], "nested": [[1, 2], {"x": 1}],
        "big": 9_007_199_254_740_993_i64, "huge": u64::MAX, "small": i64::MIN,
    });
    let inputs = BTreeMap::from([("a", a), ("b", Json::Null)]);
    parse(text).evaluate(&inputs)
}

#[track_caller]
fn assert_true(texts: &[&str]) {
    for text in texts {
        assert_eq!(evaluate(text), Ok(true), "{text}");
    }
}

#[track_caller]
fn assert_false(texts: &[&str]) {
    for text in texts {
        assert_eq!(evaluate(text), Ok(false), "{text}");
    }
}

#[track_caller]
fn assert_fails(texts: &[&str]) {
    for text in texts {
        assert!(evaluate(text).is_err(), "{text}: {:?}", evaluate(text));
    }
}
