//! The index row: what listings show of a workflow, and where a cancel is requested.
//!
//! Derived from the state blob, except `cancel_requested`, which only submit, cancel and retry
//! write. Progress is merged, so that it never overwrites a cancel.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::clock::Timestamp;
use crate::storage::{Properties, Value};
use crate::workflow::runtime::Runtime;
use crate::workflow::{TaskState, WorkflowState};

/// A row as listings show it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[schema(as = WorkflowSummary)]
pub struct IndexRow {
    /// The workflow's id (the row key).
    pub workflow_id: String,
    /// The name, for people.
    pub name: String,
    /// The state at the latest flush that was indexed.
    pub workflow_state: WorkflowState,
    /// Whether somebody asked to cancel it.
    pub cancel_requested: bool,
    /// All tasks.
    pub total_tasks: u32,
    /// Completed tasks.
    pub completed_tasks: u32,
    /// Failed, upstream-failed and cancelled tasks.
    pub failed_tasks: u32,
    /// Running tasks.
    pub running_tasks: u32,
    /// Pending and ready tasks.
    pub pending_tasks: u32,
    /// Skipped tasks.
    pub skipped_tasks: u32,
    /// The queue of tasks that named none.
    pub default_queue: String,
    /// The queues its tasks use, sorted.
    pub queues_used: Vec<String>,
    /// When it was submitted.
    #[schema(value_type = String)]
    pub created_at: Timestamp,
    /// When the indexed state was reached.
    #[schema(value_type = String)]
    pub updated_at: Timestamp,
    /// Why it failed.
    pub error: Option<String>,
    /// For people and listings.
    pub labels: BTreeMap<String, String>,
}

/// The property that asks for a cancel.
pub const CANCEL_REQUESTED: &str = "cancel_requested";

/// The property that holds the workflow's state.
pub const WORKFLOW_STATE: &str = "workflow_state";

/// The property that holds all labels, as JSON.
const LABELS: &str = "labels";

/// The property that holds one label, for filters. Property names are identifiers, so a key that is
/// none is spelt by its digest.
#[must_use]
pub fn label_property(key: &str) -> String {
    let plain = |b: u8| b.is_ascii_alphanumeric() || b == b'_';
    if key.len() <= 64 && key.bytes().all(plain) {
        return format!("label_{key}");
    }
    let digest = hex::encode(Sha256::digest(key));
    format!("labelx_{}", &digest[..32])
}

/// All properties of a new row.
#[must_use]
pub fn complete(runtime: &Runtime) -> Properties {
    let header = runtime.header();
    let mut queues: Vec<&str> = runtime
        .tasks()
        .iter()
        .map(|task| task.queue().as_str())
        .collect();
    queues.sort_unstable();
    queues.dedup();
    let mut row = progress(runtime);
    if !header.labels.is_empty() {
        let json = serde_json::to_string(&header.labels).expect("texts have a JSON form");
        row.insert(LABELS.to_owned(), text(&json));
        let each = header.labels.iter();
        row.extend(each.map(|(key, value)| (label_property(key), text(value))));
    }
    row.extend([
        ("name".to_owned(), text(&header.name)),
        (
            CANCEL_REQUESTED.to_owned(),
            Value::Bool(runtime.cancel_requested()),
        ),
        ("default_queue".to_owned(), text(&header.default_queue)),
        ("queues_used".to_owned(), text(&queues.join(","))),
        ("created_at".to_owned(), Value::DateTime(header.created_at)),
    ]);
    row
}

/// The properties that change while a workflow runs. Never `cancel_requested`.
#[must_use]
pub fn progress(runtime: &Runtime) -> Properties {
    let counts = runtime.counts();
    let sum = |states: &[TaskState]| {
        let count: u32 = states.iter().map(|&state| counts.of(state)).sum();
        Value::Int32(i32::try_from(count).unwrap_or(i32::MAX))
    };
    Properties::from([
        (WORKFLOW_STATE.to_owned(), text(runtime.state().as_str())),
        ("total_tasks".to_owned(), sum(TaskState::ALL)),
        ("completed_tasks".to_owned(), sum(&[TaskState::Completed])),
        (
            "failed_tasks".to_owned(),
            sum(&[
                TaskState::Failed,
                TaskState::UpstreamFailed,
                TaskState::Cancelled,
            ]),
        ),
        ("running_tasks".to_owned(), sum(&[TaskState::Running])),
        (
            "pending_tasks".to_owned(),
            sum(&[TaskState::Pending, TaskState::Ready]),
        ),
        ("skipped_tasks".to_owned(), sum(&[TaskState::Skipped])),
        (
            "updated_at".to_owned(),
            Value::DateTime(runtime.updated_at()),
        ),
        (
            "error".to_owned(),
            text(runtime.error().unwrap_or_default()),
        ),
    ])
}

fn text(text: &str) -> Value {
    Value::String(text.to_owned())
}

impl IndexRow {
    /// Reads a row. Columns that its writer did not know, or that are damaged, count as empty: a
    /// listing shows what it can, and the state blob has the truth. `None` without a known state.
    #[must_use]
    pub fn read(row_key: &str, properties: &Properties) -> Option<Self> {
        let row = Reader(properties);
        Some(Self {
            workflow_id: row_key.to_owned(),
            workflow_state: WorkflowState::from_word(row.text(WORKFLOW_STATE))?,
            name: row.text("name").to_owned(),
            cancel_requested: properties.get(CANCEL_REQUESTED) == Some(&Value::Bool(true)),
            total_tasks: row.count("total_tasks"),
            completed_tasks: row.count("completed_tasks"),
            failed_tasks: row.count("failed_tasks"),
            running_tasks: row.count("running_tasks"),
            pending_tasks: row.count("pending_tasks"),
            skipped_tasks: row.count("skipped_tasks"),
            default_queue: row.text("default_queue").to_owned(),
            queues_used: row
                .text("queues_used")
                .split(',')
                .filter(|queue| !queue.is_empty())
                .map(str::to_owned)
                .collect(),
            created_at: row.time("created_at"),
            updated_at: row.time("updated_at"),
            error: Some(row.text("error"))
                .filter(|error| !error.is_empty())
                .map(str::to_owned),
            labels: serde_json::from_str(row.text(LABELS)).unwrap_or_default(),
        })
    }
}

struct Reader<'a>(&'a Properties);

impl<'a> Reader<'a> {
    fn text(&self, name: &str) -> &'a str {
        match self.0.get(name) {
            Some(Value::String(text)) => text,
            _ => "",
        }
    }

    fn count(&self, name: &str) -> u32 {
        match self.0.get(name) {
            Some(Value::Int32(count)) => u32::try_from(*count).unwrap_or(0),
            _ => 0,
        }
    }

    fn time(&self, name: &str) -> Timestamp {
        match self.0.get(name) {
            Some(Value::DateTime(time)) => *time,
            _ => Timestamp::default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workflow::testkit::{after, started, task, workflow};

    #[test]
    fn a_row_reads_back_as_it_was_written() {
        let runtime = started(&workflow(vec![task("a"), after("b", &["a"])]));
        let row = IndexRow::read("w1", &complete(&runtime)).unwrap();
        assert_eq!((row.total_tasks, row.pending_tasks), (2, 2));
        assert_eq!(row.queues_used, ["default"]);
        assert_eq!(row.workflow_state, WorkflowState::Pending);
        assert_eq!(row.error, None);
    }

    #[test]
    fn labels_come_back_and_can_be_filtered_by() {
        let mut definition = workflow(vec![task("a")]);
        let labels = [("team", "nlp"), ("cost-center/é", "7")];
        definition.labels = labels
            .map(|(key, value)| (key.to_owned(), value.to_owned()))
            .into();
        let properties = complete(&started(&definition));
        let row = IndexRow::read("w1", &properties).unwrap();
        assert_eq!(row.labels, definition.labels);
        assert_eq!(properties["label_team"], text("nlp"));
        let spelt = label_property("cost-center/é");
        assert!(spelt.starts_with("labelx_"));
        assert_eq!(properties[&spelt], text("7"));
    }

    #[test]
    fn progress_never_touches_a_cancel_request() {
        let runtime = started(&workflow(vec![task("a")]));
        assert!(!progress(&runtime).contains_key(CANCEL_REQUESTED));
    }

    #[test]
    fn a_row_with_missing_columns_is_read_and_one_without_a_state_is_not() {
        let mut properties = Properties::from([(WORKFLOW_STATE.to_owned(), text("running"))]);
        assert_eq!(IndexRow::read("w1", &properties).unwrap().total_tasks, 0);
        properties.insert(WORKFLOW_STATE.to_owned(), text("asleep"));
        assert_eq!(IndexRow::read("w1", &properties), None);
    }
}
