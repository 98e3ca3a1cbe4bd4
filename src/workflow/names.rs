//! Names of workflows, tasks and queues, each with the rules that make it safe in blob names,
//! table keys and message ids.

use std::borrow::Borrow;
use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::limits::{TASK_NAME_BYTES_MAX, WORKFLOW_ID_CHARS_MAX};

/// Why a text is not a valid name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{what} {text:?} {reason}")]
pub struct NameError {
    what: &'static str,
    text: String,
    reason: &'static str,
}

impl NameError {
    fn new(what: &'static str, text: &str, reason: &'static str) -> Self {
        Self {
            what,
            text: text.chars().take(80).collect(),
            reason,
        }
    }

    /// The rule the text breaks, without the text.
    #[must_use]
    pub const fn reason(&self) -> &'static str {
        self.reason
    }
}

macro_rules! name {
    ($(#[$doc:meta])* $name:ident, $check:path) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(try_from = "String")]
        pub struct $name(Arc<str>);

        impl $name {
            /// Checks a text against the rules of this kind of name.
            ///
            /// # Errors
            /// The first rule it breaks.
            pub fn parse(text: &str) -> Result<Self, NameError> {
                $check(text)?;
                Ok(Self(text.into()))
            }

            /// The text.
            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl Deref for $name {
            type Target = str;
            fn deref(&self) -> &str {
                &self.0
            }
        }

        impl Borrow<str> for $name {
            fn borrow(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Debug::fmt(&self.0, f)
            }
        }

        impl TryFrom<String> for $name {
            type Error = NameError;
            fn try_from(text: String) -> Result<Self, NameError> {
                Self::parse(&text)
            }
        }

        impl std::str::FromStr for $name {
            type Err = NameError;
            fn from_str(text: &str) -> Result<Self, NameError> {
                Self::parse(text)
            }
        }
    };
}

name! {
    /// The id of a workflow: 1 to 128 of `A-Z a-z 0-9 . _ -`, not starting with `_` or `.`.
    WorkflowId, check_workflow_id
}

name! {
    /// The name of a task within its workflow: 1 to 256 bytes without control characters, not
    /// blank, without leading or trailing `/` and without a `.` or `..` segment.
    TaskName, check_task_name
}

name! {
    /// The name of a task queue: 1 to 63 of `A-Z a-z 0-9 . _ -`, starting with a letter or digit.
    /// A backend may ask for more (Azure Storage: lower case, no `.` or `_`, at least 3).
    QueueName, check_queue_name
}

fn is_plain(text: &str) -> bool {
    text.bytes()
        .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-'))
}

fn check_workflow_id(text: &str) -> Result<(), NameError> {
    let fail = |reason| Err(NameError::new("workflow id", text, reason));
    if text.is_empty() || text.len() > WORKFLOW_ID_CHARS_MAX {
        return fail("must have 1 to 128 characters");
    }
    if !is_plain(text) {
        return fail("may hold only A-Z a-z 0-9 . _ -");
    }
    if text.starts_with(['_', '.']) {
        return fail("must not start with '_' or '.'");
    }
    Ok(())
}

fn check_task_name(text: &str) -> Result<(), NameError> {
    let fail = |reason| Err(NameError::new("task name", text, reason));
    if text.trim().is_empty() {
        return fail("must not be blank");
    }
    if text.len() > TASK_NAME_BYTES_MAX {
        return fail("must have at most 256 bytes");
    }
    if text.chars().any(char::is_control) {
        return fail("must not hold control characters");
    }
    if text.starts_with('/') || text.ends_with('/') {
        return fail("must not start or end with '/'");
    }
    if text
        .split('/')
        .any(|segment| segment == "." || segment == "..")
    {
        return fail("must not have a '.' or '..' segment");
    }
    Ok(())
}

fn check_queue_name(text: &str) -> Result<(), NameError> {
    let fail = |reason| Err(NameError::new("queue name", text, reason));
    if text.is_empty() || text.len() > 63 {
        return fail("must have 1 to 63 characters");
    }
    if !is_plain(text) {
        return fail("may hold only A-Z a-z 0-9 . _ -");
    }
    if !text.starts_with(|c: char| c.is_ascii_alphanumeric()) {
        return fail("must start with a letter or a digit");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn workflow_ids_are_safe_as_blob_names() {
        for good in ["a", "my-run-001", "A.b_c", &"x".repeat(128)] {
            assert!(WorkflowId::parse(good).is_ok(), "{good}");
        }
        for bad in ["", "_lock", ".hidden", "a/b", "a b", "é", &"x".repeat(129)] {
            assert!(WorkflowId::parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn task_names_may_be_paths_but_never_climb() {
        for good in ["a", "grp/t-0", "a b", "é", "a..b", "__x", &"x".repeat(256)] {
            assert!(TaskName::parse(good).is_ok(), "{good}");
        }
        for bad in [
            "",
            "  ",
            "/a",
            "a/",
            "a/../b",
            ".",
            "a\nb",
            &"x".repeat(257),
        ] {
            assert!(TaskName::parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn queue_names_are_plain() {
        for good in ["default", "gpu-a100", "q"] {
            assert!(QueueName::parse(good).is_ok(), "{good}");
        }
        for bad in ["", "-a", "a/b", "a b", &"x".repeat(64)] {
            assert!(QueueName::parse(bad).is_err(), "{bad}");
        }
    }
}
