//! The state blob: one workflow's runtime as JSON, plain or gzip.
//!
//! Written plain below [`STATE_GZIP_BYTES_MIN`] and with gzip from there on; read either way.
//! Keys that this version does not know survive a load and a flush, at the top and in each task.
//! An unknown `v` is refused and the blob left alone.

use std::borrow::Cow;
use std::fmt;
use std::io::{Read, Write};

use bytes::Bytes;
use flate2::Compression;
use flate2::read::MultiGzDecoder;
use flate2::write::GzEncoder;
use serde::de::{DeserializeOwned, Deserializer, MapAccess, Visitor};
use serde::ser::{SerializeMap, SerializeSeq, Serializer};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::limits::{STATE_BYTES_MAX, STATE_GZIP_BYTES_MIN};
use crate::workflow::runtime::{Header, Progress, Runtime, Task, TaskSeed};
use crate::workflow::{DepPolicy, ResultPolicy, TaskState};

/// The version this program reads and writes.
pub const VERSION: u64 = 1;

const GZIP_MAGIC: &[u8] = &[0x1f, 0x8b];

/// Why a state blob cannot be used. It is never overwritten because of that.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The bytes are not a state blob.
    #[error("not a state blob: {0}")]
    Corrupt(String),
    /// A newer program wrote it.
    #[error("the state blob has version {0}; this program reads version 1: upgrade it")]
    UnknownVersion(String),
}

fn corrupt(error: impl fmt::Display) -> Error {
    Error::Corrupt(error.to_string())
}

/// Writes a runtime.
#[must_use]
pub fn encode(runtime: &Runtime) -> Bytes {
    let json = serde_json::to_vec(&StateBlob(runtime))
        .expect("a runtime holds only text keys and finite numbers");
    if json.len() < STATE_GZIP_BYTES_MIN {
        return json.into();
    }
    let mut encoder = GzEncoder::new(Vec::with_capacity(json.len() / 8), Compression::new(1));
    encoder
        .write_all(&json)
        .expect("writing into memory cannot fail");
    encoder
        .finish()
        .expect("writing into memory cannot fail")
        .into()
}

/// Reads a runtime, plain or gzip. Counters are not trusted but recounted.
///
/// # Errors
/// [`Error`]; nothing is guessed.
pub fn decode(bytes: &[u8]) -> Result<Runtime, Error> {
    let json = unpacked(bytes)?;
    let mut fields = Fields::parse(&json)?;
    check_version(fields.take_raw("v"))?;
    let progress = Progress {
        cancel_requested: fields.optional("cancel_requested")?.unwrap_or(false),
        error: fields.optional("error")?,
        updated_at: fields.required("updated_at")?,
    };
    // Derived from the tasks, so not read.
    fields.take_raw("workflow_state");
    let tasks = fields
        .take_raw("tasks")
        .ok_or_else(|| corrupt("\"tasks\" is missing"))?;
    let header = read_header(fields)?;
    let seeds = Fields::parse(tasks.get().as_bytes())?
        .0
        .into_iter()
        .map(|(name, task)| read_task(&name, task))
        .collect::<Result<Vec<_>, Error>>()?;
    Runtime::restore(header, seeds, progress).map_err(corrupt)
}

fn unpacked(bytes: &[u8]) -> Result<Cow<'_, [u8]>, Error> {
    if !bytes.starts_with(GZIP_MAGIC) {
        return Ok(Cow::Borrowed(bytes));
    }
    let limit = u64::try_from(STATE_BYTES_MAX).unwrap_or(u64::MAX);
    let mut json = Vec::new();
    MultiGzDecoder::new(bytes)
        .take(limit + 1)
        .read_to_end(&mut json)
        .map_err(corrupt)?;
    if json.len() > STATE_BYTES_MAX {
        return Err(corrupt(format_args!(
            "unpacked it passes {STATE_BYTES_MAX} bytes"
        )));
    }
    Ok(Cow::Owned(json))
}

fn check_version(version: Option<&RawValue>) -> Result<(), Error> {
    match version.map(RawValue::get) {
        Some("1") => Ok(()),
        Some(other) => Err(Error::UnknownVersion(other.chars().take(32).collect())),
        None => Err(corrupt("\"v\" is missing")),
    }
}

fn read_header(mut fields: Fields<'_>) -> Result<Header, Error> {
    Ok(Header {
        workflow_id: fields.required("workflow_id")?,
        name: fields.required("name")?,
        default_queue: fields.required("default_queue")?,
        result_policy: fields
            .optional("result_policy")?
            .unwrap_or(ResultPolicy::AllSinksSucceed),
        max_parallelism: fields.optional("max_parallelism")?,
        created_at: fields.required("created_at")?,
        labels: fields.optional("labels")?.unwrap_or_default(),
        definition_sha256: fields.optional("definition_sha256")?,
        traceparent: fields.optional("traceparent")?,
        extra: fields.rest(),
    })
}

fn read_task(key: &str, raw: &RawValue) -> Result<TaskSeed, Error> {
    let in_task = |error: Error| match error {
        Error::Corrupt(message) => Error::Corrupt(format!("task {key:?}: {message}")),
        other => other,
    };
    let mut fields = Fields::parse(raw.get().as_bytes()).map_err(in_task)?;
    // Derived from the parents, so not read.
    for derived in ["children", "completed_parents", "failed_parents"] {
        fields.take_raw(derived);
    }
    read_task_fields(fields).map_err(in_task)
}

fn read_task_fields(mut fields: Fields<'_>) -> Result<TaskSeed, Error> {
    Ok(TaskSeed {
        name: fields.required("name")?,
        parents: fields.optional("parents")?.unwrap_or_default(),
        queue: fields.required("queue")?,
        num_retries: fields.optional("num_retries")?.unwrap_or(0),
        dep_policy: fields.optional("dep_policy")?.unwrap_or(DepPolicy::All),
        timeout_s: fields.optional("timeout_s")?,
        condition: fields.optional("condition")?,
        kwargs: fields.optional("kwargs")?.unwrap_or_else(empty_object),
        state: fields.required("state")?,
        attempt_no: fields.optional("attempt_no")?.unwrap_or(0),
        retry_no: fields.optional("retry_no")?.unwrap_or(0),
        output_ref: fields.optional("output_ref")?,
        error: fields.optional("error")?,
        started_at: fields.optional("started_at")?,
        completed_at: fields.optional("completed_at")?,
        extra: fields.rest(),
    })
}

fn empty_object() -> Box<RawValue> {
    RawValue::from_string("{}".to_owned()).expect("{} is JSON")
}

/// The fields of a JSON object, each still as text, in their order.
struct Fields<'a>(Vec<(Cow<'a, str>, &'a RawValue)>);

impl<'a> Fields<'a> {
    fn parse(json: &'a [u8]) -> Result<Self, Error> {
        serde_json::from_slice(json).map_err(corrupt)
    }

    fn take_raw(&mut self, name: &str) -> Option<&'a RawValue> {
        let position = self.0.iter().position(|(key, _)| key == name)?;
        Some(self.0.swap_remove(position).1)
    }

    /// A field that may be missing or null.
    fn optional<T: DeserializeOwned>(&mut self, name: &str) -> Result<Option<T>, Error> {
        match self.take_raw(name) {
            None => Ok(None),
            Some(raw) => serde_json::from_str(raw.get())
                .map_err(|error| corrupt(format_args!("{name:?}: {error}"))),
        }
    }

    fn required<T: DeserializeOwned>(&mut self, name: &str) -> Result<T, Error> {
        self.optional(name)?
            .ok_or_else(|| corrupt(format_args!("{name:?} is missing")))
    }

    fn rest(self) -> Vec<(String, Box<RawValue>)> {
        self.0
            .into_iter()
            .map(|(key, raw)| (key.into_owned(), raw.to_owned()))
            .collect()
    }
}

impl<'de> Deserialize<'de> for Fields<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct FieldsVisitor;
        impl<'de> Visitor<'de> for FieldsVisitor {
            type Value = Fields<'de>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Fields<'de>, A::Error> {
                #[derive(Deserialize)]
                struct Key<'a>(#[serde(borrow)] Cow<'a, str>);
                let mut fields = Vec::with_capacity(20);
                while let Some((Key(key), value)) = map.next_entry::<Key<'de>, &RawValue>()? {
                    fields.push((key, value));
                }
                Ok(Fields(fields))
            }
        }
        deserializer.deserialize_map(FieldsVisitor)
    }
}

struct StateBlob<'a>(&'a Runtime);

impl Serialize for StateBlob<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self(runtime) = self;
        let header = runtime.header();
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("v", &VERSION)?;
        map.serialize_entry("workflow_id", &header.workflow_id)?;
        map.serialize_entry("name", &header.name)?;
        map.serialize_entry("default_queue", &header.default_queue)?;
        map.serialize_entry("result_policy", &header.result_policy)?;
        map.serialize_entry("max_parallelism", &header.max_parallelism)?;
        map.serialize_entry("workflow_state", &runtime.state())?;
        map.serialize_entry("cancel_requested", &runtime.cancel_requested())?;
        map.serialize_entry("created_at", &header.created_at)?;
        map.serialize_entry("updated_at", &runtime.updated_at())?;
        map.serialize_entry("error", &runtime.error())?;
        if !header.labels.is_empty() {
            map.serialize_entry("labels", &header.labels)?;
        }
        if let Some(digest) = &header.definition_sha256 {
            map.serialize_entry("definition_sha256", digest)?;
        }
        if let Some(traceparent) = &header.traceparent {
            map.serialize_entry("traceparent", traceparent)?;
        }
        for (key, value) in &header.extra {
            map.serialize_entry(key, value)?;
        }
        map.serialize_entry("tasks", &Tasks(runtime))?;
        map.end()
    }
}

struct Tasks<'a>(&'a Runtime);

impl Serialize for Tasks<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let tasks = self.0.tasks();
        let mut map = serializer.serialize_map(Some(tasks.len()))?;
        for task in tasks {
            map.serialize_entry(task.name(), &TaskEntry(self.0, task))?;
        }
        map.end()
    }
}

struct TaskEntry<'a>(&'a Runtime, &'a Task);

impl Serialize for TaskEntry<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self(runtime, task) = self;
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("name", task.name())?;
        map.serialize_entry("parents", &Names(runtime, task.parents()))?;
        map.serialize_entry("children", &Names(runtime, task.children()))?;
        map.serialize_entry("queue", task.queue())?;
        map.serialize_entry("num_retries", &task.num_retries())?;
        map.serialize_entry("dep_policy", &task.dep_policy())?;
        map.serialize_entry("timeout_s", &task.timeout_s())?;
        map.serialize_entry("condition", &task.condition())?;
        map.serialize_entry("kwargs", task.kwargs())?;
        map.serialize_entry::<_, TaskState>("state", &task.state())?;
        map.serialize_entry("completed_parents", &task.satisfied())?;
        map.serialize_entry("failed_parents", &task.broken())?;
        map.serialize_entry("output_ref", &task.output_ref())?;
        map.serialize_entry("error", &task.error())?;
        map.serialize_entry("started_at", &task.started_at())?;
        map.serialize_entry("completed_at", &task.completed_at())?;
        map.serialize_entry("attempt_no", &task.attempt_no())?;
        if task.retry_no() > 0 {
            map.serialize_entry("retry_no", &task.retry_no())?;
        }
        for (key, value) in task.extra() {
            map.serialize_entry(key, value)?;
        }
        map.end()
    }
}

struct Names<'a>(&'a Runtime, &'a [crate::workflow::runtime::TaskIndex]);

impl Serialize for Names<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut seq = serializer.serialize_seq(Some(self.1.len()))?;
        for &index in self.1 {
            seq.serialize_element(self.0.task(index).name())?;
        }
        seq.end()
    }
}

#[cfg(test)]
mod tests;
