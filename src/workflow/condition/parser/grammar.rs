//! One function for each level of precedence, loosest first: `or`, `and`, `not`, comparison,
//! operand.

use super::super::ParseError;
use super::super::ast::{Comparator, Expression, Link, Literal};
use super::super::lexer::Token;
use super::{Parser, hints};

impl Parser {
    pub(super) fn disjunction(&mut self) -> Result<Expression, ParseError> {
        self.joined("or", Self::conjunction, Expression::Or)
    }

    fn conjunction(&mut self) -> Result<Expression, ParseError> {
        self.joined("and", Self::negation, Expression::And)
    }

    /// One operand, or several with `word` between them.
    fn joined(
        &mut self,
        word: &str,
        operand: fn(&mut Self) -> Result<Expression, ParseError>,
        join: fn(Vec<Expression>) -> Expression,
    ) -> Result<Expression, ParseError> {
        let first = operand(self)?;
        if !self.sees_name(word) {
            return Ok(first);
        }
        let mut operands = vec![first];
        while self.sees_name(word) {
            self.advance()?;
            operands.push(operand(self)?);
        }
        Ok(join(operands))
    }

    fn negation(&mut self) -> Result<Expression, ParseError> {
        let outside = self.depth;
        while self.sees_name("not") {
            self.deepen()?;
            self.advance()?;
        }
        let operand = self.comparison()?;
        let negations = self.depth - outside;
        self.depth = outside;
        Ok((0..negations).fold(operand, |inner, _| Expression::Not(Box::new(inner))))
    }

    fn comparison(&mut self) -> Result<Expression, ParseError> {
        let first = self.operand()?;
        let mut rest = Vec::new();
        loop {
            let position = self.position;
            let Some(comparator) = self.comparator()? else {
                break;
            };
            let operand = self.operand()?;
            rest.push(Link {
                comparator,
                position,
                operand,
            });
        }
        if rest.is_empty() {
            return Ok(first);
        }
        let first = Box::new(first);
        Ok(Expression::Comparison { first, rest })
    }

    fn comparator(&mut self) -> Result<Option<Comparator>, ParseError> {
        let comparator = match &self.token {
            Token::Symbol("==") => Comparator::Equal,
            Token::Symbol("!=") => Comparator::NotEqual,
            Token::Symbol("<") => Comparator::Less,
            Token::Symbol("<=") => Comparator::LessOrEqual,
            Token::Symbol(">") => Comparator::Greater,
            Token::Symbol(">=") => Comparator::GreaterOrEqual,
            Token::Name(name) if name == "in" => Comparator::In,
            Token::Name(name) if name == "not" => {
                self.advance()?;
                if !self.sees_name("in") {
                    return Err(self.error("after a value, 'not' must be followed by 'in'"));
                }
                Comparator::NotIn
            }
            _ => return Ok(None),
        };
        self.advance()?;
        Ok(Some(comparator))
    }

    fn operand(&mut self) -> Result<Expression, ParseError> {
        match std::mem::replace(&mut self.token, Token::End) {
            Token::Literal(literal) => {
                self.advance()?;
                Ok(Expression::Literal(literal))
            }
            Token::Symbol("-") => self.negative(),
            Token::Symbol("(") => {
                let inner = self.parenthesised()?;
                match inner {
                    Expression::Path(path) => self.steps(path),
                    other => Ok(other),
                }
            }
            Token::Symbol("[") => self
                .bracketed("]")
                .map(|(items, _)| Expression::List(items)),
            Token::Name(name) => self.named(&name),
            other => {
                self.token = other;
                Err(self.error(format!(
                    "expected a value, found {}: write an input, a number, a quoted text, a list \
                     or an expression in parentheses",
                    self.found()
                )))
            }
        }
    }

    /// What follows a minus, which the caller has taken off.
    pub(super) fn negative(&mut self) -> Result<Expression, ParseError> {
        let minus = self.position;
        self.advance()?;
        // Literals are not negative themselves, so this cannot overflow.
        let value = match self.token {
            Token::Literal(Literal::Int(value)) => Literal::Int(-value),
            Token::Literal(Literal::Float(value)) => Literal::Float(-value),
            _ => {
                return Err(ParseError::new(
                    minus,
                    "'-' stands only before a number: conditions do no arithmetic",
                ));
            }
        };
        self.advance()?;
        Ok(Expression::Literal(value))
    }

    /// What follows an opening parenthesis: an expression or a tuple.
    fn parenthesised(&mut self) -> Result<Expression, ParseError> {
        let (mut items, ends_in_comma) = self.bracketed(")")?;
        match items.pop() {
            Some(only) if items.is_empty() && !ends_in_comma => Ok(only),
            last => {
                items.extend(last);
                Ok(Expression::List(items))
            }
        }
    }

    /// The expressions up to the closing bracket, behind the opening one (which is the current
    /// token), and whether a comma follows the last of them.
    pub(super) fn bracketed(
        &mut self,
        close: &'static str,
    ) -> Result<(Vec<Expression>, bool), ParseError> {
        self.deepen()?;
        self.advance()?;
        let mut items = Vec::new();
        let mut ends_in_comma = false;
        while !self.sees(close) {
            items.push(self.disjunction()?);
            ends_in_comma = self.take(",")?;
            if !ends_in_comma && !self.sees(close) {
                return Err(self.unclosed(close));
            }
        }
        self.depth -= 1;
        self.advance()?;
        Ok((items, ends_in_comma))
    }

    /// A constant, an aggregate or an input. The name is the current token.
    fn named(&mut self, name: &str) -> Result<Expression, ParseError> {
        let start = self.position;
        let literal = match name {
            "None" | "null" => Literal::None,
            "True" | "true" => Literal::Bool(true),
            "False" | "false" => Literal::Bool(false),
            "inputs" => {
                self.advance()?;
                return self.input(start);
            }
            "all" | "any" | "count" | "almost_all" => {
                self.advance()?;
                return self.aggregate(name, start);
            }
            _ => {
                let is_called = self.advance().is_ok() && self.sees("(");
                return Err(ParseError::new(start, hints::unknown_name(name, is_called)));
            }
        };
        self.advance()?;
        Ok(Expression::Literal(literal))
    }
}
