//! A definition that was found valid.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::value::RawValue;

use crate::workflow::{DepPolicy, QueueName, ResultPolicy, Seconds, TaskName};

/// A workflow as submitted. Values of this type passed every check: names are unique,
/// dependencies exist, there is no cycle, conditions parse.
#[derive(Debug, Clone, Serialize)]
pub struct Definition {
    /// For people; need not be unique.
    pub name: String,
    /// The queue of tasks that name none. `default` unless given.
    pub default_queue: QueueName,
    /// The timeout of tasks that name none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub default_task_timeout_s: Option<Seconds>,
    /// How many tasks may run at once; no bound unless given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_parallelism: Option<u32>,
    /// When the workflow counts as completed.
    pub result_policy: ResultPolicy,
    /// For people and listings.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// The tasks, in the order given. At least one.
    pub tasks: Vec<TaskDefinition>,
}

/// A task as submitted.
#[derive(Debug, Clone, Serialize)]
pub struct TaskDefinition {
    /// Unique within the workflow.
    pub name: TaskName,
    /// What the worker gets: a JSON object, kept as the text it was given in. `cmd` is the shell
    /// command, `env` and `cwd` its environment.
    pub kwargs: Box<RawValue>,
    /// The tasks this one waits for; each once, in the order given.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub depends_on: Vec<TaskName>,
    /// The queue whose workers run it; the workflow's default unless given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queue: Option<QueueName>,
    /// How many dependencies must be satisfied.
    pub dep_policy: DepPolicy,
    /// How long one attempt may take; the workflow's default unless given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout_s: Option<Seconds>,
    /// How many more attempts follow a failed one.
    pub num_retries: u32,
    /// Run only if this is true of the dependencies' outputs; checked, kept as text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub condition: Option<String>,
}
