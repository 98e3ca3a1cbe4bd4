//! Operations: purge, summary, doctor, coordinator.

use std::time::Duration;

use axum::Json;
use axum::extract::State;
use axum::response::IntoResponse;
use serde::Deserialize;
use utoipa::ToSchema;

use super::body::{Body, whole};
use super::described::TerminalState;
use super::failures::{ChangeFailures, ReadFailures};
use super::params::Params;
use super::problem::{Answer, Problem};
use crate::api::Api;
use crate::control::{CoordinatorStatus, PurgeRequest, PurgeResult, Summary};
use crate::workflow::WorkflowState;

/// Which workflows to purge.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct PurgeBody {
    /// Only workflows in one of these terminal states; all terminal ones if empty.
    #[serde(default)]
    #[schema(value_type = Vec<TerminalState>)]
    states: Vec<WorkflowState>,
    /// Only workflows that have not changed for so many seconds.
    #[serde(deserialize_with = "whole")]
    #[schema(value_type = usize, minimum = 0, maximum = 3_155_760_000_u64)]
    older_than_s: u64,
    /// At most this many; 100 unless given.
    #[serde(default = "purge_limit", deserialize_with = "whole")]
    #[schema(minimum = 1, maximum = 1000)]
    limit: usize,
    /// Only tells which would go.
    #[serde(default)]
    dry_run: bool,
}

const fn purge_limit() -> usize {
    100
}

/// Delete old workflows
#[utoipa::path(
    post, path = "/v1/purge", operation_id = "purge_workflows", tag = "operations",
    request_body = PurgeBody,
    responses((status = 200, description = "What went, or would go", body = PurgeResult), ChangeFailures),
)]
pub(super) async fn purge(State(api): State<Api>, params: Params, body: Body) -> Answer {
    params.known(&[])?;
    let body: PurgeBody = body.json()?;
    let request = PurgeRequest {
        states: body.states,
        older_than: Duration::from_secs(body.older_than_s),
        limit: body.limit,
        dry_run: body.dry_run,
    };
    Ok(Json(api.control.purge(&request).await?).into_response())
}

/// Count workflows by state
#[utoipa::path(
    get, path = "/v1/summary", operation_id = "get_summary", tag = "operations",
    responses((status = 200, description = "The counts", body = Summary), ReadFailures),
)]
pub(super) async fn summary(State(api): State<Api>, params: Params) -> Answer {
    params.known(&[])?;
    Ok(Json(api.control.summary().await?).into_response())
}

/// Read what the coordinator last wrote about itself
#[utoipa::path(
    get, path = "/v1/coordinator", operation_id = "get_coordinator", tag = "operations",
    responses((status = 200, description = "Its status", body = CoordinatorStatus), ReadFailures),
)]
pub(super) async fn coordinator(State(api): State<Api>, params: Params) -> Answer {
    params.known(&[])?;
    Ok(Json(api.control.coordinator_status().await?).into_response())
}

/// Says that the server runs
#[utoipa::path(
    get, path = "/healthz", operation_id = "get_health", tag = "operations",
    responses((status = 200, description = "It runs", body = String, content_type = "text/plain")),
)]
pub(super) async fn healthz() -> &'static str {
    "ok\n"
}

/// Read the metrics
///
/// In the text format that Prometheus scrapes.
#[utoipa::path(
    get, path = "/metrics", operation_id = "get_metrics", tag = "operations",
    responses((status = 200, description = "All metrics", body = String,
     content_type = "application/openmetrics-text")),
)]
pub(super) async fn metrics(State(api): State<Api>) -> impl IntoResponse {
    let kind = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    (
        [(axum::http::header::CONTENT_TYPE, kind)],
        api.metrics.encode(),
    )
}

/// Says whether the server can answer
///
/// Whether the storage can be reached, and what the coordinator of this process does; a standby answers
/// everything too.
#[utoipa::path(
    get, path = "/readyz", operation_id = "get_readiness", tag = "operations",
    responses(
        (status = 200, description = "It can", body = crate::control::Readiness),
        (status = 503, description = "It cannot", body = Problem, content_type = "application/problem+json"),
    ),
)]
pub(super) async fn readyz(State(api): State<Api>) -> Answer {
    let readiness = api.control.readiness().await;
    if readiness.ready {
        return Ok(Json(readiness).into_response());
    }
    let reason = readiness
        .storage_error
        .unwrap_or_else(|| format!("the coordinator is {:?}", readiness.role));
    let status = axum::http::StatusCode::SERVICE_UNAVAILABLE;
    let mut problem = Problem::new(status, "not_ready", reason);
    problem.retry_after_s = Some(1);
    Err(problem)
}
