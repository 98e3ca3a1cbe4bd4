//! Tasks: list, read, output, explain.

use axum::Json;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, header};
use axum::response::IntoResponse;

use super::failures::ReadFailures;
use super::params::{Params, workflow_id};
use super::problem::Answer;
use super::versions;
use crate::api::Api;
use crate::control::{Explanation, TaskListRequest, TaskPage, TaskView};

/// List the tasks of a workflow
///
/// In the order of the definition.
#[utoipa::path(
    get, path = "/v1/workflows/{workflow_id}/tasks", operation_id = "list_tasks", tag = "tasks",
    params(
        super::WorkflowPath,
        super::IfNoneMatch,
        ("state" = Option<Vec<crate::workflow::TaskState>>, Query, explode = true,
         description = "Only tasks in one of these states"),
        ("queue" = Option<String>, Query, description = "Only tasks of this queue"),
        ("name_prefix" = Option<String>, Query, description = "Only tasks whose name starts so"),
        ("limit" = Option<usize>, Query, description = "At most this many, 1 to 1,000; 100 unless given",
         minimum = 1, maximum = 1000),
        ("page_token" = Option<String>, Query, description = "Where the page before ended"),
    ),
    responses(
        (status = 200, description = "A page", body = TaskPage),
        (status = 304, description = "It has the version in if-none-match"),
        ReadFailures,
    ),
)]
pub(super) async fn list(
    State(api): State<Api>,
    Path(id): Path<String>,
    headers: HeaderMap,
    params: Params,
) -> Answer {
    let params = params.known(&["state", "queue", "name_prefix", "limit", "page_token"])?;
    let request = TaskListRequest {
        states: params.task_states("state")?,
        queue: params.text("queue")?,
        name_prefix: params.text("name_prefix")?,
        limit: Some(params.number("limit")?.unwrap_or(100)),
        page_token: params.text("page_token")?,
    };
    let page = api.control.tasks(&workflow_id(&id)?, &request).await?;
    versions::answer(&headers, &page)
}

/// Read a task
#[utoipa::path(
    get, path = "/v1/workflows/{workflow_id}/tasks/{task}", operation_id = "get_task", tag = "tasks",
    params(super::WorkflowPath, super::TaskPath, super::IfNoneMatch),
    responses(
        (status = 200, description = "The task", body = TaskView),
        (status = 304, description = "It has the version in if-none-match"),
        ReadFailures,
    ),
)]
pub(super) async fn get(
    State(api): State<Api>,
    Path((id, task)): Path<(String, String)>,
    headers: HeaderMap,
    params: Params,
) -> Answer {
    params.known(&[])?;
    let found = api.control.task(&workflow_id(&id)?, &task).await?;
    versions::answer(&headers, &found)
}

/// Read a task's output
///
/// Exactly as the task wrote it.
#[utoipa::path(
    get, path = "/v1/workflows/{workflow_id}/tasks/{task}/output", operation_id = "get_task_output", tag = "tasks",
    params(super::WorkflowPath, super::TaskPath),
    responses((status = 200, description = "The output", body = inline(serde_json::Value)), ReadFailures),
)]
pub(super) async fn output(
    State(api): State<Api>,
    Path((id, task)): Path<(String, String)>,
    params: Params,
) -> Answer {
    params.known(&[])?;
    let output = api.control.task_output(&workflow_id(&id)?, &task).await?;
    Ok(([(header::CONTENT_TYPE, "application/json")], output.json).into_response())
}

/// Explain a task
///
/// Why it is where it is: dependencies, a free slot, its queue, its attempts, and whether anybody
/// leads.
#[utoipa::path(
    get, path = "/v1/workflows/{workflow_id}/tasks/{task}/explain", operation_id = "explain_task", tag = "tasks",
    params(super::WorkflowPath, super::TaskPath),
    responses((status = 200, description = "Reasons and facts", body = Explanation), ReadFailures),
)]
pub(super) async fn explain(
    State(api): State<Api>,
    Path((id, task)): Path<(String, String)>,
    params: Params,
) -> Answer {
    params.known(&[])?;
    let explanation = api.control.explain(&workflow_id(&id)?, &task).await?;
    Ok(Json(explanation).into_response())
}
