//! The REST API, under `/v1`.
//!
//! Handlers are thin: they read a request (`params`, `body`, `versions`), call a use case, and write what it
//! gives. Every failure is a [`Problem`]; every answer carries the request's id. The documentation is
//! derived from the handlers and lies in `openapi/openapi.json`.

mod admin;
mod body;
mod described;
mod failures;
mod openapi;
mod params;
mod problem;
pub(super) mod request_id;
mod tasks;
mod versions;
mod watch;
mod workflows;

pub use openapi::document;
pub use problem::{DefinitionProblem, Problem};

use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::http::HeaderMap;
use axum::routing::{get, post};
use utoipa::IntoParams;
use utoipa_swagger_ui::SwaggerUi;

use super::Api;
use crate::limits::{DEFINITION_BYTES_MAX, REQUEST_BYTES_MAX};

/// The id in a workflow's path.
#[derive(IntoParams)]
#[into_params(parameter_in = Path)]
#[expect(dead_code, reason = "documents a parameter")]
struct WorkflowPath {
    /// The workflow's id.
    #[param(pattern = "^[A-Za-z0-9-][A-Za-z0-9._-]{0,127}$")]
    workflow_id: String,
}

/// The name in a task's path.
#[derive(IntoParams)]
#[into_params(parameter_in = Path)]
#[expect(dead_code, reason = "documents a parameter")]
struct TaskPath {
    /// The task's name, percent-encoded where it has slashes.
    #[param(min_length = 1, max_length = 256)]
    task: String,
}

/// The condition of a read.
#[derive(IntoParams)]
#[into_params(parameter_in = Header)]
#[expect(dead_code, reason = "documents a parameter")]
struct IfNoneMatch {
    /// Answers 304 if the workflow still has this version.
    #[param(rename = "if-none-match")]
    if_none_match: Option<String>,
}

/// The condition of a change.
#[derive(IntoParams)]
#[into_params(parameter_in = Header)]
#[expect(dead_code, reason = "documents a parameter")]
struct IfMatch {
    /// Answers 412 if the workflow has another version by now.
    #[param(rename = "if-match")]
    if_match: Option<String>,
}

/// The routes.
pub(super) fn router() -> Router<Api> {
    let submits = Router::new()
        .route(
            "/v1/workflows",
            get(workflows::list).post(workflows::submit),
        )
        .route("/v1/workflow-batches", post(workflows::submit_batch))
        .layer(DefaultBodyLimit::max(DEFINITION_BYTES_MAX));
    let workflow = Router::new()
        .route("/", get(workflows::get).delete(workflows::delete))
        .route("/definition", get(workflows::definition))
        .route("/graph", get(workflows::graph))
        .route("/cancel", post(workflows::cancel))
        .route("/retry", post(workflows::retry))
        .route("/watch", get(watch::watch))
        .route("/tasks", get(tasks::list))
        .route("/tasks/{task}", get(tasks::get))
        .route("/tasks/{task}/output", get(tasks::output))
        .route("/tasks/{task}/explain", get(tasks::explain));
    let rest = Router::new()
        .nest("/v1/workflows/{workflow_id}", workflow)
        .route("/v1/purge", post(admin::purge))
        .route("/v1/summary", get(admin::summary))
        .route("/v1/doctor", get(admin::doctor))
        .route("/v1/doctor/fix", post(admin::doctor_fix))
        .route("/v1/coordinator", get(admin::coordinator))
        .route("/metrics", get(admin::metrics))
        .route("/healthz", get(admin::healthz))
        .route("/readyz", get(admin::readyz))
        .layer(DefaultBodyLimit::max(REQUEST_BYTES_MAX));
    let docs = SwaggerUi::new("/docs").url("/openapi.json", document());
    let nothing = async || axum::http::StatusCode::NOT_FOUND;
    Router::new()
        .merge(submits)
        .merge(rest)
        .merge(docs)
        .fallback(nothing)
}

/// The caller's trace, if it has a plausible one.
fn traceparent(headers: &HeaderMap) -> Option<String> {
    let text = headers.get("traceparent")?.to_str().ok()?;
    crate::telemetry::is_traceparent(text).then(|| text.to_owned())
}
