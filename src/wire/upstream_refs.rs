//! The outputs of a task's parents, in the compact form of task messages.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::envelope::{parse_object, to_json};
use super::{OutputRef, Poison};
use crate::workflow::{TaskName, WorkflowId};

/// Each parent of a task with the reference to its output, or none where it has no output.
///
/// Most outputs of a wide fan-in are at their canonical place, so the compact form lists those
/// parents by name alone.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct UpstreamRefs(pub BTreeMap<TaskName, Option<OutputRef>>);

/// `s`: parents whose output is at the canonical blob; `i`: other references; `n`: no output.
#[derive(Default, Serialize, Deserialize)]
struct Compact<'a> {
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    s: Vec<Cow<'a, TaskName>>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    i: BTreeMap<Cow<'a, TaskName>, Cow<'a, OutputRef>>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    n: Vec<Cow<'a, TaskName>>,
}

impl UpstreamRefs {
    /// The compact form, as JSON text; empty sections are left out.
    #[must_use]
    pub fn to_compact_json(&self, workflow: &WorkflowId) -> String {
        let mut compact = Compact::default();
        for (parent, output) in &self.0 {
            let name = Cow::Borrowed(parent);
            match output {
                None => compact.n.push(name),
                Some(output) if output.is_canonical(workflow, parent) => compact.s.push(name),
                Some(output) => {
                    compact.i.insert(name, Cow::Borrowed(output));
                }
            }
        }
        to_json(&compact)
    }

    /// Reads the compact form. A parent named twice counts as in the later section.
    ///
    /// # Errors
    /// When a section is not of its type or a parent's name is invalid.
    pub fn from_compact_json(json: &str, workflow: &WorkflowId) -> Result<Self, Poison> {
        let compact: Compact<'_> = parse_object("compact upstream outputs", json)?;
        let owned = Cow::<TaskName>::into_owned;
        let mut refs = BTreeMap::new();
        for parent in compact.s.into_iter().map(owned) {
            let output = OutputRef::canonical(workflow, &parent);
            refs.insert(parent, Some(output));
        }
        for (parent, output) in compact.i {
            refs.insert(owned(parent), Some(output.into_owned()));
        }
        for parent in compact.n.into_iter().map(owned) {
            refs.insert(parent, None);
        }
        Ok(Self(refs))
    }

    /// Reads the plain map of older messages, which is also what a command finds in the file
    /// `JOBQ_WORKFLOW_UPSTREAM_REFS`.
    ///
    /// # Errors
    /// When it is not a map of references, or a parent's name is invalid.
    pub fn from_plain_json(json: &str) -> Result<Self, Poison> {
        parse_object("upstream output references", json)
    }

    /// The plain map, as JSON text.
    #[must_use]
    pub fn to_plain_json(&self) -> String {
        to_json(self)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn workflow() -> WorkflowId {
        WorkflowId::parse("w").unwrap()
    }

    #[test]
    fn sections_may_be_missing_and_unknown_keys_present() {
        let refs = UpstreamRefs::from_compact_json(r#"{"n":["a"],"x":1}"#, &workflow()).unwrap();
        assert_eq!(refs.to_plain_json(), r#"{"a":null}"#);
        assert_eq!(refs.to_compact_json(&workflow()), r#"{"n":["a"]}"#);
        assert_eq!(
            UpstreamRefs::from_compact_json("{}", &workflow()).unwrap(),
            UpstreamRefs::default()
        );
    }

    #[test]
    fn malformed_sections_are_poison() {
        for bad in [
            "[]",
            r#"{"s":"a"}"#,
            r#"{"i":{"a":1}}"#,
            r#"{"n":["/a"]}"#,
            "{",
        ] {
            assert!(
                UpstreamRefs::from_compact_json(bad, &workflow()).is_err(),
                "{bad}"
            );
        }
        for bad in ["[]", r#"{"a":1}"#, r#"{"/a":null}"#] {
            assert!(UpstreamRefs::from_plain_json(bad).is_err(), "{bad}");
        }
    }

    proptest! {
        #[test]
        fn both_forms_keep_every_reference(
            parents in prop::collection::btree_map("[a-z<é\"\\\\ ]{1,8}x", 0..4u8, 0..8)
        ) {
            let refs = UpstreamRefs(parents.iter().map(|(name, kind)| {
                let name = TaskName::parse(name).unwrap();
                let output = match kind {
                    0 => None,
                    1 => Some(OutputRef::canonical(&workflow(), &name)),
                    2 => Some(OutputRef::blob("elsewhere")),
                    _ => Some(OutputRef::inline("{\"a\": \"<\\u0000>\"}")),
                };
                (name, output)
            }).collect());
            let compact = refs.to_compact_json(&workflow());
            prop_assert_eq!(&UpstreamRefs::from_compact_json(&compact, &workflow()).unwrap(), &refs);
            prop_assert_eq!(&UpstreamRefs::from_plain_json(&refs.to_plain_json()).unwrap(), &refs);
        }
    }
}
