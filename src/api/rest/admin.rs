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
use super::problem::{Answer, Problem, Refusal};
use crate::api::Api;
use crate::control::{
    CoordinatorStatus, DoctorReport, DoctorRequest, PurgeRequest, PurgeResult, Summary,
};
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

/// The thresholds of a doctor's look.
#[derive(utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[expect(dead_code, reason = "documents parameters")]
pub(super) struct DoctorParams {
    /// From how many seconds on a workflow has waited for its start for too long; 300 unless given.
    #[param(value_type = Option<usize>, minimum = 0, maximum = 3_155_760_000_u64)]
    pending_too_long_s: Option<u64>,
    /// From how many seconds on a workflow that has not changed stands still; 86400 unless given.
    #[param(value_type = Option<usize>, minimum = 0, maximum = 3_155_760_000_u64)]
    running_too_long_s: Option<u64>,
    /// From how many seconds on the oldest completion has waited for too long; 120 unless given.
    #[param(value_type = Option<usize>, minimum = 0, maximum = 3_155_760_000_u64)]
    completion_too_old_s: Option<u64>,
    /// From how many seconds on a message that nobody received has waited for too long; 3600 unless given.
    #[param(value_type = Option<usize>, minimum = 0, maximum = 3_155_760_000_u64)]
    task_too_old_s: Option<u64>,
    /// How many workflows to look at, 1 to 100,000; 1000 unless given.
    #[param(minimum = 1, maximum = 100_000)]
    sample: Option<usize>,
}

fn doctor_request(params: Params, fix: bool) -> Result<DoctorRequest, Refusal> {
    let names = [
        "pending_too_long_s",
        "running_too_long_s",
        "completion_too_old_s",
        "task_too_old_s",
        "sample",
    ];
    let params = params.known(&names)?;
    let usual = DoctorRequest::default();
    let seconds = |name, usual: Duration| -> Result<Duration, Refusal> {
        let given: Option<u64> = params.parsed(name, "a number of seconds")?;
        Ok(given.map_or(usual, Duration::from_secs))
    };
    Ok(DoctorRequest {
        pending_too_long: seconds("pending_too_long_s", usual.pending_too_long)?,
        running_too_long: seconds("running_too_long_s", usual.running_too_long)?,
        completion_too_old: seconds("completion_too_old_s", usual.completion_too_old)?,
        task_too_old: seconds("task_too_old_s", usual.task_too_old)?,
        sample: params.number("sample")?.unwrap_or(usual.sample),
        fix,
    })
}

/// Look at everything that can be wrong
#[utoipa::path(
    get, path = "/v1/doctor", operation_id = "run_doctor", tag = "operations",
    params(DoctorParams),
    responses((status = 200, description = "What was seen", body = DoctorReport), ReadFailures),
)]
pub(super) async fn doctor(State(api): State<Api>, params: Params) -> Answer {
    let request = doctor_request(params, false)?;
    Ok(Json(api.control.doctor(&request).await?).into_response())
}

/// Look at everything, and mend the index
///
/// Writes rows from states and removes rows without one; never changes a state.
#[utoipa::path(
    post, path = "/v1/doctor/fix", operation_id = "run_doctor_fix", tag = "operations",
    params(DoctorParams),
    responses((status = 200, description = "What was seen before it was mended", body = DoctorReport),
     ReadFailures),
)]
pub(super) async fn doctor_fix(State(api): State<Api>, params: Params) -> Answer {
    let request = doctor_request(params, true)?;
    Ok(Json(api.control.doctor(&request).await?).into_response())
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
