//! Where a command asks: the use cases on a storage, or a server that has them.

use bytes::Bytes;
use futures::stream::{self, BoxStream, StreamExt as _};

use super::exit::Failure;
use crate::api::client::Client;
use crate::control::graph::{Graph, GraphRequest};
use crate::control::{
    Control, CoordinatorStatus, DoctorReport, DoctorRequest, Explanation, ListRequest,
    PurgeRequest, PurgeResult, RetryRequest, RetryResult, SubmitRequest, SubmitResult, Summary,
    TaskListRequest, TaskPage, WatchEvent, WatchHub, WorkflowPage, WorkflowView,
};
use crate::workflow::WorkflowId;

/// The use cases, wherever they are. Both ways mean the same and print the same.
#[derive(Debug)]
pub(super) enum Backend {
    /// In this process, on the storage.
    Local(Control),
    /// In a server.
    Remote(Client),
}

/// Events of a watched workflow.
pub(super) type Events = BoxStream<'static, Result<WatchEvent, Failure>>;

impl Backend {
    pub(super) async fn submit(&self, request: SubmitRequest) -> Result<SubmitResult, Failure> {
        match self {
            Self::Local(control) => Ok(control.submit(request).await?),
            Self::Remote(client) => Ok(client.submit(request).await?),
        }
    }

    pub(super) async fn list(&self, request: &ListRequest) -> Result<WorkflowPage, Failure> {
        match self {
            Self::Local(control) => Ok(control.list(request).await?),
            Self::Remote(client) => Ok(client.list(request).await?),
        }
    }

    pub(super) async fn get(&self, id: &WorkflowId) -> Result<WorkflowView, Failure> {
        match self {
            Self::Local(control) => Ok(control.get(id).await?.value),
            Self::Remote(client) => Ok(client.get(id).await?),
        }
    }

    pub(super) async fn definition(&self, id: &WorkflowId) -> Result<String, Failure> {
        match self {
            Self::Local(control) => Ok(control.definition(id).await?.value),
            Self::Remote(client) => Ok(client.definition(id).await?),
        }
    }

    pub(super) async fn tasks(
        &self,
        id: &WorkflowId,
        request: &TaskListRequest,
    ) -> Result<TaskPage, Failure> {
        match self {
            Self::Local(control) => Ok(control.tasks(id, request).await?.value),
            Self::Remote(client) => Ok(client.tasks(id, request).await?),
        }
    }

    pub(super) async fn task_output(&self, id: &WorkflowId, task: &str) -> Result<Bytes, Failure> {
        match self {
            Self::Local(control) => Ok(control.task_output(id, task).await?.json),
            Self::Remote(client) => Ok(client.task_output(id, task).await?),
        }
    }

    pub(super) async fn explain(
        &self,
        id: &WorkflowId,
        task: &str,
    ) -> Result<Explanation, Failure> {
        match self {
            Self::Local(control) => Ok(control.explain(id, task).await?),
            Self::Remote(client) => Ok(client.explain(id, task).await?),
        }
    }

    pub(super) async fn graph(
        &self,
        id: &WorkflowId,
        request: GraphRequest,
    ) -> Result<Graph, Failure> {
        match self {
            Self::Local(control) => Ok(control.graph(id, request).await?),
            Self::Remote(client) => Ok(client.graph(id, request).await?),
        }
    }

    pub(super) async fn cancel(&self, id: &WorkflowId) -> Result<(), Failure> {
        match self {
            Self::Local(control) => Ok(control.cancel(id).await?),
            Self::Remote(client) => Ok(client.cancel(id).await?),
        }
    }

    pub(super) async fn retry(
        &self,
        id: &WorkflowId,
        request: &RetryRequest,
    ) -> Result<RetryResult, Failure> {
        match self {
            Self::Local(control) => Ok(control.retry(id, request).await?),
            Self::Remote(client) => Ok(client.retry(id, request).await?),
        }
    }

    pub(super) async fn delete(&self, id: &WorkflowId, force: bool) -> Result<(), Failure> {
        match self {
            Self::Local(control) => Ok(control.delete(id, force).await?),
            Self::Remote(client) => Ok(client.delete(id, force).await?),
        }
    }

    pub(super) async fn purge(&self, request: &PurgeRequest) -> Result<PurgeResult, Failure> {
        match self {
            Self::Local(control) => Ok(control.purge(request).await?),
            Self::Remote(client) => Ok(client.purge(request).await?),
        }
    }

    pub(super) async fn summary(&self) -> Result<Summary, Failure> {
        match self {
            Self::Local(control) => Ok(control.summary().await?),
            Self::Remote(client) => Ok(client.summary().await?),
        }
    }

    pub(super) async fn coordinator_status(&self) -> Result<CoordinatorStatus, Failure> {
        match self {
            Self::Local(control) => Ok(control.coordinator_status().await?),
            Self::Remote(client) => Ok(client.coordinator_status().await?),
        }
    }

    pub(super) async fn doctor(&self, request: &DoctorRequest) -> Result<DoctorReport, Failure> {
        match self {
            Self::Local(control) => Ok(control.doctor(request).await?),
            Self::Remote(client) => Ok(client.doctor(request).await?),
        }
    }

    pub(super) async fn watch(&self, id: &WorkflowId) -> Result<Events, Failure> {
        match self {
            Self::Local(control) => {
                let watcher = WatchHub::new(control.clone()).watch(id, None).await?;
                let events = stream::unfold(watcher, async |mut watcher| {
                    Some((Ok(watcher.next().await?), watcher))
                });
                Ok(events.boxed())
            }
            Self::Remote(client) => {
                let events = client.watch(id).await?;
                Ok(events.map(|event| event.map_err(Failure::from)).boxed())
            }
        }
    }
}
