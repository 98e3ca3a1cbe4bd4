//! The message by which a worker reports how an attempt ended.
//!
//! Decoding is the coordinator's hottest path, so each layer of a message is read in one pass that
//! borrows from the text, and only what is kept is copied.

use std::borrow::Cow;

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::value::RawValue;

use super::envelope::{
    Encoded, bounded_text, check_version, parse_object, plain_text, seal, to_json, traceparent,
};
use super::{OutputRef, Poison, TooLarge};
use crate::clock::Timestamp;
use crate::limits::ERROR_BYTES_MAX;
use crate::workflow::{TaskName, WorkflowId};

/// How one attempt of a task ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CompletionMessage {
    /// The workflow.
    pub workflow_id: WorkflowId,
    /// The task.
    pub task_name: TaskName,
    /// Whether it succeeded.
    pub success: bool,
    /// Its output, if it has one.
    pub output_ref: Option<OutputRef>,
    /// Why it failed; at most `ERROR_BYTES_MAX` bytes.
    pub error: Option<String>,
    /// The attempt, from 1. Old workers do not say; then it is taken for the current one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub attempt_no: Option<u32>,
    /// How often a person had the task run again before the attempt, as its message said.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retry_no: Option<u32>,
    /// The exit code of the command, where it ran and was not killed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// The worker that ran it, for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub worker_id: Option<String>,
    /// When the command started.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub started_at: Option<Timestamp>,
    /// When the command ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub finished_at: Option<Timestamp>,
    /// The trace the attempt belongs to, as W3C Trace Context.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub traceparent: Option<String>,
}

impl CompletionMessage {
    /// Writes the message. Its id follows from its content.
    ///
    /// # Errors
    /// When it does not fit a queue: the output has to go to a blob.
    pub fn encode(&self) -> Result<Encoded, TooLarge> {
        #[derive(Serialize)]
        struct Kwargs<'a> {
            #[serde(rename = "__completion_body")]
            body: &'a str,
        }
        let body = to_json(self);
        seal(&to_json(&Kwargs { body: &body }), 0, None)
    }

    /// Reads a message in any of its forms: an envelope whose kwargs hold the body as text or are
    /// the body, or the bare body; any of them base64-encoded.
    ///
    /// # Errors
    /// When it is none of these, or the body lacks or mistypes a field.
    pub fn decode(message: &str) -> Result<Self, Poison> {
        let text = plain_text(message)?;
        let outer = parse_object::<Layer<'_>>("message", &text)?;
        if outer.workflow_id.is_some() {
            return outer.into_completion();
        }
        let Some(kwargs) = &outer.kwargs else {
            return Err(Poison::new("neither an envelope nor a completion"));
        };
        check_version(outer.version.unwrap_or(0))?;
        let kwargs = plain_text(kwargs)?;
        let middle = parse_object::<Layer<'_>>("kwargs", &kwargs)?;
        let Some(body) = &middle.completion_body else {
            return middle.into_completion();
        };
        let body = plain_text(body)?;
        parse_object::<Layer<'_>>("completion body", &body)?.into_completion()
    }
}

/// One JSON object of a message, whichever of the three layers it is. One type for all of them
/// lets a single pass tell which it has found.
#[derive(Deserialize)]
struct Layer<'a> {
    version: Option<u32>,
    #[serde(borrow)]
    kwargs: Option<Cow<'a, str>>,
    #[serde(borrow, rename = "__completion_body")]
    completion_body: Option<Cow<'a, str>>,
    #[serde(borrow)]
    workflow_id: Option<Cow<'a, str>>,
    #[serde(borrow)]
    task_name: Option<Cow<'a, str>>,
    success: Option<bool>,
    output_ref: Option<OutputRef>,
    error: Option<String>,
    attempt_no: Option<u32>,
    retry_no: Option<u32>,
    #[serde(default, deserialize_with = "lenient")]
    exit_code: Option<i32>,
    #[serde(default, deserialize_with = "lenient")]
    worker_id: Option<String>,
    #[serde(default, deserialize_with = "lenient")]
    started_at: Option<Timestamp>,
    #[serde(default, deserialize_with = "lenient")]
    finished_at: Option<Timestamp>,
    #[serde(default, deserialize_with = "lenient")]
    traceparent: Option<String>,
}

/// Reads what only informs people: a client that gives such a name another meaning loses the
/// value, never the completion.
fn lenient<'de, D, T>(deserializer: D) -> Result<Option<T>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    let value = <&RawValue>::deserialize(deserializer)?;
    Ok(serde_json::from_str(value.get()).ok())
}

impl Layer<'_> {
    fn into_completion(self) -> Result<CompletionMessage, Poison> {
        let missing = |field| move || Poison::new(format!("no {field}"));
        let workflow_id = self.workflow_id.ok_or_else(missing("workflow_id"))?;
        let task_name = self.task_name.ok_or_else(missing("task_name"))?;
        let name_error = |error: crate::workflow::NameError| Poison::new(error.to_string());
        Ok(CompletionMessage {
            workflow_id: WorkflowId::parse(&workflow_id).map_err(name_error)?,
            task_name: TaskName::parse(&task_name).map_err(name_error)?,
            success: self.success.ok_or_else(missing("success"))?,
            output_ref: self.output_ref,
            error: self.error.map(|error| bounded_text(error, ERROR_BYTES_MAX)),
            attempt_no: self.attempt_no,
            retry_no: self.retry_no,
            exit_code: self.exit_code,
            worker_id: self.worker_id,
            started_at: self.started_at,
            finished_at: self.finished_at,
            traceparent: self.traceparent.and_then(traceparent),
        })
    }
}

#[cfg(test)]
mod tests;
