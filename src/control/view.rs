//! What the use cases show of workflows and tasks: the same fields in every API.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::clock::Timestamp;
use crate::workflow::runtime::{Counts, Runtime, Task, TaskIndex};
use crate::workflow::{
    DepPolicy, QueueName, ResultPolicy, Seconds, TaskName, TaskState, WorkflowId, WorkflowState,
};

/// How many tasks of a workflow are in each state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[expect(missing_docs, reason = "each field is the state of its name")]
pub struct TaskCounts {
    pub total: u32,
    pub pending: u32,
    pub ready: u32,
    pub running: u32,
    pub completed: u32,
    pub failed: u32,
    pub upstream_failed: u32,
    pub skipped: u32,
    pub cancelled: u32,
}

impl From<&Counts> for TaskCounts {
    fn from(counts: &Counts) -> Self {
        Self {
            total: counts.total(),
            pending: counts.of(TaskState::Pending),
            ready: counts.of(TaskState::Ready),
            running: counts.of(TaskState::Running),
            completed: counts.of(TaskState::Completed),
            failed: counts.of(TaskState::Failed),
            upstream_failed: counts.of(TaskState::UpstreamFailed),
            skipped: counts.of(TaskState::Skipped),
            cancelled: counts.of(TaskState::Cancelled),
        }
    }
}

/// `all`, `any`, `all_settled`, or how many at least.
#[derive(ToSchema)]
#[schema(as = DepPolicy)]
#[serde(untagged)]
#[expect(dead_code, reason = "describes the JSON form of DepPolicy")]
enum DepPolicySchema {
    Word(String),
    AtLeast(u32),
}

/// One workflow, from its state.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct WorkflowView {
    /// The id.
    #[schema(value_type = String)]
    pub workflow_id: WorkflowId,
    /// The name, for people.
    pub name: String,
    /// Where it is in its life.
    pub workflow_state: WorkflowState,
    /// Whether a cancel was requested and taken up.
    pub cancel_requested: bool,
    /// Why it failed.
    pub error: Option<String>,
    /// When it was submitted.
    #[schema(value_type = String, format = DateTime)]
    pub created_at: Timestamp,
    /// When it last changed.
    #[schema(value_type = String, format = DateTime)]
    pub updated_at: Timestamp,
    /// For people and listings.
    pub labels: BTreeMap<String, String>,
    /// The queue of tasks that named none.
    #[schema(value_type = String)]
    pub default_queue: QueueName,
    /// When it counts as completed.
    pub result_policy: ResultPolicy,
    /// How many tasks may run at once.
    pub max_parallelism: Option<u32>,
    /// How many tasks are in each state.
    pub tasks: TaskCounts,
}

impl WorkflowView {
    pub(super) fn of(runtime: &Runtime) -> Self {
        let header = runtime.header();
        Self {
            workflow_id: header.workflow_id.clone(),
            name: header.name.clone(),
            workflow_state: runtime.state(),
            cancel_requested: runtime.cancel_requested(),
            error: runtime.error().map(str::to_owned),
            created_at: header.created_at,
            updated_at: runtime.updated_at(),
            labels: header.labels.clone(),
            default_queue: header.default_queue.clone(),
            result_policy: header.result_policy,
            max_parallelism: header.max_parallelism,
            tasks: runtime.counts().into(),
        }
    }
}

/// One task, from its workflow's state.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct TaskView {
    /// The name.
    #[schema(value_type = String)]
    pub name: TaskName,
    /// Where it is in its life.
    pub state: TaskState,
    /// The latest attempt that was dispatched; 0 if none was.
    pub attempt_no: u32,
    /// How often a person had it run again; attempts are counted afresh each time.
    pub retry_no: u32,
    /// How many more attempts follow a failed one.
    pub num_retries: u32,
    /// The queue whose workers run it.
    #[schema(value_type = String)]
    pub queue: QueueName,
    /// The tasks it waits for.
    #[schema(value_type = Vec<String>)]
    pub depends_on: Vec<TaskName>,
    /// How many of them must be satisfied.
    #[schema(value_type = DepPolicySchema)]
    pub dep_policy: DepPolicy,
    /// What must be true of their outputs.
    pub condition: Option<String>,
    /// How long one attempt may take.
    #[schema(value_type = Option<f64>)]
    pub timeout_s: Option<Seconds>,
    /// When its latest attempt was dispatched.
    #[schema(value_type = Option<String>, format = DateTime)]
    pub started_at: Option<Timestamp>,
    /// When it became terminal.
    #[schema(value_type = Option<String>, format = DateTime)]
    pub completed_at: Option<Timestamp>,
    /// Its output: JSON text, or `blob:` and a path.
    pub output_ref: Option<String>,
    /// Why it failed or was skipped.
    pub error: Option<String>,
}

impl TaskView {
    pub(super) fn of(runtime: &Runtime, task: &Task) -> Self {
        let name_of = |&parent: &TaskIndex| runtime.task(parent).name().clone();
        Self {
            name: task.name().clone(),
            state: task.state(),
            attempt_no: task.attempt_no(),
            retry_no: task.retry_no(),
            num_retries: task.num_retries(),
            queue: task.queue().clone(),
            depends_on: task.parents().iter().map(name_of).collect(),
            dep_policy: task.dep_policy(),
            condition: task.condition().map(str::to_owned),
            timeout_s: task.timeout_s(),
            started_at: task.started_at(),
            completed_at: task.completed_at(),
            output_ref: task.output_ref().map(str::to_owned),
            error: task.error().map(str::to_owned),
        }
    }
}
