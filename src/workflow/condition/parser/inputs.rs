//! Inputs, the steps into them, and the aggregates over globs of them.

use super::super::ParseError;
use super::super::ast::{Aggregate, AggregateKind, Expression, Literal, Path, Root, Step};
use super::super::glob::Glob;
use super::super::lexer::Token;
use super::{Parser, Scope, hints};

/// Names that Python keeps for itself; they are no fields there and none here.
const KEYWORDS: [&str; 35] = [
    "False", "None", "True", "and", "as", "assert", "async", "await", "break", "class", "continue",
    "def", "del", "elif", "else", "except", "finally", "for", "from", "global", "if", "import",
    "in", "is", "lambda", "nonlocal", "not", "or", "pass", "raise", "return", "try", "while",
    "with", "yield",
];

impl Parser {
    /// What follows `inputs`: which of them, and the steps into it.
    pub(super) fn input(&mut self, start: usize) -> Result<Expression, ParseError> {
        let position = self.position;
        let name = if self.take(".")? {
            if self.take("*")? {
                "*".to_owned()
            } else {
                self.field()?
            }
        } else if self.sees("[") {
            match self.subscript()? {
                Step::Field(name) => name,
                Step::Index(_) => {
                    let message = "inputs have names, not numbers: write inputs[\"task\"]";
                    return Err(ParseError::new(position, message));
                }
            }
        } else {
            return Err(ParseError::new(
                start,
                "'inputs' alone is no value: write inputs.task or inputs[\"task\"]",
            ));
        };
        let glob = Glob::new(&name);
        let root = if glob.is_plain() {
            Root::Input(name)
        } else {
            self.bind(glob)
                .map_err(|message| ParseError::new(start, message))?;
            Root::Each
        };
        let steps = Vec::new();
        self.steps(Path { root, steps })
    }

    /// Makes the glob the one of the aggregate around it.
    fn bind(&mut self, glob: Glob) -> Result<(), String> {
        let pattern = glob.as_str();
        match &mut self.scope {
            Scope::Outside => Err(format!(
                "the pattern {pattern:?} stands for many inputs: put it within all(...), any(...), \
                 count(...) or almost_all(..., n); in the name of a single task, write '[*]' for \
                 '*', '[?]' for '?' and '[[]' for '[' there"
            )),
            Scope::Aggregate { glob: Some(first) } if *first != glob => Err(format!(
                "one aggregate goes over one pattern, but here are {:?} and {pattern:?}: use an \
                 aggregate for each",
                first.as_str()
            )),
            Scope::Aggregate { glob: known } => {
                known.get_or_insert(glob);
                Ok(())
            }
        }
    }

    /// The `.field` and `[...]` that follow a path.
    pub(super) fn steps(&mut self, mut path: Path) -> Result<Expression, ParseError> {
        loop {
            if self.take(".")? {
                path.steps.push(Step::Field(self.field()?));
            } else if self.sees("[") {
                path.steps.push(self.subscript()?);
            } else {
                return Ok(Expression::Path(path));
            }
        }
    }

    fn field(&mut self) -> Result<String, ParseError> {
        match &self.token {
            Token::Name(name) if KEYWORDS.contains(&name.as_str()) => Err(self.error(format!(
                "{name:?} is a keyword: write [{name:?}] instead of .{name}"
            ))),
            Token::Name(name) => {
                let name = name.clone();
                self.advance()?;
                Ok(name)
            }
            _ => Err(self.error(format!(
                "expected a name after '.', found {}: write other names as [\"name\"]",
                self.found()
            ))),
        }
    }

    fn subscript(&mut self) -> Result<Step, ParseError> {
        self.advance()?;
        let position = self.position;
        let step = match self.token.clone() {
            Token::Literal(Literal::Text(name)) => {
                self.advance()?;
                Some(Step::Field(name))
            }
            Token::Literal(Literal::Int(index)) => {
                self.advance()?;
                Some(Step::Index(index))
            }
            Token::Symbol("-") => match self.negative()? {
                Expression::Literal(Literal::Int(index)) => Some(Step::Index(index)),
                _ => None,
            },
            _ => None,
        };
        let step = step.ok_or_else(|| {
            let message = "expected a quoted name or a whole number within the brackets";
            ParseError::new(position, message)
        })?;
        if self.take("]")? {
            Ok(step)
        } else {
            Err(self.unclosed("]"))
        }
    }

    /// What follows the name of an aggregate: `(e)`, or `(e, n)`.
    pub(super) fn aggregate(&mut self, name: &str, start: usize) -> Result<Expression, ParseError> {
        if !self.sees("(") {
            let message = format!("{name:?} is a function: write {}", hints::usage(name));
            return Err(ParseError::new(start, message));
        }
        if matches!(self.scope, Scope::Aggregate { .. }) {
            return Err(ParseError::new(
                start,
                format!(
                    "{name:?} cannot stand within another aggregate: join the two by 'and' or 'or'"
                ),
            ));
        }
        self.scope = Scope::Aggregate { glob: None };
        let (arguments, _) = self.bracketed(")")?;
        let scope = std::mem::replace(&mut self.scope, Scope::Outside);
        let (each, kind) = match (name, <[_; 1]>::try_from(arguments)) {
            ("all", Ok([each])) => (each, AggregateKind::All),
            ("any", Ok([each])) => (each, AggregateKind::Any),
            ("count", Ok([each])) => (each, AggregateKind::Count),
            ("almost_all", Err(arguments)) => match <[_; 2]>::try_from(arguments) {
                Ok([each, Expression::Literal(Literal::Int(exceptions @ 0..))]) => {
                    (each, AggregateKind::AlmostAll(exceptions))
                }
                _ => return Err(ParseError::new(start, hints::misused(name))),
            },
            _ => return Err(ParseError::new(start, hints::misused(name))),
        };
        match scope {
            Scope::Aggregate { glob: Some(glob) } => {
                Ok(Expression::Aggregate(Box::new(Aggregate {
                    kind,
                    glob,
                    each,
                })))
            }
            _ => Err(ParseError::new(
                start,
                format!(
                    "{name:?} goes over the inputs that match a pattern, but there is none in it: \
                     write {}",
                    hints::usage(name)
                ),
            )),
        }
    }
}
