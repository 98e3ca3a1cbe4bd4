//! Number literals, as Python writes them: `42`, `1_000`, `0xff`, `0o17`, `0b11`, `1.5`, `.5`,
//! `1e-3`.

use super::ParseError;
use super::ast::Literal;
use super::lexer::continues_name;

/// Whether a number begins with these two characters.
pub(super) fn begins(first: char, second: Option<char>) -> bool {
    first.is_ascii_digit() || (first == '.' && second.is_some_and(|c| c.is_ascii_digit()))
}

/// The number that begins at `start`, and the index behind it.
pub(super) fn read(chars: &[char], start: usize) -> Result<(Literal, usize), ParseError> {
    let mut reader = Reader { chars, at: start };
    let value = match (chars[start], chars.get(start + 1)) {
        ('0', Some('x' | 'X')) => reader.with_base(start, 16)?,
        ('0', Some('o' | 'O')) => reader.with_base(start, 8)?,
        ('0', Some('b' | 'B')) => reader.with_base(start, 2)?,
        _ => reader.decimal(start)?,
    };
    match chars.get(reader.at) {
        Some(&c) if continues_name(c) => Err(ParseError::new(
            reader.at + 1,
            format!("{c:?} cannot follow a number directly: put a space between, or quote a text"),
        )),
        _ => Ok((value, reader.at)),
    }
}

struct Reader<'a> {
    chars: &'a [char],
    at: usize,
}

impl Reader<'_> {
    fn with_base(&mut self, start: usize, base: u32) -> Result<Literal, ParseError> {
        self.at += 2;
        if self.chars.get(self.at) == Some(&'_') {
            self.at += 1;
        }
        let digits = self.digits(base)?;
        if digits.is_empty() {
            let message = format!("digits of base {base} are missing after the prefix");
            return Err(ParseError::new(self.at + 1, message));
        }
        whole(&digits, base, start)
    }

    fn decimal(&mut self, start: usize) -> Result<Literal, ParseError> {
        let mut text = self.digits(10)?;
        let mut is_float = false;
        if self.chars.get(self.at) == Some(&'.') {
            self.at += 1;
            is_float = true;
            text.push('.');
            text.push_str(&self.digits(10)?);
        }
        if let Some(length) = self.exponent_mark() {
            is_float = true;
            text.extend(&self.chars[self.at..self.at + length]);
            self.at += length;
            text.push_str(&self.digits(10)?);
        }
        if is_float {
            // Rust's parser rounds as Python's does, and overflows to infinity as well.
            return text
                .parse()
                .map(Literal::Float)
                .map_err(|_| ParseError::new(start + 1, format!("{text:?} is not a number")));
        }
        if text.starts_with('0') && text.bytes().any(|digit| digit != b'0') {
            return Err(ParseError::new(
                start + 1,
                "whole numbers have no leading zeros: remove them, or write 0o for base 8",
            ));
        }
        whole(&text, 10, start)
    }

    /// Digits without the single underscores between them.
    fn digits(&mut self, base: u32) -> Result<String, ParseError> {
        let mut digits = String::new();
        while let Some(&c) = self.chars.get(self.at) {
            let follows = self.chars.get(self.at + 1);
            if c.is_digit(base) {
                digits.push(c);
            } else if c != '_' || digits.is_empty() {
                break;
            } else if !follows.is_some_and(|c| c.is_digit(base)) {
                return Err(ParseError::new(
                    self.at + 1,
                    "in a number, '_' stands only between two digits",
                ));
            }
            self.at += 1;
        }
        Ok(digits)
    }

    /// The length of `e`, `e+` or `e-` where digits follow it.
    fn exponent_mark(&self) -> Option<usize> {
        let at = |ahead: usize| self.chars.get(self.at + ahead).copied();
        if !matches!(at(0), Some('e' | 'E')) {
            return None;
        }
        let length = if matches!(at(1), Some('+' | '-')) {
            2
        } else {
            1
        };
        at(length)?.is_ascii_digit().then_some(length)
    }
}

fn whole(digits: &str, base: u32, start: usize) -> Result<Literal, ParseError> {
    i128::from_str_radix(digits, base)
        .map(Literal::Int)
        .map_err(|_| {
            ParseError::new(
                start + 1,
                "whole numbers end at 2**127 - 1: write a larger one with an exponent, as in 1e40",
            )
        })
}
