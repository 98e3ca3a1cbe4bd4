//! How an output is referred to, and the marker by which an output names a file.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use serde::de::{IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::value::RawValue;

use super::Names;
use super::envelope::to_json;
use crate::limits::OUTPUT_STASH_DEPTH_MAX;
use crate::workflow::{TaskName, WorkflowId};

/// What starts a reference to a blob. No JSON text starts with it.
const BLOB: &str = "blob:";

/// The key whose presence, alone in an object, makes the object stand for a file.
const STASH_KEY: &str = "__jobq_stash__";

/// A task's output as messages and state hold it: the JSON text itself, or the place of the blob
/// that holds it in the outputs container.
///
/// The text is kept exactly. Whether inline text is valid JSON is not checked here: other
/// programs write it, and whoever evaluates it finds out.
#[derive(Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct OutputRef(Arc<str>);

impl OutputRef {
    /// Takes a reference as the wire spells it.
    #[must_use]
    pub fn from_wire(text: &str) -> Self {
        Self(text.into())
    }

    /// An output small enough to be its own reference.
    #[must_use]
    pub fn inline(json: &str) -> Self {
        Self(json.into())
    }

    /// The reference to a blob of the outputs container.
    #[must_use]
    pub fn blob(path: &str) -> Self {
        Self(format!("{BLOB}{path}").into())
    }

    /// The reference to the blob where a task's stashed output belongs.
    #[must_use]
    pub fn canonical(workflow: &WorkflowId, task: &TaskName) -> Self {
        Self::blob(&Names::output_blob(workflow, task))
    }

    /// Whether this is [`canonical`](Self::canonical) for the task.
    #[must_use]
    pub fn is_canonical(&self, workflow: &WorkflowId, task: &TaskName) -> bool {
        self.blob_path()
            .and_then(|path| path.strip_prefix(workflow.as_str()))
            .and_then(|path| path.strip_prefix('/'))
            .and_then(|path| path.strip_suffix(".json"))
            .is_some_and(|path| path == task.as_str())
    }

    /// As the wire spells it.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The blob's path in the outputs container, unless the output is inline.
    #[must_use]
    pub fn blob_path(&self) -> Option<&str> {
        self.0.strip_prefix(BLOB)
    }

    /// The JSON text, unless the output is in a blob.
    #[must_use]
    pub fn inline_json(&self) -> Option<&str> {
        (!self.0.starts_with(BLOB)).then_some(&*self.0)
    }
}

impl fmt::Display for OutputRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for OutputRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}

/// A file that an output names and that is still on the machine of the command.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct PendingStash {
    /// Where it is; relative paths start at the command's working directory.
    pub local_path: String,
    /// The name it gets in the container: the last part of its path there.
    pub filename: String,
}

/// The same file once it is uploaded.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ReadyStash {
    /// Its name in the container of file outputs.
    pub blob_name: String,
    /// The md5 of its bytes, in hex.
    pub md5: String,
    /// Its bytes.
    pub size: u64,
}

/// An output that names files in a way nobody can follow.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StashError {
    /// The output as a whole is not JSON.
    #[error("not JSON: {0}")]
    NotJson(String),
    /// A pending marker without the fields it needs.
    #[error("a pending {STASH_KEY} must have string fields local_path and filename")]
    Incomplete,
    /// A file name that would escape its task's folder.
    #[error(
        "{STASH_KEY} filename {0:?} must be a relative path without empty, '.' or '..' segments \
         and without control characters"
    )]
    BadFilename(String),
    /// A marker below too many lists and objects.
    #[error("{STASH_KEY} is nested deeper than {OUTPUT_STASH_DEPTH_MAX} levels")]
    TooDeep,
}

/// All pending files of one output, in the order of the text.
#[derive(Debug)]
pub struct PendingStashes<'a> {
    output: &'a str,
    found: Vec<(Range<usize>, PendingStash)>,
}

impl<'a> PendingStashes<'a> {
    /// Finds every pending marker in `output`, at any depth. Costs one search of the text when
    /// there is none.
    ///
    /// # Errors
    /// When the output is not JSON, or a marker cannot be followed.
    pub fn find(output: &'a str) -> Result<Self, StashError> {
        serde_json::from_str::<IgnoredAny>(output)
            .map_err(|error| StashError::NotJson(error.to_string()))?;
        let mut found = Vec::new();
        let mut open = vec![(output, 0)];
        while let Some((text, depth)) = open.pop() {
            // Only what holds the key is worth another pass, so an output is not parsed again and
            // again for the depth of parts that name no file.
            if !text.contains(STASH_KEY) {
                continue;
            }
            if depth > OUTPUT_STASH_DEPTH_MAX {
                return Err(StashError::TooDeep);
            }
            match Node::parse(text)? {
                Node::Scalar => {}
                Node::Inner(children) => {
                    open.extend(children.into_iter().map(|child| (child, depth + 1)));
                }
                Node::Pending(stash) => {
                    let start = text.as_ptr().addr() - output.as_ptr().addr();
                    found.push((start..start + text.len(), stash));
                }
            }
        }
        found.sort_by_key(|(range, _)| range.start);
        Ok(Self { output, found })
    }

    /// The files to upload.
    pub fn files(&self) -> impl ExactSizeIterator<Item = &PendingStash> {
        self.found.iter().map(|(_, stash)| stash)
    }

    /// The output with each pending marker replaced by the ready one at its position in `ready`;
    /// all other text stays as it was, to the digit.
    ///
    /// # Panics
    /// When `ready` does not hold one element per file.
    #[must_use]
    pub fn replaced_by(&self, ready: &[ReadyStash]) -> String {
        #[derive(Serialize)]
        struct Marker<'a> {
            #[serde(rename = "__jobq_stash__")]
            stash: Fields<'a>,
        }
        #[derive(Serialize)]
        struct Fields<'a> {
            v: u32,
            state: &'static str,
            #[serde(flatten)]
            ready: &'a ReadyStash,
        }
        assert_eq!(self.found.len(), ready.len(), "one upload for each file");
        let mut text = String::with_capacity(self.output.len());
        let mut copied = 0;
        for ((range, _), ready) in self.found.iter().zip(ready) {
            text.push_str(&self.output[copied..range.start]);
            let stash = Fields {
                v: 1,
                state: "ready",
                ready,
            };
            text.push_str(&to_json(&Marker { stash }));
            copied = range.end;
        }
        text.push_str(&self.output[copied..]);
        text
    }
}

/// One level of a JSON value, its children still text.
enum Node<'a> {
    Scalar,
    Inner(Vec<&'a str>),
    Pending(PendingStash),
}

impl<'a> Node<'a> {
    fn parse(text: &'a str) -> Result<Self, StashError> {
        let level: Level<'a> =
            serde_json::from_str(text).map_err(|error| StashError::NotJson(error.to_string()))?;
        match level {
            Level::Other => Ok(Self::Scalar),
            Level::Inner(children) => Ok(Self::Inner(children)),
            Level::Marker(fields) => Self::from_marker(fields),
        }
    }

    fn from_marker(fields: &str) -> Result<Self, StashError> {
        #[derive(Deserialize)]
        struct Fields {
            state: String,
        }
        // What is not pending (a ready marker handed on from an upstream output, or somebody's own
        // data under this key) is not ours to touch.
        let pending =
            serde_json::from_str::<Fields>(fields).is_ok_and(|fields| fields.state == "pending");
        if !pending {
            return Ok(Self::Scalar);
        }
        let stash: PendingStash =
            serde_json::from_str(fields).map_err(|_| StashError::Incomplete)?;
        let segments_fit = stash
            .filename
            .split('/')
            .all(|segment| !matches!(segment, "" | "." | ".."));
        if !segments_fit || stash.filename.chars().any(char::is_control) {
            return Err(StashError::BadFilename(
                stash.filename.chars().take(80).collect(),
            ));
        }
        Ok(Self::Pending(stash))
    }
}

enum Level<'a> {
    Other,
    Inner(Vec<&'a str>),
    /// An object with the marker's key and no other; the value of the key.
    Marker(&'a str),
}

impl<'de> Deserialize<'de> for Level<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(LevelVisitor)
    }
}

struct LevelVisitor;

impl<'de> Visitor<'de> for LevelVisitor {
    type Value = Level<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut children = Vec::new();
        let mut all_marker = true;
        while let Some((key, value)) = map.next_entry::<String, &RawValue>()? {
            all_marker &= key == STASH_KEY;
            children.push(value.get());
        }
        match children[..] {
            [fields] if all_marker => Ok(Level::Marker(fields)),
            _ => Ok(Level::Inner(children)),
        }
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
        let mut children = Vec::new();
        while let Some(value) = seq.next_element::<&RawValue>()? {
            children.push(value.get());
        }
        Ok(Level::Inner(children))
    }

    fn visit_str<E>(self, _: &str) -> Result<Self::Value, E> {
        Ok(Level::Other)
    }

    fn visit_bool<E>(self, _: bool) -> Result<Self::Value, E> {
        Ok(Level::Other)
    }

    fn visit_u64<E>(self, _: u64) -> Result<Self::Value, E> {
        Ok(Level::Other)
    }

    fn visit_i64<E>(self, _: i64) -> Result<Self::Value, E> {
        Ok(Level::Other)
    }

    fn visit_f64<E>(self, _: f64) -> Result<Self::Value, E> {
        Ok(Level::Other)
    }

    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok(Level::Other)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn pending(path: &str, name: &str) -> String {
        format!(
            r#"{{"__jobq_stash__": {{"v":1,"state":"pending","local_path":"{path}","filename":"{name}"}}}}"#
        )
    }

    fn ready(size: u64) -> ReadyStash {
        ReadyStash {
            blob_name: format!("workflow-files/w/t/{size}"),
            md5: "00".repeat(16),
            size,
        }
    }

    #[test]
    fn references_tell_blobs_from_inline_text() {
        let inline = OutputRef::from_wire("{\"a\": 1}");
        assert_eq!(
            (inline.inline_json(), inline.blob_path()),
            (Some("{\"a\": 1}"), None)
        );
        let blob = OutputRef::from_wire("blob:w/t.json");
        assert_eq!(
            (blob.inline_json(), blob.blob_path()),
            (None, Some("w/t.json"))
        );
    }

    #[test]
    fn only_the_own_place_is_canonical() {
        let workflow = WorkflowId::parse("w").unwrap();
        let task = TaskName::parse("grp/t").unwrap();
        assert!(OutputRef::canonical(&workflow, &task).is_canonical(&workflow, &task));
        for other in [
            "blob:w/t.json",
            "blob:ww/grp/t.json",
            "blob:w/grp/t",
            "w/grp/t.json",
            "1",
        ] {
            assert!(
                !OutputRef::from_wire(other).is_canonical(&workflow, &task),
                "{other}"
            );
        }
    }

    #[test]
    fn pending_files_are_found_at_any_depth_and_replaced_in_place() {
        let output = format!(
            r#" {{"big": 123456789012345678901234567890.10, "a": {}, "l": [1, [{}]]}} "#,
            pending("/tmp/x", "x.bin"),
            pending("y", "d/y.bin")
        );
        let stashes = PendingStashes::find(&output).unwrap();
        let names: Vec<_> = stashes.files().map(|file| file.filename.as_str()).collect();
        assert_eq!(names, ["x.bin", "d/y.bin"]);
        let replaced = stashes.replaced_by(&[ready(1), ready(2)]);
        assert!(
            replaced.contains("123456789012345678901234567890.10"),
            "{replaced}"
        );
        let value: serde_json::Value = serde_json::from_str(&replaced).unwrap();
        assert_eq!(
            value["a"],
            serde_json::json!({"__jobq_stash__": {"v": 1, "state": "ready",
                "blob_name": "workflow-files/w/t/1", "md5": "00".repeat(16), "size": 1}})
        );
        assert_eq!(value["l"][1][0]["__jobq_stash__"]["size"], 2);
    }

    #[test]
    fn a_bare_marker_is_a_whole_output() {
        let output = pending("p", "f");
        let stashes = PendingStashes::find(&output).unwrap();
        assert_eq!(stashes.files().len(), 1);
        assert!(
            stashes
                .replaced_by(&[ready(3)])
                .starts_with("{\"__jobq_stash__\":{\"v\":1")
        );
    }

    #[test]
    fn what_is_no_pending_marker_is_left_alone() {
        for output in [
            "null",
            "\"__jobq_stash__\"",
            r#"{"__jobq_stash__": 1}"#,
            r#"{"__jobq_stash__": {"state":"ready","blob_name":"b"}}"#,
            r#"{"__jobq_stash__": {"state":"pending","local_path":"p","filename":"f"}, "more": 1}"#,
        ] {
            let stashes = PendingStashes::find(output).unwrap();
            assert_eq!(stashes.files().len(), 0, "{output}");
            assert_eq!(stashes.replaced_by(&[]), output);
        }
    }

    #[test]
    fn markers_nobody_can_follow_are_refused() {
        let deep = "[".repeat(OUTPUT_STASH_DEPTH_MAX + 1)
            + &pending("p", "f")
            + &"]".repeat(OUTPUT_STASH_DEPTH_MAX + 1);
        assert_eq!(
            PendingStashes::find(&deep).unwrap_err(),
            StashError::TooDeep
        );
        let fits = &deep[1..deep.len() - 1];
        assert_eq!(PendingStashes::find(fits).unwrap().files().len(), 1);
        for name in ["", "/etc/passwd", "../up", "a//b", "a/./b", "a/"] {
            let error = PendingStashes::find(&pending("p", name)).unwrap_err();
            assert!(matches!(error, StashError::BadFilename(_)), "{name}");
        }
        let incomplete = r#"{"__jobq_stash__": {"v":1,"state":"pending","local_path":"p"}}"#;
        assert_eq!(
            PendingStashes::find(incomplete).unwrap_err(),
            StashError::Incomplete
        );
        assert!(matches!(
            PendingStashes::find("{NaN}").unwrap_err(),
            StashError::NotJson(_)
        ));
    }

    proptest! {
        #[test]
        fn arbitrary_text_never_panics(text in "(?s)[\\[\\]{}:,\"a-z0-9\\\\]{0,100}|.{0,100}") {
            let _ = PendingStashes::find(&format!("{text}__jobq_stash__"));
            let _ = PendingStashes::find(&text);
        }
    }
}
