//! The expression language of a task's `condition`.
//!
//! It looks and means like a small part of Python: comparisons, membership, boolean logic, and
//! access to the outputs of the task's dependencies. The wire format lists all of it; the
//! fixtures are the judges.

use std::collections::BTreeMap;

/// A parsed condition.
#[derive(Debug, Clone)]
pub struct Condition {}

/// Why a text is not a condition.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message} (at character {position})")]
pub struct ParseError {
    /// What is wrong and what would be right.
    pub message: String,
    /// Where, in characters from 1.
    pub position: usize,
}

/// Why a condition has no value: it counts as false.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct EvaluationError(pub String);

impl Condition {
    /// Parses a condition.
    ///
    /// # Errors
    /// The first place where the text leaves the language.
    pub fn parse(_text: &str) -> Result<Self, ParseError> {
        Ok(Self {})
    }

    /// Checks that the condition reads at least one input, and only those of `dependencies`. A
    /// glob may match none of them.
    ///
    /// # Errors
    /// One message for each reference that is not a dependency.
    pub fn check_references(&self, _dependencies: &[&str]) -> Result<(), Vec<String>> {
        Ok(())
    }

    /// Whether the value of the condition can depend on the output of the dependency `name`.
    #[must_use]
    pub fn reads(&self, _name: &str) -> bool {
        true
    }

    /// The value, given the outputs of the dependencies (`Null` for none).
    ///
    /// # Errors
    /// A comparison of things that do not compare, or a reference that is not among `inputs`.
    pub fn evaluate(
        &self,
        _inputs: &BTreeMap<&str, serde_json::Value>,
    ) -> Result<bool, EvaluationError> {
        Ok(true)
    }
}
