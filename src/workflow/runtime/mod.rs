//! The runtime of one workflow: a state machine over its tasks.
//!
//! ```text
//!              policy satisfied,              dispatch              completion
//!              condition true                (attempt + 1)          (same attempt)
//!   pending ───────────────────► ready ───────────────► running ───────────────► completed
//!      │                           ▲                       │  └────────────────► failed
//!      ├── condition false ► skipped└── failure, attempts left ┘
//!      ├── policy broken ──► upstream_failed
//!      └── cancel ─────────► cancelled  (ready tasks too)
//! ```
//!
//! One file per verb: [`apply`](self) of completions, `dispatch`, `settle` (conditions), `cancel`,
//! `retry`, `timeout`. Each takes the time as an argument, changes the state, and leaves what is to be
//! pushed in [`Runtime::dispatchable`]; nothing here does IO.
//!
//! Invariants, recounted by [`Runtime::check`]:
//! - a task's parents come from its definition and form no cycle;
//! - `satisfied` and `broken` count the parents in satisfying and breaking states;
//! - the counts by state, of dispatched tasks and of broken sinks equal a recount;
//! - exactly the ready tasks stand in the ready queue, the longest waiting first;
//! - exactly the running tasks with a timeout stand among the deadlines;
//! - terminal tasks change only by [`Runtime::retry`].
//!
//! A completion costs time in proportion to the finished task's children, never to the parents of
//! its children.

mod apply;
mod build;
mod cancel;
mod check;
mod counts;
mod dispatch;
mod outcome;
mod retry;
mod settle;
mod task;
mod timeout;

#[cfg(test)]
mod properties;
#[cfg(test)]
mod tests;

pub use apply::{Applied, Completion, IgnoredBecause};
pub(crate) use build::Progress;
pub use build::{BuildError, TaskSeed};
pub use check::Inconsistency;
pub use counts::Counts;
pub use settle::LoadedOutputs;
pub use task::{Task, TaskIndex};

use std::collections::{BTreeMap, BTreeSet, HashMap};

use serde_json::value::RawValue;

use crate::clock::Timestamp;
use crate::workflow::definition::{Definition, TaskDefinition};
use crate::workflow::{QueueName, ResultPolicy, TaskName, WorkflowId, WorkflowState};

/// What a workflow is called and how it is judged: everything but its tasks and their progress.
#[derive(Debug, Clone)]
pub struct Header {
    /// The id.
    pub workflow_id: WorkflowId,
    /// The name, for people.
    pub name: String,
    /// The queue of tasks that named none.
    pub default_queue: QueueName,
    /// When the workflow counts as completed.
    pub result_policy: ResultPolicy,
    /// How many tasks may run at once.
    pub max_parallelism: Option<u32>,
    /// When it was submitted.
    pub created_at: Timestamp,
    /// For people and listings.
    pub labels: BTreeMap<String, String>,
    /// Identifies the definition, to recognise a repeated submit.
    pub definition_sha256: Option<String>,
    /// The W3C trace context of the submit.
    pub traceparent: Option<String>,
    /// Fields of the state blob that this version does not know, kept as they are.
    pub extra: Vec<(String, Box<RawValue>)>,
}

/// A workflow and the progress of its tasks.
#[derive(Debug, Clone)]
pub struct Runtime {
    header: Header,
    tasks: Vec<Task>,
    by_name: HashMap<TaskName, TaskIndex>,
    counts: Counts,
    /// Ready tasks by the order in which they became ready.
    ready: BTreeSet<(u64, TaskIndex)>,
    next_ready_seq: u64,
    /// Running tasks with a timeout, by the moment it ends.
    deadlines: BTreeSet<(Timestamp, TaskIndex)>,
    /// Pending tasks whose readiness is to be decided by the next settle.
    undecided: BTreeSet<TaskIndex>,
    state: WorkflowState,
    cancel_requested: bool,
    error: Option<String>,
    updated_at: Timestamp,
    /// Counts changes, so that a holder knows whether there is something to flush.
    revision: u64,
}

impl Runtime {
    /// What does not change while the workflow runs.
    #[must_use]
    pub const fn header(&self) -> &Header {
        &self.header
    }

    /// The tasks, in the order of the definition.
    #[must_use]
    pub fn tasks(&self) -> &[Task] {
        &self.tasks
    }

    /// One task.
    #[must_use]
    pub fn task(&self, index: TaskIndex) -> &Task {
        &self.tasks[index.as_usize()]
    }

    /// The task with this name.
    #[must_use]
    pub fn find(&self, name: &str) -> Option<TaskIndex> {
        self.by_name.get(name).copied()
    }

    /// How many tasks are in each state.
    #[must_use]
    pub const fn counts(&self) -> &Counts {
        &self.counts
    }

    /// Where the workflow is in its life.
    #[must_use]
    pub const fn state(&self) -> WorkflowState {
        self.state
    }

    /// Whether somebody asked to cancel it.
    #[must_use]
    pub const fn cancel_requested(&self) -> bool {
        self.cancel_requested
    }

    /// Why it failed, for people.
    #[must_use]
    pub fn error(&self) -> Option<&str> {
        self.error.as_deref()
    }

    /// When it last changed.
    #[must_use]
    pub const fn updated_at(&self) -> Timestamp {
        self.updated_at
    }

    /// Grows with every change; equal values mean that nothing changed in between.
    #[must_use]
    pub const fn revision(&self) -> u64 {
        self.revision
    }

    /// Notes the digest that a repeated submit is recognised by.
    pub fn set_definition_sha256(&mut self, digest: String) {
        self.header.definition_sha256 = Some(digest);
    }

    /// Notes the trace that the submit belongs to.
    pub fn set_traceparent(&mut self, traceparent: Option<String>) {
        self.header.traceparent = traceparent;
    }

    /// What was submitted, as far as it matters: queues and timeouts stand at each task.
    #[must_use]
    pub fn definition(&self) -> Definition {
        let name_of = |&parent: &TaskIndex| self.task(parent).name.clone();
        let tasks = self.tasks.iter().map(|task| TaskDefinition {
            name: task.name.clone(),
            kwargs: task.kwargs().to_owned(),
            depends_on: task.parents.iter().map(name_of).collect(),
            queue: Some(task.queue.clone()),
            dep_policy: task.dep_policy,
            timeout_s: task.timeout_s,
            num_retries: task.num_retries,
            condition: task.condition().map(str::to_owned),
        });
        Definition {
            name: self.header.name.clone(),
            default_queue: self.header.default_queue.clone(),
            default_task_timeout_s: None,
            max_parallelism: self.header.max_parallelism,
            result_policy: self.header.result_policy,
            labels: self.header.labels.clone(),
            tasks: tasks.collect(),
        }
    }

    fn task_mut(&mut self, index: TaskIndex) -> &mut Task {
        &mut self.tasks[index.as_usize()]
    }
}
