//! The message that asks a worker to run one attempt of a task.

use std::fmt;

use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use super::envelope::{Encoded, Envelope, parse_object, plain_text, seal, to_json, traceparent};
use super::{Names, Poison, TooLarge, UpstreamRefs};
use crate::workflow::{TaskName, WorkflowId};

const WORKFLOW_ID: &str = "__workflow_id";
const TASK: &str = "__workflow_task";
const ATTEMPT_NO: &str = "__attempt_no";
const RETRY_NO: &str = "__retry_no";
const UPSTREAM_COMPACT: &str = "__upstream_outputs_compact";
const UPSTREAM_PLAIN: &str = "__upstream_output_refs";
const TRACEPARENT: &str = "__traceparent";

/// A task as it stands in its queue.
#[derive(Debug, Clone)]
pub struct TaskMessage {
    /// Identifies the message. For workflow tasks it is [`Names::task_message_id`].
    pub id: String,
    /// The task's own kwargs: a JSON object, in the very text it was submitted in.
    pub kwargs: Box<RawValue>,
    /// How often a failed plain task is repeated. Workflow tasks say 0: the coordinator decides.
    pub num_retries: u32,
    /// Which attempt of which workflow's task this is; `None` for a plain task.
    pub workflow: Option<WorkflowTask>,
}

/// What a task message says beyond the kwargs when the task belongs to a workflow.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkflowTask {
    /// The workflow.
    pub workflow_id: WorkflowId,
    /// The task.
    pub task: TaskName,
    /// The attempt, from 1.
    pub attempt_no: u32,
    /// How often a person had the task run again before; left out of the message while it is 0.
    pub retry_no: u32,
    /// The outputs of the task's parents. `None` when the message does not tell, because they did
    /// not fit or the sender left the section out for a task without parents; a worker then has to
    /// read the workflow's state. A sender that says `Some` of nothing spares it that.
    pub upstream: Option<UpstreamRefs>,
    /// The trace this attempt belongs to, as W3C Trace Context.
    pub traceparent: Option<String>,
}

impl WorkflowTask {
    /// The id of the message that asks for the attempt.
    #[must_use]
    pub fn message_id(&self) -> String {
        Names::task_message_id(
            &self.workflow_id,
            &self.task,
            self.attempt_no,
            self.retry_no,
        )
    }
}

impl TaskMessage {
    /// The message for an attempt of a workflow's task. `kwargs` must be a JSON object.
    #[must_use]
    pub fn of_workflow(kwargs: Box<RawValue>, task: WorkflowTask) -> Self {
        Self {
            id: task.message_id(),
            kwargs,
            num_retries: 0,
            workflow: Some(task),
        }
    }

    /// Writes the message. The upstream section is left out if the message would not fit with it.
    ///
    /// # Errors
    /// When the message does not fit even so.
    pub fn encode(&self) -> Result<Encoded, TooLarge> {
        let Some(task) = &self.workflow else {
            return seal(self.kwargs.get(), self.num_retries, Some(&self.id));
        };
        let upstream = task
            .upstream
            .as_ref()
            .map(|upstream| upstream.to_compact_json(&task.workflow_id));
        let full = self.seal_workflow(task, upstream.as_deref());
        match full {
            Err(TooLarge { .. }) if upstream.is_some() => self.seal_workflow(task, None),
            result => result,
        }
    }

    fn seal_workflow(
        &self,
        task: &WorkflowTask,
        upstream: Option<&str>,
    ) -> Result<Encoded, TooLarge> {
        let mut kwargs = ObjectText::continuing(self.kwargs.get());
        kwargs.push(WORKFLOW_ID, &to_json(&task.workflow_id));
        kwargs.push(TASK, &to_json(&task.task));
        kwargs.push(ATTEMPT_NO, &task.attempt_no.to_string());
        if task.retry_no > 0 {
            kwargs.push(RETRY_NO, &task.retry_no.to_string());
        }
        if let Some(upstream) = upstream {
            kwargs.push(UPSTREAM_COMPACT, upstream);
        }
        if let Some(traceparent) = &task.traceparent {
            kwargs.push(TRACEPARENT, &to_json(traceparent));
        }
        seal(&kwargs.finish(), self.num_retries, Some(&self.id))
    }

    /// Reads a message, base64-encoded or not.
    ///
    /// # Errors
    /// When it is not an envelope, its kwargs are not an object, or it belongs to a workflow
    /// without saying to which task and attempt.
    pub fn decode(message: &str) -> Result<Self, Poison> {
        let text = plain_text(message)?;
        let envelope = Envelope::decode(&text)?;
        let kwargs: Kwargs<'_> = parse_object("kwargs", &envelope.kwargs)?;
        let workflow = kwargs.workflow_task()?;
        let own = if workflow.is_some() {
            kwargs.own.finish()
        } else {
            // A plain task's kwargs are all its own, whatever they are called.
            envelope.kwargs.trim().to_owned()
        };
        let kwargs =
            RawValue::from_string(own).map_err(|error| Poison::new(format!("kwargs: {error}")))?;
        Ok(Self {
            id: envelope.id.into_owned(),
            kwargs,
            num_retries: envelope.num_retries,
            workflow,
        })
    }
}

/// The text of a JSON object under construction. Values are spliced in as they are: parsing and
/// writing them again could change a number's digits.
struct ObjectText(String);

impl ObjectText {
    fn new() -> Self {
        Self("{".to_owned())
    }

    /// Starts with the members of `object`, the text of a JSON object.
    fn continuing(object: &str) -> Self {
        let open = object.trim_end().strip_suffix('}').unwrap_or("{");
        Self(open.trim_end().to_owned())
    }

    fn push(&mut self, key: &str, value: &str) {
        // An object that has members yet does not end in its own opening brace.
        if self.0.trim_start().len() > 1 {
            self.0.push(',');
        }
        self.0.push_str(&to_json(&key));
        self.0.push(':');
        self.0.push_str(value);
    }

    fn finish(mut self) -> String {
        self.0.push('}');
        self.0
    }
}

/// Kwargs as received: the reserved keys picked out, the task's own left as text. A key given
/// twice counts the last time, as everywhere in JSON's practice.
struct Kwargs<'a> {
    workflow_id: Option<&'a RawValue>,
    task: Option<&'a RawValue>,
    attempt_no: Option<&'a RawValue>,
    retry_no: Option<&'a RawValue>,
    upstream_compact: Option<&'a RawValue>,
    upstream_plain: Option<&'a RawValue>,
    traceparent: Option<&'a RawValue>,
    own: ObjectText,
}

impl Kwargs<'_> {
    fn workflow_task(&self) -> Result<Option<WorkflowTask>, Poison> {
        let Some(workflow_id) = self.workflow_id else {
            return Ok(None);
        };
        let workflow_id: WorkflowId = field(WORKFLOW_ID, Some(workflow_id))?;
        let upstream = if let Some(compact) = self.upstream_compact {
            Some(UpstreamRefs::from_compact_json(
                compact.get(),
                &workflow_id,
            )?)
        } else if let Some(plain) = self.upstream_plain {
            Some(UpstreamRefs::from_plain_json(plain.get())?)
        } else {
            None
        };
        Ok(Some(WorkflowTask {
            task: field(TASK, self.task)?,
            attempt_no: field(ATTEMPT_NO, self.attempt_no)?,
            retry_no: match self.retry_no {
                None => 0,
                given => field(RETRY_NO, given)?,
            },
            upstream,
            traceparent: self
                .traceparent
                .and_then(|value| serde_json::from_str(value.get()).ok())
                .and_then(traceparent),
            workflow_id,
        }))
    }
}

fn field<T: serde::de::DeserializeOwned>(
    name: &str,
    value: Option<&RawValue>,
) -> Result<T, Poison> {
    let value = value.ok_or_else(|| Poison::new(format!("no {name}")))?;
    serde_json::from_str(value.get()).map_err(|error| Poison::new(format!("{name}: {error}")))
}

impl<'de> Deserialize<'de> for Kwargs<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(KwargsVisitor)
    }
}

struct KwargsVisitor;

impl<'de> Visitor<'de> for KwargsVisitor {
    type Value = Kwargs<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut kwargs = Kwargs {
            workflow_id: None,
            task: None,
            attempt_no: None,
            retry_no: None,
            upstream_compact: None,
            upstream_plain: None,
            traceparent: None,
            own: ObjectText::new(),
        };
        while let Some((key, value)) = map.next_entry::<String, &RawValue>()? {
            match key.as_str() {
                WORKFLOW_ID => kwargs.workflow_id = Some(value),
                TASK => kwargs.task = Some(value),
                ATTEMPT_NO => kwargs.attempt_no = Some(value),
                RETRY_NO => kwargs.retry_no = Some(value),
                UPSTREAM_COMPACT => kwargs.upstream_compact = Some(value),
                UPSTREAM_PLAIN => kwargs.upstream_plain = Some(value),
                TRACEPARENT => kwargs.traceparent = Some(value),
                _ => kwargs.own.push(&key, value.get()),
            }
        }
        Ok(kwargs)
    }
}

#[cfg(test)]
mod tests;
