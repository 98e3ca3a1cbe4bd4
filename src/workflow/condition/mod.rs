//! The expression language of a task's `condition`.
//!
//! It looks and means like a small part of Python: comparisons, membership, boolean logic, access
//! to the outputs of the task's dependencies, and four aggregates over a glob of them.
//!
//! ```text
//! inputs.train.loss < 0.5 and inputs["grp/eval"].ok
//! count(inputs["train-*"].ok) >= 3 or almost_all(inputs.*.ok, 1)
//! ```
//!
//! A condition goes text → `lexer` → `parser` → `ast` once, when its definition is checked; then
//! `references` says what it reads and `evaluate` computes its `value`.
//!
//! What holds, for callers (`definition`, and the runtime that decides between ready and skipped):
//! - Parsing and evaluating never panic, and never recurse deeper than a small multiple of
//!   [`CONDITION_DEPTH_MAX`], whatever the text.
//! - A value depends on the condition and the inputs only, not on the order of the inputs.
//! - Each part is evaluated at most once, within an aggregate at most once for each input.
//!
//! Where it departs from Python, whose own answer would mostly be an exception of no use here:
//! - A field that is missing, an index out of range, and a field or index of anything that has
//!   none (a number, a text, `None`) are all `None`. So is an input that is not there at all.
//! - Aggregates look at every matching input before they answer, so a type error for one input is
//!   an error of the whole, wherever that input stands. They do not nest, and all globs within one
//!   must be the same, because they stand for the same input. `all` over no match is true, `any`
//!   is false.
//! - Adjacent texts are not joined, texts have no prefixes, tuples need their parentheses.
//! - A tuple is a list in other brackets: `inputs.a.pair == (1, 2)` can be true.
//! - Line breaks are blanks, so that a condition may be folded in YAML.

mod ast;
mod evaluate;
mod glob;
mod lexer;
mod number;
mod parser;
mod references;
#[cfg(test)]
mod tests;
mod text;
mod value;

use std::collections::BTreeMap;

#[cfg(doc)]
use crate::limits::CONDITION_DEPTH_MAX;

/// A parsed condition.
#[derive(Debug, Clone)]
pub struct Condition {
    source: Box<str>,
    expression: ast::Expression,
}

/// Why a text is not a condition.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message} (at character {position})")]
pub struct ParseError {
    /// What is wrong and what would be right.
    pub message: String,
    /// Where, in characters from 1.
    pub position: usize,
}

impl ParseError {
    fn new(position: usize, message: impl Into<String>) -> Self {
        let message = message.into();
        Self { message, position }
    }
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
    pub fn parse(text: &str) -> Result<Self, ParseError> {
        Ok(Self {
            expression: parser::parse(text)?,
            source: text.into(),
        })
    }

    /// The text it was parsed from.
    #[must_use]
    pub fn source(&self) -> &str {
        &self.source
    }

    /// Checks that the condition reads at least one input, and only those of `dependencies`. A
    /// glob may match none of them.
    ///
    /// # Errors
    /// One message for each input that is not a dependency, in the order of the text.
    pub fn check_references(&self, dependencies: &[&str]) -> Result<(), Vec<String>> {
        references::check(&self.expression, dependencies)
    }

    /// Whether the value of the condition can depend on the output of the dependency `name`.
    #[must_use]
    pub fn reads(&self, name: &str) -> bool {
        references::reads(&self.expression, name)
    }

    /// The value, given the outputs of the dependencies (`Null` for none). A dependency that is
    /// missing from `inputs` is read as `None`; globs match only those that are there.
    ///
    /// # Errors
    /// An operator met values it does not take, such as `<` between a text and a number.
    pub fn evaluate(
        &self,
        inputs: &BTreeMap<&str, serde_json::Value>,
    ) -> Result<bool, EvaluationError> {
        evaluate::evaluate(&self.expression, inputs)
    }
}
