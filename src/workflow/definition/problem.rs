//! What can be wrong with a definition.

use std::fmt;

use serde::Serialize;

/// A stable name for each kind of problem, for programs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ProblemCode {
    /// The text is not YAML or JSON.
    Syntax,
    /// Something is larger, deeper or more numerous than its limit.
    LimitExceeded,
    /// A required field is missing.
    MissingField,
    /// A field this version does not know.
    UnknownField,
    /// The same key stands twice in one map.
    DuplicateKey,
    /// A field holds a value of the wrong type.
    WrongType,
    /// A field holds a value out of its range or choice.
    InvalidValue,
    /// A name breaks the rules for names.
    InvalidName,
    /// Two tasks have the same name.
    DuplicateTask,
    /// A dependency names no task.
    UnknownDependency,
    /// A task depends on itself.
    SelfDependency,
    /// A task lists the same dependency twice.
    DuplicateDependency,
    /// Tasks wait for each other.
    Cycle,
    /// A condition does not parse or reads what it may not.
    InvalidCondition,
}

impl ProblemCode {
    /// All kinds.
    pub const ALL: &'static [Self] = &[
        Self::Syntax,
        Self::LimitExceeded,
        Self::MissingField,
        Self::UnknownField,
        Self::DuplicateKey,
        Self::WrongType,
        Self::InvalidValue,
        Self::InvalidName,
        Self::DuplicateTask,
        Self::UnknownDependency,
        Self::SelfDependency,
        Self::DuplicateDependency,
        Self::Cycle,
        Self::InvalidCondition,
    ];

    /// The name as it stands in every answer.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Syntax => "syntax",
            Self::LimitExceeded => "limit_exceeded",
            Self::MissingField => "missing_field",
            Self::UnknownField => "unknown_field",
            Self::DuplicateKey => "duplicate_key",
            Self::WrongType => "wrong_type",
            Self::InvalidValue => "invalid_value",
            Self::InvalidName => "invalid_name",
            Self::DuplicateTask => "duplicate_task",
            Self::UnknownDependency => "unknown_dependency",
            Self::SelfDependency => "self_dependency",
            Self::DuplicateDependency => "duplicate_dependency",
            Self::Cycle => "cycle",
            Self::InvalidCondition => "invalid_condition",
        }
    }
}

/// Everything that is wrong with a definition, in the order of the text. At least one; at most
/// [`PROBLEMS_MAX`](crate::limits::PROBLEMS_MAX), and then one more that tells how many were left
/// out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, thiserror::Error)]
#[serde(transparent)]
pub struct Problems(pub Vec<Problem>);

impl fmt::Display for Problems {
    /// One problem on each line.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, problem) in self.0.iter().enumerate() {
            if index > 0 {
                f.write_str("\n")?;
            }
            problem.fmt(f)?;
        }
        Ok(())
    }
}

impl From<Problem> for Problems {
    fn from(problem: Problem) -> Self {
        Self(vec![problem])
    }
}

/// One thing that is wrong with a definition, and where.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Problem {
    /// The kind.
    pub code: ProblemCode,
    /// The place, as a JSON pointer (RFC 6901); empty for the whole document.
    pub pointer: String,
    /// The task it concerns, where there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task: Option<String>,
    /// The line, from 1, where the input was text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<usize>,
    /// The column in characters, from 1, where the input was text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub column: Option<usize>,
    /// What is wrong and what to do about it, naming the task and the field.
    pub message: String,
}

impl Problem {
    /// A problem of the document as a whole.
    pub(in crate::workflow) const fn of_document(code: ProblemCode, message: String) -> Self {
        Self {
            code,
            pointer: String::new(),
            task: None,
            line: None,
            column: None,
            message,
        }
    }

    /// Line and column, to order by.
    pub(super) const fn position(&self) -> (Option<usize>, Option<usize>) {
        (self.line, self.column)
    }

    /// The same problem at a line and column.
    pub(super) fn at(mut self, (line, column): (usize, usize)) -> Self {
        (self.line, self.column) = (Some(line), Some(column));
        self
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let (Some(line), Some(column)) = (self.line, self.column) {
            write!(f, "{line}:{column}: ")?;
        }
        write!(f, "{} [{}", self.message, self.code.as_str())?;
        if !self.pointer.is_empty() {
            write!(f, " at {}", self.pointer)?;
        }
        f.write_str("]")
    }
}
