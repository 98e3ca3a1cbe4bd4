//! The states of tasks and workflows, and the policies that decide between them.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

macro_rules! words {
    ($(#[$doc:meta])* $name:ident { $($(#[$variant_doc:meta])* $variant:ident = $word:tt,)* }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[derive(utoipa::ToSchema)]
        pub enum $name { $($(#[$variant_doc])* #[serde(rename = $word)] $variant,)* }

        impl $name {
            /// All values, in the order of a life.
            pub const ALL: &'static [Self] = &[$(Self::$variant),*];

            /// The word used in every format.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $word,)* }
            }

            /// The value whose word this is.
            #[must_use]
            pub fn from_word(word: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|value| value.as_str() == word)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(self.as_str())
            }
        }
    };
}

words! {
    /// Where a task is in its life.
    TaskState {
        /// Waits for its dependencies.
        Pending = "pending",
        /// May run: waits for a slot and for being pushed to its queue.
        Ready = "ready",
        /// Pushed to its queue; a worker runs it or will.
        Running = "running",
        /// Ended with success. Satisfies its children.
        Completed = "completed",
        /// Ended without success, all attempts used. Breaks its children.
        Failed = "failed",
        /// Never ran, because its dependencies can no longer be satisfied. Breaks its children.
        UpstreamFailed = "upstream_failed",
        /// Never ran, because its condition was false. Satisfies its children.
        Skipped = "skipped",
        /// Never ended, because the workflow was cancelled. Breaks its children.
        Cancelled = "cancelled",
    }
}

words! {
    /// Where a workflow is in its life.
    WorkflowState {
        /// Nothing was dispatched yet.
        Pending = "pending",
        /// Some task is not terminal.
        Running = "running",
        /// A cancel was requested and some task still runs.
        Cancelling = "cancelling",
        /// All tasks are terminal, and the result policy is content.
        Completed = "completed",
        /// All tasks are terminal, and the result policy is not content.
        Failed = "failed",
        /// All tasks are terminal after a cancel.
        Cancelled = "cancelled",
    }
}

words! {
    /// When a workflow whose tasks are all terminal counts as completed.
    ResultPolicy {
        /// Every task without children is completed or skipped, and at least one task is.
        AllSinksSucceed = "all_sinks_succeed",
        /// No task failed.
        AllTasksSucceed = "all_tasks_succeed",
    }
}

impl TaskState {
    /// Whether nothing can change the task any more, except a retry by a person.
    #[must_use]
    pub const fn is_terminal(self) -> bool {
        !matches!(self, Self::Pending | Self::Ready | Self::Running)
    }

    /// Whether a dependency on a task in this state is satisfied.
    #[must_use]
    pub const fn satisfies(self) -> bool {
        matches!(self, Self::Completed | Self::Skipped)
    }

    /// Whether a dependency on a task in this state can never be satisfied.
    #[must_use]
    pub const fn breaks(self) -> bool {
        matches!(self, Self::Failed | Self::UpstreamFailed | Self::Cancelled)
    }
}

impl WorkflowState {
    /// Whether nothing can change the workflow any more, except a retry by a person.
    #[must_use]
    pub const fn is_terminal(self) -> bool {
        matches!(self, Self::Completed | Self::Failed | Self::Cancelled)
    }
}

/// Which of a task's dependencies must be satisfied before it may run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum DepPolicy {
    /// All of them. The default.
    #[default]
    All,
    /// One of them.
    Any,
    /// All are terminal and at least one is satisfied.
    AllSettled,
    /// At least this many, from 1 to the number of dependencies.
    AtLeast(u32),
}

impl DepPolicy {
    /// Whether a task with `total` parents may run once `satisfied` of them are satisfied and
    /// `broken` are broken. A task without parents may always run.
    #[must_use]
    pub const fn is_satisfied(self, total: u32, satisfied: u32, broken: u32) -> bool {
        match self {
            Self::All => satisfied == total,
            Self::Any => total == 0 || satisfied >= 1,
            Self::AllSettled => total == 0 || (satisfied + broken == total && satisfied >= 1),
            Self::AtLeast(needed) => satisfied >= needed,
        }
    }

    /// Whether the policy can never be satisfied any more.
    #[must_use]
    pub const fn is_broken(self, total: u32, satisfied: u32, broken: u32) -> bool {
        match self {
            Self::All => broken > 0,
            Self::Any | Self::AllSettled => total > 0 && broken == total && satisfied == 0,
            Self::AtLeast(needed) => total - broken < needed,
        }
    }
}

impl Serialize for DepPolicy {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::All => serializer.serialize_str("all"),
            Self::Any => serializer.serialize_str("any"),
            Self::AllSettled => serializer.serialize_str("all_settled"),
            Self::AtLeast(needed) => serializer.serialize_u32(*needed),
        }
    }
}

impl<'de> Deserialize<'de> for DepPolicy {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl serde::de::Visitor<'_> for Visitor {
            type Value = DepPolicy;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("\"all\", \"any\", \"all_settled\" or a whole number from 1")
            }
            fn visit_str<E: serde::de::Error>(self, word: &str) -> Result<DepPolicy, E> {
                match word {
                    "all" => Ok(DepPolicy::All),
                    "any" => Ok(DepPolicy::Any),
                    "all_settled" => Ok(DepPolicy::AllSettled),
                    _ => Err(E::invalid_value(serde::de::Unexpected::Str(word), &self)),
                }
            }
            fn visit_u64<E: serde::de::Error>(self, number: u64) -> Result<DepPolicy, E> {
                match u32::try_from(number) {
                    Ok(needed @ 1..) => Ok(DepPolicy::AtLeast(needed)),
                    _ => Err(E::invalid_value(
                        serde::de::Unexpected::Unsigned(number),
                        &self,
                    )),
                }
            }
        }
        deserializer.deserialize_any(Visitor)
    }
}

/// A positive number of seconds, written as a whole number where it is one.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd)]
pub struct Seconds(pub f64);

impl Seconds {
    /// As a duration; zero for what is not a positive number.
    #[must_use]
    pub fn as_duration(self) -> std::time::Duration {
        std::time::Duration::try_from_secs_f64(self.0).unwrap_or_default()
    }
}

impl Serialize for Seconds {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if self.0.fract() == 0.0 && self.0.abs() < 1e15 {
            #[expect(
                clippy::cast_possible_truncation,
                reason = "whole and small, just checked"
            )]
            serializer.serialize_i64(self.0 as i64)
        } else {
            serializer.serialize_f64(self.0)
        }
    }
}

impl<'de> Deserialize<'de> for Seconds {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        f64::deserialize(deserializer).map(Self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn policies_are_satisfied_and_broken_as_designed() {
        // (policy, total, satisfied, broken, is_satisfied, is_broken)
        let table = [
            (DepPolicy::All, 0, 0, 0, true, false),
            (DepPolicy::All, 2, 1, 0, false, false),
            (DepPolicy::All, 2, 2, 0, true, false),
            (DepPolicy::All, 2, 1, 1, false, true),
            (DepPolicy::Any, 0, 0, 0, true, false),
            (DepPolicy::Any, 3, 1, 0, true, false),
            (DepPolicy::Any, 3, 0, 2, false, false),
            (DepPolicy::Any, 3, 0, 3, false, true),
            (DepPolicy::AllSettled, 3, 1, 1, false, false),
            (DepPolicy::AllSettled, 3, 1, 2, true, false),
            (DepPolicy::AllSettled, 3, 0, 3, false, true),
            (DepPolicy::AtLeast(2), 3, 1, 1, false, false),
            (DepPolicy::AtLeast(2), 3, 2, 0, true, false),
            (DepPolicy::AtLeast(2), 3, 1, 2, false, true),
        ];
        for (policy, total, satisfied, broken, is_satisfied, is_broken) in table {
            let case = format!("{policy:?} of {total}: {satisfied} satisfied, {broken} broken");
            assert_eq!(
                policy.is_satisfied(total, satisfied, broken),
                is_satisfied,
                "{case}"
            );
            assert_eq!(
                policy.is_broken(total, satisfied, broken),
                is_broken,
                "{case}"
            );
        }
    }

    #[test]
    fn no_policy_is_satisfied_and_broken_at_once() {
        for total in 0..6 {
            for satisfied in 0..=total {
                for broken in 0..=(total - satisfied) {
                    let at_least = (1..=total).map(DepPolicy::AtLeast);
                    let policies = [DepPolicy::All, DepPolicy::Any, DepPolicy::AllSettled];
                    for policy in policies.into_iter().chain(at_least) {
                        assert!(
                            !(policy.is_satisfied(total, satisfied, broken)
                                && policy.is_broken(total, satisfied, broken)),
                            "{policy:?} of {total}: {satisfied}, {broken}"
                        );
                    }
                }
            }
        }
    }

    #[test]
    fn policies_and_seconds_keep_their_json_form() {
        for text in ["\"all\"", "\"any\"", "\"all_settled\"", "3"] {
            let policy: DepPolicy = serde_json::from_str(text).unwrap();
            assert_eq!(serde_json::to_string(&policy).unwrap(), text);
        }
        for text in ["0", "-1", "\"some\"", "1.5", "true", "null"] {
            assert!(serde_json::from_str::<DepPolicy>(text).is_err(), "{text}");
        }
        assert_eq!(serde_json::to_string(&Seconds(30.0)).unwrap(), "30");
        assert_eq!(serde_json::to_string(&Seconds(0.5)).unwrap(), "0.5");
    }
}
