//! What a person submits: the tasks of a workflow and how they depend on each other.
//!
//! Callers: `control` and `cli` (to read what was submitted), `store` and `wire` (to keep it).
//!
//! ```text
//! text ─ json / yaml ─► document::Node ─ read ─► draft ─ check, graph ─► Definition
//!                              │                   │           │
//!                              └──── locate ◄──────┴─ report ◄─┘ ─► Problems
//! ```
//!
//! Invariants: a [`Definition`] made here passed every check; everything that is wrong is said in
//! one answer, ordered by position; work and memory are linear in the text, whoever wrote it, and
//! bounded by `limits`. Positions are looked up only once there is a problem to place.

mod canonical;
mod check;
mod document;
mod fields;
mod graph;
mod json;
mod kwargs;
mod locate;
mod model;
mod problem;
mod read;
mod report;
mod scalar;
mod values;
mod yaml;

pub use model::{Definition, TaskDefinition};
pub use problem::{Problem, ProblemCode, Problems};

use crate::limits::DEFINITION_BYTES_MAX;
use document::Node;
use locate::Source;
use report::Report;

impl Definition {
    /// Reads a definition from YAML or JSON text. A text that starts with `{` is taken for JSON,
    /// and for YAML in flow style where it is not quite JSON.
    ///
    /// # Errors
    /// Everything that is wrong with it, each with line and column.
    pub fn from_text(text: &[u8]) -> Result<Self, Problems> {
        let text = decode(text)?;
        let yaml = |text| {
            let node = yaml::parse(text)?;
            Self::from_node(&node).map_err(|report| report.finish(&Source::Yaml(&node)))
        };
        if !text.trim_start().starts_with('{') {
            return yaml(text);
        }
        match json::parse(text) {
            Ok(node) => Self::from_node(&node).map_err(|report| report.finish(&Source::Json(text))),
            Err(error) if error.may_be_yaml => match yaml::parse(text) {
                Ok(node) => {
                    Self::from_node(&node).map_err(|report| report.finish(&Source::Yaml(&node)))
                }
                // Whoever came further understands more of what the writer meant.
                Err(problem) if problem.position() > error.problem.position() => {
                    Err(problem.into())
                }
                Err(_) => Err(error.problem.into()),
            },
            Err(error) => Err(error.problem.into()),
        }
    }

    /// Reads a definition from JSON that came inside a request. Problems carry pointers but no
    /// lines, for those would count from the middle of the request.
    ///
    /// # Errors
    /// Everything that is wrong with it.
    pub fn from_json(text: &str) -> Result<Self, Problems> {
        let mut problems = match decode(text.as_bytes()) {
            Err(problems) => problems,
            Ok(text) => match json::parse(text) {
                Err(error) => error.problem.into(),
                Ok(node) => match Self::from_node(&node) {
                    Ok(definition) => return Ok(definition),
                    Err(report) => report.finish(&Source::Json(text)),
                },
            },
        };
        for problem in &mut problems.0 {
            (problem.line, problem.column) = (None, None);
        }
        Err(problems)
    }

    /// Reads a definition from a JSON value, for callers that have no text. Such a value has lost
    /// the digits of whole numbers beyond 64 bits; [`Definition::from_json`] keeps them.
    ///
    /// # Errors
    /// Everything that is wrong with it, without lines.
    pub fn from_value(value: &serde_json::Value) -> Result<Self, Problems> {
        Self::from_json(&value.to_string())
    }

    fn from_node(node: &Node<'_>) -> Result<Self, Report> {
        let mut report = Report::default();
        let draft = read::workflow(node, &mut report);
        let mut semantic = Report::default();
        let graph = check::tasks(&draft.tasks, &mut semantic);
        report.absorb(semantic);
        if report.is_empty() {
            Ok(draft.finish(&graph))
        } else {
            Err(report)
        }
    }
}

/// The text as UTF-8, without a byte order mark.
fn decode(text: &[u8]) -> Result<&str, Problems> {
    if text.len() > DEFINITION_BYTES_MAX {
        let message = format!(
            "the definition has {} bytes; at most {DEFINITION_BYTES_MAX} are allowed",
            text.len()
        );
        return Err(Problem::of_document(ProblemCode::LimitExceeded, message).into());
    }
    match std::str::from_utf8(text) {
        Ok(text) => Ok(text.strip_prefix('\u{feff}').unwrap_or(text)),
        Err(error) => {
            let before = String::from_utf8_lossy(&text[..error.valid_up_to()]);
            let message = "the text is not UTF-8 here; save it as UTF-8".to_owned();
            let problem = Problem::of_document(ProblemCode::Syntax, message);
            Err(problem.at(locate::end_of(&before)).into())
        }
    }
}

#[cfg(test)]
mod tests;
