//! The forms of a definition that are compared and shown: equal for texts that mean the same.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use sha2::{Digest, Sha256};

use super::model::{Definition, TaskDefinition};
use crate::workflow::{DepPolicy, QueueName, ResultPolicy, Seconds, TaskName};

/// A definition to be written; the fields of [`Definition`].
#[derive(Serialize)]
struct Form<'d> {
    name: &'d str,
    #[serde(skip_serializing_if = "Option::is_none")]
    default_queue: Option<&'d QueueName>,
    #[serde(skip_serializing_if = "Option::is_none")]
    default_task_timeout_s: Option<Seconds>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_parallelism: Option<u32>,
    result_policy: ResultPolicy,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    labels: &'d BTreeMap<String, String>,
    tasks: Vec<TaskForm<'d>>,
}

#[derive(Serialize)]
struct TaskForm<'d> {
    name: &'d TaskName,
    kwargs: Box<RawValue>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    depends_on: Cow<'d, [TaskName]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    queue: Option<&'d QueueName>,
    dep_policy: DepPolicy,
    #[serde(skip_serializing_if = "Option::is_none")]
    timeout_s: Option<Seconds>,
    num_retries: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    condition: Option<&'d str>,
}

impl Definition {
    /// The definition as JSON text, compact, with the keys of `kwargs` sorted. Reading it again
    /// gives the same definition.
    #[must_use]
    pub fn to_json(&self) -> String {
        let form = Form {
            default_queue: Some(&self.default_queue),
            default_task_timeout_s: self.default_task_timeout_s,
            tasks: self.tasks.iter().map(TaskForm::as_given).collect(),
            ..self.form()
        };
        serde_json::to_string(&form).expect("texts and numbers always have a JSON form")
    }

    /// SHA-256 in lower-case hex over what the workflow means: the same whether a queue or
    /// timeout stands at the task or is a default, however `kwargs` and numbers in it are spelt,
    /// and in whatever order a task's dependencies are listed. The order of the tasks counts, for
    /// it decides who gets a free slot first.
    #[must_use]
    pub fn sha256(&self) -> String {
        let form = Form {
            tasks: self.tasks.iter().map(|task| self.resolved(task)).collect(),
            ..self.form()
        };
        let mut text = Hasher(Sha256::new());
        serde_json::to_writer(&mut text, &form).expect("a hasher takes every byte");
        hex::encode(text.0.finalize())
    }

    fn form(&self) -> Form<'_> {
        Form {
            name: &self.name,
            default_queue: None,
            default_task_timeout_s: None,
            max_parallelism: self.max_parallelism,
            result_policy: self.result_policy,
            labels: &self.labels,
            tasks: Vec::new(),
        }
    }

    fn resolved<'d>(&'d self, task: &'d TaskDefinition) -> TaskForm<'d> {
        let mut form = TaskForm::as_given(task);
        if !form.depends_on.is_sorted() {
            form.depends_on.to_mut().sort_unstable();
        }
        form.queue = form.queue.or(Some(&self.default_queue));
        form.timeout_s = form.timeout_s.or(self.default_task_timeout_s);
        form
    }
}

impl<'d> TaskForm<'d> {
    fn as_given(task: &'d TaskDefinition) -> Self {
        Self {
            name: &task.name,
            kwargs: canonical(&task.kwargs),
            depends_on: Cow::Borrowed(&task.depends_on),
            queue: task.queue.as_ref(),
            dep_policy: task.dep_policy,
            timeout_s: task.timeout_s,
            num_retries: task.num_retries,
            condition: task.condition.as_deref(),
        }
    }
}

/// Sends what is written into the hash, so that no large text is built for it.
struct Hasher(Sha256);

impl std::io::Write for Hasher {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.update(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// JSON without blanks, keys sorted, texts and numbers spelt one way. Whole numbers keep all
/// their digits, which a parsed value would lose beyond 64 bits.
fn canonical(raw: &RawValue) -> Box<RawValue> {
    let mut text = String::with_capacity(raw.get().len());
    if write(raw, &mut text).is_err() {
        return raw.to_owned();
    }
    RawValue::from_string(text).unwrap_or_else(|_| raw.to_owned())
}

#[derive(Deserialize, PartialEq, Eq, PartialOrd, Ord)]
struct Key<'a>(#[serde(borrow)] Cow<'a, str>);

/// Recursion goes as deep as the value, whose depth was checked when it was read.
fn write(raw: &RawValue, out: &mut String) -> serde_json::Result<()> {
    let text = raw.get();
    match text.as_bytes().first() {
        Some(b'{') => {
            let entries: BTreeMap<Key<'_>, &RawValue> = serde_json::from_str(text)?;
            out.push('{');
            for (index, (Key(key), value)) in entries.iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                out.push_str(&serde_json::to_string(key)?);
                out.push(':');
                write(value, out)?;
            }
            out.push('}');
        }
        Some(b'[') => {
            let items: Vec<&RawValue> = serde_json::from_str(text)?;
            out.push('[');
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                write(item, out)?;
            }
            out.push(']');
        }
        Some(b'"') => {
            let value: Cow<'_, str> = serde_json::from_str(text)?;
            out.push_str(&serde_json::to_string(&value)?);
        }
        Some(_) if text.contains(['.', 'e', 'E']) && !text.starts_with(['t', 'f']) => {
            let value: f64 = serde_json::from_str(text)?;
            out.push_str(&serde_json::to_string(&value)?);
        }
        _ => out.push_str(if text == "-0" { "0" } else { text }),
    }
    Ok(())
}
