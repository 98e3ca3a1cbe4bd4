//! Cuts the text of a condition into tokens, one at a time, so that the first mistake in the text
//! is the one reported.

use super::ParseError;
use super::ast::Literal;
use super::{number, text};

/// The smallest piece with a meaning of its own.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Token {
    /// A name or a keyword.
    Name(String),
    /// A number or a text.
    Literal(Literal),
    /// An operator or a bracket.
    Symbol(&'static str),
    End,
}

/// The operators and brackets, longer ones before their beginnings.
const SYMBOLS: [&str; 14] = [
    "==", "!=", "<=", ">=", "<", ">", "(", ")", "[", "]", ",", ".", "*", "-",
];

/// Reads tokens from left to right.
#[derive(Debug)]
pub(super) struct Lexer {
    chars: Vec<char>,
    at: usize,
}

impl Lexer {
    pub(super) fn new(text: &str) -> Self {
        let chars = text.chars().collect();
        Self { chars, at: 0 }
    }

    /// The next token and the position of its first character, from 1.
    pub(super) fn next(&mut self) -> Result<(Token, usize), ParseError> {
        while self.peek(0).is_some_and(is_blank) {
            self.at += 1;
        }
        let start = self.at;
        let position = start + 1;
        let token = match self.peek(0) {
            None => Token::End,
            Some('\'' | '"') => {
                let (value, end) = text::read(&self.chars, start)?;
                self.at = end;
                Token::Literal(Literal::Text(value))
            }
            Some(c) if number::begins(c, self.peek(1)) => {
                let (value, end) = number::read(&self.chars, start)?;
                self.at = end;
                Token::Literal(value)
            }
            Some(c) if begins_name(c) => self.name()?,
            Some(c) => {
                let symbol = SYMBOLS.into_iter().find(|symbol| self.stands(symbol));
                let symbol = symbol.ok_or_else(|| ParseError::new(position, not_a_symbol(c)))?;
                self.at += symbol.len();
                Token::Symbol(symbol)
            }
        };
        Ok((token, position))
    }

    fn peek(&self, ahead: usize) -> Option<char> {
        self.chars.get(self.at + ahead).copied()
    }

    fn stands(&self, symbol: &str) -> bool {
        symbol
            .chars()
            .enumerate()
            .all(|(ahead, c)| self.peek(ahead) == Some(c))
    }

    fn name(&mut self) -> Result<Token, ParseError> {
        let start = self.at;
        while self.peek(0).is_some_and(continues_name) {
            self.at += 1;
        }
        let name: String = self.chars[start..self.at].iter().collect();
        if matches!(self.peek(0), Some('\'' | '"')) && is_text_prefix(&name) {
            return Err(ParseError::new(
                start + 1,
                format!("texts take no prefix here: remove the {name:?} before the quote"),
            ));
        }
        Ok(Token::Name(name))
    }
}

/// Line breaks are blanks, so that conditions may be folded in YAML.
const fn is_blank(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\n' | '\r' | '\x0c')
}

fn begins_name(c: char) -> bool {
    c == '_' || c.is_alphabetic()
}

/// Whether `c` may stand within a name.
pub(super) fn continues_name(c: char) -> bool {
    c == '_' || c.is_alphanumeric()
}

/// Whether Python knows the name as a mark before a quote; `in"abc"` is not one.
fn is_text_prefix(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    matches!(
        name.as_str(),
        "r" | "u" | "b" | "f" | "t" | "br" | "rb" | "fr" | "rf" | "tr" | "rt"
    )
}

fn not_a_symbol(c: char) -> String {
    let hint = match c {
        '=' => "use '==' to compare",
        '!' => "use 'not', or '!=' to compare",
        '&' => "use 'and'",
        '|' => "use 'or'",
        '+' | '/' | '%' | '@' | '~' | '^' => "conditions do no arithmetic",
        ':' | ';' => "a condition is one expression, without slices, lambdas or assignments",
        '{' | '}' => "conditions have lists and tuples, but no dicts or sets",
        '#' => "conditions have no comments",
        '`' | '‘' | '’' | '“' | '”' => "write texts in 'plain' or \"double\" quotes",
        _ => "it belongs within a quoted text only",
    };
    format!("{c:?} is not part of the language: {hint}")
}
