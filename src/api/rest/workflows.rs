//! Workflows: submit, list, read, cancel, retry, delete.

use std::collections::BTreeMap;

use axum::Json;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use utoipa::ToSchema;

use super::body::{Body, whole_or_none};
use super::described::{DefinitionBody, GraphFormat, LabelParam};
use super::failures::{ChangeFailures, ReadFailures, SubmitFailures};
use super::params::{Params, workflow_id};
use super::problem::{Answer, Problem, Refusal};
use super::versions;
use crate::api::Api;
use crate::control::graph::{Graph, GraphRequest};
use crate::control::{
    Control, ListOrder, ListRequest, RetryRequest, RetryResult, SubmitRequest, SubmitResult,
    ValidateResult, WorkflowPage, WorkflowView,
};
use crate::workflow::WorkflowId;
use crate::workflow::definition::Definition;

/// A workflow to submit.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct SubmitBody {
    /// The definition: an object, or its YAML or JSON as text.
    #[schema(value_type = DefinitionBody)]
    definition: Box<RawValue>,
    /// The workflow's id; a fresh one unless given. With an id, repeating a submit is safe.
    #[schema(pattern = "^[A-Za-z0-9-][A-Za-z0-9._-]{0,127}$")]
    workflow_id: Option<String>,
    /// Labels beside those of the definition; stronger where both have one.
    #[serde(default)]
    labels: BTreeMap<String, String>,
    /// Rewrites tasks with more dependencies than this into sequential batches.
    #[serde(default, deserialize_with = "whole_or_none")]
    #[schema(value_type = Option<usize>, minimum = 2, maximum = 4_294_967_295_u32)]
    max_fan_in: Option<u32>,
    /// Only checks, and stores nothing.
    #[serde(default)]
    validate_only: bool,
}

/// Workflows to submit together.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct BatchBody {
    /// At most a hundred.
    #[schema(max_items = 100)]
    workflows: Vec<SubmitBody>,
}

/// What became of each workflow of a batch.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct BatchAnswer {
    /// In the order of the request.
    results: Vec<BatchItem>,
}

/// What became of one workflow of a batch.
#[derive(Debug, Serialize, ToSchema)]
#[serde(untagged)]
pub(crate) enum BatchItem {
    /// It is durable.
    Submitted(SubmitResult),
    /// It was refused.
    Refused {
        /// Why.
        problem: Problem,
    },
}

/// What to run again.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RetryBody {
    /// One task, with what hangs on it; everything that did not succeed unless given.
    task: Option<String>,
    /// Only tells what would run again.
    #[serde(default)]
    dry_run: bool,
}

fn definition_of(raw: &RawValue) -> Result<Definition, Refusal> {
    let parsed = if raw.get().starts_with('"') {
        let text: String = serde_json::from_str(raw.get())
            .map_err(|error| Problem::invalid("definition", error))?;
        Definition::from_text(text.as_bytes())
    } else {
        Definition::from_json(raw.get())
    };
    parsed.map_err(|problems| crate::control::Error::InvalidDefinition(problems).into())
}

fn request_of(body: SubmitBody, headers: &HeaderMap) -> Result<SubmitRequest, Refusal> {
    let key = headers.get("idempotency-key").map(HeaderValue::to_str);
    let key = key.transpose();
    let id = body.workflow_id.as_deref().map(workflow_id).transpose()?;
    Ok(SubmitRequest {
        id,
        idempotency_key: key
            .map_err(|_| Problem::invalid("idempotency-key", "it is no plain text"))?
            .map(str::to_owned),
        labels: body.labels,
        max_fan_in: body.max_fan_in.map(|bound| bound as usize),
        traceparent: super::traceparent(headers),
        ..SubmitRequest::new(definition_of(&body.definition)?)
    })
}

/// Reads a submit in either of its forms: JSON around a definition, or the bare YAML with everything
/// else in the query.
fn submit_body(body: &Body, params: &Params) -> Result<SubmitBody, Refusal> {
    if body.is_json() {
        return body.json();
    }
    if !body.is_yaml() {
        return Err(body.unsupported("application/json or application/yaml"));
    }
    let text = std::str::from_utf8(&body.bytes);
    let text = text.map_err(|error| Problem::invalid("definition", error))?;
    let definition = serde_json::value::to_raw_value(text)
        .map_err(|error| Problem::invalid("definition", error))?;
    Ok(SubmitBody {
        definition,
        workflow_id: params.text("workflow_id")?,
        labels: params.labels("label")?,
        max_fan_in: params.number("max_fan_in")?,
        validate_only: params.flag("validate_only")?,
    })
}

/// Submit a workflow
///
/// Makes it durable and has it started; it then runs to its end, whatever dies. Safe to repeat with
/// the same `workflow_id` or `Idempotency-Key`.
#[utoipa::path(
    post, path = "/v1/workflows", operation_id = "submit_workflow", tag = "workflows",
    params(
        ("workflow_id" = Option<String>, Query, description = "With a YAML body: the workflow's id",
         pattern = "^[A-Za-z0-9-][A-Za-z0-9._-]{0,127}$"),
        ("label" = Option<Vec<LabelParam>>, Query, explode = true,
         description = "With a YAML body: a label as key=value; may be repeated"),
        ("max_fan_in" = Option<usize>, Query, description = "With a YAML body: as in the JSON body",
         minimum = 2, maximum = 4_294_967_295_u32),
        ("validate_only" = Option<bool>, Query, description = "With a YAML body: as in the JSON body"),
        ("idempotency-key" = Option<String>, Header, description = "Stands for an id; not beside one",
         min_length = 1, max_length = 256, pattern = "^[ -~]+$"),
    ),
    request_body(content(
        (SubmitBody = "application/json"),
        (String = "application/yaml"),
    )),
    responses(
        (status = 200, description = "It was there already, or it was only to be checked",
         body = inline(SubmitOrValidate)),
        (status = 201, description = "It is new", body = SubmitResult,
         headers(("location" = String, description = "The workflow's path"))),
        SubmitFailures,
    ),
)]
pub(super) async fn submit(
    State(api): State<Api>,
    headers: HeaderMap,
    params: Params,
    body: Body,
) -> Answer {
    let params = params.known(&["workflow_id", "label", "max_fan_in", "validate_only"])?;
    let body = submit_body(&body, &params)?;
    let validate_only = body.validate_only;
    let request = request_of(body, &headers)?;
    if validate_only {
        let result = api.control.validate(request)?;
        return Ok(Json(SubmitOrValidate::Validated(result)).into_response());
    }
    let result = api.control.submit(request).await?;
    let location = format!("/v1/workflows/{}", result.workflow_id);
    if !result.created {
        return Ok(Json(SubmitOrValidate::Submitted(result)).into_response());
    }
    Ok((
        StatusCode::CREATED,
        [(header::LOCATION, location)],
        Json(result),
    )
        .into_response())
}

/// What a submit, or a check of one, came to.
#[derive(Debug, Serialize, ToSchema)]
#[serde(untagged)]
pub(crate) enum SubmitOrValidate {
    /// It was there already.
    Submitted(SubmitResult),
    /// It could be submitted.
    Validated(ValidateResult),
}

/// Submit several workflows
///
/// Each has its own answer; one that is refused does not keep the others back.
#[utoipa::path(
    post, path = "/v1/workflow-batches", operation_id = "batch_submit_workflows", tag = "workflows",
    request_body = BatchBody,
    responses((status = 200, description = "What became of each", body = BatchAnswer), SubmitFailures),
)]
pub(super) async fn submit_batch(
    State(api): State<Api>,
    headers: HeaderMap,
    params: Params,
    body: Body,
) -> Answer {
    params.known(&[])?;
    let body: BatchBody = body.json()?;
    if headers.contains_key("idempotency-key") {
        let reason = "it stands for one workflow; give each its workflow_id";
        return Err(Problem::invalid("idempotency-key", reason));
    }
    // Places of what can be submitted, so that answers keep the order.
    let mut results: Vec<Option<BatchItem>> = Vec::new();
    let (mut places, mut requests) = (Vec::new(), Vec::new());
    for (place, one) in body.workflows.into_iter().enumerate() {
        let checked = request_of(one, &headers);
        results.push(None);
        match checked {
            Ok(request) => {
                places.push(place);
                requests.push(request);
            }
            Err(problem) => results[place] = Some(BatchItem::Refused { problem: *problem }),
        }
    }
    let answers = api.control.submit_batch(requests).await?;
    for (place, answer) in places.into_iter().zip(answers) {
        results[place] = Some(match answer {
            Ok(result) => BatchItem::Submitted(result),
            Err(error) => BatchItem::Refused {
                problem: *Refusal::from(error),
            },
        });
    }
    let results = results.into_iter().flatten().collect();
    Ok(Json(BatchAnswer { results }).into_response())
}

/// List workflows
///
/// Up to two seconds behind their states. A page may be short and still have a successor.
#[utoipa::path(
    get, path = "/v1/workflows", operation_id = "list_workflows", tag = "workflows",
    params(
        ("state" = Option<Vec<crate::workflow::WorkflowState>>, Query, explode = true,
         description = "Only workflows in one of these states"),
        ("name_prefix" = Option<String>, Query, description = "Only workflows whose name starts so"),
        ("label" = Option<Vec<LabelParam>>, Query, explode = true,
         description = "Only workflows with this label, as key=value; may be repeated"),
        ("created_from" = Option<String>, Query, format = DateTime, description = "Only workflows submitted then or later"),
        ("created_to" = Option<String>, Query, format = DateTime, description = "Only workflows submitted before"),
        ("order" = Option<ListOrder>, Query, description = "By time of submit, or by id"),
        ("limit" = Option<usize>, Query, description = "At most this many, 1 to 1,000; 50 unless given",
         minimum = 1, maximum = 1000),
        ("page_token" = Option<String>, Query, description = "Where the page before ended"),
    ),
    responses((status = 200, description = "A page", body = WorkflowPage), ReadFailures),
)]
pub(super) async fn list(State(api): State<Api>, params: Params) -> Answer {
    let names = [
        "state",
        "name_prefix",
        "label",
        "created_from",
        "created_to",
        "order",
        "limit",
        "page_token",
    ];
    let params = params.known(&names)?;
    let order = match params.word("order")?.as_deref() {
        None | Some("newest") => ListOrder::Newest,
        Some("id") => ListOrder::Id,
        Some(other) => {
            let reason = format!("{other:?} is none of newest, id");
            return Err(Problem::invalid("order", reason));
        }
    };
    let request = ListRequest {
        states: params.workflow_states("state")?,
        name_prefix: params.text("name_prefix")?,
        labels: params.labels("label")?,
        created_from: params.time("created_from")?,
        created_to: params.time("created_to")?,
        order,
        limit: params.number("limit")?.unwrap_or(50),
        page_token: params.text("page_token")?,
    };
    Ok(Json(api.control.list(&request).await?).into_response())
}

/// Read a workflow
///
/// Never behind its state.
#[utoipa::path(
    get, path = "/v1/workflows/{workflow_id}", operation_id = "get_workflow", tag = "workflows",
    params(super::WorkflowPath, super::IfNoneMatch),
    responses(
        (status = 200, description = "The workflow", body = WorkflowView,
         headers(("etag" = String, description = "Its version"))),
        (status = 304, description = "It has the version in if-none-match"),
        ReadFailures,
    ),
)]
pub(super) async fn get(
    State(api): State<Api>,
    Path(id): Path<String>,
    headers: HeaderMap,
    params: Params,
) -> Answer {
    params.known(&[])?;
    let found = api.control.get(&workflow_id(&id)?).await?;
    versions::answer(&headers, &found)
}

/// Read a workflow's definition
///
/// What would be submitted to run the same again, with the defaults written out.
#[utoipa::path(
    get, path = "/v1/workflows/{workflow_id}/definition", operation_id = "get_definition", tag = "workflows",
    params(super::WorkflowPath, super::IfNoneMatch),
    responses(
        (status = 200, description = "The definition", body = Object),
        (status = 304, description = "It has the version in if-none-match"),
        ReadFailures,
    ),
)]
pub(super) async fn definition(
    State(api): State<Api>,
    Path(id): Path<String>,
    headers: HeaderMap,
    params: Params,
) -> Answer {
    params.known(&[])?;
    let found = api.control.definition(&workflow_id(&id)?).await?;
    versions::respond(&headers, &found, |json| {
        ([(header::CONTENT_TYPE, "application/json")], json.clone()).into_response()
    })
}

/// Draw a workflow
///
/// Nodes in layers, with the states of their tasks; alike tasks are one node.
#[utoipa::path(
    get, path = "/v1/workflows/{workflow_id}/graph", operation_id = "get_graph", tag = "workflows",
    params(
        super::WorkflowPath,
        ("format" = Option<GraphFormat>, Query, description = "json (unless given), dot or mermaid"),
        ("collapse_from" = Option<usize>, Query,
         description = "From how many alike tasks on a group is one node; 10 unless given, 0 for never",
         minimum = 0, maximum = 4_294_967_295_u32),
    ),
    responses(
        (status = 200, description = "The graph", content((Graph = "application/json"),
         (String = "text/vnd.graphviz"), (String = "text/vnd.mermaid"))),
        ReadFailures,
    ),
)]
pub(super) async fn graph(
    State(api): State<Api>,
    Path(id): Path<String>,
    params: Params,
) -> Answer {
    let params = params.known(&["format", "collapse_from"])?;
    let collapse_from = match params.number::<u32>("collapse_from")? {
        None => GraphRequest::default().collapse_from,
        Some(0) => None,
        Some(number) => Some(number as usize),
    };
    let format = params.word("format")?;
    let text = |kind: &'static str, text: String| ([(header::CONTENT_TYPE, kind)], text);
    let id = workflow_id(&id)?;
    let graph = async || api.control.graph(&id, GraphRequest { collapse_from }).await;
    match format.as_deref() {
        None | Some("json") => Ok(Json(graph().await?).into_response()),
        Some("dot") => Ok(text("text/vnd.graphviz", graph().await?.to_dot()).into_response()),
        Some("mermaid") => {
            Ok(text("text/vnd.mermaid", graph().await?.to_mermaid()).into_response())
        }
        Some(other) => {
            let reason = format!("{other:?} is none of json, dot, mermaid");
            Err(Problem::invalid("format", reason))
        }
    }
}

/// Refuses a change of a workflow whose version is not the one in `if-match`.
async fn check_version(
    control: &Control,
    id: &WorkflowId,
    headers: &HeaderMap,
) -> Result<(), Refusal> {
    if versions::is_conditional(headers) {
        versions::check(headers, &control.get(id).await?)?;
    }
    Ok(())
}

/// Cancel a workflow
///
/// The request is durable when this answers; what has not started never will, and running commands
/// are stopped.
#[utoipa::path(
    post, path = "/v1/workflows/{workflow_id}/cancel", operation_id = "cancel_workflow", tag = "workflows",
    params(super::WorkflowPath, super::IfMatch),
    responses((status = 202, description = "The request is stored"), ChangeFailures),
)]
pub(super) async fn cancel(
    State(api): State<Api>,
    Path(id): Path<String>,
    headers: HeaderMap,
    params: Params,
) -> Answer {
    params.known(&[])?;
    let id = workflow_id(&id)?;
    check_version(&api.control, &id, &headers).await?;
    api.control.cancel(&id).await?;
    Ok(StatusCode::ACCEPTED.into_response())
}

/// Retry a workflow
///
/// Gives failed, upstream-failed and cancelled tasks another life; what succeeded is not run again.
#[utoipa::path(
    post, path = "/v1/workflows/{workflow_id}/retry", operation_id = "retry_workflow", tag = "workflows",
    params(super::WorkflowPath, super::IfMatch),
    request_body = Option<RetryBody>,
    responses(
        (status = 200, description = "What would run again", body = RetryResult),
        (status = 202, description = "What runs again", body = RetryResult),
        ChangeFailures,
    ),
)]
pub(super) async fn retry(
    State(api): State<Api>,
    Path(id): Path<String>,
    headers: HeaderMap,
    params: Params,
    body: Body,
) -> Answer {
    params.known(&[])?;
    let id = workflow_id(&id)?;
    let body: RetryBody = body.json_or_default()?;
    check_version(&api.control, &id, &headers).await?;
    let request = RetryRequest {
        task: body.task,
        dry_run: body.dry_run,
    };
    let result = api.control.retry(&id, &request).await?;
    let status = if result.dry_run {
        StatusCode::OK
    } else {
        StatusCode::ACCEPTED
    };
    Ok((status, Json(result)).into_response())
}

/// Delete a workflow
///
/// With its outputs and logs. One that has not ended is deleted only with `force`.
#[utoipa::path(
    delete, path = "/v1/workflows/{workflow_id}", operation_id = "delete_workflow", tag = "workflows",
    params(
        super::WorkflowPath,
        super::IfMatch,
        ("force" = Option<bool>, Query, description = "Also deletes a workflow that has not ended"),
    ),
    responses((status = 204, description = "It is gone"), ChangeFailures),
)]
pub(super) async fn delete(
    State(api): State<Api>,
    Path(id): Path<String>,
    headers: HeaderMap,
    params: Params,
) -> Answer<Response> {
    let force = params.known(&["force"])?.flag("force")?;
    let id = workflow_id(&id)?;
    check_version(&api.control, &id, &headers).await?;
    api.control.delete(&id, force).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}
