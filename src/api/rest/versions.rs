//! Versions of workflows in requests and answers (RFC 9110, ETag and its conditions).

use axum::Json;
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use sha2::{Digest as _, Sha256};

use super::problem::{Answer, Problem, Refusal};
use crate::control::Versioned;

/// The storage's version as an entity tag: a digest, since a storage may put anything into its own.
fn tag<T>(versioned: &Versioned<T>) -> String {
    let digest = Sha256::digest(versioned.etag.0.as_bytes());
    format!("\"{}\"", hex::encode(&digest[..12]))
}

/// Whether a condition's list of tags names this one. Weak and strong tags compare alike here, as
/// both conditions on reads want it.
fn names(headers: &HeaderMap, condition: HeaderName, tag: &str) -> Option<bool> {
    let given = headers.get(condition)?.to_str().ok()?;
    let mut tags = given
        .split(',')
        .map(|one| one.trim().trim_start_matches("W/"));
    Some(tags.any(|one| one == "*" || one == tag))
}

/// Answers a read: the value with its tag, or that it is what the caller has.
pub(super) fn answer<T: Serialize>(headers: &HeaderMap, versioned: &Versioned<T>) -> Answer {
    respond(headers, versioned, |value| Json(value).into_response())
}

/// As [`answer`], with the value written by the caller.
pub(super) fn respond<T>(
    headers: &HeaderMap,
    versioned: &Versioned<T>,
    write: impl FnOnce(&T) -> Response,
) -> Answer {
    let tag = tag(versioned);
    let mut response = if names(headers, header::IF_NONE_MATCH, &tag) == Some(true) {
        StatusCode::NOT_MODIFIED.into_response()
    } else {
        write(&versioned.value)
    };
    if let Ok(value) = HeaderValue::from_str(&tag) {
        response.headers_mut().insert(header::ETAG, value);
    }
    Ok(response)
}

/// Refuses a change if the caller names another version than the present one.
pub(super) fn check<T>(headers: &HeaderMap, versioned: &Versioned<T>) -> Result<(), Refusal> {
    match names(headers, header::IF_MATCH, &tag(versioned)) {
        Some(false) => Err(Problem::new(
            StatusCode::PRECONDITION_FAILED,
            "version_mismatch",
            "the workflow has changed since the version in if-match; read it again",
        )),
        _ => Ok(()),
    }
}

/// Whether the request names a version at all.
pub(super) fn is_conditional(headers: &HeaderMap) -> bool {
    headers.contains_key(header::IF_MATCH)
}
