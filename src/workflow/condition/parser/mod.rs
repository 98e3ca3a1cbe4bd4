//! From tokens to an expression, by recursive descent.
//!
//! - `grammar`: one function for each level of precedence.
//! - `inputs`: what `inputs` and the aggregates over them may look like.
//! - `hints`: what to say to those who write Python, or a shell, instead.
//!
//! Whatever nests is counted, and refused past [`CONDITION_DEPTH_MAX`], so no text makes
//! the parser, or a later walk over its result, recurse without bound.

mod grammar;
mod hints;
mod inputs;

use super::ParseError;
use super::ast::Expression;
use super::glob::Glob;
use super::lexer::{Lexer, Token};
use crate::limits::{CONDITION_BYTES_MAX, CONDITION_DEPTH_MAX};

/// Parses a whole condition.
pub(super) fn parse(text: &str) -> Result<Expression, ParseError> {
    if text.len() > CONDITION_BYTES_MAX {
        let within = text
            .char_indices()
            .take_while(|(at, c)| at + c.len_utf8() <= CONDITION_BYTES_MAX)
            .count();
        let message = format!(
            "the condition has {} bytes, {CONDITION_BYTES_MAX} are allowed: compute part of it in \
             a task and read its output",
            text.len()
        );
        return Err(ParseError::new(within + 1, message));
    }
    let mut lexer = Lexer::new(text);
    let (token, position) = lexer.next()?;
    let mut parser = Parser {
        lexer,
        token,
        position,
        depth: 0,
        scope: Scope::Outside,
    };
    if parser.token == Token::End {
        return Err(parser.error("the condition is empty: leave it out, or compare an input"));
    }
    let expression = parser.disjunction()?;
    match parser.token {
        Token::End => Ok(expression),
        _ => Err(parser.leftover()),
    }
}

struct Parser {
    lexer: Lexer,
    /// The token to look at next, and where it begins.
    token: Token,
    position: usize,
    /// How many brackets and `not`s are open.
    depth: usize,
    scope: Scope,
}

/// Whether globs have a meaning at this place.
enum Scope {
    Outside,
    /// Within an aggregate, whose glob is known from its first mention on.
    Aggregate {
        glob: Option<Glob>,
    },
}

impl Parser {
    fn error(&self, message: impl Into<String>) -> ParseError {
        ParseError::new(self.position, message)
    }

    fn advance(&mut self) -> Result<(), ParseError> {
        (self.token, self.position) = self.lexer.next()?;
        Ok(())
    }

    fn sees_name(&self, name: &str) -> bool {
        matches!(&self.token, Token::Name(found) if found == name)
    }

    fn sees(&self, symbol: &str) -> bool {
        matches!(self.token, Token::Symbol(found) if found == symbol)
    }

    fn take(&mut self, symbol: &str) -> Result<bool, ParseError> {
        let seen = self.sees(symbol);
        if seen {
            self.advance()?;
        }
        Ok(seen)
    }

    /// Counts one more level of nesting; the caller takes it back when it is closed.
    fn deepen(&mut self) -> Result<(), ParseError> {
        self.depth += 1;
        if self.depth > CONDITION_DEPTH_MAX {
            return Err(self.error(format!(
                "nested deeper than {CONDITION_DEPTH_MAX} levels: remove needless parentheses, or \
                 compute part of it in a task"
            )));
        }
        Ok(())
    }
}
