//! Errors as RFC 9457 has them: `application/problem+json` with a stable code.
//!
//! A handler fails with a [`Problem`]; the layer in [`super::request_id`] adds what only it knows (the
//! request's id and path) and gives the same form to what the framework refuses by itself.

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::control::Error;

/// What went wrong.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct Problem {
    /// Names the kind of problem: `urn:jobq:problem:` and its code.
    #[serde(rename = "type")]
    pub kind: String,
    /// The kind for people.
    pub title: String,
    /// The status, as in the answer's first line.
    pub status: u16,
    /// What went wrong this time, and what to do.
    pub detail: String,
    /// The path that was asked for.
    pub instance: String,
    /// A short stable word for the kind.
    pub code: String,
    /// The id of the request, as in the header `x-request-id` and in the log.
    pub request_id: String,
    /// Each thing that is wrong with a definition.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub errors: Vec<DefinitionProblem>,
    /// After how many seconds the same request may be repeated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_after_s: Option<u64>,
}

/// One thing that is wrong with a definition.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct DefinitionProblem {
    /// A short stable word.
    pub code: String,
    /// The place, as a JSON pointer; empty for the whole document.
    pub pointer: String,
    /// The task it concerns, where there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<String>,
    /// The line of the text, from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<usize>,
    /// The column in characters, from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub column: Option<usize>,
    /// What is wrong and what to do about it.
    pub message: String,
}

/// The result of a handler.
pub(super) type Answer<T = Response> = Result<T, Refusal>;

/// A problem as handlers fail with it.
pub(super) type Refusal = Box<Problem>;

impl Problem {
    pub(super) fn new(status: StatusCode, code: &str, detail: impl Into<String>) -> Refusal {
        Box::new(Self {
            kind: format!("urn:jobq:problem:{code}"),
            title: title(code),
            status: status.as_u16(),
            detail: detail.into(),
            instance: String::new(),
            code: code.to_owned(),
            request_id: String::new(),
            errors: Vec::new(),
            retry_after_s: None,
        })
    }

    pub(super) fn invalid(field: &str, reason: impl std::fmt::Display) -> Refusal {
        let detail = format!("{field}: {reason}");
        Self::new(StatusCode::BAD_REQUEST, "invalid_argument", detail)
    }

    pub(super) fn status(&self) -> StatusCode {
        StatusCode::from_u16(self.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
    }

    /// The answer that tells it.
    pub(super) fn to_response(&self) -> Response {
        let body = serde_json::to_vec(self).unwrap_or_default();
        let kind = HeaderValue::from_static("application/problem+json");
        let mut response = (self.status(), [(header::CONTENT_TYPE, kind)], body).into_response();
        if let Some(seconds) = self.retry_after_s {
            let headers = response.headers_mut();
            headers.insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        response
    }
}

/// `workflow_not_found` as "Workflow not found".
fn title(code: &str) -> String {
    let mut words = code.replace('_', " ");
    if let Some(first) = words.get_mut(..1) {
        first.make_ascii_uppercase();
    }
    words
}

/// The status of each code of the use cases.
fn status_of(code: &str) -> StatusCode {
    match code {
        "invalid_definition" => StatusCode::UNPROCESSABLE_ENTITY,
        "invalid_argument" | "invalid_page_token" => StatusCode::BAD_REQUEST,
        "workflow_not_found" | "task_not_found" | "no_output" | "no_coordinator" => {
            StatusCode::NOT_FOUND
        }
        "different_definition" | "not_terminal" | "nothing_to_retry" | "conflict" => {
            StatusCode::CONFLICT
        }
        // The operation on it is gone for good.
        "already_terminal" => StatusCode::GONE,
        "too_large" => StatusCode::PAYLOAD_TOO_LARGE,
        "throttled" => StatusCode::TOO_MANY_REQUESTS,
        "unavailable" => StatusCode::SERVICE_UNAVAILABLE,
        _ => StatusCode::INTERNAL_SERVER_ERROR,
    }
}

impl From<Error> for Refusal {
    fn from(error: Error) -> Self {
        let status = status_of(error.code());
        let mut problem = Problem::new(status, error.code(), error.to_string());
        problem.retry_after_s = error.retry_after().map(|pause| pause.as_secs().max(1));
        if let Error::InvalidDefinition(problems) = error {
            "the definition is not valid; see errors".clone_into(&mut problem.detail);
            problem.errors = problems
                .0
                .into_iter()
                .map(DefinitionProblem::from)
                .collect();
        }
        problem
    }
}

impl From<crate::workflow::definition::Problem> for DefinitionProblem {
    fn from(problem: crate::workflow::definition::Problem) -> Self {
        Self {
            code: problem.code.as_str().to_owned(),
            pointer: problem.pointer,
            task: problem.task,
            line: problem.line,
            column: problem.column,
            message: problem.message,
        }
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let mut response = self.status().into_response();
        response.extensions_mut().insert(*self);
        response
    }
}
