//! The service `Workflows`, over the use cases.

use std::pin::Pin;

use futures::{Stream, StreamExt as _, stream};
use tonic::{Request, Response, Status};

use super::convert::{
    count, duration, given, task_states, time, timestamp, workflow_id, workflow_states,
};
use super::status::{invalid, status};
use super::v1::{self, workflows_server::Workflows};
use crate::api::Api;
use crate::control::graph::GraphRequest;
use crate::control::{
    DoctorRequest, Error, ListOrder, ListRequest, PurgeRequest, RetryRequest, SubmitRequest,
    TaskListRequest,
};
use crate::workflow::definition::Definition;

type Answer<T> = Result<Response<T>, Status>;

/// A request's number, or what stands for zero.
fn or(number: u32, usual: usize) -> usize {
    match number {
        0 => usual,
        number => number as usize,
    }
}

fn submit_request(
    request: v1::SubmitWorkflowRequest,
    traceparent: Option<String>,
) -> Result<SubmitRequest, Error> {
    let definition = Definition::from_text(request.definition.as_bytes());
    let id = given(request.workflow_id).map(|id| crate::workflow::WorkflowId::parse(&id));
    let id = id.transpose().map_err(|error| Error::InvalidArgument {
        field: "workflow_id",
        reason: error.to_string(),
    })?;
    Ok(SubmitRequest {
        id,
        idempotency_key: given(request.idempotency_key),
        labels: request.labels.into_iter().collect(),
        max_fan_in: Some(request.max_fan_in as usize).filter(|bound| *bound > 0),
        traceparent,
        ..SubmitRequest::new(definition.map_err(Error::InvalidDefinition)?)
    })
}

fn traceparent<T>(request: &Request<T>) -> Option<String> {
    let text = request.metadata().get("traceparent")?.to_str().ok()?;
    crate::telemetry::is_traceparent(text).then(|| text.to_owned())
}

fn submitted(result: &crate::control::SubmitResult) -> v1::SubmitWorkflowResponse {
    v1::SubmitWorkflowResponse {
        workflow_id: result.workflow_id.to_string(),
        created: result.created,
    }
}

fn batch_result(result: Result<crate::control::SubmitResult, Error>) -> v1::BatchSubmitResult {
    use v1::batch_submit_result::Outcome;
    let outcome = match result {
        Ok(result) => Outcome::Submitted(submitted(&result)),
        Err(error) => Outcome::Refused(v1::Refusal {
            code: error.code().to_owned(),
            message: error.to_string(),
        }),
    };
    v1::BatchSubmitResult {
        outcome: Some(outcome),
    }
}

fn list_request(request: v1::ListWorkflowsRequest) -> Result<ListRequest, Status> {
    let moment = |field, given: Option<prost_types::Timestamp>| {
        given.map(|given| time(field, given)).transpose()
    };
    Ok(ListRequest {
        states: workflow_states(&request.states)?,
        name_prefix: given(request.name_prefix),
        labels: request.labels.into_iter().collect(),
        created_from: moment("created_from", request.created_from)?,
        created_to: moment("created_to", request.created_to)?,
        order: match v1::ListOrder::try_from(request.order) {
            Ok(v1::ListOrder::Unspecified | v1::ListOrder::Newest) => ListOrder::Newest,
            Ok(v1::ListOrder::Id) => ListOrder::Id,
            Err(_) => return Err(invalid("order", "there is no such order")),
        },
        limit: or(request.limit, 50),
        page_token: given(request.page_token),
    })
}

fn doctor_request(request: v1::RunDoctorRequest) -> Result<DoctorRequest, Status> {
    let usual = DoctorRequest::default();
    let or_usual = |field, given: Option<prost_types::Duration>, usual| match given {
        None => Ok(usual),
        Some(given) => duration(field, given),
    };
    Ok(DoctorRequest {
        pending_too_long: or_usual(
            "pending_too_long",
            request.pending_too_long,
            usual.pending_too_long,
        )?,
        running_too_long: or_usual(
            "running_too_long",
            request.running_too_long,
            usual.running_too_long,
        )?,
        completion_too_old: or_usual(
            "completion_too_old",
            request.completion_too_old,
            usual.completion_too_old,
        )?,
        task_too_old: or_usual("task_too_old", request.task_too_old, usual.task_too_old)?,
        sample: or(request.sample, usual.sample),
        fix: request.fix,
    })
}

#[tonic::async_trait]
impl Workflows for Api {
    async fn submit_workflow(
        &self,
        request: Request<v1::SubmitWorkflowRequest>,
    ) -> Answer<v1::SubmitWorkflowResponse> {
        let traceparent = traceparent(&request);
        let request = submit_request(request.into_inner(), traceparent);
        let request = request.map_err(|error| status(&error))?;
        let result = self.control.submit(request).await;
        let result = result.map_err(|error| status(&error))?;
        Ok(Response::new(submitted(&result)))
    }

    async fn batch_submit_workflows(
        &self,
        request: Request<v1::BatchSubmitWorkflowsRequest>,
    ) -> Answer<v1::BatchSubmitWorkflowsResponse> {
        let traceparent = traceparent(&request);
        let mut results: Vec<Option<v1::BatchSubmitResult>> = Vec::new();
        let (mut places, mut requests) = (Vec::new(), Vec::new());
        for (place, one) in request.into_inner().workflows.into_iter().enumerate() {
            match submit_request(one, traceparent.clone()) {
                Ok(request) => {
                    results.push(None);
                    places.push(place);
                    requests.push(request);
                }
                Err(error) => results.push(Some(batch_result(Err(error)))),
            }
        }
        let answers = self.control.submit_batch(requests).await;
        let answers = answers.map_err(|error| status(&error))?;
        for (place, answer) in places.into_iter().zip(answers) {
            results[place] = Some(batch_result(answer));
        }
        let results = results.into_iter().flatten().collect();
        Ok(Response::new(v1::BatchSubmitWorkflowsResponse { results }))
    }

    async fn validate_workflow(
        &self,
        request: Request<v1::SubmitWorkflowRequest>,
    ) -> Answer<v1::ValidateWorkflowResponse> {
        let request = submit_request(request.into_inner(), None);
        let result = request.and_then(|request| self.control.validate(request));
        let result = result.map_err(|error| status(&error))?;
        Ok(Response::new(v1::ValidateWorkflowResponse {
            name: result.name,
            tasks: count(result.tasks),
        }))
    }

    async fn get_workflow(&self, request: Request<v1::GetWorkflowRequest>) -> Answer<v1::Workflow> {
        let id = workflow_id(&request.get_ref().workflow_id)?;
        let found = self.control.get(&id).await;
        let found = found.map_err(|error| status(&error))?;
        Ok(Response::new(found.value.into()))
    }

    async fn get_definition(
        &self,
        request: Request<v1::GetDefinitionRequest>,
    ) -> Answer<v1::GetDefinitionResponse> {
        let id = workflow_id(&request.get_ref().workflow_id)?;
        let found = self.control.definition(&id).await;
        let json = found.map_err(|error| status(&error))?.value;
        Ok(Response::new(v1::GetDefinitionResponse { json }))
    }

    async fn list_workflows(
        &self,
        request: Request<v1::ListWorkflowsRequest>,
    ) -> Answer<v1::ListWorkflowsResponse> {
        let request = list_request(request.into_inner())?;
        let page = self.control.list(&request).await;
        let page = page.map_err(|error| status(&error))?;
        Ok(Response::new(v1::ListWorkflowsResponse {
            workflows: page.workflows.into_iter().map(Into::into).collect(),
            next_page_token: page.next_page_token.unwrap_or_default(),
        }))
    }

    async fn list_tasks(
        &self,
        request: Request<v1::ListTasksRequest>,
    ) -> Answer<v1::ListTasksResponse> {
        let request = request.into_inner();
        let id = workflow_id(&request.workflow_id)?;
        let request = TaskListRequest {
            states: task_states(&request.states)?,
            queue: given(request.queue),
            name_prefix: given(request.name_prefix),
            limit: Some(or(request.limit, 100)),
            page_token: given(request.page_token),
        };
        let page = self.control.tasks(&id, &request).await;
        let page = page.map_err(|error| status(&error))?.value;
        Ok(Response::new(v1::ListTasksResponse {
            tasks: page.tasks.into_iter().map(Into::into).collect(),
            next_page_token: page.next_page_token.unwrap_or_default(),
        }))
    }

    async fn get_task(&self, request: Request<v1::GetTaskRequest>) -> Answer<v1::Task> {
        let request = request.into_inner();
        let id = workflow_id(&request.workflow_id)?;
        let found = self.control.task(&id, &request.task).await;
        let found = found.map_err(|error| status(&error))?;
        Ok(Response::new(found.value.into()))
    }

    async fn get_task_output(
        &self,
        request: Request<v1::GetTaskOutputRequest>,
    ) -> Answer<v1::GetTaskOutputResponse> {
        let request = request.into_inner();
        let id = workflow_id(&request.workflow_id)?;
        let output = self.control.task_output(&id, &request.task).await;
        let json = output.map_err(|error| status(&error))?.json.into();
        Ok(Response::new(v1::GetTaskOutputResponse { json }))
    }

    async fn explain_task(
        &self,
        request: Request<v1::ExplainTaskRequest>,
    ) -> Answer<v1::ExplainTaskResponse> {
        let request = request.into_inner();
        let id = workflow_id(&request.workflow_id)?;
        let explanation = self.control.explain(&id, &request.task).await;
        let explanation = explanation.map_err(|error| status(&error))?;
        Ok(Response::new(v1::ExplainTaskResponse {
            task: Some(explanation.task.into()),
            findings: explanation.findings.into_iter().map(Into::into).collect(),
        }))
    }

    async fn get_graph(
        &self,
        request: Request<v1::GetGraphRequest>,
    ) -> Answer<v1::GetGraphResponse> {
        let request = request.into_inner();
        let id = workflow_id(&request.workflow_id)?;
        let collapse_from = match request.collapse_from {
            None => GraphRequest::default().collapse_from,
            Some(0) => None,
            Some(number) => Some(number as usize),
        };
        let format = v1::GraphFormat::try_from(request.format)
            .map_err(|_| invalid("format", "there is no such format"))?;
        let graph = self.control.graph(&id, GraphRequest { collapse_from });
        let graph = graph.await.map_err(|error| status(&error))?;
        let text = match format {
            v1::GraphFormat::Dot => graph.to_dot(),
            v1::GraphFormat::Mermaid => graph.to_mermaid(),
            v1::GraphFormat::Json | v1::GraphFormat::Unspecified => {
                serde_json::to_string(&graph)
                    .map_err(|error| Status::internal(error.to_string()))?
            }
        };
        Ok(Response::new(v1::GetGraphResponse { text }))
    }

    async fn cancel_workflow(
        &self,
        request: Request<v1::CancelWorkflowRequest>,
    ) -> Answer<v1::CancelWorkflowResponse> {
        let id = workflow_id(&request.get_ref().workflow_id)?;
        let cancelled = self.control.cancel(&id).await;
        cancelled.map_err(|error| status(&error))?;
        Ok(Response::new(v1::CancelWorkflowResponse {}))
    }

    async fn retry_workflow(
        &self,
        request: Request<v1::RetryWorkflowRequest>,
    ) -> Answer<v1::RetryWorkflowResponse> {
        let request = request.into_inner();
        let id = workflow_id(&request.workflow_id)?;
        let request = RetryRequest {
            task: given(request.task),
            dry_run: request.dry_run,
        };
        let result = self.control.retry(&id, &request).await;
        let result = result.map_err(|error| status(&error))?;
        Ok(Response::new(v1::RetryWorkflowResponse {
            tasks: result.tasks.iter().map(ToString::to_string).collect(),
            dry_run: result.dry_run,
        }))
    }

    async fn delete_workflow(
        &self,
        request: Request<v1::DeleteWorkflowRequest>,
    ) -> Answer<v1::DeleteWorkflowResponse> {
        let request = request.into_inner();
        let id = workflow_id(&request.workflow_id)?;
        let deleted = self.control.delete(&id, request.force).await;
        deleted.map_err(|error| status(&error))?;
        Ok(Response::new(v1::DeleteWorkflowResponse {}))
    }

    async fn purge_workflows(
        &self,
        request: Request<v1::PurgeWorkflowsRequest>,
    ) -> Answer<v1::PurgeWorkflowsResponse> {
        let request = request.into_inner();
        let older_than = request.older_than.unwrap_or_default();
        let request = PurgeRequest {
            states: workflow_states(&request.states)?,
            older_than: duration("older_than", older_than)?,
            limit: or(request.limit, 100),
            dry_run: request.dry_run,
        };
        let result = self.control.purge(&request).await;
        let result = result.map_err(|error| status(&error))?;
        Ok(Response::new(v1::PurgeWorkflowsResponse {
            workflow_ids: result
                .workflow_ids
                .iter()
                .map(ToString::to_string)
                .collect(),
            more: result.more,
            dry_run: result.dry_run,
        }))
    }

    async fn get_summary(
        &self,
        _request: Request<v1::GetSummaryRequest>,
    ) -> Answer<v1::GetSummaryResponse> {
        let summary = self.control.summary().await;
        let summary = summary.map_err(|error| status(&error))?;
        let workflows = summary.workflows.into_iter();
        Ok(Response::new(v1::GetSummaryResponse {
            workflows: workflows
                .map(|(state, count)| (state.to_string(), count))
                .collect(),
            running_tasks: summary.running_tasks,
            pending_tasks: summary.pending_tasks,
            complete: summary.complete,
        }))
    }

    async fn get_coordinator(
        &self,
        _request: Request<v1::GetCoordinatorRequest>,
    ) -> Answer<v1::GetCoordinatorResponse> {
        let found = self.control.coordinator_status().await;
        let found = found.map_err(|error| status(&error))?;
        Ok(Response::new(v1::GetCoordinatorResponse {
            host: found.holder.host,
            pid: found.holder.pid,
            version: found.holder.version,
            since: Some(timestamp(found.holder.since)),
            written_at: Some(timestamp(found.written_at)),
            counters_json: found.counters.to_string(),
        }))
    }

    async fn run_doctor(
        &self,
        request: Request<v1::RunDoctorRequest>,
    ) -> Answer<v1::RunDoctorResponse> {
        let request = doctor_request(request.into_inner())?;
        let report = self.control.doctor(&request).await;
        let report = report.map_err(|error| status(&error))?;
        Ok(Response::new(v1::RunDoctorResponse {
            status: v1::CheckStatus::from(report.status).into(),
            checks: report.checks.into_iter().map(Into::into).collect(),
            fixed: count(report.fixed),
        }))
    }

    type WatchWorkflowStream =
        Pin<Box<dyn Stream<Item = Result<v1::WatchWorkflowResponse, Status>> + Send>>;

    async fn watch_workflow(
        &self,
        request: Request<v1::WatchWorkflowRequest>,
    ) -> Answer<Self::WatchWorkflowStream> {
        let request = request.into_inner();
        let id = workflow_id(&request.workflow_id)?;
        let token = given(request.resume_token);
        let watcher = self.hub.watch(&id, token.as_deref()).await;
        let watcher = watcher.map_err(|error| status(&error))?;
        let events = stream::unfold(watcher, async |mut watcher| {
            let event = watcher.next().await?;
            Some((Ok(event.into()), watcher))
        });
        // Watchers leave when the server does, instead of holding it.
        let events = events.take_until(self.stop.clone().cancelled_owned());
        Ok(Response::new(Box::pin(events)))
    }
}
