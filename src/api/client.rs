//! A client of the REST API: the use cases, asked of a server.

use std::time::Duration;

use bytes::Bytes;
use futures::stream::{BoxStream, StreamExt as _};
use reqwest::{Method, RequestBuilder, Response};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use url::Url;

use super::rest::Problem;
use crate::control::graph::{Graph, GraphRequest};
use crate::control::{
    CoordinatorStatus, DoctorReport, DoctorRequest, Explanation, ListOrder, ListRequest,
    PurgeRequest, PurgeResult, RetryRequest, RetryResult, SubmitRequest, SubmitResult, Summary,
    TaskListRequest, TaskPage, WatchEvent, WorkflowPage, WorkflowView,
};
use crate::limits::{PAGE_MAX, WATCH_EVENT_BYTES_MAX};
use crate::workflow::WorkflowId;

/// How long a server may take to accept a connection, and to begin an answer.
const PATIENCE: Duration = Duration::from_secs(30);

/// Why a server did not do what it was asked.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ClientError {
    /// The address is none.
    #[error("{0:?} is no address of a server; write http://HOST:PORT")]
    Address(String),
    /// It cannot be reached.
    #[error("cannot reach the server at {server}: {reason}")]
    Unreachable {
        /// Its address.
        server: String,
        /// Why.
        reason: String,
    },
    /// It refused.
    #[error("{}", told(.0))]
    Refused(Box<Problem>),
    /// Its answer is not one of this API.
    #[error("the server's answer cannot be read: {0}")]
    Unreadable(String),
}

fn told(problem: &Problem) -> String {
    let each = problem.errors.iter().map(|error| {
        let place = match (error.line, error.column) {
            (Some(line), Some(column)) => format!("{line}:{column}: "),
            _ => String::new(),
        };
        format!("\n{place}{} [{}]", error.message, error.code)
    });
    std::iter::once(problem.detail.clone())
        .chain(each)
        .collect()
}

/// The result of a call.
pub type Result<T, E = ClientError> = std::result::Result<T, E>;

/// A server to ask. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Client {
    http: reqwest::Client,
    server: Url,
}

impl Client {
    /// A client of the server at this address, such as `http://127.0.0.1:8080`.
    ///
    /// # Errors
    /// [`ClientError::Address`] if it is none.
    pub fn new(server: &str) -> Result<Self> {
        let refused = || ClientError::Address(server.to_owned());
        let server = Url::parse(server).map_err(|_| refused())?;
        if !matches!(server.scheme(), "http" | "https") || server.cannot_be_a_base() {
            return Err(refused());
        }
        let http = reqwest::Client::builder()
            .connect_timeout(PATIENCE)
            .read_timeout(PATIENCE)
            .build();
        let http = http.map_err(|error| ClientError::Unreadable(error.to_string()))?;
        Ok(Self { http, server })
    }

    /// A request to a path, given as its parts; each is encoded.
    fn request(&self, method: Method, path: &[&str]) -> RequestBuilder {
        let mut url = self.server.clone();
        if let Ok(mut segments) = url.path_segments_mut() {
            segments.pop_if_empty().push("v1").extend(path);
        }
        self.http.request(method, url)
    }

    async fn send(&self, request: RequestBuilder) -> Result<Response> {
        let response = request
            .send()
            .await
            .map_err(|error| self.unreachable(&error))?;
        if response.status().is_success() {
            return Ok(response);
        }
        let status = response.status();
        let body = response
            .bytes()
            .await
            .map_err(|error| self.unreachable(&error))?;
        match serde_json::from_slice::<Problem>(&body) {
            Ok(problem) => Err(ClientError::Refused(Box::new(problem))),
            Err(_) => Err(ClientError::Unreadable(format!("it answered {status}"))),
        }
    }

    fn unreachable(&self, error: &reqwest::Error) -> ClientError {
        let mut innermost: &dyn std::error::Error = error;
        while let Some(source) = innermost.source() {
            innermost = source;
        }
        ClientError::Unreachable {
            server: self.server.to_string(),
            reason: innermost.to_string(),
        }
    }

    async fn json<T: DeserializeOwned>(&self, request: RequestBuilder) -> Result<T> {
        let body = self.bytes(request).await?;
        serde_json::from_slice(&body).map_err(|error| ClientError::Unreadable(error.to_string()))
    }

    async fn bytes(&self, request: RequestBuilder) -> Result<Bytes> {
        let response = self.send(request).await?;
        response
            .bytes()
            .await
            .map_err(|error| self.unreachable(&error))
    }

    fn with_body(request: RequestBuilder, body: &Value) -> RequestBuilder {
        let request = request.header("content-type", "application/json");
        request.body(body.to_string())
    }

    /// Submits a workflow.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn submit(&self, request: SubmitRequest) -> Result<SubmitResult> {
        let definition = request.definition.to_json();
        let mut body = json!({"definition": definition, "labels": request.labels});
        if let Some(id) = request.id {
            body["workflow_id"] = json!(id);
        }
        if let Some(max_fan_in) = request.max_fan_in {
            body["max_fan_in"] = json!(max_fan_in);
        }
        let mut call = Self::with_body(self.request(Method::POST, &["workflows"]), &body);
        if let Some(traceparent) = request.traceparent {
            call = call.header("traceparent", traceparent);
        }
        if let Some(key) = request.idempotency_key {
            call = call.header("idempotency-key", key);
        }
        self.json(call).await
    }

    /// A page of workflows.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn list(&self, request: &ListRequest) -> Result<WorkflowPage> {
        let mut query: Vec<(&str, String)> = vec![("limit", request.limit.to_string())];
        let states = request.states.iter();
        query.extend(states.map(|state| ("state", state.to_string())));
        let labels = request.labels.iter();
        query.extend(labels.map(|(key, value)| ("label", format!("{key}={value}"))));
        query.extend(
            request
                .name_prefix
                .clone()
                .map(|text| ("name_prefix", text)),
        );
        query.extend(request.page_token.clone().map(|text| ("page_token", text)));
        query.extend(
            request
                .created_from
                .map(|time| ("created_from", time.to_string())),
        );
        query.extend(
            request
                .created_to
                .map(|time| ("created_to", time.to_string())),
        );
        if request.order == ListOrder::Id {
            query.push(("order", "id".to_owned()));
        }
        let call = self.request(Method::GET, &["workflows"]).query(&query);
        self.json(call).await
    }

    /// One workflow.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn get(&self, id: &WorkflowId) -> Result<WorkflowView> {
        self.json(self.request(Method::GET, &["workflows", id]))
            .await
    }

    /// Its definition as JSON.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn definition(&self, id: &WorkflowId) -> Result<String> {
        let call = self.request(Method::GET, &["workflows", id, "definition"]);
        let body = self.bytes(call).await?;
        String::from_utf8(body.into()).map_err(|error| ClientError::Unreadable(error.to_string()))
    }

    /// All its tasks that match, over however many pages.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn tasks(&self, id: &WorkflowId, request: &TaskListRequest) -> Result<TaskPage> {
        let mut all = TaskPage {
            tasks: Vec::new(),
            next_page_token: None,
        };
        loop {
            let mut query = vec![("limit", PAGE_MAX.to_string())];
            let states = request.states.iter();
            query.extend(states.map(|state| ("state", state.to_string())));
            query.extend(request.queue.clone().map(|text| ("queue", text)));
            query.extend(
                request
                    .name_prefix
                    .clone()
                    .map(|text| ("name_prefix", text)),
            );
            query.extend(all.next_page_token.take().map(|text| ("page_token", text)));
            let call = self.request(Method::GET, &["workflows", id, "tasks"]);
            let page: TaskPage = self.json(call.query(&query)).await?;
            all.tasks.extend(page.tasks);
            all.next_page_token = page.next_page_token;
            if all.next_page_token.is_none() {
                return Ok(all);
            }
        }
    }

    /// The output of a task.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn task_output(&self, id: &WorkflowId, task: &str) -> Result<Bytes> {
        let path = ["workflows", id, "tasks", task, "output"];
        self.bytes(self.request(Method::GET, &path)).await
    }

    /// Why a task is where it is.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn explain(&self, id: &WorkflowId, task: &str) -> Result<Explanation> {
        let path = ["workflows", id, "tasks", task, "explain"];
        self.json(self.request(Method::GET, &path)).await
    }

    /// The graph of a workflow.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn graph(&self, id: &WorkflowId, request: GraphRequest) -> Result<Graph> {
        let from = request.collapse_from.unwrap_or(0).to_string();
        let call = self.request(Method::GET, &["workflows", id, "graph"]);
        self.json(call.query(&[("collapse_from", from)])).await
    }

    /// Asks for a cancel.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn cancel(&self, id: &WorkflowId) -> Result<()> {
        let call = self.request(Method::POST, &["workflows", id, "cancel"]);
        self.send(call).await.map(drop)
    }

    /// Runs again what did not succeed.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn retry(&self, id: &WorkflowId, request: &RetryRequest) -> Result<RetryResult> {
        let body = json!({"task": request.task, "dry_run": request.dry_run});
        let call = self.request(Method::POST, &["workflows", id, "retry"]);
        self.json(Self::with_body(call, &body)).await
    }

    /// Deletes a workflow.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn delete(&self, id: &WorkflowId, force: bool) -> Result<()> {
        let call = self.request(Method::DELETE, &["workflows", id]);
        self.send(call.query(&[("force", force)])).await.map(drop)
    }

    /// Deletes old workflows.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn purge(&self, request: &PurgeRequest) -> Result<PurgeResult> {
        let body = json!({
            "states": request.states, "older_than_s": request.older_than.as_secs(),
            "limit": request.limit, "dry_run": request.dry_run,
        });
        let call = self.request(Method::POST, &["purge"]);
        self.json(Self::with_body(call, &body)).await
    }

    /// Counts by state.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn summary(&self) -> Result<Summary> {
        self.json(self.request(Method::GET, &["summary"])).await
    }

    /// What the coordinator last wrote about itself.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn coordinator_status(&self) -> Result<CoordinatorStatus> {
        self.json(self.request(Method::GET, &["coordinator"])).await
    }

    /// Looks at everything that can be wrong.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn doctor(&self, request: &DoctorRequest) -> Result<DoctorReport> {
        let seconds = |duration: Duration| duration.as_secs().to_string();
        let query = [
            ("pending_too_long_s", seconds(request.pending_too_long)),
            ("running_too_long_s", seconds(request.running_too_long)),
            ("completion_too_old_s", seconds(request.completion_too_old)),
            ("task_too_old_s", seconds(request.task_too_old)),
            ("sample", request.sample.to_string()),
        ];
        let call = if request.fix {
            self.request(Method::POST, &["doctor", "fix"])
        } else {
            self.request(Method::GET, &["doctor"])
        };
        self.json(call.query(&query)).await
    }

    /// The events of a workflow, until its end.
    ///
    /// # Errors
    /// [`ClientError`] before the first event, and from the stream when it breaks.
    pub async fn watch(&self, id: &WorkflowId) -> Result<BoxStream<'static, Result<WatchEvent>>> {
        let call = self.request(Method::GET, &["workflows", id, "watch"]);
        let response = self.send(call).await?;
        let client = self.clone();
        let state = (client, response.bytes_stream().boxed(), Vec::new());
        let events = futures::stream::unfold(state, async |(client, mut body, mut buffer)| {
            loop {
                if let Some(event) = take_event(&mut buffer) {
                    return Some((event, (client, body, buffer)));
                }
                match body.next().await? {
                    Ok(bytes) if buffer.len() + bytes.len() > WATCH_EVENT_BYTES_MAX => {
                        let error = ClientError::Unreadable("an event is too large".to_owned());
                        return Some((
                            Err(error),
                            (client, futures::stream::empty().boxed(), buffer),
                        ));
                    }
                    Ok(bytes) => buffer.extend_from_slice(&bytes),
                    Err(error) => {
                        let error = client.unreachable(&error);
                        return Some((
                            Err(error),
                            (client, futures::stream::empty().boxed(), buffer),
                        ));
                    }
                }
            }
        });
        Ok(events.boxed())
    }
}

/// The first whole event of a buffer of server-sent events; comments are skipped.
fn take_event(buffer: &mut Vec<u8>) -> Option<Result<WatchEvent>> {
    loop {
        let end = buffer.windows(2).position(|pair| pair == b"\n\n")?;
        let block: Vec<u8> = buffer.drain(..end + 2).collect();
        let text = String::from_utf8_lossy(&block);
        let data: Vec<&str> = text
            .lines()
            .filter_map(|line| line.strip_prefix("data:"))
            .map(str::trim_start)
            .collect();
        if !data.is_empty() {
            let event = serde_json::from_str(&data.join("\n"));
            return Some(event.map_err(|error| ClientError::Unreadable(error.to_string())));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_must_be_one_of_http() {
        assert!(Client::new("http://127.0.0.1:8080").is_ok());
        for text in ["", "127.0.0.1:8080", "ftp://x", "mailto:a@b"] {
            assert!(Client::new(text).is_err(), "{text:?}");
        }
    }

    #[test]
    fn events_are_taken_whole_and_comments_skipped() {
        let mut buffer =
            b": keep\n\nevent: gap\ndata: {\"event\":\"gap\",\"reason\":\"r\"}\n\ndata: {".to_vec();
        let event = take_event(&mut buffer).unwrap().unwrap();
        assert_eq!(event.name(), "gap");
        assert!(take_event(&mut buffer).is_none());
        assert_eq!(buffer, b"data: {");
    }
}
