//! Forms that exist for the description alone: what handlers read by hand, or as text.
#![expect(dead_code, reason = "describes bodies and parameters")]

use std::collections::BTreeMap;

use serde_json::{Map, Value};
use utoipa::ToSchema;

use crate::workflow::ResultPolicy;

/// A definition: as an object, or its YAML or JSON as text.
#[derive(ToSchema)]
#[serde(untagged)]
pub(super) enum DefinitionBody {
    /// As an object.
    Written(Box<DefinitionForm>),
    /// As text; problems then carry lines and columns.
    Text(String),
}

/// A workflow as people write it. The published schema, `workflow.schema.json`, says more of each field.
#[derive(ToSchema)]
#[schema(as = Definition)]
#[serde(deny_unknown_fields)]
pub(super) struct DefinitionForm {
    /// A name for people; need not be unique.
    #[schema(pattern = r"\S", max_length = 256)]
    pub(super) name: String,
    /// The tasks. Their order decides who gets a free slot first.
    #[schema(min_items = 1, max_items = 200_000)]
    pub(super) tasks: Vec<TaskForm>,
    /// The address of the published schema, for editors. Ignored.
    #[serde(rename = "$schema")]
    schema: Option<String>,
    /// The queue of tasks that name none; `default` unless given.
    #[schema(pattern = "^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$")]
    default_queue: Option<String>,
    /// The timeout, in seconds, of tasks that name none; none unless given.
    #[schema(exclusive_minimum = 0, maximum = 31_622_400)]
    default_task_timeout_s: Option<f64>,
    /// How many tasks may run at once; no bound unless given.
    #[schema(value_type = Option<usize>, minimum = 1, maximum = 4_294_967_295_u32)]
    max_parallelism: Option<u32>,
    /// When it counts as completed.
    result_policy: Option<ResultPolicy>,
    /// For people and listings; at most 32.
    labels: Option<BTreeMap<String, String>>,
}

/// A task as people write it: a shell command and what it waits for.
#[derive(ToSchema)]
#[schema(as = TaskDefinition)]
#[serde(deny_unknown_fields)]
pub(super) struct TaskForm {
    /// Unique within the workflow.
    #[schema(pattern = r"\S", max_length = 256)]
    name: String,
    /// What the worker gets; `cmd` is the command to run.
    #[schema(value_type = Option<Object>)]
    kwargs: Option<Map<String, Value>>,
    /// Names of the tasks it waits for.
    depends_on: Option<Vec<String>>,
    /// The queue whose workers run it; the workflow's default unless given.
    #[schema(pattern = "^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$")]
    queue: Option<String>,
    /// How many dependencies must be satisfied; all unless given.
    dep_policy: Option<DepPolicyForm>,
    /// How long one attempt may take, in seconds; the workflow's default unless given.
    #[schema(exclusive_minimum = 0, maximum = 31_622_400)]
    timeout_s: Option<f64>,
    /// How many more attempts follow a failed one; 0 unless given.
    #[schema(value_type = Option<usize>, minimum = 0, maximum = 1000)]
    num_retries: Option<u32>,
    /// Runs only if this is true of the dependencies' outputs.
    #[schema(max_length = 8192)]
    condition: Option<String>,
}

/// How many dependencies must be satisfied.
#[derive(ToSchema)]
#[schema(as = DependencyPolicy)]
#[serde(untagged)]
enum DepPolicyForm {
    Word(DepPolicyWord),
    AtLeast(AtLeast),
}

/// So many of them.
#[derive(ToSchema)]
#[schema(value_type = usize, minimum = 1)]
struct AtLeast(usize);

/// The policies that have names.
#[derive(ToSchema)]
#[serde(rename_all = "snake_case")]
enum DepPolicyWord {
    /// All of them.
    All,
    /// One of them.
    Any,
    /// All have ended, and one is satisfied.
    AllSettled,
}

/// The states of workflows that have ended.
#[derive(ToSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum TerminalState {
    /// The result policy is content.
    Completed,
    /// The result policy is not content.
    Failed,
    /// Ended after a cancel.
    Cancelled,
}

/// How a graph is written.
#[derive(ToSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum GraphFormat {
    /// Nodes and edges as JSON.
    Json,
    /// For Graphviz.
    Dot,
    /// For Mermaid.
    Mermaid,
}

/// One event of a watch, as its stream carries it.
#[derive(ToSchema)]
pub(super) struct WatchMessage {
    /// The kind of the event.
    event: WatchKind,
    /// Goes into `Last-Event-ID` to go on after it; a gap and an end have none.
    id: Option<String>,
    /// The event: a `WatchEvent` as JSON.
    #[schema(content_media_type = "application/json")]
    data: String,
}

/// The kinds of events.
#[derive(ToSchema)]
#[serde(rename_all = "snake_case")]
enum WatchKind {
    /// All at one moment.
    Snapshot,
    /// What changed since the event before.
    Changes,
    /// Changes were missed; a snapshot follows.
    Gap,
    /// Nothing more will be told.
    End,
}

/// A label as `key=value`.
#[derive(ToSchema)]
#[schema(pattern = "^[^=]+=")]
pub(super) struct LabelParam(String);

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use serde_json::Value;

    fn fields(schema: &Value) -> BTreeSet<String> {
        let properties = schema["properties"].as_object().unwrap();
        properties.keys().cloned().collect()
    }

    #[test]
    fn definitions_have_the_fields_of_the_published_schema() {
        let published = include_str!("../../../docs/workflow.schema.json");
        let published: Value = serde_json::from_str(published).unwrap();
        let described = serde_json::to_value(super::super::document()).unwrap();
        let described = &described["components"]["schemas"];
        assert_eq!(fields(&described["Definition"]), fields(&published));
        let task = &published["$defs"]["task"];
        assert_eq!(fields(&described["TaskDefinition"]), fields(task));
    }
}
