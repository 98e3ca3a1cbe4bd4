//! What a condition says, once parsed. Nesting is bounded by the parser, so walks may recurse.

use std::fmt;

use super::glob::Glob;

/// An expression.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Expression {
    Literal(Literal),
    /// A list or a tuple: they mean the same.
    List(Vec<Self>),
    Path(Path),
    Not(Box<Self>),
    /// Two or more operands.
    And(Vec<Self>),
    /// Two or more operands.
    Or(Vec<Self>),
    /// `first op operand op operand ...`, which holds if each neighbouring pair does.
    Comparison {
        first: Box<Self>,
        rest: Vec<Link>,
    },
    Aggregate(Box<Aggregate>),
}

/// A constant.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Literal {
    None,
    Bool(bool),
    Int(i128),
    /// Never NaN, but infinite where the text overflows, as in Python.
    Float(f64),
    Text(String),
}

/// One `op operand` of a comparison.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Link {
    pub(super) comparator: Comparator,
    /// Where the operator stands, in characters from 1, for error texts.
    pub(super) position: usize,
    pub(super) operand: Expression,
}

/// A comparison operator.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Comparator {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    In,
    NotIn,
}

impl fmt::Display for Comparator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Equal => "==",
            Self::NotEqual => "!=",
            Self::Less => "<",
            Self::LessOrEqual => "<=",
            Self::Greater => ">",
            Self::GreaterOrEqual => ">=",
            Self::In => "in",
            Self::NotIn => "not in",
        })
    }
}

/// An input, or something within it.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Path {
    pub(super) root: Root,
    pub(super) steps: Vec<Step>,
}

/// Which input a path starts from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Root {
    /// The output of the dependency of this name.
    Input(String),
    /// The input that the aggregate around it stands at.
    Each,
}

/// One step into a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Step {
    Field(String),
    /// Counted from the end where negative.
    Index(i128),
}

/// A function over all inputs that match a glob.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Aggregate {
    pub(super) kind: AggregateKind,
    pub(super) glob: Glob,
    /// Evaluated once for each matching input; [`Root::Each`] is that input.
    pub(super) each: Expression,
}

/// What an aggregate answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AggregateKind {
    All,
    Any,
    Count,
    /// True for all but at most this many.
    AlmostAll(i128),
}
