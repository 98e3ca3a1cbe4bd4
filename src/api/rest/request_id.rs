//! The layer around every request: its id, its errors' form, its log line.

use std::time::Instant;

use axum::extract::{MatchedPath, Request, State};
use axum::http::{HeaderName, HeaderValue, StatusCode, header};
use axum::middleware::Next;
use axum::response::Response;

use super::problem::Problem;
use crate::api::Api;

/// The header that carries a request's id both ways.
const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// Characters of a caller's request id that are kept.
const REQUEST_ID_CHARS_MAX: usize = 64;

/// Gives each request an id (the caller's, if it is a plain one), each error the one form, and the
/// log a line.
pub(crate) async fn layer(State(api): State<Api>, request: Request, next: Next) -> Response {
    let started = Instant::now();
    let id = given(&request).unwrap_or_else(|| api.clock.new_id());
    let (method, path) = (request.method().clone(), request.uri().path().to_owned());
    let route = request.extensions().get::<MatchedPath>();
    let route = route.map_or_else(String::new, |matched| matched.as_str().to_owned());
    let mut response = next.run(request).await;
    if let Some(problem) = problem_of(&mut response) {
        let problem = Problem {
            instance: path,
            request_id: id.clone(),
            ..problem
        };
        let allow = response.headers_mut().remove(header::ALLOW);
        response = problem.to_response();
        if let Some(allow) = allow {
            response.headers_mut().insert(header::ALLOW, allow);
        }
    }
    if let Ok(value) = HeaderValue::from_str(&id) {
        response.headers_mut().insert(REQUEST_ID, value);
    }
    let status = response.status().as_u16();
    let took = started.elapsed();
    let duration_ms = took.as_secs_f64() * 1e3;
    // Paths and methods that are not ours have no bound.
    let known = if route.is_empty() { "none" } else { &route };
    let verb = match method.as_str() {
        verb @ ("GET" | "POST" | "DELETE" | "HEAD" | "PUT" | "PATCH" | "OPTIONS") => verb,
        _ => "other",
    };
    api.metrics.http(known, verb, status, took);
    if response.status().is_server_error() {
        tracing::warn!(request_id = id, %method, route, status, duration_ms, "request failed");
    } else {
        tracing::debug!(request_id = id, %method, route, status, duration_ms, "request");
    }
    response
}

/// The caller's own id, if it is one that fits every log.
fn given(request: &Request) -> Option<String> {
    let id = request.headers().get(REQUEST_ID)?.to_str().ok()?;
    let plain = |b: u8| b.is_ascii_alphanumeric() || b"-_.".contains(&b);
    let fits = (1..=REQUEST_ID_CHARS_MAX).contains(&id.len()) && id.bytes().all(plain);
    fits.then(|| id.to_owned())
}

/// What a failed answer should say; `None` for what is no failure, or is gRPC's.
fn problem_of(response: &mut Response) -> Option<Problem> {
    if let Some(problem) = response.extensions_mut().remove::<Problem>() {
        return Some(problem);
    }
    let status = response.status();
    let kind = response.headers().get(header::CONTENT_TYPE);
    let kind = kind.and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    if !(status.is_client_error() || status.is_server_error()) || kind.contains("json") {
        return None;
    }
    let (code, detail) = match status {
        StatusCode::NOT_FOUND => ("no_such_route", "there is nothing at this path; see /docs"),
        StatusCode::METHOD_NOT_ALLOWED => (
            "method_not_allowed",
            "this path does not take this method; see the header allow",
        ),
        StatusCode::PAYLOAD_TOO_LARGE => ("too_large", "the body is too large"),
        StatusCode::UNSUPPORTED_MEDIA_TYPE => (
            "unsupported_media_type",
            "send application/json, or application/yaml where the documentation says so",
        ),
        status if status.is_client_error() => ("bad_request", "the request cannot be read"),
        _ => (
            "internal",
            "the server failed; its log has the request's id",
        ),
    };
    Some(*Problem::new(status, code, detail))
}
