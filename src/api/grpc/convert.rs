//! Between the use cases' values and the protos'.

use std::time::Duration;

use tonic::Status;

use super::status::invalid;
use super::v1;
use crate::clock::Timestamp;
use crate::control::{self, TaskView, WorkflowSummary, WorkflowView};
use crate::workflow::{TaskState, WorkflowId, WorkflowState};

pub(super) fn timestamp(time: Timestamp) -> prost_types::Timestamp {
    let micros = time.as_micros();
    prost_types::Timestamp {
        seconds: micros.div_euclid(1_000_000),
        // Below a second, so it fits.
        nanos: i32::try_from(micros.rem_euclid(1_000_000) * 1_000).unwrap_or(0),
    }
}

pub(super) fn time(field: &str, time: prost_types::Timestamp) -> Result<Timestamp, Status> {
    let in_range = |nanos: &i32| (0..1_000_000_000).contains(nanos);
    let micros = Some(time.nanos).filter(in_range).and_then(|nanos| {
        time.seconds
            .checked_mul(1_000_000)?
            .checked_add(i64::from(nanos) / 1_000)
    });
    micros
        .map(Timestamp::from_micros)
        .ok_or_else(|| invalid(field, "it is no moment"))
}

pub(super) fn duration(field: &str, duration: prost_types::Duration) -> Result<Duration, Status> {
    Duration::try_from(duration).map_err(|_| invalid(field, "it is no positive duration"))
}

pub(super) fn workflow_id(text: &str) -> Result<WorkflowId, Status> {
    WorkflowId::parse(text).map_err(|error| invalid("workflow_id", error.to_string()))
}

/// A text, or nothing where it is empty.
pub(super) fn given(text: String) -> Option<String> {
    Some(text).filter(|text| !text.is_empty())
}

pub(super) fn count(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

impl From<WorkflowState> for v1::WorkflowState {
    fn from(state: WorkflowState) -> Self {
        match state {
            WorkflowState::Pending => Self::Pending,
            WorkflowState::Running => Self::Running,
            WorkflowState::Cancelling => Self::Cancelling,
            WorkflowState::Completed => Self::Completed,
            WorkflowState::Failed => Self::Failed,
            WorkflowState::Cancelled => Self::Cancelled,
        }
    }
}

impl From<TaskState> for v1::TaskState {
    fn from(state: TaskState) -> Self {
        match state {
            TaskState::Pending => Self::Pending,
            TaskState::Ready => Self::Ready,
            TaskState::Running => Self::Running,
            TaskState::Completed => Self::Completed,
            TaskState::Failed => Self::Failed,
            TaskState::UpstreamFailed => Self::UpstreamFailed,
            TaskState::Skipped => Self::Skipped,
            TaskState::Cancelled => Self::Cancelled,
        }
    }
}

pub(super) fn workflow_states(states: &[i32]) -> Result<Vec<WorkflowState>, Status> {
    let known = |state: &i32| {
        let all = WorkflowState::ALL.iter().copied();
        let mut found = all.filter(|&one| v1::WorkflowState::from(one) as i32 == *state);
        found
            .next()
            .ok_or_else(|| invalid("states", format!("{state} is no state")))
    };
    states.iter().map(known).collect()
}

pub(super) fn task_states(states: &[i32]) -> Result<Vec<TaskState>, Status> {
    let known = |state: &i32| {
        let all = TaskState::ALL.iter().copied();
        let mut found = all.filter(|&one| v1::TaskState::from(one) as i32 == *state);
        found
            .next()
            .ok_or_else(|| invalid("states", format!("{state} is no state")))
    };
    states.iter().map(known).collect()
}

impl From<WorkflowView> for v1::Workflow {
    fn from(view: WorkflowView) -> Self {
        let tasks = &view.tasks;
        Self {
            workflow_id: view.workflow_id.to_string(),
            name: view.name,
            workflow_state: v1::WorkflowState::from(view.workflow_state).into(),
            cancel_requested: view.cancel_requested,
            error: view.error.unwrap_or_default(),
            created_at: Some(timestamp(view.created_at)),
            updated_at: Some(timestamp(view.updated_at)),
            labels: view.labels.into_iter().collect(),
            tasks: Some(v1::TaskCounts {
                total: tasks.total,
                pending: tasks.pending,
                ready: tasks.ready,
                running: tasks.running,
                completed: tasks.completed,
                failed: tasks.failed,
                upstream_failed: tasks.upstream_failed,
                skipped: tasks.skipped,
                cancelled: tasks.cancelled,
            }),
        }
    }
}

impl From<WorkflowSummary> for v1::Workflow {
    fn from(row: WorkflowSummary) -> Self {
        Self {
            workflow_id: row.workflow_id,
            name: row.name,
            workflow_state: v1::WorkflowState::from(row.workflow_state).into(),
            cancel_requested: row.cancel_requested,
            error: row.error.unwrap_or_default(),
            created_at: Some(timestamp(row.created_at)),
            updated_at: Some(timestamp(row.updated_at)),
            labels: row.labels.into_iter().collect(),
            tasks: Some(v1::TaskCounts {
                total: row.total_tasks,
                pending: row.pending_tasks,
                running: row.running_tasks,
                completed: row.completed_tasks,
                failed: row.failed_tasks,
                skipped: row.skipped_tasks,
                ..v1::TaskCounts::default()
            }),
        }
    }
}

impl From<TaskView> for v1::Task {
    fn from(view: TaskView) -> Self {
        let policy = serde_json::to_string(&view.dep_policy).unwrap_or_default();
        let timeout = view.timeout_s.map(crate::workflow::Seconds::as_duration);
        Self {
            name: view.name.to_string(),
            state: v1::TaskState::from(view.state).into(),
            attempt_no: view.attempt_no,
            num_retries: view.num_retries,
            queue: view.queue.to_string(),
            depends_on: view.depends_on.iter().map(ToString::to_string).collect(),
            error: view.error.unwrap_or_default(),
            started_at: view.started_at.map(timestamp),
            completed_at: view.completed_at.map(timestamp),
            retry_no: view.retry_no,
            dep_policy: policy.trim_matches('"').to_owned(),
            condition: view.condition.unwrap_or_default(),
            timeout: timeout.and_then(|timeout| prost_types::Duration::try_from(timeout).ok()),
            output_ref: view.output_ref.unwrap_or_default(),
        }
    }
}

impl From<control::Finding> for v1::Finding {
    fn from(finding: control::Finding) -> Self {
        Self {
            code: finding.code.into_owned(),
            message: finding.message,
            tasks: finding.tasks.iter().map(ToString::to_string).collect(),
        }
    }
}

impl From<control::CheckStatus> for v1::CheckStatus {
    fn from(status: control::CheckStatus) -> Self {
        match status {
            control::CheckStatus::Ok => Self::Ok,
            control::CheckStatus::Warn => Self::Warn,
            control::CheckStatus::Fail => Self::Fail,
        }
    }
}

impl From<control::Check> for v1::Check {
    fn from(check: control::Check) -> Self {
        Self {
            code: check.code.into_owned(),
            status: v1::CheckStatus::from(check.status).into(),
            evidence: check.evidence,
            fix: check.fix.unwrap_or_default().into_owned(),
            workflow_ids: check.workflow_ids,
        }
    }
}

impl From<control::WatchEvent> for v1::WatchWorkflowResponse {
    fn from(event: control::WatchEvent) -> Self {
        use control::WatchEvent;
        use v1::watch_workflow_response::Event;
        let event = match event {
            WatchEvent::Snapshot {
                resume_token,
                workflow,
                tasks,
            } => Event::Snapshot(v1::WatchSnapshot {
                resume_token,
                workflow: Some(workflow.into()),
                tasks: tasks.into_iter().map(Into::into).collect(),
            }),
            WatchEvent::Changes {
                resume_token,
                workflow,
                changes,
            } => Event::Changes(v1::WatchChanges {
                resume_token,
                workflow: Some(workflow.into()),
                changes: changes
                    .into_iter()
                    .map(|change| v1::TaskChange {
                        task: change.task.to_string(),
                        state: v1::TaskState::from(change.state).into(),
                        attempt_no: change.attempt_no,
                        error: change.error.unwrap_or_default(),
                    })
                    .collect(),
            }),
            WatchEvent::Gap { reason } => Event::Gap(v1::WatchGap { reason }),
            WatchEvent::End { reason } => Event::End(v1::WatchEnd { reason }),
        };
        Self { event: Some(event) }
    }
}
