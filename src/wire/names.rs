//! Every container, blob, queue and table name, and every key: the only place that spells one.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use crate::clock::Timestamp;
use crate::workflow::{TaskName, WorkflowId};

/// The container of file outputs in an account where no other is configured.
pub const FILES_CONTAINER_DEFAULT: &str = "jobq-workflow-data";

/// The prefix of every name of one control plane: 3 to 40 letters and digits, a letter first,
/// because it becomes part of a table name.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Prefix(Arc<str>);

/// A text that cannot be a prefix.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("prefix {0:?} must have 3 to 40 letters and digits and start with a letter")]
pub struct NotAPrefix(String);

impl Prefix {
    /// Checks a text against the rules of a prefix.
    ///
    /// # Errors
    /// When it breaks one of them.
    pub fn parse(text: &str) -> Result<Self, NotAPrefix> {
        let fits = (3..=40).contains(&text.len())
            && text.bytes().all(|byte| byte.is_ascii_alphanumeric())
            && text.starts_with(|first: char| first.is_ascii_alphabetic());
        if fits {
            Ok(Self(text.into()))
        } else {
            Err(NotAPrefix(text.chars().take(80).collect()))
        }
    }

    /// The text, in the case it was given.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Prefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for Prefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}

impl FromStr for Prefix {
    type Err = NotAPrefix;

    fn from_str(text: &str) -> Result<Self, NotAPrefix> {
        Self::parse(text)
    }
}

/// The names of one control plane. Names that depend on the prefix are methods; those that do
/// not, because their container or queue already does, are associated functions. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Names {
    prefix: Prefix,
    state_container: Arc<str>,
    outputs_container: Arc<str>,
    index_table: Arc<str>,
    recent_table: Arc<str>,
    completion_queue: Arc<str>,
}

impl Names {
    /// The lock blob, in the state container. Workflow ids never start with `_`, so it cannot
    /// clash with a state blob.
    pub const LOCK_BLOB: &'static str = "_coordinator.lock";

    /// The coordinator's status for people and `doctor`, in the state container.
    pub const COORDINATOR_STATUS_BLOB: &'static str = "_coordinator.json";

    /// Spells the names under `prefix`.
    #[must_use]
    pub fn new(prefix: Prefix) -> Self {
        let lower = prefix.as_str().to_ascii_lowercase();
        Self {
            state_container: format!("{lower}-workflows").into(),
            outputs_container: format!("{lower}-outputs").into(),
            index_table: format!("{prefix}WorkflowsIndex").into(),
            recent_table: format!("{prefix}WorkflowsRecent").into(),
            completion_queue: format!("{lower}-workflow-completions").into(),
            prefix,
        }
    }

    /// The prefix all names start with.
    #[must_use]
    pub fn prefix(&self) -> &Prefix {
        &self.prefix
    }

    /// The container of state blobs and of the lock.
    #[must_use]
    pub fn state_container(&self) -> &str {
        &self.state_container
    }

    /// The container of outputs too large for the state, and of attempt logs.
    #[must_use]
    pub fn outputs_container(&self) -> &str {
        &self.outputs_container
    }

    /// The table of index rows.
    #[must_use]
    pub fn index_table(&self) -> &str {
        &self.index_table
    }

    /// The table of the same rows, the newest workflow first. Ours alone; upstream does not read it.
    #[must_use]
    pub fn recent_table(&self) -> &str {
        &self.recent_table
    }

    /// The only partition of [`recent_table`](Self::recent_table).
    pub const RECENT_PARTITION: &'static str = "recent";

    /// The row of a workflow in [`recent_table`](Self::recent_table): keys ascend as times of submit
    /// descend.
    #[must_use]
    pub fn recent_row_key(created_at: Timestamp, workflow_id: &str) -> String {
        format!("{}-{workflow_id}", Self::recent_row_bound(created_at))
    }

    /// What the keys of all workflows submitted at a moment begin with.
    #[must_use]
    pub fn recent_row_bound(created_at: Timestamp) -> String {
        let micros = u64::try_from(created_at.as_micros()).unwrap_or(0);
        format!("{:016x}", u64::MAX - micros)
    }

    /// The queue that workers send completions to.
    #[must_use]
    pub fn completion_queue(&self) -> &str {
        &self.completion_queue
    }

    /// The state of a workflow, in the state container.
    #[must_use]
    pub fn state_blob(workflow: &WorkflowId) -> String {
        format!("{workflow}.json")
    }

    /// The output of a task, in the outputs container.
    #[must_use]
    pub fn output_blob(workflow: &WorkflowId, task: &TaskName) -> String {
        format!("{workflow}/{task}.json")
    }

    /// What one attempt printed, in the outputs container.
    #[must_use]
    pub fn attempt_log_blob(workflow: &WorkflowId, task: &TaskName, attempt_no: u32) -> String {
        format!("{workflow}/{task}/{attempt_no}.log")
    }

    /// A file output of a task, in the container of file outputs.
    #[must_use]
    pub fn file_output_blob(workflow: &WorkflowId, task: &TaskName, filename: &str) -> String {
        format!("workflow-files/{workflow}/{task}/{filename}")
    }

    /// The id of the message that asks for one attempt of a task. A task that a person had run again
    /// gets ids of its own, since a queue may drop a second message of an id.
    #[must_use]
    pub fn task_message_id(
        workflow: &WorkflowId,
        task: &TaskName,
        attempt_no: u32,
        retry_no: u32,
    ) -> String {
        match retry_no {
            0 => format!("{workflow}/{task}/{attempt_no}"),
            _ => format!("{workflow}/{task}/{attempt_no}/r{retry_no}"),
        }
    }

    /// Where messages of `queue` go that no worker could use.
    #[must_use]
    pub fn dead_letter_queue(queue: &str) -> String {
        format!("{queue}-failed")
    }

    /// The partition of a workflow's index row: one of sixteen, from the id's code points. The row
    /// key is the id itself.
    #[must_use]
    pub fn partition_key(workflow_id: &str) -> String {
        let sum: u32 = workflow_id.chars().map(|c| u32::from(c) % 16).sum();
        format!("wf-{:02x}", sum % 16)
    }

    /// All partitions there are, for a listing that visits each.
    pub fn partition_keys() -> impl Iterator<Item = String> {
        (0..16).map(|partition| format!("wf-{partition:02x}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefixes_fit_into_table_names() {
        for good in ["abc", "MyProject", "a1b2", &"x".repeat(40)] {
            assert!(Prefix::parse(good).is_ok(), "{good}");
        }
        for bad in [
            "",
            "ab",
            "1abc",
            "my-project",
            "a_b_c",
            "été",
            &"x".repeat(41),
        ] {
            assert!(Prefix::parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn outputs_and_logs_of_different_tasks_never_share_a_blob() {
        let workflow = WorkflowId::parse("w").unwrap();
        let task = TaskName::parse("t").unwrap();
        let log_like = TaskName::parse("t/1.log").unwrap();
        assert_ne!(
            Names::attempt_log_blob(&workflow, &task, 1),
            Names::output_blob(&workflow, &log_like)
        );
    }

    #[test]
    fn every_partition_key_is_among_the_partitions() {
        let all: Vec<String> = Names::partition_keys().collect();
        assert_eq!(all.len(), 16);
        for id in ["a", "Z", "0123456789abcdef", "wf.x-y_z"] {
            assert!(all.contains(&Names::partition_key(id)), "{id}");
        }
    }
}
