//! What to say where the text leaves the language, and what to write instead.

use super::super::ParseError;
use super::super::ast::Literal;
use super::super::lexer::Token;
use super::Parser;

impl Parser {
    pub(super) fn found(&self) -> String {
        match &self.token {
            Token::Name(name) => format!("{name:?}"),
            Token::Literal(Literal::Text(_)) => "a text".to_owned(),
            Token::Literal(_) => "a number".to_owned(),
            Token::Symbol(symbol) => format!("'{symbol}'"),
            Token::End => "the end".to_owned(),
        }
    }

    pub(super) fn unclosed(&self, close: &str) -> ParseError {
        match self.token {
            Token::End => self.error(format!("a '{close}' is missing at the end")),
            _ => {
                let leftover = self.leftover().message;
                self.error(format!("expected ',' or '{close}' here: {leftover}"))
            }
        }
    }

    /// Why an expression cannot go on with the current token.
    pub(super) fn leftover(&self) -> ParseError {
        let hint = match &self.token {
            Token::Name(name) => match name.as_str() {
                "is" => "use '==' or '!=' in place of 'is'",
                "if" | "else" | "for" => "conditions have no 'if' and no loops",
                "AND" | "OR" | "NOT" => "'and', 'or' and 'not' are written small",
                _ => "put an operator between two values, and quotes around a text",
            },
            Token::Symbol("-" | "*") => {
                "conditions do no arithmetic; a task name with other characters than letters, \
                 digits and '_' is written as inputs[\"name\"]"
            }
            Token::Symbol("(") => "only all, any, count and almost_all can be called",
            Token::Symbol("[" | ".") => "only inputs have fields and indexes",
            Token::Symbol(",") => "a tuple stands in parentheses",
            Token::Symbol(")" | "]") => "nothing is open that it could close",
            Token::Literal(Literal::Float(_)) => {
                "put an operator between two values; an item of a list is written as [0]"
            }
            _ => "put an operator between two values",
        };
        self.error(format!("{} cannot follow here: {hint}", self.found()))
    }
}

pub(super) fn unknown_name(name: &str, is_called: bool) -> String {
    if is_called {
        return format!(
            "there is no function {name:?}: only all, any, count and almost_all can be called"
        );
    }
    match name {
        "is" | "if" | "else" | "for" | "lambda" | "await" | "yield" | "import" => {
            format!("{name:?} is not part of the language: a condition only compares values")
        }
        "AND" | "OR" | "NOT" => {
            format!("{name:?} is unknown: 'and', 'or' and 'not' are written small")
        }
        _ => format!(
            "the name {name:?} is unknown: read an output as inputs.task.field, and put quotes \
             around a text"
        ),
    }
}

pub(super) fn usage(name: &str) -> &'static str {
    match name {
        "all" => "all(inputs[\"train-*\"].ok)",
        "any" => "any(inputs[\"train-*\"].ok)",
        "count" => "count(inputs[\"train-*\"].ok) >= 2",
        _ => "almost_all(inputs[\"train-*\"].ok, 1)",
    }
}

pub(super) fn misused(name: &str) -> String {
    if name == "almost_all" {
        return format!(
            "\"almost_all\" takes an expression and how many inputs may fail it, a whole number \
             from 0: write {}",
            usage(name)
        );
    }
    format!("{name:?} takes one expression: write {}", usage(name))
}
