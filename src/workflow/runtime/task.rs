//! One task of a runtime.

use std::fmt;
use std::sync::Arc;

use serde_json::value::RawValue;

use crate::clock::Timestamp;
use crate::workflow::condition::Condition;
use crate::workflow::{DepPolicy, QueueName, Seconds, TaskName, TaskState};

/// A task's place in [`Runtime::tasks`](super::Runtime::tasks).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TaskIndex(pub(super) u32);

impl TaskIndex {
    pub(super) const fn as_usize(self) -> usize {
        self.0 as usize
    }
}

impl fmt::Debug for TaskIndex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "#{}", self.0)
    }
}

/// A task: what it is (fixed at submit) and how far it got.
#[derive(Debug, Clone)]
pub struct Task {
    pub(super) name: TaskName,
    pub(super) parents: Vec<TaskIndex>,
    pub(super) children: Vec<TaskIndex>,
    pub(super) queue: QueueName,
    pub(super) num_retries: u32,
    pub(super) dep_policy: DepPolicy,
    pub(super) timeout_s: Option<Seconds>,
    pub(super) condition: Option<Arc<TaskCondition>>,
    pub(super) kwargs: Arc<RawValue>,
    pub(super) is_batch_merge: bool,
    pub(super) extra: Vec<(String, Box<RawValue>)>,

    pub(super) state: TaskState,
    pub(super) satisfied: u32,
    pub(super) broken: u32,
    pub(super) attempt_no: u32,
    pub(super) retry_no: u32,
    pub(super) ready_seq: u64,
    pub(super) output_ref: Option<Arc<str>>,
    pub(super) error: Option<Box<str>>,
    pub(super) started_at: Option<Timestamp>,
    pub(super) completed_at: Option<Timestamp>,
}

/// A task's condition: the text as submitted, and what it parses to. A text that an older or
/// foreign submitter let through unparsed is kept with its error, and counts as false.
#[derive(Debug)]
pub(super) struct TaskCondition {
    pub(super) text: String,
    pub(super) parsed: Result<Condition, String>,
}

impl TaskCondition {
    pub(super) fn new(text: String) -> Self {
        let parsed = Condition::parse(&text).map_err(|error| error.to_string());
        Self { text, parsed }
    }
}

impl Task {
    /// The name, unique within the workflow.
    #[must_use]
    pub const fn name(&self) -> &TaskName {
        &self.name
    }

    /// The tasks it waits for.
    #[must_use]
    pub fn parents(&self) -> &[TaskIndex] {
        &self.parents
    }

    /// The tasks that wait for it.
    #[must_use]
    pub fn children(&self) -> &[TaskIndex] {
        &self.children
    }

    /// The queue whose workers run it.
    #[must_use]
    pub const fn queue(&self) -> &QueueName {
        &self.queue
    }

    /// How many more attempts follow a failed one.
    #[must_use]
    pub const fn num_retries(&self) -> u32 {
        self.num_retries
    }

    /// How many parents must be satisfied.
    #[must_use]
    pub const fn dep_policy(&self) -> DepPolicy {
        self.dep_policy
    }

    /// How long one attempt may take.
    #[must_use]
    pub const fn timeout_s(&self) -> Option<Seconds> {
        self.timeout_s
    }

    /// The condition's text.
    #[must_use]
    pub fn condition(&self) -> Option<&str> {
        self.condition
            .as_ref()
            .map(|condition| condition.text.as_str())
    }

    /// What the worker gets: a JSON object.
    #[must_use]
    pub fn kwargs(&self) -> &RawValue {
        &self.kwargs
    }

    /// Whether it only joins a batch of a rewritten fan-in; such a task completes by itself.
    #[must_use]
    pub const fn is_batch_merge(&self) -> bool {
        self.is_batch_merge
    }

    /// Fields of the state blob that this version does not know.
    #[must_use]
    pub fn extra(&self) -> &[(String, Box<RawValue>)] {
        &self.extra
    }

    /// Where it is in its life.
    #[must_use]
    pub const fn state(&self) -> TaskState {
        self.state
    }

    /// How many parents are completed or skipped.
    #[must_use]
    pub const fn satisfied(&self) -> u32 {
        self.satisfied
    }

    /// How many parents are failed, upstream-failed or cancelled.
    #[must_use]
    pub const fn broken(&self) -> u32 {
        self.broken
    }

    /// The latest attempt that was dispatched, from 1; 0 if none was.
    #[must_use]
    pub const fn attempt_no(&self) -> u32 {
        self.attempt_no
    }

    /// How often a person had it run again. Attempts are counted afresh each time, so attempt and
    /// this together tell a late report of an earlier life from one of the present.
    #[must_use]
    pub const fn retry_no(&self) -> u32 {
        self.retry_no
    }

    /// The output of a completed task: JSON text, or `blob:` and a path in the outputs container.
    #[must_use]
    pub fn output_ref(&self) -> Option<&str> {
        self.output_ref.as_deref()
    }

    /// Why it failed or was skipped, for people.
    #[must_use]
    pub fn error(&self) -> Option<&str> {
        self.error.as_deref()
    }

    /// When its latest attempt was dispatched.
    #[must_use]
    pub const fn started_at(&self) -> Option<Timestamp> {
        self.started_at
    }

    /// When it became terminal.
    #[must_use]
    pub const fn completed_at(&self) -> Option<Timestamp> {
        self.completed_at
    }

    /// When the running attempt passes its timeout, as an entry of the runtime's deadlines.
    pub(super) fn deadline(&self, index: TaskIndex) -> Option<(Timestamp, TaskIndex)> {
        Some((self.started_at?.plus(self.timeout_s?.as_duration()), index))
    }

    pub(super) const fn is_sink(&self) -> bool {
        self.children.is_empty()
    }

    #[expect(
        clippy::cast_possible_truncation,
        reason = "TASKS_MAX bounds the parents"
    )]
    pub(super) const fn is_policy_satisfied(&self) -> bool {
        self.dep_policy
            .is_satisfied(self.parents.len() as u32, self.satisfied, self.broken)
    }

    #[expect(
        clippy::cast_possible_truncation,
        reason = "TASKS_MAX bounds the parents"
    )]
    pub(super) const fn is_policy_broken(&self) -> bool {
        self.dep_policy
            .is_broken(self.parents.len() as u32, self.satisfied, self.broken)
    }
}
