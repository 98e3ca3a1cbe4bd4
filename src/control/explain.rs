//! Why a task is not running.

use std::borrow::Cow;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::read::find;
use super::{Control, Error, Result, TaskView};
use crate::limits::PEEK_MAX;
use crate::storage::{self, PeekedMessage};
use crate::workflow::runtime::{Runtime, Task};
use crate::workflow::{TaskName, TaskState, WorkflowId};

/// Dependencies that one explanation names; it counts the others.
const NAMED_MAX: usize = 20;

/// A coordinator writes its status every ten seconds; one this old is dead or cannot write.
const STATUS_AGE_MAX: Duration = Duration::from_secs(60);

/// From what age on a message that nobody received suggests that no worker serves its queue.
const UNRECEIVED_AGE_MIN: Duration = Duration::from_secs(30);

/// One reason, or one fact that matters.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Finding {
    /// A short stable word.
    pub code: Cow<'static, str>,
    /// The same for people.
    pub message: String,
    /// The tasks it is about, at most twenty of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schema(value_type = Vec<String>)]
    pub tasks: Vec<TaskName>,
}

/// Why a task is where it is.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct Explanation {
    /// The task.
    pub task: TaskView,
    /// Reasons and facts, what matters most first.
    pub findings: Vec<Finding>,
}

fn finding(code: &'static str, message: impl Into<String>) -> Finding {
    Finding {
        code: Cow::Borrowed(code),
        message: message.into(),
        tasks: Vec::new(),
    }
}

impl Control {
    /// Explains why a task is where it is: its dependencies, a free slot, its queue, its attempts,
    /// and whether anybody leads.
    ///
    /// # Errors
    /// [`Error::TaskNotFound`]; the store's own.
    pub async fn explain(&self, id: &WorkflowId, task: &str) -> Result<Explanation> {
        let runtime = self.store.load(id).await?.runtime;
        let task = runtime.task(find(&runtime, task)?);
        let mut findings = Vec::new();
        match task.state() {
            TaskState::Pending => findings.extend(pending(&runtime, task)),
            TaskState::Ready => findings.extend(ready(&runtime)),
            TaskState::Running => {
                let since = task.started_at().map(|time| self.clock.now().since(time));
                findings.push(running(task, since));
                findings.extend(self.queue_of(task, id).await?);
            }
            state => findings.push(ended(task, state)),
        }
        if runtime.cancel_requested() && !task.state().is_terminal() {
            findings.insert(0, finding("cancelling", "the workflow is being cancelled"));
        }
        if !task.state().is_terminal() {
            findings.extend(self.leader().await?);
        }
        if task.attempt_no() > 1 || task.error().is_some() {
            findings.push(history(task));
        }
        Ok(Explanation {
            task: TaskView::of(&runtime, task),
            findings,
        })
    }

    /// What the queue says of a task that was pushed.
    async fn queue_of(&self, task: &Task, id: &WorkflowId) -> Result<Vec<Finding>> {
        let (queues, queue) = (&self.store.storage().queues, task.queue().as_str());
        let (length, peeked) = match (
            queues.length(queue).await,
            queues.peek(queue, PEEK_MAX).await,
        ) {
            (Ok(length), Ok(peeked)) => (length, peeked),
            (Err(storage::Error::NotFound { .. }), _)
            | (_, Err(storage::Error::NotFound { .. })) => {
                let message = format!("the queue {queue} does not exist");
                return Ok(vec![finding("queue_missing", message)]);
            }
            (Err(error), _) | (_, Err(error)) => {
                return Err(crate::store::Error::from(error).into());
            }
        };
        let message = format!("the queue {queue} holds {length} messages, running ones included");
        let mut findings = vec![finding("queue_length", message)];
        findings.extend(waiting(&peeked, queue, task, id));
        Ok(findings)
    }

    /// Whether somebody leads.
    async fn leader(&self) -> Result<Option<Finding>> {
        match self.coordinator_status().await {
            Ok(status) => {
                let age = self.clock.now().since(status.written_at);
                let message = format!(
                    "no coordinator has written its status for {} s: start one with `jobq serve`",
                    age.as_secs()
                );
                Ok((age > STATUS_AGE_MAX).then(|| finding("nobody_leads", message)))
            }
            Err(Error::NoCoordinator) => Ok(Some(finding(
                "nobody_leads",
                Error::NoCoordinator.to_string(),
            ))),
            Err(error) => Err(error),
        }
    }
}

fn pending(runtime: &Runtime, task: &Task) -> Vec<Finding> {
    let waits_for: Vec<TaskName> = task
        .parents()
        .iter()
        .map(|&parent| runtime.task(parent))
        .filter(|parent| !parent.state().is_terminal())
        .map(|parent| parent.name().clone())
        .collect();
    let (total, left) = (task.parents().len(), waits_for.len());
    let policy = serde_json::to_string(&task.dep_policy()).unwrap_or_default();
    let policy = policy.trim_matches('"');
    let message = format!(
        "{left} of its {total} dependencies have not ended; {} are satisfied and {} broken, and its \
         policy is {policy}",
        task.satisfied(),
        task.broken(),
    );
    let mut findings = vec![Finding {
        tasks: waits_for.into_iter().take(NAMED_MAX).collect(),
        ..finding("waits_for_dependencies", message)
    }];
    if let Some(condition) = task.condition() {
        let message = format!("it then runs only if {condition}");
        findings.push(finding("has_condition", message));
    }
    findings
}

fn ready(runtime: &Runtime) -> Vec<Finding> {
    let running = runtime.counts().of(TaskState::Running);
    match runtime.header().max_parallelism {
        Some(bound) if running >= bound => {
            let message = format!("{running} tasks run, as many as max_parallelism {bound} allows");
            vec![finding("waits_for_slot", message)]
        }
        _ => vec![finding(
            "waits_for_push",
            "the coordinator is about to push it to its queue",
        )],
    }
}

fn running(task: &Task, since: Option<Duration>) -> Finding {
    let since = since.unwrap_or_default().as_secs();
    let timeout = task.timeout_s().map_or_else(String::new, |timeout| {
        format!(", and fails after {} s", timeout.0)
    });
    let message = format!(
        "attempt {} was pushed to queue {} {since} s ago{timeout}",
        task.attempt_no(),
        task.queue(),
    );
    finding("pushed", message)
}

/// What the visible messages say: those that no worker holds now.
fn waiting(peeked: &[PeekedMessage], queue: &str, task: &Task, id: &WorkflowId) -> Option<Finding> {
    let oldest = peeked.iter().map(|message| message.age).max()?;
    let mine = peeked.iter().any(|message| {
        crate::wire::TaskMessage::decode(&message.body).is_ok_and(|found| {
            let of = found.workflow.as_ref();
            of.is_some_and(|of| of.workflow_id == *id && of.task == *task.name())
        })
    });
    let never = peeked.iter().all(|message| message.dequeue_count == 0);
    let age = oldest.as_secs();
    if mine && never && oldest >= UNRECEIVED_AGE_MIN {
        let message = format!(
            "its message waits in {queue}, and nothing there was received for {age} s: is a worker \
             running for this queue?"
        );
        return Some(finding("queue_not_served", message));
    }
    mine.then(|| {
        let message = format!("its message waits in {queue}; the oldest one there is {age} s old");
        finding("waits_for_worker", message)
    })
}

fn ended(task: &Task, state: TaskState) -> Finding {
    let at = task.completed_at().map(|time| format!(" at {time}"));
    finding("ended", format!("it is {state}{}", at.unwrap_or_default()))
}

fn history(task: &Task) -> Finding {
    let of = task.num_retries() + 1;
    let error = task
        .error()
        .map(|error| format!("; the latest error is: {error}"));
    let message = format!(
        "{} of {of} attempts were made{}",
        task.attempt_no(),
        error.unwrap_or_default()
    );
    finding("attempts", message)
}
