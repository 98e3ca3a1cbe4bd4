//! The use cases: what people and programs can ask of jobq.
//!
//! Every API (command line, and later REST and gRPC) is a thin shell over these, so that each use
//! case means the same everywhere. They stand on the store; a coordinator in the same process is
//! only told to look sooner.
//!
//! Reads of one workflow come from its state blob and are never behind; listings come from the
//! index and may lag by two seconds.

mod cancel;
pub mod doctor;
mod error;
mod explain;
pub mod graph;
mod hub;
mod list;
pub mod page_token;
mod read;
mod remove;
mod retry;
mod status;
mod submit;
mod summary;
mod view;
mod watch;

pub use doctor::{Check, CheckStatus, DoctorReport, DoctorRequest};
pub use error::{Error, Result};
pub use explain::{Explanation, Finding};
pub use hub::{WatchEvent, WatchHub, Watcher};
pub use list::{ListOrder, ListRequest, WorkflowPage};
pub use read::{TaskListRequest, TaskOutput, TaskPage, Versioned};
pub use remove::{PurgeRequest, PurgeResult};
pub use retry::{RetryRequest, RetryResult};
pub use status::{CoordinatorRole, Readiness};
pub use submit::{SubmitRequest, SubmitResult, ValidateResult};
pub use summary::Summary;
pub use view::{TaskCounts, TaskView, WorkflowView};
pub use watch::{Change, Snapshot, Watch};

pub use crate::coordinator::CoordinatorStatus;

/// One workflow as listings show it.
pub use crate::wire::index_row::IndexRow as WorkflowSummary;

use std::sync::Arc;

use crate::clock::Clock;
use crate::coordinator::Coordinator;
use crate::store::WorkflowStore;
use crate::workflow::WorkflowId;

/// The use cases on one store. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Control {
    store: WorkflowStore,
    clock: Clock,
    coordinator: Option<Arc<Coordinator>>,
}

impl Control {
    /// The use cases on `store`. A coordinator of the same process, if given, is told of what it
    /// should look at.
    #[must_use]
    pub const fn new(
        store: WorkflowStore,
        clock: Clock,
        coordinator: Option<Arc<Coordinator>>,
    ) -> Self {
        Self {
            store,
            clock,
            coordinator,
        }
    }

    fn nudge(&self, id: &WorkflowId) {
        if let Some(coordinator) = &self.coordinator {
            coordinator.nudge(id);
        }
    }
}

#[cfg(test)]
mod tests;
