//! The tree a definition is read from, whether it was YAML or JSON.

use std::borrow::Cow;
use std::rc::Rc;

use serde_json::value::RawValue;

/// A place in YAML text: line and column, both from 1. Zero for JSON, whose places are looked up
/// only when a problem needs them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Mark {
    pub(super) line: u32,
    pub(super) column: u32,
}

/// A value and where it stands.
#[derive(Debug, Clone)]
pub(super) struct Node<'a> {
    pub(super) mark: Mark,
    pub(super) kind: Kind<'a>,
}

/// A value. Lists and maps are shared, so that YAML aliases cost no memory.
#[derive(Debug, Clone)]
pub(super) enum Kind<'a> {
    Null,
    Bool(bool),
    /// A whole number, as a JSON number of any length.
    Whole(Cow<'a, str>),
    /// Any other number; infinite or not a number where YAML says so.
    Float(f64),
    Text(Cow<'a, str>),
    List(Rc<Vec<Node<'a>>>),
    /// In the order of the text, with keys that stand twice.
    Map(Rc<Vec<Entry<'a>>>),
    /// A part of JSON text that is looked into only by those who need to.
    Raw(&'a RawValue),
}

/// A key and its value.
#[derive(Debug, Clone)]
pub(super) struct Entry<'a> {
    pub(super) key: Cow<'a, str>,
    pub(super) key_mark: Mark,
    pub(super) value: Node<'a>,
}

impl Kind<'_> {
    /// What it is, for messages.
    pub(super) fn describe(&self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Bool(_) => "a boolean",
            Self::Whole(_) => "a whole number",
            Self::Float(_) => "a number with a fraction",
            Self::Text(_) => "text",
            Self::List(_) => "a list",
            Self::Map(_) => "a map",
            Self::Raw(raw) => match raw.get().as_bytes().first() {
                Some(b'{') => "a map",
                Some(b'[') => "a list",
                Some(b'"') => "text",
                Some(b't' | b'f') => "a boolean",
                Some(b'n') => "null",
                _ => "a number",
            },
        }
    }

    pub(super) fn is_null(&self) -> bool {
        matches!(self, Self::Null) || matches!(self, Self::Raw(raw) if raw.get() == "null")
    }
}

impl<'a> Node<'a> {
    /// A value whose place is not known yet.
    pub(super) const fn unplaced(kind: Kind<'a>) -> Self {
        Self {
            mark: Mark { line: 0, column: 0 },
            kind,
        }
    }

    /// Appends the value as compact JSON, until the text has more than `bytes_max` bytes.
    ///
    /// Numbers that JSON cannot write become `null`; callers refuse them beforehand.
    pub(super) fn write_json(&self, out: &mut String, bytes_max: usize) -> Result<(), TooLong> {
        match &self.kind {
            Kind::Null => out.push_str("null"),
            Kind::Bool(value) => out.push_str(if *value { "true" } else { "false" }),
            Kind::Whole(digits) => out.push_str(digits),
            Kind::Float(value) => out.push_str(&serde_json::Value::from(*value).to_string()),
            Kind::Text(text) => write_text(text, out),
            Kind::Raw(raw) => out.push_str(raw.get()),
            Kind::List(items) => {
                out.push('[');
                for (index, item) in items.iter().enumerate() {
                    if index > 0 {
                        out.push(',');
                    }
                    item.write_json(out, bytes_max)?;
                }
                out.push(']');
            }
            Kind::Map(entries) => {
                out.push('{');
                for (index, entry) in entries.iter().enumerate() {
                    if index > 0 {
                        out.push(',');
                    }
                    write_text(&entry.key, out);
                    out.push(':');
                    entry.value.write_json(out, bytes_max)?;
                }
                out.push('}');
            }
        }
        if out.len() > bytes_max {
            return Err(TooLong);
        }
        Ok(())
    }
}

/// The JSON form of a value is longer than asked for.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct TooLong;

fn write_text(text: &str, out: &mut String) {
    out.push_str(&serde_json::Value::from(text).to_string());
}
